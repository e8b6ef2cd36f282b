"""Read a folder of runs for the board: its Parquet tables, and the outputs that they point to."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel

from podeval.board.columns import Column
from podeval.board.playable import list_parts
from podeval.board.query import Index, Made, MadeOnce, arrange_numbers, read_numbers
from podeval.board.system_info import collect_by_system
from podeval.board.view import ResolvedView
from podeval.errors import BadInput
from podeval.runs.board_tables import (
    BOARD,
    ITEMS,
    SYSTEMS,
    BoardRow,
    ItemRow,
    SystemRow,
    read_table,
)

Stamp = tuple[int, int]


class RunsFolder:
    """The results of a folder of runs, and what was made of them, cached until a table changes. Safe for threads."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock = threading.Lock()
        self._made: dict[str, tuple[tuple[Stamp | None, ...], MadeOnce]] = {}

    def remember(
        self, kind: str, tables: Sequence[str], key: Hashable, make: Callable[[], Made], most: int = 1
    ) -> Made:
        """Return what is made of some tables, cached until one of them changes.

        Args:
            kind: the kind of what is made, of which so many are kept.
            tables: names of the tables.
            key: the name of this one of its kind.
            make: the function that makes it if it is not cached.
            most: the number that is kept of the kind.
        """
        stamps = tuple(_stamp(self.path / name) for name in tables)
        with self._lock:
            if kind not in self._made or self._made[kind][0] != stamps:
                self._made[kind] = (stamps, MadeOnce(most))
            made = self._made[kind][1]
        return made.get(key, make)

    def board(self) -> pd.DataFrame:
        """Return the table of `BoardRow`; no rows where nothing has been run."""
        return self._table(BOARD, BoardRow)

    def items(self) -> pd.DataFrame:
        """Return the table of `ItemRow`; no rows where nothing has been run."""
        return self._table(ITEMS, ItemRow)

    def systems(self) -> pd.DataFrame:
        """Return the table of `SystemRow`, the facts that documents state of systems; no rows where there are none."""
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
            numbers = read_numbers(path) if path.exists() else arrange_numbers(self.board())
            return Index(numbers, collect_by_system(self.systems()))
        except (OSError, ValueError, KeyError) as error:
            sentence = f"the tables of the board cannot be read ({error}); `podeval report` makes them again"
            raise BadInput(sentence) from error

    def item_values(self, settled: ResolvedView, column: Column, systems: Sequence[str]) -> dict[str, list[float]]:
        """Return the values of single items under a view's protocol, by system, in ascending order.

        Only the necessary rows of the table are read; a slice by category is applied, any other is not known there.
        """
        view = settled.view
        benchmark, _, split = view.board.partition("/")
        filters = {"benchmark": benchmark, "split": split, "profile": view.profile, "metric": column.metric}
        filters["protocol"] = settled.protocols[column.metric]
        if view.slice.startswith("category="):
            filters["category"] = view.slice.removeprefix("category=")

        def read() -> dict[str, list[float]]:
            values: dict[str, list[float]] = {system: [] for system in systems}
            table = self._read_items(["system", "result"], filters, ("system", "in", tuple(systems)))
            for system, result in zip(table["system"].to_pylist(), table["result"].to_pylist(), strict=True):
                value = json.loads(result).get(column.key)
                if isinstance(value, int | float) and math.isfinite(value):
                    values[system].append(float(value))
            return {system: sorted(of_system) for system, of_system in values.items() if of_system}

        key = (*filters.items(), column.key, *systems)
        return self.remember("values of items", [ITEMS], key, read, most=64)

    def samples(self, board: str, profile: str) -> dict[str, str]:
        """Return an item to hear of each system of a board that left a recording of one: where it can be, the same.

        Args:
            board: `benchmark/split`.
            profile: under which they were measured.
        """

        def choose() -> dict[str, str]:
            benchmark, _, split = board.partition("/")
            filters = {"benchmark": benchmark, "split": split, "profile": profile}
            outputs: dict[str, dict[str, str]] = {}
            columns = ["system", "item", "output"]
            table = self._read_items(columns, filters, ("output", "!=", ""))
            for row in table.group_by(columns).aggregate([]).to_pylist():
                outputs.setdefault(row["system"], {})[row["item"]] = row["output"]
            common = Counter(item for of_system in outputs.values() for item in of_system)
            chosen = {
                system: min(of_system, key=lambda item: (-common[item], item)) for system, of_system in outputs.items()
            }
            return {
                system: item for system, item in chosen.items() if list_parts(self.path, outputs[system][item])[0].audio
            }

        return self.remember("samples", [ITEMS], (board, profile), choose, most=64)

    def _read_items(self, columns: list[str], filters: Mapping[str, str], more: tuple[str, str, Any]) -> Any:
        """Read some columns of the items that pass the filters, as a table of Arrow."""
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


def _stamp(path: Path) -> Stamp | None:
    """Return a value that changes when a file does; None where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (status.st_mtime_ns, status.st_size)
