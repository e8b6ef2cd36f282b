"""`podeval.score`, `podeval.measure` and `podeval.list_metrics`: what Python has of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from podeval import progress as work_progress
from podeval.errors import BadInput, MissingInput
from podeval.measuring.engine import score_source
from podeval.measuring.inputs import TEXT_SUFFIXES
from podeval.measuring.listing import MetricEntry, MetricListing
from podeval.measuring.recording_results import RecordingFacts
from podeval.measuring.request import MetricPlan, ScoreRequest, has_speakers, plan_metrics, read_request, take_words
from podeval.measuring.scores import Scores, ScoreTable
from podeval.measuring.sources import list_recordings, read_source
from podeval.measuring.words import score_script
from podeval.metrics import catalogue
from podeval.metrics.declaration import INPUTS
from podeval.metrics.score import Unscored
from podeval.text.script import Script


def score(
    source: Any,
    text: Any = None,
    references: Any = None,
    metrics: Sequence[str] | str | None = None,
    profile: str = "embedded",
    speakers: int | None = None,
    *,
    allow_upsampling: bool = False,
    progress: work_progress.Listener | None = None,
) -> Any:
    """Score a recording, or many, with every metric whose inputs are there.

    A recording is decoded once, each model is loaded once, and results are kept, so that a second call is nearly free.

    Args:
        source: a path, the bytes of a file, `(samples, rate)`, `{"array", "sampling_rate"}`, or a row of a `datasets`
            audio column; a folder, a list or a column of such for many.
        text: what is said, which gets word errors and who speaks when: the path of a file, a text, or a script as
            turns of speaker and text. For many recordings one for all, or a list with one each.
        references: the voices the speakers should have: one recording, or recordings by speaker.
        metrics: names, where not all are wanted.
        profile: the profile of the models: `embedded` or `reference`.
        speakers: how many people speak, where it is known.
        allow_upsampling: whether recordings below a model's rate are scored all the same.
        progress: a function that is called with the name of the task at hand, how much of it is finished, and the
            total, such as `("metrics", 4, 22)`.

    Returns:
        `Scores` of one recording; for many a `ScoreTable`.

    Raises:
        BadInput: the recording cannot be read, there is no such metric or profile, or an input does not fit. Of many
            recordings those that cannot be read are `errors` of the table.

    Example:
        >>> import podeval
        >>> scores = podeval.score("episode.wav", text="script.json")  # doctest: +SKIP
        >>> scores["wer"], scores.values["dnsmos.ovrl"]  # doctest: +SKIP
        (0.031, 3.21)
    """
    options = {
        "references": references,
        "metrics": metrics,
        "profile": profile,
        "speakers": speakers,
        "allow_upsampling": allow_upsampling,
    }
    with work_progress.listen(progress) if progress is not None else nullcontext():
        return _score_any(source, text, options)


def _score_any(source: Any, text: Any, options: Mapping[str, Any]) -> Any:
    """Score one recording or many, with one text for all or one for each, of which some may be missing."""
    many = list_recordings(source)
    if many is None:
        return score_one(source, read_request(text=text, **options))
    texts = _list_texts(text, len(many))
    if texts is None:
        return score_many(many, [read_request(text=text, **options)] * len(many))
    return score_many(many, [read_request(text="" if one is None else one, **options) for one in texts])


def score_one(source: Any, request: ScoreRequest) -> Scores:
    """Score one recording as a request asks.

    Raises:
        BadInput: the recording cannot be read, or a metric that is wanted by name lacks an input.
    """
    if isinstance(source, str | Path) and Path(source).suffix.lower() in TEXT_SUFFIXES:
        words = replace(request, **take_words(Path(source)))
        return score_script(words, plan_metrics(words), str(source))
    plan = plan_metrics(request)
    try:
        opened = read_source(source, profile=request.profile, allow_upsampling=request.allow_upsampling)
    except MissingInput as absence:
        return _leave_unscored(request, plan, str(absence))
    return score_source(opened, request, plan)


def _leave_unscored(request: ScoreRequest, plan: MetricPlan, reason: str) -> Scores:
    """Return the scores of a recording that is missing, which no metric of the plan has."""
    return Scores(
        name="missing recording",
        results={metric.name: Unscored(reason, "ours") for metric in plan.metrics},
        left_out=plan.left_out,
        advice=plan.advice,
        defects=(),
        protocols={},
        profile=request.profile,
        facts=RecordingFacts(0.0, 0, 0),
        requested=request.metrics,
        script=request.script,
    )


def score_many(sources: Sequence[Any], requests: Sequence[ScoreRequest]) -> ScoreTable:
    """Score recordings one after the other; those that cannot be read are errors of the table."""
    scored, errors = [], {}
    for number, (source, request) in enumerate(zip(sources, requests, strict=True)):
        work_progress.report("recordings", number, len(sources))
        try:
            scored.append(score_one(source, request))
        except BadInput as refusal:
            errors[_name_of(source, number)] = str(refusal)
    work_progress.report("recordings", len(sources), len(sources))
    return ScoreTable(tuple(scored), errors)


def measure(metric: str, source: Any, *, profile: str = "embedded", **inputs: Any) -> Any:
    """Measure one metric of a recording, a script or a text, or of many recordings.

    Args:
        metric: its name; `podeval.list_metrics()` lists all.
        source: the recording, as `score` takes it; for a metric of texts a script or a text, or the path of one.
        profile: the profile of the models.
        inputs: what the metric compares with (`text`, `references`) and its choices by name, such as
            `normaliser="basic"`.

    Returns:
        `Scores` with the values of this metric; for many recordings a `ScoreTable`.

    Raises:
        BadInput: there is no such metric, an input is missing or cannot be read, or a choice it does not have.

    Example:
        >>> podeval.measure("mattr", "Every word is new here.")["mattr"]  # doctest: +SKIP
        1.0
    """
    declared = catalogue.get(metric)
    taken = {*declared.inputs, *declared.optional_inputs}
    beside = {
        "text": bool(taken & {"reference_text", "script"}) and "recording" in declared.inputs,
        "references": "reference_voices" in taken,
        "speakers": has_speakers(declared),
        "allow_upsampling": True,
    }
    of_score = {name: inputs.pop(name) for name in beside.keys() & inputs.keys()}
    for name, value in of_score.items():
        if value is not None and not beside[name]:
            raise BadInput(f"{declared.name} has no use for {name}; leave it out")
    text = of_score.pop("text", None)
    options = {"metrics": [metric], "profile": profile, "parameters": {declared.name: inputs}, **of_score}
    if "recording" not in declared.inputs:
        if declared.asks or len(declared.inputs) > 1 or declared.inputs[0] not in ("text", "passage", "script"):
            needed = ", ".join(INPUTS[name] for name in declared.inputs)
            raise BadInput(
                f"{declared.name} takes {needed}: use `podeval measure {declared.name}` or its evaluate module"
            )
        request = read_request(text="" if source is None else source, **options)
        return score_script(request, plan_metrics(request))
    if declared.asks:
        raise BadInput(f"{declared.name} asks a judge: use `podeval measure {declared.name} --judge …`")
    return _score_any(source, text, options)


def list_metrics() -> MetricListing:
    """List the metrics: what each says, its values with their directions, and what it needs; prints as a table."""
    return MetricListing([MetricEntry.of(metric) for metric in catalogue.load_all_metrics()])


def _list_texts(text: Any, count: int) -> list[Any] | None:
    """Return the texts of the recordings where there is one for each, as a list or a column; None for one for all.

    Raises:
        BadInput: their number is another than that of the recordings.
    """
    if isinstance(text, str | Path | Mapping | Script) or not isinstance(text, Iterable):
        return None
    texts = list(text)
    if any(isinstance(one, Mapping) and not {"speaker", "role"}.isdisjoint(one) for one in texts):
        return None
    if len(texts) != count:
        raise BadInput(f"there are {count} recordings and {len(texts)} texts; give one text, or one for each recording")
    return texts


def _name_of(source: Any, number: int) -> str:
    return str(source) if isinstance(source, str | Path) else f"recording {number + 1}"
