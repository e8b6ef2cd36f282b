"""Build the tables that the board reads, from the runs in a folder and the figures that papers report.

Ranks are ranges from paired comparisons over the items all ranked systems share, corrected for the number of pairs of
their column (one key over all items or one slice of them), within one benchmark, split, profile and protocol. A system
is ranked on a metric only when it is complete there, is no control, has another system to be ranked with, and, on the
error rates themselves and where the dimension needs accurate speech, keeps its WER and CER under the benchmark's
ceiling, in each of its languages.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.errors import BadInput
from podeval.hub_sources import locate_hub_source
from podeval.leaderboard import system_info
from podeval.leaderboard.comparability import explain_unranked, select_comparable
from podeval.metrics import catalogue
from podeval.metrics.declaration import Metric
from podeval.metrics.score import Result, Score
from podeval.runs.aggregate import collect_metrics
from podeval.runs.board_tables import (
    BOARD,
    ITEMS,
    NOT_RANKED,
    SYSTEMS,
    BoardRow,
    ItemRow,
    write_table,
)
from podeval.runs.reliability import DIMENSION, read_reliability
from podeval.runs.reliability import NAME as RELIABILITY
from podeval.runs.run_folder import MetricSummary, RunFolder, RunSummary, run_folders
from podeval.runs.spot_check_report import read_spot_check
from podeval.stats.intervals import paired_bootstrap_ranks
from podeval.store.files import lock_folder
from podeval.systems.submission import Reported, ReportedFigure, Submission
from podeval.systems.submission_reading import load_all

Place = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Run:
    """One run under one profile, with its results in memory."""

    folder: RunFolder
    summary: RunSummary
    benchmark: Benchmark
    items: tuple[Item, ...]
    results: dict[tuple[str, str], Result]

    def clusters(self, items: Collection[str]) -> int:
        """Return how many independent clusters (topics, texts, dialogues) some items form."""
        return len({self.benchmark.cluster(item) for item in self.items if item.id in items})

    def comparison_key(self, protocol: str, slice_: str) -> Place:
        """Return the place within which its numbers may be compared with others'."""
        plan = self.summary.plan
        return (plan.benchmark, plan.split, self.summary.profile, protocol, slice_)


def build(runs: Path) -> None:
    """Write `board.parquet`, `items.parquet` and `systems.parquet` into the folder of runs."""
    with lock_folder(runs, wait=True):
        write_tables(runs, runs)


def write_tables(runs: Path, into: Path) -> None:
    """Write the tables of a folder of runs into a folder, which may be another one, with no other writer."""
    runs_read = list(_runs(runs))
    shipped = list(load_all(locate_hub_source("submissions")).values())
    write_table([*_measured_rows(runs_read), *_reliability_rows(runs_read), *_reported_rows(shipped)], into / BOARD)
    write_table([row for run in runs_read for row in _item_rows(run)], into / ITEMS)
    write_table(system_info.build_system_rows(shipped, (run.folder for run in runs_read)), into / SYSTEMS)


def _runs(runs: Path) -> Iterable[Run]:
    for folder in run_folders(runs):
        for summary in folder.summaries():
            try:
                benchmark = benchmarks.get(summary.plan.benchmark)
                items = folder.items() or benchmark.items(summary.plan.split)
            except BadInput as error:
                raise BadInput(f"the run in {folder.path} cannot be shown: {error}; move it elsewhere") from error
            yield Run(folder, summary, benchmark, items, folder.results(summary.profile))


def _measured_rows(runs: list[Run]) -> Iterable[BoardRow]:
    ranks = _ranks(runs)
    for run in runs:
        plan, checked = run.summary.plan, read_spot_check(run.folder)
        for row in run.summary.metrics:
            metric = collect_metrics(run.benchmark, plan.track)[row.metric]
            too_many_errors = _explain_no_rank(run, row.metric)
            for name, value in row.keys.items():
                ranked = ranks.get((*run.comparison_key(row.protocol, row.slice), name))
                rank = ranked.ranges.get(plan.system) if ranked else None
                values = _scores(run, row.protocol, row.slice, name)
                reasons = dict(row.reasons)
                if too_many_errors and row.rankable:
                    reasons[too_many_errors] = row.scored
                unranked = ranked.unranked.get(plan.system) if ranked else None
                if unranked:
                    reasons[unranked] = row.scored
                yield BoardRow(
                    benchmark=plan.benchmark,
                    split=plan.split,
                    profile=run.summary.profile,
                    system=plan.system,
                    system_title=plan.system_title,
                    system_kind=plan.shown_kind,
                    provenance=plan.provenance,
                    dimension=metric.dimension,
                    metric=metric.name,
                    key=name,
                    protocol=row.protocol,
                    slice=row.slice,
                    value=value.mean if value else None,
                    low=value.low if value else None,
                    high=value.high if value else None,
                    rank_best=rank[0] if rank else None,
                    rank_worst=rank[1] if rank else None,
                    rankable=row.rankable and not too_many_errors and not unranked and plan.system_kind != "control",
                    scored=row.scored,
                    unscored_system=row.unscored_system,
                    unscored_ours=row.unscored_ours,
                    reasons=json.dumps(reasons, ensure_ascii=False),
                    protocol_json=json.dumps(run.summary.protocols[row.protocol], ensure_ascii=False),
                    source=str(run.folder.path.relative_to(run.folder.runs)),
                    created=run.summary.created,
                    spot_check=checked.verdict if checked else "",
                    values=len(values),
                    clusters=ranked.clusters if ranked and rank else run.clusters(values),
                )


def _reliability_rows(runs: Iterable[Run]) -> Iterable[BoardRow]:
    """What the seeds of each run have in common, and the worst of them; shown without ranks."""
    for run in runs:
        plan, figures = run.summary.plan, read_reliability(run.folder, run.summary.profile)
        if figures is None:
            continue
        content = {"metric": RELIABILITY, "parameters": {"seeds": len(figures.seeds)}, "parts": figures.protocols}
        for name, value in figures.figures.items():
            yield BoardRow(
                benchmark=plan.benchmark,
                split=plan.split,
                profile=run.summary.profile,
                system=plan.system,
                system_title=plan.system_title,
                system_kind=plan.shown_kind,
                provenance=plan.provenance,
                dimension=DIMENSION,
                metric=RELIABILITY,
                key=name,
                protocol=figures.protocol,
                slice="",
                value=value.mean,
                low=value.low,
                high=value.high,
                rank_best=None,
                rank_worst=None,
                rankable=False,
                scored=figures.outputs,
                unscored_system=0,
                unscored_ours=0,
                reasons="{}",
                protocol_json=json.dumps(content, ensure_ascii=False),
                source=str(run.folder.path.relative_to(run.folder.runs)),
                created=run.summary.created,
            )


@dataclass(frozen=True)
class Ranked:
    """The rank range of each system in one column, the number of clusters of the common items it rests on, and why
    systems with values have no range.
    """

    ranges: dict[str, tuple[int, int]]
    clusters: int
    unranked: dict[str, str]


def _ranks(runs: list[Run]) -> dict[tuple[str, ...], Ranked]:
    """Return the ranks by place and key."""
    fields: dict[tuple[Place, str, str], list[tuple[Run, MetricSummary]]] = defaultdict(list)
    for run in runs:
        for row in run.summary.metrics:
            if row.rankable and run.summary.plan.system_kind != "control" and not _explain_no_rank(run, row.metric):
                fields[(run.comparison_key(row.protocol, row.slice), row.metric, row.slice)].append((run, row))
    ranks: dict[tuple[str, ...], Ranked] = {}
    for (board_part, name, slice_), entries in fields.items():
        metric = collect_metrics(entries[0][0].benchmark, entries[0][0].summary.plan.track)[name]
        for key in metric.keys:
            if key.better not in ("higher", "lower") or not key.ranked:
                continue
            measured = {run.summary.plan.system: _scores(run, row.protocol, slice_, key.name) for run, row in entries}
            unranked = explain_unranked(measured, key.name)
            scores = {system: values for system, values in select_comparable(measured, key.name).items() if values}
            common = set.intersection(*(set(values) for values in scores.values())) if scores else set()
            # A system alone in its column has no place: there is nobody it could be before.
            if common and len(scores) > 1:
                first = entries[0][0]
                clusters = {item.id: first.benchmark.cluster(item) for item in first.items}
                ranges = paired_bootstrap_ranks(scores, key.better == "higher", clusters)
                count = len({clusters[item] for item in common})
                ranks[(*board_part, key.name)] = Ranked(ranges, count, unranked)
            elif unranked:
                ranks[(*board_part, key.name)] = Ranked({}, 0, unranked)
    return ranks


def _scores(run: Run, protocol: str, slice_: str, key: str) -> dict[str, Score]:
    """Return the scores on the items of a slice that have a value of the key, by item."""
    field, _, group = slice_.partition("=")
    within = any(breakdown.name == field and breakdown.within for breakdown in run.benchmark.breakdowns)
    scores = {}
    for item in run.items:
        result = run.results.get((item.id, protocol))
        if within and isinstance(result, Score):
            result = result.part(field, group)
        elif slice_ and item.group(field) != group:
            continue
        if isinstance(result, Score) and result.values.get(key) is not None:
            scores[item.id] = result
    return scores


def _explain_no_rank(run: Run, metric: str) -> str | None:
    """Return why a run is not ranked on a metric although it was scored: its WER is too high or unknown; else None."""
    needing = [d for d in run.benchmark.dimensions if any(use.name == metric for use in d.metrics)]
    if metric != "wer" and not any(dimension.needs_accurate_speech for dimension in needing):
        return None
    # English has both rates and Chinese only the CER, so that in the CER of all items the English hides the Chinese.
    rates = [
        (rate.mean, name, row.slice)
        for row in run.summary.metrics
        if row.metric == "wer" and (not row.slice or row.slice.startswith("language="))
        for name in ("wer", "cer")
        if (rate := row.keys.get(name)) is not None
    ]
    if not rates:
        return f"{NOT_RANKED}: its WER is not known"
    ceiling = run.benchmark.wer_ceiling
    for mean, name, slice_ in rates:
        if ceiling is not None and mean > ceiling:
            where = f" ({slice_})" if slice_ else ""
            return f"{NOT_RANKED}: its {name.upper()} of {mean:.2f}{where} is above the ceiling of {ceiling:.2f}"
    return None


def _reported_rows(shipped: Iterable[Submission]) -> Iterable[BoardRow]:
    """Yield rows of figures as papers print them: no interval, no rank, profile `paper`."""
    for submission in shipped:
        if isinstance(submission.source, Reported):
            yield from (_reported_row(submission, figure) for figure in submission.source.results)


def _reported_row(submission: Submission, figure: ReportedFigure) -> BoardRow:
    metric = _catalogue_metric(figure.module)
    return BoardRow(
        benchmark=figure.benchmark,
        split="",
        profile="paper",
        system=submission.system.id,
        system_title=submission.system.name,
        system_kind="reported",
        provenance="reported",
        dimension=metric.dimension if metric else _undeclared_dimension(figure),
        metric=figure.module or figure.printed,
        key=figure.key or figure.printed,
        protocol=f"{figure.paper}-{figure.variant}",
        slice=f"{figure.breakdown}={figure.group}" if figure.breakdown else "",
        value=float(figure.value),
        low=None,
        high=None,
        rank_best=None,
        rank_worst=None,
        rankable=False,
        scored=None,
        unscored_system=None,
        unscored_ours=None,
        reasons="{}",
        protocol_json=json.dumps(_paper_facts(figure), ensure_ascii=False),
        source=f"{figure.paper}, {figure.table}",
        created="",
    )


def _undeclared_dimension(figure: ReportedFigure) -> str:
    """Return the dimension of a figure without a metric of ours: its benchmark's own composite, or the paper's."""
    for composite in benchmarks.get(figure.benchmark).composites:
        if composite.name == figure.module:
            return f"{composite.track}.{composite.name}"
    return f"{figure.paper}.{figure.module or 'other'}"


def _paper_facts(figure: ReportedFigure) -> dict[str, str | int]:
    """Return the stated facts on how a paper came to a figure."""
    facts = {
        "paper": figure.paper,
        "variant": figure.variant,
        "printed": figure.printed,
        "value": str(figure.value),
    }
    more = {"spread": None if figure.spread is None else str(figure.spread), "count": figure.count, "note": figure.note}
    return facts | {name: value for name, value in more.items() if value is not None}


def _catalogue_metric(module: str | None) -> Metric | None:
    return catalogue.get(module) if module in catalogue.NAMES else None


def _item_rows(run: Run) -> Iterable[ItemRow]:
    for protocol, content in run.summary.protocols.items():
        for item in run.items:
            result = run.results.get((item.id, protocol))
            output = run.folder.output_path(item.id)
            if result is None:
                continue
            yield ItemRow(
                benchmark=run.benchmark.name,
                split=run.summary.plan.split,
                profile=run.summary.profile,
                system=run.summary.plan.system,
                item=item.id,
                category=item.category,
                topic=item.topic,
                metric=content["metric"],
                protocol=protocol,
                result=json.dumps(result.to_json(), ensure_ascii=False),
                output=str(output.relative_to(run.folder.runs)) if output.exists() else "",
            )
