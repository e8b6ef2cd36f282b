"""A request to score a recording, the inputs of metrics in the forms that people and programs use, and the metrics to
try.

The command line, `evaluate`, the demo pages of metrics, the Space, runs and Python all pass a `MetricInputs` for each
item. The reader of an input is imported when such an input is read, so a metric for audio imports neither judges nor
questionnaires. A recording may be a path, bytes, samples with their rate, or a row of `datasets`.
"""

from __future__ import annotations

import hashlib
import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from podeval.errors import BadInput, MissingInput, ModelMissing, is_missing
from podeval.metrics import Metric, Result, Score, Unscored, catalogue
from podeval.recording.recording import Recording, list_recordings, read_source
from podeval.recording.source import is_samples

if TYPE_CHECKING:
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.text.script import Script

TEXT_SUFFIXES = {".txt", ".json", ".jsonl", ".md", ".srt", ".vtt"}
"""File name extensions of transcripts and scripts that are stored next to audio files."""

WORDS = ("reference_text", "text", "passage", "script")
"""Names of the inputs that are the spoken words; text metrics measure the words themselves."""

DEFAULT_PROFILE = "embedded"

Face = Literal["shell", "python"]

_OPENS_FILES = ("recording", "recordings", "reference_voices")
RECORDS = ("reference_votes", "reference_marks", "reference_answers")
"""Inputs whose text names a file to open, and people's judgements, whose text may name a file."""

_ADVICE: Mapping[Face, Mapping[str, str]] = {
    "shell": {
        "judge": "podeval measure METRIC --judge …",
        "voice": "--reference [SPEAKER=]FILE",
        "words": "--text FILE",
        "request": "podeval measure METRIC --request FILE",
        "speakers": "--text SCRIPT with its speakers, or --speakers N",
        "profile": "--profile {}",
    },
    "python": {
        "judge": "podeval.measure(METRIC, …, judge=…)",
        "voice": "references=FILE or {SPEAKER: FILE}",
        "words": "text=FILE",
        "request": "podeval.measure(METRIC, …, request=…)",
        "speakers": "text=SCRIPT with its speakers, or speakers=N",
        "profile": 'profile="{}"',
    },
}
"""Advice, by interface, on how to supply an input that a metric lacks, in terms that the interface's users know."""


class MetricInputs(Mapping[str, Any]):
    """The inputs of one item, keyed by the names of the metrics' parameters; each is read on first use.

    Args:
        sources: the inputs by name: a path, text or data, an input that has already been read, or a function without
            arguments that returns one of these. A `Path` is opened; any other text is used as the input itself.
        profile: the profile of the models for recordings and passages.
        allow_upsampling: whether recordings below a model's sample rate are read anyway.
        keep: whether inputs are kept in memory, for an item with several metrics; otherwise, only one recording at a
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
        # Notes about unusual interpretations of the texts so far, one sentence each.
        self.text_notes: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        """Read an input.

        Raises:
            BadInput: the input cannot be read; the message gives the reason.
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
        """Return the item with only these inputs, by default all that a metric takes; inputs in memory are shared."""
        names = (*metric.inputs, *metric.optional_inputs) if names is None else names
        selected = MetricInputs({name: self._sources[name] for name in names if name in self}, keep=self._keep)
        selected._options, selected._kept, selected.text_notes = self._options, self._kept, self.text_notes
        return selected

    def read(self) -> dict[str, Any]:
        """Read all inputs now, and return them by name.

        Raises:
            BadInput: an input cannot be read; the message gives the reason.
        """
        return {name: self[name] for name in self}


def read_input(name: str, source: Any, text_notes: dict[str, None] | None = None, **options: Any) -> Any:
    """Read an input by its name in a metric's signature.

    Args:
        name: one of `podeval.metrics.facts.INPUTS`.
        source: a path, a text, or data, in the form of the input; for a `Path`, the content of the file is read.
        text_notes: the item's list of notes; notes about unusual interpretations of a text are added to it.
        options: `profile` and `allow_upsampling`, for recordings.

    Raises:
        MissingInput: the source is a missing value, or an empty file.
        BadInput: the input cannot be read; the message gives the reason.
    """
    if name == "recording" and isinstance(source, Recording):
        return source
    is_table = isinstance(source, Path) and name in RECORDS and source.suffix == ".parquet"
    if isinstance(source, Path) and name not in (*_OPENS_FILES, "system") and not is_table:
        source = _read_file(name, source)
    if not isinstance(source, Path) and is_missing(source):
        raise MissingInput(name)
    profile = options.get("profile", "embedded")
    if name in _PARSERS:
        return resolve_name(_PARSERS[name])(source)
    if name == "recording":
        return Recording.open(source, **options)
    if name == "recordings":
        return tuple(read_source(one, **options) for one in list_recordings(source) or [source])
    if name == "reference_voices":
        from podeval.recording.reference_voices import ReferenceVoices

        return source if isinstance(source, ReferenceVoices) else ReferenceVoices.read(source, **options)
    if name == "dialogue":
        from podeval.metrics.spoken_dialogue import SpokenDialogue

        return SpokenDialogue.parse(source, profile)
    # Any other input is read as a script.
    from podeval.text.script_format import read_any_script

    script = read_any_script(source)
    if text_notes is not None:
        text_notes.update(dict.fromkeys(script.notes))
    if name == "passage":
        return resolve_name("podeval.metrics.text.semantic_div:EmbeddedText")(script.text, profile)
    return script if name in ("script", "reference_script") else script.text


def _read_file(name: str, path: Path) -> str:
    from podeval.text.text_file import read_text

    if path.is_file() and not path.read_bytes().removeprefix(BOM_UTF8).strip():
        raise MissingInput(name, f"{path} is empty; it should contain a text or a script")
    content = read_text(path)
    if is_missing(content):
        raise MissingInput(name, f"{path} contains only {content.split()[0]!r}; it should contain a text or a script")
    return content


_PARSERS = {
    "readings": "podeval.text.comparison.accepted_readings:AcceptedReadings.parse",
    "request": "podeval.text.podcast_request:PodcastRequest.parse",
    "generation_log": "podeval.metrics.speech.rtf:GenerationLog.parse",
    "system": "podeval.metrics.battle_log:clean_name",
    "reference_votes": "podeval.metrics.human_records:read_votes",
    "reference_marks": "podeval.metrics.human_records:read_marks",
    "reference_answers": "podeval.metrics.human_records:read_answers",
}
"""The functions that read an input directly from a source, by input."""


def convert_to_text(item: Any, name: str = "script") -> str:
    """Convert a program's value for an input to text: data becomes JSON, and a `Path` becomes the content of the file.

    For inputs that open files themselves, file names are kept.

    Returns:
        The text; empty if the input, or an element of a list, is missing.

    Raises:
        BadInput: the value is neither text nor data, the file cannot be read, or a file name is given instead of words.
    """
    from podeval.text.script import Script
    from podeval.text.text_file import refuse_file_name

    if name in ("system", "recordings", *RECORDS) and isinstance(item, str | Path):
        return "" if is_missing(item) else str(item)
    if isinstance(item, Path):
        try:
            return _read_file(name, item)
        except MissingInput:
            return ""
    if isinstance(item, str):
        return "" if is_missing(item) else refuse_file_name(item)
    if name in RECORDS and not is_missing(item):
        return str(resolve_name("podeval.metrics.human_records:write_records")(item, name.replace("_", " ")))
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
    raise BadInput(f"a text must be a string, a path, or a script as data (a list of turns), not {kind}")


def _convert_scalar(value: Any) -> Any:
    """Convert a numpy scalar, or a missing value of pandas, to its JSON form."""
    if is_missing(value):
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of the type {type(value).__name__} is neither text nor data")


def read_voices(references: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Read reference voices: one recording, recordings by speaker, SPEAKER=FILE for each speaker, or a JSON file.

    Returns:
        The input `reference_voices`; empty if there are none.

    Raises:
        BadInput: there are several recordings without the speakers' names, or a recording cannot be read.
    """
    if isinstance(references, list | tuple) and not is_samples(references):
        pairs = [str(path).partition("=") for path in references if not Path(str(path)).exists()]
        if pairs and len(pairs) == len(references) and all(sign for _, sign, _ in pairs):
            references = {speaker: path for speaker, _, path in pairs}
        elif len(references) > 1:
            raise BadInput(
                "several reference voices need the names of their speakers: write --reference SPEAKER=FILE for each, "
                "or in Python references={SPEAKER: FILE}"
            )
        else:
            references = next(iter(references), None)
    return {} if references is None else {"reference_voices": read_input("reference_voices", references, **options)}


@dataclass(frozen=True)
class ScoreRequest:
    """A request to score one recording, or only its words.

    Attributes:
        script: the words; None if there are none that can be read.
        inputs: inputs other than the recording, by name; if the words are an empty cell or file, the metrics that need
            them are unscored.
        metrics: names of the requested metrics; empty for all whose inputs are given.
        profile: the profile of the models.
        speakers: expected number of speakers; 0 if unknown.
        parameters: the settings that are not at their default, by metric.
        allow_upsampling: whether recordings below a model's rate are scored anyway.
        judge: the judge, for metrics that ask a judge.
        face: the interface whose users read the advice on missing inputs.
    """

    script: Script | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    profile: str = DEFAULT_PROFILE
    speakers: int = 0
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allow_upsampling: bool = False
    judge: JudgeConfig | None = None
    face: Face = "shell"

    @property
    def lacks_words(self) -> bool:
        """Whether the words are an empty cell or file."""
        return self.script is None and "script" in self.inputs

    @property
    def has_turns(self) -> bool:
        """Whether the words name their speakers, as in a script with several speakers."""
        return self.script is not None and len(self.script.speakers) > 1

    def names_for(self, metric: Metric) -> tuple[str, ...]:
        """Return the inputs for a metric; words without speakers are not used to determine the speakers of turns."""
        names = [
            name for name in (*metric.inputs, *metric.optional_inputs) if name == "recording" or name in self.inputs
        ]
        # If the metric has no other source for the speakers, they must come from the missing script.
        told_by_script = self.lacks_words and metric.needs_speakers and not self.chosen_for(metric).get("speakers")
        if "recording" in metric.inputs and not self.has_turns and not told_by_script:
            names = [name for name in names if name != "script" or name in metric.inputs]
        return tuple(names)

    def chosen_for(self, metric: Metric) -> dict[str, Any]:
        """Return every parameter of a metric with its value.

        Raises:
            BadInput: a parameter is unknown, or cannot have the given value.
        """
        values = dict(self.parameters.get(metric.name, {}))
        if self.speakers and has_speakers(metric) and not (self.speakers == 1 and is_of_speakers(metric)):
            values.setdefault("speakers", self.speakers)
        return metric.read_parameters(values)

    @cached_property
    def identity(self) -> str:
        """A digest of everything that can change a value, except the recording and the protocols."""
        words = json.dumps(self.script.to_json()) if self.script else ""
        references = self.inputs.get("reference_voices")
        voices = None if references is None else {who: voice.content for who, voice in references.items()}
        content = json.dumps([words, voices, self.allow_upsampling], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def read_request(
    *,
    text: Any = None,
    references: Any = None,
    metrics: Sequence[str] | str | None = None,
    profile: str = DEFAULT_PROFILE,
    speakers: int | None = None,
    allow_upsampling: bool = False,
    inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> ScoreRequest:
    """Read the request of a user or a program.

    Args:
        text: the words: the path of a file, a text, or a script as data or JSON.
        references: a recording of the voice, or recordings by speaker, as paths.
        metrics: names of metrics, as a list or as comma-separated text.
        profile: the profile of the models.
        speakers: expected number of speakers.
        allow_upsampling: whether recordings below a model's rate are scored anyway.
        inputs: additional inputs of metrics by name.
        options: `parameters`, `judge` and `face` of the request.

    Raises:
        BadInput: there is no such metric or profile, or the words cannot be read.
    """
    # The default profile needs no check, because a check would read the card of every model.
    if profile != DEFAULT_PROFILE:
        from podeval.models.registry import require_profile

        require_profile(profile)
    names = metrics.split(",") if isinstance(metrics, str) else list(metrics or ())
    chosen = tuple(dict.fromkeys(catalogue.get(name.strip()).name for name in names if name.strip()))
    if speakers is not None and speakers < 1:
        raise BadInput(f"speakers must be the number of people who speak, at least 1, not {speakers}")
    voices = read_voices(references, {"profile": profile, "allow_upsampling": allow_upsampling})
    request = ScoreRequest(
        inputs={**voices, **(inputs or {})},
        metrics=chosen,
        profile=profile,
        speakers=speakers or 0,
        allow_upsampling=allow_upsampling,
        **options,
    )
    return request if text is None else add_words(request, text)


def add_words(request: ScoreRequest, text: Any) -> ScoreRequest:
    """Add the words to a request, or the text as it is if it is empty.

    Raises:
        BadInput: the text cannot be read, or contains no words.
    """
    # `Path.is_file` raises an error for words that are too long for a file name.
    if isinstance(text, str) and os.path.isfile(text):
        text = Path(text)
    script = None
    with suppress(MissingInput):
        script = read_input("script", text if isinstance(text, Path) else convert_to_text(text))
    words = dict.fromkeys(WORDS, text if script is None else script)
    return replace(request, script=script, inputs={**request.inputs, **words})


def has_speakers(metric: Metric) -> bool:
    """Return whether a metric accepts the number of speakers."""
    return any(parameter.name == "speakers" for parameter in metric.parameters)


def is_of_speakers(metric: Metric) -> bool:
    """Return whether a metric accepts the number of speakers and needs several speakers."""
    return has_speakers(metric) and not metric.needs_speakers


@dataclass(frozen=True)
class MetricPlan:
    """The metrics to compute, and the inputs that the other metrics of recordings would need.

    Attributes:
        metrics: the metrics to compute, in the order of the board.
        left_out: the reason why a metric is not tried, by metric.
        advice: suggestions of inputs to add, each with the metrics that need it.
    """

    metrics: tuple[Metric, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def plan_metrics(request: ScoreRequest) -> MetricPlan:
    """Choose the metrics whose inputs and models are available.

    Raises:
        BadInput: a metric that is requested by name lacks an input.
    """
    ready: list[Metric] = []
    left_out: dict[str, str] = {}
    advice: dict[str, list[str]] = {}
    for metric in catalogue.load_all_metrics() if not request.metrics else map(catalogue.get, request.metrics):
        obstacle = _find_obstacle(metric, request)
        if request.speakers == 1 and is_of_speakers(metric) and not request.metrics:
            left_out[metric.name] = "is only for two or more speakers"
        elif not obstacle:
            ready.append(metric)
        elif request.metrics:
            raise BadInput(f"{metric.name} {obstacle[0]}: {obstacle[1]}")
        elif metric.inputs[0] == "recording":
            left_out[metric.name] = obstacle[0]
            advice.setdefault(obstacle[1], []).append(metric.name)
    return MetricPlan(tuple(ready), left_out, {what: tuple(names) for what, names in advice.items()})


def _find_obstacle(metric: Metric, request: ScoreRequest) -> tuple[str, str] | None:
    """Return the reason why a metric cannot be tried, with the remedy; None if it can be tried."""
    missing, advice = {*metric.inputs} - {"recording", *request.inputs}, _ADVICE[request.face]
    if missing and metric.inputs[0] not in ("recording", *WORDS):
        return "is not a metric of recordings", "`podeval metrics show` lists its inputs"
    if metric.asks and not (request.judge and request.judge.judge):
        return "asks a judge", advice["judge"]
    if "reference_voices" in missing:
        return "compares with a voice", advice["voice"]
    if "request" in missing:
        return "needs the request", advice["request"]
    if missing:
        return "needs the words", advice["words"]
    tells_speakers = request.has_turns or request.lacks_words
    if metric.needs_speakers and not tells_speakers and not request.chosen_for(metric).get("speakers"):
        return "needs to know how many people speak", advice["speakers"]
    for job in metric.jobs(request.chosen_for(metric)):
        from podeval.models.registry import get_card

        try:
            get_card(job, request.profile)
        except ModelMissing as absence:
            from podeval.metrics.description import choose_own_profile

            other = choose_own_profile(metric)
            reason, _, remedy = str(absence).partition("; ")
            if other != request.profile:
                remedy = advice["profile"].format(other)
            return f"is not available here: {reason}", remedy
    return None


def open_inputs(metric: Metric, inputs: Mapping[str, Any]) -> dict[str, Any] | Unscored:
    """Read an item's inputs; return an unscored result if an input cannot be read or is missing.

    A measured input that cannot be read counts as a missing output, which is the system's fault; a missing cell in a
    table is our fault.
    """
    opened = {}
    for name in inputs:
        try:
            opened[name] = inputs[name]
        except MissingInput as absence:
            reason = MissingInput("reference", absence.detail) if name == metric.reference else absence
            return Unscored(str(reason), "ours")
        except BadInput as refusal:
            return Unscored(str(refusal), "system" if name == metric.inputs[0] else "ours")
    return opened


def add_notes(result: Result, item: Mapping[str, Any], opened: Mapping[str, Any]) -> Result:
    """Add the notes from reading an item to its score."""
    if isinstance(result, Score):
        return replace(result, notes={**result.notes, **collect_notes(item, opened)})
    return result


def collect_notes(inputs: Mapping[str, Any], opened: Mapping[str, Any]) -> dict[str, list[str]]:
    """Collect the notes from reading the file (`file`) and the texts (`text`) of an item, as sentences."""
    recording = opened.get("recording")
    sentences = {
        "file": list(recording.file_notes) if recording is not None else [],
        "text": list(getattr(inputs, "text_notes", ())),
    }
    return {name: of for name, of in sentences.items() if of}
