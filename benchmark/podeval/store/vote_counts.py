"""Running counts of the arena's battles and votes, by pair, item, system with its voters, and dimension.

They are changed in the transaction that adds, excludes or removes a battle or vote, so that nobody counts all votes to
deal a battle, to reveal one or to find a page of the public list. At any time they equal what `recount` makes of the
battles and votes anew. A vote is rated if it counts, is no skip, and its battle repeats no other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Index,
    Integer,
    String,
    Table,
    and_,
    case,
    delete,
    distinct,
    func,
    insert,
    or_,
    select,
    union_all,
)  # fmt: skip
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Mapped, Session, mapped_column

from podeval.store.tables import ArenaOutput, Battle, TableBase, Vote

RATED = (Battle.purpose == "rating", Vote.outcome != "skip", Vote.standing == "counted")
"""Conditions on a vote that ratings are computed from."""

_COMPACT = {"sqlite_with_rowid": False}
_AT_ONCE = 500
"""Most votes that one statement is about."""


class PairCount(TableBase):
    """The battles of two systems under one protocol on one dimension, and their rated votes by outcome."""

    __tablename__ = "pair_counts"

    protocol: Mapped[str] = mapped_column(String(20), primary_key=True)
    dimension: Mapped[str] = mapped_column(String(100), primary_key=True)
    low: Mapped[str] = mapped_column(String(200), primary_key=True)
    high: Mapped[str] = mapped_column(String(200), primary_key=True)
    served: Mapped[int] = mapped_column(Integer, default=0)
    low_won: Mapped[int] = mapped_column(Integer, default=0)
    high_won: Mapped[int] = mapped_column(Integer, default=0)
    neither: Mapped[int] = mapped_column(Integer, default=0)

    __table_args__ = (_COMPACT,)


class ItemCount(TableBase):
    """The battles of two systems on one item."""

    __tablename__ = "item_counts"

    protocol: Mapped[str] = mapped_column(String(20), primary_key=True)
    dimension: Mapped[str] = mapped_column(String(100), primary_key=True)
    low: Mapped[str] = mapped_column(String(200), primary_key=True)
    high: Mapped[str] = mapped_column(String(200), primary_key=True)
    item: Mapped[str] = mapped_column(String(200), primary_key=True)
    served: Mapped[int] = mapped_column(Integer, default=0)

    __table_args__ = (_COMPACT,)


class SystemCount(TableBase):
    """The rated votes on a system under one protocol on one dimension, and the people who gave them."""

    __tablename__ = "system_counts"

    protocol: Mapped[str] = mapped_column(String(20), primary_key=True)
    dimension: Mapped[str] = mapped_column(String(100), primary_key=True)
    system: Mapped[str] = mapped_column(String(200), primary_key=True)
    votes: Mapped[int] = mapped_column(Integer, default=0)
    voters: Mapped[int] = mapped_column(Integer, default=0)

    __table_args__ = (_COMPACT,)


class RatedVote(TableBase):
    """The numbers of the rated votes of each dimension, in which a page is found at once."""

    __tablename__ = "rated_votes"

    dimension: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)

    __table_args__ = (Index("ix_rated_votes_number", "number"), _COMPACT)


COUNTS: tuple[type[TableBase], ...] = (PairCount, ItemCount, SystemCount, RatedVote)
"""All tables of counts."""

_KIND = (Battle.protocol, Battle.dimension)
_PAIR = (*_KIND, Battle.low, Battle.high)
_WINNER = case(
    (Vote.outcome.not_in(("a", "b")), "neither"),
    ((Vote.outcome == "a") == (ArenaOutput.system == Battle.low), "low_won"),
    else_="high_won",
)
"""The column of `PairCount` in which a rated vote counts."""

_RATED_VOTES = (
    select(Vote.number, Vote.voter, *_PAIR, _WINNER.label("winner"))
    .join(Battle, Vote.battle == Battle.id)
    .join(ArenaOutput, Battle.output_a == ArenaOutput.id)
    .where(*RATED)
)


def count_battles(session: Session, battles: Iterable[Battle], by: int = 1) -> None:
    """Add battles to the counts, or take them out; repeated battles are not counted.

    Args:
        session: the writing session that adds or removes the battles.
        battles: the battles.
        by: 1, or -1 to take them out.
    """
    pairs: Counter[tuple[str, ...]] = Counter()
    items: Counter[tuple[str, ...]] = Counter()
    for battle in battles:
        if battle.purpose == "rating":
            pair = battle.protocol, battle.dimension, battle.low, battle.high
            pairs[pair] += by
            items[(*pair, battle.item)] += by
    for table, counts in ((PairCount, pairs), (ItemCount, items)):
        _add(session, table, {key: {"served": count} for key, count in counts.items()})


def count_votes(session: Session, which: ColumnElement[bool], by: int = 1) -> None:
    """Add those of some votes that are rated to the counts, or take them out.

    To be called after votes are added; to change or delete votes, call it with -1 before and, if they stay, with 1
    afterwards.

    Args:
        session: the writing session that changes the votes.
        which: the condition of the votes.
        by: 1, or -1 to take them out.
    """
    votes = session.execute(_RATED_VOTES.where(which)).all()
    for start in range(0, len(votes), _AT_ONCE):
        _count_rated(session, votes[start : start + _AT_ONCE], {vote.number for vote in votes}, by)


def _count_rated(session: Session, votes: Iterable[Any], changing: set[int], by: int) -> None:
    """Add rated votes to the counts; `changing` are the numbers of all votes of which no other count may speak."""
    pairs: dict[tuple[str, ...], Counter[str]] = {}
    systems: dict[tuple[str, ...], Counter[str]] = {}
    judged: set[tuple[str, ...]] = set()
    for vote in votes:
        kind = vote.protocol, vote.dimension
        pairs.setdefault((*kind, vote.low, vote.high), Counter())[vote.winner] += by
        for system in (vote.low, vote.high):
            systems.setdefault((*kind, system), Counter())["votes"] += by
            judged.add((vote.voter, *kind, system))
    # Whoever has other votes on a system is one of its voters either way.
    for _, *system in judged - _find_judged(session, judged, changing):
        systems[tuple(system)]["voters"] += by
    _add(session, PairCount, pairs)
    _add(session, SystemCount, systems)
    if by > 0:
        rows = [{"dimension": vote.dimension, "number": vote.number} for vote in votes]
        session.execute(insert(_table(RatedVote)), rows)
    else:
        session.execute(delete(RatedVote).where(RatedVote.number.in_([vote.number for vote in votes])))


def _find_judged(session: Session, judged: Iterable[tuple[str, ...]], without: set[int]) -> set[tuple[str, ...]]:
    """Return voter, protocol, dimension and system of the rated votes of some voters on some systems.

    Args:
        session: session of the database.
        judged: the voters and systems, each as voter, protocol, dimension and system.
        without: the numbers of votes that are left out.
    """
    voters, systems = {row[0] for row in judged}, {row[3] for row in judged}
    theirs = or_(Battle.low.in_(systems), Battle.high.in_(systems))
    rows = session.execute(
        select(Vote.number, Vote.voter, *_PAIR)
        .join(Battle, Vote.battle == Battle.id)
        .where(Vote.voter.in_(voters), theirs, *RATED)
    )
    return {
        (voter, protocol, dimension, system)
        for number, voter, protocol, dimension, *pair in rows
        if number not in without
        for system in pair
    }


def _add(session: Session, table: type[TableBase], counts: Mapping[tuple[str, ...], Mapping[str, int]]) -> None:
    """Add numbers to the rows of a table, which are made where they do not exist; always in the same order."""
    if counts:
        upsert, keys, numbers = _make_upsert(table, session.get_bind().dialect.name)
        unchanged = dict.fromkeys(numbers, 0)
        rows = [dict(zip(keys, key, strict=True)) | unchanged | change for key, change in sorted(counts.items())]
        session.execute(upsert, rows)


@cache
def _make_upsert(table: type[TableBase], dialect: str) -> tuple[Any, list[str], list[str]]:
    """Return the statement that adds to the numbers of a row, the names of its keys, and those of its numbers."""
    statement: Any = (sqlite if dialect == "sqlite" else postgresql).insert(_table(table))
    columns = _table(table).columns
    keys = [column.name for column in columns if column.primary_key]
    numbers = [column.name for column in columns if not column.primary_key]
    added = {name: columns[name] + statement.excluded[name] for name in numbers}
    return statement.on_conflict_do_update(index_elements=keys, set_=added), keys, numbers


def _table(table: type[TableBase]) -> Table:
    return TableBase.metadata.tables[table.__tablename__]


def recount(session: Session) -> None:
    """Make all counts anew from the battles and votes, however many there are."""
    for table in COUNTS:
        session.execute(delete(table))
    votes = _RATED_VOTES.subquery()
    by_pair = select(*_PAIR, func.count().label("served")).where(Battle.purpose == "rating").group_by(*_PAIR).subquery()
    pair = [votes.c[column.name] for column in _PAIR]
    outcomes = ("low_won", "high_won", "neither")
    by_outcome = (
        select(*pair, *(func.sum(case((votes.c.winner == name, 1), else_=0)).label(name) for name in outcomes))
        .group_by(*pair)
        .subquery()
    )
    same = and_(*(by_pair.c[column.name] == by_outcome.c[column.name] for column in _PAIR))
    numbers = (func.coalesce(by_outcome.c[name], 0) for name in outcomes)
    sides = union_all(
        *(select(votes.c.protocol, votes.c.dimension, side.label("system"), votes.c.voter) for side in pair[2:])
    ).subquery()
    system = sides.c.protocol, sides.c.dimension, sides.c.system
    items = select(*_PAIR, Battle.item, func.count()).where(Battle.purpose == "rating").group_by(*_PAIR, Battle.item)
    for table, rows in (
        (PairCount, select(*by_pair.c, *numbers).outerjoin_from(by_pair, by_outcome, same)),
        (ItemCount, items),
        (SystemCount, select(*system, func.count(), func.count(distinct(sides.c.voter))).group_by(*system)),
        (RatedVote, select(votes.c.dimension, votes.c.number)),
    ):
        session.execute(insert(_table(table)).from_select([c.name for c in _table(table).columns], rows))


def count_rated(session: Session, dimension: str | None = None) -> int:
    """Count the rated votes, of one dimension or all."""
    # Each vote is on two systems.
    total = select(func.coalesce(func.sum(SystemCount.votes), 0) / 2)
    if dimension is not None:
        total = total.where(SystemCount.dimension == dimension)
    return int(session.scalar(total) or 0)
