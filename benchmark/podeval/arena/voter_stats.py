"""Statistics on one voter: the number of judgements, and how often other voters agreed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, func, select

from podeval.stats.battles import rate_quickly
from podeval.stats.bias import wilson
from podeval.store.database import Database
from podeval.store.tables import ArenaOutput, ArenaSystem, Battle, Vote
from podeval.store.vote_counts import PAIR_COUNTS

BOARD_FROM = 5
"""Number of votes at which a voter gets a personal ranking."""


@dataclass(frozen=True)
class PersonalRow:
    """One system's results with one voter: battles, wins (a tie counts half), and strength on the Elo scale."""

    system: str
    title: str
    battles: int
    wins: float
    strength: float


@dataclass(frozen=True)
class Personal:
    """The statistics on one voter.

    `judged` excludes skipped battles. `compared` counts the battles in which the voter chose a side and most other
    voters prefer one of the two systems (same dimension, counted votes); `agreed` counts those in which the voter chose
    that preferred system. `low` and `high` are the bounds of Wilson's 95 % interval for the share of agreement, or None
    if there are no comparisons. `board` ranks the systems by this voter's choices alone, best first; with fewer than
    `BOARD_FROM` judgements, it is empty.
    """

    judged: int
    skipped: int
    compared: int
    agreed: int
    low: float | None
    high: float | None
    board: tuple[PersonalRow, ...] = ()


_Preferences = Counter[tuple[str, str, str, str, str]]
"""Number of times that one system of a pair was preferred, by `(protocol, dimension, low, high, preferred)`."""

_WHAT = (
    Battle.purpose,
    Vote.standing,
    Battle.protocol,
    Battle.dimension,
    Battle.low,
    Battle.high,
    ArenaOutput.system,
    Vote.outcome,
)
_ALL_VOTES = (PAIR_COUNTS.c.low_won, PAIR_COUNTS.c.high_won)
"""Numbers of votes for each system of a pair, from all voters."""

_MINE = (
    select(*_WHAT, *_ALL_VOTES, func.count().label("votes"))
    .join(Vote, Vote.battle == Battle.id)
    .join(ArenaOutput, Battle.output_a == ArenaOutput.id)
    .outerjoin(
        PAIR_COUNTS,
        and_(*(PAIR_COUNTS.c[name] == getattr(Battle, name) for name in ("protocol", "dimension", "low", "high"))),
    )
    .where(Vote.voter == bindparam("voter"))
    .group_by(*_WHAT, *_ALL_VOTES)
)
"""Query for a voter's votes, grouped by all of these columns, with the number of votes in each group."""


class Personals:
    """Computes a voter's statistics by comparing the voter's votes with the running counts for all pairs; thread-safe.

    Args:
        database: the database of the arena.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, voter: str) -> Personal:
        """Return a voter's current statistics.

        Args:
            voter: a pseudonym.
        """
        with self._database.reading(one_state=False) as session:
            rows = session.execute(_MINE, {"voter": voter}).all()
        # Read the voter's preferences, and select those that count.
        mine: _Preferences = Counter()
        preferences: _Preferences = Counter()
        everybody = {
            (row.protocol, row.dimension, row.low, row.high, system): count or 0
            for row in rows
            for system, count in ((row.low, row.low_won), (row.high, row.high_won))
        }
        for standing, side, count in _sides(rows):
            mine[side] += count
            preferences[side] += count if standing == "counted" else 0
        # Count how often most other voters prefer the same side.
        compared = agreed = 0
        for side, count in mine.items():
            *kind, low, high, preferred = side
            opposite = (kind[0], kind[1], low, high, high if preferred == low else low)
            others, against = (everybody[one] - preferences[one] for one in (side, opposite))
            compared += count if others != against else 0
            agreed += count if others > against else 0
        share = wilson(agreed, compared)
        skipped = sum(row.votes for row in rows if row.outcome == "skip")
        judged = sum(row.votes for row in rows) - skipped
        board = self._rank(rows) if judged >= BOARD_FROM else ()
        return Personal(judged, skipped, compared, agreed, share.low, share.high, board)

    def _rank(self, rows: Iterable[Any]) -> tuple[PersonalRow, ...]:
        """Rank the systems by one voter's rows."""
        results = [
            (row.system, row.high if row.system == row.low else row.low, row.outcome, row.votes)
            for row in rows
            if row.purpose == "rating" and row.outcome != "skip"
        ]
        battles: dict[str, int] = defaultdict(int)
        wins: dict[str, float] = defaultdict(float)
        for a, b, outcome, count in results:
            share = {"a": 1.0, "b": 0.0}.get(outcome, 0.5)
            for system, part in ((a, share), (b, 1 - share)):
                battles[system] += count
                wins[system] += part * count
        strength = rate_quickly(battles, results)
        with self._database.reading(one_state=False) as session:
            query = select(ArenaSystem.id, ArenaSystem.title).where(ArenaSystem.id.in_(list(battles)))
            titles = {id: title for id, title in session.execute(query)}
        order = sorted(battles, key=lambda system: (-strength[system], titles[system]))
        return tuple(PersonalRow(s, titles[s], battles[s], float(wins[s]), strength[s]) for s in order)


def _sides(rows: Iterable[Any]) -> Iterator[tuple[str, tuple[str, str, str, str, str], int]]:
    """For each row that prefers a side, yield its standing, its key with the preferred system, and its count."""
    for purpose, standing, protocol, dimension, low, high, on_a, outcome, *_, count in rows:
        if purpose == "rating" and outcome in ("a", "b"):
            preferred = on_a if outcome == "a" else high if on_a == low else low
            yield standing, (protocol, dimension, low, high, preferred), count
