"""Serve the audio of a battle as copies that do not reveal their origin, matched in loudness if so configured."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from podeval.arena.refusal import UNKNOWN, ArenaRefused
from podeval.arena.served_battles import Audio
from podeval.arena.service import Arena
from podeval.errors import PodevalError
from podeval.recording.playback import Changed, Playback, Stretch, match_gains
from podeval.texts import write_sentence

Found = TypeVar("Found")

LONG = 60.0
"""Minimum length, in seconds, of a sound that may be sent as Opus."""

_SIZES = 64 * 2**10
"""The file size of an excerpt is a multiple of this number of bytes."""

_LOG = logging.getLogger(__name__)


class BattleAudio:
    """The copies of an arena's audio that listeners play.

    Args:
        arena: the arena that gave the audio its opaque names.
        playback: the object that makes and caches the copies.
    """

    def __init__(self, arena: Arena, playback: Playback) -> None:
        self._arena = arena
        self._playback = playback

    def file(self, name: str, *, opus: bool = False) -> Path:
        """Return the audio file with a given opaque name.

        The file is FLAC. Both excerpts have the same size, and neither is sent before both exist, so neither the size
        nor the waiting time reveals for which system a copy already existed.

        Args:
            name: opaque name of the audio.
            opus: whether to return Ogg Opus for a sound of at least `LONG` seconds; the file size then depends only on
                the length of the sound.

        Raises:
            ArenaRefused: the name does not belong to this arena, its battle ended long ago, or the recording no longer
            exists.
        """
        audio = self._arena.sounds.find(name)
        if opus and (audio.seconds or 0.0) >= LONG:
            return self._of(audio, lambda *passage: self._playback.compress(self._playback.copy(*passage)))
        return self._of(audio, lambda *passage: self._pad(audio, self._playback.copy(*passage)))

    def _pad(self, audio: Audio, copy: Path) -> Path:
        """Pad the copy of an excerpt to the size of the other side's copy; return the copy of any other sound
        unchanged.
        """
        if not audio.is_excerpt or audio.compared is None:
            return copy
        sizes = [
            self._playback.copy(_stretch(side), gain, audio.seconds).stat().st_size
            for side, gain in zip(audio.compared, self._gains(audio), strict=True)
        ]
        return self._playback.pad(copy, _SIZES * (max(sizes) // _SIZES + 1))

    def peaks(self, name: str) -> list[float]:
        """Return the peaks, from 0 to 1, of the audio with a given name; raise the same errors as `file`."""
        return self._of(self._arena.sounds.find(name), self._playback.peaks)

    def _of(self, audio: Audio, fact: Callable[[Stretch, float, float | None], Found]) -> Found:
        try:
            return fact(_stretch(audio), self._gains(audio)[0], audio.seconds)
        except Changed as error:
            _LOG.error("%s; the arena no longer plays this recording", error)
            for side in audio.compared or ():
                if Path(side.path) == error.source:
                    self._arena.retire(side.output, "the audio file has changed since it was added")
            raise ArenaRefused(UNKNOWN, write_sentence("battle-recording-taken-down")) from error
        except PodevalError as error:
            # The error names the file, and therefore the system; it is meant for the operator, not for the listener.
            _LOG.error("a recording of the arena cannot be played: %s", error)
            raise ArenaRefused(UNKNOWN, write_sentence("recording-not-played")) from error

    def _gains(self, audio: Audio) -> tuple[float, float]:
        """Return the gains in dB for a sound and for the other side's sound; both are 0 if loudness is not matched."""
        target = self._arena.settings.loudness
        if target is None or audio.compared is None:
            return 0.0, 0.0
        this_level, other = (self._playback.level(_stretch(side)) for side in audio.compared)
        return match_gains(this_level, other, target)


def _stretch(audio: Audio) -> Stretch:
    return Stretch(Path(audio.path), audio.start, audio.end, audio.sha256)
