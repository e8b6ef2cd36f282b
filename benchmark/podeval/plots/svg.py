"""The parts of pictures as SVG text: frames, texts, marks, axes and legends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from podeval.plots.axis import Axis

WIDTH = 360
"""Units across a picture for a phone; the letters of 12 units are never below 11 px there."""
WIDE = 1080
"""Units across a picture for a page."""
SHAPES = {
    "ranked": "circle", "incomplete": "up", "human": "diamond", "control": "square", "reported": "down",
    "own": "circle", "people": "diamond", "median": "square",
}  # fmt: skip
"""The shape of a mark by the kind of system that it stands for; in a report, by whose it is."""
SERIES = ("circle", "square", "up", "diamond", "down", "cross")
"""The shapes of several systems in one picture, in order."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Those of Okabe and Ito, which people of all colour vision tell apart."""

STYLE = (
    "<style>text{fill:#111;font-family:system-ui,sans-serif}.quiet,.axis text{fill:#57606a}.strong{font-weight:600}"
    ".axis line,.axis path{stroke:#d0d7de;fill:none}.rule{stroke:#111;stroke-width:1.5;fill:none}"
    ".line{fill:none;stroke:#0072B2;stroke-width:1.5}.usual{fill:#009E73;opacity:.15}.defect{fill:#D55E00;opacity:.4}"
    ".box{fill:none;stroke:#111;stroke-width:1.5}.dot,.mark{fill:#0072B2}.out{fill:#D55E00}.mean{stroke-width:2;fill:none}"
    ".c0{fill:#0072B2;stroke:#0072B2}.c1{fill:#D55E00;stroke:#D55E00}.c2{fill:#009E73;stroke:#009E73}"
    ".c3{fill:#CC79A7;stroke:#CC79A7}text.c0,text.c1,text.c2,text.c3{stroke:none}.room{fill:#eef3fa;stroke:#35608f}.wire{stroke:#8a9bb0}</style>"
)
"""The style of a picture that stands alone; its ground is white, so that it can be read on dark pages."""


@dataclass(frozen=True)
class Frame:
    """What is around a picture: its title for screen readers, its width in units, its letters, its class.

    `alone` is a picture outside of a page of ours, which brings a style and a ground.
    """

    title: str
    width: int = WIDTH
    font_size: int = 12
    css_class: str = ""
    alone: bool = False

    def render(self, height: float, content: str, data_length: float | None = None) -> str:
        """Render the picture; `data_length` is what its time axis covers, in seconds, for a page that plays from it."""
        css = f' class="{self.css_class}"' if self.css_class else ""
        length = f' data-length="{data_length:g}"' if data_length is not None else ""
        size = f' width="{self.width}" height="{height:g}"' if self.alone else ""
        ground = f'{STYLE}<rect width="{self.width}" height="{height:g}" fill="#fff"/>' if self.alone else ""
        return (
            f'<svg{css} xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:g}"{size}{length} '
            f'role="img" font-size="{self.font_size}"><title>{escape(self.title)}</title>{ground}{content}</svg>'
        )


def stack_pictures(pictures: Sequence[str], title: str, columns: int = 1) -> str:
    """Put pictures that stand alone into one, in rows of some columns as wide and high as the largest of them."""
    sizes = [re.findall(r' width="([\d.]+)" height="([\d.]+)"', one)[0] for one in pictures]
    wide, high = (max((float(size[side]) for size in sizes), default=1.0) for side in (0, 1))
    content = "".join(
        f'<g transform="translate({number % columns * wide:g} {number // columns * high:g})">{one}</g>'
        for number, one in enumerate(pictures)
    )
    frame = Frame(title, int(wide * min(columns, max(1, len(pictures)))), alone=True)
    return frame.render(high * -(-len(pictures) // columns), content)


def render_text(x: float, y: float, text: str, css_class: str = "", anchor: str = "start", size: float = 0) -> str:
    """Render a text; `size` is the size of its letters if it is not that of the picture."""
    css = f' class="{css_class}"' if css_class else ""
    end = f' text-anchor="{anchor}"' if anchor != "start" else ""
    letters = f' font-size="{size:.1f}"' if size else ""
    return f'<text{css} x="{x:g}" y="{y:g}"{end}{letters}>{escape(text)}</text>'


def render_tooltip(text: str) -> str:
    """Render the tooltip of the shape around it; nothing without a text."""
    return f"<title>{escape(text)}</title>" if text else ""


def render_bar(css_class: str, x: float, y: float, width: float, height: float, tooltip: str = "") -> str:
    """Render a rectangle."""
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css_class}" x="{x:.1f}" y="{y:.1f}" {size}>{render_tooltip(tooltip)}</rect>'


def render_mark(shape: str, x: float, y: float, radius: float, css_class: str, tooltip: str = "") -> str:
    """Render one mark."""
    r, wide = radius, 1.4 * radius
    if shape == "circle":
        return f'<circle class="{css_class}" cx="{x:g}" cy="{y:g}" r="{r:g}">{render_tooltip(tooltip)}</circle>'
    paths = {
        "square": f"M{x - r:g} {y - r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z",
        "up": f"M{x:g} {y - 1.3 * r:g}l{1.2 * r:g} {2.2 * r:g}h{-2.4 * r:g}z",
        "down": f"M{x:g} {y + 1.3 * r:g}l{1.2 * r:g} {-2.2 * r:g}h{-2.4 * r:g}z",
        "diamond": f"M{x:g} {y - wide:g}l{wide:g} {wide:g}l{-wide:g} {wide:g}l{-wide:g} {-wide:g}z",
        "cross": f"M{x - 1.3 * r:g} {y - 0.4 * r:g}h{0.9 * r:g}v{-0.9 * r:g}h{0.8 * r:g}v{0.9 * r:g}h{0.9 * r:g}"
        f"v{0.8 * r:g}h{-0.9 * r:g}v{0.9 * r:g}h{-0.8 * r:g}v{-0.9 * r:g}h{-0.9 * r:g}z",
    }
    return f'<path class="{css_class}" d="{paths[shape]}">{render_tooltip(tooltip)}</path>'


def render_axis_below(axis: Axis, top: float, bottom: float, title: str = "") -> str:
    """Render a horizontal axis: a line from `top` to `bottom` at each tick, the labels below, the title last."""
    lines = "".join(f'<line x1="{at}" x2="{at}" y1="{top:g}" y2="{bottom:g}"/>' for at, _ in axis.marks)
    texts = "".join(render_text(at, bottom + 13, text, anchor="middle") for at, text in axis.marks)
    caption = render_text(axis.end, bottom + 28, title, anchor="end") if title else ""
    return f'<g class="axis">{lines}{texts}{caption}</g>'


def render_axis_beside(axis: Axis, left: float, right: float, title: str = "") -> str:
    """Render a vertical axis: a line from `left` to `right` at each tick, the title above."""
    lines = "".join(f'<line x1="{left:g}" x2="{right:g}" y1="{at}" y2="{at}"/>' for at, _ in axis.marks)
    texts = "".join(render_text(left - 5, at + 4, text, anchor="end") for at, text in axis.marks)
    caption = render_text(4, axis.end - 12, title) if title else ""
    return f'<g class="axis">{lines}{texts}{caption}</g>'


def render_legend(kinds: Iterable[str], words: Mapping[str, str], y: float, font_size: int = 12) -> str:
    """Render a legend of the shapes."""
    entries, x = "", 14.0
    for kind in kinds:
        entries += render_mark(SHAPES[kind], x, y, 4.5, kind) + render_text(x + 9, y + 4, words[kind])
        x += 28 + measure_text(words[kind], font_size)
    return f"<g>{entries}</g>"


def measure_text(text: str, size: float) -> float:
    """Estimate how wide a text is: Chinese characters are as wide as high, Latin letters about half as wide."""
    return size * sum(1.1 if ord(letter) > 0x2E80 else 0.6 for letter in text)


def shorten(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
