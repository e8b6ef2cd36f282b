"""Compare two systems: their values, the paired difference over common items, and every item that they share.

Only numbers from one place (benchmark, split, profile) and one protocol are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from podeval.board.columns import Choice, Column, Row, choose_headlines, get_column, order_columns, to_number
from podeval.board.item_results import BoardScores, Reading, read_scores, select_rows
from podeval.board.report_figures import (
    Paired,
    ReferenceFigure,
    count_rows_by_place,
    pair_systems,
    set_against,
)
from podeval.board.runs_folder import RunsFolder, choose_names, choose_protocols
from podeval.board.words import write_board_name
from podeval.errors import BadInput
from podeval.texts import write_sentence


class UnknownSystem(BadInput):
    """The system does not exist, or there is no place where both systems were measured."""


@dataclass(frozen=True)
class ComparedSystem:
    """One of the two compared systems."""

    system: str
    title: str
    kind: str


@dataclass(frozen=True)
class Pair:
    """One key of one metric for both systems.

    Attributes:
        column: column of the key.
        protocol: the protocol under which both were measured.
        a, b: the rows of the board; None for a system without a row.
        beside: both systems over common items, with the paired difference; None if they share no scored item.
    """

    column: Column
    protocol: str
    a: Row | None
    b: Row | None
    beside: Paired | None

    @property
    def values(self) -> tuple[float | None, float | None]:
        """The means of both systems, each over the items on which that system was scored."""
        a, b = (to_number(row["value"]) if row else None for row in (self.a, self.b))
        return a, b

    @property
    def to_b(self) -> ReferenceFigure:
        """The comparison of a with b."""
        return self.beside.to_b if self.beside else set_against(*self.values, self.column, None, None)


@dataclass(frozen=True)
class Shared:
    """One item with both systems' readings by column; a `Reading` without a value contains the reason."""

    id: str
    title: str
    category: str
    outputs: tuple[str, str]
    readings: Mapping[str, tuple[Reading | None, Reading | None]]

    def values(self, of: Column) -> tuple[float | None, float | None]:
        """Return both values of one column."""
        a, b = (
            reading.values.get(of.key) if reading else None for reading in self.readings.get(of.metric, (None, None))
        )
        return a, b

    def difference(self, of: Column) -> float | None:
        """Return the value of a minus that of b; None if either value is missing."""
        a, b = self.values(of)
        return None if a is None or b is None else a - b


@dataclass(frozen=True)
class SystemComparison:
    """The comparison of two systems at one place.

    Attributes:
        a, b: the two systems.
        where: `benchmark/split/profile`.
        places: places where both systems have numbers, as choices for the reader.
        pairs: pairs in the order of the board.
        items: every item on which at least one of the two systems was measured, sorted by title.
    """

    a: ComparedSystem
    b: ComparedSystem
    where: str
    places: tuple[Choice, ...]
    pairs: tuple[Pair, ...]
    items: tuple[Shared, ...]

    @property
    def headlines(self) -> tuple[Column, ...]:
        """Return one column for each dimension, chosen from the columns with per-item values for both systems."""
        return tuple(choose_headlines([pair.column for pair in self.pairs if pair.beside is not None]))

    def item(self, id: str) -> Shared | None:
        """Return the item with that id; None if it does not exist."""
        return next((item for item in self.items if item.id == id), None)


def list_sides(board: pd.DataFrame) -> list[ComparedSystem]:
    """Return every system of a board, sorted by name, with controls and papers' systems last."""
    last = {"reported": 2, "control": 1}
    kinds = board.drop_duplicates("system").set_index("system")["system_kind"]
    systems = [ComparedSystem(system, title, str(kinds[system])) for system, title in choose_names(board).items()]
    return sorted(systems, key=lambda side: (last.get(side.kind, 0), side.title.casefold(), side.system))


def list_shared_places(board: pd.DataFrame, a: str, b: str) -> tuple[Choice, ...]:
    """Return the places where both systems have numbers, each as a label and `benchmark/split/profile`, starting with
    the place that has the most numbers.
    """
    whole = board[board["slice"] == ""]
    of_a, of_b = (count_rows_by_place(whole[whole["system"] == system]) for system in (a, b))
    shared = sorted(
        of_a.keys() & of_b.keys(), key=lambda where: (where[2] == "paper", -min(of_a[where], of_b[where]), where)
    )
    return tuple((write_board_name("/".join(where)), "/".join(where)) for where in shared)


def compare(folder: RunsFolder, a: str, b: str, benchmark: str = "") -> SystemComparison:
    """Compare two systems at one place.

    Args:
        folder: the folder of runs.
        a: id of one system.
        b: id of the other system.
        benchmark: `benchmark`, `benchmark/split` or `benchmark/split/profile`; the first benchmark, split and profile
            with both systems whose name begins with it is used. If empty, the first of all is used.

    Raises:
        UnknownSystem: a system does not exist, or the two systems were not both measured at that place.
    """
    board = folder.board()
    by_id = {side.system: side for side in list_sides(board)}
    for system in (a, b):
        if system not in by_id:
            raise UnknownSystem(write_sentence("no-such-system"))
    if a == b:
        raise UnknownSystem(write_sentence("not-with-itself"))
    shared = list_shared_places(board, a, b)
    where = _where(shared, benchmark)
    here = select_rows(board, where)
    here = here[here["system"].isin([a, b])]
    protocols = _protocols(here, a)
    here = here[(here["slice"] == "") & (here["protocol"] == here["metric"].map(protocols))]
    of_a, of_b = read_scores(folder, a, where), read_scores(folder, b, where)
    return SystemComparison(
        a=by_id[a],
        b=by_id[b],
        where=where,
        places=shared,
        pairs=tuple(_pairs(here, a, b, protocols, of_a, of_b)),
        items=tuple(_items(of_a, of_b, protocols)),
    )


def _where(shared: tuple[Choice, ...], benchmark: str) -> str:
    wished = benchmark.rstrip("/")
    for _, where in shared:
        if not wished or where == benchmark or where.startswith(f"{wished}/"):
            return where
    raise UnknownSystem(write_sentence("never-measured-together"))


def _protocols(rows: pd.DataFrame, a: str) -> dict[str, str]:
    """Choose one protocol for each metric, preferably one under which both systems were measured."""
    mine = {(str(m), str(p)) for m, p in rows[rows["system"] == a][["metric", "protocol"]].to_numpy()}
    theirs = {(str(m), str(p)) for m, p in rows[rows["system"] != a][["metric", "protocol"]].to_numpy()}
    both = mine & theirs
    keys = list(zip(rows["metric"].astype(str), rows["protocol"].astype(str), strict=True))
    shared = {metric for metric, _ in both}
    return choose_protocols(rows[[key in both or key[0] not in shared for key in keys]])


def _pairs(
    rows: pd.DataFrame, a: str, b: str, protocols: Mapping[str, str], of_a: BoardScores, of_b: BoardScores
) -> list[Pair]:
    by_column: dict[Column, dict[str, Row]] = {}
    for row in rows.to_dict("records"):
        of = get_column(str(row["metric"]), str(row["key"]), str(row["dimension"]))
        by_column.setdefault(of, {})[str(row["system"])] = row
    return [
        Pair(
            column=of,
            protocol=protocols[of.metric],
            a=by_column[of].get(a),
            b=by_column[of].get(b),
            beside=pair_systems(of_a, of_b, of, protocols[of.metric]),
        )
        for of in order_columns(by_column)
    ]


def _items(of_a: BoardScores, of_b: BoardScores, protocols: Mapping[str, str]) -> list[Shared]:
    items = {**of_b.items, **of_a.items}
    shared = []
    for id, item in items.items():
        readings = {}
        for metric, protocol in protocols.items():
            both = tuple(scores.results.get((metric, protocol), {}).get(id) for scores in (of_a, of_b))
            if any(reading is not None for reading in both):
                readings[metric] = (both[0], both[1])
        outputs = tuple(scores.items[id].output if id in scores.items else "" for scores in (of_a, of_b))
        shared.append(Shared(id, item.title, item.category, (outputs[0], outputs[1]), readings))
    return sorted(shared, key=lambda item: (item.title.casefold(), item.id))
