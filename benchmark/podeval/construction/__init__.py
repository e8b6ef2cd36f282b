"""Construction of material for the four benchmarks: steps with files between them, and people who review."""

__all__ = ["steps", "workshop"]
