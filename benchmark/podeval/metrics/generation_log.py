"""Generation logs: how long a system took to generate how much audio, and on what hardware."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podeval.errors import BadInput


@dataclass(frozen=True)
class GenerationLog:
    """The sums over all generated pieces, in seconds; `hardware` is the name given in the log."""

    wall_seconds: float
    audio_seconds: float
    pieces: int
    hardware: str | None = None

    @classmethod
    def parse(cls, source: "str | Mapping[str, Any] | Iterable[Mapping[str, Any]] | GenerationLog") -> "GenerationLog":
        """Parse a log: an object with `wall_seconds`, `audio_seconds` and perhaps `hardware`, a list of such, or JSON.

        Raises:
            BadInput: it is none of these, a time is not a positive number, or there is more than one kind of hardware.
        """
        if isinstance(source, GenerationLog):
            return source
        pieces = _pieces(source)
        hardware = {str(piece["hardware"]) for piece in pieces if piece.get("hardware")}
        if len(hardware) > 1:
            raise BadInput(f"the generation log names {' and '.join(sorted(hardware))}; score each hardware on its own")
        return cls(
            wall_seconds=sum(_seconds(piece, "wall_seconds", number) for number, piece in enumerate(pieces, 1)),
            audio_seconds=sum(_seconds(piece, "audio_seconds", number) for number, piece in enumerate(pieces, 1)),
            pieces=len(pieces),
            hardware=next(iter(hardware), None),
        )


def _pieces(source: Any) -> list[Mapping[str, Any]]:
    data = _read(source) if isinstance(source, str) else source
    pieces = [data] if isinstance(data, Mapping) else list(data) if isinstance(data, Iterable) else None
    if not pieces or not all(isinstance(piece, Mapping) for piece in pieces):
        raise BadInput(
            'a generation log is {"wall_seconds": 12.3, "audio_seconds": 60.1, "hardware": "1 × A100"}, or a list of '
            "such objects"
        )
    return pieces


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise BadInput(f"the generation log is neither JSON nor JSON lines ({error})") from None


def _seconds(piece: Mapping[str, Any], key: str, number: int) -> float:
    value = piece.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise BadInput(f"piece {number} of the generation log needs {key} in seconds, not {value!r}")
    return float(value)
