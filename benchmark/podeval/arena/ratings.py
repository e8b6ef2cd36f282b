"""Compute a ranking from votes: ratings pooled and by dimension, who met whom, and which votes would help most.

The arithmetic is in `podeval.stats`: Elo as the papers print it, and Bradley–Terry with ties and voter-clustered
intervals as the ranking.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podeval.errors import BadInput
from podeval.stats.battles import Battles, Tally, tally
from podeval.stats.bradley_terry import Intervals, Ratings, rate, votes_needed
from podeval.stats.elo import Elo, elo

POOLED = "pooled"
"""The rating over the votes of all dimensions together."""


@dataclass(frozen=True)
class Undecided:
    """Neighbours in the ranking that the votes do not separate; `votes` more would separate them (None: unknown)."""

    better: str
    worse: str
    votes: int | None


@dataclass(frozen=True)
class Standings:
    """The ranking of one dimension, with the data it rests on.

    `by_strength` is the same ranking where a slight preference counts as half a preference and half a tie; None where
    no vote says how clear it is.
    """

    ratings: Ratings
    elo: Mapping[str, Elo]
    tally: Tally
    undecided: tuple[Undecided, ...]
    by_strength: Ratings | None = None

    @property
    def coverage(self) -> float:
        """Share of the pairs of systems that met at least once, 0 to 1."""
        size = len(self.tally.systems)
        pairs = size * (size - 1) // 2
        return 1 - len(self.tally.unmet) / pairs

    @property
    def islands(self) -> list[list[str]]:
        """Groups of systems with no battle between them, largest first; ratings are comparable only within a group."""
        return [list(group) for group in self.ratings.islands]


def compute_standings(
    battles: Battles, *, position: bool = False, intervals: Intervals = "sandwich", seed: int = 0
) -> Standings:
    """Compute the ranking from battles, with everything a board shows beside it.

    Args:
        battles: in recorded order, which only Elo depends on.
        position: also estimate the effect of being shown first.
        intervals: `sandwich` or `bootstrap`, both by voter.
        seed: seed of the bootstrap.

    Raises:
        BadInput: there are no battles.
    """
    ratings = rate(battles, position=position, intervals=intervals, seed=seed)
    counted = tally(_without_absent(battles))
    neighbours = zip(ratings.systems, ratings.systems[1:], strict=False)
    undecided = tuple(
        Undecided(better.system, worse.system, needed)
        for better, worse in neighbours
        if (needed := votes_needed(ratings, better.system, worse.system)) != 0
    )
    by_strength = None
    if battles.slight is not None and battles.slight.any():
        by_strength = rate(battles, position=position, intervals=intervals, seed=seed, strength=True)
    return Standings(ratings, elo(battles), counted, undecided, by_strength)


def compute_standings_by_dimension(
    battles: Battles, dimensions: Sequence[str], *, position: bool = False, intervals: Intervals = "sandwich"
) -> dict[str, Standings]:
    """Compute the ranking of each dimension, and of all votes together under `pooled`.

    Args:
        battles: all battles.
        dimensions: dimension of each battle.
        position: also estimate the effect of being shown first.
        intervals: `sandwich` or `bootstrap`, both by voter.

    Raises:
        BadInput: the numbers of battles and dimensions differ, a dimension is called `pooled`, or there are no battles.
    """
    if len(dimensions) != len(battles):
        raise BadInput(f"{len(battles)} battles came with {len(dimensions)} dimensions; give one for each")
    labels = np.asarray(dimensions, dtype=object)
    if POOLED in set(dimensions):
        raise BadInput(f"a dimension cannot be called {POOLED!r}; that is the rating over all of them")
    by_dimension = {POOLED: compute_standings(battles, position=position, intervals=intervals)}
    for dimension in sorted(set(dimensions)):
        part = battles.only(np.asarray(labels == dimension, dtype=bool))
        by_dimension[dimension] = compute_standings(part, position=position, intervals=intervals)
    return by_dimension


def _without_absent(battles: Battles) -> Battles:
    """Return the same battles, with only the systems that occur in them."""
    present = np.flatnonzero(np.bincount(np.concatenate([battles.first, battles.second]), minlength=1))
    position = np.zeros(len(battles.systems), dtype=np.intp)
    position[present] = np.arange(len(present))
    return Battles(
        tuple(battles.systems[number] for number in present),
        battles.voters,
        position[battles.first],
        position[battles.second],
        battles.outcome,
        battles.voter,
        battles.covariates,
        battles.slight,
    )
