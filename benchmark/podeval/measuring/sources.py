"""What is scored, in whatever form it is handed in: a path, bytes, samples with their rate, a row of `datasets`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval.audio.decode import hash_file
from podeval.errors import BadInput, MissingInput
from podeval.recording.samples import is_samples, list_rows, read_audio
from podeval.text.missing_value import is_missing

if TYPE_CHECKING:
    from podeval.recording import Recording

AUDIO_SUFFIXES = frozenset(
    {".aac", ".aif", ".aiff", ".flac", ".m4a", ".mka", ".mov", ".mp3", ".mp4", ".oga", ".ogg", ".opus", ".wav", ".webm"}
)
"""Of a folder's files, those that are taken for recordings."""


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
        source: audio in any form that `read_audio` takes, or a `Recording`.
        name: what it is called; for a path the path itself.
        options: the options of `Recording.open`.

    Raises:
        BadInput: none of these forms; a file that does not exist, is empty or a directory.
        MissingInput: there is no recording.
    """
    from podeval.recording import Recording

    if isinstance(source, Recording):
        return AudioSource(name or source.name, source.content, lambda: source)
    audio = read_audio(source)
    if audio is None:
        raise MissingInput("recording")
    if isinstance(audio, Path):
        # By its content, which says nothing of a file that cannot be read: opening it finds the sentence.
        return AudioSource(
            name or str(source if isinstance(source, str) else audio),
            hash_file(audio),
            lambda: Recording.open(audio, **options),
        )
    name = name or _read_name(source) or "recording"
    if isinstance(audio, bytes):
        digest = hashlib.sha256(audio).hexdigest()
        return AudioSource(name, digest, lambda: Recording.from_bytes(audio, **options))
    recording = Recording.from_samples(*audio, name=name, **options)
    return AudioSource(name, recording.content, lambda: recording)


def list_recordings(source: Any) -> list[Any] | None:
    """The recordings of a folder or a collection; None for what is one recording itself.

    Raises:
        BadInput: a folder or a collection that holds none; samples without their rate.
    """
    if is_missing(source):
        return None
    if isinstance(source, str | Path):
        # Unlike a path's own method, it takes what is too long for a name.
        if not os.path.isdir(source):
            return None
        folder = Path(source)
        files = sorted(path for path in folder.rglob("*") if is_audio_name(path))
        if not files:
            suffixes = ", ".join(sorted(suffix.removeprefix(".") for suffix in AUDIO_SUFFIXES))
            raise BadInput(f"{folder} holds no recordings; files with these endings are looked for: {suffixes}")
        return list(files)
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
        raise BadInput("samples without their rate cannot be measured: give (samples, rate), the rate in Hz")
    many = list(source)
    if isinstance(source, Sequence) and not many:
        raise BadInput("there is nothing to score in an empty list; give one recording or more")
    return many


def _is_bare_samples(source: Any) -> bool:
    """Whether it is an array or a list of numbers; a column of a table may have recordings, or no value at all."""
    if hasattr(source, "dtype") and hasattr(source, "ndim"):
        kind = str(source.dtype).removeprefix("torch.").rstrip("0123456789")
        return kind in ("float", "bfloat", "int", "uint") and not all(map(is_missing, source))
    numbers = isinstance(source, Sequence) and bool(source) and isinstance(source[0], int | float)
    return numbers and not is_missing(source[0])


def is_audio_name(path: Path) -> bool:
    """Whether a file's name ends as recordings do, and is none that is hidden."""
    return path.suffix.lower() in AUDIO_SUFFIXES and not path.name.startswith(".") and path.is_file()


def _read_name(source: Any) -> str:
    """Return the name of the file that an object of `datasets`, or a row with one, was read from."""
    audio = source.get("audio", source) if isinstance(source, Mapping) else None
    path = audio.get("path") if isinstance(audio, Mapping) else None
    return "" if is_missing(path) else Path(str(path)).name
