"""Mixes to mono and changes the sample rate, in blocks."""

import numpy as np
import soxr
from numpy.typing import NDArray

from podeval import progress
from podeval.audio.sample_buffer import BLOCK_FRAMES, MEMORY_BYTES, SampleBuffer

_LONG = 60
"""Minimum seconds for progress to be reported."""


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
        # In double precision, so that the sum of large float samples cannot overflow.
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
        rate: sample rate of `samples`, Hz.
        target_rate: sample rate of the result, Hz.
        memory_bytes: a larger result is an `np.memmap` of a temporary file.
    """
    if rate == target_rate:
        return samples
    channels = None if samples.ndim == 1 else samples.shape[1]
    stream = soxr.ResampleStream(rate, target_rate, channels or 1, dtype="float32", quality="HQ")
    buffer = SampleBuffer(channels, memory_bytes=memory_bytes)
    for start in range(0, max(len(samples), 1), BLOCK_FRAMES):
        # A plain, contiguous array: soxr refuses memmaps and reads rows only.
        block = np.ascontiguousarray(np.asarray(samples[start : start + BLOCK_FRAMES]), dtype=np.float32)
        buffer.append(stream.resample_chunk(block, last=start + BLOCK_FRAMES >= len(samples)))
        if len(samples) > _LONG * rate:
            progress.report("resampling", min(start + BLOCK_FRAMES, len(samples)) / rate, len(samples) / rate)
    return buffer.finish()
