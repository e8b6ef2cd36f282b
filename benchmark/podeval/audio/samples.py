"""The samples of a recording: floats with full scale ±1, shape (frames, channels).

This module collects samples block by block, mixes them to mono, resamples them, measures their level and constant
offset, and finds the silence at their ends. To limit memory use, samples are read block by block, and large arrays are
moved to an anonymous temporary file.
"""

import mmap
import shutil
import tempfile
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import soxr
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import CannotScore, PodevalError

Samples = NDArray[np.float32]

MEMORY_BYTES = 256 * 2**20
"""Arrays up to this size in bytes are kept in memory, and larger arrays in a temporary file (in `TMPDIR`)."""

FREE_BYTES = 256 * 2**20
"""Number of bytes that a temporary file leaves free on its disk, because a database on that disk may need the space."""

BLOCK_FRAMES = 65_536
"""Number of frames processed at a time."""

_WRITE_BYTES = 4 * 2**20
_HELD_BYTES = 64 * 2**20

CANCELLED = 1e6
"""The channels count as cancelling each other out if a channel has at least this many times the energy (60 dB) of their
mean.
"""

CANCELLED_FRAME = 30.0
"""The same ratio for a tenth of a second (15 dB); above it, the channel has audible sound that is barely present in the
mean.
"""

_AUDIBLE = 1e-5
"""Minimum power of the channels for a frame to count as sound (−50 dB relative to full scale)."""

_LOUDEST = 32.0
"""Magnitude, 30 dB beyond full scale, that sound stored as floats of full scale ±1 never reaches."""

_BLOCK = 1 << 20
"""Number of samples, or of frames, that are read at a time."""
_LONG = 60
"""Minimum length, in seconds, of a recording for which progress is reported."""

OFFSET, SLIGHT_OFFSET, OFFSET_CHANGE, OFFSET_FRAMES = 0.1, 0.01, 0.02, 101
"""Limits for the constant offset, relative to the recording's level: an offset above the first is a fault, an offset
below the second is ignored, and parts whose offsets differ by more than the third are corrected separately. The offset
is the median of the means of `OFFSET_FRAMES` frames: 2 s, longer than any asymmetric sound.
"""

SILENT, SILENT_SECONDS, SILENT_SAMPLE = 1e-5, 2.0, 0.03
"""Limits for silence: the maximum power of a silent frame relative to the loudest, the longest pause in seconds, and
the maximum magnitude of a sample in the silence at an end, relative to the recording's level."""

FRAME = 0.02
"""Length of a frame in seconds."""


def find_defect(samples: Samples) -> str | None:
    """Return the reason why nothing can be measured (non-finite samples or digital silence), or None."""
    reach = 0.0
    for start in range(0, len(samples), _BLOCK):
        block = samples[start : start + _BLOCK]
        if not np.isfinite(block).all():
            return "contains samples that are not numbers (NaN or infinity); export it again"
        reach = max(reach, float(np.abs(block).max()))
    if reach > _LOUDEST:
        return f"has samples of up to {reach:.6g}, like integers stored as floats; full scale is ±1"
    return None if reach else "is digital silence from beginning to end; check how it was exported"


def is_like_noise(samples: NDArray[Any]) -> bool:
    """Return whether samples are as random as noise: neighbours differ at least as much as samples vary overall.

    Speech is never that random, unlike samples read as the wrong type and the bytes of a compressed file.
    """
    with np.errstate(all="ignore"):
        head = np.asarray(samples[:_BLOCK], np.float64)
        return len(head) > 1 and not np.diff(head, axis=0).std() <= head.std()


def read_stretch(samples: NDArray[np.floating], start: int, end: int) -> Samples:
    """Return the frames from `start` to `end`, with zeros outside the recording."""
    present, before = np.asarray(samples[max(start, 0) : end], dtype=np.float32), max(-start, 0)
    around = (before, end - start - before - len(present))
    return np.pad(present, [around, *[(0, 0)] * (present.ndim - 1)])


def let_go(samples: NDArray[np.float32]) -> None:
    """Release the memory of samples that were read from a buffer on disk; leave other arrays unchanged.

    Call this in code that reads the array through its memory address and therefore bypasses the array's own release.
    """
    owner: Any = samples
    # Release only the file of a buffer, because other kinds of memmap could lose written data.
    while owner is not None and not isinstance(owner, _OnDisk):
        owner = getattr(owner, "base", None)
    mapping = getattr(owner, "_mmap", None)
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


class SampleBuffer:
    """Collects blocks of samples of unknown total length into one float32 array.

    Args:
        channels: number of channels in the blocks, `(frames, channels)`; None for blocks of shape `(frames,)`.
        memory_bytes: size above which the samples are written to a temporary file.
    """

    def __init__(self, channels: int | None = None, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._row: tuple[int, ...] = () if channels is None else (channels,)
        self._row_bytes = 4 * (1 if channels is None else channels)
        self._memory_bytes = memory_bytes
        self._blocks: list[NDArray[np.float32]] = []
        self._file: IO[bytes] | None = None
        self._pending = 0
        self.frames = 0

    @property
    def nbytes(self) -> int:
        """Number of bytes collected so far."""
        return self.frames * self._row_bytes

    def append(self, block: NDArray[np.float32]) -> None:
        """Append a copy of a block.

        Args:
            block: float32 samples, `(frames,)` or `(frames, channels)`, as specified when the buffer was created.

        Raises:
            PodevalError: the disk that contains the temporary file is full.
        """
        self._blocks.append(np.array(block, dtype=np.float32, order="C"))
        self.frames += len(block)
        self._pending += len(block) * self._row_bytes
        if self.nbytes > self._memory_bytes and self._pending >= min(self._memory_bytes, _WRITE_BYTES):
            self._spill()

    def finish(self) -> NDArray[np.float32]:
        """Return the samples: an array in memory, or an `np.memmap` of an unnamed file that is deleted with the array.

        The buffer is empty afterwards. A memmap is pickled by value, so pass a path to other processes instead.
        """
        shape = (self.frames, *self._row)
        if self._file is not None:
            self._spill()
            with self._file as file:
                self._file, self.frames = None, 0
                return _OnDisk(file, dtype=np.float32, mode="r+", shape=shape)
        samples = np.empty(shape, dtype=np.float32)
        at = 0
        # Release blocks one by one, so that their pages are freed while pages of the result are used.
        for index, block in enumerate(self._blocks):
            samples[at : at + len(block)] = block
            at += len(block)
            self._blocks[index] = samples[:0]
        self._blocks, self._pending, self.frames = [], 0, 0
        return samples

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="podeval-")  # noqa: SIM115 - outlives this call
        try:
            if shutil.disk_usage(tempfile.gettempdir()).free < FREE_BYTES + self._pending:
                raise OSError("too little space left")
            for block in self._blocks:
                self._file.write(block.data)
            self._file.flush()
        except OSError as error:
            self._file.close()
            raise PodevalError(
                f"The decoded audio does not fit into {tempfile.gettempdir()} ({error}): free some space "
                "there, or set TMPDIR to a folder on a larger disk."
            ) from error
        self._blocks, self._pending = [], 0


class _OnDisk(np.memmap[Any, np.dtype[np.float32]]):
    """A memmap that releases the memory of samples once they have been read, so a long recording does not occupy
    memory.

    Released data stays in the file and usually in the system's cache; the only cost is having to read it again.
    """

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self._handed_out = 0

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        self._handed_out += getattr(part, "nbytes", 0)
        if self._handed_out > _HELD_BYTES:
            self._handed_out = 0
            let_go(self)
        return part

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return the results of arithmetic as plain arrays in memory."""
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain


def mix_to_mono(samples: NDArray[np.float32], *, memory_bytes: int = MEMORY_BYTES) -> NDArray[np.float32]:
    """Mix down to mono by averaging the channels.

    Args:
        samples: `(frames, channels)`, or `(frames,)`, which is returned unchanged.
        memory_bytes: a larger result is an `np.memmap` of a temporary file.

    Returns:
        `(frames,)` float32; a view if there is only one channel.
    """
    if samples.ndim == 1:
        return samples
    if samples.shape[1] == 1:
        return samples[:, 0]
    buffer = SampleBuffer(memory_bytes=memory_bytes)
    for start in range(0, len(samples), BLOCK_FRAMES):
        block = samples[start : start + BLOCK_FRAMES]
        # Use double precision, so that the sum of large float samples cannot overflow.
        buffer.append(np.asarray(block.mean(axis=1, dtype=np.float64), dtype=np.float32))
    return buffer.finish()


def resample(
    samples: NDArray[np.float32], rate: int, target_rate: int, *, memory_bytes: int = MEMORY_BYTES
) -> NDArray[np.float32]:
    """Change the sample rate with the SoX resampler at quality HQ, in blocks.

    The result equals a one-shot `soxr.resample(samples, rate, target_rate, quality="HQ")` and has
    `frames * target_rate / rate` frames, rounded to the nearest (0.5 upwards); the filter's delay is compensated.
    If the rates are equal, the same array is returned.

    Args:
        samples: `(frames,)` or `(frames, channels)`, float32.
        rate: sample rate of `samples` in Hz.
        target_rate: sample rate of the result in Hz.
        memory_bytes: a larger result is an `np.memmap` of a temporary file.
    """
    if rate == target_rate:
        return samples
    channels = None if samples.ndim == 1 else samples.shape[1]
    stream = soxr.ResampleStream(rate, target_rate, channels or 1, dtype="float32", quality="HQ")
    buffer = SampleBuffer(channels, memory_bytes=memory_bytes)
    for start in range(0, max(len(samples), 1), BLOCK_FRAMES):
        # Make a plain, contiguous array, because soxr refuses memmaps and reads only rows.
        block = np.ascontiguousarray(np.asarray(samples[start : start + BLOCK_FRAMES]), dtype=np.float32)
        buffer.append(stream.resample_chunk(block, last=start + BLOCK_FRAMES >= len(samples)))
        if len(samples) > _LONG * rate:
            progress.report("resampling", min(start + BLOCK_FRAMES, len(samples)) / rate, len(samples) / rate)
    return buffer.finish()


def mix_channels(samples: Samples) -> Samples:
    """Return the mean of the channels, shape (frames,).

    Raises:
        CannotScore: the channels cancel each other out.
    """
    mixed = mix_to_mono(samples)
    channels = samples.shape[1]
    if channels > 1 and 0 < _energy(samples) / channels > CANCELLED * _energy(mixed):
        raise CannotScore("the recording is silent once its channels are averaged, because they cancel each other out")
    return mixed


def _energy(samples: Samples) -> float:
    blocks = (samples[start : start + _BLOCK] for start in range(0, len(samples), _BLOCK))
    return sum(float(np.sum(np.square(block, dtype=np.float64))) for block in blocks)


def measure_cancelled(samples: Samples, rate: int) -> float:
    """Return the share of a recording in which sound in its channels cancels out in their mean.

    Args:
        samples: shape (frames, channels).
        rate: Hz.
    """
    channels, frame = samples.shape[1], max(rate // 10, 1)
    frames = len(samples) // frame
    if channels < 2 or not frames:
        return 0.0
    cancelled = 0
    step = max(_BLOCK // frame, 1)
    for start in range(0, frames, step):
        block = samples[start * frame : min(start + step, frames) * frame]
        power = np.mean(np.square(block, dtype=np.float64).reshape(-1, frame * channels), axis=1)
        mixed = np.mean(np.square(block.mean(axis=1, dtype=np.float64)).reshape(-1, frame), axis=1)
        cancelled += int(np.sum((power > _AUDIBLE) & (power > CANCELLED_FRAME * mixed)))
    return cancelled / frames


def measure_level(samples: Samples, rate: int) -> float:
    """Measure the root mean square of the louder half of the 20 ms frames; 0 for silence.

    Silence at the ends and silence longer than 2 s are ignored, so silence added at the end does not change the level.
    """
    return _measure_level(measure_powers(samples, rate))


def measure_sounding(samples: Samples, rate: int) -> float:
    """Measure how many seconds of a recording can contain faults, excluding silence at the ends and silence longer than
    2 s.
    """
    silent = int(np.count_nonzero(~find_sounding_frames(measure_powers(samples, rate))))
    return max(FRAME, len(samples) / rate - silent * FRAME)


def find_sounding_frames(powers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask, (frames,), of the 20 ms frames that belong to sound or to pauses shorter than 2 s in it."""
    sounding = np.ones(len(powers), dtype=bool)
    for start, end in find_runs(powers <= SILENT * powers.max(initial=0.0), 1):
        if start == 0 or end == len(powers) or end - start >= round(SILENT_SECONDS / FRAME):
            sounding[start:end] = False
    return sounding


def remove_offset(samples: Samples, rate: int) -> Samples:
    """Return the samples without their constant offset, or unchanged if the offset is negligible.

    Parts with different offsets, for example in two joined recordings, are corrected separately.
    """
    offsets = measure_offset(samples, rate)
    if not offsets.any():
        return samples
    frame, buffer = max(1, round(FRAME * rate)), SampleBuffer()
    # The offset of the last whole frame is also used for the samples after it.
    offsets, count = np.append(offsets, offsets[-1]), max(1, _BLOCK // frame)
    for first in range(0, len(offsets), count):
        block = samples[first * frame : (first + count) * frame]
        buffer.append(block - np.repeat(offsets[first : first + count], frame)[: len(block)])
    return buffer.finish()


def measure_offset(samples: Samples, rate: int) -> NDArray[np.float32]:
    """Measure the constant offset in every 20 ms frame: the same value for all frames unless the offset changes, and 0
    if the offset is slight.
    """
    from scipy.ndimage import median_filter

    powers, frame = measure_powers(samples, rate), max(1, round(FRAME * rate))
    if not len(powers):
        return np.zeros(0, np.float32)
    means = _sum_frames("ij->i", samples, frame) / frame
    # The offset is taken exactly from the quietest frames, so that digital silence becomes silence again.
    spreads = powers - means**2
    constant = float(np.median(means[spreads <= np.quantile(spreads, 0.1)]))
    level = _measure_level(powers - 2 * constant * means + constant**2)
    changes: NDArray[np.float64] = median_filter(means - constant, OFFSET_FRAMES, mode="reflect")
    if np.abs(changes).max() > OFFSET_CHANGE * level:
        return (constant + changes).astype(np.float32)
    slight = abs(constant) <= SLIGHT_OFFSET * level
    return np.full(len(means), 0.0 if slight else constant, np.float32)


def find_sound(samples: Samples, rate: int) -> tuple[int, int]:
    """Return the first sample after the initial silence, and the sample after the last sound; 0, 0 if there is none."""
    return find_ends(samples, SILENT_SAMPLE * measure_level(samples, rate))


def find_ends(samples: Samples, limit: float = 0.0) -> tuple[int, int]:
    """Return the first sample above a limit in magnitude, and the sample after the last; 0, 0 if there is none."""
    blocks = ((begin, np.abs(samples[begin : begin + _BLOCK]) > limit) for begin in range(0, len(samples), _BLOCK))
    parts = [begin + np.flatnonzero(loud)[[0, -1]] for begin, loud in blocks if loud.any()]
    return (int(parts[0][0]), int(parts[-1][1]) + 1) if parts else (0, 0)


def describe_silent_ends(samples: Samples, rate: int) -> str:
    """Describe the silence at the ends of a recording in a sentence; empty if no silence is longer than a pause.

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

    With `at_ends`, shorter runs at the ends of the array also count, because these runs may continue beyond the array.
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
    """Sum each whole frame with `einsum`, shape (frames,); `of` contains the frames once, or twice to sum squares."""
    count = len(samples) // frame
    sums, step = np.zeros(count), max(1, _BLOCK // frame)
    for first in range(0, count, step):
        frames = samples[first * frame : min(count, first + step) * frame].reshape(-1, frame)
        np.einsum(of, *[frames] * of.count("ij"), dtype=np.float64, out=sums[first : first + step])
    return sums
