"""The plots of a report as SVG that the server draws: a radar of dimensions, distributions over items, courses.

A page's style fills the classes `own`, `people` and `median` for light, dark and paper. Whatever colour shows, shape
shows too: the system is round and its lines whole, people are diamonds and dashed, the median of the others is square
and dotted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from podeval.metrics.score import Timeline
from podeval.plots.axis import Axis
from podeval.stats.intervals import Interval

WIDTH = 640
LEAST, MOST = 1.0, 5.0
"""The scale of a radar, as LFS-Bench has it."""

MOST_KEYS = 4
"""Most keys in a timeline."""

_DOTS = 400
_DOTTED = 60


@dataclass(frozen=True)
class DimensionAxis:
    """One dimension of a radar: its name, and the value of each series from 1 to 5; None where it has none."""

    name: str
    system: float | None
    people: float | None
    median: float | None


def radar(spokes: Sequence[DimensionAxis], title: str) -> str:
    """Draw a radar; return an empty text with fewer than three spokes, which make no area.

    Args:
        spokes: clockwise from the top.
        title: text for screen readers.
    """
    if len(spokes) < 3:
        return ""
    middle, radius = (WIDTH / 2, 184.0), 130.0

    def point(number: int, value: float) -> tuple[float, float]:
        angle = 2 * math.pi * number / len(spokes) - math.pi / 2
        reach = radius * (value - LEAST + 0.5) / (MOST - LEAST + 0.5)
        return round(middle[0] + reach * math.cos(angle), 1), round(middle[1] + reach * math.sin(angle), 1)

    rings = "".join(
        f'<polygon points="{_points([point(n, level) for n in range(len(spokes))])}"/>' for level in (1, 2, 3, 4, 5)
    )
    lines = "".join(
        f'<line x1="{middle[0]:g}" y1="{middle[1]:g}" x2="{x}" y2="{y}"/>'
        for x, y in (point(n, MOST) for n in range(len(spokes)))
    )
    labels = "".join(_label(spoke.name, *point(n, MOST + 0.45), middle[0]) for n, spoke in enumerate(spokes))
    series: tuple[tuple[str, Callable[[DimensionAxis], float | None]], ...] = (
        ("median", lambda spoke: spoke.median),
        ("people", lambda spoke: spoke.people),
        ("own", lambda spoke: spoke.system),
    )
    drawn = "".join(_area(name, [value(spoke) for spoke in spokes], point) for name, value in series)
    return _svg("radar", 368, title, f'<g class="grid">{rings}{lines}</g>{labels}{drawn}')


def distribution(
    system: Sequence[float], people: Sequence[float], others: Sequence[float], names: Mapping[str, str], title: str
) -> str:
    """Draw values over items: of the system, of people where there are any, and the means of the other systems.

    Args:
        system: its own values, one for each item.
        people: values of the recordings of people, one for each item.
        others: one mean for each other system.
        names: names of the rows: `own`, `people`, `others`.
        title: text for screen readers.
    """
    rows = [(name, values) for name, values in (("own", system), ("people", people), ("others", others)) if len(values)]
    axis = Axis.over([value for _, values in rows for value in values], 150, WIDTH - 16)
    high = 30 + 34 * len(rows)
    drawn = "".join(
        _spread(name, names[name], values, 44 + 34 * number, axis) for number, (name, values) in enumerate(rows)
    )
    return _svg("spread", high, title, f'<g class="grid">{axis.render(24, high)}</g>{drawn}')


def courses(
    system: Sequence[Interval | None], people: Sequence[Interval | None], title: str, unit: str, names: tuple[str, str]
) -> str:
    """Draw a windowed value over the length of the recordings, from beginning to end, with its interval.

    Args:
        system: its own values, one for each part of equal length.
        people: values of the recordings of people; empty without them.
        title: text for screen readers.
        unit: unit of the value.
        names: names of the beginning and of the end of the axis.
    """
    bounds = [
        value for part in (*system, *people) if part for value in (part.mean, part.low, part.high) if value is not None
    ]
    up = Axis.over(bounds, 190, 24, marks=4)
    left, right = 56.0, WIDTH - 16.0

    def across(number: int, count: int) -> float:
        return round(left + (right - left) * (number + 0.5) / count, 1)

    marks = "".join(
        f'<line x1="{left:g}" x2="{right:g}" y1="{at}" y2="{at}"/>'
        f'<text x="{left - 6:g}" y="{at + 4}" text-anchor="end">{text}</text>'
        for at, text in up.marks
    )
    ends = (
        f'<text x="{left:g}" y="208">{escape(names[0])}</text>'
        f'<text x="{right:g}" y="208" text-anchor="end">{escape(names[1])}</text>'
        f'<text x="{left - 6:g}" y="14" text-anchor="end">{escape(unit)}</text>'
    )
    drawn = _course("people", people, across, up) + _course("own", system, across, up)
    return _svg("course", 216, title, f'<g class="grid">{marks}{ends}</g>{drawn}')


def timeline(track: Timeline, title: str, names: Sequence[str]) -> str:
    """Draw a windowed metric of one recording over its time: a line for each key, at the middle of its windows.

    Args:
        track: the metric's timeline; at most `MOST_KEYS` of its keys are drawn.
        title: text for screen readers.
        names: names of the keys, in the order of the track.
    """
    keys = list(track.values)[:MOST_KEYS]
    values = [value for key in keys for value in track.values[key] if value is not None]
    up = Axis.over(values, 190, 24, marks=4)
    last = max(track.starts, default=0.0) + track.window
    along = Axis(0.0, last, _along(last), 56.0, WIDTH - 16.0)
    marks = "".join(
        f'<line x1="56" x2="{WIDTH - 16}" y1="{y}" y2="{y}"/><text x="50" y="{y + 4}" text-anchor="end">{text}</text>'
        for y, text in up.marks
    )
    marks += "".join(f'<text x="{x}" y="208" text-anchor="middle">{text}</text>' for x, text in along.marks)
    drawn = ""
    for number, (key, name) in enumerate(zip(keys, names, strict=False)):
        points = [
            (along.at(start + track.window / 2), up.at(value))
            for start, value in zip(track.starts, track.values[key], strict=False)
            if value is not None
        ]
        dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5"/>' for x, y in points) if len(points) <= _DOTTED else ""
        line = f'<polyline class="line" points="{_points(points)}"/>'
        drawn += f'<g class="key{number}"><title>{escape(name)}</title>{line}{dots}</g>'
    return _svg("timeline", 216, title, f'<g class="grid">{marks}</g>{drawn}')


def _along(last: float) -> float:
    """Return a round distance in time between marks."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
    return float(next((step for step in steps if last / step <= 8), max(3600.0, last / 8)))


def _course(name: str, parts: Sequence[Interval | None], across: Callable[[int, int], float], up: Axis) -> str:
    parts_drawn = [(across(number, len(parts)), part) for number, part in enumerate(parts) if part is not None]
    if not parts_drawn:
        return ""
    band = [(x, part.low, part.high) for x, part in parts_drawn if part.low is not None and part.high is not None]
    outline = [(x, up.at(low)) for x, low, _ in band] + [(x, up.at(high)) for x, _, high in reversed(band)]
    shade = f'<polygon class="band {name}" points="{_points(outline)}"/>' if band else ""
    line = _points([(x, up.at(part.mean)) for x, part in parts_drawn])
    marks = "".join(_mark(name, x, up.at(part.mean), 4) for x, part in parts_drawn)
    return f'{shade}<polyline class="line {name}" points="{line}"/>{marks}'


def _spread(name: str, label: str, values: Sequence[float], y: float, axis: Axis) -> str:
    """Draw a row of dots with the box of their quartiles behind it; of many values, only some are drawn."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    sample = ordered[np.linspace(0, len(ordered) - 1, min(len(ordered), _DOTS)).round().astype(int)]
    kind = "median" if name == "others" else name
    box = ""
    if len(ordered) >= 4:
        first, middle, third = (axis.at(float(value)) for value in np.quantile(ordered, (0.25, 0.5, 0.75)))
        box = (
            f'<rect class="box {kind}" x="{first}" y="{y - 11:g}" width="{max(third - first, 1):g}" height="22"/>'
            f'<line class="line {kind}" x1="{middle}" x2="{middle}" y1="{y - 11:g}" y2="{y + 11:g}"/>'
        )
    # Neighbours lie at three heights in turn, so that equal values are seen as several.
    dots = "".join(_mark(kind, axis.at(float(v)), y + (-5, 0, 5)[n % 3], 3) for n, v in enumerate(sample))
    text = label if len(label) <= 22 else label[:21] + "…"
    count = f'<text class="quiet" x="0" y="{y + 12:g}">n = {len(ordered)}</text>'
    return f'<text x="0" y="{y - 2:g}">{escape(text)}</text>{count}{box}{dots}'


def _area(name: str, values: Sequence[float | None], point: Callable[[int, float], tuple[float, float]]) -> str:
    at = [(number, value) for number, value in enumerate(values) if value is not None]
    if not at:
        return ""
    corners = [point(number, value) for number, value in at]
    shape = "polygon" if len(at) == len(values) else "polyline"
    marks = "".join(_mark(name, x, y, 4.5) for x, y in corners)
    return f'<{shape} class="line {name}" points="{_points(corners)}"/>{marks}'


def _mark(name: str, x: float, y: float, half: float) -> str:
    if name == "people":
        reach = half + 1
        corners = [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
        return f'<polygon class="mark people" points="{_points(corners)}"/>'
    if name == "median":
        return (
            f'<rect class="mark median" x="{x - half:g}" y="{y - half:g}" width="{2 * half:g}" height="{2 * half:g}"/>'
        )
    return f'<circle class="mark own" cx="{x}" cy="{y:g}" r="{half:g}"/>'


def _label(name: str, x: float, y: float, middle: float) -> str:
    """Draw a name beside the end of its spoke, in one line or, at a dot between its parts, in two."""
    anchor = "middle" if abs(x - middle) < 20 else "start" if x > middle else "end"
    words = [part.strip() for part in name.split("·")]
    top = y + 4 - 7 * (len(words) - 1)
    lines = "".join(f'<tspan x="{x}" y="{top + 14 * n:g}">{escape(word)}</tspan>' for n, word in enumerate(words))
    return f'<text text-anchor="{anchor}">{lines}</text>'


def _points(at: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in at)


def _svg(kind: str, high: float, title: str, inside: str) -> str:
    return (
        f'<svg class="drawn {kind}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high:g}" role="img" '
        f'font-size="13"><title>{escape(title)}</title>{inside}</svg>'
    )
