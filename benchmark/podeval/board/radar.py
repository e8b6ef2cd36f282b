"""Which figures a radar shows: those between fixed ends, so that outward is better and what is equal is drawn as equal.

The ends are those of the metric's own scale, its bounds, and never those of the systems that happen to be shown. An
error rate ends at 1, where everything is wrong; what is best in a range ends where it is far from it. A figure without
such ends is not drawn, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from podeval.board.columns import Column
from podeval.plots.radar import Span

FEWEST, MOST = 3, 12
"""Fewest and most axes of a radar."""
ERROR_RATES = ("wer", "cer", "wer_raw", "cer_raw", "cpwer", "cpcer")
FARTHEST = {"LUFS": 12.0, "dBTP": 4.0, "LU": 14.0}
"""By unit: how far from its ideal range a value is at the centre."""


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
