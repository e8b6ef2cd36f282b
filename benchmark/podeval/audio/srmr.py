"""SRMR: speech-to-reverberation modulation energy ratio, without a clean reference.

The envelopes of 23 gammatone channels from 125 Hz to half the rate are split into 8 modulation bands centred at 4 to
128 Hz. The modulation of speech is at 4 to 18 Hz, and reverberation adds energy in the higher bands, so the ratio of
the energy in bands 1 to 4 to the energy in bands 5 to K* falls with reverberation. K* is the highest band whose lower
edge is below the bandwidth of the channel that bounds 90 % of the energy; with these channels it is 6 to 8, or 8 when
normalised.

Source: Falk, Zheng and Chan, IEEE TASLP 2010; the normalised form (energies limited to 30 dB below the peak, bands up
to 30 Hz): Santos, Senoussaoui and Falk, IWAENC 2014.

Values equal those of SRMRpy (commit fee0097) to within a relative difference of 1e-5: envelopes are stored in single
precision, and the modulation filters run block by block as matrix products, without further approximation. As in
SRMRpy, `fast` takes envelopes sampled at 400 Hz from a gammatonegram, and gives quite different values from `slow`
(Hilbert envelopes at the full rate). `fast` counts the 90 % from the highest channel down, so its K* is almost always
8. SRMR is designed for 8 and 16 kHz; values at other rates are not comparable, because the channels then have other
frequencies.

Unlike SRMRpy, which fails with an unrelated error in these cases, this module leaves out silent windows, and treats a
bandwidth that equals an edge as if it were above that edge.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import fft, signal
from threadpoolctl import threadpool_limits

from podeval import progress
from podeval.audio.modulation import (
    centre_frequencies,
    compute_bandwidths,
    compute_gammatonegram,
    compute_gammatonegram_rate,
    compute_lower_edges,
    compute_modulation_energies,
    design_gammatone_filters,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_CHANNELS, _LOWEST_CHANNEL = 23, 125.0
_BANDS, _SPEECH_BANDS, _LOWEST_BAND = 8, 4, 4.0
_HIGHEST_BAND, _HIGHEST_BAND_NORMALISED = 128.0, 30.0
_FAST_RATE = 400.0
_DYNAMIC_RANGE = 1e-3
_MOST_ENERGY = 0.9
_SILENCE = 1e-30

_WINDOWS_AT_A_TIME = {True: 8, False: 4}
_VALUES_AT_A_TIME = 1 << 22


def compute_srmr_windows(
    samples: NDArray[np.floating], rate: int, window_s: float, stride_s: float, fast: bool = True, norm: bool = False
) -> tuple[Floats, Floats]:
    """Compute the SRMR of every window of a signal; higher means less reverberation.

    Windows are processed in batches, so memory use does not grow with the signal's length. In fast mode, the
    gammatonegram of overlapping windows is computed only once if the stride is a multiple of its hop (2.5 ms).

    Args:
        samples: finite, shape (frames,), any scale; an `np.memmap` is read in pieces.
        rate: sample rate in Hz, at least 1000.
        window_s: length of a window in seconds; at least one frame (0.26 s in slow mode, 0.29 s in fast mode).
        stride_s: time from the start of one window to the start of the next, in seconds.
        fast: whether to take envelopes from a gammatonegram, SRMRpy's default, instead of Hilbert envelopes.
        norm: whether to limit energies to a range of 30 dB, with bands up to 30 Hz instead of 128 Hz.

    Returns:
        Start times in seconds and values, both of shape (windows,). Windows of digital silence have no value and are
        left out; a signal shorter than one window has no windows.
    """
    length, stride = round(window_s * rate), round(stride_s * rate)
    starts = range(0, len(samples) - length + 1, stride)
    # Compute the centre frequencies of the modulation bands and of the channels.
    highest = _HIGHEST_BAND_NORMALISED if norm else _HIGHEST_BAND
    bands = _LOWEST_BAND * (highest / _LOWEST_BAND) ** (np.arange(_BANDS) / (_BANDS - 1))
    centres = centre_frequencies(rate, _CHANNELS, _LOWEST_CHANNEL)
    # Windows can share a gammatonegram only if the stride is a multiple of its hop.
    shared = not fast or stride % compute_gammatonegram_rate(rate)[0] == 0
    batch = _WINDOWS_AT_A_TIME[fast] if shared else 1
    envelopes = _gammatonegrams if fast else _hilbert_envelopes
    kept, values = [np.empty(0)], [np.empty(0)]
    # On two busy cores, a second thread tripled the processor time of SRMR, and increased that of its gammatonegram by
    # a factor of up to forty, because each of the small matrix products waits for the second thread.
    with threadpool_limits(limits=1, user_api="blas"):
        for first in range(0, len(starts), batch):
            some = starts[first : first + batch]
            # Compute the modulation energies of this batch of windows, a few channels at a time.
            energies = np.concatenate(
                [
                    compute_modulation_energies(channels, _FAST_RATE if fast else float(rate), tuple(bands))
                    for channels in envelopes(samples, rate, some, length, centres)
                ],
                axis=1,
            )
            sounding, ratios = _ratio(_clip_energies(energies) if norm else energies, rate, centres, bands, fast)
            kept.append(np.array(some)[sounding] / rate)
            values.append(ratios)
            progress.report("reverberation", (some[-1] + length) / rate, (starts[-1] + length) / rate)
    return np.concatenate(kept), np.concatenate(values)


def _gammatonegrams(
    samples: NDArray[np.floating], rate: int, starts: Sequence[int], length: int, centres: Floats
) -> Iterator[Singles]:
    """Compute envelopes at 400 Hz, as many channels at a time as the memory limit allows.

    Yields:
        Shape (windows, channels, columns).
    """
    hop, size = compute_gammatonegram_rate(rate)
    piece = np.asarray(samples[starts[0] : starts[-1] + length], dtype=np.float64)
    piece = piece * _scale(piece[np.newaxis])[0]
    gram = compute_gammatonegram(piece.astype(np.float32), rate, centres)
    columns = 1 + (length - size) // hop
    step = (starts[1] - starts[0]) // hop if len(starts) > 1 else 1
    scale = _scale([piece[start - starts[0] :][:length] for start in starts]).astype(np.float32)
    together = max(1, _VALUES_AT_A_TIME // (len(starts) * columns))
    for first in range(0, len(gram), together):
        channels = sliding_window_view(gram[first : first + together], columns, axis=1)[:, ::step]
        windows = channels.swapaxes(0, 1) * scale[:, np.newaxis]
        if (length - size) % hop == 0:
            # SRMRpy's gammatonegram leaves the last column empty if there are only just enough samples for that column.
            windows[..., -1] = 0
        yield windows


def _hilbert_envelopes(
    samples: NDArray[np.floating], rate: int, starts: Sequence[int], length: int, centres: Floats
) -> Iterator[Singles]:
    """Compute Hilbert envelopes at the full rate, as many channels at a time as the memory limit allows.

    Yields:
        Shape (windows, channels, samples), with the number of samples adjusted to a multiple of 16, as in SRMRpy.
    """
    windows = np.stack([np.asarray(samples[start : start + length], dtype=np.float64) for start in starts])
    windows *= _scale(windows)
    padded = math.ceil(length / 16) * 16
    filters = design_gammatone_filters(centres, rate)
    together = max(1, _VALUES_AT_A_TIME // (len(starts) * padded))
    for first in range(0, len(filters), together):
        some = filters[first : first + together]
        envelopes = np.zeros((len(starts), len(some), padded), dtype=np.float32)
        for number, sections in enumerate(some):
            envelope = envelopes[:, number]
            # Compute the channel's signal, and its quadrature by a phase shift of 90 degrees.
            envelope[:, :length] = signal.sosfilt(sections, windows, axis=1)
            spectrum = fft.rfft(envelope, axis=1)
            spectrum *= -1j
            spectrum[:, [0, -1]] = 0
            quadrature = fft.irfft(spectrum, padded, axis=1, overwrite_x=True)
            # The envelope is the magnitude of the two together.
            np.square(envelope, out=envelope)
            envelope += np.square(quadrature, out=quadrature)
        yield np.sqrt(envelopes, out=envelopes)


def _scale(windows: Sequence[Floats] | Floats) -> Floats:
    """Return a column of factors that scale each window to a peak of 1, so that single precision always suffices."""
    peaks = np.array([max(window.max(), -window.min()) for window in windows])
    return (1 / np.where(peaks > _SILENCE, peaks, 1))[:, np.newaxis]


def _clip_energies(energies: Floats) -> Floats:
    """Limit energies, window by window, to the range from the peak of the channels' mean to 30 dB below it."""
    peak = energies.mean(axis=1).max(axis=(1, 2))[:, np.newaxis, np.newaxis, np.newaxis]
    return np.clip(energies, peak * _DYNAMIC_RANGE, peak)


def _ratio(energies: Floats, rate: int, centres: Floats, bands: Floats, fast: bool) -> tuple[NDArray[np.intp], Floats]:
    """Return the indices of the windows that contain energy, and the SRMR of these windows.

    `energies` has shape (windows, channels, bands, frames).
    """
    mean = energies.mean(axis=3)
    sounding = np.flatnonzero(mean[:, :, _SPEECH_BANDS].any(axis=1))
    mean = mean[sounding]
    channels = mean.sum(axis=2)
    # SRMRpy reverses the channels in both modes, although the channels' frequencies fall in slow mode and rise in fast
    # mode.
    below = np.cumsum(channels[:, ::-1] if fast else channels, axis=1) / channels.sum(axis=1, keepdims=True)
    bandwidth = compute_bandwidths(centres)[np.argmax(below > _MOST_ENERGY, axis=1)]
    edges = compute_lower_edges(bands, rate)
    by_band = mean.sum(axis=1)
    # Compute cumulative sums of the bands from the fifth on, one of which ends at K*.
    tails = np.cumsum(by_band[:, _SPEECH_BANDS:], axis=1)
    last = np.searchsorted(edges[_SPEECH_BANDS + 1 :], bandwidth, side="right")
    return sounding, by_band[:, :_SPEECH_BANDS].sum(axis=1) / tails[np.arange(len(tails)), last]
