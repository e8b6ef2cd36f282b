"""Compute a ranking from votes: pooled ratings, ratings by dimension, the pairs that met, and the pairs for which
further votes would be most useful.

All votes are in one table (`build_rating_table`). `podeval.stats` does the arithmetic: Elo as reported in the papers,
and Bradley–Terry with ties and voter-clustered intervals for the ranking.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from podeval.arena.settings import EXCERPTS
from podeval.errors import BadInput
from podeval.stats.battles import Battles, Elo, Tally, elo, tally
from podeval.stats.bradley_terry import Ratings, SystemRating, rate, votes_needed
from podeval.store.tables import ArenaOutput, Battle, Vote
from podeval.store.vote_counts import RATED, RATED_VOTES

_A, _B = aliased(ArenaOutput), aliased(ArenaOutput)
_CELLS: dict[str, InstrumentedAttribute[Any]] = {
    "vote": Vote.id, "number": Vote.number, "voter": Vote.voter, "system_a": _A.system, "system_b": _B.system,
    "outcome": Vote.outcome, "preference": Vote.preference, "item": Battle.item, "protocol": Battle.protocol,
    "dimension": Battle.dimension, "capability": Battle.capability, "seconds_a": _A.seconds, "seconds_b": _B.seconds,
    "heard_seconds_a": Vote.heard_seconds_a, "heard_seconds_b": Vote.heard_seconds_b, "loudness_a": _A.loudness,
    "loudness_b": _B.loudness, "standing": Vote.standing,
}  # fmt: skip

COLUMNS = tuple(_CELLS)
"""`seconds_*`: length of the whole output; `heard_seconds_*`: how much of it was heard; `loudness_*`: LUFS, NaN if
unknown; `preference`: `clear`, `slight` or empty."""

PUBLIC_COLUMNS = tuple(name for name in COLUMNS if not name.startswith(("seconds_", "heard_seconds_", "loudness_")))
"""Columns that are public while voting is in progress; exact lengths are not public, because they identify the
output.
"""

POOLED = "pooled"
"""The name of the rating that is computed from the votes on all dimensions together."""

Bounds = tuple[tuple[float, float], ...]

SECONDS: Bounds = ((0.0, 15.0), (15.0, 25.0), (25.0, float("inf")))
"""Groups of votes on excerpts, by the number of seconds heard."""

SHARES: Bounds = ((0.0, 0.95), (0.95, float("inf")))
"""Groups of votes on whole recordings, by the share heard."""


@dataclass(frozen=True)
class Undecided:
    """Neighbours in the ranking that the votes do not separate, and the number of further votes that would separate
    them (None if unknown).
    """

    better: str
    worse: str
    votes: int | None


@dataclass(frozen=True)
class Standings:
    """The ranking of one dimension, with its data.

    `by_strength` is the same ranking with a slight preference counted as half a preference and half a tie; None if no
    vote states how clear the preference is.
    """

    ratings: Ratings
    elo: Mapping[str, Elo]
    tally: Tally
    undecided: tuple[Undecided, ...]
    by_strength: Ratings | None = None

    @property
    def coverage(self) -> float:
        """Share of all pairs of systems that met at least once, 0 to 1."""
        pairs = math.comb(len(self.tally.systems), 2)
        unmet = pairs - int(np.count_nonzero(self.tally.battles)) // 2
        return 1 - unmet / pairs


def compute_standings(battles: Battles, *, position: bool = False, robust: bool = True) -> Standings:
    """Compute the ranking from battles, with everything that a board shows next to a ranking.

    Args:
        battles: the battles in recorded order; only Elo depends on the order.
        position: whether to also estimate the effect of being shown first.
        robust: whether to down-weight groups of voters who differ from all others, and an excess of voters who favour
            one system.

    Raises:
        BadInput: `battles` is empty.
    """
    ratings = rate(battles, position=position, robust=robust)
    counted = tally(battles)
    ranked = [row for row in ratings.systems if row.provisional is None]
    undecided = tuple(
        Undecided(better.system, worse.system, needed)
        for better, worse in itertools.pairwise(ranked)
        if (needed := votes_needed(ratings, better.system, worse.system)) != 0
    )
    has_strength = battles.slight is not None and bool(battles.slight.any())
    by_strength = rate(battles, position=position, strength=True, robust=robust) if has_strength else None
    return Standings(ratings, elo(battles), counted, undecided, by_strength)


def compute_standings_by_dimension(
    battles: Battles, dimensions: Sequence[str], *, position: bool = False
) -> dict[str, Standings]:
    """Compute the ranking for each dimension, and for all votes together under `pooled`.

    Args:
        battles: all battles.
        dimensions: the dimension of each battle.
        position: whether to also estimate the effect of being shown first.

    Raises:
        BadInput: the numbers of battles and dimensions differ, a dimension is named `pooled`, or there are no battles.
    """
    if len(dimensions) != len(battles):
        raise BadInput(
            f"there are {len(battles)} battles but {len(dimensions)} dimensions; give one dimension for each battle"
        )
    labels = np.asarray(dimensions, dtype=object)
    if POOLED in set(dimensions):
        raise BadInput(f"a dimension cannot be called {POOLED!r}, which is the name of the rating over all dimensions")
    by_dimension = {POOLED: compute_standings(battles, position=position)}
    for dimension in sorted(set(dimensions)):
        part = battles.only(np.asarray(labels == dimension, dtype=bool))
        by_dimension[dimension] = compute_standings(part, position=position)
    return by_dimension


@dataclass(frozen=True)
class HeardGroup:
    """The votes whose heard part is at least `least` and less than `most`, in seconds or as a share of a whole
    recording.
    """

    least: float
    most: float
    votes: int
    ratings: Mapping[str, SystemRating]


@dataclass(frozen=True)
class HeardRatings:
    """The groups of one protocol; `systems` are sorted, best first, by their ratings from all votes under the
    protocol.
    """

    protocol: str
    systems: tuple[str, ...]
    groups: tuple[HeardGroup, ...]


@dataclass(frozen=True)
class RatedVotes:
    """The rated votes of one protocol, in the order in which they were recorded, and the dimension of each vote.

    `heard` is the smaller of the amounts heard of the two sides: seconds of an excerpt, or a share of a recording.
    """

    battles: Battles
    dimensions: list[str]
    heard: NDArray[np.float64]


def rate_by_heard(protocol: str, votes: RatedVotes, ranked: Ratings) -> HeardRatings:
    """Rate the systems by the votes under one protocol, separately for each group of votes with similar heard parts.

    Args:
        protocol: the protocol.
        votes: the votes under the protocol.
        ranked: the ratings from all of these votes.
    """
    groups = []
    for least, most in SECONDS if protocol == EXCERPTS else SHARES:
        group = votes.battles.only((votes.heard >= least) & (votes.heard < most))
        ratings = {row.system: row for row in rate(group).systems} if len(group) else {}
        groups.append(HeardGroup(least, most, len(group), ratings))
    return HeardRatings(protocol, tuple(row.system for row in ranked.systems), tuple(groups))


def make_battles(votes: pd.DataFrame, covariates: Mapping[str, Sequence[float]] | None = None) -> Battles:
    """Convert votes with the columns of `build_rating_table` to battles.

    Args:
        votes: the votes.
        covariates: differences by name: the value of A minus the value of B in each vote.
    """
    a, b, outcome, voter = (list(votes[name]) for name in ("system_a", "system_b", "outcome", "voter"))
    return Battles.of(a, b, outcome, voter, covariates, list(votes["preference"] == "slight"))


def build_rating_table(session: Session, dimension: str | None = None) -> pd.DataFrame:
    """Return the rated votes in the order in which they were recorded, with `COLUMNS`.

    Args:
        session: a database session.
        dimension: the only dimension to include; all by default.
    """
    query = _select_votes(COLUMNS).where(*RATED, *([] if dimension is None else [Battle.dimension == dimension]))
    table = pd.DataFrame(session.execute(query).all(), columns=list(COLUMNS))
    numbers = [name for name in COLUMNS if name.startswith(("seconds_", "heard_seconds_", "loudness_"))]
    return table.astype(dict.fromkeys(numbers, float))


def _select_votes(columns: Iterable[str]) -> Select[Any]:
    return (
        select(*(_CELLS[name].label(name) for name in columns))
        .join(Battle, Vote.battle == Battle.id)
        .join(_A, Battle.output_a == _A.id)
        .join(_B, Battle.output_b == _B.id)
        .order_by(Vote.number)
    )


# Statements are built once, because building a statement takes longer than executing it.
_NUMBERS = select(RATED_VOTES.c.number).where(RATED_VOTES.c.number > bindparam("after")).order_by(RATED_VOTES.c.number)
_PAGE, _PAGE_OF_DIMENSION = (
    _select_votes(PUBLIC_COLUMNS).where(Vote.number.in_(numbers.offset(bindparam("offset")).limit(bindparam("limit"))))
    for numbers in (_NUMBERS, _NUMBERS.where(RATED_VOTES.c.dimension == bindparam("dimension")))
)


def list_public_votes(
    session: Session, *, limit: int, dimension: str | None = None, after: int = 0, offset: int = 0
) -> list[dict[str, Any]]:
    """List some rated votes in the order in which they were recorded, with `PUBLIC_COLUMNS`.

    Args:
        session: a database session.
        limit: maximum number of votes.
        dimension: the only dimension to include; all by default.
        after: exclusive lower limit on the votes' numbers; the database finds the first vote immediately.
        offset: number of votes to skip at the beginning; the database counts the skipped votes in an index.
    """
    page = {"after": after, "offset": offset, "limit": limit, "dimension": dimension}
    rows = session.execute(_PAGE if dimension is None else _PAGE_OF_DIMENSION, page)
    return [dict(row) for row in rows.mappings()]
