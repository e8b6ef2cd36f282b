"""The votes of an arena as the table that ratings are computed from."""

import pandas as pd
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.protocols import PROTOCOLS, list_protocols
from podeval.store.operator_settings import read_closed_dimensions
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Vote

COLUMNS = (
    "vote", "number", "voter", "system_a", "system_b", "outcome", "preference", "item", "protocol", "dimension",
    "capability", "seconds_a", "seconds_b", "heard_seconds_a", "heard_seconds_b", "loudness_a", "loudness_b",
    "standing",
)  # fmt: skip
"""`seconds_*`: length of the whole output; `heard_seconds_*`: how much of it was heard; `loudness_*`: LUFS, NaN where
there is none; `preference`: `clear`, `slight` or empty."""

PUBLIC_COLUMNS = tuple(name for name in COLUMNS if not name.startswith(("seconds_", "heard_seconds_", "loudness_")))
"""Columns that are public while people vote; exact lengths are not, because they identify the output."""


def build_rating_table(
    session: Session, *, protocol: str | None = None, dimension: str | None = None, excluded: bool = False
) -> pd.DataFrame:
    """Return votes in the order in which they were recorded, with `COLUMNS`.

    Skipped and repeated battles are left out.

    Args:
        session: session of the database.
        protocol: include only this protocol.
        dimension: include only this dimension.
        excluded: include votes that do not count in the public rating.
    """
    a, b = aliased(ArenaOutput), aliased(ArenaOutput)
    query = (
        select(
            Vote.id, Vote.number, Vote.voter, a.system, b.system, Vote.outcome, Vote.preference, Battle.item,
            Battle.protocol, Battle.dimension, Battle.capability, a.seconds, b.seconds, Vote.heard_seconds_a,
            Vote.heard_seconds_b, a.loudness, b.loudness, Vote.standing,
        )
        .join(Battle, Vote.battle == Battle.id)
        .join(a, Battle.output_a == a.id)
        .join(b, Battle.output_b == b.id)
        .where(Battle.purpose == "rating", Vote.outcome != "skip")
        .order_by(Vote.number)
    )  # fmt: skip
    if protocol is not None:
        query = query.where(Battle.protocol == protocol)
    if dimension is not None:
        query = query.where(Battle.dimension == dimension)
    if not excluded:
        query = query.where(Vote.standing == "counted")
    table = pd.DataFrame(session.execute(query).all(), columns=list(COLUMNS))
    numbers = [name for name in COLUMNS if name.startswith(("seconds_", "heard_seconds_", "loudness_"))]
    return table.astype(dict.fromkeys(numbers, float))


def list_open_dimensions(session: Session) -> dict[str, list[str]]:
    """Return, by protocol, the open dimensions that have an item with outputs of at least two systems.

    A protocol without such a dimension is left out.
    """
    answered = (
        select(ArenaItem.dimension, ArenaItem.benchmark)
        .distinct()
        .join(ArenaOutput, ArenaOutput.item == ArenaItem.id)
        .join(ArenaSystem, ArenaOutput.system == ArenaSystem.id)
        .where(ArenaItem.active, ArenaOutput.active, ArenaSystem.active, ArenaOutput.audio != "")
        .group_by(ArenaItem.dimension, ArenaItem.benchmark, ArenaItem.id)
        .having(func.count(func.distinct(ArenaOutput.system)) > 1)
    )
    closed = read_closed_dimensions(session)
    dimensions: dict[str, set[str]] = {protocol: set() for protocol in PROTOCOLS}
    for dimension, benchmark in session.execute(answered):
        for protocol in list_protocols(benchmark) if dimension not in closed else ():
            dimensions[protocol].add(dimension)
    return {protocol: sorted(names) for protocol, names in dimensions.items() if names}
