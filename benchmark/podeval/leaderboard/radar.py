"""A radar plot of several systems, every figure on one scale from 1 to 5, outward is better.

Normalised as LFS-Bench's appendix G.2 describes for its Figure 11: figures that are marks from 1 to 5 (the judges', and
for the same reason opinion scores) stay as they are; the PESQ estimate, from -0.5 to 4.5, is moved by 0.5; every other
is mapped so that its least value over all systems and all scenarios is 1 and its greatest 5, turned where lower is
better. Controls are left out of these extremes: silence would be the least of everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from podeval.leaderboard.columns import Column
from podeval.leaderboard.query import ProfileBoard
from podeval.plots.svg import SERIES, WIDTH, render_mark, render_picture, shorten

SCENARIOS = ("scenario", "category", "domain")
"""Breakdowns whose slices count for the least and greatest value."""
FEWEST, MOST = 3, 12
"""Fewest and most axes of a radar."""
LEAST, GREATEST = 1.0, 5.0
PESQ = "pesq_estimate"

Way = Literal["as it is", "shifted", "spanned"]


@dataclass(frozen=True)
class RadarLayout:
    """How large a radar is drawn: the width of its picture, where its middle lies, its radius, how tall it is."""

    width: int
    middle: tuple[float, float]
    radius: float
    height: float
    font_size: int


ON_BOARD = RadarLayout(WIDTH, (180.0, 142.0), 98.0, 284.0, 11)
ON_PAPER = RadarLayout(640, (320.0, 184.0), 130.0, 368.0, 13)


@dataclass(frozen=True)
class RadarAxis:
    """One axis and its scale; `extent` holds the worst and the best value of all, as `Column.badness`."""

    column: Column
    way: Way
    extent: tuple[float, float]

    def at(self, value: float) -> float:
        """Return the position of a value from 1 to 5; a value outside (of a control) is put on the edge."""
        if self.way == "spanned":
            worst, best = self.extent
            share = (worst - self.column.badness(value)) / (worst - best) if worst > best else 0.5
            value = LEAST + (GREATEST - LEAST) * share
        elif self.way == "shifted":
            value += 0.5
        return min(max(value, LEAST), GREATEST)


@dataclass(frozen=True)
class Series:
    """What a line of a radar stands for: its name, its value on each axis, None where it has none, and how it looks.

    `group`, `line` and `mark` are classes that a page's style fills; `shape` is one of those of `plots.svg`.
    """

    name: str
    values: tuple[float | None, ...]
    shape: str
    group: str = ""
    line: str = ""
    mark: str = "mk"

    @classmethod
    def of_systems(cls, systems: Sequence[tuple[str, tuple[float | None, ...]]]) -> list[Series]:
        """One series a system with its values, each with a shape and a class of its own."""
        looks = zip(systems, SERIES, strict=False)
        return [cls(name, of, shape, f"series s{number}") for number, ((name, of), shape) in enumerate(looks, 1)]


def spokes(columns: Sequence[Column], board: ProfileBoard, protocols: Mapping[str, str]) -> list[RadarAxis]:
    """Return the axes for some columns: the papers' ones with a direction and with values, at most twelve."""
    axes = []
    for column in columns:
        if (
            column.beyond_papers
            or column.better == "informative"
            or (column.better == "in range" and column.ideal is None)
        ):
            continue
        extent = board.extent(protocols, column, SCENARIOS)
        if extent is None:
            continue
        axes.append(RadarAxis(column, way_of(column), extent))
    return axes[:MOST]


def way_of(column: Column) -> Way:
    """Return how a column is mapped to its axis."""
    return "shifted" if column.key == PESQ else "as it is" if column.bounds == (LEAST, GREATEST) else "spanned"


def draw(
    names: Sequence[str], series: Sequence[Series], title: str, layout: RadarLayout = ON_BOARD, css_class: str = ""
) -> str:
    """Draw a radar.

    Args:
        names: of the axes, at least three, clockwise from the top.
        series: at most six; those with a name are named below the radar, too.
        title: said by screen readers.
        layout: its size.
        css_class: of the picture.
    """
    frame = _Frame(layout, len(names))
    named = [one for one in series if one.name]
    key = "".join(_render_key(one, layout.height + 8 + 18 * number) for number, one in enumerate(named))
    lines = "".join(frame.render_series(one) for one in series)
    labels = "".join(frame.render_name(name, number) for number, name in enumerate(names))
    height = layout.height + (8 + 18 * len(named) if named else 0)
    content = f'<g class="axis">{frame.render_grid()}</g>{lines}<g>{labels}</g>{key}'
    size = {"width": layout.width, "font_size": layout.font_size}
    return render_picture(title, height, content, css_class=css_class, **size)


def _render_key(one: Series, y: float) -> str:
    mark = render_mark(one.shape, 14, y, 4.5, one.mark)
    return f'<g class="{one.group}">{mark}<text x="26" y="{y + 4:g}">{escape(shorten(one.name, 48))}</text></g>'


@dataclass(frozen=True)
class _Frame:
    """Where the axes of a radar lie."""

    layout: RadarLayout
    count: int

    def locate(self, number: int, value: float, beyond: float = 0.0) -> tuple[float, float]:
        """Where a value lies on an axis; the least is a little off the middle, so that systems differ there too."""
        angle = 2 * math.pi * number / self.count - math.pi / 2
        reach = self.layout.radius * (value - LEAST + 0.5) / (GREATEST - LEAST + 0.5) + beyond
        x, y = self.layout.middle
        return round(x + reach * math.cos(angle), 1), round(y + reach * math.sin(angle), 1)

    def point(self, number: int, value: float) -> str:
        """The same as a path writes it."""
        x, y = self.locate(number, value)
        return f"{x:g} {y:g}"

    def render_grid(self) -> str:
        """Rings at the whole values, rays, and the scale beside the first of them."""
        numbers = range(self.count)
        rings = "".join(f'<path d="M{" ".join(self.point(n, ring) for n in numbers)}z"/>' for ring in (1, 2, 3, 4, 5))
        x, y = self.layout.middle
        rays = "".join(f'<path d="M{x:g} {y:g} {self.point(n, GREATEST)}"/>' for n in numbers)
        scale = "".join(f'<text x="{x + 3:g}" y="{self.locate(0, r)[1] + 4:g}">{r:g}</text>' for r in (2, 3, 4, 5))
        return f"{rings}{rays}{scale}"

    def render_series(self, one: Series) -> str:
        """Draw a system's marks, with a line between neighbours that both have a value."""
        path, marks = "", ""
        for number, value in enumerate(one.values):
            if value is None:
                continue
            after = (number + 1) % self.count
            if (following := one.values[after]) is not None:
                path += f"M{self.point(number, value)} {self.point(after, following)}"
            tooltip = f"{one.name}: {value:.2f}" if one.name else ""
            marks += render_mark(one.shape, *self.locate(number, value), 3.5, one.mark, tooltip)
        return f'<g class="{one.group}"><path class="{one.line}" d="{path}"/>{marks}</g>'

    def render_name(self, name: str, number: int) -> str:
        """The name of an axis beside its end, in as many lines as it needs."""
        width, middle = self.layout.width, self.layout.middle
        x, y = self.locate(number, GREATEST, 12.0)
        side = x - middle[0]
        anchor = "middle" if abs(side) < 12 else "start" if side > 0 else "end"
        room = width - x if anchor == "start" else x if anchor == "end" else width / 2
        words, lines = name.split(" "), [""]
        for word in words:
            if lines[-1] and len(lines[-1]) + len(word) + 1 > room / 6:
                lines.append(word)
            else:
                lines[-1] = f"{lines[-1]} {word}".strip()
        start = y + 4 - (12 * (len(lines) - 1) if y < middle[1] - 40 else 6 * (len(lines) - 1))
        most = max(6, int(room / 5.6))
        return "".join(
            f'<text x="{x:g}" y="{start + 12 * line:g}" text-anchor="{anchor}">{escape(shorten(text, most))}</text>'
            for line, text in enumerate(lines)
        )
