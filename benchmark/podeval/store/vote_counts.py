"""Running counts of the arena's battles and votes: by pair, by item, by system (with its voters) and by dimension.

The counts are updated in the transaction that adds, excludes or removes a battle or vote, so creating a battle,
revealing one or finding a page of the public list does not require counting all votes. At any time, the counts equal
the result of `recount` over all battles and votes. A vote is rated if it counts, is not a skip, and its battle does not
repeat an earlier battle.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Index,
    Integer,
    String,
    Table,
    and_,
    bindparam,
    case,
    delete,
    distinct,
    func,
    insert,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from podeval.store.tables import ArenaOutput, Battle, TableBase, Vote

RATED = (Battle.purpose == "rating", Vote.outcome != "skip", Vote.standing == "counted")
"""Conditions for a vote to be used in ratings."""


def _make_table(name: str, keys: Mapping[str, int], numbers: Iterable[str]) -> Table:
    """Return a table of numbers with text keys; `keys` gives the maximum length of each key."""
    columns: list[Column[Any]] = [Column(key, String(length), primary_key=True) for key, length in keys.items()]
    columns += [Column(number, Integer, nullable=False) for number in numbers]
    return Table(name, TableBase.metadata, *columns, sqlite_with_rowid=False)


_PAIR_KEYS = {"protocol": 20, "dimension": 100, "low": 200, "high": 200}

PAIR_COUNTS = _make_table("pair_counts", _PAIR_KEYS, ("served", "low_won", "high_won", "neither"))
"""Numbers of battles, and of rated votes by outcome, for each protocol, dimension and pair of systems."""

ITEM_COUNTS = _make_table("item_counts", {**_PAIR_KEYS, "item": 200}, ("served",))
"""Number of battles for each protocol, dimension, pair of systems and item."""

SYSTEM_COUNTS = _make_table("system_counts", {"protocol": 20, "dimension": 100, "system": 200}, ("votes", "voters"))
"""Numbers of rated votes, and of the people who cast them, for each protocol, dimension and system."""

RATED_VOTES = Table(
    "rated_votes",
    TableBase.metadata,
    Column("dimension", String(100), primary_key=True),
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Index("ix_rated_votes_number", "number"),
    sqlite_with_rowid=False,
)
"""The numbers of the rated votes on each dimension, for finding a page quickly."""

COUNTS = (PAIR_COUNTS, ITEM_COUNTS, SYSTEM_COUNTS, RATED_VOTES)
"""All tables of counts."""

_KIND = (Battle.protocol, Battle.dimension)
_PAIR = (*_KIND, Battle.low, Battle.high)
_WINNER = case(
    (Vote.outcome.not_in(("a", "b")), "neither"),
    ((Vote.outcome == "a") == (ArenaOutput.system == Battle.low), "low_won"),
    else_="high_won",
)
"""The column of `PAIR_COUNTS` for a rated vote."""

_PAIR_VOTES = select(Vote.number, Vote.voter, *_PAIR).join(Battle, Vote.battle == Battle.id).where(*RATED)
_VOTES = _PAIR_VOTES.add_columns(_WINNER.label("winner")).join(ArenaOutput, Battle.output_a == ArenaOutput.id)


_SYSTEMS: BindParameter[Any] = bindparam("systems", expanding=True)
_JUDGED = _PAIR_VOTES.where(
    Vote.voter.in_(bindparam("voters", expanding=True)),
    or_(Battle.low.in_(_SYSTEMS), Battle.high.in_(_SYSTEMS)),
)
"""The rated votes of the given voters on the given systems."""

_REMOVED = delete(RATED_VOTES).where(
    RATED_VOTES.c.dimension == bindparam("dimension"), RATED_VOTES.c.number == bindparam("number")
)


def count_battles(session: Session, battles: Iterable[Battle], by: int = 1) -> None:
    """Add battles to the counts, or subtract them; repeats are not counted.

    Args:
        session: the write session that adds or removes the battles.
        battles: the battles to add or subtract.
        by: 1 to add them, or -1 to subtract them.
    """
    pairs: Counter[tuple[str, ...]] = Counter()
    items: Counter[tuple[str, ...]] = Counter()
    for battle in battles:
        if battle.purpose == "rating":
            pair = battle.protocol, battle.dimension, battle.low, battle.high
            pairs[pair] += by
            items[(*pair, battle.item)] += by
    for table, counts in ((PAIR_COUNTS, pairs), (ITEM_COUNTS, items)):
        _add(session, table, {key: {"served": count} for key, count in counts.items()})


def count_votes(session: Session, which: ColumnElement[bool], by: int = 1) -> None:
    """Add the rated votes among the given votes to the counts, or subtract them.

    Call this function after votes are added. To change or delete votes, call it with -1 before the change and, if the
    votes stay, with 1 afterwards.

    Args:
        session: the write session that changes the votes.
        which: the condition that selects the votes.
        by: 1 to add them, or -1 to subtract them.
    """
    votes = session.execute(_VOTES.where(which)).all()
    if not votes:
        return
    pairs: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    systems: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    judged: set[tuple[str, ...]] = set()
    for vote in votes:
        kind = vote.protocol, vote.dimension
        pairs[*kind, vote.low, vote.high][vote.winner] += by
        for system in (vote.low, vote.high):
            systems[*kind, system]["votes"] += by
            judged.add((vote.voter, *kind, system))
    # Anyone with other votes on a system remains one of its voters.
    for _, *key in judged - _find_judged(session, judged, {vote.number for vote in votes}):
        systems[tuple(key)]["voters"] += by
    _add(session, PAIR_COUNTS, pairs)
    _add(session, SYSTEM_COUNTS, systems)
    numbers = [{"dimension": vote.dimension, "number": vote.number} for vote in votes]
    session.execute(insert(RATED_VOTES) if by > 0 else _REMOVED, numbers)


def _find_judged(session: Session, judged: Iterable[tuple[str, ...]], without: set[int]) -> set[tuple[str, ...]]:
    """Return the voter, protocol, dimension and system of the given voters' rated votes on the given systems.

    Args:
        session: an open session of the database.
        judged: the voters and systems, each as voter, protocol, dimension and system.
        without: the numbers of votes to ignore.
    """
    about = {"voters": list({row[0] for row in judged}), "systems": list({row[3] for row in judged})}
    rows = session.execute(_JUDGED, about)
    return {
        (voter, protocol, dimension, system)
        for number, voter, protocol, dimension, *pair in rows
        if number not in without
        for system in pair
    }


def _add(session: Session, table: Table, counts: Mapping[tuple[str, ...], Mapping[str, int]]) -> None:
    """Add numbers to the rows of a table, always in the same order; missing rows are created."""
    if counts:
        upsert, keys, numbers = _make_upsert(table, session.get_bind().dialect.name)
        rows = [
            {**dict(zip(keys, key, strict=True)), **dict.fromkeys(numbers, 0), **change}
            for key, change in sorted(counts.items())
        ]
        session.execute(upsert, rows)


@cache
def _make_upsert(table: Table, dialect: str) -> tuple[Any, list[str], list[str]]:
    """Return the statement that adds to the numbers of a row, and the names of its keys and numbers."""
    statement: Any = (sqlite if dialect == "sqlite" else postgresql).insert(table)
    keys, numbers = ([column.name for column in table.c if column.primary_key is is_key] for is_key in (True, False))
    added = {name: table.c[name] + statement.excluded[name] for name in numbers}
    return statement.on_conflict_do_update(index_elements=keys, set_=added), keys, numbers


def recount(session: Session) -> None:
    """Recompute all counts from the battles and votes."""
    for table in COUNTS:
        session.execute(delete(table))
    rated_battle, *rated_vote = RATED
    battles = select(*_PAIR).where(rated_battle)
    outcomes = (
        func.sum(case((and_(Vote.number.is_not(None), _WINNER.in_([name])), 1), else_=0))
        for name in ("low_won", "high_won", "neither")
    )
    pairs = (
        battles.add_columns(func.count(), *outcomes)
        .outerjoin(Vote, and_(Vote.battle == Battle.id, *rated_vote))
        .outerjoin(ArenaOutput, Battle.output_a == ArenaOutput.id)
    )
    items = battles.add_columns(Battle.item, func.count()).group_by(*_PAIR, Battle.item)
    votes = _PAIR_VOTES.subquery()
    sides = union_all(
        *(
            select(votes.c.protocol, votes.c.dimension, side.label("system"), votes.c.voter)
            for side in (votes.c.low, votes.c.high)
        )
    ).subquery()
    system = sides.c.protocol, sides.c.dimension, sides.c.system
    for table, rows in (
        (PAIR_COUNTS, pairs.group_by(*_PAIR)),
        (ITEM_COUNTS, items),
        (SYSTEM_COUNTS, select(*system, func.count(), func.count(distinct(sides.c.voter))).group_by(*system)),
        (RATED_VOTES, select(votes.c.dimension, votes.c.number)),
    ):
        session.execute(insert(table).from_select(table.c.keys(), rows))


# Each vote concerns two systems.
_COUNT = select(func.sum(SYSTEM_COUNTS.c.votes) / 2)
_COUNT_OF_DIMENSION = _COUNT.where(SYSTEM_COUNTS.c.dimension == bindparam("dimension"))


def count_rated(session: Session, dimension: str | None = None) -> int:
    """Count the rated votes of one dimension, or of all."""
    return int(session.scalar(_COUNT if dimension is None else _COUNT_OF_DIMENSION, {"dimension": dimension}) or 0)
