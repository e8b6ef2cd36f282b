"""List the changes to a board with their times, derived from runs and submissions, never entered by hand.

There are three kinds of change. A result is new, or replaces an earlier result of the same system. A submission is
withdrawn. A newer version of a metric supersedes the protocols of an older version, which can still be selected.
"""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
from sqlalchemy import select

from podeval.board.words import write_board_name
from podeval.errors import BadInput
from podeval.runs.run_folder import RunSummary, superseded_runs
from podeval.store.database import Database
from podeval.store.submission_tables import SubmissionHistory, SubmissionRow
from podeval.text.redaction import redact

Kind = Literal["new", "again", "withdrawn", "protocol"]


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        at: the time in UTC, in ISO 8601 format.
        kind: `new` or `again` for the first or a later result of a system; `withdrawn` if a submission left the board;
            `protocol` if a metric's version was superseded.
        about: title of the system, or name of the metric.
        benchmark: title and split; empty if the change concerns all benchmarks.
        profile: profile of a result.
        detail: the reason for a withdrawal, or the old and new version.
    """

    at: str
    kind: Kind
    about: str
    benchmark: str = ""
    profile: str = ""
    detail: str = ""


def list_changes(board: pd.DataFrame, runs: Path, database: Database | None = None) -> list[Change]:
    """Return every change, newest first.

    Args:
        board: the board's table.
        runs: the board's folder of runs, which also keeps earlier runs.
        database: the database of submissions, if there is one.
    """
    aside = list(_superseded_runs(runs))
    every_change = [*_results(board, aside), *_protocols(board, aside)]
    if database is not None:
        every_change += _withdrawals(database)
    return sorted(every_change, key=lambda change: change.at, reverse=True)


def _results(board: pd.DataFrame, aside: list[RunSummary]) -> Iterable[Change]:
    columns = ["created", "system", "system_title", "benchmark", "split", "profile"]
    measured = set(_measured_rows(board)[columns].astype(str).itertuples(index=False, name=None))
    for run in aside:
        plan = run.plan
        measured.add((run.created, plan.system, plan.system_title, plan.benchmark, plan.split, run.profile))
    first: set[tuple[str, ...]] = set()
    # Results with the same time are put in a fixed order that does not depend on the iteration order of the set.
    for created, system, title, benchmark, split, profile in sorted(measured):
        where = (system, benchmark, split, profile)
        yield Change(
            created, "again" if where in first else "new", title, write_board_name(f"{benchmark}/{split}"), profile
        )
        first.add(where)


def _protocols(board: pd.DataFrame, aside: list[RunSummary]) -> Iterable[Change]:
    """Yield a change for each version of a metric after the first, with the time of its first results."""
    contents = _measured_rows(board)[["protocol_json", "created"]].drop_duplicates().itertuples(index=False, name=None)
    used = [(json.loads(content), str(created)) for content, created in contents]
    used += [(protocol, summary.created) for summary in aside for protocol in summary.protocols.values()]
    began: dict[str, dict[str, str]] = defaultdict(dict)
    # The newest results come first, so a version's first results are recorded last.
    for protocol, created in sorted(used, key=lambda one: one[1], reverse=True):
        if "version" in protocol:
            began[str(protocol["metric"])][str(protocol["version"])] = created
    for metric, versions in began.items():
        # Version 1.9 comes before 1.10.
        parts = {name: [(int(n), "") if n.isdigit() else (-1, n) for n in name.split(".")] for name in versions}
        for older, newer in itertools.pairwise(sorted(versions, key=parts.__getitem__)):
            yield Change(versions[newer], "protocol", metric, detail=f"{older} → {newer}")


def _measured_rows(board: pd.DataFrame) -> pd.DataFrame:
    return board[(board["profile"] != "paper") & (board["created"] != "")]


def _withdrawals(database: Database) -> Iterable[Change]:
    query = (
        select(SubmissionHistory, SubmissionRow.document)
        .join(SubmissionRow, SubmissionHistory.submission == SubmissionRow.id)
        .where(SubmissionHistory.after == "withdrawn")
    )
    with database.reading() as session:
        for step, document in session.execute(query):
            entered = ", ".join(write_board_name(part["name"]) for part in document["benchmarks"])
            yield Change(
                step.at.isoformat(),
                "withdrawn",
                redact(document["system"]["name"]),
                entered,
                detail=redact(step.reason),
            )


def _superseded_runs(runs: Path) -> Iterable[RunSummary]:
    for run in superseded_runs(runs):
        try:
            yield from run.summaries()
        except BadInput:
            # The run is from an earlier version of podeval, so its measurement time is unknown.
            continue
