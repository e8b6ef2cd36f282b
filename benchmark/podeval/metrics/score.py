"""What one metric says of one item: a score, or why there is none.

Unscored is a value, not an absence: it is counted, shown with its reason and cause, and never becomes 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Cause = Literal["system", "ours"]
"""`system`: the output is missing, silent, has too few speakers. `ours`: a model is absent, a judge unreadable."""


@dataclass(frozen=True)
class Timeline:
    """A windowed metric over time (or tokens): `values[key][i]` holds for the window that begins at `starts[i]`."""

    starts: Sequence[float]
    window: float
    values: Mapping[str, Sequence[float | None]]
    unit: str = "s"


@dataclass(frozen=True)
class Score:
    """The values of one metric on one item, by key; a key without meaning here is None."""

    values: Mapping[str, float | None]
    notes: Mapping[str, Any] = field(default_factory=dict)
    timeline: Timeline | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data: the keys first, then `notes` and `timeline` where there are any."""
        data: dict[str, Any] = dict(self.values)
        if self.notes:
            data["notes"] = dict(self.notes)
        if self.timeline:
            data["timeline"] = {
                "starts": list(self.timeline.starts),
                "window": self.timeline.window,
                "unit": self.timeline.unit,
                "values": {key: list(column) for key, column in self.timeline.values.items()},
            }
        return data


@dataclass(frozen=True)
class Unscored:
    """No score, the reason as a sentence a person can act on, and whose cause it is."""

    reason: str
    cause: Cause

    def to_json(self) -> dict[str, Any]:
        """Plain data: `unscored` (the reason) and `cause`."""
        return {"unscored": self.reason, "cause": self.cause}


Result = Score | Unscored


def result_from_json(data: Mapping[str, Any]) -> Result:
    """The result that `to_json` wrote."""
    if "unscored" in data:
        return Unscored(data["unscored"], data["cause"])
    timeline = data.get("timeline")
    return Score(
        values={key: value for key, value in data.items() if key not in ("notes", "timeline")},
        notes=data.get("notes", {}),
        timeline=Timeline(**timeline) if timeline else None,
    )
