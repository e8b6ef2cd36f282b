"""Audio that a caller has, in whatever form, and samples as a recording contains them.

Those are floats of full scale ±1, shape (frames, channels).
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.audio.decode import DEFAULT_LIMITS
from podeval.audio.resample import mix_to_mono
from podeval.errors import BadAudio, BadInput, CannotScore
from podeval.models.interfaces import Samples
from podeval.text.missing_value import is_missing

FORMS = (
    "a path, the bytes of a file, an open file, (samples, rate), {'array', 'sampling_rate'}, or a row of a datasets "
    "audio column"
)
_RATES = ("sampling_rate", "sample_rate")
_VALUES = ("bytes", "array", "waveform", "audio", "path")
OBJECT_KEYS = frozenset({*_VALUES, *_RATES})
"""Keys of which an audio object has some, as a mapping of recordings by speaker has not."""

CANCELLED = 1e6
"""Ratio of a channel's energy to the mean's from which the channels count as cancelling each other (60 dB)."""

CANCELLED_FRAME = 30.0
"""The same ratio for a tenth of a second (15 dB): sound that is heard and that the mean hardly has."""

_AUDIBLE = 1e-5
"""Power of the channels from which a frame counts as sound (−50 dB of full scale)."""

_BLOCK = 1 << 20
_MOST_CHANNELS = 64


def read_audio(source: Any) -> "Path | bytes | tuple[NDArray[Any], float] | None":
    """Read audio in any form in which a program has it: one of `FORMS`, a dict of a `transformers` pipeline, a decoder.

    Returns:
        The path of a file, the bytes of one, or samples of shape (frames,) or (frames, channels) with their rate; None
        where the recording is missing.

    Raises:
        BadInput: it is none of these forms, or samples lack their rate.
    """
    if is_missing(source):
        return None
    if isinstance(source, str | os.PathLike):
        return Path(source)
    if hasattr(source, "read"):
        # A file that is open, or was just written in memory; one of soundfile's gives samples.
        if hasattr(source, "seek"):
            source.seek(0)
        content = source.read()
        source = content if isinstance(content, bytes) else (content, getattr(source, "samplerate", None))
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if is_samples(source):
        samples, rate = source if _is_array(source[0]) else reversed(source)
        return _orient(samples), _read_rate(rate)
    # A decoder of torchcodec, or what it decodes to, whose channels come first.
    decoded = source.get_all_samples() if hasattr(source, "get_all_samples") else source
    if hasattr(decoded, "sample_rate") and hasattr(decoded, "data"):
        return convert_to_array(decoded.data).T, _read_rate(decoded.sample_rate)
    # An object with keys: of `datasets`, of a pipeline, or a row with such an object.
    try:
        audio = source if isinstance(source, Mapping) else {key: source[key] for key in ("array", "sampling_rate")}
    except (TypeError, LookupError):
        raise BadInput(
            f"audio is {FORMS}, not {type(source).__name__}; samples without their rate cannot be measured"
        ) from None
    for name in _VALUES:
        value = audio.get(name)
        if name == "audio" and isinstance(value, list | tuple) and len(value) > 1 and _is_array(value[0]):
            raise BadInput(f"`audio` has {len(value)} arrays; give each as a recording of its own, with its rate")
        if _is_array(value):
            return _orient(value), _read_rate(next((audio[rate] for rate in _RATES if rate in audio), None))
        if not is_missing(value) and name != "array":
            return read_audio(value)
    if set(_VALUES).isdisjoint(audio) or not is_missing(audio.get("array")):
        given = ", ".join(map(str, audio))
        raise BadInput(f"an audio object needs `bytes`, `path`, or `array` with `sampling_rate`; it has {given}")
    return None


def is_samples(source: Any) -> bool:
    """Return whether it is samples with their rate in either order, as Gradio and SciPy have it, not two recordings."""
    if not isinstance(source, list | tuple) or len(source) != 2:
        return False
    return any(_is_array(samples) and _is_number(rate) for samples, rate in (source, source[::-1]))


def list_rows(source: Any, column: str = "") -> Any:
    """Return the rows of a dataset or a column of `datasets` with its audio undecoded; anything else as it is.

    podeval decodes by itself, because `datasets` needs torchcodec for that. Of a dataset with one column of audio that
    column is returned.

    Raises:
        BadInput: it has several splits.
    """
    if hasattr(source, "column_name") and hasattr(source.source, "cast_column"):
        return list_rows(source.source, source.column_name)
    if hasattr(source, "iterrows"):
        return source.to_dict("records")
    if not hasattr(source, "cast_column"):
        return source
    if isinstance(source, Mapping):
        raise BadInput(f"a dataset has several splits; give one of {', '.join(map(str, source))}: dataset[split]")
    from datasets import Audio

    names = [name for name, feature in (source.features or {}).items() if isinstance(feature, Audio)]
    for name in names:
        source = source.cast_column(name, Audio(decode=False))
    column = column or (names[0] if len(names) == 1 else "")
    return source[column] if column else source


def convert_to_array(samples: Any) -> NDArray[Any]:
    """Convert samples of numpy, torch (on any device, of any precision, with gradients) or a list to an array.

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


def _orient(samples: Any) -> NDArray[Any]:
    """Return samples of one recording, frames first where there are more columns than rows."""
    array = convert_to_array(samples)
    array = array[0] if array.ndim == 3 and len(array) == 1 else array
    return array.T if array.ndim == 2 and array.shape[0] < array.shape[1] else array


def _is_number(value: Any) -> bool:
    # A data loader gives rates as arrays of one.
    number = isinstance(value, Real) or getattr(value, "shape", None) in ((), (1,))
    return number and not isinstance(value, str | bytes | bool | np.bool_)


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _read_rate(rate: Any) -> float:
    limits, value = DEFAULT_LIMITS, getattr(rate, "item", lambda: rate)() if _is_number(rate) else 0
    if not limits.min_rate <= value <= limits.max_rate:
        raise BadInput(
            f"audio given as an array needs its `sampling_rate` in Hz, not {rate!r}; "
            f"{limits.min_rate} to {limits.max_rate} Hz are read"
        )
    return float(value)


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
    array = convert_to_array(samples)
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
    """Scale integers from the full range of their type.

    Raises:
        BadAudio: the values are those of a type with 16 bits less, as if everything were silence.
    """
    bounds = np.iinfo(array.dtype)
    half = 2.0 ** (bounds.bits - 1)
    reach = max(int(array.max()), -int(array.min()))
    if bounds.min and bounds.bits > 16 and 0 < reach <= half / 2**16:
        raise BadAudio(
            f"samples of {array.dtype} have their full scale at 2^{bounds.bits - 1}, and these reach only {reach}, as "
            "silence would; if they are 16-bit samples, convert them with .astype('int16'), or give floats within ±1"
        )
    return array / half if bounds.min else array / half - 1.0


def _energy(samples: Samples) -> float:
    blocks = (samples[start : start + _BLOCK] for start in range(0, len(samples), _BLOCK))
    return sum(float(np.sum(np.square(block, dtype=np.float64))) for block in blocks)
