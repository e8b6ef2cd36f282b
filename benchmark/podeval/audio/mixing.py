"""Mixes sounds into speech at a stated signal-to-noise ratio.

The ratio is that of powers in decibels: the speech's power where somebody speaks (frames of 20 ms within 40 dB of
the loudest one) to the sound's power where it sounds. Pauses between words therefore do not lower the speech's level.
"""

import numpy as np
from numpy.typing import NDArray

from podeval.errors import CannotScore

Samples = NDArray[np.float32]

FADE = 0.02
"""Length of the fade at either end of a sound, seconds."""

_FRAME, _RANGE_DB = 0.02, 40.0


def measure_active_power(speech: Samples, rate: int) -> float:
    """Return the mean power of mono speech over the frames in which somebody speaks.

    Raises:
        CannotScore: the speech is silent.
    """
    size = max(1, round(_FRAME * rate))
    whole = len(speech) // size * size
    frames = speech[:whole].reshape(-1, size) if whole else speech[None]
    powers = np.mean(np.square(frames, dtype=np.float64), axis=1)
    if not powers.size or not powers.max():
        raise CannotScore("the speech is silent, so no sound can be mixed in at a ratio to it")
    return float(powers[powers >= powers.max() * 10 ** (-_RANGE_DB / 10)].mean())


def lay_under(speech: Samples, sound: Samples, rate: int, snr_db: float) -> Samples:
    """Mix a sound under the whole of the speech, repeating the sound if it is too short; returns shape (frames,).

    Raises:
        CannotScore: one of them is silent.
    """
    return put_in(speech, np.resize(sound, len(speech)), rate, snr_db, 0.0)


def put_in(speech: Samples, sound: Samples, rate: int, snr_db: float, at: float) -> Samples:
    """Add a sound to the speech once, starting at `at` seconds and cut where the speech ends; returns shape (frames,).

    Raises:
        CannotScore: one of them is silent.
    """
    start = round(at * rate)
    faded = _fade_ends(sound[: len(speech) - start], rate)
    if not faded.any():
        raise CannotScore("the sound is silent, so it cannot be mixed in at a ratio")
    factor = np.sqrt(measure_active_power(speech, rate) / np.mean(np.square(faded))) * 10 ** (-snr_db / 20)
    mixed = speech.astype(np.float64)
    mixed[start : start + len(faded)] += factor * faded
    return np.asarray(mixed, dtype=np.float32)


def _fade_ends(sound: Samples, rate: int) -> NDArray[np.float64]:
    """Apply a short fade-in and fade-out to the sound so that it does not click."""
    faded = sound.astype(np.float64)
    size = min(round(FADE * rate), len(faded) // 2)
    if size:
        ramp = np.linspace(0, 1, size)
        faded[:size] *= ramp
        faded[-size:] *= ramp[::-1]
    return faded
