"""Bradley–Terry ratings with ties, and which systems the votes can and cannot separate.

The model, its likelihood and its information matrix are in `podeval.stats.davidson`. Strengths are shown on Elo's
scale: a difference of 400 points means odds of ten to one, and the mean of the systems is 1000. The order of the votes
does not matter.

One voter's votes are not independent of each other, so the voter is the cluster. Intervals come from the cluster-robust
covariance (sandwich), with Student's t. In this covariance, a voter's influence is the change in the estimate if that
voter is left out (CR3). The degrees of freedom follow from the voters who judged the system, and are fewer if a few of
them cast most of the votes. Ranks are corrected for the number of pairs by Holm's procedure: among equal systems the
probability of any false order is at most 5 %. Systems that no chain of battles connects are not ordered, because only
the prior relates their ratings.

A system is provisional until it has the battles, opponents and voters that `NEEDED` requires. Until then it has no rank
and no interval, it is not compared with other systems, and the mean of 1000 excludes it. The votes on it are part of
the fit, because they provide information about its opponents, as all votes do.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from podeval.errors import BadInput
from podeval.stats.battles import Battles, count_outcomes
from podeval.stats.davidson import (
    PRIOR,
    Rows,
    covariance,
    fit,
    group_into_rows,
    information_of_a_battle,
    naive_covariance,
)
from podeval.stats.pair_comparisons import holm_pairs
from podeval.stats.voter_weights import LoweredVotes, weigh_votes

Array = NDArray[np.float64]

CENTRE = 1000.0
POINTS = 400 / math.log(10)
NEEDED = {"battles": 10, "opponents": 3, "voters": 5}
"""The minimum numbers of battles, opponents and voters for a ranked system; if there are fewer possible opponents, all
of them are required."""

Missing = Mapping[str, Mapping[str, int]]
"""The evidence that a provisional system lacks: `missing` out of `needed` battles, opponents or voters."""

_POWER_Z = float(special.ndtri(0.8))


@dataclass(frozen=True)
class SystemRating:
    """One system's rating with its 95 % interval in Elo points, and the range of ranks that the votes allow.

    `low`, `high`, `best` and `worst` are None while the system is `provisional`. `wins` does not include ties;
    `opponents` is the number of systems that it met, `voters` the number of people who judged it, and `provisional`
    lists the evidence that it lacks.
    """

    system: str
    rating: float
    low: float | None
    high: float | None
    best: int | None
    worst: int | None
    battles: int
    wins: int
    losses: int
    ties: int
    both_bad: int
    opponents: int
    voters: int
    provisional: Missing | None


@dataclass(frozen=True)
class Effect:
    """The effect in Elo points of one more unit of a covariate, with its 95 % interval."""

    name: str
    points: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Ratings:
    """All systems, best first, with the provisional ones at the end, and the other results of the fit.

    The tables of pairs are in the order of `systems`: `differences[i, j]` is rating i minus rating j, `errors[i, j]` is
    its standard error (NaN if it cannot be computed), and `naive[i, j]` is the standard error that it would have if all
    votes were independent. `tie_odds` is v, the odds of a tie against a win between equals. `apart[i, j]` is true if
    the votes separate the two. `islands` are the groups of systems that battles connect, the largest first; ratings are
    comparable only within an island. `lowered` lists the groups (cohorts of voters, or fans of a system) whose votes
    are down-weighted.
    """

    systems: tuple[SystemRating, ...]
    effects: tuple[Effect, ...]
    tie_odds: float
    votes: int
    voters: int
    differences: Array
    errors: Array
    naive: Array
    apart: NDArray[np.bool_]
    islands: tuple[tuple[str, ...], ...]
    lowered: tuple[LoweredVotes, ...] = ()

    @cached_property
    def ranked_islands(self) -> list[set[str]]:
        """The systems of each island that are not provisional."""
        ranked = {rating.system for rating in self.systems if rating.provisional is None}
        return [ranked.intersection(island) for island in self.islands]

    def get(self, system: str) -> SystemRating:
        """Return the rating of one system.

        Raises:
            BadInput: the system was not in any battle.
        """
        match = next((rating for rating in self.systems if rating.system == system), None)
        if match is None:
            systems = ", ".join(rating.system for rating in self.systems)
            raise BadInput(f"{system} was not in any counted battle; choose from {systems}")
        return match


def rate(
    battles: Battles,
    *,
    position: bool = False,
    prior: float = PRIOR,
    strength: bool = False,
    robust: bool = False,
) -> Ratings:
    """Rate the systems in battles; both bad counts as a tie.

    Args:
        battles: battles in any order. The effect of each of their covariates is estimated and reported, and ratings
            apply to battles with equal covariates.
        position: whether to also estimate the effect of being shown first.
        prior: number of wins and losses against a system of average strength that are added for each system.
        strength: whether to count a slight preference as half a preference and half a tie.
        robust: whether to down-weight votes on a system that come from cohorts of voters who differ from everyone else
            about it, or from its fans if there are too many, as `podeval.stats.voter_weights` describes; the battles
            must be in recorded order.

    Raises:
        BadInput: there are no battles, or a covariate does not vary among them.
    """
    # Check which parameters can be estimated.
    for name, values in battles.covariates.items():
        if not np.any(values):
            raise BadInput(
                f"both sides of every battle have the same {name}, so its effect cannot be estimated; leave it out"
            )
    if not len(battles):
        raise BadInput("there are no votes to rate: skipped battles do not count as votes, but ties and both bad do")
    # Fit, and convert the strengths to Elo's scale.
    rows, fitted, lowered = _fit(battles, position, prior, strength, robust)
    size, names = len(rows.systems), [battles.systems[number] for number in rows.systems]
    counts = count_outcomes(battles)[rows.systems]
    met, voters, freedom = _count_company(rows)
    has = np.stack([counts.sum(axis=1), met.sum(axis=0), voters], axis=1)
    needed = np.array([least if name != "opponents" else min(least, size - 1) for name, least in NEEDED.items()])
    ranked = np.all(has >= needed, axis=1)
    share = (ranked if ranked.any() else np.ones(size)) / max(1, ranked.sum() or size)
    strengths = POINTS * (fitted[:size] - share @ fitted[:size])
    # Intervals.
    variances = np.full((fitted.size - 1, fitted.size - 1), np.nan)
    if rows.voters > 1:
        variances = POINTS**2 * covariance(rows, fitted, prior)[:-1, :-1]
    of_ratings, errors = _spread_by_sandwich(strengths, variances[:size, :size], share, freedom)
    effects = POINTS * fitted[size:-1]
    far = np.sqrt(np.diag(variances)[size:]) * float(special.stdtrit(max(1, rows.voters - 1), 0.975))
    # Find the systems that the votes separate; they determine the ranks.
    order = np.lexsort((-strengths, ~ranked))
    member, linked = _find_islands(met), _find_islands(met & ranked & ranked[:, None])
    comparable = (linked[:, None] == linked) & ranked & ranked[:, None]
    (apart,) = holm_pairs(np.where(comparable, _chance(strengths, errors, freedom), np.nan))
    beats = (strengths[:, None] > strengths) & apart
    # The results, best system first.
    table = np.column_stack([has[:, 0], counts, has[:, 1:]]).tolist()
    ranks = np.stack([1 + beats.sum(axis=0), ranked.sum() - beats.sum(axis=1)], axis=1).tolist()
    places: list[Any] = [
        [*_to_bounds(CENTRE + of_ratings[i]), *ranks[i]] if ranked[i] else [None] * 4 for i in range(size)
    ]
    systems = tuple(
        SystemRating(names[i], CENTRE + float(strengths[i]), *[*places[i], *table[i], _find_missing(has[i], needed)])
        for i in order
    )
    return Ratings(
        systems=systems,
        effects=tuple(
            Effect(name, float(points), *_to_bounds(np.array([points - half, points + half])))
            for name, points, half in zip(rows.covariates, effects, far, strict=True)
        ),
        tie_odds=float(math.exp(fitted[-1])),
        votes=len(battles),
        voters=rows.voters,
        differences=(strengths[:, None] - strengths)[np.ix_(order, order)],
        errors=errors[np.ix_(order, order)],
        naive=POINTS * _errors(naive_covariance(rows, fitted, prior)[:size, :size])[np.ix_(order, order)],
        apart=(beats | beats.T)[np.ix_(order, order)],
        islands=_name_islands(member, names),
        lowered=lowered,
    )


def _fit(
    battles: Battles, position: bool, prior: float, strength: bool, robust: bool
) -> tuple[Rows, Array, tuple[LoweredVotes, ...]]:
    """Return the grouped votes with their weights, the fitted parameters, and the groups with down-weighted votes."""
    rows = group_into_rows(battles, position, strength)
    fitted = fit(rows, prior)
    if not robust:
        return rows, fitted, ()
    first = np.full(int(battles.voter.max()) + 1, -1)
    first[battles.voter[::-1]] = np.arange(len(battles))[::-1]
    arrival = np.argsort(np.argsort(first[first >= 0]))
    names = [battles.systems[number] for number in rows.systems]
    rows, lowered = weigh_votes(rows, fitted, names, arrival)
    return rows, fit(rows, prior) if lowered else fitted, lowered


def votes_needed(ratings: Ratings, first: str, second: str) -> int | None:
    """Return how many more votes between two systems would separate them if the current estimate of their difference is
    right.

    The count assumes that the number of voters stays the same and that the interval of the difference should exclude
    zero with a power of 80 %. The count is the information about the difference that is still missing, divided by the
    information in one vote between the two, and multiplied by the variance inflation in the votes so far: the
    voter-robust variance divided by the variance of independent votes. The interval is the one required for the
    next pair in Holm's procedure: 95 % if one pair is undecided, wider if several are.

    Returns:
        0 if the two are already separated; None if unknown: one of them is provisional, there is no difference, or no
        chain of battles connects them.

    Raises:
        BadInput: a system was not in any battle.
    """
    # The result of the votes so far for these two.
    names = [rating.system for rating in ratings.systems]
    i, j = (names.index(ratings.get(name).system) for name in (first, second))
    apart, error = abs(float(ratings.differences[i, j])), float(ratings.errors[i, j])
    together = any({first, second} <= island for island in ratings.ranked_islands)
    if math.isnan(error) or apart < 1e-6 or not together:
        return None
    if ratings.apart[i, j]:
        return 0
    # The information that the next pair in Holm's procedure needs, and what one vote adds to it.
    pairs = sum(len(island) * (len(island) - 1) // 2 for island in ratings.ranked_islands)
    undecided = max(1, pairs - int(ratings.apart.sum()) // 2)
    information_needed = ((float(special.ndtri(1 - 0.025 / undecided)) + _POWER_Z) / apart) ** 2
    dependence = (error / float(ratings.naive[i, j])) ** 2
    brought = information_of_a_battle(apart / POINTS, ratings.tie_odds) / POINTS**2 / dependence
    return math.ceil(max(0.0, information_needed - 1 / error**2) / brought) or 1


def _find_islands(met: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the number of each system's island: the systems that battles connect."""
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(met, directed=False)[1].astype(np.intp))


def _name_islands(member: NDArray[np.intp], names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the islands, each as the names of its systems, the largest first."""
    groups = [tuple(names[i] for i in np.flatnonzero(member == number)) for number in range(int(member.max()) + 1)]
    return tuple(sorted(groups, key=len, reverse=True))


def _count_company(rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.int64], Array]:
    """Return which systems met, each system's number of voters, and the degrees of freedom of its strength.

    The degrees of freedom are one less than the equivalent number of voters who all judged the system equally often.
    """
    size, voters = len(rows.systems), rows.voters
    met = np.zeros((size, size), dtype=np.bool_)
    met[rows.a, rows.b] = met[rows.b, rows.a] = True
    cells = np.concatenate([rows.a, rows.b]) * voters + np.tile(rows.voter, 2)
    judged = np.bincount(cells, np.tile(rows.weight, 2), size * voters).reshape(size, voters)
    shares = judged.sum(axis=1) ** 2 / np.einsum("ij,ij->i", judged, judged)
    return met, np.count_nonzero(judged, axis=1), np.maximum(1.0, shares - 1)


def _find_missing(has: NDArray[np.int64], needed: NDArray[np.int64]) -> Missing | None:
    numbers = zip(NEEDED, (needed - has).tolist(), needed.tolist(), strict=True)
    return {name: {"missing": missing, "needed": least} for name, missing, least in numbers if missing > 0} or None


def describe_missing(provisional: Missing) -> str:
    """Return a phrase such as `4 of 10 battles, 2 of 5 voters missing`."""
    return ", ".join(f"{part['missing']} of {part['needed']} {name}" for name, part in provisional.items()) + " missing"


def _chance(strengths: Array, errors: Array, freedom: Array) -> Array:
    """Return the two-sided p-value of Student's test for each difference, with the lower degrees of freedom of the two.

    The result is NaN if there are no standard errors.
    """
    apart = np.abs(strengths[:, None] - strengths)
    t = np.divide(apart, errors, out=np.zeros_like(apart), where=errors > 0)
    return np.asarray(np.where(np.isnan(errors), np.nan, 2 * special.stdtr(np.minimum(freedom[:, None], freedom), -t)))


def _spread_by_sandwich(strengths: Array, covariances: Array, share: Array, freedom: Array) -> tuple[Array, Array]:
    """Return the 95 % bounds of the strengths (size, 2), and the standard errors of their differences.

    Args:
        strengths: the estimated strength of each system, shape (size,).
        covariances: the covariance matrix of these strengths.
        share: the weight of each system in the mean that serves as the centre.
        freedom: the degrees of freedom of each strength.
    """
    centre = np.eye(len(strengths)) - share
    half = special.stdtrit(freedom, 0.975) * np.sqrt(np.maximum(0.0, np.diag(centre @ covariances @ centre.T)))
    return np.stack([strengths - half, strengths + half], axis=1), _errors(covariances)


def _errors(covariances: Array) -> Array:
    """Return the standard errors of all differences."""
    variances = np.diag(covariances)
    return np.asarray(np.sqrt(np.maximum(0.0, variances[:, None] + variances - 2 * covariances)))


def _to_bounds(bounds: Array) -> tuple[float | None, float | None]:
    low, high = (None if math.isnan(bound) else float(bound) for bound in bounds)
    return low, high
