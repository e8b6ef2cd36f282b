"""Draw distributions: a box from the lower to the upper quartile with the median across, whiskers, and dots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podeval.plots.axis import Axis
from podeval.plots.svg import Frame, render_axis_below, render_bar, render_mark, render_text, shorten

MOST_DOTS = 200
"""Most values that are drawn as dots; of more, some are drawn, evenly spaced by rank."""
MOST_BARS = 24
FEWEST = 4
"""Fewest values that have quartiles worth a box."""
_EDGE, _TALL, _STEP = 28, 64, 36


@dataclass(frozen=True)
class BoxRow:
    """A name with its values; the class and the shape of their dots; and a note at the right end of the line."""

    name: str
    values: Sequence[float]
    note: str = ""
    dots: str = "dot"
    shape: str = "circle"


def compute_five_numbers(values: Sequence[float]) -> tuple[float, ...]:
    """Return minimum, lower quartile, median, upper quartile, maximum."""
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
    """Draw a box with dots for each row, its name above.

    Args:
        rows: the rows, from top to bottom; one without values is named only.
        frame: the frame of the picture.
        axis_title: the name of the value.
        histogram: values that are drawn as bars with a box above the rows; its note is the text above them.
        ends: the ends of the axis; by default those of the values.
        heading: a text above all.
    """
    every = [*rows, *([histogram] if histogram else [])]
    values = [value for row in every for value in row.values]
    axis = Axis.over(ends or values, _EDGE, frame.width - _EDGE)
    top = 22 if heading or histogram else 4
    first = top + (_TALL + 26 if histogram else 6)
    bottom = first + _STEP * len(rows)
    content = render_axis_below(axis, top, bottom, axis_title) + (render_text(14, 14, heading) if heading else "")
    if histogram:
        content += render_text(14, 14, histogram.note, "quiet") + _bars(histogram.values, axis, top + _TALL)
        content += _box(histogram.values, axis, top + _TALL + 8)
    for number, row in enumerate(rows):
        y = first + 22 + _STEP * number
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
    """Draw dots on three levels in turn, so that equal values are seen as several."""
    ordered = np.sort(np.asarray(row.values, dtype=np.float64))
    sample = ordered[np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_DOTS)).round().astype(int)]
    return "".join(
        render_mark(row.shape, axis.at(float(value)), y + 4 * (number % 3 - 1), 2.5, row.dots)
        for number, value in enumerate(sample)
    )
