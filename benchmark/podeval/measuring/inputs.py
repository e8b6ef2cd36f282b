"""The inputs of metrics: which ones an item has, and how each is read from what a person or a program provides.

The command line, `evaluate`, the pages that try a metric, the Space, runs and Python all hand in a `MetricInputs` an
item. The reader of an input is imported where an input of its kind is read, so that a metric of audio needs neither
judges nor questionnaires.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput, MissingInput
from podeval.metrics.declaration import INPUTS, Metric

if TYPE_CHECKING:
    from podeval.text.script import Script

TEXT_SUFFIXES = {".txt", ".json", ".jsonl", ".md", ".srt", ".vtt"}
"""File name endings of the words among files of audio."""

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
    if not isinstance(source, Path) and _is_missing(source):
        raise MissingInput(name)
    if name in _PARSERS:
        return resolve_name(_PARSERS[name])(source)
    if name not in _OF_SCRIPT:
        return _READERS[name](source, options)
    from podeval.text.script_format import read_any_script

    script = read_any_script(source)
    if text_notes is not None:
        text_notes.update(dict.fromkeys(script.notes))
    return _OF_SCRIPT[name](script, options)


def _is_missing(value: Any) -> bool:
    from podeval.text.missing_value import is_missing

    return is_missing(value)


def _read_file(name: str, path: Path) -> str:
    from podeval.text.text_file import read_text

    if path.is_file() and not path.read_bytes().removeprefix(BOM_UTF8).strip():
        raise MissingInput(name, f"{path} is empty; it should hold a text or a script")
    content = read_text(path)
    if _is_missing(content):
        raise MissingInput(name, f"{path} contains nothing but {content.split()[0]!r}")
    return content


def _read_recording(source: Any, options: Mapping[str, Any]) -> Any:
    from podeval.recording.recording import Recording

    return source if isinstance(source, Recording) else Recording.open(source, **options)


def _read_reference_voices(source: Any, options: Mapping[str, Any]) -> Any:
    from podeval.recording.reference_voices import ReferenceVoices

    return source if isinstance(source, ReferenceVoices) else ReferenceVoices.read(source, **options)


def _make_passage(script: Script, options: Mapping[str, Any]) -> Any:
    from podeval.recording.text_embeddings import EmbeddedText

    return EmbeddedText(script.text, options.get("profile", "embedded"))


def _read_dialogue(source: Any, options: Mapping[str, Any]) -> Any:
    from podeval.metrics.spoken_dialogue import SpokenDialogue

    return SpokenDialogue.parse(source, options.get("profile", "embedded"))


_PARSERS = {
    "readings": "podeval.text.accepted_readings:AcceptedReadings.parse",
    "request": "podeval.text.podcast_request:PodcastRequest.parse",
    "generation_log": "podeval.metrics.generation_log:GenerationLog.parse",
    "system": "podeval.stats.battles:clean_name",
    "reference_votes": "podeval.metrics.human_records:read_votes",
    "reference_marks": "podeval.metrics.human_records:read_marks",
    "reference_answers": "podeval.metrics.human_records:read_answers",
}
"""By input the function that reads it from a source alone."""


_OF_SCRIPT: Mapping[str, Callable[[Script, Mapping[str, Any]], Any]] = {
    "text": lambda script, _: script.text,
    "passage": _make_passage,
    "reference_text": lambda script, _: script.text,
    "script": lambda script, _: script,
    "reference_script": lambda script, _: script,
}
"""Inputs that are read as scripts, and what is made of the script."""

_READERS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "recording": _read_recording,
    "dialogue": _read_dialogue,
    "reference_voices": _read_reference_voices,
}


def read_inputs_from_lists(
    metric: Metric,
    predictions: Sequence[Any],
    references: Sequence[Any] | None = None,
    scripts: Sequence[Any] | None = None,
    readings: Sequence[Any] | None = None,
    **options: Any,
) -> list[MetricInputs]:
    """Return the items that a program gives as lists: measured inputs, references, and the scripts of recordings.

    Args:
        metric: the metric whose inputs they are.
        predictions: the measured input of each item.
        references: the reference of each item, for a metric that compares.
        scripts: a script or None for each item, for a metric that takes scripts.
        readings: the readings of each item's reference that count as right, for a metric that takes them.
        options: `profile` and `allow_upsampling`.

    Raises:
        BadInput: the metric has no use for references, scripts or readings that are given, or the lists differ in
            length.
    """
    sources: list[dict[str, Any]] = [{metric.inputs[0]: prediction} for prediction in predictions]
    lists = {"references": (metric.reference, references), "scripts": ("script", scripts)}
    for plural, (name, values) in {**lists, "readings": ("readings", readings)}.items():
        if values is None:
            continue
        if name not in (metric.reference, *metric.optional_inputs) or name is None:
            raise BadInput(f"{metric.name} has no use for {plural}")
        if len(values) != len(sources):
            raise BadInput(
                f"there are {len(sources)} predictions and {len(values)} {plural}; give one for each, or none"
            )
        for item, value in zip(sources, values, strict=True):
            item[name] = convert_to_text(value) if name == "script" else value
    return [MetricInputs(item, **options) for item in sources]


def convert_to_text(item: Any, name: str = "script") -> str:
    """Convert what a program gives for an input to text: data becomes JSON, a `Path` the content of the file.

    A file name stays a name for an input that opens files itself.

    Returns:
        The text, which is empty where the input is missing or part of a list is.

    Raises:
        BadInput: it is neither, the file cannot be read, or a file name stands where its words belong.
    """
    import json

    from podeval.text.script import Script
    from podeval.text.text_file import refuse_file_name

    if name in ("system", *_RECORDS) and isinstance(item, str | Path):
        return "" if _is_missing(item) else str(item)
    if isinstance(item, Path):
        try:
            return _read_file(name, item)
        except MissingInput:
            return ""
    if isinstance(item, str):
        return "" if _is_missing(item) else refuse_file_name(item)
    if name in _RECORDS and not _is_missing(item):
        text: str = resolve_name("podeval.metrics.human_records:write_records")(item, name.replace("_", " "))
        return text
    item = item.to_json() if isinstance(item, Script) else item.tolist() if hasattr(item, "tolist") else item
    entries = item if isinstance(item, list | tuple) else ()
    if _is_missing(item) or any(map(_is_missing, entries)):
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
    if _is_missing(value):
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"no text: {type(value).__name__}")


def read_inputs_from_files(
    metric: Metric,
    files: Sequence[Path],
    references: Sequence[Path],
    texts: Sequence[Path],
    requests: Sequence[Path] = (),
    **options: Any,
) -> list[tuple[Path, MetricInputs]]:
    """Return the items that a person gives as files: each file that is measured, with its inputs.

    Args:
        metric: the metric whose inputs they are.
        files: the measured files, or the names of the measured systems; for a metric of recordings, text files among
            them are the words that belong to them.
        references: the files to compare with: a voice's recording or SPEAKER=FILE, a script, a text, votes.
        texts: files with the words that should be heard; one for all measured files, or one for each.
        requests: files with what was asked for; one for all measured files, or one for each.
        options: `profile` and `allow_upsampling`.

    Raises:
        BadInput: a file is missing that the metric needs or given that it does not take, numbers do not match, or a
            reference voice cannot be read.
    """
    if requests and metric.reference != "request":
        raise BadInput(f"{metric.name} has no use for requests; leave out --request")
    compares_voices = "reference_voices" in (*metric.inputs, *metric.optional_inputs)
    if "reference_voices" in metric.inputs and not references:
        raise BadInput(f"{metric.name} needs the voice to compare with: add --reference FILE, or SPEAKER=FILE for each")
    voices = read_voices(references, options) if compares_voices else {}
    files, texts = _split_texts(metric, files, [*texts, *requests, *([] if voices else references)])
    items = []
    beside = ("reference_text", "script") if metric.inputs[0] == "recording" else (metric.reference or "",)
    for number, file in enumerate(files):
        words = dict.fromkeys(beside, texts[number % len(texts)]) if texts else {}
        items.append((file, MetricInputs({metric.inputs[0]: file} | words | voices, **options).select(metric)))
    return items


def read_voices(references: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Read reference voices: one recording, recordings by speaker, SPEAKER=FILE for each, or a JSON file of them.

    Returns:
        The input `reference_voices`; nothing where there is none.

    Raises:
        BadInput: several without their speakers' names, or one cannot be read.
    """
    from podeval.recording.samples import is_samples

    if isinstance(references, list | tuple) and not is_samples(references):
        pairs = [str(path).partition("=") for path in references if not Path(str(path)).exists()]
        if pairs and len(pairs) == len(references) and all(sign for _, sign, _ in pairs):
            references = {speaker: path for speaker, _, path in pairs}
        elif len(references) > 1:
            raise BadInput("several reference voices need their speakers: write --reference SPEAKER=FILE for each")
        else:
            references = next(iter(references), None)
    return {} if references is None else {"reference_voices": read_input("reference_voices", references, **options)}


def _split_texts(metric: Metric, files: Sequence[Path], texts: Sequence[Path]) -> tuple[Sequence[Path], Sequence[Path]]:
    """Separate the measured files from the texts that go with them: none, one for all, or one for each.

    Raises:
        BadInput: the metric takes no text, lacks one, or the numbers do not match.
    """
    if metric.inputs[0] == "recording" and texts:
        texts = [*texts, *(path for path in files if path.suffix.lower() in TEXT_SUFFIXES)]
        files = [path for path in files if path.suffix.lower() not in TEXT_SUFFIXES]
    compared = metric.reference if metric.inputs[0] != "recording" else None
    if compared and not texts:
        option = "--request" if compared == "request" else "--reference"
        raise BadInput(f"{metric.name} also needs {INPUTS[compared]}: add {option} FILE")
    if texts and not compared and not {"script", "reference_text"} & {*metric.inputs[1:], *metric.optional_inputs}:
        raise BadInput(f"{metric.name} compares with nothing; leave out --text and --reference")
    if "reference_text" in metric.inputs and not texts:
        raise BadInput(f"{metric.name} needs the words that should be heard: add --text FILE (text, or a script)")
    if metric.inputs[0] == "recording" and "script" in metric.inputs and not texts:
        raise BadInput(f"{metric.name} needs the words and who says them: add --text FILE (a script with its speakers)")
    if texts and len(texts) not in (1, len(files)):
        raise BadInput(f"there are {len(files)} files and {len(texts)} texts; give one text, or one for each file")
    return files, texts
