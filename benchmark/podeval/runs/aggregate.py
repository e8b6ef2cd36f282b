"""Summarise a run's finished measurements: means with intervals, over all items and over each slice."""

from collections.abc import Sequence
from datetime import UTC, datetime

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.benchmarks.presets import LIKENESS, PRESETS
from podeval.measuring.compute import score_item
from podeval.measuring.inputs import MetricInputs
from podeval.metrics import Metric, Result, Score, Unscored, catalogue
from podeval.metrics.aggregate import aggregate
from podeval.metrics.judge_use import NOBODY, JudgeConfig
from podeval.metrics.score import Protocol, describe_provenance
from podeval.runs import composite_scores
from podeval.runs.judge_usage import sum_usage
from podeval.runs.measure import list_conditions, make_protocols
from podeval.runs.run_folder import KeyAggregate, MetricSummary, RunFolder, RunSummary
from podeval.runs.settings import describe_settings

NOT_MEASURED = Unscored("not measured yet; run the same command again", "ours")


def summarise(
    folder: RunFolder,
    profile: str,
    benchmark: Benchmark,
    items: Sequence[Item],
    bench: JudgeConfig = NOBODY,
) -> RunSummary:
    """Summarise a run under a profile; only results under one setting's current protocols are used."""
    plan = folder.plan()
    outputs = [output for item in items if (output := folder.output(item.id)) is not None]
    current = make_protocols(benchmark, plan, profile, list_conditions(plan, outputs), bench)
    metrics = collect_metrics(benchmark, plan.track)
    finished = folder.results(profile)
    rows: list[MetricSummary] = []
    for protocol in current.values():
        if metrics[protocol.metric].inputs[0] == "recordings":
            rows.append(_summarise_set(folder, profile, benchmark, metrics[protocol.metric], protocol, items))
            continue
        results = [finished.get((item.id, protocol.id), NOT_MEASURED) for item in items]
        rows += _summarise_metric(benchmark, metrics[protocol.metric], protocol, items, results)
    usage = sum_usage(folder, profile, [protocol.id for protocol in current.values()])
    unsent = {metric: {"unsent": used["unsent"]} for metric, used in usage.items() if used["unsent"]}
    return RunSummary(
        plan=plan,
        profile=profile.partition(",")[0],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        provenance={**describe_provenance(profile), **({"judge_usage": usage} if usage else {})},
        protocols={
            # Parameters that a judge refused are noted next to the content; they do not change the id.
            protocol.id: {**protocol.to_json(), **unsent.get(protocol.metric, {})}
            for protocol in current.values()
        },
        metrics=tuple(rows),
        settings={describe_settings(benchmark, plan.track, profile): tuple(one.id for one in current.values())},
    )


def _summarise_metric(
    benchmark: Benchmark, metric: Metric, protocol: Protocol, items: Sequence[Item], results: Sequence[Result]
) -> list[MetricSummary]:
    """Summarise one metric: a row for all items, then one for each slice of them."""
    rows = [
        _row(benchmark, metric, protocol, name, [items[i] for i in members], [results[i] for i in members])
        for name, members in _slices(benchmark, items)
    ]
    rows += _summarise_parts(benchmark, metric, protocol, items, results)
    if metric.name in catalogue.NAMES:
        return rows
    # A composite figure also has the spread over its slices.
    return [_with_spreads(benchmark, rows), *rows[1:]]


def _summarise_set(
    folder: RunFolder, profile: str, benchmark: Benchmark, metric: Metric, protocol: Protocol, items: Sequence[Item]
) -> MetricSummary:
    """Summarise a metric computed from all recordings of a run together: one row, with the metric's own intervals."""
    outputs = [folder.output(item.id) for item in items]
    paths = [folder.audio_path(output) if output else None for output in outputs]
    present = [path for path in paths if path and path.exists()]
    whole = score_item(metric, MetricInputs({"recordings": present}, profile=profile), protocol.parameters)
    left_out = whole.notes["left_out"] if isinstance(whole, Score) else {}
    absent = dict.fromkeys({str(path) for path in paths if path not in present}, "it has no recording")
    reasons = [{**absent, **left_out}.get(str(path)) for path in paths]
    row = _row(benchmark, metric, protocol, "", items, [Unscored(one, "system") if one else whole for one in reasons])
    if not isinstance(whole, Score):
        return row
    ends = {key: interval or (None, None) for key, interval in whole.notes["ci95"].items()}
    keys = {key: KeyAggregate(mean=whole.values[key] or 0.0, low=low, high=high) for key, (low, high) in ends.items()}
    return row.model_copy(update={"keys": keys, "rankable": False})


def _summarise_parts(
    benchmark: Benchmark, metric: Metric, protocol: Protocol, items: Sequence[Item], results: Sequence[Result]
) -> list[MetricSummary]:
    """Summarise one metric over the parts of items, group by group; an item without a score is unscored in every
    group.
    """
    rows = []
    for breakdown in benchmark.breakdowns:
        for group in breakdown.groups if breakdown.within else ():
            pairs = [
                (item, result.part(breakdown.name, group) if isinstance(result, Score) else result)
                for item, result in zip(items, results, strict=True)
            ]
            kept = [(item, result) for item, result in pairs if result is not None]
            if any(isinstance(result, Score) for _, result in kept):
                members, parts = zip(*kept, strict=True)
                rows.append(_row(benchmark, metric, protocol, f"{breakdown.name}={group}", members, parts))
    return rows


def _slices(benchmark: Benchmark, items: Sequence[Item]) -> list[tuple[str, list[int]]]:
    """List all items under the name "", then the items of each non-empty group, by breakdown."""
    slices = [("", list(range(len(items))))]
    for breakdown in benchmark.breakdowns:
        for group in benchmark.groups(breakdown, items):
            members = [i for i, item in enumerate(items) if item.group(breakdown.name) == group]
            slices.append((f"{breakdown.name}={group}", members))
    return slices


def collect_metrics(benchmark: Benchmark, track: str) -> dict[str, Metric]:
    """Collect the declarations of all metrics that are measured or can be measured on a track, including composites."""
    presets = (dimension for preset in PRESETS.values() for dimension in preset.adds)
    added = (dimension for dimension in (LIKENESS, *presets) if track in dimension.tracks)
    uses = (*benchmark.metrics(track), *(use for dimension in added for use in dimension.metrics))
    measured = {use.name: catalogue.get(use.name) for use in uses}
    composites = (
        composite_scores.declare(benchmark, composite)
        for composite in composite_scores.list_composites(benchmark, track)
    )
    return measured | {metric.name: metric for metric in composites}


def _with_spreads(benchmark: Benchmark, rows: Sequence[MetricSummary]) -> MetricSummary:
    """Add the spread over the groups' means to the first row, which covers all items."""
    whole, name = rows[0], rows[0].metric
    means: dict[str, dict[str, float]] = {}
    for row in rows[1:]:
        breakdown, _, group = row.slice.partition("=")
        if value := row.keys.get(name):
            means.setdefault(breakdown, {})[group] = value.mean
    spreads = composite_scores.compute_spreads(benchmark, means)
    keys = {**whole.keys, **{key: KeyAggregate(mean=value, low=None, high=None) for key, value in spreads.items()}}
    return whole.model_copy(update={"keys": keys})


def _row(
    benchmark: Benchmark,
    metric: Metric,
    protocol: Protocol,
    name: str,
    items: Sequence[Item],
    results: Sequence[Result],
) -> MetricSummary:
    aggregates = aggregate(metric, results, [benchmark.cluster(item) for item in items])
    return MetricSummary(
        metric=metric.name,
        protocol=protocol.id,
        slice=name,
        keys={
            key: KeyAggregate(mean=interval.mean, low=interval.low, high=interval.high) if interval else None
            for key, interval in aggregates.intervals.items()
        },
        scored=aggregates.scored,
        unscored_system=aggregates.unscored_system,
        unscored_ours=aggregates.unscored_ours,
        reasons=aggregates.reasons,
        rankable=aggregates.rankable,
    )
