"""Play the sounds of a battle as copies that do not reveal their origin, at one loudness where that is set."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from podeval.analysis.playback import Changed, Playback, Stretch, match_gains
from podeval.arena import refusal
from podeval.arena.audio_tokens import Audio
from podeval.arena.refusal import ArenaRefused
from podeval.arena.service import Arena
from podeval.errors import PodevalError

Found = TypeVar("Found")

_LOG = logging.getLogger(__name__)


class BattleAudio:
    """The playable copies of an arena's sounds.

    Args:
        arena: the arena whose names are resolved.
        playback: makes and keeps the copies.
    """

    def __init__(self, arena: Arena, playback: Playback) -> None:
        self._arena = arena
        self._playback = playback

    def file(self, name: str) -> Path:
        """Return the FLAC file behind a name.

        Raises:
            ArenaRefused: the name is not of this arena, its battle is long over, or the recording no longer exists.
        """
        return self._of(name, self._playback.copy)

    def peaks(self, name: str) -> list[float]:
        """Return the peaks of that file, 0 to 1; raises as `file` does."""
        return self._of(name, self._playback.peaks)

    def _of(self, name: str, fact: Callable[[Stretch, float, float | None], Found]) -> Found:
        audio = self._arena.audio(name)
        try:
            return fact(_stretch(audio), self._gain(audio), audio.seconds)
        except Changed as error:
            _LOG.error("%s; the arena plays it no more", error)
            for side in audio.compared or ():
                if Path(side.path) == error.source:
                    self._arena.retire(side.output, "its file is not what was taken in")
            raise ArenaRefused(refusal.UNKNOWN, "a recording of this battle was taken down; take a new one") from error
        except PodevalError as error:
            # What went wrong names the file, which names the system: it is for the operator, not for the listener.
            _LOG.error("a recording of the arena cannot be played: %s", error)
            raise ArenaRefused(refusal.UNKNOWN, "this recording cannot be played at present; skip this pair") from error

    def _gain(self, audio: Audio) -> float:
        target = self._arena.settings.loudness
        if target is None or audio.compared is None:
            return 0.0
        this_level, other = (self._playback.level(_stretch(side)) for side in audio.compared)
        return match_gains(this_level, other, target)[0]


def _stretch(audio: Audio) -> Stretch:
    return Stretch(Path(audio.path), audio.start, audio.end, audio.sha256)
