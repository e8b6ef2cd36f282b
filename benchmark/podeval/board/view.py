"""A reader's view of the board: one benchmark, one profile, one protocol for each metric, and its address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from urllib.parse import urlencode

import pandas as pd

from podeval.board.columns import Choice, Column, choose, choose_headlines, write_dimension_title
from podeval.board.runs_folder import Index, Key, ProfileBoard, Sheet
from podeval.board.system_info import NOT_STATED, OPENNESS, SIZES, Facts

OVERVIEW, EVERYTHING = "overview", "all"
PLOTS = ("intervals", "radar", "size", "rtf", "distribution", "time")
FACTS = ("openness", "size", "licence", "language")
"""Facts of submission documents by which systems can be filtered."""
MOST_PINNED = 6
COLUMNS_ON_A_PAGE = 9
"""Columns of numbers that a table shows at a time, so that it fits into a page."""


@dataclass(frozen=True)
class BoardView:
    """A reader's choices; what is empty means the default.

    Attributes:
        board: `benchmark/split`.
        profile: `embedded`, `reference` or `paper`; never more than one.
        dimension: `overview`, `all` columns, or the dimension, or the group of dimensions, whose keys are shown.
        slice: "" for all items, else e.g. `category=Arts`.
        judge: id of the judge whose figures are shown where something is judged.
        provenance: which rows by their provenance; empty for all.
        controls: whether control systems are shown.
        openness: which systems by the weights: `open`, `closed`, `not_stated`; empty for all.
        size: which by the buckets of their parameters; empty for all.
        licence: which by licence; empty for all.
        language: which by a language they speak; empty for all.
        q: words that name, id or organisation hold.
        pins: systems that stand on top whatever the filters say, at most six.
        columns: column ids shown; empty for all.
        protocols: protocol ids chosen, for metrics that have several.
        sort: column id by which rows stand, best first; with a leading `-` worst first; `system` by name.
        plot: one of `PLOTS`.
        of: column id of the plot.
        rows: `all`, or "" for the first of them.
        column_page: number of the page of columns that the table shows, from 2 on; "" for the first.
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
    q: str = ""
    pins: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    sort: str = ""
    plot: str = ""
    of: str = ""
    rows: str = ""
    column_page: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> BoardView:
        """Parse the query that `to_query` wrote; missing or unknown values become the default later."""
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

    def to_query(self) -> str:
        """Return the query string of an address that restores this view."""
        query = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                query[field.name] = ",".join(value) if isinstance(value, tuple) else "0" if value is False else value
        return urlencode(query, safe=",/@=")


@dataclass(frozen=True)
class Choices:
    """The choices of a reader in a view. `facts` has every value with the number of systems it is true of."""

    boards: tuple[Choice, ...]
    profiles: tuple[Choice, ...]
    dimensions: tuple[Choice, ...]
    groups: tuple[str, ...]
    slices: tuple[Choice, ...]
    judges: tuple[Choice, ...]
    provenances: tuple[Choice, ...]
    columns: tuple[Column, ...]
    protocols: tuple[Choice, ...]
    facts: Mapping[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class ResolvedView:
    """A view in which every choice exists, the other choices, and the rows and columns it shows.

    All rows are of one profile, one slice and, for each metric, one protocol, which `protocols` gives by metric. `keys`
    are the rows that pass the filters, `total` is their number without filters.
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
        """Return the wishes that cannot be met: the fields of the view that show something else, with the wish."""
        wishes = {name: str(getattr(wish, name)) for name in ("board", "profile", "dimension", "slice")}
        missed = {name: value for name, value in wishes.items() if value and value != getattr(self.view, name)}
        if self.view.board.startswith(f"{missed.get('board', '').rstrip('/')}/"):
            # A benchmark was named without a split.
            missed.pop("board", None)
        return missed

    @property
    def title(self) -> str:
        """Title of the board: `benchmark · split`, or `benchmark` where the numbers are of no split."""
        return next(label for label, name in self.choices.boards if name == self.view.board)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """All numbers of the shown systems as `BoardRow`s, also those of columns that are not shown."""
        return self.sheet.frame(set(self._fitting).__contains__)

    @cached_property
    def _fitting(self) -> list[Key]:
        every = dict.fromkeys(key for column in self.sheet.columns for key in self.sheet.rows(column))
        return _fitting(self.view, every, self.board, self.facts)

    @property
    def pages(self) -> tuple[tuple[Column, ...], ...]:
        """The columns by the pages on which the table shows them."""
        starts = range(0, len(self.columns), COLUMNS_ON_A_PAGE)
        return tuple(self.columns[start : start + COLUMNS_ON_A_PAGE] for start in starts)

    @property
    def page(self) -> int:
        """The place among `pages` of the one that is shown."""
        return int(self.view.column_page or 1) - 1

    def link(self) -> str:
        """Return the query string of an address that shows the same numbers under later default protocols too."""
        protocols = dict.fromkeys(self.protocols[column.metric] for column in self.columns)
        return replace(self.view, protocols=tuple(protocols)).to_query()


def resolve_view(wish: BoardView, board: pd.DataFrame | Index) -> ResolvedView:
    """Return the view closest to a wish that the results allow.

    Args:
        wish: choices, of which some may be missing or unknown.
        board: the table of `BoardRow`, or the index made of it; not empty.
    """
    index = board if isinstance(board, Index) else Index.of(board)
    # Where: a board under a profile.
    name = _pick_board(wish, index)
    profiles = index.profiles(name)
    profile = _pick(wish.profile, profiles)
    here = index.board(name, profile)
    # Which columns: one protocol a metric, of one dimension.
    judges = sorted({offer.judge for offers in here.offers.values() for offer in offers} - {""})
    judge = wish.judge if wish.judge in judges else ""
    protocols = choose(here.offers, wish.protocols, judge)
    every_column = here.columns(protocols)
    dimensions = tuple(dict.fromkeys(column.dimension for column in every_column))
    groups = tuple(dict.fromkeys(name.partition(".")[0] for name in dimensions))
    dimension = wish.dimension if wish.dimension in (*dimensions, *groups, EVERYTHING) else OVERVIEW
    available = _columns_of(dimension, every_column)
    columns = tuple(column for column in available if column.id in wish.columns) or available
    ids = [column.id for column in columns]
    # Which rows: of one slice, those that the filters let through.
    slice_ = _pick(wish.slice, here.slices)
    sheet = here.sheet(protocols, slice_)
    every_key = sheet.recent.get(("keys", *ids), lambda: dict.fromkeys(key for id in ids for key in sheet.rows(id)))
    systems = {system for system, _ in every_key}
    facts = sheet.recent.get(("facts", *ids), lambda: _fact_choices(systems, index.facts))
    several = {metric: offers for metric, offers in here.offers.items() if len(offers) > 1 and metric in protocols}
    view = replace(
        _keep_order_and_plot(_keep_filters(wish, here.provenances, facts, systems), ids),
        board=name,
        profile=profile,
        dimension=dimension,
        slice=slice_,
        judge=judge,
        columns=tuple(ids) if len(ids) < len(available) else (),
        protocols=tuple(dict.fromkeys(protocols[m] for m in several if protocols[m] in wish.protocols)),
    )
    choices = Choices(
        boards=_board_choices(index, name, profile),
        profiles=_by_name(profiles),
        dimensions=(
            ("Overview", OVERVIEW),
            *((write_dimension_title(name), name) for name in dimensions),
            ("All columns", EVERYTHING),
        ),
        groups=groups,
        slices=tuple((slice_.replace("=", ": ") or "all items", slice_) for slice_ in here.slices),
        judges=_by_name(judges),
        provenances=_by_name(here.provenances),
        columns=available,
        # A paper's setting, shared by many metrics, is one choice.
        protocols=tuple(dict.fromkeys((one.label, one.protocol) for offers in several.values() for one in offers)),
        facts=facts,
    )
    keys = tuple(_fitting(view, every_key, here, index.facts))
    return ResolvedView(view, choices, columns, protocols, here, sheet, index.facts, keys, len(every_key))


def _pick_board(wish: BoardView, index: Index) -> str:
    """Return the board wished for, else one of its benchmark, else one that has the profile: with most systems."""
    by_size = sorted(index.boards, key=lambda name: -index.measured[name])
    benchmark = wish.board.partition("/")[0]
    near = [name for name in by_size if name.partition("/")[0] == benchmark]
    having = [name for name in by_size if wish.profile in index.profiles(name)]
    return wish.board if wish.board in by_size else (near or having or by_size)[0]


def _columns_of(dimension: str, columns: list[Column]) -> tuple[Column, ...]:
    """Return the columns of a dimension, of a group of dimensions, of all, or of the overview."""
    if dimension == OVERVIEW:
        return tuple(choose_headlines(columns))
    return tuple(
        column for column in columns if dimension in (EVERYTHING, column.dimension, column.dimension.partition(".")[0])
    )


def _keep_filters(
    wish: BoardView, provenances: Sequence[str], facts: Mapping[str, Sequence[tuple[str, int]]], systems: set[str]
) -> BoardView:
    """Return the wish with only those filters and pins that are true of some systems."""
    provenance = tuple(name for name in provenances if name in wish.provenance)
    existing = {name: dict(facts[name]) for name in FACTS}
    return replace(
        wish,
        provenance=provenance if len(provenance) < len(provenances) else (),
        openness=tuple(value for value in wish.openness if value in existing["openness"]),
        size=tuple(value for value in wish.size if value in existing["size"]),
        licence=tuple(value for value in wish.licence if value in existing["licence"]),
        language=tuple(value for value in wish.language if value in existing["language"]),
        q=" ".join(wish.q.split())[:100],
        pins=tuple(pin for pin in wish.pins if pin in systems)[:MOST_PINNED],
    )


def _keep_order_and_plot(wish: BoardView, columns: Sequence[str]) -> BoardView:
    """Return the wish with the sort order and the plot that these columns allow."""
    sort = wish.sort if wish.sort.lstrip("-") in (*columns, "system") else _pick("", columns)
    by = sort.lstrip("-")
    pages = [str(number) for number in range(2, 2 + (len(columns) - 1) // COLUMNS_ON_A_PAGE)]
    return replace(
        wish,
        sort=sort,
        plot=_pick(wish.plot, PLOTS),
        of=_pick(wish.of, [by, *columns] if by in columns else columns),
        rows="all" if wish.rows == "all" else "",
        column_page=wish.column_page if wish.column_page in pages else "",
    )


def _board_choices(index: Index, chosen: str, profile: str) -> tuple[Choice, ...]:
    """Return the boards to choose from; a benchmark whose numbers under this profile are of no split is listed once."""
    names: dict[str, str] = {}
    for name in index.boards:
        label = name.partition("/")[0] if index.is_whole(name, profile) else name
        if name == chosen or label not in names:
            names[label] = name
    return tuple((label.replace("/", " · ").strip(" ·"), name) for label, name in names.items())


def _by_name(values: Iterable[str]) -> tuple[Choice, ...]:
    return tuple((value, value) for value in values)


def _fitting(view: BoardView, keys: Iterable[Key], board: ProfileBoard, facts: Mapping[str, Facts]) -> list[Key]:
    """Return the rows that pass the filters, pinned ones always."""
    nothing, words = Facts(), view.q.casefold().split()
    filters = {name: frozenset(getattr(view, name)) for name in FACTS if getattr(view, name)}

    def passes(system: str, provenance: str) -> bool:
        stated = facts.get(system, nothing)
        text = f"{board.names[system]} {system} {stated.organisation}".casefold() if words else ""
        return (
            (not view.provenance or provenance in view.provenance)
            and (view.controls or board.systems[system]["system_kind"] != "control")
            and not any(values.isdisjoint(stated.values(name)) for name, values in filters.items())
            and all(word in text for word in words)
        )

    return [key for key in keys if key[0] in view.pins or passes(*key)]


def _fact_choices(systems: set[str], facts: Mapping[str, Facts]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return every value of every fact that some systems have, with counts: buckets in order, `not_stated` last."""
    nothing = Facts()
    declared = {"openness": list(OPENNESS), "size": [name for name, _ in SIZES]}

    def order(fact: str, value: str) -> tuple[bool, int, str]:
        values = declared.get(fact, [])
        return (value == NOT_STATED, values.index(value) if value in values else len(values), value.casefold())

    choices: dict[str, tuple[tuple[str, int], ...]] = {}
    for name in FACTS:
        counts = Counter(value for system in systems for value in facts.get(system, nothing).values(name))
        choices[name] = tuple(sorted(counts.items(), key=lambda entry: order(name, entry[0])))
    return choices


def _pick(wish: str, choices: Iterable[str]) -> str:
    """Return the wish if it is available, else the first choice, else an empty text."""
    every = list(choices)
    return wish if wish in every else next(iter(every), "")
