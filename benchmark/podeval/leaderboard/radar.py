"""A radar plot of several systems: every figure between its fixed ends, outward is better, with 95 % intervals.

The ends are those of the metric's own scale, its bounds, and never those of the systems that happen to be shown: what
is equal is drawn as equal, and what is hardly apart lies close together. An error rate ends at 1, where everything is
wrong; what is best in a range ends where it is far from it. A figure without such ends is not drawn, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from podeval.leaderboard.columns import Column
from podeval.plots.svg import SERIES, WIDTH, render_mark, render_picture, shorten

FEWEST, MOST = 3, 12
"""Fewest and most axes of a radar."""
RINGS = (0.25, 0.5, 0.75, 1.0)
ERROR_RATES = ("wer", "cer", "wer_raw", "cer_raw", "cpwer", "cpcer")
FARTHEST = {"LUFS": 12.0, "dBTP": 4.0, "LU": 14.0}
"""By unit: how far from its ideal range a value is at the centre."""

Span = tuple[float, float]


@dataclass(frozen=True)
class RadarLayout:
    """How large a radar is drawn: the width of its picture, where its middle lies, its radius, how tall it is."""

    width: int
    middle: tuple[float, float]
    radius: float
    height: float
    font_size: int


ON_BOARD = RadarLayout(WIDTH, (180.0, 142.0), 92.0, 284.0, 12)
ON_WIDE_BOARD = RadarLayout(1080, (540.0, 262.0), 200.0, 524.0, 14)
ON_PAPER = RadarLayout(480, (240.0, 170.0), 118.0, 340.0, 13)


@dataclass(frozen=True)
class RadarAxis:
    """One axis between fixed ends: the badness, as `Column.badness`, of its centre and of its rim."""

    column: Column
    worst: float
    best: float

    def at(self, value: float) -> float:
        """Return the position of a value from 0, the centre, to 1, the rim; a value beyond an end lies on it."""
        share = (self.worst - self.column.badness(value)) / (self.worst - self.best)
        return min(max(share, 0.0), 1.0)

    def span(self, low: float | None, high: float | None) -> Span | None:
        """Return the positions of an interval's ends; None without one."""
        return None if low is None or high is None else (self.at(low), self.at(high))


def find_axis(column: Column) -> RadarAxis | None:
    """Return the axis of a column; None of a figure without a direction or without fixed ends."""
    low, high = column.bounds
    if column.better == "informative":
        return None
    if column.better == "in range":
        far = FARTHEST.get(column.unit)
        return RadarAxis(column, far, 0.0) if far and column.ideal is not None else None
    if column.key in ERROR_RATES:
        high = 1.0
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    ends = sorted((column.badness(low), column.badness(high)))
    return RadarAxis(column, ends[1], ends[0])


def choose_radar_axes(columns: Sequence[Column]) -> list[RadarAxis]:
    """Return the axes of those columns that have one, at most twelve."""
    return [axis for axis in map(find_axis, columns) if axis is not None][:MOST]


@dataclass(frozen=True)
class Series:
    """What a line of a radar stands for: its name, its value on each axis, None where it has none, and how it looks.

    `spans` are the intervals, where there are some. `group`, `line` and `mark` are classes that a page's style fills;
    `shape` is one of those of `plots.svg`.
    """

    name: str
    values: tuple[float | None, ...]
    shape: str
    group: str = ""
    line: str = ""
    mark: str = "mk"
    spans: tuple[Span | None, ...] = ()

    @classmethod
    def of_systems(
        cls, systems: Sequence[tuple[str, tuple[float | None, ...], tuple[Span | None, ...]]]
    ) -> list[Series]:
        """One series a system with its values and intervals, each with a shape and a class of its own."""
        looks = zip(systems, SERIES, strict=False)
        return [
            cls(name, values, shape, f"series s{number}", spans=spans)
            for number, ((name, values, spans), shape) in enumerate(looks, 1)
        ]


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
        """Where a value lies on an axis; the worst is a little off the middle, so that systems differ there too."""
        angle = 2 * math.pi * number / self.count - math.pi / 2
        reach = self.layout.radius * (value + 0.1) / 1.1 + beyond
        x, y = self.layout.middle
        return round(x + reach * math.cos(angle), 1), round(y + reach * math.sin(angle), 1)

    def point(self, number: int, value: float) -> str:
        """The same as a path writes it."""
        x, y = self.locate(number, value)
        return f"{x:g} {y:g}"

    def render_grid(self) -> str:
        """Rings at the quarters, rays, and the scale beside the first of them."""
        numbers = range(self.count)
        rings = "".join(f'<path d="M{" ".join(self.point(n, ring) for n in numbers)}z"/>' for ring in (0.0, *RINGS))
        x, y = self.layout.middle
        rays = "".join(f'<path d="M{x:g} {y:g} {self.point(n, 1.0)}"/>' for n in numbers)
        scale = "".join(f'<text x="{x + 3:g}" y="{self.locate(0, r)[1] + 4:g}">{r:.0%}</text>' for r in (0.5, 1.0))
        return f"{rings}{rays}{scale}"

    def render_series(self, one: Series) -> str:
        """Draw a system's marks, with a line between neighbours that both have a value."""
        path, marks, whiskers = "", "", ""
        for number, value in enumerate(one.values):
            if value is None:
                continue
            after = (number + 1) % self.count
            if (following := one.values[after]) is not None:
                path += f"M{self.point(number, value)} {self.point(after, following)}"
            if number < len(one.spans) and (span := one.spans[number]):
                whiskers += f"M{self.point(number, span[0])} {self.point(number, span[1])}"
            tooltip = f"{one.name}: {value:.0%}" if one.name else ""
            marks += render_mark(one.shape, *self.locate(number, value), 3.5, one.mark, tooltip)
        spans = f'<path class="span" d="{whiskers}"/>' if whiskers else ""
        return f'<g class="{one.group}"><path class="{one.line}" d="{path}"/>{spans}{marks}</g>'

    def render_name(self, name: str, number: int) -> str:
        """The name of an axis beside its end, in as many lines as it needs."""
        width, middle = self.layout.width, self.layout.middle
        x, y = self.locate(number, 1.0, 12.0)
        side = x - middle[0]
        anchor = "middle" if abs(side) < 12 else "start" if side > 0 else "end"
        room = width - x if anchor == "start" else x if anchor == "end" else width / 2
        letter, tall = self.layout.font_size * 0.56, self.layout.font_size + 1
        words, lines = name.split(" "), [""]
        for word in words:
            if lines[-1] and len(lines[-1]) + len(word) + 1 > min(room, 190) / letter:
                lines.append(word)
            else:
                lines[-1] = f"{lines[-1]} {word}".strip()
        start = y + 4 - (tall * (len(lines) - 1) if y < middle[1] - 40 else tall / 2 * (len(lines) - 1))
        most = max(8, int(room / letter))
        return "".join(
            f'<text x="{x:g}" y="{start + tall * line:g}" text-anchor="{anchor}">{escape(shorten(text, most))}</text>'
            for line, text in enumerate(lines)
        )
