"""Draw values with their intervals, pairs of values by item, boxes with dots, scatter plots, and radars."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podeval.plots.svg import (
    SERIES,
    SHAPES,
    WIDE,
    WIDTH,
    Axis,
    Frame,
    render_axis_below,
    render_axis_beside,
    render_bar,
    render_labels,
    render_legend,
    render_link,
    render_mark,
    render_text,
    render_tooltip,
    shorten,
)

EDGE = 28
"""Space to the left and to the right of an axis, for half of its first label and half of its last."""
MOST_PAIRS = 120
"""Maximum number of items that are drawn: the items with the largest differences on either side."""
_STEP, _PAIR, _TOP = 34, 11, 26

MOST_DOTS = 200
"""Maximum number of values drawn as dots; if there are more, a selection evenly spaced by rank is drawn."""
MOST_BARS = 24
FEWEST = 4
"""Minimum number of values for which quartiles are drawn."""
_TALL, _ROW = 64, 36

LEFT, RIGHT = 56, 28
"""Margins of the plot area of a scatter plot."""
_FIELD_TOP = 28

RINGS = (0.25, 0.5, 0.75, 1.0)
Span = tuple[float, float]


@dataclass(frozen=True)
class IntervalRow:
    """One system: its name, its value with an interval if there is one, its kind (a key of `SHAPES`), and a note.

    The note is displayed at the right end of the line and as the tooltip of the mark. `link` is the target of the mark,
    if any.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    note: str
    kind: str = "ranked"
    link: str = ""


def draw_intervals(
    rows: Sequence[IntervalRow], frame: Frame, axis_title: str = "", legend: Mapping[str, str] | None = None
) -> str:
    """Draw every row as a dot with its interval, with the row's name above it.

    Args:
        rows: one row per system, from top to bottom.
        frame: the frame of the picture.
        axis_title: the name of the value.
        legend: labels of the kinds; without them, there is no legend.
    """
    bounds = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    axis = Axis.over(bounds, EDGE, frame.width - EDGE, percent=frame.percent)
    content, bottom, right = "", 12 + _STEP * len(rows), frame.width - 14
    for number, row in enumerate(rows):
        y = 30 + _STEP * number
        rule = ""
        if row.low is not None and row.high is not None:
            ends = "".join(f"M{axis.at(end):g} {y - 5}v10" for end in (row.low, row.high))
            rule = f'<path class="rule" d="M{axis.at(row.low):g} {y}H{axis.at(row.high):g}{ends}"/>'
        texts = render_text(14, y - 10, row.name) + render_text(right, y - 10, row.note, "quiet", "end")
        mark = render_mark(SHAPES[row.kind], axis.at(row.value), y, 5, row.kind, row.note)
        content += f"<g>{render_link(texts + rule + mark, row.link, row.name)}</g>"
    content = render_axis_below(axis, 6, bottom, axis_title) + content
    if legend is not None:
        kinds = [kind for kind in legend if any(row.kind == kind for row in rows)]
        content += render_legend(kinds, legend, bottom + 42, frame.font_size)
    return frame.render(bottom + (52 if legend is not None else 20), content)


def draw_pairs(pairs: Sequence[tuple[str, float, float]], frame: Frame, some: str = "") -> str:
    """Draw a line for each item from the value of `a` to the value of `b`, in the order of `b` minus `a`.

    Args:
        pairs: title of the item, value of `a`, value of `b`.
        frame: the frame of the picture.
        some: sentence for a picture that omits some items, with the placeholders `{shown}` and `{items}`.
    """
    rows = sorted(pairs, key=lambda pair: pair[2] - pair[1])
    if len(rows) > MOST_PAIRS:
        rows = [*rows[: MOST_PAIRS // 2], *rows[-MOST_PAIRS // 2 :]]
    axis = Axis.over([value for _, *both in rows for value in both], 14, frame.width - 14, percent=frame.percent)
    bottom = _TOP + _PAIR * len(rows) + 4
    lines = ""
    for number, (title, a, b) in enumerate(rows):
        y = _TOP + _PAIR * (number + 0.5)
        marks = render_mark("square", axis.at(b), y, 3.5, "dot b") + render_mark("circle", axis.at(a), y, 4, "dot a")
        lines += f'<g>{render_tooltip(title)}<path class="rule" d="M{axis.at(a)} {y:g}H{axis.at(b)}"/>{marks}</g>'
    names = render_mark("circle", 19, 12, 5, "dot a") + render_text(30, 16, "A")
    names += render_mark("square", 59, 12, 5, "dot b") + render_text(70, 16, "B")
    if len(rows) < len(pairs):
        names += render_text(frame.width - 14, 16, some.format(shown=len(rows), items=len(pairs)), "quiet", "end")
    return frame.render(bottom + 20, names + render_axis_below(axis, _TOP - 4, bottom) + lines)


@dataclass(frozen=True)
class BoxRow:
    """A name with its values, the class and shape of their dots, and a note at the right end of the line."""

    name: str
    values: Sequence[float]
    note: str = ""
    dots: str = "dot"
    shape: str = "circle"


def compute_five_numbers(values: Sequence[float]) -> tuple[float, ...]:
    """Return the minimum, lower quartile, median, upper quartile and maximum."""
    return tuple(float(number) for number in np.percentile(values, [0, 25, 50, 75, 100]))


def draw_boxes(
    rows: Sequence[BoxRow],
    frame: Frame,
    axis_title: str = "",
    *,
    histogram: BoxRow | None = None,
    ends: tuple[float, float] | None = None,
    heading: str = "",
) -> str:
    """Draw a box with dots for each row, with the row's name above it.

    Args:
        rows: the rows, from top to bottom; a row without values has only a name.
        frame: the frame of the picture.
        axis_title: the name of the value.
        histogram: values drawn as bars with a box above the rows; its note is the text above them.
        ends: the ends of the axis; by default, the lowest and the highest value.
        heading: a text at the top.
    """
    every = [*rows, *([histogram] if histogram else [])]
    values = [value for row in every for value in row.values]
    axis = Axis.over(ends or values, EDGE, frame.width - EDGE, percent=frame.percent)
    top = 22 if heading or histogram else 4
    first = top + (_TALL + 26 if histogram else 6)
    bottom = first + _ROW * len(rows)
    content = render_axis_below(axis, top, bottom, axis_title) + (render_text(14, 14, heading) if heading else "")
    if histogram:
        content += render_text(14, 14, histogram.note, "quiet") + _bars(histogram.values, axis, top + _TALL)
        content += _box(histogram.values, axis, top + _TALL + 8)
    for number, row in enumerate(rows):
        y = first + 22 + _ROW * number
        content += render_text(14, y - 12, shorten(row.name, 44))
        content += render_text(frame.width - 14, y - 12, row.note, "quiet", "end") if row.note else ""
        content += _box(row.values, axis, y) if len(row.values) >= FEWEST else ""
        content += _dots(row, axis, y)
    return frame.render(bottom + (34 if axis_title else 20), content)


def _bars(values: Sequence[float], axis: Axis, base: float) -> str:
    counts, edges = np.histogram(values, bins=min(MOST_BARS, max(4, len(values) // 2)), range=(axis.least, axis.most))
    scale = _TALL / max(1, int(counts.max()))
    places = [axis.at(float(edge)) for edge in edges]
    return "".join(
        render_bar("bar", left, base - scale * count, max(1.0, right - left - 0.6), scale * count, str(count))
        for count, left, right in zip(counts, places[:-1], places[1:], strict=True)
        if count
    )


def _box(values: Sequence[float], axis: Axis, y: float) -> str:
    least, low, middle, high, most = (axis.at(number) for number in compute_five_numbers(values))
    return (
        f'<path class="box" d="M{least:g} {y}H{low:g}M{high:g} {y}H{most:g}M{low:g} {y - 6}H{high:g}v12H{low:g}z"/>'
        f'<path class="rule" d="M{middle:g} {y - 6}v12"/>'
    )


def _dots(row: BoxRow, axis: Axis, y: float) -> str:
    """Draw dots on three levels in turn, so that equal values remain distinguishable."""
    ordered = np.sort(np.asarray(row.values, dtype=np.float64))
    sample = ordered[np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_DOTS)).round().astype(int)]
    return "".join(
        render_mark(row.shape, axis.at(float(value)), y + 4 * (number % 3 - 1), 2.5, row.dots)
        for number, value in enumerate(sample)
    )


@dataclass(frozen=True)
class ScatterPoint:
    """One system: its position on both axes, its kind (a key of `SHAPES`), its tooltip, and its name if it is shown.

    `span` is the interval of its vertical value, `link` the target of its mark, if any.
    """

    x: float
    y: float
    kind: str
    tooltip: str
    name: str = ""
    pinned: bool = False
    span: tuple[float | None, float | None] = (None, None)
    link: str = ""


def draw_scatter(
    points: Sequence[ScatterPoint],
    across: Axis,
    frame: Frame,
    titles: tuple[str, str],
    height: float,
    legend: Mapping[str, str],
    steps: Sequence[tuple[float, float]] = (),
) -> str:
    """Draw the points.

    Args:
        points: the points; the first is drawn in front.
        across: the horizontal axis, from `LEFT` to the width of the frame minus `RIGHT`.
        frame: the frame of the picture.
        titles: the titles of the horizontal and vertical axes.
        height: the height of the plot area.
        legend: labels of the kinds.
        steps: positions on both axes at which a step line, such as the best value so far, begins and changes.
    """
    bounds = [end for point in points for end in (point.y, *point.span) if end is not None]
    up = Axis.over(bounds, height, _FIELD_TOP, percent=frame.percent)
    content = render_axis_below(across, _FIELD_TOP, height, titles[0])
    content += render_axis_beside(up, LEFT, frame.width - RIGHT, titles[1])
    if steps:
        path = "".join(f"H{across.at(x):g}V{up.at(y):g}" for x, y in steps[1:])
        start = f"M{across.at(steps[0][0]):g} {up.at(steps[0][1]):g}"
        content += f'<path class="best" d="{start}{path}H{across.end:g}"/>'
    for point in reversed(points):
        x, y = across.at(point.x), up.at(point.y)
        css = f"{point.kind} pinned" if point.pinned else point.kind
        low, high = point.span
        ends = "" if low is None or high is None else f"M{x:g} {up.at(low):g}V{up.at(high):g}"
        rule = f'<path class="whisker" d="{ends}"/>' if ends else ""
        mark = render_mark(SHAPES[point.kind], x, y, 5, css, point.tooltip)
        content += render_link(rule + mark, point.link, point.tooltip)
    labelled = [point for point in points if point.name]
    labels = render_labels(
        [(across.at(one.x), up.at(one.y), shorten(one.name, 22), one.pinned) for one in labelled],
        frame.width,
        frame.font_size,
    )
    kinds = [kind for kind in legend if any(point.kind == kind for point in points)]
    return frame.render(height + 52, content + labels + render_legend(kinds, legend, height + 42, frame.font_size))


@dataclass(frozen=True)
class RadarLayout:
    """The dimensions of a radar chart: the width of the picture, its centre, radius, height and font size."""

    width: int
    middle: tuple[float, float]
    radius: float
    height: float
    font_size: int


ON_PHONE = RadarLayout(WIDTH, (180.0, 142.0), 92.0, 284.0, 12)
ON_PAGE = RadarLayout(WIDE, (540.0, 262.0), 200.0, 524.0, 14)
ON_PAPER = RadarLayout(480, (240.0, 170.0), 118.0, 340.0, 13)


@dataclass(frozen=True)
class Series:
    """A line of a radar: its name, its value on each axis (None if it has none), and its style.

    `spans` are the intervals, if there are any. `group`, `line` and `mark` are classes in a page's style; `shape` is
    one of the shapes in `plots.svg`.
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
        """Return one series per system, with its values and intervals and its own shape and class."""
        looks = zip(systems, SERIES, strict=False)
        return [
            cls(name, values, shape, f"series s{number}", spans=spans)
            for number, ((name, values, spans), shape) in enumerate(looks, 1)
        ]


def draw_radar(
    names: Sequence[str], series: Sequence[Series], title: str, layout: RadarLayout = ON_PHONE, css_class: str = ""
) -> str:
    """Draw a radar chart.

    Args:
        names: names of the axes (at least three), clockwise from the top.
        series: the lines, at most six; those with a name also appear in the legend below the radar.
        title: text for screen readers.
        layout: size of the picture.
        css_class: class of the picture.
    """
    rays = _Rays(layout, len(names))
    content = f'<g class="axis">{rays.render_grid()}</g>' + "".join(rays.render_series(one) for one in series)
    content += "".join(rays.render_name(name, number) for number, name in enumerate(names))
    height = layout.height
    for one in series:
        if one.name:
            height += 18
            mark = render_mark(one.shape, 14, height - 10, 4.5, one.mark)
            content += f'<g class="{one.group}">{mark}{render_text(26, height - 6, shorten(one.name, 48))}</g>'
    return Frame(title, layout.width, layout.font_size, css_class).render(height + 8, content)


@dataclass(frozen=True)
class _Rays:
    """The positions of a radar's axes."""

    layout: RadarLayout
    count: int

    def locate(self, number: int, value: float, beyond: float = 0.0) -> tuple[float, float]:
        """Return the position of a value on an axis; the worst value is off-centre, where systems still differ."""
        angle = 2 * math.pi * number / self.count - math.pi / 2
        reach = self.layout.radius * (value + 0.1) / 1.1 + beyond
        x, y = self.layout.middle
        return round(x + reach * math.cos(angle), 1), round(y + reach * math.sin(angle), 1)

    def point(self, number: int, value: float) -> str:
        """Return the position of a value in SVG path notation."""
        x, y = self.locate(number, value)
        return f"{x:g} {y:g}"

    def render_grid(self) -> str:
        """Render the rings at the quarters, the rays, and the scale next to the edge before the first axis."""
        numbers = range(self.count)
        rings = "".join(f'<path d="M{" ".join(self.point(n, ring) for n in numbers)}z"/>' for ring in (0.0, *RINGS))
        x, y = self.layout.middle
        rays = "".join(f'<path d="M{x:g} {y:g} {self.point(n, 1.0)}"/>' for n in numbers)
        # The scale is next to the edge between the last axis and the first, where there is no name and no mark.
        ends = [(self.locate(0, ring), self.locate(-1, ring), f"{ring:.0%}") for ring in (0.5, 1.0)]
        scale = "".join(
            render_text((3 * first[0] + last[0]) / 4 - 4, (3 * first[1] + last[1]) / 4 + 4, label, "halo", "end")
            for first, last, label in ends
        )
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
        """Render the name of an axis next to its end, on as many lines as necessary."""
        width, middle = self.layout.width, self.layout.middle
        x, y = self.locate(number, 1.0, 12.0)
        side = x - middle[0]
        anchor = "middle" if abs(side) < 12 else "start" if side > 0 else "end"
        room = {"start": width - x, "end": x, "middle": width / 2}[anchor]
        chinese = max(name, default="") >= "\u2e80"  # Chinese has wide characters and no spaces to break lines at.
        letter, tall = self.layout.font_size * (1.0 if chinese else 0.56), self.layout.font_size + 1
        lines = textwrap.wrap(name, max(1, int(min(room, 190) / letter)), break_long_words=chinese) or [""]
        start = y + 4 - (tall * (len(lines) - 1) if y < middle[1] - 40 else tall / 2 * (len(lines) - 1))
        labels = [shorten(text, max(8, int(room / letter))) for text in lines]
        return "".join(render_text(x, start + tall * line, text, anchor=anchor) for line, text in enumerate(labels))
