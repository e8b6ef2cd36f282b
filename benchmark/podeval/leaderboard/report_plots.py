"""The plots of a report as SVG that the server draws: distributions over items, courses, timelines.

A page's style fills the classes `own`, `people` and `median` for light, dark and paper. Whatever colour shows, shape
shows too: the system is round and its lines whole, people are diamonds and dashed, the median of the others is square
and dotted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np

from podeval.metrics.score import Timeline
from podeval.plots.axis import Axis
from podeval.plots.svg import render_axis_beside, render_mark, render_picture, shorten
from podeval.stats.intervals import Interval

WIDTH = 480
"""Units across; a page enlarges the letters where it shows a picture smaller than this."""
SHAPES = {"own": "circle", "people": "diamond", "median": "square"}
"""The shape of a mark by whose it is."""
MOST_KEYS = 4
"""Most keys in a timeline."""

_DOTS = 400
_DOTTED = 60


def draw_distribution(
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
    axis = Axis.over([value for _, values in rows for value in values], 150, WIDTH - 28)
    high = 30 + 34 * len(rows)
    drawn = "".join(
        _spread(name, names[name], values, 44 + 34 * number, axis) for number, (name, values) in enumerate(rows)
    )
    return _draw("spread", high, title, f'<g class="axis">{axis.render(24, high)}</g>{drawn}')


def draw_courses(
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

    ends = (
        f'<text x="{left:g}" y="208">{escape(names[0])}</text>'
        f'<text x="{right:g}" y="208" text-anchor="end">{escape(names[1])}</text>'
    )
    drawn = _course("people", people, across, up) + _course("own", system, across, up)
    return _draw("course", 216, title, f'<g class="axis">{render_axis_beside(up, left, right, unit)}{ends}</g>{drawn}')


def draw_timeline(track: Timeline, title: str, names: Sequence[str]) -> str:
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
    marks = render_axis_beside(up, 56, WIDTH - 16)
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
    return _draw("timeline", 216, title, f'<g class="axis">{marks}</g>{drawn}')


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
    marks = "".join(render_mark(SHAPES[name], x, up.at(part.mean), 4, f"mark {name}") for x, part in parts_drawn)
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
    shape, css = SHAPES[kind], f"mark {kind}"
    dots = "".join(render_mark(shape, axis.at(float(v)), y + (-5, 0, 5)[n % 3], 3, css) for n, v in enumerate(sample))
    count = f'<text class="quiet" x="0" y="{y + 12:g}">n = {len(ordered)}</text>'
    return f'<text x="0" y="{y - 2:g}">{escape(shorten(label, 17))}</text>{count}{box}{dots}'


def _points(at: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in at)


def _draw(kind: str, height: float, title: str, content: str) -> str:
    return render_picture(title, height, content, css_class=f"drawn {kind}", width=WIDTH, font_size=13)
