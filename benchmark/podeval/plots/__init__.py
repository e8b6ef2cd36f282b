"""Drawing primitives of plots: SVG shapes and axes. They know nothing about podeval's data."""

__all__ = ["axis", "svg"]
