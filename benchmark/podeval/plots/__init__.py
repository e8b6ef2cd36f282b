"""Plots as SVG text, the only place that draws: dots with intervals, boxes, lines, scatter, radar.

They know nothing about podeval's data. Colours are CSS classes that a page's style defines for light and dark; a
picture that stands alone has a style of its own. Whatever a colour says is also said by shape or words. Names are
escaped, so nothing in a text is interpreted as markup.
"""

__all__ = ["charts", "lines", "svg"]
