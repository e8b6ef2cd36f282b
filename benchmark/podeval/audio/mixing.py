"""Lays sounds under or into speech at a stated signal-to-noise ratio.

The ratio is that of powers in decibels: of the speech where somebody speaks (frames of 20 ms within 40 dB of the
loudest one), to the sound where it sounds. So pauses around the words do not make the speech quieter than it is heard.
"""

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput, CannotScore

Samples = NDArray[np.float32]

FADE = 0.02
"""Seconds in which a sound comes and goes."""

_FRAME, _RANGE_DB = 0.02, 40.0


def active_power(speech: Samples, rate: int) -> float:
    """Mean power of mono speech, over the frames in which somebody speaks.

    Raises:
        CannotScore: it is silent.
    """
    size = max(1, round(_FRAME * rate))
    whole = len(speech) // size * size
    frames = speech[:whole].reshape(-1, size) if whole else speech[None]
    powers = np.mean(np.square(frames, dtype=np.float64), axis=1)
    if not powers.size or not powers.max():
        raise CannotScore("the speech is silent, so that nothing can be mixed with it at a ratio")
    return float(powers[powers >= powers.max() * 10 ** (-_RANGE_DB / 10)].mean())


def lay_under(speech: Samples, sound: Samples, rate: int, snr_db: float) -> Samples:
    """Lay a sound under all of the speech; the sound begins again where it ends too early; shape (frames,).

    Raises:
        BadInput: not mono, or no sound.
        CannotScore: one of them is silent.
    """
    _require_mono(speech, sound)
    bed = np.take(sound, np.arange(len(speech)) % len(sound))
    return _add_at(speech, bed, 0, rate, snr_db)


def put_in(speech: Samples, sound: Samples, rate: int, snr_db: float, at: float) -> Samples:
    """Add a sound to the speech once, from the second `at`; it is cut where the speech ends; shape (frames,).

    Raises:
        BadInput: not mono, no sound, or a time outside the speech.
        CannotScore: one of them is silent.
    """
    _require_mono(speech, sound)
    start = round(at * rate)
    if not 0 <= start < len(speech):
        raise BadInput(f"a sound at {at:.2f} s lies outside speech of {len(speech) / rate:.2f} s")
    return _add_at(speech, sound[: len(speech) - start], start, rate, snr_db)


def _add_at(speech: Samples, sound: Samples, start: int, rate: int, snr_db: float) -> Samples:
    faded = _fade_ends(sound, rate)
    power = float(np.mean(np.square(faded)))
    if not power:
        raise CannotScore("the sound is silent, so that it cannot be mixed at a ratio")
    factor = np.sqrt(active_power(speech, rate) / power) * 10 ** (-snr_db / 20)
    mixed = speech.astype(np.float64)
    mixed[start : start + len(faded)] += factor * faded
    return np.asarray(mixed, dtype=np.float32)


def _fade_ends(sound: Samples, rate: int) -> NDArray[np.float64]:
    """Fade the sound in and out shortly, so that it does not click."""
    faded = sound.astype(np.float64)
    size = min(round(FADE * rate), len(faded) // 2)
    if size:
        ramp = np.linspace(0, 1, size)
        faded[:size] *= ramp
        faded[-size:] *= ramp[::-1]
    return faded


def _require_mono(speech: Samples, sound: Samples) -> None:
    if speech.ndim != 1 or sound.ndim != 1:
        raise BadInput(f"speech and sound are mixed in mono, not in shapes {speech.shape} and {sound.shape}")
    if not len(speech) or not len(sound):
        raise BadInput("there is no speech or no sound to mix")
