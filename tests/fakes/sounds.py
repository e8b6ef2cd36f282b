"""Sounds that several rooms listen to."""

import numpy as np
from numpy.typing import NDArray

WHISPER_RATE = 16_000


def whispered(seconds: float, *, seed: int = 0) -> NDArray[np.float64]:
    """Syllables of noise: a rhythm without a pitch, which would beat in the modulation bands of a room."""
    rng = np.random.default_rng(seed)
    loudness = np.zeros(int(seconds * WHISPER_RATE))
    at = 0
    while at < len(loudness):
        length = int(rng.uniform(0.12, 0.3) * WHISPER_RATE)
        swell = np.sin(np.pi * np.arange(length) / length) ** 2
        loudness[at : at + length] += swell[: len(loudness) - at]
        at += length + int(rng.uniform(0, 0.12) * WHISPER_RATE)
    return 0.1 * loudness * rng.normal(size=len(loudness)) + rng.normal(0, 1e-5, len(loudness))
