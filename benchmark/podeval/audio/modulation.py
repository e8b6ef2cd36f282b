"""Gammatone channels, which divide sound into bands as the ear does, and the modulation energies of their envelopes.

The design is Slaney's (Apple Technical Report 35, 1993): a channel consists of four second-order sections with one pair
of poles, and its gain at the centre frequency is 1. Centre frequencies are spaced evenly on the scale of Glasberg and
Moore's equivalent rectangular bandwidths (ERB). `compute_gammatonegram` is Ellis' fast approximation of the filter
bank: a short-time spectrum whose bins are summed with the channels' magnitude responses as weights.

Second-order band-pass filters are applied to the envelopes, and the energy of their outputs is taken in Hamming windows
of 256 ms every 64 ms, as SRMR defines them. The filters run block by block as matrix products in single precision. This
is several times faster than filtering sample by sample, and gives the same values except for rounding.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import fft, signal

Floats = NDArray[np.float64]

_EAR_Q, _LEAST_BANDWIDTH = 9.26449, 24.7
_WINDOW_S, _HOP_S = 0.010, 0.0025
_FRAMES_AT_A_TIME = 128


def centre_frequencies(rate: int, channels: int, lowest: float) -> Floats:
    """Return centre frequencies in Hz, rising from `lowest` to just below half the rate; shape (channels,)."""
    offset = _EAR_Q * _LEAST_BANDWIDTH
    share = np.arange(channels, 0, -1) / channels
    return np.asarray((lowest + offset) ** share * (rate / 2 + offset) ** (1 - share) - offset)


def compute_bandwidths(centres: Floats) -> Floats:
    """Return the equivalent rectangular bandwidths, in Hz, of channels with these centre frequencies."""
    return centres / _EAR_Q + _LEAST_BANDWIDTH


def design_gammatone_filters(centres: Floats, rate: int) -> Floats:
    """Return the channels' second-order sections as `scipy.signal.sosfilt` expects them; shape (channels, 4, 6)."""
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
        rate: sample rate in Hz.
        centres: centre frequencies of the channels in Hz.

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
    return np.asarray(np.prod((sections[..., :3] @ powers) / (sections[..., 3:] @ powers), axis=1))


Singles = NDArray[np.float32]

Q = 2.0
"""Q factor of the band-passes: centre frequency divided by bandwidth."""

FRAME_S, HOP_S = 0.256, 0.064
"""Length and hop of the frames over which energy is summed, in seconds."""

_LONGEST_BLOCK = 32
_VALUES_AT_A_TIME = 1 << 18


def compute_lower_edges(bands: Floats, rate: float) -> Floats:
    """Return the lower -3 dB edges, in Hz, of band-passes with these centre frequencies, by SRMR's formula."""
    return np.asarray(bands - np.tan(np.pi * bands / rate) / Q * rate / (2 * np.pi))


def compute_modulation_energies(envelopes: Singles, rate: float, bands: tuple[float, ...]) -> Floats:
    """Compute the energy of each modulation band in each frame of 256 ms every 64 ms.

    Args:
        envelopes: shape (windows, channels, samples).
        rate: sample rate of the envelopes in Hz.
        bands: centre frequencies in Hz.

    Returns:
        Shape (windows, channels, bands, frames).
    """
    frame, hop = math.ceil(FRAME_S * rate), math.ceil(HOP_S * rate)
    frames = 1 + (envelopes.shape[-1] - frame) // hop
    # A frame consists of `parts` pieces of one hop, which overlapping frames share, so each piece is weighted once for
    # each of its positions in a frame.
    parts = math.ceil(frame / hop)
    stretches = frames - 1 + parts
    weights = np.zeros(parts * hop, dtype=np.float32)
    weights[:frame] = signal.windows.hamming(frame, sym=False) ** 2
    weights = np.ascontiguousarray(weights.reshape(parts, hop).T)
    rows = envelopes.reshape(-1, envelopes.shape[-1])
    energies = np.empty((len(rows), len(bands), frames))
    for start, band, output in _filter_bands(rows, stretches * hop, _make_bank(rate, bands, min(hop, _LONGEST_BLOCK))):
        np.square(output, out=output)
        shared = (output.reshape(-1, hop) @ weights).reshape(-1, stretches, parts).astype(np.float64)
        energies[start : start + len(output), band] = sum(
            shared[:, part : part + frames, part] for part in range(parts)
        )
    return energies.reshape(*envelopes.shape[:-1], len(bands), frames)


@dataclass(frozen=True)
class _Bank:
    """Modulation filters as matrix products with blocks of samples.

    A band-pass filter with two complex poles p and p* carries one complex number from block to block: the sum of all
    earlier samples weighted by powers of p. Within a block, the output is the block convolved with the impulse
    response, plus the response to the carried number.

    Attributes:
        block: number of samples in a block.
        carry: p to the power of `block`, shape (bands,).
        gather: contribution of a block to the number, as real and imaginary columns, shape (block, 2 · bands).
        respond: maps a block and the number's two parts to the output, shape (bands, block + 2, block).
    """

    block: int
    carry: NDArray[np.complex128]
    gather: Singles
    respond: Singles


@lru_cache(maxsize=8)
def _make_bank(rate: float, bands: tuple[float, ...], block: int) -> _Bank:
    steps = np.arange(block)
    impulse = (steps == 0).astype(np.float64)
    carry, gather, respond = [], [], []
    for band in bands:
        edge = math.tan(math.pi * band / rate)
        numerator = np.array([edge / Q, 0.0, -edge / Q])
        denominator = np.array([1 + edge / Q + edge**2, 2 * edge**2 - 2, 1 - edge / Q + edge**2])
        residues, poles, _ = signal.residuez(numerator, denominator)
        response = signal.lfilter(numerator, denominator, impulse)
        within = np.where(steps >= steps[:, np.newaxis], response[steps - steps[:, np.newaxis]], 0)
        later = 2 * residues[0] * poles[0] ** (steps + 1)
        carry.append(poles[0] ** block)
        gather.append(poles[0] ** steps[::-1])
        respond.append(np.vstack([within, later.real, -later.imag]))
    return _Bank(
        block,
        np.array(carry),
        np.array(gather).T.astype(np.complex64).copy().view(np.float32),
        np.array(respond, dtype=np.float32),
    )


def _filter_bands(envelopes: Singles, length: int, bank: _Bank) -> Iterator[tuple[int, int, Singles]]:
    """Yield the outputs of the modulation filters, for envelopes cut or zero-padded to `length`.

    The filters start from a state of zero.

    Yields:
        The index of the first row, the index of the band, and its output for some rows, shape (rows, length); the array
        is overwritten by the next iteration.
    """
    # Arrange the envelopes in blocks, and compute the contribution of earlier blocks to each.
    count = math.ceil(length / bank.block)
    inside = envelopes[:, :length]
    padded = np.zeros((len(inside), count * bank.block), dtype=np.float32)
    padded[:, : inside.shape[1]] = inside
    blocks = padded.reshape(len(inside), count, bank.block)
    carried = _carry_over_blocks(blocks, bank)
    together = max(1, _VALUES_AT_A_TIME // length)
    for start in range(0, len(blocks), together):
        # Multiply every block, with its two carried numbers, by the response of each band.
        some = np.empty((len(blocks[start : start + together]), count, bank.block + 2), dtype=np.float32)
        some[..., :-2] = blocks[start : start + together]
        output = np.empty((len(some) * count, bank.block), dtype=np.float32)
        for band, respond in enumerate(bank.respond):
            some[..., -2:] = carried[band, start : start + together]
            np.matmul(some.reshape(len(output), -1), respond, out=output)
            yield start, band, output.reshape(len(some), -1)[:, :length]


def _carry_over_blocks(blocks: Singles, bank: _Bank) -> Singles:
    """Return the number that each block receives from earlier blocks, real and imaginary; shape (bands, rows, blocks,
    2).
    """
    rows, count, size = blocks.shape
    added = (blocks.reshape(-1, size) @ bank.gather).view(np.complex64).reshape(rows, count, -1)
    # Use double precision, because the error accumulates over the whole recording.
    number = np.zeros((rows, len(bank.carry)), dtype=np.complex128)
    carried = np.empty((count, *number.shape), dtype=np.complex64)
    for block in range(count):
        carried[block] = number
        number *= bank.carry
        number += added[:, block]
    return np.ascontiguousarray(carried.transpose(2, 1, 0)).view(np.float32).reshape(-1, rows, count, 2)
