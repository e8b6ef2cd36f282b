"""The forms in which programs pass recordings: samples with their rate, library objects, dataset rows."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.audio.decode import DEFAULT_LIMITS
from podeval.audio.samples import Samples
from podeval.errors import BadAudio, BadInput, is_missing

FORMS = (
    "a path, the bytes of a file, an open file, (samples, rate), {'array', 'sampling_rate'}, or a row of a datasets "
    "audio column"
)
_RATES = ("sampling_rate", "sample_rate")
_VALUES = ("bytes", "array", "waveform", "audio", "path")
OBJECT_KEYS = frozenset({*_VALUES, *_RATES})
"""Keys of an audio object, which distinguish it from a mapping of recordings by speaker."""


def list_collection(source: Any) -> list[Any] | None:
    """List the recordings in a collection; return None for a single or a missing recording.

    Raises:
        BadInput: the collection contains no recordings, or samples lack their rate.
    """
    if is_missing(source):
        return None
    source = list_rows(source)
    if (
        isinstance(source, bytes | bytearray | memoryview | Mapping)
        or is_samples(source)
        or not isinstance(source, Iterable)
        or not any(hasattr(source, name) for name in ("__len__", "cast_column", "column_name"))
        or any(hasattr(source, name) for name in ("get_all_samples", "open_recording", "raw_data"))
    ):
        return None
    if _is_bare_samples(source):
        raise BadInput("samples without their rate cannot be measured: give (samples, rate), with the rate in Hz")
    many = list(source)
    if isinstance(source, Sequence) and not many:
        raise BadInput("there is nothing to score in an empty list; give one recording or more")
    return many


def _is_bare_samples(source: Any) -> bool:
    """Return whether `source` is an array or list of numbers; a table column may contain recordings, or no values at
    all.
    """
    if hasattr(source, "dtype") and hasattr(source, "ndim"):
        kind = str(source.dtype).removeprefix("torch.").rstrip("0123456789")
        return kind in ("float", "bfloat", "int", "uint") and not all(map(is_missing, source))
    numbers = isinstance(source, Sequence) and bool(source) and isinstance(source[0], int | float)
    return numbers and not is_missing(source[0])


def read_name(source: Any) -> str:
    """Return the name of the file from which an object of `datasets`, or a row containing such an object, was read."""
    audio = source.get("audio", source) if isinstance(source, Mapping) else None
    path = audio.get("path") if isinstance(audio, Mapping) else None
    return "" if is_missing(path) else Path(str(path)).name


def read_audio(source: Any) -> Path | bytes | tuple[NDArray[Any], float] | None:
    """Read audio in any form that programs use: one of `FORMS`, a dict for a `transformers` pipeline, or a decoder.

    Returns:
        The path or bytes of a file, or samples of shape (frames,) or (frames, channels) with their rate; None if the
        recording is missing.

    Raises:
        BadInput: it has none of these forms, or samples lack their rate.
    """
    if is_missing(source):
        return None
    if isinstance(source, str | os.PathLike):
        return Path(source)
    if hasattr(source, "read"):
        # An open file, or a file in memory that was just written; a soundfile object gives samples.
        if hasattr(source, "seek"):
            source.seek(0)
        content = source.read()
        source = content if isinstance(content, bytes) else (content, getattr(source, "samplerate", None))
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if is_samples(source):
        samples, rate = source if _is_array(source[0]) else reversed(source)
        return _orient(samples), _read_rate(rate)
    # A torchcodec decoder, or its output, in which channels come first.
    decoded = source.get_all_samples() if hasattr(source, "get_all_samples") else source
    if hasattr(decoded, "sample_rate") and hasattr(decoded, "data"):
        return convert_to_array(decoded.data).T, _read_rate(decoded.sample_rate)
    # An object with keys: from `datasets`, from a pipeline, or a row with such an object.
    try:
        audio = source if isinstance(source, Mapping) else {key: source[key] for key in ("array", "sampling_rate")}
    except (TypeError, LookupError):
        raise BadInput(
            f"audio must be {FORMS}, not {type(source).__name__}; samples without their rate cannot be measured"
        ) from None
    for name in _VALUES:
        value = audio.get(name)
        if name == "audio" and isinstance(value, list | tuple) and len(value) > 1 and _is_array(value[0]):
            raise BadInput(f"`audio` has {len(value)} arrays; give each as a separate recording with its rate")
        if _is_array(value):
            return _orient(value), _read_rate(next((audio[rate] for rate in _RATES if rate in audio), None))
        if not is_missing(value) and name != "array":
            return read_audio(value)
    if set(_VALUES).isdisjoint(audio) or not is_missing(audio.get("array")):
        keys = ", ".join(map(str, audio))
        raise BadInput(f"an audio object needs `bytes`, `path`, or `array` with `sampling_rate`; it has {keys}")
    return None


def is_samples(source: Any) -> bool:
    """Return whether `source` is a pair of samples and rate, in either order (Gradio or SciPy), not two recordings."""
    if not isinstance(source, list | tuple) or len(source) != 2:
        return False
    return any(_is_array(samples) and _is_number(rate) for samples, rate in (source, source[::-1]))


def list_rows(source: Any, column: str = "") -> Any:
    """Return the rows of a dataset or column from `datasets`, with the audio undecoded; return anything else unchanged.

    podeval decodes the audio itself, because `datasets` would need torchcodec. If a dataset has one column of audio,
    that column is returned.

    Raises:
        BadInput: the dataset has several splits.
    """
    if hasattr(source, "column_name") and hasattr(source.source, "cast_column"):
        return list_rows(source.source, source.column_name)
    if hasattr(source, "iterrows"):
        return source.to_dict("records")
    if not hasattr(source, "cast_column"):
        return source
    if isinstance(source, Mapping):
        raise BadInput(f"the dataset has several splits; pass one of {', '.join(map(str, source))} as dataset[split]")
    from datasets import Audio

    names = [name for name, feature in (source.features or {}).items() if isinstance(feature, Audio)]
    for name in names:
        source = source.cast_column(name, Audio(decode=False))
    column = column or (names[0] if len(names) == 1 else "")
    return source[column] if column else source


def _orient(samples: Any) -> NDArray[Any]:
    """Return the samples of one recording, transposed to frames first if there are more columns than rows."""
    array = convert_to_array(samples)
    array = array[0] if array.ndim == 3 and len(array) == 1 else array
    return array.T if array.ndim == 2 and array.shape[0] < array.shape[1] else array


def _is_number(value: Any) -> bool:
    # A data loader returns rates as one-element arrays.
    number = isinstance(value, Real) or getattr(value, "shape", None) in ((), (1,))
    return number and not isinstance(value, str | bytes | bool | np.bool_)


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _read_rate(rate: Any) -> float:
    limits, value = DEFAULT_LIMITS, getattr(rate, "item", lambda: rate)() if _is_number(rate) else 0
    if not limits.min_rate <= value <= limits.max_rate:
        raise BadInput(
            f"audio given as an array needs its `sampling_rate` in Hz, not {rate!r}; "
            f"{limits.min_rate} to {limits.max_rate} Hz are supported"
        )
    return float(value)


_MOST_CHANNELS = 64


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
        raise BadAudio("audio samples must form one array, but their rows have different lengths") from None
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
        raise BadAudio(f"audio samples must have the shape (frames,) or (frames, channels), not {array.shape}")
    if array.shape[1] > _MOST_CHANNELS:
        raise BadAudio(
            f"the samples have {array.shape[1]} channels of {array.shape[0]} frames, but at most {_MOST_CHANNELS} "
            f"channels are supported; if their shape is (channels, frames), transpose them to (frames, channels)"
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
            "so they are almost silent; convert 16-bit samples with .astype('int16'), or give floats within ±1"
        )
    return array / half if bounds.min else array / half - 1.0
