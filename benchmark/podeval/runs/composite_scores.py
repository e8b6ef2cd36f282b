"""Compute composite figures from other figures: each item's mean of some columns, and its spread over groups."""

import statistics
from collections.abc import Mapping, Sequence

from podeval.benchmarks.benchmark import Benchmark, Composite
from podeval.metrics import Key, Metric, Result, Score, Unscored
from podeval.metrics.score import Protocol

VERSION = "1.0"
SPREAD = "spread_"
"""Key prefix for a spread over the groups of a breakdown; lower is better."""


def list_composites(benchmark: Benchmark, track: str) -> tuple[Composite, ...]:
    """List the composites of one track."""
    return tuple(composite for composite in benchmark.composites if composite.track == track)


def declare(benchmark: Benchmark, composite: Composite) -> Metric:
    """Declare a composite as a metric; its keys are the composite and the spread over each robust breakdown.

    The spread is the unweighted sample standard deviation of the groups' means, as in PodBench's tables.
    """

    def made_of_others() -> Result:
        raise NotImplementedError(f"{composite.name} is computed from {', '.join(composite.columns)}")

    spreads = tuple(
        Key(
            f"{SPREAD}{part.name}",
            "lower",
            "%",
            (0, 100),
            about=f"standard deviation over {part.title.lower()}",
        )
        for part in benchmark.breakdowns
        if part.robustness
    )
    return Metric(
        name=composite.name,
        title=composite.title,
        version=VERSION,
        dimension=f"{composite.track}.{composite.name}",
        keys=(
            Key(
                composite.name,
                "higher",
                "%",
                (0, 100),
                about=composite.about,
            ),
            *spreads,
        ),
        needs=(),
        paper=benchmark.title,
        function=made_of_others,
        inputs=(),
        optional_inputs=(),
        parameters=(),
    )


def make_composite_protocol(composite: Composite, parts: Mapping[str, Protocol]) -> Protocol:
    """Describe how a composite was computed, by the protocols of its parts."""
    metrics = {column.partition(".")[0] for column in composite.columns}
    first = parts[min(metrics)]
    return Protocol(
        metric=composite.name,
        version=VERSION,
        parameters={"columns": list(composite.columns)},
        inputs=(),
        models={name: parts[name].id for name in sorted(metrics)},
        dataset=first.dataset,
        generation=first.generation,
        task=first.task,
    )


def compose(composite: Composite, results: Mapping[str, Result | None]) -> Result:
    """Compute a composite of one item from its results by metric; if a part is missing, so is the composite."""
    values = []
    for column in composite.columns:
        metric, _, key = column.partition(".")
        part = results.get(metric)
        if isinstance(part, Unscored):
            return Unscored(f"{metric}: {part.reason}", part.cause)
        value = part.values.get(key) if part else None
        if value is None:
            return Unscored(f"{metric} gave no {key}", "ours")
        values.append(value)
    return Score(values={composite.name: statistics.fmean(values)})


def compute_spreads(benchmark: Benchmark, means: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Compute the spread over each robust breakdown from its groups' means; none if there are fewer than two means."""
    values = {}
    for part in benchmark.breakdowns:
        groups: Sequence[float] = list(means.get(part.name, {}).values())
        if part.robustness and len(groups) > 1:
            values[f"{SPREAD}{part.name}"] = statistics.stdev(groups)
    return values
