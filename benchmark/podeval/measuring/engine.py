"""The metrics that can be computed for a recording or a script, and their results.

A recording is decoded once and models are loaded once. Results are cached by the content of the recording, the protocol
and everything else that can change them, so a second call decodes nothing and loads no model, and a stopped call
resumes. Failures that are our fault (such as a model that is not installed) are not cached, and a judge keeps its own
records.
"""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from podeval import __version__, progress
from podeval.errors import BadInput, MissingInput, ModelMissing, PodevalError
from podeval.measuring.inputs import (
    TEXT_SUFFIXES,
    WORDS,
    Face,
    MetricInputs,
    ScoreRequest,
    add_words,
    is_of_speakers,
)
from podeval.measuring.recording_results import RecordingFacts, RecordingResults
from podeval.metrics import Metric, catalogue
from podeval.metrics.score import Defect, Result, Score, Unscored, describe_protocol, parse_result
from podeval.recording import Recording
from podeval.recording.cache import Cache, open_default_cache
from podeval.recording.recording import read_source

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
"""Advice, by interface, on how to supply an input that a metric lacks, in the terms of the interface's users."""

BLOCK = 1 << 20
"""Number of frames of a recording that are examined at a time."""

_FORM = 2
"""Version of the format of cached results; it increases when the format changes."""


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


def score_source(source: Any, request: ScoreRequest, plan: MetricPlan | None = None) -> RecordingResults:
    """Score one recording, reporting how many metrics are finished.

    Args:
        source: the recording in any form, decoded only if a result is not in the cache; for metrics of words, the
            name of a text file.
        request: the request, with the other inputs.
        plan: the metrics; by default those of the request.

    Raises:
        BadInput: the recording cannot be read, an input does not fit another, or a metric that is requested by name
            lacks an input.
    """
    if isinstance(source, str | Path) and Path(source).suffix.lower() in TEXT_SUFFIXES:
        return score_words(add_words(request, Path(source)), str(source))
    plan = plan_metrics(request) if plan is None else plan
    try:
        audio = read_source(source, profile=request.profile, allow_upsampling=request.allow_upsampling)
    except MissingInput as absence:
        absent = {metric.name: Unscored(str(absence), "ours") for metric in plan.metrics}
        return _collect("missing recording", absent, request, plan)
    # Read the results of an earlier call.
    cache, protocols = open_default_cache(), _describe_protocols(request, plan.metrics)
    keys = {
        metric.name: Cache.key(
            audio.content,
            "score",
            form=_FORM,
            version=__version__,
            metric=metric.name,
            protocol=protocols[metric.name]["id"],
            beside=request.identity,
        )
        for metric in plan.metrics
        if not metric.asks
    }
    results = {name: parse_result(json.loads(kept)) for name, key in keys.items() if (kept := cache.get(key))}
    key = Cache.key(audio.content, "described", form=_FORM, version=__version__)
    described = cache.get(key)
    facts, defects = _describe(audio.recording, cache, key) if described is None else _read_description(described)
    # Score the rest; matrix products are too small for a second thread.
    if missing := [metric for metric in plan.metrics if metric.name not in results]:
        progress.report("metrics", 0, len(missing))
        inputs = _open_inputs(request, missing, {"recording": lambda: audio.recording})
        with _find_libraries().limit(limits=1, user_api="blas"):
            for number, metric in enumerate(missing, 1):
                result = results[metric.name] = _score(metric, inputs, request)
                if metric.name in keys and not (isinstance(result, Unscored) and result.cause == "ours"):
                    data = result.to_json(with_drift=False) if isinstance(result, Score) else result.to_json()
                    cache.put(keys[metric.name], json.dumps(data, ensure_ascii=False).encode())
                progress.report("metrics", number, len(missing))
    noted = list_noted_defects(results.values())
    in_order = {metric.name: results[metric.name] for metric in plan.metrics}
    all_defects = tuple(sorted({*defects, *noted}, key=lambda one: (one.start, one.end)))
    more = {"defects": all_defects, "protocols": protocols, "facts": facts, "source": audio}
    return _collect(audio.name, in_order, request, plan, **more)


def score_words(request: ScoreRequest, name: str = "text") -> RecordingResults:
    """Score the inputs of a request without a recording, with the metrics that need no audio.

    Raises:
        BadInput: an input is missing, cannot be read, or does not fit.
    """
    metrics = tuple(metric for metric in plan_metrics(request).metrics if "recording" not in metric.inputs)
    inputs = _open_inputs(request, metrics, {})
    results = {}
    with _find_libraries().limit(limits=1, user_api="blas"):
        for number, metric in enumerate(metrics):
            progress.report("metrics", number, len(metrics))
            results[metric.name] = _score(metric, inputs, request)
    progress.report("metrics", len(metrics), len(metrics))
    return _collect(name, results, request, MetricPlan(metrics), protocols=_describe_protocols(request, metrics))


def _collect(
    name: str, results: Mapping[str, Result], request: ScoreRequest, plan: MetricPlan, **more: Any
) -> RecordingResults:
    """Collect the results of a request, with the excluded metrics and those that need more inputs."""
    return RecordingResults(
        name,
        results,
        left_out=plan.left_out,
        advice=plan.advice,
        profile=request.profile,
        requested=request.metrics,
        script=request.script,
        **more,
    )


def _describe_protocols(request: ScoreRequest, metrics: Sequence[Metric]) -> dict[str, dict[str, Any]]:
    """Describe how the values of each metric are computed."""
    return {
        metric.name: describe_protocol(
            metric, request.chosen_for(metric), request.names_for(metric), request.profile, request.judge
        )
        for metric in metrics
    }


def _open_inputs(request: ScoreRequest, metrics: Sequence[Metric], recording: Mapping[str, Any]) -> MetricInputs:
    """Read the inputs that metrics need.

    Raises:
        BadInput: the recording or another input cannot be read.
    """
    inputs = MetricInputs(
        {**request.inputs, **recording},
        profile=request.profile,
        allow_upsampling=request.allow_upsampling,
        keep=True,
    )
    for metric in metrics:
        for name in request.names_for(metric):
            with suppress(MissingInput):
                inputs[name]
    return inputs


def _score(metric: Metric, inputs: MetricInputs, request: ScoreRequest) -> Result:
    """Score with one metric.

    Raises:
        BadInput: an input does not fit another, and the metric is requested by name.
    """
    chosen = request.chosen_for(metric)
    client = request.judge.judging(metric.asks, chosen) if metric.asks and request.judge else None
    item = inputs.select(metric, request.names_for(metric))
    opened = open_inputs(metric, item)
    if isinstance(opened, Unscored):
        return opened
    (result,) = metric.score([opened], chosen, client)
    if isinstance(result, PodevalError):
        if request.metrics:
            raise result
        # One unsuitable input (such as a voice whose name is not a speaker's) does not prevent the other scores.
        return Unscored(str(result), "ours")
    return add_notes(result, item, opened)


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


@functools.cache
def _find_libraries() -> ThreadpoolController:
    """Return a controller of this process's numerical libraries; cached, because finding them takes milliseconds."""
    return ThreadpoolController()


def _read_description(payload: bytes) -> tuple[RecordingFacts, tuple[Defect, ...]]:
    """Read the result of `_describe` from the cache."""
    data = json.loads(payload)
    return RecordingFacts.parse(data["facts"]), tuple(Defect(**defect) for defect in data["defects"])


def _describe(recording: Recording, cache: Cache, key: str) -> tuple[RecordingFacts, tuple[Defect, ...]]:
    """Describe a recording, with the defects that need no model, and cache the description."""
    facts = RecordingFacts(round(recording.duration, 3), recording.rate, recording.channels, recording.file_notes)
    defects = find_defects(recording)
    data = {"facts": asdict(facts), "defects": [asdict(defect) for defect in defects]}
    cache.put(key, json.dumps(data, ensure_ascii=False).encode())
    return facts, defects


def find_defects(recording: Recording) -> tuple[Defect, ...]:
    """Find faults of the file itself: no measurable content, or a channel without sound."""
    length = round(recording.duration, 3)
    if recording.defect:
        return (Defect("unusable", 0.0, length, recording.defect),)
    if recording.channels < 2:
        return ()
    sounding = np.zeros(recording.channels, dtype=bool)
    for start in range(0, len(recording.samples), BLOCK):
        sounding |= recording.samples[start : start + BLOCK].any(axis=0)
    silent = (f"channel {number + 1} contains no sound" for number in np.flatnonzero(~sounding))
    return tuple(Defect("silent channel", 0.0, length, detail) for detail in silent)


def list_noted_defects(results: Iterable[Result]) -> list[Defect]:
    """List the defects that metrics noted, in chronological order; a defect that two metrics found is listed once."""
    noting = [result for result in results if isinstance(result, Score) and "defects" in result.notes]
    if not noting:
        return []
    from podeval.metrics.defects import collect_defects

    return [
        Defect(one.kind, round(one.start, 3), round(one.end, 3), one.detail or one.kind)
        for one in collect_defects(noting)
    ]
