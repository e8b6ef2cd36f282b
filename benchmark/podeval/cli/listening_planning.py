"""`podeval listening plan` and `podeval listening stop`: how many listeners, and whether these are enough."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, require_database
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.listening.designs import Design
    from podeval.stats.mushra_scores import Mark

Test = Annotated[str, typer.Argument(metavar="TEST", help="id of the test; `podeval listening list` shows all")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON, one object per line")]


def plan(
    test: Test,
    difference: Annotated[
        float,
        typer.Option(help="smallest difference of means to detect, in marks; for ABX, of the share right above 0.5"),
    ],
    power: Annotated[float, typer.Option(help="power: probability of detecting it")] = 0.8,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Estimate how many listeners are needed to tell each pair of systems apart, from the listeners so far.

    The spread of a pilot is itself uncertain, so the count is for the greatest that is likely (80 %).

    Example: podeval listening plan naturalness --difference 5
    """
    from podeval.listening.designs import PAIRED
    from podeval.listening.planning import MOST, count_listeners

    marks, design = _read_marks(require_database(database, runs), test)
    for need in count_listeners(marks, design.systems, difference, power=power, pairs=design.kind in PAIRED):
        if as_json:
            print(json.dumps(asdict(need), ensure_ascii=False))
        else:
            count = f"{need.listeners} listeners" if need.listeners else f"more than {MOST} listeners"
            print(f"{need.first}, {need.second}: {count} ({need.pilot} in the pilot, spread {need.spread:.3g})")


def stop(test: Test, database: Place = DEFAULT, runs: Runs = RUNS, as_json: AsJson = False) -> None:
    """Show whether the listeners so far tell each pair of systems apart; you may ask after every listener.

    Intervals hold jointly over all pairs and at every look (95 %), so looking early and often costs nothing.

    Example: podeval listening stop naturalness
    """
    from podeval.listening.designs import PAIRED
    from podeval.listening.planning import judge_stopping

    marks, design = _read_marks(require_database(database, runs), test)
    verdicts = judge_stopping(marks, design.systems, pairs=design.kind in PAIRED)
    for one in verdicts:
        if as_json:
            print(json.dumps(asdict(one), ensure_ascii=False))
            continue
        interval = f" [{one.interval[0]:.3g}, {one.interval[1]:.3g}]" if one.interval else ""
        verdict = "told apart" if design.kind == "abx" else f"{one.better} is better"
        end = verdict if one.better else "not told apart yet"
        more = f"; about {one.expected} listeners would" if not one.better and one.expected else ""
        print(f"{one.first} minus {one.second}: {one.mean:.3g}{interval}, {one.listeners} listeners: {end}{more}")
    if not as_json:
        print("The test can stop." if all(one.better for one in verdicts) else "Continue the test.")


def _read_marks(location: str, test: str) -> "tuple[list[Mark], Design]":
    """The marks of the listeners who count, and the design.

    Raises:
        BadInput: the test has one system.
    """
    from podeval.listening import results, session_results
    from podeval.store.database import Database

    with Database(location) as opened:
        design = session_results.read_overview(opened, test).design
        if len(design.systems) < 2:
            raise BadInput(f"{test} is a {design.kind} test of one system; two are needed")
        marks = session_results.read_session_marks(opened, test)
        left_out = {verdict.rater for verdict in results.summarise(opened, test).screened if verdict.reasons}
    return [mark for mark in marks if mark.rater not in left_out], design
