"""`podeval report validity`: how far metrics and judges agree with people."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Runs, is_there, require_database, resolve_database
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.leaderboard.validity import Human, Validity
    from podeval.stats.agreement import Estimate


def validity(
    runs: Runs = RUNS,
    scores: Annotated[
        list[Path] | None, typer.Option(help="CSV with system, item, score (and measure, rater); may be repeated")
    ] = None,
    database: Annotated[
        str,
        typer.Option(
            envvar="DATABASE_URL",
            help="whose listening tests count too; without --scores, podeval.db in the folder of runs by default",
        ),
    ] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Set every metric and judge of the runs against human scores of the same outputs.

    Example: podeval report validity --runs runs --scores listeners.csv

    Example: podeval report validity --runs runs --json
    """
    from podeval.leaderboard.build import build
    from podeval.leaderboard.validity import FEWEST, of_file
    from podeval.leaderboard.validity import validity as agreement
    from podeval.runs.board_tables import ITEMS, read_table
    from podeval.runs.run_folder import run_folders

    if not scores and not is_there(resolve_database(database, runs)):
        raise BadInput(
            f"validity needs what people said: --scores FILE, or --database with listening tests; "
            f"there is no {resolve_database(database, runs)}"
        )
    if not run_folders(runs):
        raise BadInput(f"there are no runs in {runs}; `podeval run` makes some, --runs names others")
    human: dict[str, dict[tuple[str, str], float]] = {}
    from_tests = [_of_database(require_database(database, runs))] if database or not scores else []
    for measures in (*map(of_file, scores or []), *from_tests):
        for name, outputs in measures.items():
            human.setdefault(name, {}).update(outputs)
    build(runs)
    agreements = agreement(read_table(runs / ITEMS), human)
    for row in agreements:
        emit(row) if as_json else print(_describe_validity(row))
    if not agreements:
        print(f"no metric shares {FEWEST} outputs (system and item) with a human measure", file=sys.stderr)
        raise typer.Exit(1)


def _of_database(location: str) -> "Human":
    from podeval.leaderboard.validity import of_listening_tests
    from podeval.listening.session_results import marks_by_test
    from podeval.store.database import Database

    with Database(location) as opened:
        return of_listening_tests(marks_by_test(opened))


def _describe_validity(row: "Validity") -> str:
    turned = " (turned: lower is better)" if row.turned else ""
    return (
        f"{row.metric}.{row.key}{turned} with {row.human}: SRCC {_figure(row.srcc)}, PLCC {_figure(row.plcc)}, "
        f"KRCC {_figure(row.krcc)}, {row.srcc.count} outputs; of {row.systems.count} systems {_figure(row.systems)}"
    )


def _figure(estimate: "Estimate") -> str:
    if estimate.value is None:
        return "none"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
