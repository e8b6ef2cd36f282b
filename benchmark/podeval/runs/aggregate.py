"""From finished measurements to a run's summary: means with intervals, over all items and over each slice."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.metrics import catalogue
from podeval.metrics.aggregate import aggregate
from podeval.metrics.compute import provenance
from podeval.metrics.protocol import Protocol
from podeval.metrics.score import Result, Unscored
from podeval.runs.measure import protocols
from podeval.store.run_folder import KeyAggregate, MetricSummary, RunFolder, Summary

NOT_MEASURED = Unscored("not measured yet; run the same command again", "ours")


def summarise(
    folder: RunFolder, profile: str, benchmark: Benchmark, items: Sequence[Item], conditions: Mapping[str, Any]
) -> Summary:
    """The summary of a run under a profile, by the present protocols."""
    plan = folder.plan()
    wanted = protocols(benchmark, plan.split, plan.track, profile, conditions)
    results = folder.results(profile)
    rows: list[MetricSummary] = []
    for protocol in wanted.values():
        found = [results.get((item.id, protocol.id), NOT_MEASURED) for item in items]
        for name, chosen in _slices(benchmark, items):
            rows.append(_row(benchmark, protocol, name, [items[i] for i in chosen], [found[i] for i in chosen]))
    return Summary(
        plan=plan,
        profile=profile,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        provenance=provenance(profile),
        protocols={protocol.id: protocol.to_json() for protocol in wanted.values()},
        metrics=tuple(rows),
    )


def _slices(benchmark: Benchmark, items: Sequence[Item]) -> list[tuple[str, list[int]]]:
    """All items under the name "", then the items of each group of each breakdown that has any."""
    slices = [("", list(range(len(items))))]
    for breakdown in benchmark.breakdowns:
        for group in breakdown.groups:
            members = [i for i, item in enumerate(items) if getattr(item, breakdown.name) == group]
            if members:
                slices.append((f"{breakdown.name}={group}", members))
    return slices


def _row(
    benchmark: Benchmark, protocol: Protocol, name: str, items: Sequence[Item], results: Sequence[Result]
) -> MetricSummary:
    metric = catalogue.get(protocol.metric)
    found = aggregate(metric, results, [benchmark.cluster(item) for item in items])
    return MetricSummary(
        metric=metric.name,
        protocol=protocol.id,
        slice=name,
        keys={
            key: KeyAggregate(mean=interval.mean, low=interval.low, high=interval.high) if interval else None
            for key, interval in found.intervals.items()
        },
        scored=found.scored,
        unscored_system=found.unscored_system,
        unscored_ours=found.unscored_ours,
        reasons=found.reasons,
        rankable=found.rankable,
    )
