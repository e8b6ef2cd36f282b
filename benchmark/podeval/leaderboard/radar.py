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
_RADIUS, _MIDDLE, _HEIGHT = 98.0, (180.0, 142.0), 284.0


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
    """One system: its name and its value on each axis, None where it has none."""

    name: str
    values: tuple[float | None, ...]


def spokes(columns: Sequence[Column], board: ProfileBoard, protocols: Mapping[str, str]) -> list[RadarAxis]:
    """Return the axes for some columns: those with a direction and with values, at most twelve."""
    axes = []
    for column in columns:
        if column.better == "informative" or (column.better == "in range" and column.ideal is None):
            continue
        extent = board.extent(protocols, column, SCENARIOS)
        if extent is None:
            continue
        axes.append(RadarAxis(column, way_of(column), extent))
    return axes[:MOST]


def way_of(column: Column) -> Way:
    """Return how a column is mapped to its axis."""
    return "shifted" if column.key == PESQ else "as it is" if column.bounds == (LEAST, GREATEST) else "spanned"


def draw(axes: Sequence[tuple[str, RadarAxis]], series: Sequence[Series], title: str) -> str:
    """Draw the picture.

    Args:
        axes: names and spokes, at least three.
        series: at most six systems.
        title: text for screen readers.
    """
    count = len(axes)
    rings = "".join(
        f'<path d="M{" ".join(_point(number, count, ring) for number in range(count))}z"/>' for ring in (1, 2, 3, 4, 5)
    )
    rays = "".join(f'<path d="M{_point(n, count, LEAST)} {_point(n, count, GREATEST)}"/>' for n in range(count))
    scale = "".join(
        f'<text x="{_MIDDLE[0] + 3:g}" y="{_across(0, count, r)[1] + 4:g}">{r:g}</text>' for r in (2, 3, 4, 5)
    )
    names = "".join(_name(name, number, count) for number, (name, _) in enumerate(axes))
    lines = "".join(_series(one, number, count) for number, one in enumerate(series))
    top = _HEIGHT + 8
    key = "".join(
        f'<g class="series s{number + 1}">{render_mark(SERIES[number], 14, top + 18 * number, 4.5, "mk")}'
        f'<text x="26" y="{top + 4 + 18 * number:g}">{escape(shorten(one.name, 48))}</text></g>'
        for number, one in enumerate(series)
    )
    return render_picture(
        title, top + 18 * len(series), f'<g class="axis">{rings}{rays}{scale}</g>{lines}<g>{names}</g>{key}'
    )


def _series(one: Series, number: int, count: int) -> str:
    """Draw a system's marks, with a line between neighbours that both have a value."""
    path = ""
    marks = ""
    for axis, value in enumerate(one.values):
        if value is None:
            continue
        following = one.values[(axis + 1) % count]
        if following is not None:
            path += f"M{_point(axis, count, value)} {_point((axis + 1) % count, count, following)}"
        x, y = _across(axis, count, value)
        marks += render_mark(SERIES[number], x, y, 3.5, "mk", f"{one.name}: {value:.2f}")
    return f'<g class="series s{number + 1}"><path d="{path}"/>{marks}</g>'


def _name(name: str, number: int, count: int) -> str:
    x, y = _across(number, count, GREATEST, 12.0)
    side = x - _MIDDLE[0]
    anchor = "middle" if abs(side) < 12 else "start" if side > 0 else "end"
    room = WIDTH - x if anchor == "start" else x if anchor == "end" else WIDTH / 2
    words, lines = name.split(" "), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > room / 6:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    start = y + 4 - (12 * (len(lines) - 1) if y < _MIDDLE[1] - 40 else 6 * (len(lines) - 1))
    most = max(6, int(room / 5.6))
    return "".join(
        f'<text x="{x:g}" y="{start + 12 * line:g}" text-anchor="{anchor}">{escape(shorten(text, most))}</text>'
        for line, text in enumerate(lines)
    )


def _across(number: int, count: int, value: float, beyond: float = 0.0) -> tuple[float, float]:
    angle = 2 * math.pi * number / count - math.pi / 2
    reach = _RADIUS * (value - LEAST) / (GREATEST - LEAST) + beyond
    return round(_MIDDLE[0] + reach * math.cos(angle), 1), round(_MIDDLE[1] + reach * math.sin(angle), 1)


def _point(number: int, count: int, value: float) -> str:
    x, y = _across(number, count, value)
    return f"{x:g} {y:g}"
