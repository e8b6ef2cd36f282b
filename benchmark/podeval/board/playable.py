"""Find the audio of an output: the recording that a system generated for an item, or each of its answers in a dialogue.

Pages play copies (`podeval.recording.playback`): regardless of the source's format, all copies have the same sample
rate and allow exact seeking, so two of them can be played in sync; on request, they also have the same loudness.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from podeval.audio.container import AUDIO_ENDINGS
from podeval.errors import BadInput, PodevalError
from podeval.recording.playback import Playback, Stretch, match_gains
from podeval.runs.run_folder import Output

Why = Literal["", "no output", "unreadable", "failed", "removed", "silent"]
"""Reason why there is nothing to play: no output, an unreadable output, a system failure, audio removed to free disk
space, or an output without audio."""

LOUDNESS = -19.0
"""Loudness in LUFS of two recordings if a listener asks for equal loudness; lower if either of them would clip."""

Found = TypeVar("Found")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlayableTurn:
    """The words of one speaker, from `start` to `end` seconds; both are None if the output does not contain times."""

    speaker: str
    start: float | None
    end: float | None
    text: str


@dataclass(frozen=True)
class PlayablePart:
    """One sound of an output: its path, and the turns in it with their times.

    If there is no audio, `why` gives the reason, and `detail` gives further facts: an error, the reason for a missing
    output, or the date on which the audio was removed.
    """

    audio: Path | None
    turns: tuple[PlayableTurn, ...]
    why: Why = ""
    detail: str = ""


def list_parts(runs: Path, output: str) -> tuple[PlayablePart, ...]:
    """Return the sounds of an output: one, or one for each answer. There is always at least one part, but it may lack
    audio.

    Args:
        runs: the folder of runs; nothing outside it is read.
        output: path of the output's document, as in the table of items; "" if there is none.
    """
    if not output:
        return (PlayablePart(None, (), "no output"),)
    try:
        return tuple(_read_parts(runs.resolve(), output))
    except PodevalError as error:
        return (PlayablePart(None, (), "unreadable", str(error)),)


class Recordings:
    """The playable copies of systems' recordings, for pages.

    Args:
        runs: the folder of runs.
        playback: the object that makes and caches the copies.
    """

    def __init__(self, runs: Path, playback: Playback) -> None:
        self._runs = runs
        self._playback = playback

    def file(self, output: str, part: int = 0, beside: str | None = None) -> Path | None:
        """Return the copy of one part of an output as FLAC; None if nothing can be played.

        Args:
            output: path of the output's document, as in the table of items.
            part: number of the sound.
            beside: another output; the loudness is matched to that output's corresponding part. With None, the loudness
                stays unchanged.
        """
        return self._of(output, part, beside, self._playback.copy)

    def peaks(self, output: str, part: int = 0, beside: str | None = None) -> list[float] | None:
        """Return the peaks of that copy, 0 to 1; None if `file` returns None."""
        return self._of(output, part, beside, self._playback.peaks)

    def _of(self, output: str, part: int, beside: str | None, fact: Callable[[Stretch, float], Found]) -> Found | None:
        audio = self._audio(output, part)
        if audio is None:
            return None
        try:
            return fact(Stretch(audio), self._gain(audio, self._audio(beside, part) if beside else None))
        except PodevalError as error:
            _LOG.error("a recording cannot be played: %s", error)
            return None

    def _audio(self, output: str, part: int) -> Path | None:
        sounds = list_parts(self._runs, output)
        return sounds[part].audio if 0 <= part < len(sounds) else None

    def _gain(self, audio: Path, beside: Path | None) -> float:
        if beside is None:
            return 0.0
        level, other = (self._playback.level(Stretch(file)) for file in (audio, beside))
        return match_gains(level, other, LOUDNESS)[0]


def _read_parts(runs: Path, output: str) -> Iterator[PlayablePart]:
    """Read the sounds of an output.

    Raises:
        BadInput: the path, or an audio file that it names, is outside the folder or cannot be read.
    """
    document = _inside(runs, runs / output, output)
    try:
        contents = Output.model_validate_json(document.read_bytes())
    except (OSError, ValueError) as error:
        problem = str(error).splitlines()[0]
        raise BadInput(f"the output {output!r} cannot be read ({problem}); run the system on this item again") from None
    for answer in contents.answers:
        turns = (PlayableTurn("", None, None, answer.words),) if answer.words else ()
        yield _part(contents, _locate_audio(runs, document, answer.audio), turns)
    if not contents.answers:
        spoken = tuple(PlayableTurn(turn.speaker, turn.start, turn.end, turn.text) for turn in contents.turns)
        script = (PlayableTurn(turn.get("speaker", ""), None, None, turn.get("text", "")) for turn in contents.script)
        yield _part(contents, _locate_audio(runs, document, contents.audio), spoken or tuple(script))


def _locate_audio(runs: Path, document: Path, name: str | None) -> Path | None:
    if not name:
        return None
    audio = _inside(runs, document.parent / name, name)
    if audio.suffix.lower()[1:] not in AUDIO_ENDINGS:
        raise BadInput(f"the output names {name!r} as its audio, but this is not an audio file")
    return audio if audio.is_file() else None


def _inside(runs: Path, path: Path, name: str) -> Path:
    resolved = path.resolve()
    if not resolved.is_relative_to(runs):
        raise BadInput(f"the output path {name!r} leads outside the folder of runs, so it is not opened")
    return resolved


def _part(made: Output, audio: Path | None, turns: tuple[PlayableTurn, ...]) -> PlayablePart:
    if audio:
        return PlayablePart(audio, turns)
    if made.failed:
        return PlayablePart(None, turns, "failed", made.failed)
    return PlayablePart(None, turns, "removed" if made.audio_removed else "silent", made.audio_removed or "")
