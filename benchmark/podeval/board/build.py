"""Build the tables that the board reads, from the runs in a folder and the figures that papers report.

Ranks, and the reasons why a row has none, come from `standings`.
"""

import csv
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.board import system_info
from podeval.board.columns import JUDGED
from podeval.board.standings import Run, find_standings, read_runs
from podeval.files import locate_hub_source, lock_folder
from podeval.metrics import catalogue
from podeval.metrics.battle_log import JudgedLog, read_judged_logs
from podeval.metrics.score import Protocol
from podeval.runs import reliability
from podeval.runs.board_tables import (
    ALONE,
    BOARD,
    EVIDENT,
    ITEMS,
    NOT_RANKED,
    SYSTEMS,
    BoardRow,
    ItemRow,
    place_on_board,
    write_table,
)
from podeval.runs.spot_check_report import read_spot_check
from podeval.stats.bradley_terry import NEEDED, rate
from podeval.systems.submission import Reported, ReportedFigure, Submission
from podeval.systems.submission_reading import load_all

PRINTED_ORDER = "printed_order.csv"
"""File next to the shipped documents, with the systems of each paper in the order of its tables."""


def build(runs: Path) -> None:
    """Write `board.parquet`, `items.parquet` and `systems.parquet` into the folder of runs."""
    with lock_folder(runs, wait=True):
        write_tables(runs, runs)


def write_tables(runs: Path, into: Path) -> None:
    """Write the tables of a folder of runs into a folder (the same or another) to which nothing else is writing."""
    runs_read = list(read_runs(runs))
    shipped = list(load_all(locate_hub_source("submissions")).values())
    judged = [row for log in read_judged_logs(runs) for row in _rating_rows(log, runs_read)]
    ours = [*_measured_rows(runs_read), *judged, *_reliability_rows(runs_read)]
    write_table([*ours, *_reported_rows(shipped)], into / BOARD)
    write_table([row for run in runs_read for row in _item_rows(run)], into / ITEMS)
    write_table(system_info.build_system_rows(shipped, (run.folder for run in runs_read)), into / SYSTEMS)


def _measured_rows(runs: list[Run]) -> Iterable[BoardRow]:
    standings = find_standings(runs)
    for run in runs:
        plan, checked = run.summary.plan, read_spot_check(run.folder)
        for row in run.summary.metrics:
            name_on_board, dimension = place_on_board(run.metrics[row.metric], run.benchmark.group_of(plan.track))
            for name, value in row.keys.items():
                standing = standings[run.comparison_key(row.protocol, row.slice), name, plan.system]
                yield BoardRow(
                    **_describe_run(run),
                    dimension=dimension,
                    metric=name_on_board,
                    key=name,
                    protocol=row.protocol,
                    slice=row.slice,
                    value=value.mean if value else None,
                    low=value.low if value else None,
                    high=value.high if value else None,
                    rank_best=standing.rank[0] if standing.rank else None,
                    rank_worst=standing.rank[1] if standing.rank else None,
                    rankable=standing.rankable,
                    scored=standing.scored,
                    unscored_system=standing.unscored_system,
                    unscored_ours=standing.unscored_ours,
                    reasons=json.dumps(standing.reasons, ensure_ascii=False),
                    protocol_json=json.dumps(run.summary.protocols[row.protocol], ensure_ascii=False),
                    spot_check=checked.verdict if checked else "",
                    values=standing.values,
                    clusters=standing.clusters,
                )


def _describe_run(run: Run) -> dict[str, Any]:
    """Return the fields of a row that identify its run."""
    plan = run.summary.plan
    return {
        "benchmark": plan.benchmark,
        "split": plan.split,
        "profile": run.summary.profile,
        "system": plan.system,
        "system_title": plan.system_title,
        "system_kind": plan.shown_kind,
        "provenance": plan.provenance,
        "source": str(run.folder.path.relative_to(run.folder.runs)),
        "created": run.summary.created,
    }


def _rating_rows(log: JudgedLog, runs: Iterable[Run]) -> Iterable[BoardRow]:
    """Yield the results of a judge's battles for systems that have a run on the judged dialogues: Bradley-Terry ratings
    over all dialogues and by dimension, with intervals and ranks from resampled dialogues.
    """
    arena, dialogues = catalogue.get("arena"), {str(record.get("dialogue")) for record in log.records}
    name_on_board, dimension = place_on_board(arena, JUDGED)
    lists = {
        name: sorted({str(one[name]) for one in log.records if one.get(name)}) for name in ("prompt", "transcripts")
    }
    models = {"judge": {"id": log.judge}, "prompts": lists["prompt"]}
    way = {"log": log.file.parent.name, **log.way, "transcripts": lists["transcripts"]}
    protocol = Protocol(arena.name, arena.version, way, (), models)
    rated = {name: rate(battles) for name, battles in log.read_by_dimension().items()}
    fighters = [run for run in runs if dialogues <= {item.id for item in run.items}]
    for run, (name, ratings) in itertools.product(fighters, rated.items()):
        for one in ratings.systems:
            if one.system != run.summary.plan.system:
                continue
            reason = ALONE if sum(not other.provisional for other in ratings.systems) < 2 else ""
            if one.provisional:
                battles, opponents, voters = (one.provisional.get(what, {}).get("missing", 0) for what in NEEDED)
                more = f"{battles} more battles, {opponents} more opponents and {voters} more dialogues are needed"
                reason = f"{NOT_RANKED}: {more}"
            elif log.is_trial:
                reason = f"{NOT_RANKED}: its judge is declared a trial model"
            yield BoardRow(
                **_describe_run(run),
                dimension=dimension,
                metric=name_on_board,
                key="rating",
                protocol=protocol.id,
                slice=f"dimension={name}" if name else "",
                value=one.rating,
                low=one.low,
                high=one.high,
                rank_best=None if reason else one.best,
                rank_worst=None if reason else one.worst,
                rankable=not reason,
                scored=one.battles,
                unscored_system=0,
                unscored_ours=0,
                reasons=json.dumps({reason: one.battles} if reason else {}),
                protocol_json=json.dumps(protocol.to_json(), ensure_ascii=False),
                values=one.battles,
                clusters=one.voters,
            )


def _reliability_rows(runs: Iterable[Run]) -> Iterable[BoardRow]:
    """Yield rows for the mean over a run's seeds and for the worst seed; both kinds of row are shown without ranks."""
    for run in runs:
        figures = reliability.read_reliability(run.folder, run.summary.profile)
        if figures is None:
            continue
        content = {"metric": reliability.NAME, "parameters": {"seeds": len(figures.seeds)}, "parts": figures.protocols}
        for name, value in figures.figures.items():
            yield BoardRow(
                **_describe_run(run),
                dimension=reliability.DIMENSION,
                metric=reliability.NAME,
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
                reasons=json.dumps({EVIDENT["seeds"]: figures.outputs}),
                protocol_json=json.dumps(content, ensure_ascii=False),
            )


def _reported_rows(shipped: Iterable[Submission]) -> list[BoardRow]:
    """List the figures as printed in papers, in the papers' order, without intervals or ranks; the profile is
    `paper`.
    """
    order = locate_hub_source("submissions") / PRINTED_ORDER
    printed = csv.DictReader(order.read_text(encoding="utf-8").splitlines()) if order.exists() else ()
    places = {(row["paper"], row["system"]): number for number, row in enumerate(printed)}
    reported = [(one, figure) for one in shipped if isinstance(one.source, Reported) for figure in one.source.results]
    reported.sort(key=lambda pair: places.get((pair[1].paper, pair[0].system.id), len(places)))
    return [_reported_row(*pair) for pair in reported]


def _reported_row(submission: Submission, figure: ReportedFigure) -> BoardRow:
    metric = catalogue.get(figure.module) if figure.module in catalogue.NAMES else None
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
        reasons=json.dumps({EVIDENT["reported"]: 1}),
        protocol_json=json.dumps(_paper_facts(figure), ensure_ascii=False),
        source=f"{figure.paper}, {figure.table}",
        created="",
    )


def _undeclared_dimension(figure: ReportedFigure) -> str:
    """Return the dimension, as stated by the benchmark's composite or by the paper, of a figure for which we have no
    metric.
    """
    for composite in benchmarks.get(figure.benchmark).composites:
        if composite.name == figure.module:
            return f"{composite.track}.{composite.name}"
    return f"{figure.paper}.{figure.module or 'other'}"


def _paper_facts(figure: ReportedFigure) -> dict[str, str | int]:
    """Return a paper's statements about the way in which it obtained a figure."""
    facts = {
        "paper": figure.paper,
        "variant": figure.variant,
        "printed": figure.printed,
        "value": str(figure.value),
    }
    more = {"spread": None if figure.spread is None else str(figure.spread), "count": figure.count, "note": figure.note}
    return facts | {name: value for name, value in more.items() if value is not None}


def _item_rows(run: Run) -> Iterable[ItemRow]:
    group = run.benchmark.group_of(run.summary.plan.track)
    for protocol, content in run.summary.protocols.items():
        name_on_board, _ = place_on_board(run.metrics[content["metric"]], group)
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
                metric=name_on_board,
                protocol=protocol,
                result=json.dumps(result.to_json(), ensure_ascii=False),
                output=str(output.relative_to(run.folder.runs)) if output.exists() else "",
            )
