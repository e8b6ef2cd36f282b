"""What a reader looks at: one benchmark, one profile, one protocol per metric; as an address that restores it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from urllib.parse import urlencode

import pandas as pd

from podeval.leaderboard.columns import Column, dimension_title, headlines
from podeval.leaderboard.protocols import Choice, ambiguous, choose, choose_protocols, protocol_label
from podeval.leaderboard.system_info import NOT_STATED, OPENNESS, SIZES, Facts
from podeval.leaderboard.table_index import (
    PROFILES,
    PROVENANCES,
    Index,
    Key,
    Place,
    Sheet,
)

__all__ = [
    "FACTS",
    "OVERVIEW",
    "PLOTS",
    "PROFILES",
    "PROVENANCES",
    "BoardView",
    "Choice",
    "Choices",
    "ResolvedView",
    "choose_protocols",
    "protocol_label",
    "settle",
]  # fmt: skip

OVERVIEW, EVERYTHING = "overview", "all"
PLOTS = ("intervals", "radar", "size", "rtf", "distribution", "time")
FACTS = ("openness", "size", "licence", "language")
"""What systems can be filtered by, as submission documents state it."""
MOST_PINNED = 6


@dataclass(frozen=True)
class BoardView:
    """A reader's choices; what is empty means the default.

    Attributes:
        board: `benchmark/split`.
        profile: `embedded`, `reference` or `paper`; never more than one.
        dimension: `overview`, `all` columns, or the dimension whose keys are shown.
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

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> BoardView:
        """The view that `to_query` wrote; what an address leaves out or invents falls to the default later."""
        found: dict[str, str | bool | tuple[str, ...]] = {}
        for field in fields(cls):
            text = query.get(field.name, "")[:4000]
            if isinstance(field.default, bool):
                found[field.name] = text != "0"
            elif isinstance(field.default, tuple):
                found[field.name] = tuple(dict.fromkeys(part for part in text.split(",") if part))
            else:
                found[field.name] = text
        # Addresses of the first boards named the plotted column so.
        if found["plot"] not in PLOTS:
            found["of"], found["plot"] = found["of"] or found["plot"], ""
        return cls(**found)  # type: ignore[arg-type]

    def to_query(self) -> str:
        """The query string of an address that restores this view."""
        said = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                said[field.name] = ",".join(value) if isinstance(value, tuple) else value if value is not False else "0"
        return urlencode(said, safe=",/@=")


@dataclass(frozen=True)
class Choices:
    """What a reader can choose from in a view. `facts` has every value with the number of systems it is true of."""

    boards: tuple[Choice, ...]
    profiles: tuple[Choice, ...]
    dimensions: tuple[Choice, ...]
    slices: tuple[Choice, ...]
    judges: tuple[Choice, ...]
    provenances: tuple[Choice, ...]
    columns: tuple[Column, ...]
    protocols: tuple[Choice, ...]
    facts: Mapping[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class ResolvedView:
    """A view in which every choice exists, what else could be chosen, and the rows and columns it shows.

    All rows are of one profile, one slice and, per metric, one protocol. `protocols` says which, by metric.
    `keys` are the rows that fit the filters, `total` says how many there would be without filters.
    """

    view: BoardView
    choices: Choices
    columns: tuple[Column, ...]
    protocols: Mapping[str, str]
    place: Place
    sheet: Sheet
    facts: Mapping[str, Facts]
    keys: tuple[Key, ...]
    total: int

    def instead_of(self, wish: BoardView) -> dict[str, str]:
        """What was wished for and is not here: the fields of the view that show something else, with the wish."""
        found = {name: str(getattr(wish, name)) for name in ("board", "profile", "dimension", "slice")}
        missed = {name: asked for name, asked in found.items() if asked and asked != getattr(self.view, name)}
        if self.view.board.startswith(f"{missed.get('board', '').rstrip('/')}/"):
            # A benchmark was named without a split.
            missed.pop("board", None)
        return missed

    @property
    def title(self) -> str:
        """What the board is called: `benchmark · split`, or `benchmark` where the numbers are of no split."""
        return next(label for label, name in self.choices.boards if name == self.view.board)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Every number of the shown systems, those of columns that are not shown among them, as `BoardRow`s."""
        return self.sheet.frame(set(self._fitting).__contains__)

    @cached_property
    def _fitting(self) -> list[Key]:
        every = dict.fromkeys(key for column in self.sheet.columns for key in self.sheet.rows(column))
        return _fitting(self.view, every, self.place, self.facts)

    def link(self) -> str:
        """The query string of an address that shows the same numbers also when other protocols have become default."""
        shown = dict.fromkeys(self.protocols[column.metric] for column in self.columns)
        return replace(self.view, protocols=tuple(shown)).to_query()


def settle(wish: BoardView, board: pd.DataFrame | Index) -> ResolvedView:
    """The view closest to a wish that the results allow.

    Args:
        wish: choices, of which some may be missing or unknown.
        board: the table of `BoardRow`, or the index made of it; not empty.
    """
    index = board if isinstance(board, Index) else Index.of(board)
    chosen_board = _board(wish, index)
    profiles = index.profiles(chosen_board)
    profile = _pick(wish.profile, profiles)
    place = index.place(chosen_board, profile)
    judges = sorted({offer.judge for offered in place.offers.values() for offer in offered} - {""})
    judge = wish.judge if wish.judge in judges else ""
    protocols = choose(place.offers, wish.protocols, judge)
    several = {metric: choices for metric, choices in ambiguous(place.offers).items() if metric in protocols}

    known = place.columns(protocols)
    dimensions = tuple(dict.fromkeys(c.dimension for c in known))
    dimension = wish.dimension if wish.dimension in (*dimensions, EVERYTHING) else OVERVIEW
    available = _available(dimension, known)
    columns = tuple(c for c in available if c.id in wish.columns) or available
    shown = [c.id for c in columns]

    slice_ = _pick(wish.slice, place.slices)
    sheet = place.sheet(protocols, slice_)
    every = sheet.recent(("keys", *shown), lambda: dict.fromkeys(key for c in columns for key in sheet.rows(c.id)))
    systems = {system for system, _ in every}
    provenances = place.provenances
    provenance = tuple(name for name in provenances if name in wish.provenance)
    facts = sheet.recent(("facts", *shown), lambda: _fact_choices(systems, index.facts))
    wanted = {name: tuple(v for v in getattr(wish, name) if v in dict(facts[name])) for name in FACTS}
    sort = wish.sort if wish.sort.lstrip("-") in (*shown, "system") else _pick("", shown)
    view = replace(
        wish,
        board=chosen_board,
        profile=profile,
        dimension=dimension,
        slice=slice_,
        judge=judge,
        provenance=provenance if len(provenance) < len(provenances) else (),
        openness=wanted["openness"],
        size=wanted["size"],
        licence=wanted["licence"],
        language=wanted["language"],
        q=" ".join(wish.q.split())[:100],
        pins=tuple(pin for pin in wish.pins if pin in systems)[:MOST_PINNED],
        columns=tuple(shown) if len(shown) < len(available) else (),
        protocols=tuple(dict.fromkeys(protocols[m] for m in several if protocols[m] in wish.protocols)),
        sort=sort,
        plot=_pick(wish.plot, PLOTS),
        of=_pick(wish.of, [sort.lstrip("-"), *shown] if sort.lstrip("-") in shown else shown),
        rows="all" if wish.rows == "all" else "",
    )
    choices = Choices(
        boards=_boards(index, chosen_board, profile),
        profiles=tuple((name, name) for name in profiles),
        dimensions=(
            ("Overview", OVERVIEW),
            *((dimension_title(d), d) for d in dimensions),
            ("All columns", EVERYTHING),
        ),
        slices=tuple((name.replace("=", ": ") or "all items", name) for name in place.slices),
        judges=tuple((name, name) for name in judges),
        provenances=tuple((name, name) for name in provenances),
        columns=available,
        # A paper's setting is the protocol of many metrics at once, and one choice.
        protocols=tuple(dict.fromkeys(choice for metric in several for choice in several[metric])),
        facts=facts,
    )
    keys = tuple(_fitting(view, every, place, index.facts))
    return ResolvedView(view, choices, columns, protocols, place, sheet, index.facts, keys, len(every))


def _board(wish: BoardView, index: Index) -> str:
    """The board wished for, else the first of its benchmark, else the first that has the profile."""
    benchmark = wish.board.partition("/")[0]
    near = [name for name in index.boards if name.partition("/")[0] == benchmark]
    having = [name for name in index.boards if wish.profile in index.profiles(name)]
    return _pick(wish.board, near or having or index.boards)


def _boards(index: Index, chosen: str, profile: str) -> tuple[Choice, ...]:
    """The boards to choose from; a benchmark whose numbers under this profile are of no split stands there once."""
    found: dict[str, str] = {}
    for name in index.boards:
        label = name.partition("/")[0] if index.is_whole(name, profile) else name
        if name == chosen or label not in found:
            found[label] = name
    return tuple((label.replace("/", " · ").strip(" ·"), name) for label, name in found.items())


def _available(dimension: str, known: list[Column]) -> tuple[Column, ...]:
    if dimension == OVERVIEW:
        return tuple(headlines(known))
    return tuple(c for c in known if dimension in (EVERYTHING, c.dimension))


def _fitting(view: BoardView, keys: Iterable[Key], place: Place, facts: Mapping[str, Facts]) -> list[Key]:
    """The rows that the filters let through, pinned ones always."""
    tests = _tests(view, place, facts)
    return [key for key in keys if key[0] in view.pins or all(test(key) for test in tests)]


def _tests(view: BoardView, place: Place, facts: Mapping[str, Facts]) -> list[Callable[[Key], bool]]:
    nothing = Facts()
    tests: list[Callable[[Key], bool]] = []
    if view.provenance:
        tests.append(lambda key: key[1] in view.provenance)
    if not view.controls:
        tests.append(lambda key: place.systems[key[0]]["system_kind"] != "control")
    wanted = {name: frozenset(getattr(view, name)) for name in FACTS if getattr(view, name)}
    if wanted:
        tests.append(
            lambda key: (
                not any(values.isdisjoint(facts.get(key[0], nothing).values(name)) for name, values in wanted.items())
            )
        )
    if words := view.q.casefold().split():
        tests.append(
            lambda key: _holds(f"{place.names[key[0]]} {key[0]} {facts.get(key[0], nothing).organisation}", words)
        )
    return tests


def _holds(text: str, words: Iterable[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def _fact_choices(systems: set[str], facts: Mapping[str, Facts]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Every value of every fact that some systems have, with their number: buckets in order, `not_stated` last."""
    nothing = Facts()
    declared = {"openness": list(OPENNESS), "size": [name for name, _ in SIZES]}
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for name in FACTS:
        counts = Counter(value for system in systems for value in facts.get(system, nothing).values(name))
        order = declared.get(name, [])
        found[name] = tuple(
            sorted(
                counts.items(),
                key=lambda entry: (
                    entry[0] == NOT_STATED,
                    order.index(entry[0]) if entry[0] in order else len(order),
                    entry[0].casefold(),
                ),
            )
        )
    return found


def _pick(wish: str, known: Iterable[str]) -> str:
    listed = list(known)
    return wish if wish in listed else (listed[0] if listed else "")
