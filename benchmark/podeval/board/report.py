"""A system's analysis report: all of the board's data about the system, in the style of PodEval's Figure 14.

There is one chapter per place (benchmark, split, profile): summary by dimension, radar, distributions compared with
those of people, drift over the recordings, breakdowns, every item, unscored items with reasons, protocols, and
citations. This module contains only the data; `report_page` builds the page.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark
from podeval.board.build import write_tables
from podeval.board.item_results import BoardScores, Listed, Reading, read_scores, select_rows
from podeval.board.report_figures import DriftFigure, SystemFigures, build_figures, compute_drifts, count_rows_by_place
from podeval.board.runs_folder import RunsFolder, choose_names
from podeval.errors import BadInput
from podeval.runs.board_tables import BOARD, ITEMS, read_object
from podeval.runs.latency import Latency, list_latencies
from podeval.runs.run_folder import RunFolder, open_run


@dataclass(frozen=True)
class Chapter(SystemFigures):
    """The report on a system at one place.

    Attributes:
        where: `benchmark/split/profile`.
        benchmark: the benchmark's record; None if this version lacks the benchmark.
        people: the display name of the recordings of people; "" if there are none.
        scores: the system's scores by item; `people_scores` are the scores of people, or None if there are none.
        drifts: the drift of every windowed key; `people_drifts` are the drifts of recordings of people, by column id.
        items: every item, by category and title.
        readings: the result of each metric on each item, by metric and item id.
        missing: the unscored items by metric, reason and cause, most items first.
        latencies: speed of the system's server under each load, smallest load first; empty if the speed was not
            measured.
        contents: the content of every protocol, by metric.
    """

    where: str
    benchmark: Benchmark | None
    people: str
    scores: BoardScores
    people_scores: BoardScores | None
    drifts: tuple[DriftFigure, ...]
    people_drifts: Mapping[str, DriftFigure]
    items: Sequence[Listed]
    readings: Mapping[str, Mapping[str, Reading]]
    missing: Mapping[tuple[str, str, str], Sequence[Listed]]
    latencies: tuple[Latency, ...]
    contents: Mapping[str, Mapping[str, Any]]

    @property
    def others(self) -> str:
        """The basis of comparison: `median` of several other systems, `other` for a single other system, empty if there
        are none.
        """
        most = max((len(figure.others) for figure in self.figures), default=0)
        return "" if not most else "other" if most == 1 else "median"


@dataclass(frozen=True)
class SystemReport:
    """The report on one system: the facts on the board and in its document, and a chapter for each place.

    Attributes:
        system, title, kind: name, title and kind of the system, as on the board.
        stated: facts from the system's document, the verdict of a spot check, the origins of the numbers
            (`provenance`: run by us, outputs supplied, or reported; `from`: folders of runs, or the papers' tables)
            and the time of the last measurement (`updated`, ISO 8601). Missing facts are left out.
        links: names and addresses of the links in its document.
    """

    system: str
    title: str
    kind: str
    stated: Mapping[str, Any]
    links: Mapping[str, str]
    chapters: tuple[Chapter, ...] = ()


def describe_system(board: pd.DataFrame, systems: pd.DataFrame, system: str) -> SystemReport:
    """Return a report with the facts about a system, from the tables of `BoardRow` and of `SystemRow`.

    Raises:
        BadInput: the board does not have this system.
    """
    rows = board[board["system"] == system]
    if rows.empty:
        raise BadInput(f"there is no system with the id {system!r} on this board")
    row: Mapping[Any, Any] = next(iter(systems[systems["system"] == system].to_dict("records")), {})
    fields = ("description", "organisation", "licence", "open", "size_parameters", "languages", "source", "revision")
    stated = {name: row[name] for name in fields if name in row and not pd.isna(row[name])}
    verdicts = set(rows["spot_check"].astype(str)) if "spot_check" in rows else set()
    stated["spot_check"] = next((verdict for verdict in ("differs", "agrees", "not told") if verdict in verdicts), "")
    stated["provenance"] = tuple(dict.fromkeys(rows["provenance"].astype(str)))
    stated["from"] = tuple(dict.fromkeys(filter(None, rows["source"].astype(str))))
    stated["updated"] = str(rows["created"].max())
    return SystemReport(
        system=system,
        title=str(rows.sort_values("created", ascending=False, kind="stable")["system_title"].iloc[0]),
        kind=str(rows["system_kind"].iloc[0]),
        stated={name: value for name, value in stated.items() if value not in ("", ())},
        # Keep only addresses that a page may link to.
        links={name: url for name, url in read_object(row.get("links")).items() if str(url).startswith("https://")},
    )


def list_places(board: pd.DataFrame, system: str) -> list[str]:
    """Return the places where a system has numbers, `benchmark/split/profile`, places with the most numbers first and
    papers last.
    """
    counts = count_rows_by_place(board[board["system"] == system])
    return ["/".join(where) for where in sorted(counts, key=lambda where: (where[2] == "paper", -counts[where], where))]


def report_system(
    folder: RunsFolder, system: str, places: Iterable[str] = (), wishes: tuple[str, ...] = ()
) -> SystemReport:
    """Return the report on a system at some places (all by default), under the requested protocols (see `choose`).

    Raises:
        BadInput: the board does not have this system.
    """
    board = folder.board()
    described = describe_system(board, folder.systems(), system)
    everywhere = places or list_places(board, system)
    chapters = tuple(read_chapter(folder, system, at, wishes=wishes) for at in everywhere)
    return replace(described, chapters=chapters)


def read_chapter(
    folder: RunsFolder, system: str, where: str, slice_: str = "", wishes: tuple[str, ...] = ()
) -> Chapter:
    """Return the chapter on a system at `benchmark/split/profile`, with figures for one slice of the items."""
    key, tables = (system, where, slice_, wishes), (BOARD, ITEMS)
    return folder.remember("chapters", tables, key, lambda: _make_chapter(folder, *key), most=24)


def _make_chapter(folder: RunsFolder, system: str, where: str, slice_: str, wishes: tuple[str, ...]) -> Chapter:
    figures = build_figures(folder, system, where, slice_, wishes)
    here = select_rows(folder.board(), where)
    here = here[here["protocol"] == here["metric"].map(dict(figures.protocols))]
    scores = read_scores(folder, system, where)
    people = read_scores(folder, figures.reference, where) if figures.reference else None
    columns = [figure.column for figure in figures.figures]
    drifts, people_drifts = (compute_drifts(of, figures.protocols, columns) if of else [] for of in (scores, people))
    rows = here[here["system"] == system].drop_duplicates("metric")
    benchmark, split, _ = where.split("/")
    readings = {column[0]: scores.results.get(column, {}) for column in figures.protocols.items()}
    items = sorted(scores.items.values(), key=lambda item: (item.category.casefold(), item.title.casefold()))
    missing: dict[tuple[str, str, str], list[Listed]] = {}
    for metric, of_items in readings.items():
        for item, reading in of_items.items():
            if reading.reason:
                missing.setdefault((metric, reading.reason, reading.cause), []).append(scores.items[item])
    return Chapter(
        **vars(figures),
        where=where,
        benchmark=benchmarks.find_all().get(benchmark),
        people=choose_names(here).get(figures.reference, "").removesuffix(" (human)"),
        scores=scores,
        people_scores=people,
        drifts=tuple(drifts),
        people_drifts={drift.column.id: drift for drift in people_drifts},
        items=items,
        readings=readings,
        missing=dict(sorted(missing.items(), key=lambda one: (-len(one[1]), one[0][0]))),
        latencies=tuple(list_latencies(RunFolder(folder.runs, benchmark, split, system))),
        contents={str(m): read_object(text) for m, text in zip(rows["metric"], rows["protocol_json"], strict=True)},
    )


def report_runs(
    folders: Sequence[Path], profile: str | None = None, wishes: tuple[str, ...] = ()
) -> list[SystemReport]:
    """Return a report on each system in the given runs, compared with other runs, with a chapter for each run and
    profile.

    The folders of runs are `<runs>/<benchmark>/<split>/<system>`; if a `profile` is given, only that profile is
    reported.

    Raises:
        BadInput: a folder does not contain a run, is not at the path of a run, or has not been measured.
    """
    by_folder: dict[Path, list[RunFolder]] = {}
    for run in map(open_run, folders):
        by_folder.setdefault(run.runs, []).append(run)
    return [one for runs, some in by_folder.items() for one in _reports(runs, some, profile, wishes)]


def _reports(runs: Path, some: Sequence[RunFolder], profile: str | None, wishes: tuple[str, ...]) -> list[SystemReport]:
    with tempfile.TemporaryDirectory(prefix="podeval-report-") as aside:
        write_tables(runs, Path(aside))
        folder = RunsFolder(Path(aside), runs)
        chapters: dict[str, list[str]] = {}
        for run in some:
            plan = run.plan()
            start = f"{plan.benchmark}/{plan.split}/" + (profile or "")
            places = [where for where in list_places(folder.board(), plan.system) if where.startswith(start)]
            if not places:
                under = f" under the profile {profile}" if profile else ""
                raise BadInput(f"{run.path} has not been measured{under}; measure it with `podeval run`")
            chapters.setdefault(plan.system, []).extend(places)
        return [report_system(folder, system, dict.fromkeys(places), wishes) for system, places in chapters.items()]
