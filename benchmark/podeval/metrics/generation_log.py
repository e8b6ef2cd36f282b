"""Generation logs: how long a system took to generate how much audio, and on what hardware."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval.errors import BadInput


@dataclass(frozen=True)
class GenerationLog:
    """Sums over all generated pieces.

    Attributes:
        wall_seconds: seconds of work over all pieces.
        audio_seconds: seconds of audio over all pieces.
        pieces: number of pieces.
        hardware: the name given in the log.
        ratios: wall over audio seconds of each piece or part of a piece.
        speech_seconds: seconds of speech in the audio, where every piece says how much of it is speech.
        first_audio: seconds until each piece began to play; empty if not every piece says it.
        underruns: the longest stall of each piece, in seconds; likewise.
    """

    wall_seconds: float
    audio_seconds: float
    pieces: int
    hardware: str | None = None
    ratios: tuple[float, ...] = ()
    speech_seconds: float | None = None
    first_audio: tuple[float, ...] = ()
    underruns: tuple[float, ...] = ()

    @classmethod
    def parse(cls, source: "str | Mapping[str, Any] | Iterable[Mapping[str, Any]] | GenerationLog") -> "GenerationLog":
        """Parse a log: an object with `wall_seconds`, `audio_seconds` and perhaps `hardware`, a list of such, or JSON.

        An object may have `speech_seconds`; of what was streamed `time_to_first_audio` and `underrun`, and the `parts`
        it was made of, each with `wall_seconds` and `audio_seconds`.

        Raises:
            BadInput: it is none of these, a time is not a positive number, work took no time at all, or there is
                more than one kind of hardware.
        """
        if isinstance(source, GenerationLog):
            return source
        pieces = _pieces(source)
        hardware = {str(piece["hardware"]) for piece in pieces if piece.get("hardware")}
        if len(hardware) > 1:
            raise BadInput(f"the generation log names {' and '.join(sorted(hardware))}; score each hardware on its own")
        numbered = list(enumerate(pieces, 1))
        for number, piece in numbered:
            if _seconds(piece, "wall_seconds", number) == 0:
                raise BadInput(f"piece {number} of the generation log took 0 seconds, which is impossible; measure it")
        parts = [(number, part) for number, piece in numbered for part in _list_parts(piece, number)]
        spoken = [_optional(piece, "speech_seconds", number) for number, piece in numbered]
        return cls(
            wall_seconds=sum(_seconds(piece, "wall_seconds", number) for number, piece in numbered),
            audio_seconds=sum(_seconds(piece, "audio_seconds", number) for number, piece in numbered),
            pieces=len(pieces),
            hardware=next(iter(hardware), None),
            ratios=tuple(
                _seconds(part, "wall_seconds", number) / audio
                for number, part in parts
                if (audio := _seconds(part, "audio_seconds", number))
            ),
            speech_seconds=None if None in spoken else sum(seconds for seconds in spoken if seconds),
            first_audio=_collect(numbered, "time_to_first_audio"),
            underruns=_collect(numbered, "underrun"),
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


def _list_parts(piece: Mapping[str, Any], number: int) -> Sequence[Mapping[str, Any]]:
    parts = piece.get("parts") or [piece]
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise BadInput(f"the parts of piece {number} of the generation log are a list of objects")
    return parts


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


def _optional(piece: Mapping[str, Any], key: str, number: int) -> float | None:
    return None if piece.get(key) is None else _seconds(piece, key, number)


def _collect(pieces: Sequence[tuple[int, Mapping[str, Any]]], key: str) -> tuple[float, ...]:
    if any(piece.get(key) is None for _, piece in pieces):
        return ()
    return tuple(_seconds(piece, key, number) for number, piece in pieces)
