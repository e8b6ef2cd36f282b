"""A linear axis of a plot drawn by the server, with round tick marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A linear axis from `least` at coordinate `start` to `most` at `end`, with a tick at every `step`."""

    least: float
    most: float
    step: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, marks: int = 5) -> Axis:
        """Create an axis that covers all values with about `marks` round ticks; from 0 to 1 if there are no values."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        step = _round_step((high - low) / marks if high > low else max(abs(high), 1.0) / 10)
        least = step * math.floor(low / step + 1e-9)
        most = max(least + step, step * math.ceil(high / step - 1e-9))
        return cls(least, most, step, start, end)

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        return round(self.start + (self.end - self.start) * (value - self.least) / (self.most - self.least), 1)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Return the coordinates and labels of the ticks."""
        count = math.floor((self.most - self.least) / self.step + 1e-9)
        values = [self.least + self.step * number for number in range(count + 1)]
        return [(self.at(value), f"{round(value, 9):g}".replace("-", "−")) for value in values]

    def render(self, top: float, bottom: float) -> str:
        """Render a horizontal axis: a line from `top` to `bottom` at each tick, with its label above."""
        return "".join(
            f'<line x1="{at}" x2="{at}" y1="{top:g}" y2="{bottom:g}"/>'
            f'<text x="{at}" y="{top - 6:g}" text-anchor="middle">{text}</text>'
            for at, text in self.marks
        )


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
