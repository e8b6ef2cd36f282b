"""What is asked of a recording or a script, the metrics that can be had of it, and their results.

A recording is decoded once and models are loaded once. A result is kept in the cache under the content of the
recording, the protocol and everything beside the recording that can change it, so that a second call decodes nothing
and loads no model, and one that was stopped goes on where it was. What failed by our fault (a model that is not
installed) is tried again, and a judge keeps records of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval import progress
from podeval.audio.blas_threads import limit_to_one_thread
from podeval.errors import BadInput, MissingInput, ModelMissing, PodevalError
from podeval.measuring.compute import describe_protocol, score_item
from podeval.measuring.inputs import AudioSource, MetricInputs, convert_to_text, read_input, read_voices
from podeval.measuring.recording_results import Defect, RecordingFacts, find_defects, list_noted_defects
from podeval.measuring.scores import Scores
from podeval.metrics import catalogue
from podeval.metrics.declaration import Metric
from podeval.metrics.judge_use import NOBODY, JudgeConfig
from podeval.metrics.score import Result, Unscored, parse_result
from podeval.models import registry
from podeval.recording.cache import Cache, open_default_cache
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.text.script import Script

WORDS = ("reference_text", "text", "passage", "script")
"""What the words are called as an input of metrics; in those of texts they are what is measured."""

_FORM = 2
"""Of what is kept; raised when it changes."""


@dataclass(frozen=True)
class ScoreRequest:
    """What is asked of one recording, or of the words alone.

    Attributes:
        script: the words, where they could be read.
        inputs: what metrics can have beside the recording, by name; the words may be an empty cell or file, and the
            metrics that need them are then unscored.
        metrics: names of those that are wanted; empty for all whose inputs are there.
        profile: the profile of the models.
        speakers: how many there should be; 0 where nobody says.
        parameters: the choices that are not at their default, by metric.
        allow_upsampling: whether recordings below a model's rate are scored all the same.
        judge: the judge of the metrics that ask one.
    """

    script: Script | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    profile: str = "embedded"
    speakers: int = 0
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allow_upsampling: bool = False
    judge: JudgeConfig = NOBODY

    @property
    def lacks_words(self) -> bool:
        """Whether there is an empty cell or file in which words should be."""
        return self.script is None and "script" in self.inputs

    @property
    def has_turns(self) -> bool:
        """Whether the words say who speaks, as a script of several speakers does."""
        return self.script is not None and len(self.script.speakers) > 1

    def names_for(self, metric: Metric) -> tuple[str, ...]:
        """The inputs that a metric gets; words without speakers do not tell who speaks when."""
        names = [
            name for name in (*metric.inputs, *metric.optional_inputs) if name == "recording" or name in self.inputs
        ]
        # Who speaks is in the script that is missing, where the metric is told by nothing else.
        told_by_script = self.lacks_words and metric.needs_speakers and not self.chosen_for(metric).get("speakers")
        if "recording" in metric.inputs and not self.has_turns and not told_by_script:
            names = [name for name in names if name != "script" or name in metric.inputs]
        return tuple(names)

    def chosen_for(self, metric: Metric) -> dict[str, Any]:
        """Every parameter of a metric with its value.

        Raises:
            BadInput: an unknown parameter, or a value it cannot take.
        """
        values = dict(self.parameters.get(metric.name, {}))
        if self.speakers and has_speakers(metric) and not (self.speakers == 1 and is_of_speakers(metric)):
            values.setdefault("speakers", self.speakers)
        return metric.read_parameters(values)

    @cached_property
    def identity(self) -> str:
        """A digest of everything beside the recording that can change a value and is in no protocol."""
        words = json.dumps(self.script.to_json()) if self.script else ""
        references = self.inputs.get("reference_voices")
        voices = None if references is None else {who: voice.content for who, voice in references.items()}
        content = json.dumps([words, voices, self.allow_upsampling], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class MetricPlan:
    """Which metrics are scored, and of the others of recordings what they would need.

    Attributes:
        metrics: the metrics to be scored, in the order of the board.
        left_out: the reason why a metric is not tried, by its name.
        advice: what gets more, a phrase each, with the metrics that it gets.
    """

    metrics: tuple[Metric, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_request(
    *,
    text: Any = None,
    references: Any = None,
    metrics: Sequence[str] | str | None = None,
    profile: str = "embedded",
    speakers: int | None = None,
    allow_upsampling: bool = False,
    inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> ScoreRequest:
    """Read what a person or a program asks for.

    Args:
        text: the words: the path of a file, a text, a script as data or JSON.
        references: a recording of the voice, or recordings by speaker, as paths.
        metrics: names, or one text with commas between them.
        profile: the profile of the models.
        speakers: how many there should be.
        allow_upsampling: whether recordings below a model's rate are scored all the same.
        inputs: further inputs of metrics by name.
        options: `parameters` and `judge` of the request.

    Raises:
        BadInput: no such metric or profile, or words that cannot be read.
    """
    registry.require_profile(profile)
    names = metrics.split(",") if isinstance(metrics, str) else list(metrics or ())
    chosen = tuple(dict.fromkeys(catalogue.get(name.strip()).name for name in names if name.strip()))
    if speakers is not None and speakers < 1:
        raise BadInput(f"speakers is the number of people who speak, at least 1, not {speakers}")
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
    """Add the words to a request, or the text as it is where there is nothing in it.

    Raises:
        BadInput: they cannot be read, or contain no words.
    """
    # Of words that are no file's name, as they are too long for one, `Path.is_file` raises.
    if isinstance(text, str) and os.path.isfile(text):
        text = Path(text)
    script = None
    with suppress(MissingInput):
        script = read_input("script", text if isinstance(text, Path) else convert_to_text(text))
    words = dict.fromkeys(WORDS, text if script is None else script)
    return replace(request, script=script, inputs={**request.inputs, **words})


def plan_metrics(request: ScoreRequest) -> MetricPlan:
    """Choose the metrics whose inputs and models are there.

    Raises:
        BadInput: a metric is wanted by name that lacks an input.
    """
    ready: list[Metric] = []
    left_out: dict[str, str] = {}
    advice: dict[str, list[str]] = {}
    for metric in catalogue.load_all_metrics() if not request.metrics else map(catalogue.get, request.metrics):
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
    missing = {*metric.inputs} - {"recording", *request.inputs}
    if missing and metric.inputs[0] not in ("recording", *WORDS):
        return "is no metric of a recording", "`podeval metrics show` says what it takes"
    if metric.asks and not request.judge.judge:
        return "asks a judge", "podeval measure METRIC --judge …"
    if "reference_voices" in missing:
        return "compares with a voice", "--reference [SPEAKER=]FILE"
    if missing:
        return "needs the words", "--text FILE"
    tells_speakers = request.has_turns or request.lacks_words
    if metric.needs_speakers and not tells_speakers and not request.chosen_for(metric).get("speakers"):
        return "needs to know how many people speak", "--text SCRIPT with its speakers, or --speakers N"
    for job in metric.jobs(request.chosen_for(metric)):
        try:
            registry.get_card(job, request.profile)
        except ModelMissing as absence:
            from podeval.metrics.description import choose_own_profile

            other = choose_own_profile(metric)
            advice = f"--profile {other}" if other != request.profile else str(absence).partition("; ")[2]
            return f"is not available here: {str(absence).partition('; ')[0]}", advice
    return None


def score_source(source: AudioSource | None, request: ScoreRequest, plan: MetricPlan, name: str = "text") -> Scores:
    """Score one recording, and report how many metrics are finished.

    Args:
        source: the recording, which is decoded where a result is not in the cache; None where words are measured.
        request: what is asked, with what there is beside the recording.
        plan: the metrics.
        name: what is measured, where it is no recording.

    Raises:
        BadInput: the recording cannot be read, or an input does not fit another.
    """
    session = _Session(source, request, plan.metrics)
    results = {metric.name: result for metric in plan.metrics if (result := session.read(metric)) is not None}
    facts, defects = session.describe()
    if missing := [metric for metric in plan.metrics if metric.name not in results]:
        progress.report("metrics", 0, len(missing))
        session.open(missing)
        # Products of matrices are too small for a second thread.
        with limit_to_one_thread():
            for number, metric in enumerate(missing, 1):
                results[metric.name] = session.score(metric)
                progress.report("metrics", number, len(missing))
    return Scores(
        name=source.name if source else name,
        results={metric.name: results[metric.name] for metric in plan.metrics},
        left_out=plan.left_out,
        advice=plan.advice,
        defects=tuple(sorted({*defects, *list_noted_defects(results.values())}, key=lambda one: (one.start, one.end))),
        protocols=session.protocols,
        profile=request.profile,
        facts=facts,
        requested=request.metrics,
        source=source,
        script=request.script,
    )


class _Session:
    """The scoring of one recording: what is kept of it, and its inputs, opened when they are needed."""

    def __init__(self, source: AudioSource | None, request: ScoreRequest, metrics: Sequence[Metric]) -> None:
        self._source, self._request = source, request
        self.protocols = {
            one.name: describe_protocol(
                one, request.chosen_for(one), request.names_for(one), request.profile, request.judge
            )
            for one in metrics
        }
        self._inputs = MetricInputs(
            {**request.inputs, **({"recording": lambda: source.recording} if source else {})},
            profile=request.profile,
            allow_upsampling=request.allow_upsampling,
            keep=True,
        )
        self._cache: Cache = open_default_cache()

    def read(self, metric: Metric) -> Result | None:
        """The result that is kept; None where there is none."""
        key = self._key(metric)
        payload = self._cache.get(key) if key else None
        return None if payload is None else parse_result(json.loads(payload))

    def open(self, metrics: list[Metric]) -> None:
        """Read what metrics ask for.

        Raises:
            BadInput: the recording or another input cannot be read.
        """
        for metric in metrics:
            for name in self._request.names_for(metric):
                with suppress(MissingInput):
                    self._inputs[name]

    def score(self, metric: Metric) -> Result:
        """Score with one metric, and keep the result.

        Raises:
            BadInput: the recording cannot be read, or an input does not fit another.
        """
        request = self._request
        chosen = request.chosen_for(metric)
        client = request.judge.judging(metric.asks, chosen) if metric.asks else None
        try:
            result = score_item(metric, self._inputs.select(metric, request.names_for(metric)), chosen, client)
        except PodevalError as error:
            if request.metrics:
                raise
            # One input that does not fit (a voice without a speaker of its name) does not keep the others' scores.
            return Unscored(str(error), "ours")
        if (key := self._key(metric)) and not (isinstance(result, Unscored) and result.cause == "ours"):
            self._cache.put(key, json.dumps(result.to_json(), ensure_ascii=False).encode())
        return result

    def describe(self) -> tuple[RecordingFacts, tuple[Defect, ...]]:
        """What the recording is, and the defects that need no model."""
        if self._source is None:
            return RecordingFacts(0.0, 0, 0), ()
        key = Cache.key(self._source.content, "described", form=_FORM, version=__version__)
        if (payload := self._cache.get(key)) is not None:
            data = json.loads(payload)
            return RecordingFacts.parse(data["facts"]), tuple(Defect(**defect) for defect in data["defects"])
        recording = self._source.recording
        facts = RecordingFacts(round(recording.duration, 3), recording.rate, recording.channels, recording.file_notes)
        defects = find_defects(recording)
        data = {"facts": asdict(facts), "defects": [asdict(defect) for defect in defects]}
        self._cache.put(key, json.dumps(data, ensure_ascii=False).encode())
        return facts, defects

    def _key(self, metric: Metric) -> str:
        """The key of a result in the cache; empty for words, which take no time, and for a judge's."""
        if self._source is None or metric.asks:
            return ""
        return Cache.key(
            self._source.content,
            "score",
            form=_FORM,
            version=__version__,
            metric=metric.name,
            protocol=self.protocols[metric.name]["id"],
            beside=self._request.identity,
        )
