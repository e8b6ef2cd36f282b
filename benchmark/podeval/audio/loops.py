"""Stretches that repeat earlier ones, sample by sample or nearly so: the output of a system that is stuck.

The log spectrum of every 20 ms is compared with an earlier one, for every lag up to `LONGEST_LAG` seconds. If 1.2 s in
a row agree and are not silent, the later stretch is a loop. Nobody says a sentence twice in the same way to within 20
ms; deterministic machines do, if the text repeats it.
"""

import numpy as np
from numpy.typing import NDArray

from podeval.audio.levels import find_runs
from podeval.audio.windows import Span

STEP = 0.02
SHORTEST = 1.2
"""Seconds in a row that agree."""

SHORTEST_LAG, LONGEST_LAG = 0.4, 12.0
"""Seconds between a stretch and its copy."""

ALIKE = 0.93
"""Correlation of two frames' spectra, smoothed over 100 ms, from which they count as equal."""

_BANDS = 24
_QUIET = 40.0
"""dB below the loudest frames at which there is nothing to compare."""

_SILENT = 60.0
"""dB below the loudest frame at which there is silence."""


def find_loops(samples: NDArray[np.float32], rate: int) -> list[tuple[Span, float]]:
    """Find the repeated stretches, each with its distance in seconds from the first occurrence.

    Args:
        samples: shape (frames,).
        rate: Hz.
    """
    from scipy.ndimage import uniform_filter1d

    features, loud = _describe_frames(samples, rate)
    smooth, shortest = round(0.1 / STEP), round(SHORTEST / STEP)
    matches: list[tuple[int, int, int]] = []
    for lag in range(round(SHORTEST_LAG / STEP), min(round(LONGEST_LAG / STEP), len(features) - shortest) + 1):
        alike = np.einsum("ij,ij->i", features[lag:], features[:-lag])
        agrees = uniform_filter1d(alike, smooth) >= ALIKE
        for start, end in find_runs(agrees, shortest):
            if loud[start + lag : end + lag].mean() >= 0.5:
                matches.append((start + lag, end + lag, lag))
    return [(Span(start * STEP, end * STEP), lag * STEP) for start, end, lag in _keep_longest(matches)]


def _describe_frames(samples: NDArray[np.float32], rate: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return for every frame its log spectrum in bands, of mean 0 and length 1, and whether it is loud enough to
    compare.
    """
    step = round(STEP * rate)
    count = len(samples) // step - 1
    if count < 1:
        return np.zeros((0, _BANDS), np.float32), np.zeros(0, dtype=bool)
    window = np.hanning(2 * step).astype(np.float32)
    frequencies = np.fft.rfftfreq(2 * step, 1 / rate)
    edges = np.geomspace(100, min(7000, rate / 2), _BANDS + 1)
    band_of = np.searchsorted(edges, frequencies) - 1
    inside = (band_of >= 0) & (band_of < _BANDS)
    gather = np.zeros((len(frequencies), _BANDS), np.float32)
    gather[np.flatnonzero(inside), band_of[inside]] = 1.0
    powers = np.empty((count, _BANDS), np.float32)
    for begin in range(0, count, 2048):
        end = min(count, begin + 2048)
        part = samples[begin * step : (end + 1) * step]
        frames = np.lib.stride_tricks.sliding_window_view(part, 2 * step)[::step]
        powers[begin:end] = (np.abs(np.fft.rfft(frames * window)) ** 2).astype(np.float32) @ gather
    totals = 10 * np.log10(powers.sum(axis=1) + 1e-10)
    loud = totals > np.percentile(totals[totals > totals.max() - _SILENT], 95) - _QUIET
    # In place, because the hours of a long recording are all compared.
    powers += 1e-9 * float(powers.max())
    powers += 1e-12
    logs = np.log(powers, out=powers)
    # Silence, however much of it there is, must not move the mean: all that sounds would be alike.
    logs -= logs.mean(axis=0, where=loud[:, np.newaxis])
    for begin in range(0, count, 2048):
        part = logs[begin : begin + 2048]
        part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9)
    return logs, loud


def _keep_longest(matches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the longest of overlapping matches, in order of time."""
    kept: list[tuple[int, int, int]] = []
    for match in sorted(matches, key=lambda each: each[0] - each[1]):
        if all(match[1] <= other[0] or match[0] >= other[1] for other in kept):
            kept.append(match)
    return sorted(kept)
