"""Gammatone filters, which divide sound into bands as the ear does.

Slaney's digital design (Apple Technical Report 35, 1993): a channel is four second-order sections with one pair of
poles, with unit gain at its centre frequency. Centre frequencies are spaced evenly on the scale of Glasberg and
Moore's equivalent rectangular bandwidths (ERB). `compute_gammatonegram` is Ellis' fast approximation of the filter
bank: a short-time spectrum whose bins are summed with the channels' magnitude responses as weights.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import fft

Floats = NDArray[np.float64]

_EAR_Q, _LEAST_BANDWIDTH = 9.26449, 24.7
_WINDOW_S, _HOP_S = 0.010, 0.0025
_FRAMES_AT_A_TIME = 128


def centre_frequencies(rate: int, channels: int, lowest: float) -> Floats:
    """Return centre frequencies in Hz, rising from `lowest` to just below half the rate; shape (channels,)."""
    offset = _EAR_Q * _LEAST_BANDWIDTH
    share = np.arange(channels, 0, -1) / channels
    frequencies: Floats = (lowest + offset) ** share * (rate / 2 + offset) ** (1 - share) - offset
    return frequencies


def compute_bandwidths(centres: Floats) -> Floats:
    """Return the equivalent rectangular bandwidths, in Hz, of channels with these centre frequencies."""
    return centres / _EAR_Q + _LEAST_BANDWIDTH


def design_gammatone_filters(centres: Floats, rate: int) -> Floats:
    """Return the channels' second-order sections in the form `scipy.signal.sosfilt` takes; shape (channels, 4, 6)."""
    angle = 2 * np.pi * centres / rate
    radius = np.exp(-2 * np.pi * 1.019 * compute_bandwidths(centres) / rate)
    sections = np.zeros((len(centres), 4, 6))
    for number, (outer, inner) in enumerate(((1, 1), (-1, 1), (1, -1), (-1, -1))):
        zero = np.cos(angle) + outer * math.sqrt(3 + inner * 2**1.5) * np.sin(angle)
        sections[:, number] = np.stack(
            [np.ones_like(zero), -radius * zero, 0 * zero, np.ones_like(zero), -2 * radius * np.cos(angle), radius**2],
            axis=1,
        )
    at_centre = np.diagonal(np.abs(_frequency_response(sections, angle)))
    # Each section gets a quarter of the gain in decibels.
    sections[:, :, :3] *= (at_centre**-0.25)[:, np.newaxis, np.newaxis]
    return sections


def compute_gammatonegram_rate(rate: int) -> tuple[int, int]:
    """Return the hop between columns and the length of a column's window with its zero padding, both in samples."""
    return math.floor(_HOP_S * rate + 0.5), 2 ** math.ceil(math.log2(2 * _WINDOW_S * rate))


def compute_gammatonegram(samples: NDArray[np.float32], rate: int, centres: Floats) -> NDArray[np.float32]:
    """Compute the magnitude of each channel in Hann windows of 10 ms every 2.5 ms.

    Args:
        samples: shape (frames,).
        rate: sample rate, Hz.
        centres: centre frequencies of the channels, Hz.

    Returns:
        Shape (channels, columns); there are no columns if the samples are shorter than one column's window.
    """
    hop, size = compute_gammatonegram_rate(rate)
    columns = max(0, 1 + (len(samples) - size) // hop)
    half = math.floor(_WINDOW_S * rate + 0.5) // 2
    window = (0.5 * (1 + np.cos(np.pi * np.arange(1 - half, half) / half))).astype(np.float32)
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    gather = (np.abs(_frequency_response(design_gammatone_filters(centres, rate), angles)) / size).astype(np.float32)
    magnitudes = np.empty((len(centres), columns), dtype=np.float32)
    if columns:
        # The window is centred in the transformed samples; its position does not change the magnitudes.
        frames = sliding_window_view(samples[size // 2 - half + 1 :], len(window))[::hop][:columns]
        padded = np.zeros((_FRAMES_AT_A_TIME, size), dtype=np.float32)
        for start in range(0, columns, _FRAMES_AT_A_TIME):
            some = frames[start : start + _FRAMES_AT_A_TIME]
            np.multiply(some, window, out=padded[: len(some), : len(window)])
            spectrum = fft.rfft(padded[: len(some)], axis=1)
            np.matmul(gather, np.abs(spectrum).T, out=magnitudes[:, start : start + len(some)])
    return magnitudes


def _frequency_response(sections: Floats, angles: Floats) -> NDArray[np.complex128]:
    """Return every channel's complex gain at angular frequencies in radians per sample; shape (channels, angles)."""
    powers = np.exp(-1j * np.outer(np.arange(3), angles))
    gains: NDArray[np.complex128] = np.prod((sections[..., :3] @ powers) / (sections[..., 3:] @ powers), axis=1)
    return gains
