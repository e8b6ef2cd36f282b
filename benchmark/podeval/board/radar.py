"""The axes of a radar: columns between fixed ends, so that outward is better and what is equal is drawn as equal.

The ends are those of the metric's own scale, its bounds, and never those of the systems that happen to be shown. An
error rate ends at 1, where everything is wrong; what is best in a range ends where it is far from it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from podeval.board.columns import MISSING, Column, to_number
from podeval.board.runs_folder import Key
from podeval.board.view import ResolvedView
from podeval.plots.charts import Span

FEWEST_AXES, MOST_AXES = 3, 12
"""Fewest and most axes of a radar."""
MOST_SERIES = 6
"""Most systems on a radar."""
ERROR_RATES = ("wer", "cer", "wer_raw", "cer_raw", "cpwer", "cpcer")
FARTHEST = {"LUFS": 12.0, "dBTP": 4.0, "LU": 14.0}
"""Distance of a value at the centre from its ideal range, by unit."""


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
    return [axis for axis in map(find_axis, columns) if axis is not None][:MOST_AXES]


def choose_radar_keys(settled: ResolvedView, order: Sequence[Key], most: int | None) -> list[Key]:
    """Return the rows on the radar: pinned ones, else the first that are not controls."""
    systems = settled.board.systems
    pinned = [key for key in order if key[0] in settled.view.pins]
    return (pinned or [key for key in order if systems[key[0]]["system_kind"] != "control"][:most])[
        : most and MOST_SERIES
    ]


def locate(settled: ResolvedView, axis: RadarAxis, key: Key) -> tuple[float | None, Span | None]:
    """Return the position of a row on an axis, from 0 to 1, and its interval; None where it has no value."""
    row = settled.sheet.rows(axis.column.id).get(key)
    value = to_number(row["value"]) if row else None
    if row is None or value is None:
        return None, None
    return axis.at(value), axis.span(to_number(row["low"]), to_number(row["high"]))


def format_share(value: float | None, span: Span | None) -> str:
    """Format `62 %` of an axis, with its interval."""
    if value is None:
        return MISSING
    return f"{value:.0%}" if span is None else f"{value:.0%} [{min(span):.0%}, {max(span):.0%}]"


def has_radar(settled: ResolvedView) -> bool:
    """Tell whether there are enough figures for a radar."""
    keys = choose_radar_keys(settled, settled.keys, None)
    valued = sum(
        any(to_number(rows[key]["value"]) is not None for key in keys if key in rows)
        for rows in (settled.sheet.rows(axis.column.id) for axis in choose_radar_axes(settled.columns))
    )
    return valued >= FEWEST_AXES
