"""What one voter gave: how many judgements, and how often the other voters see it the same way."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from podeval.arena.service import Arena
from podeval.stats.bias import wilson
from podeval.store.tables import Battle, Output, Vote


@dataclass(frozen=True)
class Personal:
    """One voter's share in the arena.

    `judged` leaves out what was skipped. `compared` counts the voter's choices of a side in meetings of two systems
    where most other voters prefer one of them (same dimension, votes that count); `agreed` those that prefer the same.
    `low` and `high` are Wilson's 95 % bounds of the share agreed, None where nothing is compared.
    """

    judged: int
    skipped: int
    compared: int
    agreed: int
    low: float | None
    high: float | None


_NOTHING = 0.003
"""Seconds of counting that need not be spared."""

_Preferences = Counter[tuple[str, str, str, str]]
"""How often each system of a pair was preferred: `(dimension, low, high, preferred)`."""

_GIVEN = select(Vote.outcome, func.count()).where(Vote.voter == bindparam("voter")).group_by(Vote.outcome)
_SIDED = (
    select(Vote.standing, Battle.dimension, Battle.low, Battle.high, Output.system, Vote.outcome, func.count())
    .join(Vote, Vote.battle == Battle.id)
    .join(Output, Battle.output_a == Output.id)
    .where(Battle.purpose == "rating", Vote.outcome.in_(("a", "b")))
    .group_by(Vote.standing, Battle.dimension, Battle.low, Battle.high, Output.system, Vote.outcome)
)
_MINE = _SIDED.where(Vote.voter == bindparam("voter"))
_COUNTED = _SIDED.where(Vote.standing == "counted")


class Personals:
    """What voters gave, each compared with all others; safe for threads.

    What all voters prefer is counted anew when somebody asks, and while many ask, at most for a fiftieth of the time.

    Args:
        arena: of all votes.
    """

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._lock = threading.Lock()
        self._all: _Preferences = Counter()
        self._until = 0.0

    def of(self, voter: str) -> Personal:
        """What a voter gave so far.

        Args:
            voter: a pseudonym.
        """
        with self._arena.database.reading(one_state=False) as session:
            given: Counter[str] = Counter()
            for outcome, count in session.execute(_GIVEN, {"voter": voter}):
                given[outcome] += count
            sides = [
                (standing, side, count) for standing, side, count in _sides(session.execute(_MINE, {"voter": voter}))
            ]
            everybody = self._everybody(session)
        mine: _Preferences = Counter()
        own: _Preferences = Counter()
        for standing, side, count in sides:
            mine[side] += count
            own[side] += count if standing == "counted" else 0
        compared = agreed = 0
        for side, count in mine.items():
            dimension, low, high, preferred = side
            opposite = (dimension, low, high, high if preferred == low else low)
            # What was counted a moment ago may not hold this voter's newest.
            others, against = (max(0, everybody[one] - own[one]) for one in (side, opposite))
            compared += count if others != against else 0
            agreed += count if others > against else 0
        share = wilson(agreed, compared)
        skipped = given.pop("skip", 0)
        return Personal(sum(given.values()), skipped, compared, agreed, share.low, share.high)

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


def _sides(rows: Iterable[Any]) -> Iterator[tuple[str, tuple[str, str, str, str], int]]:
    """Standing, the side that was preferred, and how often, of such rows."""
    for standing, dimension, low, high, on_a, outcome, count in rows:
        yield standing, (dimension, low, high, on_a if outcome == "a" else high if on_a == low else low), count
