"""The board's table by column, for looking up many times: texts as codes into their few values, numbers as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from podeval.runs.board_tables import BoardRow

Row = dict[str, Any]
Indices = NDArray[np.int64]
NUMBERS = (
    *("value", "low", "high", "rank_best", "rank_worst", "scored", "unscored_system", "unscored_ours"),
    *("values", "clusters"),
)
"""Columns of numbers; NaN where there is none."""
TEXTS = tuple(name for name in BoardRow.model_fields if name not in (*NUMBERS, "rankable"))


class Numbers:
    """Rows of `BoardRow`, which nothing changes after they were read."""

    def __init__(self, table: Any) -> None:
        import pyarrow as pa

        self._values: dict[str, NDArray[Any]] = {}
        self._codes: dict[str, NDArray[np.int64]] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self.size: int = table.num_rows
        there = set(table.column_names)
        for name in TEXTS:
            # A table of an earlier version may lack a column.
            column = table.column(name) if name in there else pa.chunked_array([pa.array([""] * self.size)])
            if not pa.types.is_dictionary(column.type):
                column = column.cast(pa.string()).dictionary_encode()
            column = column.unify_dictionaries()
            chunks = column.chunks
            values = chunks[0].dictionary.to_pylist() if chunks else []
            self._values[name] = np.array([*values, None], dtype=object)[:-1]
            codes = [np.asarray(chunk.indices.to_numpy(zero_copy_only=False), dtype=np.int64) for chunk in chunks]
            self._codes[name] = np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)
        for name in NUMBERS:
            if name in there:
                column = table.column(name).cast(pa.float64())
                self._arrays[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
            else:
                self._arrays[name] = np.full(self.size, np.nan)
        self._arrays["rankable"] = np.asarray(table.column("rankable").to_numpy(zero_copy_only=False), dtype=bool)

    @classmethod
    def read(cls, path: Path) -> Numbers:
        """The table of a Parquet file; texts stay as they are stored, each value once."""
        import pyarrow.parquet as pq

        return cls(pq.read_table(path, read_dictionary=list(TEXTS)))

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Numbers:
        """The table of a frame."""
        import pyarrow as pa

        known = [name for name in BoardRow.model_fields if name in frame.columns]
        return cls(pa.Table.from_pandas(frame[known], preserve_index=False))

    def all(self) -> Indices:
        """The places of all rows."""
        return np.arange(self.size, dtype=np.int64)

    def where(self, rows: Indices, name: str, *wanted: str) -> Indices:
        """Those of some rows whose text is one of the wanted."""
        codes = np.flatnonzero(np.isin(self._values[name], np.array(wanted, dtype=object)))
        own = self._codes[name][rows]
        kept: Indices = rows[own == codes[0]] if len(codes) == 1 else rows[np.isin(own, codes)]
        return kept

    def codes(self, rows: Indices, name: str) -> NDArray[np.int64]:
        """The code of a text of each row; equal texts have equal codes."""
        return self._codes[name][rows]

    def text(self, name: str, code: int) -> str:
        """The text of a code."""
        return str(self._values[name][code])

    def texts(self, rows: Indices, name: str) -> list[str]:
        """The different texts of some rows, in the order in which they first come."""
        codes, first = np.unique(self._codes[name][rows], return_index=True)
        return [str(self._values[name][code]) for code in codes[np.argsort(first)]]

    def column(self, rows: Indices, name: str) -> NDArray[Any]:
        """One column of some rows: floats, booleans or texts."""
        if name in self._arrays:
            return self._arrays[name][rows]
        found: NDArray[Any] = self._values[name][self._codes[name][rows]]
        return found

    def groups(self, rows: Indices, names: Sequence[str]) -> dict[tuple[str, ...], Indices]:
        """Rows by the texts of some columns; groups in the order of their first rows, rows in their own."""
        if not len(rows):
            return {}
        keys = np.zeros(len(rows), dtype=np.int64)
        for name in names:
            keys = keys * max(1, len(self._values[name])) + self._codes[name][rows]
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        parts = sorted(np.split(rows[order], starts[1:]), key=lambda part: int(part[0]))
        return {tuple(self.text(name, self._codes[name][part[0]]) for name in names): part for part in parts}

    def rows(self, rows: Indices, names: Sequence[str] = (*TEXTS, *NUMBERS, "rankable")) -> list[Row]:
        """Some rows, or some fields of them, as the mappings that `podeval.leaderboard.table` reads."""
        columns = [self.column(rows, name).tolist() for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def frame(self, rows: Indices) -> pd.DataFrame:
        """Some rows as a frame, columns in their published order."""
        columns = {name: self.column(rows, name) for name in BoardRow.model_fields}
        return pd.DataFrame(columns, columns=list(BoardRow.model_fields)).astype(dict.fromkeys(TEXTS, "str"))
