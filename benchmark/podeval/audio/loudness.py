"""Loudness, true peak and loudness range of a recording.

`measure` follows ITU-R BS.1770-4 (integrated loudness over the actual channel layout, true peak), EBU Tech 3341
(momentary and short-term loudness) and EBU Tech 3342 (loudness range). They share a single K-weighting pass over
one-second blocks, so recordings of several hours need little memory. `measure_podeval` computes the same values as the
PodEval code. The three `score_*` functions map the readings to 0..1 with PodEval's constants.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.audio.bs1770 import KWeighting, TruePeakMeter, to_db
from podeval.errors import BadInput, CannotScore

Floats = NDArray[np.float64]
Samples = NDArray[np.floating]
Variant = Literal["paper", "podeval"]

LOWEST_RATE = 8000

# Energies are summed in cells of 10 ms. Gating blocks and timelines step by ten cells (100 ms); the maxima of momentary
# and short-term loudness are searched at every cell, as the file-based cases of Tech 3341 require.
_CELLS_PER_SECOND = 100
_STEP = 10
_MOMENTARY = 40
_SHORT_TERM = 300

_LONG = 60  # seconds of audio above which progress is reported

_OFFSET = -0.691  # BS.1770-4: makes a 997 Hz sine at 0 dBFS in one front channel read -3.01 LUFS
_ABSOLUTE_GATE = -70.0
_RELATIVE_GATE = -10.0
_RANGE_GATE = -20.0

_SURROUND = 1.41
_WEIGHTS: dict[str, tuple[float, ...]] = {
    "mono": (1.0,),
    "stereo": (1.0, 1.0),
    "downmix": (1.0, 1.0),
    "2.1": (1.0, 1.0, 0.0),
    "3.0": (1.0, 1.0, 1.0),
    "quad": (1.0, 1.0, _SURROUND, _SURROUND),
    "3.1": (1.0, 1.0, 1.0, 0.0),
    "4.0": (1.0, 1.0, 1.0, 1.0),
    "5.0": (1.0, 1.0, 1.0, _SURROUND, _SURROUND),
    "5.1": (1.0, 1.0, 1.0, 0.0, _SURROUND, _SURROUND),
}
_USUAL_LAYOUT = {1: "mono", 2: "stereo", 3: "3.0", 4: "quad", 5: "5.0", 6: "5.1"}


@dataclass(frozen=True, eq=False)
class Loudness:
    """The loudness readings of one recording.

    Attributes:
        integrated: loudness of the whole recording in LUFS.
        true_peak: highest level, including levels between samples, dBTP (0 is full scale).
        range: loudness range in LU; None if it cannot be computed (see `reasons`).
        momentary: loudness of 0.4 s windows every 0.1 s, in LUFS; minus infinity where silent.
        momentary_times: end of each of these windows in seconds.
        short_term: loudness of 3 s windows every 0.1 s (podeval: every 1.5 s), in LUFS.
        short_term_times: end of each of these windows in seconds.
        max_momentary: highest momentary loudness, searched every 10 ms, in LUFS; None if not measured.
        max_short_term: highest short-term loudness, searched every 10 ms, in LUFS; None below 3 s.
        reasons: a sentence for each reading that is None, with the reason.
    """

    integrated: float
    true_peak: float
    range: float | None
    momentary: Floats
    momentary_times: Floats
    short_term: Floats
    short_term_times: Floats
    max_momentary: float | None = None
    max_short_term: float | None = None
    reasons: dict[str, str] = field(default_factory=dict)


def measure(samples: Samples, rate: int, layout: str | None = None) -> Loudness:
    """Measure loudness according to ITU-R BS.1770-4, EBU Tech 3341 and EBU Tech 3342.

    Args:
        samples: float32 or float64, shape (frames, channels), full scale 1.0; may be a memory map. They are read once,
            in one-second blocks.
        rate: sample rate in Hz, 8000 or more.
        layout: FFmpeg's name of the channel layout (such as "stereo", "5.1(side)"); None assumes the usual layout for
            the number of channels: mono, stereo, L R C, L R Ls Rs, 5.0, or 5.1 in WAV order. The LFE channel is used
            only for the true peak.

    Raises:
        CannotScore: the recording is shorter than 0.4 s, contains nothing above -70 LUFS, or has non-finite samples, a
            rate below 8 kHz or a layout without known weights.
        BadInput: `layout` has a different number of channels.
    """
    _check(samples, rate)
    weights = get_channel_weights(samples.shape[1], layout)
    weighted_channels = np.flatnonzero(weights)
    meter, weighting = TruePeakMeter(rate, samples.shape[1]), KWeighting(rate, len(weighted_channels), rate)
    # Measure the true peak and the weighted energy of every cell in one pass over the recording.
    energies = []
    for start, block in _read_blocks(samples, rate):
        if not math.isfinite(meter.push(block)):
            raise _explain_not_finite(block, start, rate)
        weighted = weighting.push(block if len(weighted_channels) == block.shape[1] else block[:, weighted_channels])
        energies.append(weights[weighted_channels] @ _energies(weighted, rate))
        if len(samples) > _LONG * rate:
            progress.report("loudness", min(start + rate, len(samples)) / rate, len(samples) / rate)
    # Compute momentary and short-term loudness from the cells.
    power = np.concatenate(energies)
    edges = _cell_edges(len(power), rate)
    momentary = _mean_power_in_windows(power, edges, _MOMENTARY)
    short_term = _mean_power_in_windows(power, edges, _SHORT_TERM)
    reading, reason = _range(short_term[::_STEP])
    return Loudness(
        integrated=_integrated(momentary[::_STEP], len(samples) / rate),
        true_peak=to_db(meter.finish()),
        range=reading,
        momentary=_to_lufs(momentary[::_STEP]),
        momentary_times=edges[_MOMENTARY::_STEP] / rate,
        short_term=_to_lufs(short_term[::_STEP]),
        short_term_times=edges[_SHORT_TERM::_STEP] / rate,
        max_momentary=float(_to_lufs(momentary).max()),
        max_short_term=float(_to_lufs(short_term).max()) if len(short_term) else None,
        reasons={"range": reason} if reason else {},
    )


def get_channel_weights(channels: int, layout: str | None = None) -> Floats:
    """Return the BS.1770-4 weights for the channels of a layout, shape (channels,); a single channel has weight 1.

    Raises:
        CannotScore: no weights are known for this layout or number of channels.
        BadInput: the layout has a different number of channels.
    """
    # FFmpeg writes "6 channels" if a file does not name its layout.
    if layout is None or layout.endswith(" channels"):
        layout = _USUAL_LAYOUT.get(channels)
    weights = _WEIGHTS.get(layout.split("(")[0]) if layout else None
    if weights is None:
        what = f"the channel layout {layout!r}" if layout else f"{channels} channels"
        raise CannotScore(f"Loudness has no channel weights for {what}; downmix to stereo or 5.1 first.")
    if len(weights) != channels:
        raise BadInput(f"Layout {layout!r} has {len(weights)} channels but the samples have {channels}.")
    return np.array(weights)


def _check(samples: Samples, rate: int) -> None:
    if rate < LOWEST_RATE:
        raise CannotScore(f"Loudness needs a sampling rate of {LOWEST_RATE} Hz or more; this recording has {rate} Hz.")
    if len(samples) / rate < _MOMENTARY / _CELLS_PER_SECOND:
        raise CannotScore(f"Loudness needs at least 0.4 s of audio; there are only {len(samples) / rate:.2f} s.")


def _explain_not_finite(block: Samples, start: int, rate: int) -> CannotScore:
    at = (start + int(np.argmin(np.isfinite(block).all(axis=1)))) / rate
    return CannotScore(f"The sample at {at:.3f} s is not a finite number; repair or decode the file again.")


def _read_blocks(samples: Samples, rate: int) -> Iterator[tuple[int, Samples]]:
    """Yield each second of samples: the index of its first frame, and the samples, shape (frames, channels)."""
    for start in range(0, len(samples), rate):
        yield start, np.ascontiguousarray(samples[start : start + rate])


def _energies(weighted: Floats, rate: int) -> Floats:
    """Compute the energy in each whole cell of up to one second of samples: (channels, frames) to (channels, cells)."""
    edges = _cell_edges(_CELLS_PER_SECOND, rate)
    cells = int(np.searchsorted(edges, weighted.shape[1], side="right")) - 1
    if not cells:
        return np.empty((len(weighted), 0))
    whole = weighted[:, : edges[cells]]
    if rate % _CELLS_PER_SECOND:
        return np.add.reduceat(np.square(whole), edges[:cells], axis=1)
    whole = whole.reshape(len(whole), cells, -1)
    return np.asarray(np.vecdot(whole, whole))


def _cell_edges(cells: int, rate: int) -> NDArray[np.int64]:
    """Return the first frame of each of `cells` cells, and the end of the last.

    The pattern repeats every second at any rate.
    """
    return (np.arange(cells + 1) * rate + _CELLS_PER_SECOND // 2) // _CELLS_PER_SECOND


def _mean_power_in_windows(energies: Floats, edges: NDArray[np.int64], cells: int) -> Floats:
    """Compute the mean power in every window of `cells` cells; empty if no window is complete."""
    if len(energies) < cells:
        return np.empty(0)
    return np.asarray(np.convolve(energies, np.ones(cells), "valid") / (edges[cells:] - edges[:-cells]))


def _to_lufs(power: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        loudness: Floats = _OFFSET + 10.0 * np.log10(power)
    return loudness


def _to_power(lufs: float) -> float:
    return float(10.0 ** ((lufs - _OFFSET) / 10.0))


def _integrated(blocks: Floats, seconds: float) -> float:
    """Compute the gated loudness of 0.4 s blocks in LUFS (BS.1770-4, equations 4 to 7)."""
    audible = blocks[blocks > _to_power(_ABSOLUTE_GATE)]
    if not len(audible):
        raise CannotScore(f"Silent: no 0.4 s block in {seconds:.1f} s of audio is louder than -70 LUFS.")
    gate = audible.mean() * 10.0 ** (_RELATIVE_GATE / 10.0)
    return float(_to_lufs(audible[audible > gate].mean()))


def _range(windows: Floats) -> tuple[float | None, str | None]:
    """Return the loudness range of 3 s windows in LU (EBU Tech 3342), or None with the reason."""
    if not len(windows):
        return None, "Loudness range needs at least 3 s of audio."
    audible = windows[windows >= _to_power(_ABSOLUTE_GATE)]
    if not len(audible):
        return None, "Loudness range needs a 3 s window louder than -70 LUFS; there is none."
    gate = audible.mean() * 10.0 ** (_RANGE_GATE / 10.0)
    # Use the nearest rank, as in the code listing of Tech 3342.
    low, high = np.percentile(_to_lufs(audible[audible >= gate]), (10, 95), method="nearest")
    return float(high - low), None


def measure_podeval(samples: Samples, rate: int) -> Loudness:
    """Measure loudness as the PodEval code does, to reproduce its values.

    Channels are averaged to mono first; integrated loudness is pyloudnorm's; the true peak is that of the mono mix
    upsampled 4 times by soxr (HQ); the range is the 95th minus the 10th percentile of the integrated loudness of 3 s
    frames every 1.5 s, without a gate across frames. `short_term` contains these frames; there is no momentary
    timeline. The mono mix and pyloudnorm's copies of it are kept in memory.

    Args:
        samples: the samples, as for `measure`.
        rate: sample rate in Hz.

    Raises:
        CannotScore: the recording is shorter than 0.4 s, silent, has non-finite samples, or has a rate below 8 kHz.
    """
    import pyloudnorm

    _check(samples, rate)
    for start, block in _read_blocks(samples, rate):
        if not np.isfinite(block).all():
            raise _explain_not_finite(block, start, rate)
    # Measure the integrated loudness of the mono mix and of each frame.
    mono = samples.mean(axis=1)
    meter = pyloudnorm.Meter(rate)
    frame, hop = 3 * rate, rate * 3 // 2
    starts = np.arange(0, len(mono) - frame + 1, hop)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        integrated = float(meter.integrated_loudness(mono))
        frames = np.array([meter.integrated_loudness(mono[s : s + frame]) for s in starts], dtype=np.float64)
    if not math.isfinite(integrated):
        raise CannotScore(f"Silent: no 0.4 s block in {len(mono) / rate:.1f} s of audio is louder than -70 LUFS.")
    # Compute the remaining readings.
    reading, reason = _ungated_range(frames)
    return Loudness(
        integrated=integrated,
        true_peak=to_db(_soxr_peak(mono, rate)),
        range=reading,
        momentary=np.empty(0),
        momentary_times=np.empty(0),
        short_term=frames,
        short_term_times=(starts + frame) / rate,
        reasons={"range": reason} if reason else {},
    )


def _ungated_range(frames: Floats) -> tuple[float | None, str | None]:
    if not len(frames):
        return None, "PodEval's loudness range needs at least 3 s of audio."
    silent = np.flatnonzero(~np.isfinite(frames))
    if len(silent):
        return (
            None,
            f"PodEval's loudness range has no gate and the 3 s from {1.5 * silent[0]:.1f} s are silent.",
        )
    low, high = np.percentile(frames, (10, 95))
    return float(high - low), None


def _soxr_peak(mono: Samples, rate: int) -> float:
    import soxr

    stream = soxr.ResampleStream(rate, 4 * rate, 1, dtype=mono.dtype.name, quality="HQ")
    last = len(mono) - 1
    peaks = [
        np.abs(stream.resample_chunk(mono[s : s + rate], last=s + rate > last)).max(initial=0.0)
        for s in range(0, len(mono), rate)
    ]
    return float(max(peaks))


def score_integrated_loudness(lufs: float, variant: Variant = "paper") -> float:
    """Return how suitable an integrated loudness is for a podcast, 0..1 (PodEval).

    The score is 1 in [-18, -14] LUFS (variant "podeval", as coded: [-17, -14]) and falls as exp(-0.0858 d) below and
    exp(-0.3291 d) above, where d is the distance in LU. The paper says about 0.6 at -23 LUFS; its constant gives 0.65
    if measured from -18 and 0.60 from -17. The printed constants are used.
    """
    return _plateau(lufs, -18.0 if variant == "paper" else -17.0, -14.0, 0.0858, 0.3291)


def score_true_peak(dbtp: float) -> float:
    """Return the score of a true peak, 0..1 (PodEval).

    The score is 1 up to -1 dBTP and exp(-4.605 (dbtp + 1)) above: 0.01 at 0 dBTP.
    """
    return _plateau(dbtp, -math.inf, -1.0, 0.0, 4.605)


def score_loudness_range(lu: float) -> float:
    """Return the score of a loudness range, 0..1 (PodEval).

    The score is 1 in [4, 18] LU, exp(-1.1513 d) below and exp(-0.2554 d) above, where d is the distance in LU.
    """
    return _plateau(lu, 4.0, 18.0, 1.1513, 0.2554)


def _plateau(value: float, low: float, high: float, fall_below: float, fall_above: float) -> float:
    if value < low:
        return math.exp(-fall_below * (low - value))
    return math.exp(-fall_above * max(value - high, 0.0))
