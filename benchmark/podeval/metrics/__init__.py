"""The measurements: one file per metric, a pure function next to its declaration."""
