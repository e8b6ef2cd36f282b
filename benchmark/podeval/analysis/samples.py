"""Samples that a caller has, as a recording holds them: floats of full scale ±1, shape (frames, channels)."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.audio.resample import mix_to_mono
from podeval.errors import BadAudio, BadInput, CannotScore
from podeval.models.interfaces import Samples

CANCELLED = 1e6
"""Ratio of a channel's energy to the mean's from which the channels count as cancelling each other (60 dB)."""

CANCELLED_FRAME = 30.0
"""The same ratio for a tenth of a second (15 dB): sound that is heard and that the mean hardly has."""

_AUDIBLE = 1e-5
"""Power of the channels from which a frame counts as sound (−50 dB of full scale)."""

_BLOCK = 1 << 20
_MOST_CHANNELS = 64


@contextmanager
def keep_in_file(data: bytes) -> Iterator[str]:
    """Keep the bytes of an audio file in a file; what is said of that file inside the block is said of the recording.

    Raises:
        BadAudio: as raised inside the block.
    """
    with tempfile.NamedTemporaryFile(prefix="podeval-") as file:
        file.write(data)
        file.flush()
        try:
            yield file.name
        except BadAudio as error:
            raise BadAudio(str(error).replace(f"'{file.name}'", "the recording")) from error


def read_samples(samples: NDArray[Any], rate: float) -> tuple[Samples, int, str]:
    """Return samples with their axes and scale checked, their rate, and a content key that is a hash of them.

    Raises:
        BadAudio: there are no samples, more than two axes, swapped axes, or values that are not numbers.
        BadInput: the rate is not positive.
    """
    # The shape.
    try:
        array = np.asarray(samples)
    except ValueError:
        raise BadAudio("audio samples must be one array; these rows have different lengths") from None
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or array.size == 0:
        raise BadAudio(f"audio samples must be (frames,) or (frames, channels), not {array.shape}")
    if array.shape[1] > _MOST_CHANNELS:
        raise BadAudio(
            f"{array.shape[1]} channels of {array.shape[0]} frames are more than the {_MOST_CHANNELS} that "
            "are read; samples must be (frames, channels), so transpose an array of (channels, frames)"
        )
    # The values and the rate.
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


def measure_cancelled(samples: Samples, rate: int) -> float:
    """Return for which share of a recording something sounds in its channels that cancels in their mean.

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


def _from_integers(array: NDArray[Any]) -> NDArray[np.float64]:
    bounds = np.iinfo(array.dtype)
    half = 2.0 ** (bounds.bits - 1)
    return array / half if bounds.min else array / half - 1.0


def _energy(samples: Samples) -> float:
    blocks = (samples[start : start + _BLOCK] for start in range(0, len(samples), _BLOCK))
    return sum(float(np.sum(np.square(block, dtype=np.float64))) for block in blocks)
