"""One thing that went wrong in a recording, with the time at which it is heard."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["high", "medium", "low"]
"""`high`: no listener misses it; `medium`: an attentive one hears it; `low`: one who follows the script does."""


@dataclass(frozen=True)
class TimedDefect:
    """One stretch of a recording that is not as it should be.

    Attributes:
        kind: such as `omitted`, `repeated`, `wrong_voice`, `hole`.
        start: seconds from the beginning.
        end: seconds from the beginning.
        script: what the script has there; empty where nothing, or where it does not matter.
        heard: what is heard there, in words.
        severity: how much of a listener it takes to notice.
    """

    kind: str
    start: float
    end: float
    script: str = ""
    heard: str = ""
    severity: Severity = "medium"

    @property
    def detail(self) -> str:
        """A phrase for a reader: what is heard, and what should be."""
        parts = (self.heard, f"script: {self.script}" if self.script else "")
        return "; ".join(part for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with `detail` for those who read no more."""
        return {
            "kind": self.kind,
            "start": round(float(self.start), 3),
            "end": round(float(self.end), 3),
            "script": self.script,
            "heard": self.heard,
            "severity": self.severity,
            "detail": self.detail,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "TimedDefect":
        """Read one that `to_json` wrote."""
        return cls(
            *(data["kind"], data["start"], data["end"]),
            **{name: data[name] for name in ("script", "heard", "severity") if name in data},
        )
