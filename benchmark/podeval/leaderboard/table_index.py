"""The board's tables arranged for readers: made once for each version of the tables, shared by all who read.

A `Place` is one benchmark under one profile; a `Sheet` is a place under one protocol a metric, for all items or one
slice of them: what one table can show without mixing what must not be mixed. Places and sheets are made when first
asked for and kept; a sheet makes its columns likewise. Nothing here is changed after it was made, so threads share it.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.leaderboard.column_arrays import Indices, Numbers, Row
from podeval.leaderboard.columns import Column, column, ordered
from podeval.leaderboard.protocols import Offers, offers
from podeval.leaderboard.system_info import Facts, by_system

PROFILES = ("reference", "embedded", "paper")
PROVENANCES = ("run by us", "outputs supplied", "reported")
KIND_MARKS = {"control": " (control)", "human": " (human)"}
MADE_KEPT, SHEETS_KEPT, RECENT = 400, 24, 24
CELL = (
    *("system", "system_kind", "provenance", "metric", "key", "value", "low", "high", "rank_best", "rank_worst"),
    *("rankable", "scored", "unscored_system", "unscored_ours", "reasons", "protocol_json", "created", "spot_check"),
    *("values", "clusters"),
)
"""What of a row a table needs."""

Made = TypeVar("Made")
Key = tuple[str, str]
"""A system and the provenance of its numbers: one row of a table."""


class Sheet:
    """The numbers that one table can show: one profile, one slice, one protocol a metric."""

    def __init__(self, numbers: Numbers, rows: Indices) -> None:
        self._numbers = numbers
        self._by_column = {
            f"{metric}.{key}": own for (metric, key), own in numbers.groups(rows, ("metric", "key")).items()
        }
        self._made: dict[Any, Any] = {}
        self._recent: dict[Any, Any] = {}
        self._all = rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Ids of the columns that have rows."""
        return tuple(self._by_column)

    def rows(self, column_id: str) -> Mapping[Key, Row]:
        """The rows of one column, by system and provenance."""

        def read() -> Mapping[Key, Row]:
            found = self._numbers.rows(self._by_column[column_id], CELL) if column_id in self._by_column else []
            return {(row["system"], row["provenance"]): row for row in found}

        return self.kept(("rows", column_id), read)

    def kept(self, what: tuple[str, ...], make: Callable[[], Made]) -> Made:
        """Something made of this sheet's numbers, made once."""
        if what not in self._made:
            self._made[what] = make()
        made: Made = self._made[what]
        return made

    def recent(self, what: tuple[str, ...], make: Callable[[], Made]) -> Made:
        """The same for what there may be very much of: only what was asked for last stays."""
        made: Made = self._recent[what] if what in self._recent else make()
        self._recent.pop(what, None)
        self._recent[what] = made
        for stale in list(self._recent)[:-RECENT]:
            self._recent.pop(stale, None)
        return made

    def frame(self, keep: Callable[[Key], bool]) -> pd.DataFrame:
        """All rows of the systems to keep, columns as in `BoardRow`."""
        systems = self._numbers.column(self._all, "system")
        provenances = self._numbers.column(self._all, "provenance")
        kept = {key: keep(key) for key in set(zip(systems, provenances, strict=True))}
        chosen = [kept[key] for key in zip(systems, provenances, strict=True)]
        return self._numbers.frame(self._all[np.array(chosen, dtype=bool)])


class Place:
    """One benchmark's split under one profile."""

    def __init__(self, numbers: Numbers, rows: Indices, benchmark: str) -> None:
        self._numbers, self._rows, self._benchmark = numbers, rows, benchmark
        self._made: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = threading.RLock()
        self.offers: Offers = offers(numbers, rows)

    @cached_property
    def slices(self) -> tuple[str, ...]:
        """Names of the slices, all items ("") first, then by the benchmark's breakdowns in their order."""
        return tuple(sorted(self._numbers.texts(self._rows, "slice"), key=_slice_order(self._benchmark)))

    @cached_property
    def provenances(self) -> tuple[str, ...]:
        """The provenances there are, in the order of the board."""
        found = self._numbers.texts(self._rows, "provenance")
        return tuple(name for name in PROVENANCES if name in found)

    @cached_property
    def systems(self) -> Mapping[str, Row]:
        """One row of every system, for its title and kind."""
        groups = self._numbers.groups(self._rows, ("system",))
        found = self._numbers.rows(np.array([own[-1] for own in groups.values()], dtype=np.int64))
        return {row["system"]: row for row in found}

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What each system is called: its title, with its id where two share one, and its kind's mark."""
        return called(self.systems.values())

    def columns(self, protocols: Mapping[str, str]) -> list[Column]:
        """Every column under these protocols, in the order of the board."""

        def make() -> list[Column]:
            return ordered(column(*ids) for ids in self._numbers.groups(self._chosen(protocols), named))

        named = ("metric", "key", "dimension")
        return self._kept(("columns", *protocols.items()), make)

    def sheet(self, protocols: Mapping[str, str], slice_: str) -> Sheet:
        """The numbers of one slice under these protocols."""

        def make() -> Sheet:
            return Sheet(self._numbers, self._numbers.where(self._chosen(protocols), "slice", slice_))

        return self._kept(("sheet", slice_, *protocols.items()), make)

    def extent(self, protocols: Mapping[str, str], of: Column, breakdowns: Sequence[str]) -> tuple[float, float] | None:
        """The worst and the best of a column, as `Column.badness`, over all systems that are no controls, in the whole
        and in the slices of these breakdowns; None where there is no value.
        """

        def make() -> tuple[float, float] | None:
            numbers = self._numbers
            rows = numbers.where(numbers.where(self._chosen(protocols), "metric", of.metric), "key", of.key)
            wanted = [name for name in self.slices if not name or name.partition("=")[0] in breakdowns]
            rows = numbers.where(rows, "slice", *wanted)
            values = numbers.column(rows, "value")[numbers.column(rows, "system_kind") != "control"]
            found = [of.badness(float(value)) for value in np.unique(values[np.isfinite(values)])]
            return (max(found), min(found)) if found else None

        return self._kept(("extent", of.id, *breakdowns, *protocols.items()), make)

    def _chosen(self, protocols: Mapping[str, str]) -> Indices:
        """Rows of the chosen protocol of each metric; a paper's setting may be that of several metrics."""
        return self._kept(("rows", *protocols.items()), lambda: self._of(protocols))

    def _of(self, protocols: Mapping[str, str]) -> Indices:
        rows = self._numbers.where(self._rows, "metric", *protocols)
        rows = self._numbers.where(rows, "protocol", *set(protocols.values()))
        parts = [
            own
            for (metric, protocol), own in self._numbers.groups(rows, ("metric", "protocol")).items()
            if protocols[metric] == protocol
        ]
        return np.sort(np.concatenate(parts)) if parts else rows[:0]

    def _kept(self, what: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        with self._lock:
            if what not in self._made:
                self._made[what] = make()
                sheets = [other for other in self._made if other[0] == "sheet"]
                for stale in [*sheets[:-SHEETS_KEPT], *list(self._made)[:-MADE_KEPT]]:
                    self._made.pop(stale, None)
            self._made.move_to_end(what)
            made: Made = self._made[what]
            return made


class Index:
    """All places of the board, and what is known of the systems on them."""

    def __init__(self, numbers: Numbers, facts: Mapping[str, Facts] | None = None) -> None:
        self._numbers = numbers
        self.facts: Mapping[str, Facts] = facts or {}
        self._places: dict[tuple[str, str], Place] = {}
        self._lock = threading.Lock()
        self._rows: dict[str, dict[str, list[Indices]]] = {}
        for (benchmark, split, profile), rows in numbers.groups(
            numbers.all(), ("benchmark", "split", "profile")
        ).items():
            self._rows.setdefault(f"{benchmark}/{split}", {}).setdefault(profile, []).append(rows)

    @classmethod
    def of(cls, board: pd.DataFrame, systems: pd.DataFrame | None = None) -> Index:
        """The index of a table of `BoardRow`, and of one of `SystemRow` if given; kept as long as the table is."""
        known = _KEPT.get(id(board))
        if known and known[0]() is board and systems is None:
            return known[1]
        made = cls(Numbers.of(board), by_system(systems) if systems is not None else None)
        if systems is None:
            key = id(board)
            _KEPT[key] = (weakref.ref(board, lambda _: _KEPT.pop(key, None)), made)
        return made

    @property
    def empty(self) -> bool:
        """Whether nothing has been measured."""
        return self._numbers.size == 0

    @cached_property
    def boards(self) -> tuple[str, ...]:
        """`benchmark/split` of every split; figures of a whole benchmark stand on the boards of its splits."""
        with_splits = {name.partition("/")[0] for name in self._rows if not name.endswith("/")}
        return tuple(name for name in self._rows if not name.endswith("/") or name[:-1] not in with_splits)

    def profiles(self, board: str) -> tuple[str, ...]:
        """The profiles that a board has numbers of."""
        found = {profile for name in _names(board) for profile in self._rows.get(name, {})}
        return tuple(sorted(found, key=lambda name: (PROFILES.index(name) if name in PROFILES else 9, name)))

    def is_whole(self, board: str, profile: str) -> bool:
        """Whether what a board has under a profile is of its benchmark as a whole, and of no split."""
        return profile not in self._rows.get(board, {}) and profile in self.profiles(board)

    def place(self, board: str, profile: str) -> Place:
        """One board under one profile."""
        with self._lock:
            if (board, profile) not in self._places:
                parts = [rows for name in _names(board) for rows in self._rows.get(name, {}).get(profile, [])]
                rows = np.sort(np.concatenate(parts)) if parts else self._numbers.all()[:0]
                self._places[board, profile] = Place(self._numbers, rows, board.partition("/")[0])
            return self._places[board, profile]


_KEPT: dict[int, tuple[weakref.ref[pd.DataFrame], Index]] = {}


def called(rows: Iterable[Row]) -> dict[str, str]:
    """What each system is called on the board: its title, with its id where two share one, and its kind's mark."""
    systems = {str(row["system"]): row for row in rows}
    shared = Counter(row["system_title"] for row in systems.values())
    return {
        system: (f"{row['system_title']} [{system}]" if shared[row["system_title"]] > 1 else str(row["system_title"]))
        + KIND_MARKS.get(row["system_kind"], "")
        for system, row in systems.items()
    }


def _names(board: str) -> tuple[str, ...]:
    whole = f"{board.partition('/')[0]}/"
    return (board,) if board == whole else (board, whole)


def _slice_order(benchmark: str) -> Callable[[str], tuple[Any, ...]]:
    try:
        declared = benchmarks.get(benchmark).breakdowns
    except BadInput:
        declared = ()
    places = {part.name: (number, list(part.groups)) for number, part in enumerate(declared)}

    def place(name: str) -> tuple[Any, ...]:
        breakdown, _, group = name.partition("=")
        number, groups = places.get(breakdown, (len(places), []))
        return (bool(name), number, breakdown, groups.index(group) if group in groups else len(groups), group)

    return place
