"""The tables that the board reads: `board.parquet`, `items.parquet` and `systems.parquet`, next to the runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel

from podeval.benchmarks.records import FactSheet
from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.metrics.catalogue import Metric

BOARD, ITEMS, SYSTEMS = "board.parquet", "items.parquet", "systems.parquet"

STRATEGIES = ("whole", "turns", "chunks")
"""Ways of generating outputs: in one piece, turn by turn, or in parts that podeval joins."""
PROVENANCES = ("run by us", "outputs supplied", "reported")
KIND_MARKS = {"control": " (control)", "human": " (human)"}

Stamp = tuple[int, int]

NOT_RANKED = "not ranked"
"""Beginning of a reason that explains why a row has no rank, rather than why items have no score."""
ALONE = f"{NOT_RANKED}: there is no other system to compare it with"
# Reasons that are obvious from the column or the kind of row, so tables do not repeat them.
EVIDENT: Mapping[str, str] = {
    "control": f"{NOT_RANKED}: it is a control",
    "direction": f"{NOT_RANKED}: neither more nor less of it is better",
    "values": f"{NOT_RANKED}: no item has a value of its own",
    "printed": f"{NOT_RANKED}: it is easily gamed, and is shown because a paper prints it",
    "reported": f"{NOT_RANKED}: a paper reports it",
    "seeds": f"{NOT_RANKED}: it compares the seeds of one system",
}

Provenance = Literal["run by us", "outputs supplied", "reported"]


def place_on_board(metric: Metric, group: str) -> tuple[str, str]:
    """Return the name and the dimension of a metric's columns: the metric's own, or those of a track's column group.

    In the group `podcast`, `dnsmos` of `speech.quality` becomes `podcast_dnsmos` of `podcast.quality`.
    """
    own_group, _, rest = metric.dimension.partition(".")
    if group in ("", own_group):
        return metric.name, metric.dimension
    return f"{group}_{metric.name}", f"{group}.{rest}"


class BoardRow(FactSheet):
    """One number on the board: one key of one metric for one system, over all items or one slice of them."""

    benchmark: str
    split: str  # "" for a figure for the whole benchmark, as papers report it
    profile: str  # embedded | reference | paper
    system: str
    system_title: str
    system_kind: str  # system | control | human | reported
    provenance: Provenance
    dimension: str  # e.g. "speech.quality"
    metric: str
    key: str
    protocol: str
    slice: str  # "" for all items, else e.g. "category=Arts"
    value: float | None
    low: float | None
    high: float | None
    rank_best: int | None
    rank_worst: int | None
    rankable: bool
    scored: int | None
    unscored_system: int | None
    unscored_ours: int | None
    reasons: str  # JSON object, reason -> count
    protocol_json: str
    source: str  # run folder, or the paper's table
    created: str  # ISO 8601, UTC
    spot_check: str = ""  # for supplied outputs, the result of the spot check: agrees, differs, not told; else empty
    values: int | None = None  # number of items that have a value for this key
    clusters: int | None = None  # number of independent draws for the rank or, without a rank, the interval


class ItemRow(FactSheet):
    """One result on one item, with the facts that a system page shows."""

    benchmark: str
    split: str  # "" for a figure for the whole benchmark, as papers report it
    profile: str
    system: str
    item: str
    category: str
    topic: str
    metric: str
    protocol: str
    result: str  # JSON as Score.to_json or Unscored.to_json
    output: str  # path of the item's output JSON, relative to the runs folder; "" if there is none


class SystemRow(FactSheet):
    """Facts about a system from its submission document; missing facts are empty or None."""

    system: str
    description: str
    organisation: str
    licence: str  # SPDX id, or "proprietary"
    open: bool | None  # whether anyone can download and run it
    size_parameters: float | None
    languages: str  # codes separated by spaces
    links: str  # JSON object, name -> address
    source: str  # kind of source: model, outputs, human, builtin, reported
    revision: str  # owner/name@commit of a Hub repo


_ROWS: dict[str, type[BaseModel]] = {BOARD: BoardRow, ITEMS: ItemRow, SYSTEMS: SystemRow}


def write_table(rows: Sequence[BaseModel], path: Path) -> None:
    """Write rows as Parquet, in the table named by the path, completely or not at all."""
    model = _ROWS[path.name]
    frame = pd.DataFrame([row.model_dump() for row in rows], columns=list(model.model_fields))
    for name, field in model.model_fields.items():
        # A column that has no values yet would be stored without a type.
        if frame[name].isna().all() and field.annotation in (float | None, int | None):
            frame[name] = frame[name].astype("float64")
        if frame.empty and field.annotation is str:
            frame[name] = frame[name].astype("str")
        if field.annotation == bool | None:
            frame[name] = frame[name].astype("boolean")
    write_whole(path, frame.to_parquet(index=False))


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that `write_table` wrote.

    Raises:
        BadInput: the file contains other data, or is damaged.
    """
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise BadInput(f"the table {path} cannot be read ({error}); rebuild it with `podeval report show`") from error


def group_rows(numbers: pd.DataFrame, *names: str) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Group rows by the text in some columns; the groups are in the order of their first rows."""
    for texts, rows in numbers.groupby(list(names), sort=False, observed=True):
        yield tuple(map(str, texts)), rows


def list_rows(numbers: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return some fields of some rows as mappings."""
    columns = [numbers[name].tolist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def stamp(path: Path) -> Stamp | None:
    """Return a value that changes when a file does; None if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (status.st_mtime_ns, status.st_size)


def read_object(text: object) -> dict[str, Any]:
    """Read the JSON object in a table column; empty if there is none."""
    try:
        content = json.loads(str(text))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
