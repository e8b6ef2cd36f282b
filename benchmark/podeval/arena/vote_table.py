"""The votes of an arena as the table that ratings are computed from."""

import pandas as pd
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from podeval.store.operator_settings import closed_dimensions
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Vote

COLUMNS = (
    "vote", "number", "voter", "system_a", "system_b", "outcome", "item", "dimension", "capability", "seconds_a",
    "seconds_b", "loudness_a", "loudness_b", "standing",
)  # fmt: skip
"""`seconds_*`: length of the whole output; `loudness_*`: LUFS, NaN where there is none."""

PUBLIC_COLUMNS = tuple(name for name in COLUMNS if not name.startswith(("seconds_", "loudness_")))
"""Columns that are public while people vote; exact lengths are not, because they identify the output."""


def rating_table(session: Session, *, dimension: str | None = None, excluded: bool = False) -> pd.DataFrame:
    """Return votes in the order in which they were recorded, with `COLUMNS`.

    Skipped and repeated battles are left out.

    Args:
        session: session of the database.
        dimension: include only this dimension.
        excluded: include votes that do not count in the public rating.
    """
    a, b = aliased(ArenaOutput), aliased(ArenaOutput)
    query = (
        select(
            Vote.id, Vote.number, Vote.voter, a.system, b.system, Vote.outcome, Battle.item, Battle.dimension,
            Battle.capability, a.seconds, b.seconds, a.loudness, b.loudness, Vote.standing,
        )
        .join(Battle, Vote.battle == Battle.id)
        .join(a, Battle.output_a == a.id)
        .join(b, Battle.output_b == b.id)
        .where(Battle.purpose == "rating", Vote.outcome != "skip")
        .order_by(Vote.number)
    )  # fmt: skip
    if dimension is not None:
        query = query.where(Battle.dimension == dimension)
    if not excluded:
        query = query.where(Vote.standing == "counted")
    table = pd.DataFrame(session.execute(query).all(), columns=list(COLUMNS))
    numbers = ("seconds_a", "seconds_b", "loudness_a", "loudness_b")
    return table.astype(dict.fromkeys(numbers, float))


def dimensions_of(session: Session) -> list[str]:
    """Return the open dimensions that have an item with outputs of at least two systems, by name."""
    answered = (
        select(ArenaItem.dimension)
        .join(ArenaOutput, ArenaOutput.item == ArenaItem.id)
        .join(ArenaSystem, ArenaOutput.system == ArenaSystem.id)
        .where(ArenaItem.active, ArenaOutput.active, ArenaSystem.active, ArenaOutput.audio != "")
        .group_by(ArenaItem.dimension, ArenaItem.id)
        .having(func.count(func.distinct(ArenaOutput.system)) > 1)
    )
    return sorted(set(session.scalars(answered)) - closed_dimensions(session))
