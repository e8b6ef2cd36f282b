"""The inputs of metrics: in which forms a person or a program hands them in, and how each is read.

The command line, `evaluate`, the pages that try a metric, the Space, runs and Python all hand in a `MetricInputs` an
item. The reader of an input is imported where an input of its kind is read, so that a metric of audio needs neither
judges nor questionnaires. A recording may be a path, bytes, samples with their rate, or a row of `datasets`.
"""

from __future__ import annotations

import hashlib
import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from podeval.audio.decode import hash_file
from podeval.errors import BadInput, MissingInput
from podeval.metrics.declaration import Metric
from podeval.recording.recording import Recording
from podeval.recording.samples import is_samples, list_rows, read_audio
from podeval.text.missing_value import is_missing

if TYPE_CHECKING:
    pass

TEXT_SUFFIXES = {".txt", ".json", ".jsonl", ".md", ".srt", ".vtt"}
"""File name endings of the words among files of audio."""

AUDIO_SUFFIXES = frozenset(
    {".aac", ".aif", ".aiff", ".flac", ".m4a", ".mka", ".mov", ".mp3", ".mp4", ".oga", ".ogg", ".opus", ".wav", ".webm"}
)
"""Of a folder's files, those that are taken for recordings."""

_OPENS_FILES = ("recording", "reference_voices")
_RECORDS = ("reference_votes", "reference_marks", "reference_answers")
"""Inputs that open a file by its name, and the records of people, of which a text may be such a name."""


class MetricInputs(Mapping[str, Any]):
    """One item's inputs by the names of metrics' parameters; each is read when it is asked for.

    Args:
        sources: the path, text or data of each input by its name, an input that was read before, or a
            function without arguments that returns one of these. A `Path` is opened; other text is the input itself.
        profile: the profile whose models recordings and passages use.
        allow_upsampling: whether recordings below a model's sample rate are read all the same.
        keep: whether inputs are kept once read, for an item that several metrics measure; otherwise one recording at a
            time is in memory.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        profile: str = "embedded",
        allow_upsampling: bool = False,
        keep: bool = False,
    ) -> None:
        self._sources = dict(sources)
        self._options = {"profile": profile, "allow_upsampling": allow_upsampling}
        self._keep = keep
        self._kept: dict[str, Any] = {}
        # What was read unusually in the texts so far, a sentence each.
        self.text_notes: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        """Read an input.

        Raises:
            BadInput: the input cannot be read; the message says why.
        """
        if name in self._kept:
            return self._kept[name]
        source = self._sources[name]
        value = read_input(name, source() if callable(source) else source, self.text_notes, **self._options)
        if self._keep:
            self._kept[name] = value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def select(self, metric: Metric, names: Sequence[str] | None = None) -> MetricInputs:
        """Return the same item with only the inputs that a metric takes, or some of them; inputs that are kept are
        shared.
        """
        names = (*metric.inputs, *metric.optional_inputs) if names is None else names
        selected = MetricInputs({name: self._sources[name] for name in names if name in self}, keep=self._keep)
        selected._options, selected._kept, selected.text_notes = self._options, self._kept, self.text_notes
        return selected

    def read(self) -> dict[str, Any]:
        """Read every input now, and return them by name.

        Raises:
            BadInput: an input cannot be read; the message says why.
        """
        return {name: self[name] for name in self}


def read_input(name: str, source: Any, text_notes: dict[str, None] | None = None, **options: Any) -> Any:
    """Read an input by its name in a metric's signature.

    Args:
        name: one of `podeval.metrics.declaration.INPUTS`.
        source: a path, a text, or data, as the input takes it; a `Path` stands for the file's content.
        text_notes: the notes of an item, to which those on a text that was read unusually are added.
        options: `profile` and `allow_upsampling`, for recordings.

    Raises:
        MissingInput: the source is a missing value, or a file without content.
        BadInput: the input cannot be read; the message says why.
    """
    is_table = isinstance(source, Path) and name in _RECORDS and source.suffix == ".parquet"
    if isinstance(source, Path) and name not in (*_OPENS_FILES, "system") and not is_table:
        source = _read_file(name, source)
    if not isinstance(source, Path) and is_missing(source):
        raise MissingInput(name)
    profile = options.get("profile", "embedded")
    if name in _PARSERS:
        return resolve_name(_PARSERS[name])(source)
    if name == "recording":
        return source if isinstance(source, Recording) else Recording.open(source, **options)
    if name == "reference_voices":
        from podeval.recording.reference_voices import ReferenceVoices

        return source if isinstance(source, ReferenceVoices) else ReferenceVoices.read(source, **options)
    if name == "dialogue":
        from podeval.metrics.spoken_dialogue import SpokenDialogue

        return SpokenDialogue.parse(source, profile)
    # What is left is read as a script.
    from podeval.text.script_format import read_any_script

    script = read_any_script(source)
    if text_notes is not None:
        text_notes.update(dict.fromkeys(script.notes))
    if name == "passage":
        from podeval.recording.text_embeddings import EmbeddedText

        return EmbeddedText(script.text, profile)
    return script if name in ("script", "reference_script") else script.text


def _read_file(name: str, path: Path) -> str:
    from podeval.text.text_file import read_text

    if path.is_file() and not path.read_bytes().removeprefix(BOM_UTF8).strip():
        raise MissingInput(name, f"{path} is empty; it should hold a text or a script")
    content = read_text(path)
    if is_missing(content):
        raise MissingInput(name, f"{path} contains nothing but {content.split()[0]!r}")
    return content


_PARSERS = {
    "readings": "podeval.text.accepted_readings:AcceptedReadings.parse",
    "request": "podeval.text.podcast_request:PodcastRequest.parse",
    "generation_log": "podeval.metrics.speech.rtf:GenerationLog.parse",
    "system": "podeval.stats.battles:clean_name",
    "reference_votes": "podeval.metrics.human_records:read_votes",
    "reference_marks": "podeval.metrics.human_records:read_marks",
    "reference_answers": "podeval.metrics.human_records:read_answers",
}
"""By input the function that reads it from a source alone."""


def convert_to_text(item: Any, name: str = "script") -> str:
    """Convert what a program gives for an input to text: data becomes JSON, a `Path` the content of the file.

    A file name stays a name for an input that opens files itself.

    Returns:
        The text, which is empty where the input is missing or part of a list is.

    Raises:
        BadInput: it is neither, the file cannot be read, or a file name stands where its words belong.
    """
    from podeval.text.script import Script
    from podeval.text.text_file import refuse_file_name

    if name in ("system", *_RECORDS) and isinstance(item, str | Path):
        return "" if is_missing(item) else str(item)
    if isinstance(item, Path):
        try:
            return _read_file(name, item)
        except MissingInput:
            return ""
    if isinstance(item, str):
        return "" if is_missing(item) else refuse_file_name(item)
    if name in _RECORDS and not is_missing(item):
        text: str = resolve_name("podeval.metrics.human_records:write_records")(item, name.replace("_", " "))
        return text
    item = item.to_json() if isinstance(item, Script) else item.tolist() if hasattr(item, "tolist") else item
    entries = item if isinstance(item, list | tuple) else ()
    if is_missing(item) or any(map(is_missing, entries)):
        return ""
    turns = all(isinstance(one, Mapping) or (isinstance(one, list | tuple) and len(one) == 2) for one in entries)
    try:
        text = (
            json.dumps(item, ensure_ascii=False, default=_convert_scalar)
            if turns and isinstance(item, Mapping | list | tuple)
            else ""
        )
    except TypeError:
        text = ""
    if text:
        return text
    kind = type(item).__name__ + (f" of {type(entries[0]).__name__}" if entries else "")
    raise BadInput(f"a text is a string, a path, or a script as data (a list of turns), not {kind}")


def _convert_scalar(value: Any) -> Any:
    """Return a scalar of numpy, or a missing value of pandas, as JSON has it."""
    if is_missing(value):
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"no text: {type(value).__name__}")


def read_voices(references: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Read reference voices: one recording, recordings by speaker, SPEAKER=FILE for each, or a JSON file of them.

    Returns:
        The input `reference_voices`; nothing where there is none.

    Raises:
        BadInput: several without their speakers' names, or one cannot be read.
    """
    if isinstance(references, list | tuple) and not is_samples(references):
        pairs = [str(path).partition("=") for path in references if not Path(str(path)).exists()]
        if pairs and len(pairs) == len(references) and all(sign for _, sign, _ in pairs):
            references = {speaker: path for speaker, _, path in pairs}
        elif len(references) > 1:
            raise BadInput("several reference voices need their speakers: write --reference SPEAKER=FILE for each")
        else:
            references = next(iter(references), None)
    return {} if references is None else {"reference_voices": read_input("reference_voices", references, **options)}


@dataclass
class AudioSource:
    """One recording that may be opened; it is not decoded before somebody asks for it.

    Attributes:
        name: what it is called in results.
        content: what its facts are kept under; for a file the SHA-256 of its bytes.
        audio: the path or the bytes of a file, or the recording itself.
        options: the options of `Recording.open`.
    """

    name: str
    content: str
    audio: Path | bytes | Recording
    options: Mapping[str, Any]

    @cached_property
    def recording(self) -> Recording:
        """The recording, decoded when it is first asked for.

        Raises:
            BadAudio: it cannot be read as audio.
        """
        if isinstance(self.audio, Recording):
            return self.audio
        if isinstance(self.audio, bytes):
            return Recording.from_bytes(self.audio, **self.options)
        return Recording.open(self.audio, **self.options)


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
    if isinstance(source, Recording):
        return AudioSource(name or source.name, source.content, source, options)
    audio = read_audio(source)
    if audio is None:
        raise MissingInput("recording")
    if isinstance(audio, Path):
        # By its content, which says nothing of a file that cannot be read: opening it finds the sentence.
        return AudioSource(name or str(source if isinstance(source, str) else audio), hash_file(audio), audio, options)
    name = name or _read_name(source) or "recording"
    if isinstance(audio, bytes):
        return AudioSource(name, hashlib.sha256(audio).hexdigest(), audio, options)
    recording = Recording.from_samples(*audio, name=name, **options)
    return AudioSource(name, recording.content, recording, options)


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
