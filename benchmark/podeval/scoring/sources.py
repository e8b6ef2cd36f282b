"""What is scored, in whatever form it is handed in: a path, bytes, samples with their rate, a row of `datasets`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval.audio.decode import hash_file
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.analysis import Recording

AUDIO_SUFFIXES = frozenset(
    {".aac", ".aif", ".aiff", ".flac", ".m4a", ".mka", ".mov", ".mp3", ".mp4", ".oga", ".ogg", ".opus", ".wav", ".webm"}
)
"""Of a folder's files, those that are taken for recordings."""

FORMS = "a path, the bytes of a file, (samples, rate), {'array', 'sampling_rate'}, or a row of a datasets audio column"


@dataclass
class AudioSource:
    """One recording that may be opened; it is not decoded before somebody asks for it.

    Args:
        name: what it is called in results.
        content: what its facts are kept under; for a file the SHA-256 of its bytes.
        open_recording: decodes it.
    """

    name: str
    content: str
    open_recording: Callable[[], Recording]

    @cached_property
    def recording(self) -> Recording:
        """The recording, decoded when it is first asked for.

        Raises:
            BadAudio: it cannot be read as audio.
        """
        return self.open_recording()


def read_source(source: Any, *, name: str = "", **options: Any) -> AudioSource:
    """Say what a recording is by its content, without decoding a file.

    Args:
        source: any of `FORMS`, or a `Recording`.
        name: what it is called; for a path the path itself.
        options: of `Recording.open`.

    Raises:
        BadInput: none of these forms; a file that is missing, empty or a directory.
    """
    from podeval.analysis import Recording

    if isinstance(source, Recording):
        return AudioSource(name or source.name, source.content, lambda: source)
    if isinstance(source, str | Path):
        path = Path(source)
        # By its content, which says nothing of a file that cannot be read: opening it finds the sentence.
        return AudioSource(name or str(source), hash_file(path), lambda: Recording.open(path, **options))
    if isinstance(source, bytes | bytearray):
        data = bytes(source)
        digest = hashlib.sha256(data).hexdigest()
        return AudioSource(name or "recording", digest, lambda: Recording.from_bytes(data, **options))
    if hasattr(source, "get_all_samples"):
        decoded = source.get_all_samples()
        return _read_samples(_as_array(decoded.data).T, decoded.sample_rate, name, options)
    if is_samples(source):
        return _read_samples(source[0], source[1], name, options)
    return _read_mapping(source, name, options)


def is_samples(source: Any) -> bool:
    """Whether it is samples with their rate, `(samples, rate)`, and not two recordings."""
    return isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], int | float)


def list_recordings(source: Any) -> list[Any] | None:
    """The recordings of a folder or a collection; None for what is one recording itself.

    Raises:
        BadInput: a folder or a collection that holds none; samples without their rate.
    """
    if isinstance(source, str | Path):
        folder = Path(source)
        if not folder.is_dir():
            return None
        files = sorted(path for path in folder.rglob("*") if is_audio_name(path))
        if not files:
            suffixes = ", ".join(sorted(suffix.removeprefix(".") for suffix in AUDIO_SUFFIXES))
            raise BadInput(f"{folder} holds no recordings; files with these endings are looked for: {suffixes}")
        return list(files)
    single = isinstance(source, bytes | bytearray | Mapping) or is_samples(source) or hasattr(source, "get_all_samples")
    if (
        single
        or not isinstance(source, Iterable)
        or hasattr(source, "open_recording")
        or not hasattr(source, "__len__")
    ):
        return None
    if _is_bare_samples(source):
        raise BadInput("samples without their rate cannot be measured: give (samples, rate), the rate in Hz")
    many = list(source)
    if isinstance(source, Sequence) and not many:
        raise BadInput("there is nothing to score in an empty list; give one recording or more")
    return many


def _is_bare_samples(source: Any) -> bool:
    """Whether it is an array or a list of numbers; a column of a table may hold recordings and is none."""
    if hasattr(source, "dtype") and hasattr(source, "ndim"):
        return str(source.dtype).removeprefix("torch.").rstrip("0123456789") in ("float", "bfloat", "int", "uint")
    return isinstance(source, Sequence) and bool(source) and isinstance(source[0], int | float)


def is_audio_name(path: Path) -> bool:
    """Whether a file's name ends as recordings do, and is none that is hidden."""
    return path.suffix.lower() in AUDIO_SUFFIXES and not path.name.startswith(".") and path.is_file()


def _read_mapping(source: Any, name: str, options: Mapping[str, Any]) -> AudioSource:
    """Audio as `datasets` has it: `array` with `sampling_rate`, `bytes` or `path`, or a row with such."""
    try:
        audio = source if isinstance(source, Mapping) else {key: source[key] for key in ("array", "sampling_rate")}
    except (TypeError, LookupError, IndexError):
        raise BadInput(
            f"audio is {FORMS}, not {type(source).__name__}; samples without their rate cannot be measured"
        ) from None
    name = name or Path(str(audio.get("path") or "")).name
    if audio.get("bytes") is not None:
        return read_source(bytes(audio["bytes"]), name=name, **options)
    if audio.get("array") is not None:
        rate = audio.get("sampling_rate")
        if not rate or rate < 0:
            raise BadInput(f"audio given as an array needs its `sampling_rate` in Hz, not {rate!r}")
        return _read_samples(audio["array"], rate, name, options)
    if audio.get("path"):
        return read_source(Path(audio["path"]), **options)
    if isinstance(audio.get("audio"), Mapping) or hasattr(audio.get("audio"), "get_all_samples"):
        return read_source(audio["audio"], name=name, **options)
    raise BadInput("an audio object needs `bytes`, `path`, or `array` with `sampling_rate`")


def _read_samples(samples: Any, rate: Any, name: str, options: Mapping[str, Any]) -> AudioSource:
    """Samples of shape (frames,), (frames, channels) or, where there are more columns than rows, (channels, frames)."""
    from podeval.analysis import Recording

    array = _as_array(samples)
    if array.ndim == 2 and array.shape[0] < array.shape[1]:
        array = array.T
    recording = Recording.from_samples(array, rate, name=name or "recording", **options)
    return AudioSource(recording.name, recording.content, lambda: recording)


def _as_array(samples: Any) -> Any:
    """Samples of numpy, torch or a list as an array."""
    import numpy as np

    return np.asarray(samples.detach().cpu() if hasattr(samples, "detach") else samples)
