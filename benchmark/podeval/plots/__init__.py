"""Plots as SVG text, the only place that draws: dots with intervals, boxes, lines, scatter, radar.

They are independent of podeval's data. Colours are CSS classes that a page's style defines for light and dark; a
picture on its own includes its style. Everything shown by colour is also shown by shape or words. Names are escaped, so
nothing in a text is interpreted as markup.
"""

__all__ = ["charts", "lines", "svg"]
