"""Construction of material for the four benchmarks, in steps that exchange files and are reviewed by people."""

__all__ = ["steps", "workshop"]
