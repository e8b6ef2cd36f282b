"""Compute one metric over many items, for the library, the command line, `evaluate` and the Space alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput, PodevalError
from podeval.measuring.inputs import add_notes, open_inputs
from podeval.metrics import Metric, Result, Unscored
from podeval.metrics.catalogue import describe_protocol

if TYPE_CHECKING:
    from podeval.judges.rounds import Asked
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.stats.intervals import Interval

_AT_ONCE = {True: 4, False: 64}
"""Maximum number of items judged at the same time; it is lower for recordings, which are kept in memory, than for
scripts."""


def score_items(
    metric: Metric, items: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], client: Asked | None = None
) -> Iterator[Result | PodevalError]:
    """Yield the result of each item as it becomes available, or the error for a refused item.

    A judge is asked about many items at a time; if one item is refused, the answers about the others are kept.

    Args:
        metric: the metric to compute.
        items: inputs of each item by name; an input that cannot be read makes the item unscored.
        chosen: every parameter with its value.
        client: the client of the judge, for a metric that asks a judge.
    """
    size = _AT_ONCE[metric.inputs[0] == "recording"] if client else 1
    for start in range(0, len(items), size):
        sources = items[start : start + size]
        opened = [open_inputs(metric, item) for item in sources]
        ready = [inputs for inputs in opened if not isinstance(inputs, Unscored)]
        results = metric.score(ready, chosen, client)
        for source, inputs in zip(sources, opened, strict=True):
            if isinstance(inputs, Unscored):
                yield inputs
            else:
                result = next(results)
                yield result if isinstance(result, PodevalError) else add_notes(result, source, inputs)


def score_item(
    metric: Metric, inputs: Mapping[str, Any], chosen: Mapping[str, Any], client: Asked | None = None
) -> Result:
    """Score one item.

    Raises:
        PodevalError: the item is refused.
    """
    (result,) = score_items(metric, [inputs], chosen, client)
    return _raise_error(result)


def _raise_error(result: Result | PodevalError) -> Result:
    if isinstance(result, PodevalError):
        raise result
    return result


def compute(
    metric: Metric,
    items: Iterable[Mapping[str, Any]],
    *,
    input_names: tuple[str, ...],
    parameters: Mapping[str, Any] | None = None,
    profile: str = "embedded",
    groups: Sequence[str] | None = None,
    bench: JudgeConfig | None = None,
    timelines: bool = True,
) -> dict[str, Any]:
    """Score items; return values, intervals, items and protocol in one flat dict.

    Args:
        metric: the metric to compute.
        items: inputs of each item by name; inputs in `MetricInputs` are read when the item is scored.
        input_names: names of the inputs that every item has.
        parameters: the settings that affect the metric's values.
        profile: the profile whose models are used.
        groups: the group of each item, such as its episode, for clustering the intervals.
        bench: the judge, for a metric that asks a judge.
        timelines: whether to include each item's values over time, which make the result much larger.

    Returns:
        The metric's keys (mean over scored items), `ci95` by key, `scored`, `unscored`, `items`, `protocol`.

    Raises:
        BadInput: a parameter is unknown or has an invalid value, the profile is unknown, or `groups` does not contain
            one group for each item.
    """
    from podeval.metrics.aggregate import aggregate
    from podeval.models.registry import require_profile

    chosen = metric.read_parameters(parameters or {})
    require_profile(profile)
    items = list(items)
    if groups is not None and len(groups) != len(items):
        raise BadInput(f"there are {len(items)} items and {len(groups)} groups; name one group for each item")
    client = bench.judging(metric.asks, chosen) if bench and metric.asks else None
    results = [_raise_error(result) for result in score_items(metric, items, chosen, client)]
    summary = aggregate(metric, results, groups)
    unsent = {"unsent": sorted(client.unsent)} if client and client.unsent else {}
    items_as_data = [result.to_json() for result in results]
    if not timelines:
        items_as_data = [{name: value for name, value in item.items() if name != "timeline"} for item in items_as_data]
    return {
        **{key: interval.mean if interval else None for key, interval in summary.intervals.items()},
        "ci95": {key: _bounds(interval) for key, interval in summary.intervals.items()},
        "scored": summary.scored,
        "unscored": summary.unscored,
        "items": items_as_data,
        "protocol": {**describe_protocol(metric, chosen, input_names, profile, bench), **unsent},
    }


def _bounds(interval: Interval | None) -> list[float] | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return [interval.low, interval.high]
