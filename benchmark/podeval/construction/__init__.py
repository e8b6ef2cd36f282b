"""Tools that make material for the four benchmarks: steps with files between them, and people who review."""
