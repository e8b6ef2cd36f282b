"""Play stimuli as copies that reveal nothing except their sound, and provide a noise for setting the volume."""

import io
import logging
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from podeval.audio.decode import hash_file
from podeval.errors import BadInput, PodevalError
from podeval.files import write_whole
from podeval.listening.screening import synthesise
from podeval.listening.service import Listening
from podeval.recording.playback import RATE, Playback, Stretch

Found = TypeVar("Found")

LEVEL = -23.0
"""Loudness of the noise for setting the volume, in LUFS (EBU R 128)."""

_SECONDS = 4.0
_SILENT = "this recording cannot be played at the moment; try again, or tell the person who invited you"
_log = logging.getLogger("podeval.listening")


class StimulusAudio:
    """The copies of stimuli that listeners play in listening tests.

    Args:
        listening: the service that manages the sessions.
        playback: the object that makes and caches the copies.
        folder: base folder for relative paths in the design.
    """

    def __init__(self, listening: Listening, playback: Playback, folder: Path) -> None:
        self._listening = listening
        self._playback = playback
        self._folder = folder

    def file(self, session: str, number: int, letter: str) -> Path | bytes:
        """Return the sound that a letter of a page, `reference` or `prompt` represents, as FLAC at its original
        loudness.

        Sounds of the headphone check are returned unchanged, as WAV. The three sounds of an ABX page have the same
        length.

        Raises:
            BadInput: the session, page or sound does not exist, or the sound cannot be played; the message contains
                neither a path nor a name.
        """
        source = self._listening.source(session, number, letter)
        if source.audio is None:
            return synthesise(*source.check) if source.check else b""
        return self._of(source.audio, lambda stretch: self._playback.copy(stretch, seconds=source.seconds))

    def peaks(self, session: str, number: int, letter: str) -> list[float]:
        """Return the file's peaks, 0 to 1; empty if they would reveal the answer. Raises the same errors as `file`."""
        source = self._listening.source(session, number, letter)
        if source.blind or source.audio is None:
            return []
        return self._of(source.audio, self._playback.peaks)

    def _of(self, audio: Path, fact: Callable[[Stretch], Found]) -> Found:
        """Return a fact about a recording; an error message does not reveal the system, but the reason is logged."""
        path = self._folder / audio
        try:
            status = path.stat()
            return fact(Stretch(path, content=_content(path, status.st_mtime_ns, status.st_size)))
        except (PodevalError, OSError) as error:
            _log.error("a recording of a listening test cannot be played: %s: %s", audio, error)
            raise BadInput(_SILENT) from None


def write_level_noise(folder: Path) -> Path:
    """Write pink noise in the speech band at `LEVEL` as a WAV file that loops without a click; return its path."""
    import soundfile

    from podeval.audio import loudness

    path = folder / "level-noise.wav"
    if path.is_file():
        return path
    count = round(_SECONDS * RATE)
    frequencies = np.fft.rfftfreq(count, 1 / RATE)
    heights = np.where((frequencies >= 80) & (frequencies <= 8000), 1 / np.sqrt(np.maximum(frequencies, 1)), 0)
    phases = np.random.default_rng(23).uniform(0, 2 * np.pi, len(frequencies))
    # The noise is a sum of sines with whole numbers of periods, so the end joins the beginning without a click.
    noise = np.fft.irfft(heights * np.exp(1j * phases), count)
    noise = (noise / np.abs(noise).max() / 4).astype(np.float32)
    both = np.column_stack([noise, noise])
    measured = loudness.measure(both, RATE, "stereo").integrated
    out = io.BytesIO()
    soundfile.write(out, both * 10 ** ((LEVEL - measured) / 20), RATE, "PCM_16", format="WAV")
    write_whole(path, out.getvalue())
    return path


@lru_cache(maxsize=4096)
def _content(path: Path, changed: int, size: int) -> str:
    """Return the hash of a file's current content, cached so that a range request does not read the whole file."""
    return hash_file(path)
