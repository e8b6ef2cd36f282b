"""True peak: the highest level that a waveform reaches, also between its samples.

The signal is oversampled 4 times (2 times from 96 kHz, not at all from 192 kHz, as ITU-R BS.1770-4, Annex 2,
allows) with a Kaiser-windowed sinc that leaves the samples themselves unchanged. Only passages that could
hold a new maximum are interpolated: a point between samples cannot exceed the largest sample around it times
the interpolator's absolute gain. The result is the same as when everything is interpolated.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

_REACH = 16  # samples used on either side of an interpolated point: flat within 0.1 dB up to 0.45 of the rate
_BETA = 5.0  # Kaiser window: images about 50 dB down, far below what a peak in dB can show
_STRETCH = 32  # samples interpolated, or skipped, together; as many as a point depends on
_TOGETHER = 40  # stretches in one matrix product: larger ones wake BLAS's threads, which only get in each other's way


def get_oversampling(rate: int) -> int:
    """Return the oversampling factor for a sample rate in Hz: 4 below 96 kHz, 2 below 192 kHz, otherwise 1."""
    if rate < 96_000:
        return 4
    return 2 if rate < 192_000 else 1


def _interpolator(factor: int) -> NDArray[np.float32]:
    """Return the interpolator by phase, shape (factor - 1, 2 * _REACH).

    Row p gives the point (p + 1) / factor ahead.
    """
    fractions = np.arange(1, factor) / factor
    distance = fractions[:, None] - np.arange(1 - _REACH, _REACH + 1)
    window = np.i0(_BETA * np.sqrt(1.0 - (distance / _REACH) ** 2)) / np.i0(_BETA)
    phases = np.sinc(distance) * window
    return np.asarray(phases / phases.sum(axis=1, keepdims=True), dtype=np.float32)


class TruePeakMeter:
    """Tracks the true peak over blocks of a recording, in bounded memory.

    Args:
        rate: sample rate in Hz.
        channels: number of channels; the peak is the highest over all of them, whatever their weights.
    """

    def __init__(self, rate: int, channels: int) -> None:
        self._peak = 0.0
        phases = _interpolator(get_oversampling(rate))
        # Rounded up, so that the bound stays a bound.
        self._gain = float(np.abs(phases).sum(axis=1).max(initial=1.0)) * (1 + 1e-5)
        self._span = _STRETCH + 2 * _REACH - 1
        self._matrix = np.zeros((self._span, _STRETCH * len(phases)), dtype=np.float32)
        for start in range(_STRETCH):
            columns = slice(start * len(phases), (start + 1) * len(phases))
            self._matrix[start : start + 2 * _REACH, columns] = phases.T
        self._carry = np.zeros((channels, 2 * _REACH), dtype=np.float32)

    def push(self, block: NDArray[np.floating]) -> float:
        """Process the next block.

        Args:
            block: samples, shape (frames, channels), full scale 1.0.

        Returns:
            The highest absolute sample of the block; not finite if a sample is not.
        """
        highest = float(np.maximum(block.max(initial=0.0), -block.min(initial=0.0)))
        self._peak = max(self._peak, highest)
        signal = np.concatenate((self._carry, block.T), axis=1, dtype=np.float32, casting="same_kind")
        stretches = (signal.shape[1] - self._span) // _STRETCH + 1
        if self._matrix.shape[1] and stretches > 0:
            self._interpolate(signal, stretches)
        self._carry = signal[:, max(stretches, 0) * _STRETCH :]
        return highest

    def _interpolate(self, signal: NDArray[np.float32], stretches: int) -> None:
        least = np.float32(self._peak / self._gain)
        loud = np.zeros((len(signal), stretches + 1), dtype=bool)
        for channel, samples in zip(loud, (signal > least) | (signal < -least), strict=True):
            channel[np.minimum(np.flatnonzero(samples) // _STRETCH, stretches)] = True
        # The interpolation of a stretch uses its own samples and those of the next one.
        every = sliding_window_view(signal, self._span, axis=1)[:, ::_STRETCH]
        windows = every[loud[:, :-1] | loud[:, 1:]]
        if len(windows):
            stacks = np.zeros((-(-len(windows) // _TOGETHER), _TOGETHER, self._span), dtype=np.float32)
            stacks.reshape(-1, self._span)[: len(windows)] = windows
            points = stacks @ self._matrix
            self._peak = max(self._peak, float(points.max()), -float(points.min()))

    def finish(self) -> float:
        """Return the linear true peak of all blocks, with silence after the last. Push nothing after this."""
        self.push(np.zeros((self._span + _STRETCH, len(self._carry)), dtype=np.float32))
        return self._peak


def to_db(amplitude: float) -> float:
    """Convert an amplitude to dB relative to full scale; minus infinity for 0."""
    return 20.0 * math.log10(amplitude) if amplitude > 0 else -math.inf
