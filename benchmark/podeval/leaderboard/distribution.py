"""Draw the distribution of a figure: a histogram over all systems, boxes and dots over the items of some of them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from podeval.plots.axis import Axis
from podeval.plots.svg import WIDTH, render_axis_below, render_picture, shorten

BINS = 24
MOST_DOTS = 60
_LEFT, _TALL, _STEP = 28, 64, 36


def compute_five_numbers(values: Sequence[float]) -> tuple[float, ...]:
    """Return minimum, lower quartile, median, upper quartile, maximum."""
    return tuple(float(number) for number in np.percentile(values, [0, 25, 50, 75, 100]))


def draw_spread(
    values: Sequence[float],
    systems: Sequence[tuple[str, Sequence[float]]],
    head: str,
    count: str,
    title: str,
    width: int = WIDTH,
    font_size: int = 12,
) -> str:
    """Draw the picture.

    Args:
        values: one for each system, ascending.
        systems: some of the systems with the values of their items, ascending.
        head: name of the figure.
        count: the number of systems, in words.
        title: text for screen readers.
        width: units across.
        font_size: of its letters.
    """
    axis = Axis.over([*values, *(value for _, items in systems for value in items)], _LEFT, width - _LEFT)
    bottom = 22 + _TALL + _STEP * len(systems) + (22 if systems else 8)
    content = render_axis_below(axis, 22, bottom, head)
    content += f'<text class="quiet" x="14" y="14">{escape(count)}</text>' + _bars(values, axis)
    content += _box(values, axis, 22 + _TALL + 8)
    for number, (name, items) in enumerate(systems):
        y = 22 + _TALL + 44 + _STEP * number
        content += f'<text x="14" y="{y - 12}">{escape(shorten(name, 44))}</text>' + _dots(items, axis, y)
        content += _box(items, axis, y)
    return render_picture(title, bottom + 34, content, width=width, font_size=font_size)


def _bars(values: Sequence[float], axis: Axis) -> str:
    counts, edges = np.histogram(values, bins=min(BINS, max(4, len(values) // 2)), range=(axis.least, axis.most))
    tallest = max(1, int(counts.max()))
    bars = ""
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        if count:
            x, tall = axis.at(float(low)), _TALL * count / tallest
            wide = max(1.0, axis.at(float(high)) - x - 0.6)
            bars += f'<rect class="bar" x="{x:g}" y="{22 + _TALL - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}">'
            bars += f"<title>{count}</title></rect>"
    return bars


def _box(values: Sequence[float], axis: Axis, y: float) -> str:
    least, low, middle, high, most = (axis.at(number) for number in compute_five_numbers(values))
    return (
        f'<path class="box" d="M{least:g} {y}H{low:g}M{high:g} {y}H{most:g}M{low:g} {y - 6}H{high:g}v12H{low:g}z"/>'
        f'<path class="rule" d="M{middle:g} {y - 6}v12"/>'
    )


def _dots(values: Sequence[float], axis: Axis, y: float) -> str:
    """Draw some dots of many, evenly spaced by rank, on three levels so that they hide one another less."""
    chosen = values if len(values) <= MOST_DOTS else [values[i * len(values) // MOST_DOTS] for i in range(MOST_DOTS)]
    return "".join(
        f'<circle class="dot" cx="{axis.at(value):g}" cy="{y + 4 * (number % 3 - 1)}" r="2"/>'
        for number, value in enumerate(chosen)
    )
