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

EVERY = 0.9
"""Seconds of speech between planted pauses."""

_SIZE, _STEP, _CEPSTRUM = 512, 128, 30


def shift(samples: Samples, speech: Sequence[Span], part: float) -> Samples:
    """Move the formants up by this part of their frequencies, and leave the pitch: a voice that no throat has."""

    def move(envelope: Spectrum) -> Spectrum:
        bins = np.arange(len(envelope))
        return np.stack([np.interp(bins / (1 + part), bins, of) for of in envelope.T], axis=1)

    return _change_envelope(samples, move)


def mumble(samples: Samples, speech: Sequence[Span], seconds: float) -> Samples:
    """Average the formants over so many seconds, and leave pitch and level: sounds run into each other."""
    frames = max(1, round(seconds * RATE / _STEP))
    return _change_envelope(samples, lambda envelope: uniform_filter1d(envelope, frames, axis=1))


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


def _change_envelope(samples: Samples, change: Callable[[Spectrum], Spectrum]) -> Samples:
    """Return samples whose spectral envelope (logarithm, by the cepstrum) is what the function makes of it."""
    spectrum = signal.stft(samples, RATE, nperseg=_SIZE, noverlap=_SIZE - _STEP)[2]
    cepstrum = np.fft.irfft(np.log(np.abs(spectrum) + 1e-9), axis=0)
    cepstrum[_CEPSTRUM : 1 - _CEPSTRUM] = 0
    envelope = np.fft.rfft(cepstrum, axis=0).real
    gains = change(envelope) - envelope
    weighted = spectrum * np.exp(gains - gains.mean(axis=0))
    changed = signal.istft(weighted, RATE, nperseg=_SIZE, noverlap=_SIZE - _STEP)[1]
    return np.asarray(changed[: len(samples)], dtype=np.float32)


DAMAGES: Mapping[str, tuple[Callable[[Samples, Sequence[Span], float], Samples], tuple[float, float, float]]] = {
    "voice": (shift, (0.2, 0.4, 0.6)),
    "articulation": (mumble, (0.08, 0.15, 0.3)),
    "timing": (interrupt, (0.2, 0.4, 0.8)),
    "sound": (add_noise, (30.0, 20.0, 10.0)),
}
"""The damage of each factor, and three strengths of it, the worst last."""
