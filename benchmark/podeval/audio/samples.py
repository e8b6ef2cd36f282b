"""The samples of a recording: floats with full scale ±1, shape (frames, channels).

This module checks them, collects them block by block, mixes them to mono and resamples them without filling memory:
large arrays are moved to an anonymous temporary file.
"""

import hashlib
import mmap
import shutil
import tempfile
from typing import IO, Any

import numpy as np
import soxr
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import BadAudio, BadInput, CannotScore, PodevalError

Samples = NDArray[np.float32]

MEMORY_BYTES = 256 * 2**20
"""Arrays up to this size are held in memory; larger ones in a temporary file (in `TMPDIR`)."""

FREE_BYTES = 256 * 2**20
"""Bytes that a temporary file leaves free on its disk, because a database there may need the space."""

BLOCK_FRAMES = 65_536
"""Number of frames processed at a time."""

_WRITE_BYTES = 4 * 2**20
_HELD_BYTES = 64 * 2**20

CANCELLED = 1e6
"""Ratio of a channel's energy to that of the channels' mean from which the channels count as cancelling each other (60
dB)."""

CANCELLED_FRAME = 30.0
"""The same ratio for a tenth of a second (15 dB): the channel has audible sound that is hardly present in the mean."""

_AUDIBLE = 1e-5
"""Power of the channels from which a frame counts as sound (−50 dB of full scale)."""

_LOUDEST = 32.0
"""Magnitude, 30 dB beyond full scale, that sound stored as floats of full scale ±1 never reaches."""

_BLOCK = 1 << 20
_MOST_CHANNELS = 64
_LONG = 60
"""Minimum length, in seconds, of a recording for which progress is reported."""


def convert_to_array(samples: Any) -> NDArray[Any]:
    """Convert samples from numpy, torch (any device or precision, with or without gradients) or a list to an array.

    Raises:
        BadAudio: rows have different lengths.
    """
    if hasattr(samples, "detach"):
        samples = samples.detach().cpu()
        samples = samples.float() if samples.is_floating_point() else samples
    try:
        array = np.asarray(samples)
    except ValueError:
        raise BadAudio("audio samples must be one array; these rows have different lengths") from None
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def read_samples(samples: NDArray[Any], rate: float) -> tuple[Samples, int, str]:
    """Check the axes and scale of samples; return the samples, their rate, and their hash as the content key.

    Raises:
        BadAudio: there are no samples or more than two axes, the axes are swapped, or some values are not numbers.
        BadInput: the rate is not positive.
    """
    # Check the shape.
    array = convert_to_array(samples)
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or array.size == 0:
        raise BadAudio(f"audio samples must be (frames,) or (frames, channels), not {array.shape}")
    if array.shape[1] > _MOST_CHANNELS:
        raise BadAudio(
            f"{array.shape[1]} channels of {array.shape[0]} frames are more than the {_MOST_CHANNELS} that "
            "podeval reads; samples must be (frames, channels), so transpose an array of (channels, frames)"
        )
    # Check the values and the rate.
    if np.issubdtype(array.dtype, np.integer):
        array = _from_integers(array)
    if not np.issubdtype(array.dtype, np.floating):
        raise BadAudio(f"audio samples must be numbers, not {array.dtype}")
    if not 1 <= rate < np.inf:
        raise BadInput(f"the sampling rate must be a positive number of Hz, not {rate}")
    # The content key is a hash of the samples themselves.
    array = np.ascontiguousarray(array, dtype=np.float32)
    digest = hashlib.sha256(f"{int(rate)} {array.shape}".encode())
    digest.update(array.data)
    return array, int(rate), digest.hexdigest()


def find_defect(samples: Samples) -> str | None:
    """Return the reason if nothing can be measured (non-finite samples or digital silence), otherwise None."""
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

    Speech is never so random, unlike samples read as the wrong type and the bytes of a compressed file.
    """
    with np.errstate(all="ignore"):
        head = np.asarray(samples[:_BLOCK], np.float64)
        return len(head) > 1 and not np.diff(head, axis=0).std() <= head.std()


def _from_integers(array: NDArray[Any]) -> NDArray[np.float64]:
    """Scale integers from the full range of their type.

    Raises:
        BadAudio: the values would fit a type with 16 fewer bits, so everything would be almost silent.
    """
    bounds = np.iinfo(array.dtype)
    half = 2.0 ** (bounds.bits - 1)
    reach = max(int(array.max()), -int(array.min()))
    if bounds.min and bounds.bits > 16 and 0 < reach <= half / 2**16:
        raise BadAudio(
            f"samples of {array.dtype} have their full scale at 2^{bounds.bits - 1}, but these reach only {reach}, "
            "like silence; if they are 16-bit samples, convert them with .astype('int16'), or give floats within ±1"
        )
    return array / half if bounds.min else array / half - 1.0


def read_stretch(samples: NDArray[np.floating], start: int, end: int) -> Samples:
    """Return the frames from `start` to `end`, with zeros outside the recording."""
    present, before = np.asarray(samples[max(start, 0) : end], dtype=np.float32), max(-start, 0)
    around = (before, end - start - before - len(present))
    return np.pad(present, [around, *[(0, 0)] * (present.ndim - 1)])


def let_go(samples: NDArray[np.float32]) -> None:
    """Release the memory of samples that were read from a buffer on disk; leave other arrays alone.

    Call this in code that reads the array through its memory address and therefore bypasses the array's own release.
    """
    owner: Any = samples
    # Release only a buffer's own file, because written data could be lost in other kinds of memmap.
    while owner is not None and not isinstance(owner, _OnDisk):
        owner = getattr(owner, "base", None)
    mapping = getattr(owner, "_mmap", None)
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


class SampleBuffer:
    """Collects blocks of samples of unknown total length into one float32 array.

    Args:
        channels: number of channels of the blocks, `(frames, channels)`; None for blocks of shape `(frames,)`.
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

        The buffer is empty afterwards. A memmap is pickled by value: pass a path to other processes instead.
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

    Released data stays in the file and usually in the system's cache; the only cost is reading it again.
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
        CannotScore: the channels cancel each other.
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
