"""The level of a recording, its constant offset, and the silence at its ends.

Samples are read block by block, because a long recording is on disk; values per frame are kept in memory.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import SampleBuffer, Samples

OFFSET, SLIGHT_OFFSET, OFFSET_CHANGE, OFFSET_FRAMES = 0.1, 0.01, 0.02, 101
"""Limits of the constant offset, relative to the recording's level: above the first it is a fault, below the second it
is ignored, and parts whose offsets differ by more than the third are corrected separately. The offset is the median of
the means of `OFFSET_FRAMES` frames: 2 s, longer than any asymmetric sound."""

SILENT, SILENT_SECONDS, SILENT_SAMPLE = 1e-5, 2.0, 0.03
"""Maximum power of a silent frame, relative to the loudest; longest silence, in seconds, that is a pause; and maximum
magnitude of a sample in the silence at an end, relative to the recording's level."""

FRAME = 0.02
"""Length of a frame in seconds."""

BANDWIDTH_WINDOW, BANDWIDTH_DECIBELS = 2048, 60.0
"""Number of samples of a window, and the level, in dB below that of the strongest frequency, above which there is
sound."""

_BLOCK = 1 << 20
"""Number of samples that are read at a time."""


def measure_level(samples: Samples, rate: int) -> float:
    """Measure the root mean square of the louder half of the 20 ms frames; 0 for silence.

    Silence at the ends and silence longer than 2 s are ignored, so appended silence does not change the level.
    """
    return _measure_level(measure_powers(samples, rate))


def measure_sounding(samples: Samples, rate: int) -> float:
    """Measure how many seconds can contain faults, excluding silence at the ends and silence longer than 2 s."""
    silent = int(np.count_nonzero(~find_sounding_frames(measure_powers(samples, rate))))
    return max(FRAME, len(samples) / rate - silent * FRAME)


def measure_bandwidth(samples: Samples, rate: int) -> float:
    """Measure the highest frequency, in Hz, whose power is within 60 dB of the strongest.

    The power is that of the whole recording (Welch's periodogram in windows of `BANDWIDTH_WINDOW` samples), so a band
    limit from a codec, a telephone or earlier resampling is visible at any file rate; 0 for silence.
    """
    from scipy.signal import welch

    window = min(BANDWIDTH_WINDOW, len(samples))
    if window < 2:
        return 0.0
    frequencies, power = welch(samples, rate, nperseg=window)
    loud = np.flatnonzero(power > power.max(initial=0.0) * 10 ** (-BANDWIDTH_DECIBELS / 10))
    return float(frequencies[loud[-1]]) if loud.size else 0.0


def find_sounding_frames(powers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which 20 ms frames belong to sound or short pauses, not to silence at an end or longer than 2 s,
    (frames,).
    """
    sounding = np.ones(len(powers), dtype=bool)
    for start, end in find_runs(powers <= SILENT * powers.max(initial=0.0), 1):
        if start == 0 or end == len(powers) or end - start >= round(SILENT_SECONDS / FRAME):
            sounding[start:end] = False
    return sounding


def remove_offset(samples: Samples, rate: int) -> Samples:
    """Return the samples without their constant offset, or unchanged if it is negligible.

    Parts with different offsets, for example in two joined recordings, are corrected separately.
    """
    offsets = measure_offset(samples, rate)
    if not offsets.any():
        return samples
    frame, buffer = max(1, round(FRAME * rate)), SampleBuffer()
    # Samples after the last whole frame use the offset of that frame.
    offsets, count = np.append(offsets, offsets[-1]), max(1, _BLOCK // frame)
    for first in range(0, len(offsets), count):
        block = samples[first * frame : (first + count) * frame]
        buffer.append(block - np.repeat(offsets[first : first + count], frame)[: len(block)])
    return buffer.finish()


def measure_offset(samples: Samples, rate: int) -> NDArray[np.float32]:
    """Measure the constant offset in every 20 ms frame: the same value for all frames unless the offset changes, and 0
    if it is slight.
    """
    from scipy.ndimage import median_filter

    powers, frame = measure_powers(samples, rate), max(1, round(FRAME * rate))
    if not len(powers):
        return np.zeros(0, np.float32)
    means = _sum_frames("ij->i", samples, frame) / frame
    # The quietest frames have the exact offset, so digital silence becomes silence again.
    spreads = powers - means**2
    constant = float(np.median(means[spreads <= np.quantile(spreads, 0.1)]))
    level = _measure_level(powers - 2 * constant * means + constant**2)
    changes: NDArray[np.float64] = median_filter(means - constant, OFFSET_FRAMES, mode="reflect")
    if np.abs(changes).max() > OFFSET_CHANGE * level:
        return (constant + changes).astype(np.float32)
    slight = abs(constant) <= SLIGHT_OFFSET * level
    return np.full(len(means), 0.0 if slight else constant, np.float32)


def find_sound(samples: Samples, rate: int) -> tuple[int, int]:
    """Return the first sample after the initial silence, and the sample after the last sound; 0, 0 without sound."""
    return find_ends(samples, SILENT_SAMPLE * measure_level(samples, rate))


def find_ends(samples: Samples, limit: float = 0.0) -> tuple[int, int]:
    """Return the first sample above a limit in magnitude, and the sample after the last; 0, 0 if there is none."""
    blocks = ((begin, np.abs(samples[begin : begin + _BLOCK]) > limit) for begin in range(0, len(samples), _BLOCK))
    parts = [begin + np.flatnonzero(loud)[[0, -1]] for begin, loud in blocks if loud.any()]
    return (int(parts[0][0]), int(parts[-1][1]) + 1) if parts else (0, 0)


def describe_silent_ends(samples: Samples, rate: int) -> str:
    """Describe the silence at the ends of a recording in a sentence; empty if it is no longer than a pause.

    Args:
        samples: the mean of the recording's channels, shape (frames,).
        rate: the sampling rate in Hz.
    """
    first, last = find_sound(remove_offset(samples, rate), rate)
    ends = {"beginning": first / rate, "end": (len(samples) - last) / rate}
    long = [f"{seconds:.1f} s of silence at the {end}" for end, seconds in ends.items() if seconds >= SILENT_SECONDS]
    return " and ".join(long) if last else ""


def find_runs(holds: NDArray[np.bool_], shortest: int, *, at_ends: bool = False) -> list[tuple[int, int]]:
    """Find the first index and the end index (exclusive) of every run of at least `shortest` true values.

    With `at_ends`, shorter runs at the ends of the array also count, because they may continue beyond it.
    """
    edges = np.flatnonzero(np.diff(holds, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    long = (ends - starts >= shortest) | (at_ends & ((starts == 0) | (ends == len(holds))))
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


def find_runs_by_block(
    mark: Callable[[int, int], NDArray[np.bool_]], length: int, block: int, shortest: int
) -> list[tuple[int, int]]:
    """Find runs of true values as `find_runs` does, in an array that is never completely in memory.

    Args:
        mark: function that returns the part of the array from one index to another (exclusive).
        length: length of the array.
        block: number of values computed at a time.
        shortest: length of the shortest run.
    """
    runs: list[tuple[int, int]] = []
    for begin in range(0, length, block):
        for start, end in find_runs(mark(begin, min(length, begin + block)), shortest, at_ends=True):
            continues = runs and runs[-1][1] == begin + start
            runs.append((runs.pop()[0] if continues else begin + start, begin + end))
    return [(start, end) for start, end in runs if end - start >= shortest]


def _measure_level(powers: NDArray[np.float64]) -> float:
    powers = powers[find_sounding_frames(powers)]
    return float(np.sqrt(np.mean(powers[powers >= np.median(powers)]))) if powers.size else 0.0


def measure_powers(samples: Samples, rate: int) -> NDArray[np.float64]:
    """Measure the power of every 20 ms frame, (frames,)."""
    frame = max(1, round(FRAME * rate))
    return np.asarray(_sum_frames("ij,ij->i", samples, frame) / frame)


def _sum_frames(of: str, samples: Samples, frame: int) -> NDArray[np.float64]:
    """Sum each whole frame with `einsum`; `of` contains the frames once, or twice to sum their squares, (frames,)."""
    count = len(samples) // frame
    sums, step = np.zeros(count), max(1, _BLOCK // frame)
    for first in range(0, count, step):
        frames = samples[first * frame : min(count, first + step) * frame].reshape(-1, frame)
        np.einsum(of, *[frames] * of.count("ij"), dtype=np.float64, out=sums[first : first + step])
    return sums
