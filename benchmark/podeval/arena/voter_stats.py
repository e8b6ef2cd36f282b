"""Statistics of one voter: how many judgements they gave, and how often the other voters agree."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from podeval.stats.battles import rate_quickly
from podeval.stats.bias import wilson
from podeval.store.database import Database
from podeval.store.tables import ArenaOutput, ArenaSystem, Battle, Vote

BOARD_FROM = 5
"""Judgements from which a voter has a board of their own."""


@dataclass(frozen=True)
class PersonalRow:
    """One system by one voter's choices: its battles, wins (a tie counts half), and strength on Elo's scale."""

    system: str
    title: str
    battles: int
    wins: float
    strength: float


@dataclass(frozen=True)
class Personal:
    """The statistics of one voter.

    `judged` leaves out skipped battles. `compared` counts the voter's choices of a side in meetings of two systems
    where most other voters prefer one of them (same dimension, counted votes); `agreed` those that prefer the same one.
    `low` and `high` are Wilson's 95 % bounds of the share agreed, None where nothing is compared. `board` ranks the
    systems by this voter's choices alone, best first, from `BOARD_FROM` judgements on; empty before.
    """

    judged: int
    skipped: int
    compared: int
    agreed: int
    low: float | None
    high: float | None
    board: tuple[PersonalRow, ...] = ()


_NOTHING = 0.003
"""Seconds of counting up to which it is done at every request."""

_Preferences = Counter[tuple[str, str, str, str, str]]
"""Number of times that each system of a pair was preferred: `(protocol, dimension, low, high, preferred)`."""

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
_COUNTS = (
    select(*_WHAT, func.count().label("votes"))
    .join(Vote, Vote.battle == Battle.id)
    .join(ArenaOutput, Battle.output_a == ArenaOutput.id)
    .group_by(*_WHAT)
)
"""Number of equal votes."""

_MINE = _COUNTS.where(Vote.voter == bindparam("voter"))
_COUNTED = _COUNTS.where(Vote.standing == "counted", Battle.purpose == "rating", Vote.outcome.in_(("a", "b")))


class Personals:
    """The statistics of voters, each compared with all others; safe for threads.

    The preferences of all voters are counted again on request; under many requests, counting takes at most a fiftieth
    of the time.

    Args:
        database: the database of the arena.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._all: _Preferences = Counter()
        self._until = 0.0

    def of(self, voter: str) -> Personal:
        """Return the statistics of a voter up to now.

        Args:
            voter: a pseudonym.
        """
        with self._database.reading(one_state=False) as session:
            rows = session.execute(_MINE, {"voter": voter}).all()
            everybody = self._everybody(session)
        # The voter's preferences, and those of them that count.
        mine: _Preferences = Counter()
        preferences: _Preferences = Counter()
        for standing, side, count in _sides(rows):
            mine[side] += count
            preferences[side] += count if standing == "counted" else 0
        # How often most of the others prefer the same side.
        compared = agreed = 0
        for side, count in mine.items():
            *kind, low, high, preferred = side
            opposite = (kind[0], kind[1], low, high, high if preferred == low else low)
            # What was counted a moment ago may not hold this voter's newest.
            others, against = (max(0, everybody[one] - preferences[one]) for one in (side, opposite))
            compared += count if others != against else 0
            agreed += count if others > against else 0
        share = wilson(agreed, compared)
        skipped = sum(row.votes for row in rows if row.outcome == "skip")
        judged = sum(row.votes for row in rows) - skipped
        board = self._rank(rows) if judged >= BOARD_FROM else ()
        return Personal(judged, skipped, compared, agreed, share.low, share.high, board)

    def _rank(self, rows: Iterable[Any]) -> tuple[PersonalRow, ...]:
        """Rank the systems by the rows of one voter."""
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

    def _everybody(self, session: Session) -> "_Preferences":
        with self._lock:
            began = time.monotonic()
            if began >= self._until:
                self._all = Counter()
                for _, side, count in _sides(session.execute(_COUNTED)):
                    self._all[side] += count
                took = time.monotonic() - began
                self._until = began + (took * 50 if took > _NOTHING else 0.0)
            return self._all


def _sides(rows: Iterable[Any]) -> Iterator[tuple[str, tuple[str, str, str, str, str], int]]:
    """Yield standing, preferred side and count of those rows that are about a rating and prefer a side."""
    for purpose, standing, protocol, dimension, low, high, on_a, outcome, count in rows:
        if purpose == "rating" and outcome in ("a", "b"):
            preferred = on_a if outcome == "a" else high if on_a == low else low
            yield standing, (protocol, dimension, low, high, preferred), count
