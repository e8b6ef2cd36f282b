"""Drawing primitives of plots: SVG shapes and axes. No data of ours is known here."""

__all__ = ["axis", "svg"]
