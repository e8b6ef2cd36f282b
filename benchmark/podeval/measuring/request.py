"""What is asked of a recording: the inputs beside it, whose models, and which metrics can be had of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput, MissingInput, ModelMissing
from podeval.measuring.inputs import convert_to_text, read_input, read_voices
from podeval.metrics import catalogue
from podeval.metrics.description import choose_own_profile
from podeval.models import registry

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric
    from podeval.recording.reference_voices import ReferenceVoices
    from podeval.text.script import Script

_OF_WORDS = ("text", "passage", "script")
"""What the words are called as the measured input of a metric of texts."""


@dataclass(frozen=True)
class ScoreRequest:
    """What is asked of one recording.

    Attributes:
        script: what is said in it; None where nobody says.
        references: recordings of the voices by speaker; None without any.
        metrics: names of those that are wanted; empty for all whose inputs are there.
        profile: whose models.
        speakers: how many there should be; 0 where nobody says.
        parameters: by metric the choices that are not at their default.
        allow_upsampling: whether recordings below a model's rate are scored all the same.
        missing_words: an empty cell or file in which words should be; the metrics that need words are unscored.
    """

    script: Script | None = None
    references: ReferenceVoices | None = None
    metrics: tuple[str, ...] = ()
    profile: str = "embedded"
    speakers: int = 0
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allow_upsampling: bool = False
    missing_words: Any = None

    @property
    def has_turns(self) -> bool:
        """Whether the words say who speaks, as a script of several speakers does."""
        return self.script is not None and len(self.script.speakers) > 1

    @property
    def input_names(self) -> frozenset[str]:
        """The inputs that metrics can have beside the recording."""
        names = {"recording"}
        if self.script is not None or self.missing_words is not None:
            names |= {"reference_text", *_OF_WORDS}
        if self.references is not None:
            names.add("reference_voices")
        return frozenset(names)

    def names_for(self, metric: Metric) -> tuple[str, ...]:
        """The inputs that a metric gets; words without speakers do not tell who speaks when."""
        names = [name for name in (*metric.inputs, *metric.optional_inputs) if name in self.input_names]
        # Who speaks is in the script that is missing, where the metric is told by nothing else.
        told_by_script = self.missing_words is not None and metric.needs_speakers
        lacks_script = told_by_script and not self.chosen_for(metric).get("speakers")
        beside = "recording" in metric.inputs and not self.has_turns and not lacks_script
        return tuple(name for name in names if not (beside and name == "script" and name in metric.optional_inputs))

    def chosen_for(self, metric: Metric) -> dict[str, Any]:
        """Every parameter of a metric with its value.

        Raises:
            BadInput: an unknown parameter, or a value it cannot take.
        """
        values = dict(self.parameters.get(metric.name, {}))
        if self.speakers and has_speakers(metric) and not (self.speakers == 1 and is_of_speakers(metric)):
            values.setdefault("speakers", self.speakers)
        return metric.read_parameters(values)

    def identity(self) -> str:
        """A digest of everything beside the recording that can change a value and is in no protocol."""
        words = json.dumps(self.script.to_json()) if self.script else ""
        voices = {who: voice.content for who, voice in self.references.items()} if self.references else None
        content = json.dumps([words, voices, self.allow_upsampling], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class MetricPlan:
    """Which metrics are scored, and of the others of recordings what they would need.

    Attributes:
        metrics: to be scored, in the order of the board.
        left_out: by the name of a metric the reason why it is not tried.
        advice: what gets more, a phrase each, with the metrics that it gets.
    """

    metrics: tuple[Metric, ...]
    left_out: Mapping[str, str]
    advice: Mapping[str, tuple[str, ...]]


def read_request(
    *,
    text: Any = None,
    references: Any = None,
    metrics: Sequence[str] | str | None = None,
    profile: str = "embedded",
    speakers: int | None = None,
    allow_upsampling: bool = False,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
) -> ScoreRequest:
    """Read what a person or a program asks for.

    Args:
        text: the words: the path of a file, a text, a script as data or JSON.
        references: a recording of the voice, or recordings by speaker, as paths.
        metrics: names, or one text with commas between them.
        profile: the profile of the models.
        speakers: how many there should be.
        allow_upsampling: whether recordings below a model's rate are scored all the same.
        parameters: choices that are not at their default, by metric.

    Raises:
        BadInput: no such metric or profile, or words that cannot be read.
    """
    registry.require_profile(profile)
    names = metrics.split(",") if isinstance(metrics, str) else list(metrics or ())
    chosen = tuple(dict.fromkeys(catalogue.get(name.strip()).name for name in names if name.strip()))
    if speakers is not None and speakers < 1:
        raise BadInput(f"speakers is the number of people who speak, at least 1, not {speakers}")
    return ScoreRequest(
        references=read_voices(references, {"profile": profile, "allow_upsampling": allow_upsampling}).get(
            "reference_voices"
        ),
        metrics=chosen,
        profile=profile,
        speakers=speakers or 0,
        parameters=parameters or {},
        allow_upsampling=allow_upsampling,
        **({} if text is None else take_words(text)),
    )


def take_words(text: Any) -> dict[str, Any]:
    """Read the words of a recording for a request: its `script`, or the text itself as its `missing_words`.

    Raises:
        BadInput: as for `read_words`.
    """
    try:
        return {"script": read_words(text)}
    except MissingInput:
        return {"missing_words": text}


def read_words(text: Any) -> Script:
    """Read the words of a recording: the name of a file that is there, a text, or a script as data.

    Raises:
        MissingInput: there is nothing in them.
        BadInput: they cannot be read, or contain no words.
    """
    # Of words that are no file's name, as they are too long for one, `Path.is_file` raises.
    if isinstance(text, str) and os.path.isfile(text):
        text = Path(text)
    words: Script = read_input("script", text if isinstance(text, Path) else convert_to_text(text))
    return words


def plan_metrics(request: ScoreRequest) -> MetricPlan:
    """Choose the metrics whose inputs and models are there.

    Raises:
        BadInput: a metric is wanted by name that lacks an input.
    """
    ready: list[Metric] = []
    left_out: dict[str, str] = {}
    advice: dict[str, list[str]] = {}
    for metric in catalogue.load_all_metrics() if not request.metrics else map(catalogue.get, request.metrics):
        if "recording" not in metric.inputs and metric.inputs[0] not in _OF_WORDS:
            obstacle: tuple[str, str] | None = (
                "is no metric of a recording",
                "`podeval metrics show` says what it takes",
            )
        else:
            obstacle = _find_obstacle(metric, request)
        if request.speakers == 1 and is_of_speakers(metric) and not request.metrics:
            left_out[metric.name] = "is of two speakers or more"
        elif not obstacle:
            ready.append(metric)
        elif request.metrics:
            raise BadInput(f"{metric.name} {obstacle[0]}: {obstacle[1]}")
        elif metric.inputs[0] == "recording":
            left_out[metric.name] = obstacle[0]
            advice.setdefault(obstacle[1], []).append(metric.name)
    return MetricPlan(tuple(ready), left_out, {what: tuple(names) for what, names in advice.items()})


def has_speakers(metric: Metric) -> bool:
    """Whether a metric can be told how many people speak."""
    return any(parameter.name == "speakers" for parameter in metric.parameters)


def is_of_speakers(metric: Metric) -> bool:
    """Whether a metric can be told how many people speak, and one is too few for it."""
    return has_speakers(metric) and not metric.needs_speakers


def _find_obstacle(metric: Metric, request: ScoreRequest) -> tuple[str, str] | None:
    """Why a metric cannot be tried, and what helps; None where it can."""
    if metric.asks:
        return "asks a judge", "podeval measure METRIC --judge …"
    missing = [name for name in metric.inputs if name not in request.input_names]
    if "reference_voices" in missing:
        return "compares with a voice", "--reference [SPEAKER=]FILE"
    if missing:
        return "needs the words", "--text FILE"
    tells_speakers = request.has_turns or request.missing_words is not None
    if metric.needs_speakers and not tells_speakers and not request.chosen_for(metric).get("speakers"):
        return "needs to know how many people speak", "--text SCRIPT with its speakers, or --speakers N"
    for job in metric.jobs(request.chosen_for(metric)):
        try:
            registry.get_card(job, request.profile)
        except ModelMissing as absence:
            other = choose_own_profile(metric)
            advice = f"--profile {other}" if other != request.profile else str(absence).partition("; ")[2]
            return f"is not available here: {str(absence).partition('; ')[0]}", advice
    return None
