"""Faults of a recording that need no model: holes, clicks, clipped runs, jumps of level, cut-off ends.

Each detector takes samples of shape (frames,) at their own rate and gives spans in seconds. Hearing is relative:
levels are by the recording's own, the mean over the louder half of its 20 ms frames.
"""

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Span

Samples = NDArray[np.float32]

HOLE_SECONDS = 0.02
"""From which length digital silence that breaks off sound is a hole."""

HOLE_LEVEL = 0.25
"""Level of the 4 ms before or after a silence, by the recording's, at which sound breaks off and does not fade."""

SOFT_LEVEL, STEADY = 0.05, 0.5
"""Soft sound breaks off too where it is this loud on both sides, and its last 4 ms are not fainter than this share of
the 20 ms before them."""

EDGE_SECONDS, BESIDE_SECONDS = 0.004, 0.02

CLICK_SECONDS = 0.0015
"""Length of a click at most; consonants last longer."""

CLICK_RATIO = 4.0
"""How much more a click stands out of the 25 ms around it than anything else in them: voices pulse, clicks do not."""

CLICK_AROUND = 0.025
CLICK_LEVEL = 2.5
"""Second difference of a click at least, by the recording's level: lips click at up to 2, and are no fault."""

CLIPPED_RUN = 3
"""Samples in a row that stand still at a peak."""

CLIPPED_TIMES = 4
"""Peaks that stand still within `CLIPPED_TOGETHER` seconds."""

CLIPPED_TOGETHER = 0.25
CLIPPED_LEVEL = 0.5
"""Of a clipped peak, by the recording's level: quieter ones stand still by rounding."""

JUMP = 9.0
"""dB by which the loudness of speech changes from 3 s to the next 3 s."""

JUMP_SECONDS = 3.0
END_SECONDS = 0.01
END_LEVEL = 0.25
"""Level of the last 10 ms, by the recording's, at which it is cut off."""

_FRAME = 0.02
_BLOCK = 1 << 22


def measure_level(samples: Samples, rate: int) -> float:
    """Measure the root mean square of the louder half of the frames of 20 ms; 0 for silence."""
    powers = _frame_powers(samples, rate)
    return float(np.sqrt(np.mean(powers[powers >= np.median(powers)]))) if powers.size else 0.0


def find_holes(samples: Samples, rate: int) -> list[Span]:
    """Find digital silence that breaks off sound on one of its sides, or both, and is not the beginning or end."""
    level, edge, beside = measure_level(samples, rate), max(2, round(EDGE_SECONDS * rate)), round(BESIDE_SECONDS * rate)
    holes = []
    for start, end in find_runs(samples == 0, round(HOLE_SECONDS * rate)):
        if start == 0 or end == len(samples):
            continue
        before, after = samples[max(0, start - edge) : start], samples[end : end + edge]
        steady = all(
            _rms(last) >= max(SOFT_LEVEL * level, STEADY * _rms(side))
            for last, side in ((before, samples[max(0, start - beside) : start]), (after, samples[end : end + beside]))
        )
        if steady or max(_rms(before), _rms(after)) >= HOLE_LEVEL * level:
            holes.append(Span(start / rate, end / rate))
    return holes


def find_clicks(samples: Samples, rate: int) -> list[Span]:
    """Find moments that stand out of what is around them, and are over at once."""
    level, width = measure_level(samples, rate), max(1, round(CLICK_SECONDS / 2 * rate))
    around = round(CLICK_AROUND / (width / rate))
    peaks: list[float] = []
    block = max(width, _BLOCK // width * width)
    for begin in range(0, len(samples), block):
        part = samples[max(0, begin - 1) : begin + block + 1]
        sharp = np.abs(np.diff(part, n=2, prepend=part[:1], append=part[-1:]))[min(begin, 1) :][:block]
        sharp = np.pad(sharp, (0, -len(sharp) % width))
        peaks += sharp.reshape(-1, width).max(axis=1).tolist()
    heights = np.array(peaks)
    if len(heights) < 2 * around + 3:
        return []
    rest = _highest_around(heights, around)
    # A click may fall on the border of two frames, so the neighbours of a frame are not its surroundings.
    stands_out = (heights > CLICK_RATIO * np.maximum(rest, 1e-9)) & (heights > CLICK_LEVEL * level) & (rest > 0)
    return [Span(start * width / rate, end * width / rate) for start, end in find_runs(stands_out, 1)]


def _highest_around(heights: NDArray[np.float64], around: int) -> NDArray[np.float64]:
    """Of every frame the highest of the `around` frames before and after it, its two neighbours aside."""
    from scipy.ndimage import maximum_filter1d

    size = around - 1
    one_side = maximum_filter1d(heights, size, mode="constant")
    shift = size // 2 + 2
    before = np.concatenate([np.zeros(shift), one_side[:-shift]])
    after = np.concatenate([one_side[shift:], np.zeros(shift)])
    highest: NDArray[np.float64] = np.maximum(before, after)
    return highest


def find_clipped(samples: Samples, rate: int) -> list[Span]:
    """Find stretches whose peaks stand still, at whatever level they were clipped."""
    level = measure_level(samples, rate)
    flat = (np.diff(samples) == 0) & (np.abs(samples[1:]) >= CLIPPED_LEVEL * level) & (level > 0)
    runs = find_runs(flat, CLIPPED_RUN - 1)
    tops = [(start, end) for start, end in runs if _is_peak(samples, start, end + 1)]
    groups: list[list[tuple[int, int]]] = []
    for top in tops:
        if groups and top[0] - groups[-1][-1][1] <= CLIPPED_TOGETHER * rate:
            groups[-1].append(top)
        else:
            groups.append([top])
    return [Span(group[0][0] / rate, (group[-1][1] + 1) / rate) for group in groups if len(group) >= CLIPPED_TIMES]


def find_level_jumps(samples: Samples, rate: int, speech: list[Span]) -> list[Span]:
    """Find where speech becomes much louder or softer and stays so: the moment between 3 s of speech and the next 3 s.

    Args:
        samples: shape (frames,).
        rate: Hz.
        speech: where somebody speaks.
    """
    frame = round(_FRAME * rate)
    powers = _frame_powers(samples, rate)
    centres = (np.arange(len(powers)) + 0.5) * _FRAME
    spoken = np.zeros(len(powers), dtype=bool)
    for span in speech:
        spoken |= (centres >= span.start) & (centres < span.end)
    indices, size = np.flatnonzero(spoken), round(JUMP_SECONDS / _FRAME)
    if len(indices) < 2 * size or frame == 0:
        return []
    sums = np.concatenate([[0.0], np.cumsum(powers[indices])])
    means = (sums[size:] - sums[:-size]) / size
    change = 10 * np.log10(np.maximum(means[size:], 1e-12) / np.maximum(means[:-size], 1e-12))
    highest: list[int] = []
    for start, end in find_runs(np.abs(change) >= JUMP, 1):
        at = start + int(np.abs(change[start:end]).argmax())
        if highest and at - highest[-1] < size:
            # One jump is seen from several windows around it; it is where it is largest.
            highest[-1] = max(highest[-1], at, key=lambda each: abs(float(change[each])))
        else:
            highest.append(at)
    moments = [float(centres[indices[at + size]]) for at in highest]
    return [Span(moment - _FRAME, moment + _FRAME) for moment in moments]


def find_cut_end(samples: Samples, rate: int) -> list[Span]:
    """Find whether the recording ends in the middle of a sound."""
    level, size = measure_level(samples, rate), max(2, round(END_SECONDS * rate))
    if level > 0 and _rms(samples[-size:]) >= END_LEVEL * level:
        return [Span(max(0.0, (len(samples) - size) / rate), len(samples) / rate)]
    return []


def find_runs(holds: NDArray[np.bool_], shortest: int) -> list[tuple[int, int]]:
    """Find the first and last index (not included) of every run of at least `shortest` true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], holds, [False])).astype(np.int8)))
    pairs: list[tuple[int, int]] = [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
    return [(start, end) for start, end in pairs if end - start >= shortest]


def _is_peak(samples: Samples, start: int, end: int) -> bool:
    """Whether a run of equal samples is higher in magnitude than those on both its sides."""
    here = abs(float(samples[start]))
    before = abs(float(samples[start - 1])) if start > 0 else here
    after = abs(float(samples[end])) if end < len(samples) else here
    return before < here and after < here


def _frame_powers(samples: Samples, rate: int) -> NDArray[np.float64]:
    frame = max(1, round(_FRAME * rate))
    whole = samples[: len(samples) // frame * frame].reshape(-1, frame)
    powers: NDArray[np.float64] = np.einsum("ij,ij->i", whole, whole, dtype=np.float64) / frame
    return powers


def _rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if samples.size else 0.0
