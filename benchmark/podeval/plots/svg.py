"""Draws the scales, marks and shapes of the board's figures as SVG text, 360 units wide, for any screen.

Colours are CSS classes that a page's style defines for light and dark; everything that a colour says is also said by
shape and words. Names are escaped, so nothing in a text is interpreted as markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from podeval.plots.axis import Axis

WIDTH = 360
"""Units across a picture for a phone; the letters of 12 units are never below 11 px there."""
WIDE = 1080
"""The same of a picture for a page."""
SHAPES = {"ranked": "circle", "incomplete": "up", "human": "diamond", "control": "square", "reported": "down"}
"""The shape of a mark by the kind of system that it stands for."""
SERIES = ("circle", "square", "up", "diamond", "down", "cross")
"""The shapes of a radar's systems, in order."""


@dataclass(frozen=True)
class Logarithmic:
    """A logarithmic axis of powers of ten, from `least` at coordinate `start` to `most` at `end`."""

    least: float
    most: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Logarithmic:
        """Create an axis that covers all values, which must be above 0."""
        return cls(min(values) / 1.15, max(values) * 1.15, start, end)

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        share = math.log(value / self.least) / math.log(self.most / self.least)
        return round(self.start + (self.end - self.start) * share, 1)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Return the coordinates and labels of powers of ten, with 2 and 5 between them if they are few."""
        powers = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
        for factors in (
            (1,),
            (1, 3),
            (1, 2, 5),
            (1, 2, 3, 4, 5, 6, 7, 8, 9),
            (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
        ):
            values = [factor * 10.0**power for power in powers for factor in factors]
            inside = [value for value in values if self.least <= value <= self.most]
            if len(inside) >= 3:
                break
        return [(self.at(value), format_value(value)) for value in inside]


@dataclass(frozen=True)
class Days:
    """A time axis, from `least` at coordinate `start` to `most` at `end`, in seconds since 1970."""

    least: float
    most: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Days:
        """Create an axis that covers all values and at least one day."""
        spare = max((max(values) - min(values)) * 0.03, 43_200.0)
        return cls(min(values) - spare, max(values) + spare, start, end)

    def at(self, value: float) -> float:
        """Return the coordinate of a time."""
        return round(self.start + (self.end - self.start) * (value - self.least) / (self.most - self.least), 1)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Return the coordinates and dates of four times."""
        span = self.most - self.least
        times = [self.least + span * share for share in (0.1, 0.37, 0.63, 0.9)]
        dates = dict.fromkeys(f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}" for time in times)
        starts = [datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() for date in dates]
        return [(self.at(max(time, self.least)), date) for time, date in zip(starts, dates, strict=True)]


def render_picture(
    title: str, height: float, content: str, *, css_class: str = "", width: int = WIDTH, font_size: int = 12
) -> str:
    """Render a figure with a title, which screen readers announce."""
    css = f' class="{css_class}"' if css_class else ""
    return (
        f'<svg{css} xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" role="img" '
        f'font-size="{font_size}"><title>{escape(title)}</title>{content}</svg>'
    )


def render_mark(shape: str, x: float, y: float, radius: float, css_class: str, title: str = "") -> str:
    """Render one mark; `title` is its tooltip."""
    tooltip = f"<title>{escape(title)}</title>" if title else ""
    r, wide = radius, 1.4 * radius
    if shape == "circle":
        return f'<circle class="{css_class}" cx="{x:g}" cy="{y:g}" r="{r:g}">{tooltip}</circle>'
    paths = {
        "square": f"M{x - r:g} {y - r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z",
        "up": f"M{x:g} {y - 1.3 * r:g}l{1.2 * r:g} {2.2 * r:g}h{-2.4 * r:g}z",
        "down": f"M{x:g} {y + 1.3 * r:g}l{1.2 * r:g} {-2.2 * r:g}h{-2.4 * r:g}z",
        "diamond": f"M{x:g} {y - wide:g}l{wide:g} {wide:g}l{-wide:g} {wide:g}l{-wide:g} {-wide:g}z",
        "cross": f"M{x - 1.3 * r:g} {y - 0.4 * r:g}h{0.9 * r:g}v{-0.9 * r:g}h{0.8 * r:g}v{0.9 * r:g}h{0.9 * r:g}"
        f"v{0.8 * r:g}h{-0.9 * r:g}v{0.9 * r:g}h{-0.8 * r:g}v{-0.9 * r:g}h{-0.9 * r:g}z",
    }
    return f'<path class="{css_class}" d="{paths[shape]}">{tooltip}</path>'


def render_axis_below(axis: Axis | Logarithmic | Days, top: float, bottom: float, title: str = "") -> str:
    """Render a horizontal axis: a line from `top` to `bottom` at each tick, the labels below, the title last."""
    lines = "".join(f'<line x1="{at}" x2="{at}" y1="{top:g}" y2="{bottom:g}"/>' for at, _ in axis.marks)
    texts = "".join(
        f'<text x="{at}" y="{bottom + 13:g}" text-anchor="middle">{escape(text)}</text>' for at, text in axis.marks
    )
    caption = f'<text x="{axis.end:g}" y="{bottom + 28:g}" text-anchor="end">{escape(title)}</text>' if title else ""
    return f'<g class="axis">{lines}{texts}{caption}</g>'


def render_axis_beside(axis: Axis, left: float, right: float, title: str = "") -> str:
    """Render a vertical axis: a line from `left` to `right` at each tick, the title above."""
    lines = "".join(f'<line x1="{left:g}" x2="{right:g}" y1="{at}" y2="{at}"/>' for at, _ in axis.marks)
    texts = "".join(f'<text x="{left - 5:g}" y="{at + 4:g}" text-anchor="end">{text}</text>' for at, text in axis.marks)
    caption = f'<text x="4" y="{axis.end - 12:g}">{escape(title)}</text>' if title else ""
    return f'<g class="axis">{lines}{texts}{caption}</g>'


def render_legend(kinds: Iterable[str], words: dict[str, str], y: float, font_size: int = 12) -> str:
    """Render a legend of the shapes."""
    entries, x = "", 14.0
    for kind in kinds:
        entries += render_mark(SHAPES[kind], x, y, 4.5, kind)
        entries += f'<text x="{x + 9:g}" y="{y + 4:g}">{escape(words[kind])}</text>'
        x += 28 + font_size * sum(1.1 if ord(letter) > 0x2E80 else 0.6 for letter in words[kind])
    return f"<g>{entries}</g>"


def shorten(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def format_value(value: float) -> str:
    """Format a number for display: `1.5 B` for a parameter count, `0.02` for a small number."""
    for size, letter in ((1e9, " B"), (1e6, " M")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}".replace("-", "−")
