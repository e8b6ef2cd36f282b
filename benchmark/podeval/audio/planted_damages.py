"""Damages that `human_likeness` plants in recordings of people, to have a far end of its scale for each factor.

Each takes mono samples at 16 kHz, shape (frames,), with the spans of speech in them and a strength, and changes one
thing and little else. Melody is not among them: its damage is planted in the pitch that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import signal
from scipy.ndimage import uniform_filter1d

from podeval.audio.prosody import RATE
from podeval.audio.windows import Span

Samples = NDArray[np.float32]
Spectrum = NDArray[np.float64]

EVERY, PERIOD = 0.9, 2.0
"""Seconds of speech between planted pauses, and seconds in which the formants wander up and down once."""

_SIZE, _STEP, _CEPSTRUM = 512, 128, 30


def wander(samples: Samples, speech: Sequence[Span], depth: float) -> Samples:
    """Move the spectrum's envelope up and down in frequency by this part, so that the voice changes all the time."""

    def move(magnitudes: Spectrum) -> Spectrum:
        cepstrum = np.fft.irfft(np.log(magnitudes), axis=0)
        cepstrum[_CEPSTRUM : 1 - _CEPSTRUM] = 0
        envelope = np.exp(np.fft.rfft(cepstrum, axis=0).real)
        factors = 1 + depth * np.sin(2 * np.pi * np.arange(magnitudes.shape[1]) * _STEP / RATE / PERIOD)
        bins = np.arange(len(magnitudes))
        moved = [np.interp(bins / one, bins, of) for one, of in zip(factors, envelope.T, strict=True)]
        return np.stack(moved, axis=1) / envelope

    return _weigh(samples, move)


def smear(samples: Samples, speech: Sequence[Span], seconds: float) -> Samples:
    """Average the magnitudes of the spectrum over so many seconds, so that sounds run into each other."""
    frames = max(1, round(seconds * RATE / _STEP))
    return _weigh(samples, lambda magnitudes: uniform_filter1d(magnitudes, frames, axis=1) / magnitudes)


def interrupt(samples: Samples, speech: Sequence[Span], seconds: float) -> Samples:
    """Insert pauses of so many seconds into the speech, all equal and wherever it is."""
    cuts = [round(at * RATE) for span in speech for at in np.arange(span.start + EVERY, span.end - 0.2, EVERY)]
    edges = np.ones(len(samples), dtype=np.float32)
    for cut in cuts:
        edges[cut - 80 : cut + 80] = np.abs(np.linspace(-1, 1, 160))[: len(edges) - cut + 80]
    return np.insert(samples * edges, np.repeat(cuts, round(seconds * RATE)), np.float32(0))


def add_noise(samples: Samples, speech: Sequence[Span], ratio: float) -> Samples:
    """Add white noise so many dB below the mean power of the whole signal."""
    level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) * 10 ** (-ratio / 20)
    return np.asarray(samples + np.random.default_rng(0).normal(0, level, len(samples)), dtype=np.float32)


def _weigh(samples: Samples, weigh: Callable[[Spectrum], Spectrum]) -> Samples:
    """Return samples whose spectrum over time is multiplied by what its magnitudes give."""
    spectrum = signal.stft(samples, RATE, nperseg=_SIZE, noverlap=_SIZE - _STEP)[2]
    weighted = signal.istft(spectrum * weigh(np.abs(spectrum) + 1e-9), RATE, nperseg=_SIZE, noverlap=_SIZE - _STEP)[1]
    return np.asarray(weighted[: len(samples)], dtype=np.float32)


DAMAGES: Mapping[str, tuple[Callable[[Samples, Sequence[Span], float], Samples], tuple[float, float, float]]] = {
    "voice": (wander, (0.08, 0.15, 0.25)),
    "articulation": (smear, (0.06, 0.12, 0.24)),
    "timing": (interrupt, (0.2, 0.4, 0.8)),
    "sound": (add_noise, (30.0, 20.0, 10.0)),
}
"""The damage of each factor, and three strengths of it, the worst last."""
