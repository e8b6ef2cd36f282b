"""All plots are drawn here, as SVG text: dots with intervals, boxes, lines, scatter plots, radars.

The functions do not depend on podeval's data. Colours are CSS classes, which a page's style defines for light and dark
mode; a standalone picture includes its own style. Everything conveyed by colour is also conveyed by shape or words.
Text is escaped, so nothing in it is interpreted as markup.
"""

__all__ = ["charts", "lines", "svg"]
