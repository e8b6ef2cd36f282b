"""A reader's view of the board: its address, its sorted rows, and its numbers for downloads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from podeval.board.columns import (
    EVERYTHING,
    MISSING,
    OVERVIEW,
    Cell,
    Choice,
    Column,
    Row,
    choose_headlines,
    count_unscored,
    format_standing,
    to_number,
)
from podeval.board.protocol_offers import choose, list_wished
from podeval.board.runs_folder import Index, Key, ProfileBoard, Sheet
from podeval.board.standings import correct_together
from podeval.board.system_info import FACTS, NOT_STATED, Facts, count_facts
from podeval.runs.board_tables import PROVENANCES

PLOTS = ("rtf", "size", "intervals", "radar", "distribution", "time", "density")
MOST_PINNED = 6
BY_VIEW = "view"
FALSE_COLUMNS = 0.05
"""Maximum expected share of columns with a false rank if all systems are equally good."""


@dataclass(frozen=True)
class BoardView:
    """A reader's choices; an empty choice means the default.

    Attributes:
        board: `benchmark/split`.
        profile: `embedded`, `reference` or `paper`; a view has only one profile.
        dimension: `overview`, `all` for all columns, or a dimension or group of dimensions.
        slice: "" for all items, otherwise for example `category=Arts`.
        judge: id of the judge whose figures are shown for judged metrics.
        provenance: provenance of the rows; empty for all.
        controls: whether control systems are shown.
        openness: openness of the systems' weights, `open`, `closed` or `not_stated`; empty for all.
        size: size bucket of the systems, by number of parameters; empty for all.
        licence: licence of the systems; empty for all.
        language: a language that the systems speak; empty for all.
        spoken: the way in which outputs were generated, according to their protocols: `whole`, `turns`, `chunks`; empty
            for all.
        q: words to search for in the name, id or organisation.
        pins: up to six systems, which are shown at the top regardless of the filters.
        columns: ids of the columns to show; empty for all.
        protocols: ids of the chosen protocols for metrics that have several; a requested view may name presets instead.
        sort: id of the column to sort by, best first, or worst first with a leading `-`; `system` sorts by name.
        plot: one of `PLOTS`.
        of: column id for the plot.
        correction: `view` for ranks corrected over all columns of the view together; "" for ranks corrected by column.
    """

    board: str = ""
    profile: str = ""
    dimension: str = ""
    slice: str = ""
    judge: str = ""
    provenance: tuple[str, ...] = ()
    controls: bool = True
    openness: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    licence: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    spoken: tuple[str, ...] = ()
    q: str = ""
    pins: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    sort: str = ""
    plot: str = ""
    of: str = ""
    correction: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> BoardView:
        """Parse the query of an address; missing or unknown values are replaced by the default later."""
        values: dict[str, str | bool | tuple[str, ...]] = {}
        for field in fields(cls):
            text = query.get(field.name, "")[:4000]
            if isinstance(field.default, bool):
                values[field.name] = text != "0"
            elif isinstance(field.default, tuple):
                values[field.name] = tuple(dict.fromkeys(part for part in text.split(",") if part))
            else:
                values[field.name] = text
        return cls(**values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Choices:
    """The choices that a view offers in addition to the board's slices and provenances.

    `facts` contains every value of every fact, with the number of systems to which the value applies.
    """

    boards: tuple[Choice, ...]
    profiles: tuple[str, ...]
    dimensions: tuple[str, ...]
    groups: tuple[str, ...]
    judges: tuple[str, ...]
    columns: tuple[Column, ...]
    protocols: tuple[Choice, ...]
    facts: Mapping[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class ResolvedView:
    """A view with valid choices, the available alternatives, and the rows and columns that it shows.

    All rows have the same profile, the same slice and, for each metric, the same protocol, given in `protocols`. `keys`
    are the rows that pass the filters, and `total` is the number of rows without filters.
    """

    view: BoardView
    choices: Choices
    columns: tuple[Column, ...]
    protocols: Mapping[str, str]
    board: ProfileBoard
    sheet: Sheet
    facts: Mapping[str, Facts]
    keys: tuple[Key, ...]
    total: int

    def missed_wishes(self, wish: BoardView) -> dict[str, str]:
        """Return the requested values that the view does not show, by field."""
        wishes = {name: str(getattr(wish, name)) for name in ("board", "profile", "dimension", "slice", "correction")}
        missed = {name: value for name, value in wishes.items() if value and value != getattr(self.view, name)}
        if self.view.board.startswith(f"{missed.get('board', '').rstrip('/')}/"):
            # The wish named a benchmark without a split.
            missed.pop("board", None)
        return missed

    @property
    def ranked_columns(self) -> int:
        """Number of columns with ranks."""
        rows = (self.sheet.rows(column.id) for column in self.columns)
        return sum(any(to_number(of[key]["rank_best"]) is not None for key in self.keys if key in of) for of in rows)

    @property
    def expected_false(self) -> float:
        """Maximum expected number of columns with a false rank if all systems are equally good."""
        return FALSE_COLUMNS * (1 if self.view.correction else self.ranked_columns)

    @property
    def title(self) -> str:
        """Title of the board: `benchmark · split`, or `benchmark` for numbers without a split."""
        return next(label for label, name in self.choices.boards if name == self.view.board)


def resolve_view(wish: BoardView, board: pd.DataFrame | Index) -> ResolvedView:
    """Return the view that the results allow and that is closest to a wish.

    Args:
        wish: choices, some of which may be missing or unknown.
        board: the table of `BoardRow`, or the index made from it; it must not be empty.
    """
    index = board if isinstance(board, Index) else Index.of(board)
    # Choose the place: a board under a profile.
    name = _pick_board(wish, index)
    profiles = index.profiles(name)
    profile = _pick(wish.profile, profiles)
    here = index.board(name, profile)
    # Choose the columns: the columns of one dimension, with one protocol for each metric.
    judges = tuple(sorted({offer.judge for offers in here.offers.values() for offer in offers} - {""}))
    judge = wish.judge if wish.judge in judges else ""
    protocols = choose(here.offers, wished := list_wished(here.offers, wish.protocols), judge)
    every_column = here.columns(protocols)
    dimensions = tuple(dict.fromkeys(column.dimension for column in every_column))
    groups = tuple(dict.fromkeys(name.partition(".")[0] for name in dimensions))
    dimension = wish.dimension if wish.dimension in (*dimensions, *groups, EVERYTHING) else OVERVIEW
    slice_ = _pick(wish.slice, here.slices)
    sheet = here.sheet(protocols, slice_)
    available = _put_empty_last(_columns_of(dimension, every_column), sheet, here, index.facts)
    columns = tuple(column for column in available if column.id in wish.columns) or available
    ids = [column.id for column in columns]
    # Choose the rows that pass the filters.
    every_key = sheet.recent.get(("keys", *ids), lambda: dict.fromkeys(key for id in ids for key in sheet.rows(id)))
    systems = {system for system, _ in every_key}
    facts = sheet.recent.get(("facts", *ids), lambda: count_facts(systems, index.facts))
    several = {metric: offers for metric, offers in here.offers.items() if len(offers) > 1 and metric in protocols}
    view = replace(
        _keep_order_and_plot(_keep_filters(wish, here.provenances, facts, systems), ids),
        board=name,
        profile=profile,
        dimension=dimension,
        slice=slice_,
        judge=judge,
        correction="",
        columns=tuple(ids) if len(ids) < len(available) else (),
        protocols=tuple(dict.fromkeys(protocols[m] for m in several if protocols[m] in wished)),
    )
    choices = Choices(
        boards=_board_choices(index, name, profile),
        profiles=profiles,
        dimensions=dimensions,
        groups=groups,
        judges=judges,
        columns=available,
        # A paper's setting that several metrics share is a single choice.
        protocols=tuple(dict.fromkeys((one.label, one.protocol) for offers in several.values() for one in offers)),
        facts=facts,
    )
    keys = tuple(_fitting(view, every_key, here, index.facts))
    if wish.correction == BY_VIEW and index.runs:
        of = {(protocols[column.metric], slice_, column.key) for column in columns}
        make = partial(_correct_together, index.runs, sheet, name, profile, of)
        if (corrected := sheet.corrected.get(tuple(ids), make)) is not None:
            sheet, view = corrected, replace(view, correction=BY_VIEW)
    return ResolvedView(view, choices, columns, protocols, here, sheet, index.facts, keys, len(every_key))


def _correct_together(runs: Path, sheet: Sheet, *where: Any) -> Sheet | None:
    numbers = correct_together(runs, sheet.frame(lambda key: True), *where)
    return None if numbers is None else Sheet(numbers)


def _pick_board(wish: BoardView, index: Index) -> str:
    """Return the requested board or, if it is missing, the one with the most measured systems for its benchmark or
    profile; of equal boards, the one with the most systems, including those in papers.
    """
    by_size = sorted(index.boards, key=lambda name: (-index.measured[name], -index.known[name]))
    benchmark = wish.board.partition("/")[0]
    near = [name for name in by_size if name.partition("/")[0] == benchmark]
    having = [name for name in by_size if wish.profile in index.profiles(name)]
    return wish.board if wish.board in by_size else (near or having or by_size)[0]


def _columns_of(dimension: str, columns: list[Column]) -> tuple[Column, ...]:
    """Return the columns of a dimension, of a group of dimensions, of all dimensions, or of the overview."""
    if dimension == OVERVIEW:
        return tuple(choose_headlines(columns))
    return tuple(
        column for column in columns if dimension in (EVERYTHING, column.dimension, column.dimension.partition(".")[0])
    )


def _put_empty_last(
    columns: Iterable[Column], sheet: Sheet, board: ProfileBoard, facts: Mapping[str, Facts]
) -> tuple[Column, ...]:
    """Return the columns, placing last those without values and those with values only for controls or baselines."""
    hidden = {name for name in board.systems if name in facts and facts[name].is_ours}
    return tuple(
        sorted(
            columns,
            key=lambda column: (
                not any(
                    to_number(row["value"]) is not None and row["system_kind"] != "control" and system not in hidden
                    for (system, _), row in sheet.rows(column.id).items()
                )
            ),
        )
    )


def _keep_filters(
    wish: BoardView, provenances: Sequence[str], facts: Mapping[str, Sequence[tuple[str, int]]], systems: set[str]
) -> BoardView:
    """Return the wish with only those filters and pins that match a system."""
    provenance = tuple(name for name in provenances if name in wish.provenance)
    stated: dict[str, Any] = {
        name: tuple(value for value in getattr(wish, name) if value in dict(facts[name])) for name in FACTS
    }
    return replace(
        wish,
        **stated,
        provenance=provenance if len(provenance) < len(provenances) else (),
        q=" ".join(wish.q.split())[:100],
        pins=tuple(pin for pin in wish.pins if pin in systems)[:MOST_PINNED],
    )


def _keep_order_and_plot(wish: BoardView, columns: Sequence[str]) -> BoardView:
    """Return the wish with the sort order and the plot that these columns allow."""
    sort = wish.sort if wish.sort.lstrip("-") in (*columns, "system") else _pick("", columns)
    by = sort.lstrip("-")
    return replace(
        wish,
        sort=sort,
        plot=_pick(wish.plot, PLOTS),
        of=_pick(wish.of, [by, *columns] if by in columns else columns),
    )


def _board_choices(index: Index, chosen: str, profile: str) -> tuple[Choice, ...]:
    """Return the boards to choose from; a benchmark without splits under this profile is listed once."""
    names: dict[str, str] = {}
    for name in index.boards:
        label = name.partition("/")[0] if index.is_whole(name, profile) else name
        if name == chosen or label not in names:
            names[label] = name
    return tuple((label.replace("/", " · ").strip(" ·"), name) for label, name in names.items())


def _pick(wish: str, choices: Sequence[str]) -> str:
    """Return the wish if it is available, otherwise the first choice, or an empty string if there are no choices."""
    return wish if wish in choices else next(iter(choices), "")


def _fitting(view: BoardView, keys: Iterable[Key], board: ProfileBoard, facts: Mapping[str, Facts]) -> list[Key]:
    """Return the rows that pass the filters, and all pinned rows."""
    nothing, words = Facts(), view.q.casefold().split()
    filters = {name: frozenset(getattr(view, name)) for name in FACTS if getattr(view, name)}

    def passes(system: str, provenance: str) -> bool:
        stated = facts.get(system, nothing)
        text = f"{board.names[system]} {system} {stated.organisation}".casefold() if words else ""
        return (
            (not view.provenance or provenance in view.provenance)
            and (not view.spoken or board.spoken.get((system, provenance), NOT_STATED) in view.spoken)
            and (view.controls or board.systems[system]["system_kind"] != "control")
            and not any(values.isdisjoint(stated.values(name)) for name, values in filters.items())
            and all(word in text for word in words)
        )

    return [key for key in keys if key[0] in view.pins or passes(*key)]


@dataclass(frozen=True)
class TableRow:
    """One row of the table: a system's numbers from one provenance."""

    system: str
    name: str
    kind: str
    provenance: str
    cells: tuple[Cell, ...]
    rows: tuple[Row, ...]

    @property
    def counted(self) -> str:
        """The number of scored measurements, and the number of all measurements."""
        return format_scored(self.rows)


def format_scored(rows: Iterable[Row]) -> str:
    """Format how many of some rows' measurements are scored, as in `306/306`; `–` if a paper does not state them.

    Each metric is counted once, by its key with the most gaps.
    """
    stated = [row for row in rows if to_number(row["scored"]) is not None]
    by_metric = {row["metric"]: row for row in sorted(stated, key=count_unscored)}
    scored = sum(int(row["scored"]) for row in by_metric.values())
    total = scored + sum(map(count_unscored, by_metric.values()))
    return f"{scored}/{total}" if total else MISSING


def order(settled: ResolvedView) -> list[Key]:
    """Return the sorted rows of a view: pinned rows at the top, then the others by the sort column, best first."""
    wish = settled.view.sort
    by = next((c for c in settled.columns if c.id == wish.lstrip("-")), None)
    names, systems = settled.board.names, settled.board.systems
    cells: Mapping[Key, Row] = settled.sheet.rows(by.id) if by else {}
    sign = -1.0 if wish.startswith("-") else 1.0
    pins = {system: number for number, system in enumerate(settled.view.pins)}

    def rank_key(key: Key) -> tuple[Any, ...]:
        """Return the sort key: pinned first, then our runs, controls last; complete before incomplete; best first."""
        row = cells.get(key)
        value = to_number(row["value"]) if row else None
        behind = by is not None and (row is None or format_standing(row) in ("incomplete", "unscored"))
        badness = sign * by.badness(value) if by and value is not None else math.inf
        control = systems[key[0]]["system_kind"] == "control"
        return (pins.get(key[0], len(pins)), PROVENANCES.index(key[1]), control, behind, badness)

    by_name = sorted(settled.keys, key=lambda key: names[key[0]].casefold(), reverse=wish == "-system")
    return sorted(by_name, key=rank_key)


def build_lines(settled: ResolvedView, keys: Sequence[Key]) -> list[TableRow]:
    """Return the given rows of a view, formatted for the view's columns."""
    ids = [column.id for column in settled.columns]
    written: dict[Key, TableRow] = settled.sheet.recent.get(("lines", *ids), dict)
    missing = [key for key in keys if key not in written]
    columns = [settled.sheet.cells(id) for id in ids] if missing else []
    for key in missing:
        written[key] = TableRow(
            system=key[0],
            name=settled.board.names[key[0]],
            kind=str(settled.board.systems[key[0]]["system_kind"]),
            provenance=key[1],
            cells=tuple(column[key][1] if key in column else Cell(MISSING) for column in columns),
            rows=tuple(column[key][0] for column in columns if key in column),
        )
    return [written[key] for key in keys]
