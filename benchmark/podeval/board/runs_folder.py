"""Read the tables of a folder of runs for the board, and arrange the numbers for lookup; all readers share the arranged
numbers.

Everything is read once for each version of the tables. Text columns of the board's table are stored as categories,
because they have few distinct values. An `Index` has a `ProfileBoard` for each split of a benchmark under each profile.
A `Sheet` contains the numbers of a board under one protocol for each metric, for all items or one slice of them: the
content of one table. Boards, sheets and a sheet's columns are created on first use and cached. None of these objects
changes after its creation, so threads can share them.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from cachetools import LRUCache
from pydantic import BaseModel

from podeval.benchmarks import order_slices
from podeval.board.columns import (
    Cell,
    Column,
    build_cell,
    get_column,
    order_columns,
    to_number,
)
from podeval.board.protocol_offers import Offers, choose, list_offers
from podeval.board.system_info import Facts, collect_by_system
from podeval.errors import BadInput
from podeval.models.profiles import MEASURING, PAPER
from podeval.models.profiles import PROFILES as NAMED_PROFILES
from podeval.runs.board_tables import (
    BOARD,
    ITEMS,
    KIND_MARKS,
    PROVENANCES,
    STRATEGIES,
    SYSTEMS,
    BoardRow,
    ItemRow,
    Stamp,
    SystemRow,
    group_rows,
    list_rows,
    read_object,
    read_table,
    stamp,
)

Row = dict[str, Any]
Made = TypeVar("Made")
Key = tuple[str, str]
"""A system and the provenance of its numbers: one row of a table."""

NUMBERS = (
    *("value", "low", "high", "rank_best", "rank_worst", "scored", "unscored_system", "unscored_ours"),
    *("values", "clusters"),
)
"""Columns of numbers; a missing number is NaN."""
TEXTS = tuple(name for name in BoardRow.model_fields if name not in (*NUMBERS, "rankable"))
CELL = (
    *("system", "system_kind", "provenance", "metric", "key", "value", "low", "high", "rank_best", "rank_worst"),
    *("rankable", "scored", "unscored_system", "unscored_ours", "reasons", "protocol_json", "created", "spot_check"),
    *("values", "clusters", "source"),
)
"""Columns that a table needs."""
PROFILES = (*reversed(MEASURING), *(name for name in NAMED_PROFILES if name not in MEASURING))
"""Profiles in the order of the board: the papers' models, ours, and the figures that papers print."""
BOARD_VALUES, SHEETS, RECENT, CORRECTED = 400, 24, 24, 4
"""Cache sizes for values derived from a board, sheets of a board, listings of a sheet, and corrected versions of a
sheet."""


def arrange_numbers(board: pd.DataFrame) -> pd.DataFrame:
    """Return a board's table, possibly written by an earlier version, with all columns of `BoardRow` and text as
    categories.
    """
    columns = {name: board.get(name, "") for name in TEXTS}
    texts = {name: pd.Series(column, board.index).astype("category") for name, column in columns.items()}
    numbers = {name: board[name].astype("float64") if name in board else np.nan for name in NUMBERS}
    return board.assign(**texts, **numbers)[list(BoardRow.model_fields)].reset_index(drop=True)


def choose_protocols(board: pd.DataFrame, wishes: Sequence[str] = ()) -> dict[str, str]:
    """Choose one protocol for each metric from the protocols of some rows, with `protocol_offers.choose`."""
    return choose(list_offers(arrange_numbers(board)), wishes)


class MadeOnce:
    """A cache of values derived from read-only numbers; a bounded cache keeps only the most recently used values.

    Args:
        most: maximum number of cached values.
    """

    def __init__(self, most: int = sys.maxsize) -> None:
        self._values: LRUCache[Hashable, Any] = LRUCache(most)
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the value of a key; compute it if it is not cached."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            value: Made = self._values[key]
            return value


class Sheet:
    """The numbers that one table can show: one profile, one slice, one protocol for each metric.

    Attributes:
        kept: cache of derived values with the same lifetime as the numbers.
        recent: bounded cache for derived values that may be numerous.
        corrected: sheets with ranks corrected over several columns together; these sheets take long to compute.
    """

    def __init__(self, numbers: pd.DataFrame) -> None:
        self._numbers = numbers
        self._by_column = {f"{metric}.{key}": group for (metric, key), group in group_rows(numbers, "metric", "key")}
        self.kept, self.recent, self.corrected = MadeOnce(), MadeOnce(RECENT), MadeOnce(CORRECTED)

    @property
    def keys(self) -> list[Key]:
        """The rows in the order of the source table; reported rows are in the order of the paper."""
        pairs = self._numbers[["system", "provenance"]].drop_duplicates().itertuples(index=False, name=None)
        return [(str(system), str(provenance)) for system, provenance in pairs]

    def rows(self, column_id: str) -> Mapping[Key, Row]:
        """Return the rows of one column, by system and provenance."""

        def read() -> Mapping[Key, Row]:
            rows = list_rows(self._by_column[column_id], CELL) if column_id in self._by_column else []
            return {(row["system"], row["provenance"]): row for row in rows}

        return self.kept.get(("rows", column_id), read)

    def cells(self, column_id: str) -> Mapping[Key, tuple[Row, Cell]]:
        """Return the rows of one column with their cells, by system and provenance."""

        def write() -> Mapping[Key, tuple[Row, Cell]]:
            rows = self.rows(column_id)
            metric, _, key = column_id.partition(".")
            places = get_column(metric, key, "").choose_decimals(to_number(row["value"]) for row in rows.values())
            return {key: (row, build_cell(row, places)) for key, row in rows.items()}

        return self.kept.get(("cells", column_id), write)

    def frame(self, keep: Callable[[Key], bool]) -> pd.DataFrame:
        """Return all rows of the systems to keep, with the columns of `BoardRow`."""
        keys = list(zip(self._numbers["system"], self._numbers["provenance"], strict=True))
        kept = {key: keep(key) for key in set(keys)}
        return self._numbers[[kept[key] for key in keys]].astype(dict.fromkeys(TEXTS, "str"))


class ProfileBoard:
    """One split of a benchmark under one profile."""

    def __init__(self, numbers: pd.DataFrame, benchmark: str) -> None:
        self._numbers, self._benchmark = numbers, benchmark
        self._kept, self._sheets = MadeOnce(BOARD_VALUES), MadeOnce(SHEETS)
        self.offers: Offers = list_offers(numbers)

    @cached_property
    def slices(self) -> tuple[str, ...]:
        """Names of the slices: all items ("") first, then in the order of the benchmark's breakdowns."""
        return tuple(sorted(self._numbers["slice"].unique(), key=order_slices(self._benchmark)))

    @cached_property
    def provenances(self) -> tuple[str, ...]:
        """The provenances of the board's numbers, in board order."""
        return tuple(sorted(self._numbers["provenance"].unique(), key=PROVENANCES.index))

    @cached_property
    def systems(self) -> Mapping[str, Row]:
        """One row for each system, with its title and kind."""
        rows = self._numbers.drop_duplicates("system", keep="last")
        return {row["system"]: row for row in list_rows(rows, list(rows.columns))}

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Display name of each system."""
        return choose_names(self._numbers)

    @cached_property
    def spoken(self) -> Mapping[Key, str]:
        """How each row's outputs were generated (`whole`, `turns`, `chunks`), if the row's protocols state it."""
        pairs = self._numbers[["system", "provenance", "protocol_json"]].drop_duplicates().itertuples(index=False)
        stated = {(str(system), str(provenance)): read_object(text) for system, provenance, text in pairs}
        ways = {key: content.get("generation", {}).get("strategy", "") for key, content in stated.items()}
        return {key: way for key, way in ways.items() if way in STRATEGIES}

    def columns(self, protocols: Mapping[str, str]) -> list[Column]:
        """Return every column under these protocols, in board order."""

        def make() -> list[Column]:
            ids = self._under(protocols)[["metric", "key", "dimension"]].drop_duplicates()
            return order_columns(get_column(*of_one) for of_one in ids.itertuples(index=False, name=None))

        return self._kept.get(("columns", *protocols.items()), make)

    def sheet(self, protocols: Mapping[str, str], slice_: str) -> Sheet:
        """Return the numbers for one slice under these protocols."""

        def make() -> Sheet:
            numbers = self._under(protocols)
            return Sheet(numbers[numbers["slice"] == slice_])

        return self._sheets.get((slice_, *protocols.items()), make)

    def _under(self, protocols: Mapping[str, str]) -> pd.DataFrame:
        """Return the rows under the protocol chosen for each metric; a paper's setting may cover several metrics."""

        def make() -> pd.DataFrame:
            chosen = self._numbers["metric"].map(protocols).astype("object")
            return self._numbers[self._numbers["protocol"].astype("object") == chosen]

        return self._kept.get(("rows", *protocols.items()), make)


class Index:
    """All boards under all profiles, and the stated facts of the systems on them.

    Args:
        numbers: the board's table, from `arrange_numbers`.
        facts: the facts by system.
        runs: the folder of the measured runs; None if only the numbers are available.
    """

    def __init__(
        self, numbers: pd.DataFrame, facts: Mapping[str, Facts] | None = None, runs: Path | None = None
    ) -> None:
        self._numbers, self.runs = numbers, runs
        self.facts: Mapping[str, Facts] = facts or {}
        self._boards = MadeOnce()
        self._rows: dict[str, dict[str, pd.DataFrame]] = {}
        for (benchmark, split, profile), rows in group_rows(numbers, "benchmark", "split", "profile"):
            self._rows.setdefault(f"{benchmark}/{split}", {})[profile] = rows

    @classmethod
    def of(cls, board: pd.DataFrame, systems: pd.DataFrame | None = None, runs: Path | None = None) -> Index:
        """Build the index from a table of `BoardRow`, and from a table of `SystemRow` if given."""
        return cls(arrange_numbers(board), collect_by_system(systems) if systems is not None else None, runs)

    @property
    def empty(self) -> bool:
        """Whether nothing has been measured."""
        return self._numbers.empty

    @cached_property
    def boards(self) -> tuple[str, ...]:
        """The names `benchmark/split` of all splits; figures for a whole benchmark are on the boards of its splits."""
        with_splits = {name.partition("/")[0] for name in self._rows if not name.endswith("/")}
        return tuple(name for name in self._rows if not name.endswith("/") or name[:-1] not in with_splits)

    @cached_property
    def measured(self) -> Mapping[str, int]:
        """Number of measured systems on each board, excluding papers' systems and controls."""
        ours = self._numbers[self._numbers["profile"] != PAPER]
        ours = ours[ours["system_kind"].isin(["system", "human"])]
        places = group_rows(ours, "benchmark", "split")
        counts = {f"{benchmark}/{split}": rows["system"].nunique() for (benchmark, split), rows in places}
        return dict.fromkeys(self._rows, 0) | counts

    @cached_property
    def known(self) -> Mapping[str, int]:
        """Number of systems on each board, measured or reported, that produce speech and have an owner.

        Controls, people, our own baselines and script writers are not counted.
        """
        has_sound = ~self._numbers["dimension"].str.startswith(("script.", "write."))
        rows = self._numbers[self._numbers["system_kind"].isin(["system", "reported"]) & has_sound]
        ours = {system for system, facts in self.facts.items() if facts.is_ours}
        systems = {
            "/".join(names): set(part["system"]) - ours for names, part in group_rows(rows, "benchmark", "split")
        }
        nobody = set[str]()
        return {board: len(nobody.union(*(systems.get(name, ()) for name in _names(board)))) for board in self.boards}

    def profiles(self, board: str) -> tuple[str, ...]:
        """Return the profiles for which a board has numbers."""
        profiles = {profile for name in _names(board) for profile in self._rows.get(name, {})}
        return tuple(sorted(profiles, key=lambda name: (PROFILES.index(name) if name in PROFILES else 9, name)))

    def is_whole(self, board: str, profile: str) -> bool:
        """Return whether a board's numbers under a profile are for the whole benchmark rather than a split."""
        return profile not in self._rows.get(board, {}) and profile in self.profiles(board)

    def board(self, name: str, profile: str) -> ProfileBoard:
        """Return one board under one profile."""

        def make() -> ProfileBoard:
            parts = [self._rows[part][profile] for part in _names(name) if profile in self._rows.get(part, {})]
            numbers = pd.concat(parts).sort_index() if parts else self._numbers.head(0)
            return ProfileBoard(numbers, name.partition("/")[0])

        return self._boards.get((name, profile), make)


def choose_names(rows: pd.DataFrame) -> dict[str, str]:
    """Return the systems' display names: the title, with the id if two systems share the title, and a mark for the
    kind.
    """
    latest = rows.drop_duplicates("system", keep="last")[["system", "system_title", "system_kind"]].astype(str)
    shared = Counter(latest["system_title"])
    return {
        system: (f"{title} [{system}]" if shared[title] > 1 else title) + KIND_MARKS.get(kind, "")
        for system, title, kind in latest.itertuples(index=False, name=None)
    }


def _names(board: str) -> tuple[str, ...]:
    """Return a board's name, and the name under which figures on its whole benchmark are stored."""
    whole = f"{board.partition('/')[0]}/"
    return (board,) if board == whole else (board, whole)


class RunsFolder:
    """The tables in a folder, made from the runs in it or in `runs`, and values derived from them; thread-safe."""

    def __init__(self, path: Path, runs: Path | None = None) -> None:
        self.path, self.runs = path.resolve(), runs or path
        self._lock = threading.Lock()
        self._made: dict[str, tuple[tuple[Stamp | None, ...], MadeOnce]] = {}

    def remember(
        self, kind: str, tables: Sequence[str], key: Hashable, make: Callable[[], Made], most: int = 1
    ) -> Made:
        """Return a value derived from some tables, cached until one of them changes.

        Args:
            kind: the kind of the value; the number of cached values is limited for each kind.
            tables: names of the tables.
            key: the name of the value within its kind.
            make: function that computes the value if it is not cached.
            most: maximum number of cached values of the kind.
        """
        stamps = tuple(stamp(self.path / name) for name in tables)
        with self._lock:
            if kind not in self._made or self._made[kind][0] != stamps:
                self._made[kind] = (stamps, MadeOnce(most))
            made = self._made[kind][1]
        return made.get(key, make)

    def board(self) -> pd.DataFrame:
        """Return the table of `BoardRow`; empty if nothing has been run."""
        return self._table(BOARD, BoardRow)

    def items(self) -> pd.DataFrame:
        """Return the table of `ItemRow`; empty if nothing has been run."""
        return self._table(ITEMS, ItemRow)

    def systems(self) -> pd.DataFrame:
        """Return the table of `SystemRow`, the facts about systems from their documents; empty if there are none."""
        return self._table(SYSTEMS, SystemRow)

    def index(self) -> Index:
        """Return the board and the stated facts of its systems, arranged for readers; cached until a table changes.

        Raises:
            BadInput: a table cannot be read.
        """
        return self.remember("index", (BOARD, SYSTEMS), "", self._read_index)

    def _read_index(self) -> Index:
        path = self.path / BOARD
        try:
            # Texts keep their stored form, in which each distinct value occurs only once.
            board = pd.read_parquet(path, read_dictionary=list(TEXTS)) if path.exists() else self.board()
            return Index.of(board, self.systems(), self.path)
        except (OSError, ValueError, KeyError) as error:
            sentence = f"the tables of the board cannot be read ({error}); `podeval report show` rebuilds them"
            raise BadInput(sentence) from error

    def read_items(self, columns: list[str], filters: Mapping[str, str], more: tuple[str, str, Any]) -> Any:
        """Read some columns of the items that pass the filters, as an Arrow table; `more` is an additional filter."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not (self.path / ITEMS).exists():
            return pa.table({name: [] for name in columns})
        passing = [*((name, "=", text) for name, text in filters.items()), more]
        return pq.read_table(self.path / ITEMS, columns=columns, filters=passing)

    def _table(self, name: str, row: type[BaseModel]) -> pd.DataFrame:
        path = self.path / name

        def read() -> pd.DataFrame:
            return read_table(path) if path.exists() else pd.DataFrame(columns=list(row.model_fields))

        return self.remember(name, [name], "", read)
