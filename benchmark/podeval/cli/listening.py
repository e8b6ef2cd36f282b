"""`podeval listening`: listening tests, from a design to results."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, open_database, require_database
from podeval.cli.listening_designs import add, check, count_of, new
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.plots.svg import stack_pictures

if TYPE_CHECKING:
    from podeval.listening.designs import Design
    from podeval.stats.mushra_scores import Mark

listening = typer.Typer(
    help="Run listening tests: check a design, import it, follow its progress, get its results.\n\n"
    "Example: podeval listening check naturalness.yaml"
)

Test = Annotated[str, typer.Argument(metavar="TEST", help="id of the test; `podeval listening list` shows all")]
for _command in (new, check, add):
    listening.command()(_command)


@listening.command(name="list")
def list_tests(database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """List all tests with their sessions.

    Example: podeval listening list --runs runs
    """
    from podeval.listening import Listening, session_results

    with open_database(require_database(database, runs)) as opened:
        for test in Listening(opened).tests():
            overview = session_results.read_overview(opened, test)
            print(
                f"{test}: {overview.design.kind}, "
                f"{overview.finished} of {count_of(overview.design.listeners, 'listener')} finished, "
                f"{overview.unfinished} unfinished, {overview.excluded} excluded by hand"
            )


@listening.command()
def close(test: Test, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Close a test to new listeners; listeners who have started can finish.

    Example: podeval listening close naturalness
    """
    from podeval.listening import Listening

    with open_database(require_database(database, runs)) as opened:
        Listening(opened).close(test)


@listening.command(name="results")
def print_results(
    test: Test,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    as_json: AsJson = False,
    plots: Annotated[Path | None, typer.Option(help="write box plots of every listener to this SVG file")] = None,
) -> None:
    """Print means with intervals, agreement, and the excluded listeners with reasons.

    Example: podeval listening results naturalness --plots listeners.svg
    """
    from podeval.listening import results, session_results

    with open_database(require_database(database, runs)) as opened:
        design = session_results.read_overview(opened, test).design
        summary = results.summarise(opened, test)
        marks = session_results.read_session_marks(opened, test) if plots else []
    if plots and design.kind != "mushra":
        raise BadInput(f"box plots are only for MUSHRA tests; {test} is a {design.kind} test")
    if plots:
        pictures = results.draw_listeners(marks, summary.screened)
        write_whole(plots, stack_pictures(pictures, f"{design.title}: marks by listener", columns=3).encode())
    for row in summary.rows:
        emit(row) if as_json else print(_describe_row(row))
    for line in summary.remarks:
        print(line, file=sys.stderr)


@listening.command()
def plan(
    test: Test,
    difference: Annotated[
        float,
        typer.Option(
            help="smallest difference of means to detect, in marks; for ABX, the share of correct answers above 0.5"
        ),
    ],
    power: Annotated[float, typer.Option(help="power: probability of detecting this difference")] = 0.8,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Estimate the number of listeners needed to distinguish each pair of systems, based on the listeners so far.

    The spread in a pilot is itself uncertain, so the number assumes the upper limit of the spread (80 % confidence).

    Example: podeval listening plan naturalness --difference 5
    """
    from podeval.listening.designs import PAIRED
    from podeval.listening.planning import MOST, count_listeners

    marks, design = _read_marks(require_database(database, runs), test)
    for need in count_listeners(marks, design.systems, difference, power=power, pairs=design.kind in PAIRED):
        if as_json:
            emit(need)
        else:
            count = count_of(need.listeners, "listener") if need.listeners else f"more than {MOST} listeners"
            print(f"{need.first}, {need.second}: {count} ({need.pilot} in the pilot, spread {need.spread:.3g})")


@listening.command()
def stop(test: Test, database: Place = DEFAULT, runs: Runs = RUNS, as_json: AsJson = False) -> None:
    """Show whether the listeners so far distinguish each pair of systems; you can check after every listener.

    Intervals are valid jointly over all pairs and at every check (95 %), so you can check early and often.

    Example: podeval listening stop naturalness
    """
    from podeval.listening.designs import PAIRED
    from podeval.listening.planning import judge_stopping

    marks, design = _read_marks(require_database(database, runs), test)
    verdicts = judge_stopping(marks, design.systems, pairs=design.kind in PAIRED)
    for one in verdicts:
        if as_json:
            emit(one)
            continue
        interval = f" [{one.interval[0]:.3g}, {one.interval[1]:.3g}]" if one.interval else ""
        verdict = "told apart" if design.kind == "abx" else f"{one.better} is better"
        end = verdict if one.better else "not told apart yet"
        more = f"; about {one.expected} listeners would suffice" if not one.better and one.expected else ""
        listeners = count_of(one.listeners, "listener")
        print(f"{one.first} minus {one.second}: {one.mean:.3g}{interval}, {listeners}: {end}{more}")
    if not as_json:
        print("The test can stop." if all(one.better for one in verdicts) else "Continue the test.")


def _read_marks(location: str, test: str) -> "tuple[list[Mark], Design]":
    """Return the marks of the counted listeners, and the design.

    Raises:
        BadInput: the test has only one system.
    """
    from podeval.listening import results, session_results

    with open_database(location) as opened:
        design = session_results.read_overview(opened, test).design
        if len(design.systems) < 2:
            raise BadInput(f"{test} is a {design.kind} test of one system, but at least two systems are needed")
        marks = session_results.read_session_marks(opened, test)
        left_out = {verdict.rater for verdict in results.summarise(opened, test).screened if verdict.reasons}
    return [mark for mark in marks if mark.rater not in left_out], design


@listening.command()
def export(
    test: Test,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    form: Annotated[
        str,
        typer.Option(help="format: jsonl; csv or parquet for a tidy table; webmushra for the CSV format of webMUSHRA"),
    ] = "jsonl",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="file to write the table to; by default, CSV is printed")
    ] = None,
) -> None:
    """Print the marks and answers of a test, with pseudonyms for listeners.

    A tidy table has one row for each mark: listener, page, stimulus, mark and further facts. webMUSHRA has tables for
    MUSHRA, ABX (its paired comparison) and MOS (its single stimuli).

    Example: podeval listening export naturalness --form parquet --out marks.parquet
    """
    from podeval.listening import session_results, webmushra
    from podeval.listening.session_results import tabulate_marks_of_test

    if form not in ("jsonl", "csv", "parquet", "webmushra"):
        raise BadInput(f"the form must be jsonl, csv, parquet or webmushra, not {form!r}")
    if (form == "parquet" and out is None) or (form == "jsonl" and out is not None):
        raise BadInput(
            "the form parquet needs a file, and jsonl is only printed; for example: --form parquet --out marks.parquet"
        )
    with open_database(require_database(database, runs)) as opened:
        kind = session_results.read_overview(opened, test).design.kind
        marks = session_results.read_session_marks(opened, test)
        answers, clips = session_results.read_session_answers(opened, test) if kind == "questionnaire" else ([], {})
        tidy = tabulate_marks_of_test(opened, test) if form != "jsonl" else []
    if form in ("csv", "parquet"):
        _write_table(tidy, form, out)
        return
    if form == "webmushra":
        _put(webmushra.tabulate(test, kind, tidy).encode(), out)
        return
    if kind == "questionnaire":
        for (item, system), clip in clips.items():
            emit({"item": item, "system": system, "speakers": clip.speakers, "music": clip.music})
        for answer in answers:
            emit(vars(answer))
    else:
        _lines(marks)


@listening.command(name="read")
def read_results(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="CSV results of webMUSHRA")],
) -> None:
    """Print the marks in webMUSHRA's results as JSON lines, in the form that `podeval/mushra` accepts.

    Example: podeval listening read results/dialogue/*.csv > marks.jsonl
    """
    from podeval.metrics.human_records import read_webmushra

    for file in files:
        _lines(read_webmushra(file))


def _write_table(rows: list[dict[str, Any]], form: str, out: Path | None) -> None:
    """Write a tidy table as Parquet or CSV."""
    import io

    import pandas as pd

    from podeval.listening.session_results import TIDY_COLUMNS
    from podeval.text.table_files import make_csv_safe

    table = pd.DataFrame(rows, columns=TIDY_COLUMNS).astype({"headphones": "Int64"})
    if form == "parquet":
        content = io.BytesIO()
        table.to_parquet(content, index=False)
        _put(content.getvalue(), out)
    else:
        _put(make_csv_safe(table).to_csv(index=False, lineterminator="\n").encode(), out)


def _put(content: bytes, out: Path | None) -> None:
    """Write to a file, or print."""
    if out is None:
        print(content.decode(), end="")
    else:
        write_whole(out, content)


def _lines(marks: "list[Mark]") -> None:
    for mark in marks:
        emit(vars(mark))


def _describe_row(row: dict[str, Any]) -> str:
    name = f"{row['stimulus']} · {row['scale']}" if row["scale"] else str(row["stimulus"])
    counted = f"{name}: {_describe_figures(row)}" if row["marks"] else f"{name}: no marks count"
    if row.get("unscreened_marks", row["marks"]) == row["marks"]:
        return counted
    everyone = {name.removeprefix("unscreened_"): value for name, value in row.items() if "unscreened_" in name}
    return f"{counted}; without screening {_describe_figures(everyone)}"


def _describe_figures(row: dict[str, Any]) -> str:
    interval = "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]"
    ranks = f", rank {row['best']} to {row['worst']}" if row.get("best") else ""
    if "d_prime" in row:
        ranks = (
            f", p {row['p']:.2g}, d' {row['d_prime']:.2f}, {'told apart' if row['told_apart'] else 'not told apart'}"
        )
    counts = f"{count_of(row['marks'], 'mark')} by {count_of(row['listeners'], 'listener')}"
    return f"{row['mean']:.2f}{interval}, {counts}{ranks}"
