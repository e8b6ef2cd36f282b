"""Find the audio of an item: the recording that a system made of it, or its answers in a dialogue one by one.

Pages play copies (`podeval.recording.playback`): all have one sample rate and exact positions, whatever the source's
format, so that two of them can be kept in step; on request, they are also brought to one loudness.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from podeval.board.runs_folder import PlayableOutput, PlayableTurn, RunsFolder
from podeval.errors import PodevalError
from podeval.recording.playback import Playback, Stretch, match_gains

Why = Literal["", "no output", "unreadable", "failed", "removed", "silent"]
"""Why there is nothing to hear: no output, one that cannot be read, a system that failed, audio that was removed to
free the disk, an output without audio."""

LOUDNESS = -19.0
"""LUFS that two recordings are brought to where a listener asks for it; less where one of them would be clipped."""

Found = TypeVar("Found")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlayablePart:
    """One sound of an output: its path, and who says what when.

    Where there is no audio, `why` says why, and `told` what else is known: the system's words, an error, a day.
    """

    audio: Path | None
    turns: tuple[PlayableTurn, ...]
    why: Why = ""
    detail: str = ""


def list_parts(folder: RunsFolder, output: str) -> tuple[PlayablePart, ...]:
    """Return the sounds of an output: one, or one for each answer; at least one, which may have no audio.

    Args:
        folder: the folder of runs.
        output: the path of the output's document, as the table of items has it; "" where there is none.
    """
    if not output:
        return (PlayablePart(None, (), "no output"),)
    try:
        playable = folder.output(output)
    except PodevalError as error:
        return (PlayablePart(None, (), "unreadable", str(error)),)
    if playable.answers:
        return tuple(
            _part(playable, answer.audio, (PlayableTurn("", None, None, answer.words),) if answer.words else ())
            for answer in playable.answers
        )
    return (_part(playable, playable.audio, playable.turns),)


class Recordings:
    """The playable copies of systems' recordings, for pages.

    Args:
        folder: the folder of runs.
        playback: makes and keeps the copies.
    """

    def __init__(self, folder: RunsFolder, playback: Playback) -> None:
        self._folder = folder
        self._playback = playback

    def file(self, output: str, part: int = 0, beside: str | None = None) -> Path | None:
        """Return the copy of one part of an output as FLAC; None where nothing can be played.

        Args:
            output: the path of the output's document, as the table of items has it.
            part: number of the sound.
            beside: another output, to whose same part the loudness is matched; None leaves it as it is.
        """
        return self._of(output, part, beside, self._playback.copy)

    def peaks(self, output: str, part: int = 0, beside: str | None = None) -> list[float] | None:
        """Return the peaks of that copy, 0 to 1; None as `file`."""
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
        sounds = list_parts(self._folder, output)
        return sounds[part].audio if 0 <= part < len(sounds) else None

    def _gain(self, audio: Path, beside: Path | None) -> float:
        if beside is None:
            return 0.0
        level, other = (self._playback.level(Stretch(file)) for file in (audio, beside))
        return match_gains(level, other, LOUDNESS)[0]


def _part(output: PlayableOutput, audio: Path | None, turns: tuple[PlayableTurn, ...]) -> PlayablePart:
    if audio:
        return PlayablePart(audio, turns)
    if output.failed:
        return PlayablePart(None, turns, "failed", output.failed)
    return (
        PlayablePart(None, turns, "removed", output.removed) if output.removed else PlayablePart(None, turns, "silent")
    )
