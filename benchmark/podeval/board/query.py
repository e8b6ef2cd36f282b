"""Arrange the board's numbers for lookups, once for each version of the tables and shared by all readers.

`Numbers` holds the table by column, texts as codes into their few values. An `Index` has a `ProfileBoard` for each
benchmark's split under each profile. A `Sheet` is a board under one protocol for each metric, for all items or one
slice of them: the content of one table. Boards and sheets are made on first use and kept; a sheet makes its columns
likewise. Nothing here is changed after it was made, so threads share it.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from podeval import benchmarks
from podeval.board.columns import Column, Offers, choose, get_column, order_columns, rank_offers
from podeval.board.system_info import Facts, collect_by_system
from podeval.errors import BadInput
from podeval.runs.board_tables import BoardRow

Row = dict[str, Any]
Indices = NDArray[np.int64]
Made = TypeVar("Made")
Key = tuple[str, str]
"""A system and the provenance of its numbers: one row of a table."""

NUMBERS = (
    *("value", "low", "high", "rank_best", "rank_worst", "scored", "unscored_system", "unscored_ours"),
    *("values", "clusters"),
)
"""Columns of numbers; NaN where there is none."""
TEXTS = tuple(name for name in BoardRow.model_fields if name not in (*NUMBERS, "rankable"))
CELL = (
    *("system", "system_kind", "provenance", "metric", "key", "value", "low", "high", "rank_best", "rank_worst"),
    *("rankable", "scored", "unscored_system", "unscored_ours", "reasons", "protocol_json", "created", "spot_check"),
    *("values", "clusters"),
)
"""Columns that a table needs."""

PROFILES = ("reference", "embedded", "paper")
PROVENANCES = ("run by us", "outputs supplied", "reported")
KIND_MARKS = {"control": " (control)", "human": " (human)"}
BOARD_VALUES, SHEETS, RECENT = 400, 24, 24
"""Cache sizes: values derived from a board, sheets of a board, and listings of a sheet."""


class Numbers:
    """The rows of `BoardRow`, read-only."""

    def __init__(self, table: Any) -> None:
        import pyarrow as pa

        self._values: dict[str, NDArray[Any]] = {}
        self._codes: dict[str, NDArray[np.int64]] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self.size: int = table.num_rows
        stored = set(table.column_names)
        for name in TEXTS:
            # A table of an earlier version may lack a column.
            column = table.column(name) if name in stored else pa.chunked_array([pa.array([""] * self.size)])
            if not pa.types.is_dictionary(column.type):
                column = column.cast(pa.string()).dictionary_encode()
            column = column.unify_dictionaries()
            chunks = column.chunks
            values = chunks[0].dictionary.to_pylist() if chunks else []
            self._values[name] = np.array([*values, None], dtype=object)[:-1]
            codes = [np.asarray(chunk.indices.to_numpy(zero_copy_only=False), dtype=np.int64) for chunk in chunks]
            self._codes[name] = np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)
        for name in NUMBERS:
            if name in stored:
                column = table.column(name).cast(pa.float64())
                self._arrays[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
            else:
                self._arrays[name] = np.full(self.size, np.nan)
        self._arrays["rankable"] = np.asarray(table.column("rankable").to_numpy(zero_copy_only=False), dtype=bool)

    @classmethod
    def read(cls, path: Path) -> Numbers:
        """Read a Parquet file; texts stay in their stored form, each value once."""
        import pyarrow.parquet as pq

        return cls(pq.read_table(path, read_dictionary=list(TEXTS)))

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Numbers:
        """Make the numbers from the rows of a frame."""
        import pyarrow as pa

        names = [name for name in BoardRow.model_fields if name in frame.columns]
        return cls(pa.Table.from_pandas(frame[names], preserve_index=False))

    def all(self) -> Indices:
        """Return the positions of all rows."""
        return np.arange(self.size, dtype=np.int64)

    def where(self, rows: Indices, name: str, *texts: str) -> Indices:
        """Return the positions of those rows whose text in a column is one of these."""
        codes = np.flatnonzero(np.isin(self._values[name], np.array(texts, dtype=object)))
        row_codes = self._codes[name][rows]
        kept: Indices = rows[row_codes == codes[0]] if len(codes) == 1 else rows[np.isin(row_codes, codes)]
        return kept

    def texts(self, rows: Indices, name: str) -> list[str]:
        """Return the distinct texts of some rows, in order of first appearance."""
        codes, first = np.unique(self._codes[name][rows], return_index=True)
        return [str(self._values[name][code]) for code in codes[np.argsort(first)]]

    def column(self, rows: Indices, name: str) -> NDArray[Any]:
        """Return one column of some rows: floats, booleans or texts."""
        if name in self._arrays:
            return self._arrays[name][rows]
        texts: NDArray[Any] = self._values[name][self._codes[name][rows]]
        return texts

    def groups(self, rows: Indices, names: Sequence[str]) -> dict[tuple[str, ...], Indices]:
        """Group rows by the texts of some columns; groups in the order of their first rows, rows in their own."""
        if not len(rows):
            return {}
        keys = np.zeros(len(rows), dtype=np.int64)
        for name in names:
            keys = keys * max(1, len(self._values[name])) + self._codes[name][rows]
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        parts = sorted(np.split(rows[order], starts[1:]), key=lambda part: int(part[0]))
        return {tuple(str(self._values[name][self._codes[name][part[0]]]) for name in names): part for part in parts}

    def rows(self, rows: Indices, names: Sequence[str] = (*TEXTS, *NUMBERS, "rankable")) -> list[Row]:
        """Return some rows, or some fields of them, as the mappings that `podeval.board.table` reads."""
        columns = [self.column(rows, name).tolist() for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def frame(self, rows: Indices) -> pd.DataFrame:
        """Return some rows as a frame, columns in their published order."""
        columns = {name: self.column(rows, name) for name in BoardRow.model_fields}
        return pd.DataFrame(columns, columns=list(BoardRow.model_fields)).astype(dict.fromkeys(TEXTS, "str"))


def list_offers(numbers: Numbers, rows: Indices) -> Offers:
    """Return the protocols of some rows, by metric, the default first."""
    return rank_offers(
        (
            metric,
            protocol,
            str(numbers.column(group[:1], "protocol_json")[0]),
            len(numbers.texts(group, "system")),
            max(numbers.texts(group, "created")),
        )
        for (metric, protocol), group in numbers.groups(rows, ("metric", "protocol")).items()
    )


def choose_protocols(board: pd.DataFrame, wishes: Sequence[str]) -> dict[str, str]:
    """Choose one protocol for each metric among those of some rows of the board, as `columns.choose` does."""
    numbers = Numbers.of(board)
    return choose(list_offers(numbers, numbers.all()), wishes)


class MadeOnce:
    """A cache of values derived from read-only numbers; a bound keeps only those used last.

    Args:
        most: number of values that are kept.
    """

    def __init__(self, most: int = sys.maxsize) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the value of a key, made if it is not cached."""
        with self._lock:
            value: Made = self._values[key] if key in self._values else make()
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return value


class Sheet:
    """The numbers that one table can show: one profile, one slice, one protocol for each metric.

    Attributes:
        kept: cache of derived values that stay as long as the numbers do.
        recent: the same for values of which there may be very many.
    """

    def __init__(self, numbers: Numbers, rows: Indices) -> None:
        self._numbers, self._rows = numbers, rows
        self._by_column = {
            f"{metric}.{key}": group for (metric, key), group in numbers.groups(rows, ("metric", "key")).items()
        }
        self.kept, self.recent = MadeOnce(), MadeOnce(RECENT)

    @property
    def columns(self) -> tuple[str, ...]:
        """Ids of the columns that have rows."""
        return tuple(self._by_column)

    def rows(self, column_id: str) -> Mapping[Key, Row]:
        """Return the rows of one column, by system and provenance."""

        def read() -> Mapping[Key, Row]:
            rows = self._numbers.rows(self._by_column[column_id], CELL) if column_id in self._by_column else []
            return {(row["system"], row["provenance"]): row for row in rows}

        return self.kept.get(("rows", column_id), read)

    def frame(self, keep: Callable[[Key], bool]) -> pd.DataFrame:
        """Return all rows of the systems to keep, columns as in `BoardRow`."""
        systems = self._numbers.column(self._rows, "system")
        provenances = self._numbers.column(self._rows, "provenance")
        kept = {key: keep(key) for key in set(zip(systems, provenances, strict=True))}
        chosen = [kept[key] for key in zip(systems, provenances, strict=True)]
        return self._numbers.frame(self._rows[np.array(chosen, dtype=bool)])


class ProfileBoard:
    """One benchmark's split under one profile."""

    def __init__(self, numbers: Numbers, rows: Indices, benchmark: str) -> None:
        self._numbers, self._rows, self._benchmark = numbers, rows, benchmark
        self._kept, self._sheets = MadeOnce(BOARD_VALUES), MadeOnce(SHEETS)
        self.offers: Offers = list_offers(numbers, rows)

    @cached_property
    def slices(self) -> tuple[str, ...]:
        """Names of the slices, all items ("") first, then by the benchmark's breakdowns in their order."""
        return tuple(sorted(self._numbers.texts(self._rows, "slice"), key=_slice_order(self._benchmark)))

    @cached_property
    def provenances(self) -> tuple[str, ...]:
        """The provenances of its numbers, in the order of the board."""
        names = self._numbers.texts(self._rows, "provenance")
        return tuple(name for name in PROVENANCES if name in names)

    @cached_property
    def systems(self) -> Mapping[str, Row]:
        """One row for each system, which gives its title and kind."""
        groups = self._numbers.groups(self._rows, ("system",))
        rows = self._numbers.rows(np.array([group[-1] for group in groups.values()], dtype=np.int64))
        return {row["system"]: row for row in rows}

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Display name of each system."""
        return name_systems(self.systems.values())

    def columns(self, protocols: Mapping[str, str]) -> list[Column]:
        """Return every column under these protocols, in the order of the board."""

        def make() -> list[Column]:
            fields = ("metric", "key", "dimension")
            return order_columns(get_column(*ids) for ids in self._numbers.groups(self._under(protocols), fields))

        return self._kept.get(("columns", *protocols.items()), make)

    def sheet(self, protocols: Mapping[str, str], slice_: str) -> Sheet:
        """Return the numbers of one slice under these protocols."""

        def make() -> Sheet:
            return Sheet(self._numbers, self._numbers.where(self._under(protocols), "slice", slice_))

        return self._sheets.get((slice_, *protocols.items()), make)

    def _under(self, protocols: Mapping[str, str]) -> Indices:
        """Return the rows of the chosen protocol of each metric; a paper's setting may be that of several metrics."""

        def make() -> Indices:
            rows = self._numbers.where(self._rows, "metric", *protocols)
            rows = self._numbers.where(rows, "protocol", *set(protocols.values()))
            groups = self._numbers.groups(rows, ("metric", "protocol"))
            parts = [group for (metric, protocol), group in groups.items() if protocols[metric] == protocol]
            return np.sort(np.concatenate(parts)) if parts else rows[:0]

        return self._kept.get(("rows", *protocols.items()), make)


class Index:
    """All boards under all profiles, and the stated facts of the systems on them."""

    def __init__(self, numbers: Numbers, facts: Mapping[str, Facts] | None = None) -> None:
        self._numbers = numbers
        self.facts: Mapping[str, Facts] = facts or {}
        self._boards = MadeOnce()
        self._rows: dict[str, dict[str, Indices]] = {}
        groups = numbers.groups(numbers.all(), ("benchmark", "split", "profile"))
        for (benchmark, split, profile), rows in groups.items():
            self._rows.setdefault(f"{benchmark}/{split}", {})[profile] = rows

    @classmethod
    def of(cls, board: pd.DataFrame, systems: pd.DataFrame | None = None) -> Index:
        """Make the index of a table of `BoardRow`, and of one of `SystemRow` if given."""
        return cls(Numbers.of(board), collect_by_system(systems) if systems is not None else None)

    @property
    def empty(self) -> bool:
        """Whether nothing has been measured."""
        return self._numbers.size == 0

    @cached_property
    def boards(self) -> tuple[str, ...]:
        """The name `benchmark/split` of every split; figures of a whole benchmark stand on the boards of its splits."""
        with_splits = {name.partition("/")[0] for name in self._rows if not name.endswith("/")}
        return tuple(name for name in self._rows if not name.endswith("/") or name[:-1] not in with_splits)

    @cached_property
    def _measured(self) -> dict[str, int]:
        measured: dict[str, int] = {}
        for name, by_profile in self._rows.items():
            rows = [part for profile, part in by_profile.items() if profile != "paper"]
            every = np.concatenate(rows) if rows else self._numbers.all()[:0]
            competing = self._numbers.where(every, "system_kind", "system", "human")
            measured[name] = len(self._numbers.texts(competing, "system"))
        return measured

    def measured(self, board: str) -> int:
        """Return how many systems were measured on a board: those of papers and controls are none."""
        return self._measured.get(board, 0)

    def profiles(self, board: str) -> tuple[str, ...]:
        """Return the profiles under which a board has numbers."""
        profiles = {profile for name in _names(board) for profile in self._rows.get(name, {})}
        return tuple(sorted(profiles, key=lambda name: (PROFILES.index(name) if name in PROFILES else 9, name)))

    def is_whole(self, board: str, profile: str) -> bool:
        """Tell whether the numbers of a board under a profile are of its benchmark as a whole, and of no split."""
        return profile not in self._rows.get(board, {}) and profile in self.profiles(board)

    def board(self, name: str, profile: str) -> ProfileBoard:
        """Return one board under one profile."""

        def make() -> ProfileBoard:
            parts = [self._rows[part][profile] for part in _names(name) if profile in self._rows.get(part, {})]
            rows = np.sort(np.concatenate(parts)) if parts else self._numbers.all()[:0]
            return ProfileBoard(self._numbers, rows, name.partition("/")[0])

        return self._boards.get((name, profile), make)


def name_systems(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the display names of systems: the title, with the id where two share one, and the mark of the kind."""
    systems = {str(row["system"]): row for row in rows}
    shared = Counter(row["system_title"] for row in systems.values())
    return {
        system: (f"{row['system_title']} [{system}]" if shared[row["system_title"]] > 1 else str(row["system_title"]))
        + KIND_MARKS.get(row["system_kind"], "")
        for system, row in systems.items()
    }


def _names(board: str) -> tuple[str, ...]:
    """Return the board itself and the name for figures of its whole benchmark."""
    whole = f"{board.partition('/')[0]}/"
    return (board,) if board == whole else (board, whole)


def _slice_order(benchmark: str) -> Callable[[str], tuple[Any, ...]]:
    """Return the sort key of slices: the benchmark's breakdowns and groups in its declared order, others by name."""
    try:
        breakdowns = benchmarks.get(benchmark).breakdowns
    except BadInput:
        breakdowns = ()
    declared = {part.name: (number, list(part.groups)) for number, part in enumerate(breakdowns)}

    def order(name: str) -> tuple[Any, ...]:
        breakdown, _, group = name.partition("=")
        number, groups = declared.get(breakdown, (len(declared), []))
        return (bool(name), number, breakdown, groups.index(group) if group in groups else len(groups), group)

    return order
