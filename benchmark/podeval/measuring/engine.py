"""`podeval.score` and `podeval.measure`: the metrics of a recording or a script, and their results.

A recording is decoded once and models are loaded once. Results are cached by the content of the recording, the protocol
and everything else that can change them, so a second call decodes nothing and loads no model, and a stopped call
resumes. Failures that are our fault (such as a model that is not installed) are not cached, and a judge keeps its own
records.
"""

import functools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from threadpoolctl import ThreadpoolController

from podeval.errors import BadInput, MissingInput, PodevalError
from podeval.measuring.inputs import (
    TEXT_SUFFIXES,
    WORDS,
    MetricInputs,
    MetricPlan,
    ScoreRequest,
    add_notes,
    add_words,
    convert_to_text,
    has_speakers,
    open_inputs,
    plan_metrics,
    read_request,
)
from podeval.measuring.recording_results import RecordingFacts, RecordingResults, ResultsTable
from podeval.metrics import Metric, catalogue
from podeval.metrics.catalogue import describe_protocol
from podeval.metrics.facts import INPUTS
from podeval.metrics.score import Defect, Result, Score, Unscored, parse_result
from podeval.progress import Listener, listen, report
from podeval.recording import Recording
from podeval.recording.cache import Cache, open_default_cache
from podeval.recording.recording import list_recordings, read_source
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.measuring.report import TimelinePlot

BLOCK = 1 << 20
"""Number of frames of a recording that are examined at a time."""

_FORM = 2
"""Version of the format of cached results; it increases when the format changes."""


class _PrintsTable:
    """An object that is printed as a table."""

    def __str__(self) -> str:
        """Return the table as text."""
        from podeval.measuring.score_tables import render_text

        return render_text(self)  # type: ignore[arg-type]

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Scores(_PrintsTable, RecordingResults):
    """The scores of one recording.

    Print it to see a table; a notebook shows it as a table with plots.

    Attributes:
        name: name of the recording.
        values: every value by `metric.key`.
        unscored: the reason why a metric has no score, and the cause, by metric.
        defects: faulty stretches of the recording.
        results: a score with its notes and timeline, or the reason why there is none, by metric.
        left_out: reasons why metrics were not tried, by metric.
        advice: suggestions of inputs to add, each with the metrics that need it.
        protocols: the protocols of the values, by metric.
        profile: name of the profile whose models were used.
        facts: length, rate and channels of the recording.
        requested: the metrics requested by name; empty for all.
        script: the words that the caller gave.

    Example:
        >>> import podeval
        >>> scores = podeval.score("episode.wav", text="script.json")  # doctest: +SKIP
        >>> scores["dnsmos.ovrl"]  # doctest: +SKIP
        3.21
    """

    def plot(self, name: str = "") -> "TimelinePlot":
        """Return a plot of a metric's values over time: a notebook shows it, and `save` writes it as SVG.

        Args:
            name: a metric, or one of its values, such as `dnsmos.ovrl`; empty for every metric that has a timeline.

        Raises:
            BadInput: there are no values over time; the message lists the metrics that have them.
        """
        from podeval.measuring.report import plot_results

        return plot_results(self, name)

    def report(self, path: str | Path, language: str = "en") -> Path:
        """Write one self-contained HTML file: player, transcript, timelines, defects, values and protocols.

        Args:
            path: the path of the file; an existing file is replaced.
            language: `en` or `zh`.

        Raises:
            BadInput: the file cannot be written, or there is no such language.
        """
        from podeval.measuring.report import write_report

        return write_report(self, Path(path), language)

    def _repr_html_(self) -> str:
        """Return the table with plots, for a notebook."""
        from podeval.measuring.report import render_html

        return render_html(self)


@dataclass(frozen=True, repr=False)
class ScoreTable(_PrintsTable, ResultsTable):
    """The scores of many recordings: a row for each, and the mean of every value with its 95 % interval.

    Attributes:
        scores: scores of the readable recordings, in input order.
        errors: the errors of unreadable recordings, by name.
        intervals: the mean with its interval, by `metric.key`.
    """

    def report(self, path: str | Path, language: str = "en") -> Path:
        """Write one self-contained HTML file with the table of means and a report on every recording.

        Args:
            path: the path of the file; an existing file is replaced.
            language: `en` or `zh`.

        Raises:
            BadInput: the file cannot be written, or there is no such language.
        """
        from podeval.measuring.report import write_report

        return write_report(self, Path(path), language)

    def _repr_html_(self) -> str:
        """Return the table, for a notebook."""
        from podeval.measuring.report import render_html

        return render_html(self)


def score(
    source: Any,
    text: Any = None,
    references: Any = None,
    metrics: Sequence[str] | str | None = None,
    profile: str = "embedded",
    speakers: int | None = None,
    *,
    allow_upsampling: bool = False,
    progress: Listener | None = None,
) -> Any:
    """Score one or more recordings with every metric whose inputs are given.

    A recording is decoded once, each model is loaded once, and results are cached, so a second call takes almost no
    time.

    Args:
        source: a path, the bytes of a file, `(samples, rate)`, `{"array", "sampling_rate"}`, or a row of a `datasets`
            audio column; for many recordings, a folder, a list or a column.
        text: the spoken words, for word errors and the speaker of each turn: the path of a file, a text, or a
            script as turns of speaker and text. For many recordings, one text for all or a list with one for each.
        references: the voices that the speakers should have: one recording, or recordings by speaker.
        metrics: names of metrics; by default all.
        profile: the profile whose models are used: `embedded` or `reference`.
        speakers: number of speakers, if known.
        allow_upsampling: whether recordings below a model's rate are scored anyway.
        progress: a function that receives the name of the current task, the amount finished and the total, such as
            `("metrics", 4, 22)`.

    Returns:
        `Scores` for one recording; a `ScoreTable` for many.

    Raises:
        BadInput: the recording cannot be read, there is no such metric or profile, or an input does not fit. With many
            recordings, unreadable recordings are in the table's `errors`.

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
        "face": "python",
    }
    with listen(progress) if progress is not None else nullcontext():
        many = list_recordings(source)
        if many is None:
            return score_source(source, read_request(text=text, **options))
        return score_many(many, text, options)


def score_many(sources: Sequence[Any], text: Any, options: Mapping[str, Any]) -> ScoreTable:
    """Score recordings one after the other, with one text for all or one for each; texts may be missing.

    Recordings that cannot be read are in the table's `errors`.
    """
    texts = _list_texts(text, len(sources))
    if texts is None:
        requests = [read_request(text=text, **options)] * len(sources)
    else:
        requests = [read_request(text="" if one is None else one, **options) for one in texts]
    scored, errors = [], {}
    for number, (source, request) in enumerate(zip(sources, requests, strict=True)):
        report("recordings", number, len(sources))
        try:
            scored.append(score_source(source, request))
        except BadInput as refusal:
            name = str(source) if isinstance(source, str | Path) else f"recording {number + 1}"
            errors[name] = str(refusal)
    report("recordings", len(sources), len(sources))
    return ScoreTable(tuple(scored), errors)


def measure(
    metric: str,
    source: Any,
    /,
    *,
    profile: str = "embedded",
    text: Any = None,
    references: Any = None,
    request: Any = None,
    speakers: int | None = None,
    allow_upsampling: bool = False,
    judge: str = "",
    records: str | Path | None = None,
    refresh: Literal["", "failed", "all"] = "",
    **choices: Any,
) -> Any:
    """Compute one metric for a recording, a script, a text or a different kind of input, or for many recordings.

    Args:
        metric: its name; `podeval.list_metrics()` lists all.
        source: the recording, in a form that `score` accepts; for other metrics, their input, such as a script, a
            dialogue, a generation log or the name of a system, as text, data, or the path of a file.
        profile: the profile whose models are used.
        text: the words of a recording, in a form that `score` accepts.
        references: the material for comparison: voices, a script, or the votes, marks or answers of people.
        request: the request that the item answers, as text or data.
        speakers: the number of speakers, if known.
        allow_upsampling: whether recordings below a model's rate are scored anyway.
        judge: the judge, for a metric that asks a judge: `MODEL@https://host/v1`, a GGUF file, or a judge's YAML file.
        records: the folder of the judge's raw answers.
        refresh: the recorded answers to request again: none, `failed` or `all`.
        choices: the metric's settings by name, such as `normaliser="basic"`; with a judge, also `prompts`, a folder
            with custom wordings of its prompts, as written by `podeval judge prompts`.

    Returns:
        `Scores` with the values of this metric; for many recordings, a `ScoreTable`.

    Raises:
        BadInput: there is no such metric, an input is missing or cannot be read, or there is no such setting.

    Example:
        >>> podeval.measure("mattr", "Every word is new here.")["mattr"]  # doctest: +SKIP
        1.0
    """
    declared = catalogue.get(metric)
    taken, hears = {*declared.inputs, *declared.optional_inputs}, "recording" in declared.inputs
    compared = None if hears else declared.reference
    uses = {
        "text": (text, hears and taken & {"reference_text", "script"}),
        "references": (references, "reference_voices" in taken or compared not in (None, "request")),
        "request": (request, compared == "request"),
        "speakers": (speakers, has_speakers(declared)),
        "judge": (judge or None, declared.asks),
        "records": (records, declared.asks),
    }
    for name, (value, is_used) in uses.items():
        if value is not None and not is_used:
            raise BadInput(f"{declared.name} does not use {name}; leave it out")
    if declared.asks and not judge:
        raise BadInput(f"{declared.name} needs a judge: add judge='MODEL@https://host/v1'")
    options: dict[str, Any] = {
        "metrics": [metric],
        "profile": profile,
        "parameters": {declared.name: choices},
        "speakers": speakers,
        "allow_upsampling": allow_upsampling,
        "face": "python",
    }
    if declared.asks:
        from podeval.metrics.judge_use import PROMPTS, JudgeConfig
        from podeval.metrics.prompts import read_wordings

        wordings = read_wordings(choices.pop(PROMPTS, None))
        options["judge"] = JudgeConfig(judge, records, refresh=refresh, wordings=wordings)
    if hears:
        options["references"] = references
        many = list_recordings(source)
        if many is None:
            return score_source(source, read_request(text=text, **options))
        return score_many(many, text, options)
    # Use the metric's own names for the measured input and the one that it is compared with.
    first, against = declared.inputs[0], references if request is None else request
    if compared and against is None:
        option = "request" if compared == "request" else "references"
        raise BadInput(f"{declared.name} also needs {INPUTS[compared]}: add {option}=")
    beside = {compared: _take(compared, against)} if compared else {}
    if first in WORDS:
        read = read_request(text="" if source is None else source, inputs=beside, **options)
    else:
        read = read_request(inputs={first: _take(first, source), **beside}, **options)
    return score_words(read)


def _take(name: str, source: Any) -> Any:
    """Convert the value that a program passes for an input: to the path of a file, or to text."""
    if name == "recordings":
        return source
    if isinstance(source, str) and name != "system" and os.path.isfile(source):
        return Path(source)
    return source if isinstance(source, Path) else convert_to_text(source, name)


def _list_texts(text: Any, count: int) -> list[Any] | None:
    """Return the recordings' texts if there is one for each; None if one text applies to all.

    Raises:
        BadInput: the number of texts differs from the number of recordings.
    """
    if isinstance(text, str | Path | Mapping) or not isinstance(text, Iterable):
        return None
    texts = list(text)
    if any(isinstance(one, Mapping) and not {"speaker", "role"}.isdisjoint(one) for one in texts):
        return None
    if len(texts) != count:
        raise BadInput(f"there are {count} recordings and {len(texts)} texts; give one text, or one for each recording")
    return texts


def score_source(source: Any, request: ScoreRequest, plan: MetricPlan | None = None) -> Scores:
    """Score one recording, reporting how many metrics are finished.

    Args:
        source: the recording in any form, decoded only if a result is not in the cache; for metrics of words, the
            name of a text file.
        request: the request, which contains the other inputs.
        plan: the metrics; by default the metrics that the request names or allows.

    Raises:
        BadInput: the recording cannot be read, two inputs do not fit together, or a metric that is requested by name
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
    # Compute the missing results; the matrix products are too small to benefit from a second thread.
    if missing := [metric for metric in plan.metrics if metric.name not in results]:
        inputs = _open_inputs(request, missing, {"recording": lambda: audio.recording})
        with _find_libraries().limit(limits=1, user_api="blas"):
            for metric in _count(missing):
                result = results[metric.name] = _score(metric, inputs, request)
                if metric.name in keys and not (isinstance(result, Unscored) and result.cause == "ours"):
                    data = result.to_json(with_drift=False) if isinstance(result, Score) else result.to_json()
                    cache.put(keys[metric.name], json.dumps(data, ensure_ascii=False).encode())
    noted = list_noted_defects(results.values())
    in_order = {metric.name: results[metric.name] for metric in plan.metrics}
    all_defects = tuple(sorted({*defects, *noted}, key=lambda one: (one.start, one.end)))
    more = {"defects": all_defects, "protocols": protocols, "facts": facts, "source": audio}
    return _collect(audio.name, in_order, request, plan, **more)


def score_words(request: ScoreRequest, name: str = "text") -> Scores:
    """Score a request that has no recording, with the metrics that need no audio.

    Raises:
        BadInput: an input is missing, cannot be read, or does not fit.
    """
    metrics = tuple(metric for metric in plan_metrics(request).metrics if "recording" not in metric.inputs)
    inputs = _open_inputs(request, metrics, {})
    results = {}
    with _find_libraries().limit(limits=1, user_api="blas"):
        for metric in _count(metrics):
            results[metric.name] = _score(metric, inputs, request)
    return _collect(name, results, request, MetricPlan(metrics), protocols=_describe_protocols(request, metrics))


def _count(metrics: Sequence[Metric]) -> Iterator[Metric]:
    """Yield the metrics one after another and, if there are several, report how many are finished."""
    for number, metric in enumerate(metrics):
        if len(metrics) > 1:
            report("metrics", number, len(metrics))
        yield metric
    if len(metrics) > 1:
        report("metrics", len(metrics), len(metrics))


def _collect(name: str, results: Mapping[str, Result], request: ScoreRequest, plan: MetricPlan, **more: Any) -> Scores:
    """Collect the results of a request, with the excluded metrics and those that need more inputs."""
    return Scores(
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
        BadInput: the recording or one of the other inputs cannot be read.
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
        BadInput: two inputs do not fit together, and the metric is requested by name.
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
        # One unsuitable input (such as a voice with a name that no speaker has) does not prevent the other scores.
        return Unscored(str(result), "ours")
    return add_notes(result, item, opened)


@functools.cache
def _find_libraries() -> ThreadpoolController:
    """Return a controller of this process's numerical libraries; cached, because finding them takes milliseconds."""
    return ThreadpoolController()


def _read_description(payload: bytes) -> tuple[RecordingFacts, tuple[Defect, ...]]:
    """Read the result of `_describe` from the cache."""
    data = json.loads(payload)
    return RecordingFacts.parse(data["facts"]), tuple(Defect(**defect) for defect in data["defects"])


def _describe(recording: Recording, cache: Cache, key: str) -> tuple[RecordingFacts, tuple[Defect, ...]]:
    """Describe a recording, including the defects that are found without a model, and cache the description."""
    facts = RecordingFacts(round(recording.duration, 3), recording.rate, recording.channels, recording.file_notes)
    defects = find_defects(recording)
    data = {"facts": asdict(facts), "defects": [asdict(defect) for defect in defects]}
    cache.put(key, json.dumps(data, ensure_ascii=False).encode())
    return facts, defects


def find_defects(recording: Recording) -> tuple[Defect, ...]:
    """Find faults in the file itself: no measurable content, or a channel without sound."""
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
