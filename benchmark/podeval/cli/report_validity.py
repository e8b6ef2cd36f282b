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
        list[Path] | None, typer.Option(help="CSV with system, item, score (and measure, rater) (repeatable)")
    ] = None,
    database: Annotated[
        str,
        typer.Option(
            envvar="DATABASE_URL",
            help=(
                "database whose listening tests count too; without --scores, "
                "podeval.db in the folder of runs by default"
            ),
        ),
    ] = DEFAULT,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="show published evidence instead of runs: public clips and figures of the papers"
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare every metric and judge of the runs with human scores of the same outputs.

    Intervals are over systems and items. Keys that are best in a range are folded; keys without a direction are left
    out. The number of keys is printed, because the best of many is good by chance.

    Example: podeval report validity --runs runs --scores listeners.csv

    Example: podeval report validity --published
    """
    if published:
        _print_published(as_json)
        return
    from podeval.leaderboard.build import build
    from podeval.leaderboard.validity import ENOUGH_SYSTEMS, FEWEST, read_human_file
    from podeval.leaderboard.validity import compute_validity as agreement
    from podeval.runs.board_tables import ITEMS, read_table
    from podeval.runs.run_folder import run_folders

    if not scores and not is_there(resolve_database(database, runs)):
        raise BadInput(
            f"validity needs human scores: give --scores FILE, or a --database with listening tests; "
            f"there is no {resolve_database(database, runs)} (--published shows what the papers have)"
        )
    if not run_folders(runs):
        raise BadInput(
            f"there are no runs in {runs}; create some with `podeval run`, or choose another folder with --runs"
        )
    human: dict[str, dict[tuple[str, str], float]] = {}
    from_tests = [_of_database(require_database(database, runs))] if database or not scores else []
    for measures in (*map(read_human_file, scores or []), *from_tests):
        for name, outputs in measures.items():
            human.setdefault(name, {}).update(outputs)
    build(runs)
    agreements = agreement(read_table(runs / ITEMS), human)
    if not as_json:
        for row in {row.human: row for row in agreements}.values():
            if row.thin:
                print(
                    f"{row.human}: the evidence is thin, {row.systems.count} systems; below {ENOUGH_SYSTEMS} no "
                    "correlation is more than a hint"
                )
            print(f"{row.human}: {_describe_search(row)}")
    for row in agreements:
        emit(row) if as_json else print(_describe_validity(row))
    if not agreements:
        print(f"no metric shares {FEWEST} outputs (system and item) with a human measure", file=sys.stderr)
        raise typer.Exit(1)


def _print_published(as_json: bool) -> None:
    from podeval.leaderboard.published_evidence import THIN, list_printed_agreements, recompute_agreement

    rows = recompute_agreement()
    if as_json:
        for entry in (*rows, *list_printed_agreements()):
            emit(entry)
        return
    print(THIN)
    print(_describe_search(rows[0].agreement))
    for row in rows:
        within = f"; within a category {row.within.mean:.2f}" if row.within else ""
        if row.within and row.within.low is not None and row.within.high is not None:
            within += f" [{row.within.low:.2f}, {row.within.high:.2f}]"
        print(_describe_validity(row.agreement) + within)
    print("\nAgreement with people that the papers print:")
    for printed in list_printed_agreements():
        count = f", n {printed.count}" if printed.count else ""
        what = f"{printed.who}, {printed.about}: {printed.statistic} {printed.value}{count}"
        print(f"{printed.paper} {printed.table}: {what}")


def _of_database(location: str) -> "Human":
    from podeval.leaderboard.validity import collect_from_listening_tests
    from podeval.listening.session_results import read_marks_by_test
    from podeval.store.database import Database

    with Database(location) as opened:
        return collect_from_listening_tests(read_marks_by_test(opened))


def _describe_search(row: "Validity") -> str:
    """Say how many keys were compared, and what the best of them reaches by chance."""
    chance = (
        ""
        if row.by_chance is None
        else (
            f"; by chance alone the best of them has an SRCC of {row.by_chance:.2f} or more over "
            f"{row.systems.count} systems in one case of twenty"
        )
    )
    return f"{row.keys} keys were compared{chance}"


def _describe_validity(row: "Validity") -> str:
    turned = " (turned: lower is better)" if row.turned else " (folded: a range is best)" if row.folded else ""
    without = ", {:.2f} to {:.2f} without one of them".format(*row.without_one) if row.without_one else ""
    return (
        f"{row.metric}.{row.key}{turned} with {row.human}: SRCC {_figure(row.srcc)}, PLCC {_figure(row.plcc)}, "
        f"KRCC {_figure(row.krcc)}, {row.srcc.count} outputs; of {row.systems.count} systems "
        f"{_figure(row.systems)}{without}"
    )


def _figure(estimate: "Estimate") -> str:
    if estimate.value is None:
        return "none"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
