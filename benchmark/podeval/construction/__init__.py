"""Construction of material for the four benchmarks, in steps that pass files to each other and that people review."""

__all__ = ["steps", "workshop"]
