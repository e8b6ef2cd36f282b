"""The inputs of metrics: which ones an item has, and how each is read from what a person or a program provides.

The command line, `evaluate`, the pages that try a metric, the Space, runs and Python all hand in a `MetricInputs` an
item. The reader of an input is imported where an input of its kind is read, so that a metric of audio needs neither
judges nor questionnaires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput
from podeval.metrics.declaration import INPUTS, Metric

if TYPE_CHECKING:
    from podeval.text.script import Script

TEXT_SUFFIXES = {".txt", ".json", ".jsonl", ".md", ".srt", ".vtt"}
"""File name endings of the words among files of audio."""

_OPENS_FILES = ("recording", "reference_voices")
_NAMES = ("system", "reference_votes", "reference_marks", "reference_answers")
"""Inputs that are a name, or that open a file by its name."""


class MetricInputs(Mapping[str, Any]):
    """One item's inputs by the names of metrics' parameters; each is read when it is asked for.

    Args:
        sources: by name, the path, text or data that the input is read from, an input that was read before, or a
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

    def __getitem__(self, name: str) -> Any:
        """Read an input.

        Raises:
            BadInput: the input cannot be read; the message says why.
        """
        if name in self._kept:
            return self._kept[name]
        source = self._sources[name]
        value = read_input(name, source() if callable(source) else source, **self._options)
        if self._keep:
            self._kept[name] = value
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def select(self, metric: Metric) -> MetricInputs:
        """Return the same item with only the inputs that a metric takes; inputs that are kept are shared."""
        names = (*metric.inputs, *metric.optional_inputs)
        selected = MetricInputs({name: self._sources[name] for name in names if name in self}, keep=self._keep)
        selected._options, selected._kept = self._options, self._kept
        return selected

    def read(self) -> dict[str, Any]:
        """Read every input now, and return them by name.

        Raises:
            BadInput: an input cannot be read; the message says why.
        """
        return {name: self[name] for name in self}


def read_input(name: str, source: Any, **options: Any) -> Any:
    """Read an input by its name in a metric's signature.

    Args:
        name: one of `podeval.metrics.declaration.INPUTS`.
        source: a path, a text, or data, as the input takes it; a `Path` stands for the file's content.
        options: `profile` and `allow_upsampling`, for recordings.

    Raises:
        BadInput: the input cannot be read; the message says why.
    """
    if isinstance(source, Path) and name not in _OPENS_FILES:
        from podeval.text.text_file import read_text

        source = read_text(source)
    return _READERS[name](source, options)


def _read_recording(source: Any, options: Mapping[str, Any]) -> Any:
    from podeval.analysis.recording import Recording

    return source if isinstance(source, Recording) else Recording.open(source, **options)


def _read_reference_voices(source: Any, options: Mapping[str, Any]) -> Any:
    from podeval.analysis.reference_voices import ReferenceVoices

    return source if isinstance(source, ReferenceVoices) else ReferenceVoices.read(source, **options)


def _read_script(source: Any, _: Mapping[str, Any]) -> Script:
    from podeval.text.script_format import read_any_script

    return read_any_script(source)


def _read_words(source: Any, options: Mapping[str, Any]) -> str:
    return _read_script(source, options).text


def _read_readings(source: Any, _: Mapping[str, Any]) -> Any:
    from podeval.text.accepted_readings import AcceptedReadings

    return AcceptedReadings.parse(source)


def _read_passage(source: Any, options: Mapping[str, Any]) -> Any:
    from podeval.analysis.text_embeddings import EmbeddedText

    return EmbeddedText(_read_words(source, options), options.get("profile", "embedded"))


def _read_request(source: Any, _: Mapping[str, Any]) -> Any:
    from podeval.text.podcast_request import PodcastRequest

    return PodcastRequest.parse(source)


def _read_dialogue(source: Any, options: Mapping[str, Any]) -> Any:
    from podeval.metrics.spoken_dialogue import SpokenDialogue

    return SpokenDialogue.parse(source, options.get("profile", "embedded"))


def _read_generation_log(source: Any, _: Mapping[str, Any]) -> Any:
    from podeval.metrics.generation_log import GenerationLog

    return GenerationLog.parse(source)


def _read_votes(source: Any, _: Mapping[str, Any]) -> Any:
    from podeval.metrics import human_records

    return human_records.read_votes(source)


def _read_marks(source: Any, _: Mapping[str, Any]) -> Any:
    from podeval.metrics import human_records

    return human_records.read_marks(source)


def _read_answers(source: Any, _: Mapping[str, Any]) -> Any:
    from podeval.metrics import human_records

    return human_records.read_answers(source)


_READERS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "recording": _read_recording,
    "text": _read_words,
    "passage": _read_passage,
    "reference_text": _read_words,
    "readings": _read_readings,
    "script": _read_script,
    "reference_script": _read_script,
    "request": _read_request,
    "dialogue": _read_dialogue,
    "reference_voices": _read_reference_voices,
    "generation_log": _read_generation_log,
    "system": lambda source, _: str(source),
    "reference_votes": _read_votes,
    "reference_marks": _read_marks,
    "reference_answers": _read_answers,
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
        BadInput: the metric takes no scripts, the lists differ in length, or an input cannot be read.
    """
    sources: list[dict[str, Any]] = [{metric.inputs[0]: prediction} for prediction in predictions]
    if references is not None and metric.reference:
        for item, reference in zip(sources, references, strict=True):
            item[metric.reference] = reference
    for name, values in (("script", scripts), ("readings", readings)):
        if values is None:
            continue
        plural = "scripts" if name == "script" else name
        if name not in metric.optional_inputs:
            raise BadInput(f"{metric.name} has no use for {plural}")
        if len(values) != len(sources) or any(value is None for value in values):
            count = sum(value is not None for value in values)
            raise BadInput(f"there are {len(sources)} predictions and {count} {plural}; give one for each, or none")
        for item, value in zip(sources, values, strict=True):
            item[name] = read_input(name, convert_to_text(value) if name == "script" else value)
    return [MetricInputs(item, **options) for item in sources]


def convert_to_text(item: Any, name: str = "script") -> str:
    """Convert what a program gives for an input to text: data becomes JSON, a `Path` the content of the file.

    A file name stays a name for an input that opens files itself.

    Raises:
        BadInput: it is neither, the file cannot be read, or a file name stands where its words belong.
    """
    import json

    from podeval.text.script import Script
    from podeval.text.text_file import read_text, refuse_file_name

    if name in _NAMES and isinstance(item, str | Path):
        return str(item)
    if isinstance(item, Path):
        return read_text(item)
    if isinstance(item, str):
        return refuse_file_name(item)
    if isinstance(item, Script):
        item = item.to_json()
    try:
        return json.dumps(item, ensure_ascii=False)
    except TypeError:
        raise BadInput(f"a text is a string, or a script as data, not {type(item).__name__}") from None


def read_inputs_from_files(
    metric: Metric, files: Sequence[Path], references: Sequence[Path], texts: Sequence[Path], **options: Any
) -> list[tuple[Path, MetricInputs]]:
    """Return the items that a person gives as files: each file that is measured, with its inputs.

    Args:
        metric: the metric whose inputs they are.
        files: the measured files; for a metric of recordings, text files among them are the words that belong to them.
        references: the files to compare with: a voice's recording or SPEAKER=FILE, a script, a request, a text.
        texts: files with the words that should be heard; one for all measured files, or one for each.
        options: `profile` and `allow_upsampling`.

    Raises:
        BadInput: a file is missing that the metric needs or given that it does not take, numbers do not match, or a
            reference voice cannot be read.
    """
    voices = _read_voices(metric, references, options)
    files, texts = _split_texts(metric, files, [*texts, *([] if voices else references)])
    items = []
    for number, file in enumerate(files):
        words = texts[number % len(texts)] if texts else None
        items.append((file, MetricInputs(_sources_of_file(metric, file, words) | voices, **options).select(metric)))
    return items


def _read_voices(metric: Metric, references: Sequence[Path], options: Mapping[str, Any]) -> dict[str, Any]:
    """Read the reference voices a metric compares with: one recording, one for each speaker, or a JSON file of them.

    Raises:
        BadInput: the metric needs voices and there are none, or there are several without their speakers' names.
    """
    if "reference_voices" not in (*metric.inputs, *metric.optional_inputs):
        return {}
    if not references and "reference_voices" in metric.inputs:
        raise BadInput(f"{metric.name} needs the voice to compare with: add --reference FILE, or SPEAKER=FILE for each")
    return read_voices(references, options)


def read_voices(references: Sequence[Path], options: Mapping[str, Any]) -> dict[str, Any]:
    """Read reference voices as a person names them: one recording, SPEAKER=FILE for each, or a JSON file of them.

    Returns:
        The input `reference_voices`; nothing where none is named.

    Raises:
        BadInput: several without their speakers' names, or one cannot be read.
    """
    if not references:
        return {}
    pairs = [str(path).partition("=") for path in references if not path.exists()]
    if not pairs and len(references) == 1:
        source: Any = str(references[0])
    elif len(pairs) == len(references) and all(sign for _, sign, _ in pairs):
        source = {speaker: path for speaker, _, path in pairs}
    else:
        source = str(references[0]) if len(references) == 1 else None
    if source is None:
        raise BadInput("several reference voices need their speakers: write --reference SPEAKER=FILE for each")
    return {"reference_voices": read_input("reference_voices", source, **options)}


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
        raise BadInput(f"{metric.name} also needs {INPUTS[compared]}: add --reference FILE")
    if texts and not compared and not {"script", "reference_text"} & {*metric.inputs[1:], *metric.optional_inputs}:
        raise BadInput(f"{metric.name} compares with nothing; leave out --text and --reference")
    if "reference_text" in metric.inputs and not texts:
        raise BadInput(f"{metric.name} needs the words that should be heard: add --text FILE (text, or a script)")
    if metric.inputs[0] == "recording" and "script" in metric.inputs and not texts:
        raise BadInput(f"{metric.name} needs the words and who says them: add --text FILE (a script with its speakers)")
    if texts and len(texts) not in (1, len(files)):
        raise BadInput(f"there are {len(files)} files and {len(texts)} texts; give one text, or one for each file")
    return files, texts


def _sources_of_file(metric: Metric, file: Path, words: Path | None) -> dict[str, Any]:
    first = metric.inputs[0]
    if first == "recording":
        return {first: file, **({"reference_text": words, "script": words} if words else {})}
    return {first: file, **({metric.reference: words} if metric.reference and words else {})}
