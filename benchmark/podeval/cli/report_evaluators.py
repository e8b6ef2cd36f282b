"""`podeval report evaluators` and `podeval report papers`: how raters agree, and what of the papers follows."""

import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Runs, is_there, require_database, resolve_database
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.leaderboard.evaluators import AnalysisLine


def evaluators(
    runs: Runs = RUNS,
    votes: Annotated[
        list[Path] | None,
        typer.Option(
            help="votes as CSV or JSON lines: first, second, outcome (and voter, group of voters), a log of `podeval "
            "judge battles`, or another arena's model_a, model_b, winner (repeatable)"
        ),
    ] = None,
    scores: Annotated[
        list[Path] | None, typer.Option(help="CSV with system, item, score, rater (and measure) (repeatable)")
    ] = None,
    database: Annotated[
        str,
        typer.Option(
            envvar="DATABASE_URL",
            help="database whose votes and listening tests count too; without files, podeval.db in the folder of runs",
        ),
    ] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show how people and judges agree as raters: pairs told apart by the gap of their ratings, groups of voters on the
    systems both saw, and every rater against the mean of the others.

    Example: podeval report evaluators --votes votes.csv --scores listeners.csv

    Example: podeval report evaluators --runs runs --json
    """
    from podeval.leaderboard.evaluators import analyse_marks, analyse_votes, read_votes
    from podeval.leaderboard.validity import read_marks_file

    files = [*(votes or []), *(scores or [])]
    if not files and not is_there(resolve_database(database, runs)):
        raise BadInput(
            f"nothing to analyse: give --votes FILE, --scores FILE, or a --database with votes or listening tests; "
            f"there is no {resolve_database(database, runs)}"
        )
    lines: list[AnalysisLine] = []
    for path in votes or []:
        lines += analyse_votes(path.stem, read_votes(path))
    for path in scores or []:
        for measure, marks in read_marks_file(path).items():
            lines += analyse_marks(measure, marks)
    if database or not files:
        lines += _of_database(require_database(database, runs))
    for finding in lines:
        emit(finding) if as_json else print(finding.says)
    if not lines:
        print("there are no votes and no marks of two raters", file=sys.stderr)
        raise typer.Exit(1)


def _of_database(location: str) -> "list[AnalysisLine]":
    from podeval.arena.vote_table import build_rating_table
    from podeval.leaderboard.evaluators import analyse_marks, analyse_votes
    from podeval.leaderboard.validity import group_by_measure
    from podeval.listening.session_results import read_marks_by_test
    from podeval.store.database import Database

    lines: list[AnalysisLine] = []
    with Database(location) as opened:
        with opened.reading() as session:
            table = build_rating_table(session)
        for (protocol, dimension), part in table.groupby(["protocol", "dimension"]) if len(table) else ():
            rows = [{str(name): str(v) for name, v in row.items()} for row in part.to_dict("records")]
            lines += analyse_votes(f"{dimension} ({protocol})", rows)
        for measure, marks in group_by_measure(read_marks_by_test(opened)).items():
            lines += analyse_marks(measure, marks)
    return lines


def papers(as_json: AsJson = False) -> None:
    """Recompute printed figures of the papers from others they print or from measurements; show the differences.

    Example: podeval report papers

    Example: podeval report papers --json
    """
    from podeval.leaderboard.paper_figures import PaperFigure
    from podeval.leaderboard.papers import recompute

    tables: dict[tuple[str, str], list[PaperFigure]] = defaultdict(list)
    for figure in recompute():
        tables[figure.paper, figure.table].append(figure)
        if as_json:
            record = asdict(figure) | {"difference": figure.difference, "follows": figure.follows}
            emit(record)
    if as_json:
        return
    for (paper, table), figures in tables.items():
        tried = [figure for figure in figures if figure.recomputed is not None]
        if not tried:
            print(f"{paper} {table}: {figures[0].figure} cannot be recomputed: {figures[0].why_not}")
            continue
        same = [figure for figure in tried if not figure.material]
        if same:
            follow = sum(figure.follows for figure in same)
            print(f"{paper} {table}: {follow} of {len(same)} figures agree to the printed digits")
        else:
            print(f"{paper} {table}: measured on other material, so figures need not agree")
        for figure in tried:
            if figure.material or not figure.follows:
                on = f" on {figure.material}" if figure.material else ""
                print(
                    f"  {figure.figure}: printed {figure.printed:g}, recomputed{on} {figure.recomputed:.4g}, "
                    f"difference {figure.difference:+.4f}"
                )
        reasons: dict[str, int] = defaultdict(int)
        for figure in figures:
            if figure.why_not:
                # A line may stand for many figures of one table.
                number = figure.figure.removesuffix(" figures")
                reasons[figure.why_not] += int(number) if number.isdigit() else 1
        for why, count in reasons.items():
            print(f"  {count} cannot be recomputed: {why}")
