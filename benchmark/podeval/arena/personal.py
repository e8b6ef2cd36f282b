"""What one voter gave: how many judgements, and how often the other voters see it the same way."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Select, func, select, tuple_

from podeval.arena.service import Arena
from podeval.stats.bias import wilson
from podeval.store.tables import Battle, Output, Vote

_PAIRS = 1_000
"""Of systems that are asked about at once."""


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


def personal(arena: Arena, voter: str) -> Personal:
    """What a voter gave so far.

    Args:
        arena: of all votes.
        voter: a pseudonym.
    """
    sided = _sided()
    with arena.database.reading(one_state=False) as session:
        counted = select(Vote.outcome, func.count()).where(Vote.voter == voter).group_by(Vote.outcome)
        outcomes = {outcome: count for outcome, count in session.execute(counted)}
        mine = _preferences(session.execute(sided.where(Vote.voter == voter)))
        pairs = sorted({(dimension, low, high) for dimension, low, high, _ in mine})
        others: Counter[tuple[str, str, str, str]] = Counter()
        for start in range(0, len(pairs), _PAIRS):
            same = tuple_(Battle.dimension, Battle.low, Battle.high).in_(pairs[start : start + _PAIRS])
            votes = sided.where(Vote.voter != voter, Vote.standing == "counted", same)
            others.update(_preferences(session.execute(votes)))
    compared = agreed = 0
    for (dimension, low, high, preferred), count in mine.items():
        other = high if preferred == low else low
        lead = others[dimension, low, high, preferred] - others[dimension, low, high, other]
        compared += count if lead else 0
        agreed += count if lead > 0 else 0
    share = wilson(agreed, compared)
    skipped = outcomes.pop("skip", 0)
    return Personal(sum(outcomes.values()), skipped, compared, agreed, share.low, share.high)


@cache
def _sided() -> Select[str, str, str, str, str, int]:
    """How often which side was chosen where two systems met; made once, as everybody asks after every vote."""
    return (
        select(Battle.dimension, Battle.low, Battle.high, Output.system, Vote.outcome, func.count())
        .join(Vote, Vote.battle == Battle.id)
        .join(Output, Battle.output_a == Output.id)
        .where(Battle.purpose == "rating", Vote.outcome.in_(("a", "b")))
        .group_by(Battle.dimension, Battle.low, Battle.high, Output.system, Vote.outcome)
    )


def _preferences(rows: Iterable[Any]) -> Counter[tuple[str, str, str, str]]:
    """How often each system of a pair was preferred: `(dimension, low, high, preferred)`, of such rows with sides."""
    found: Counter[tuple[str, str, str, str]] = Counter()
    for dimension, low, high, on_a, outcome, count in rows:
        found[dimension, low, high, on_a if outcome == "a" else high if on_a == low else low] += count
    return found
