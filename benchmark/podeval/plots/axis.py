"""Axes of plots, with round tick marks: linear, logarithmic, of dates and of time in a recording."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
"""Round distances between marks in time."""


@dataclass(frozen=True)
class Axis:
    """An axis from `least` at coordinate `start` to `most` at `end`, with a labelled tick at some values."""

    least: float
    most: float
    start: float
    end: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, marks: int = 5) -> Axis:
        """Create an axis that covers all values with about `marks` round ticks; from 0 to 1 if there are no values."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        step = _round_step((high - low) / marks if high > low else max(abs(high), 1.0) / 10)
        least = step * math.floor(low / step + 1e-9)
        most = max(least + step, step * math.ceil(high / step - 1e-9))
        ticks = [least + step * number for number in range(math.floor((most - least) / step + 1e-9) + 1)]
        return cls(least, most, start, end, tuple((tick, f"{round(tick, 9):g}".replace("-", "−")) for tick in ticks))

    @classmethod
    def over_magnitudes(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """Create a logarithmic axis that covers all values, which must be above 0, with at least three ticks."""
        least, most = min(values) / 1.15, max(values) * 1.15
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        inside: list[float] = []
        # Powers of ten alone, or with as many multiples between them as are needed.
        for factors in ((1,), (1, 3), (1, 2, 5), range(1, 10), (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9)):
            ticks = [factor * 10.0**power for power in powers for factor in factors]
            inside = [tick for tick in ticks if least <= tick <= most]
            if len(inside) >= 3:
                break
        return cls(least, most, start, end, tuple((tick, format_value(tick)) for tick in inside), logarithmic=True)

    @classmethod
    def over_dates(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """Create an axis of times in seconds since 1970 that covers all values and at least one day."""
        spare = max((max(values) - min(values)) * 0.03, 43_200.0)
        least, most = min(values) - spare, max(values) + spare
        times = [least + (most - least) * share for share in (0.1, 0.37, 0.63, 0.9)]
        dates = dict.fromkeys(f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}" for time in times)
        starts = [datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() for date in dates]
        return cls(least, most, start, end, tuple(zip((max(day, least) for day in starts), dates, strict=True)))

    @classmethod
    def over_length(cls, length: float, start: float, end: float, *, seconds: bool = True) -> Axis:
        """Create an axis from 0 to the length of a recording, in seconds as `1:30`, or in another unit as numbers."""
        step = float(next((step for step in _SECONDS if length / step <= 8), max(3600.0, length / 8)))
        if not seconds:
            step = _round_step(length / 8)
        ticks = [step * number for number in range(math.floor(length / step + 1e-9) + 1)]
        texts = [f"{int(tick) // 60}:{int(tick) % 60:02d}" if seconds else f"{tick:g}" for tick in ticks]
        return cls(0.0, length, start, end, tuple(zip(ticks, texts, strict=True)))

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        least, most = self.least, self.most
        if self.logarithmic:
            least, most, value = map(math.log, (least, most, value))
        return round(self.start + (self.end - self.start) * (value - least) / (most - least), 1)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Return the coordinates and labels of the ticks."""
        return [(self.at(value), text) for value, text in self.ticks]


def format_value(value: float) -> str:
    """Format a number for display: `1.5 B` for a parameter count, `0.02` for a small number."""
    for size, letter in ((1e9, " B"), (1e6, " M")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}".replace("-", "−")


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
