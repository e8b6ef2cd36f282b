"""The two tables that the board reads: `board.parquet` and `items.parquet`, beside the runs they are made from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict

from podeval.store.files import write_whole

BOARD, ITEMS = "board.parquet", "items.parquet"

NOT_RANKED = "not ranked"
"""How a reason begins that is not of items without a score, but of a row without a rank."""

Provenance = Literal["run by us", "outputs supplied", "reported"]


class BoardRow(BaseModel):
    """One number of the board: one key of one metric of one system, over all items or one slice of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    split: str  # "" for a figure of the whole benchmark, as papers report them
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


class ItemRow(BaseModel):
    """One result on one item, with what a system page needs to show it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    split: str  # "" for a figure of the whole benchmark, as papers report them
    profile: str
    system: str
    item: str
    category: str
    topic: str
    metric: str
    protocol: str
    result: str  # JSON as Score.to_json or Unscored.to_json
    output: str  # path of the item's output JSON, relative to the runs folder; "" where there is none


def write_table(rows: list[BoardRow] | list[ItemRow], path: Path) -> None:
    """Write rows as Parquet, whole or not at all."""
    model = BoardRow if path.name == BOARD else ItemRow
    frame = pd.DataFrame([row.model_dump() for row in rows], columns=list(model.model_fields))
    for name, field in model.model_fields.items():
        # A column of which nothing is known yet would be stored without a type.
        if frame[name].isna().all() and field.annotation in (float | None, int | None):
            frame[name] = frame[name].astype("float64")
    write_whole(path, frame.to_parquet(index=False))


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` wrote."""
    return pd.read_parquet(path)
