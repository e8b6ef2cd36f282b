"""Real-time factor (RTF): how long a system takes to generate a second of audio, and to begin (latency).

Seconds of generation, excluding the loading of models, divided by seconds of audio; both are summed over the pieces in
the log. 0 or more, lower is better; below 1, audio is generated faster than it plays. LFS-Bench, appendix F.1.
`speech_rtf` counts only seconds of speech, so pauses do not lower it; `p50` and `p95` are percentiles over the pieces.
For streamed pieces, `time_to_first_audio` (TTFA) is the median time until playback could begin, and `underrun` the
longest stall; each is None and unscored unless the log records it for every piece. Logs that state 0 seconds of work
are refused. Values from different hardware belong to different protocols, so name your hardware with `hardware`.

Differs from the paper in pooling all pieces of a run, so long pieces have more weight than short pieces.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podeval.errors import BadInput, CannotScore
from podeval.metrics import Key, Reach, Score, Unscored, facts, metric

UNSTATED = "unstated"


@dataclass(frozen=True)
class GenerationLog:
    """The sums over all generated pieces.

    Attributes:
        wall_seconds: seconds of work over all pieces.
        audio_seconds: seconds of audio over all pieces.
        pieces: number of pieces of audio that were generated.
        hardware: the name given in the log.
        ratios: wall-clock seconds divided by audio seconds, for each piece or part of a piece.
        speech_seconds: seconds of speech in the audio, if every piece states them.
        first_audio: seconds until each piece began to play; empty if not every piece states it.
        underruns: the longest stall of each piece, in seconds; also empty if not every piece states it.
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
        """Parse a log: an object with `wall_seconds`, `audio_seconds` and optionally `hardware`, a list of such
        objects, or JSON.

        An object may have `speech_seconds`; for streamed audio, `time_to_first_audio` and `underrun`; and the `parts`
        of the piece, each with `wall_seconds` and `audio_seconds`.

        Raises:
            BadInput: the log has none of these forms, a time is not a positive number, a piece took no time at all, or
                there is more than one kind of hardware.
        """
        if isinstance(source, GenerationLog):
            return source
        pieces = _pieces(source)
        hardware = {str(piece["hardware"]) for piece in pieces if piece.get("hardware")}
        if len(hardware) > 1:
            raise BadInput(
                f"the generation log is from several kinds of hardware ({', '.join(sorted(hardware))}); "
                "score each separately"
            )
        numbered = list(enumerate(pieces, 1))
        for number, piece in numbered:
            if _seconds(piece, "wall_seconds", number) == 0:
                raise BadInput(
                    f"piece {number} of the generation log took 0 seconds, which is impossible; measure its time"
                )
        parts = [(number, part) for number, piece in numbered for part in _list_parts(piece, number)]
        spoken = _collect(numbered, "speech_seconds")
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
            speech_seconds=sum(spoken) if spoken else None,
            first_audio=_collect(numbered, "time_to_first_audio"),
            underruns=_collect(numbered, "underrun"),
        )


def _pieces(source: Any) -> list[Mapping[str, Any]]:
    data = _read(source) if isinstance(source, str) else source
    pieces = [data] if isinstance(data, Mapping) else list(data) if isinstance(data, Iterable) else None
    if not pieces or not all(isinstance(piece, Mapping) for piece in pieces):
        raise BadInput(
            'a generation log must be an object such as {"wall_seconds": 12.3, "audio_seconds": 60.1, "hardware": '
            '"1 × A100"}, or a list of such objects'
        )
    return pieces


def _list_parts(piece: Mapping[str, Any], number: int) -> Sequence[Mapping[str, Any]]:
    parts = piece.get("parts") or [piece]
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise BadInput(f"the parts of piece {number} of the generation log must be a list of objects")
    return parts


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise BadInput(f"the generation log is neither JSON nor JSON Lines ({error})") from None


def _seconds(piece: Mapping[str, Any], key: str, number: int) -> float:
    value = piece.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise BadInput(f"piece {number} of the generation log needs {key} in seconds, not {value!r}")
    return float(value)


def _collect(pieces: Sequence[tuple[int, Mapping[str, Any]]], key: str) -> tuple[float, ...]:
    if any(piece.get(key) is None for _, piece in pieces):
        return ()
    return tuple(_seconds(piece, key, number) for number, piece in pieces)


@metric(
    name="rtf",
    title="RTF",
    version="1.1",
    dimension="efficiency.speed",
    keys=(
        Key(
            "rtf",
            "lower",
            "s/s",
            (0, None),
            about="seconds of computation per second of audio",
            reach=Reach(facts.LFS_SPEED, systems=(0.17, 3.8)),
        ),
        Key(
            "speech_rtf",
            "lower",
            "s/s",
            (0, None),
            title="RTF of speech",
            unreached=facts.HARDWARE,
            about="seconds of computation per second of speech",
        ),
        Key(
            "p50",
            "lower",
            "s/s",
            (0, None),
            title="RTF, median",
            unreached=facts.HARDWARE,
            about="median over the pieces",
        ),
        Key(
            "p95",
            "lower",
            "s/s",
            (0, None),
            title="RTF, 95th percentile",
            unreached=facts.HARDWARE,
            about="95th percentile over the pieces",
        ),
        Key(
            "time_to_first_audio",
            "lower",
            "s",
            (0, None),
            title="Time to first audio",
            unreached=facts.HARDWARE,
            about="time until a stream can begin to play",
        ),
        Key(
            "underrun",
            "lower",
            "s",
            (0, None),
            title="Longest stall",
            unreached=facts.HARDWARE,
            about="the longest stall of a stream",
        ),
    ),
    paper="LFS-Bench",
    caution=(
        "Silence at the end lowers it (a minute of silence after a minute of speech halves it); `speech_rtf` counts "
        "only speech. A log supplied by a submitter belongs to another protocol and is not ranked with our "
        "measurements."
    ),
    intended_use="Comparing the speed and the latency (TTFA) of systems on one kind of machine.",
    limitations=(
        "It depends on hardware, load, batch size and warm-up, of which the protocol records only the hardware class. "
        "A log supplied by a submitter is never ranked with one that was measured here."
    ),
)
def rtf(generation_log: GenerationLog, *, hardware: str = UNSTATED) -> Score:
    """Score one generation log.

    Args:
        generation_log: the generated pieces with their times.
        hardware: the hardware that the system ran on, such as `1 × A100`; part of the protocol.
    """
    if hardware != UNSTATED and generation_log.hardware not in (None, hardware):
        raise BadInput(f"the generation log is from {generation_log.hardware}, but the given hardware is {hardware}")
    if generation_log.audio_seconds == 0:
        raise CannotScore("no audio was generated")
    values = {
        "rtf": generation_log.wall_seconds / generation_log.audio_seconds,
        "speech_rtf": generation_log.wall_seconds / spoken if (spoken := generation_log.speech_seconds) else None,
        "p50": float(np.percentile(ratios, 50)) if (ratios := generation_log.ratios) else None,
        "p95": float(np.percentile(ratios, 95)) if ratios else None,
        "time_to_first_audio": float(np.median(first)) if (first := generation_log.first_audio) else None,
        "underrun": max(generation_log.underruns, default=None),
    }
    return Score(
        values=values,
        notes={
            "wall_seconds": round(generation_log.wall_seconds, 3),
            "audio_seconds": round(generation_log.audio_seconds, 3),
            "pieces": generation_log.pieces,
            **({"hardware": generation_log.hardware} if generation_log.hardware else {}),
            **{
                f"{key}_unscored": Unscored(
                    f"the generation log does not state for every piece what {key} needs", "system"
                ).to_json()
                for key, value in values.items()
                if value is None
            },
        },
    )
