"""Bradley–Terry ratings with ties, and which systems the votes can and cannot separate.

The model, its likelihood and its information matrix are in `podeval.stats.davidson`. Strengths are shown on Elo's
scale: 400 points are odds of ten to one, and the mean of the systems is 1000. The order of the votes does not matter.

A voter's votes depend on each other, so the voter is the cluster. Intervals come from the cluster-robust covariance
(sandwich), in which every voter's influence on the estimate is what leaving that voter out would change (CR3), with
Student's t. Ranks are corrected for the number of pairs by Holm's procedure: among equal systems the probability of any
false order is at most 5 %. Systems without a chain of battles between them are not ordered: only the prior connects
their ratings.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from podeval.errors import BadInput
from podeval.stats.battles import Battles, count_outcomes
from podeval.stats.davidson import (
    PRIOR,
    covariance,
    fit,
    group_into_rows,
    information_of_a_battle,
    naive_covariance,
)
from podeval.stats.pair_comparisons import holm_pairs

Array = NDArray[np.float64]

CENTRE = 1000.0
POINTS = 400 / math.log(10)
_POWER_Z = float(special.ndtri(0.8))


@dataclass(frozen=True)
class SystemRating:
    """One system's rating with its 95 % interval in Elo points, and the range of ranks that the votes leave open.

    `low` and `high` are None if a single voter judged everything. `wins` does not include ties.
    """

    system: str
    rating: float
    low: float | None
    high: float | None
    best: int
    worst: int
    battles: int
    wins: int
    losses: int
    ties: int
    both_bad: int


@dataclass(frozen=True)
class Effect:
    """The effect of one unit of a covariate for the side that has more of it, in Elo points, with its 95 % interval."""

    name: str
    points: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Ratings:
    """All systems, best first, with the other results of the fit.

    `differences[i, j]` is rating i minus rating j, `errors[i, j]` its standard error (NaN if it cannot be computed),
    and `naive[i, j]` what that error would be if all votes were independent, all in the order of `systems`; `tie_odds`
    is v, the odds of a tie against a win between equals. `apart[i, j]` says whether the votes separate the two.
    `islands` are the groups of systems that battles connect, the largest first; ratings are comparable only inside one.
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

    def get(self, system: str) -> SystemRating:
        """Return the rating of one system.

        Raises:
            BadInput: the system was in no battle.
        """
        match = next((rating for rating in self.systems if rating.system == system), None)
        if match is None:
            systems = ", ".join(rating.system for rating in self.systems)
            raise BadInput(f"{system} was in no counted battle; choose from {systems}")
        return match


def rate(
    battles: Battles,
    *,
    position: bool = False,
    prior: float = PRIOR,
    strength: bool = False,
) -> Ratings:
    """Rate the systems of some battles; tie and both bad count as ties.

    Args:
        battles: in any order. The effect of each of their covariates is estimated and reported, and ratings are those
            at equal covariates.
        position: also estimate the effect of being shown first.
        prior: wins and losses against a system of average strength that are added for each system.
        strength: count a slight preference as half a preference and half a tie.

    Raises:
        BadInput: there are no battles, or they do not differ in a covariate.
    """
    # Check what can be estimated.
    for name, values in battles.covariates.items():
        if not np.any(values):
            raise BadInput(
                f"both sides of every battle have the same {name}, so its effect cannot be estimated; leave it out"
            )
    if not len(battles):
        raise BadInput("there are no votes to rate; ties and both bad count, skipped battles do not")
    # Fit, and bring the strengths to Elo's scale.
    rows = group_into_rows(battles, position, strength)
    fitted = fit(rows, prior)
    size = len(rows.systems)
    strengths = POINTS * (fitted[:size] - fitted[:size].mean())
    # Intervals.
    variances = np.full((fitted.size - 1, fitted.size - 1), np.nan)
    if rows.voters > 1:
        variances = POINTS**2 * covariance(rows, fitted, prior)[:-1, :-1]
    reach = float(special.stdtrit(max(1, rows.voters - 1), 0.975))
    spread = _spread_by_sandwich(POINTS * fitted[:-1], variances, size, reach)
    # Which systems the votes separate, and so the ranks.
    order = np.argsort(-strengths, kind="stable")
    counts = count_outcomes(battles)[rows.systems]
    member = _find_islands(rows.a, rows.b, size)
    same = member[:, None] == member
    apart = holm_pairs(np.where(same, _chance(strengths, spread.errors, rows.voters), np.nan))
    beats = (spread.below > 0) & apart
    # The results, best system first.
    names = [battles.systems[number] for number in rows.systems]
    systems = tuple(
        SystemRating(
            names[i],
            CENTRE + float(strengths[i]),
            *_to_bounds(CENTRE + spread.ratings[i]),
            best=int(1 + beats[:, i].sum()),
            worst=int(size - beats[i].sum()),
            battles=int(counts[i].sum()),
            wins=int(counts[i, 0]),
            losses=int(counts[i, 1]),
            ties=int(counts[i, 2]),
            both_bad=int(counts[i, 3]),
        )
        for i in order
    )
    effects = zip(rows.covariates, POINTS * fitted[size:-1], spread.effects, strict=True)
    return Ratings(
        systems=systems,
        effects=tuple(Effect(name, float(points), *_to_bounds(bounds)) for name, points, bounds in effects),
        tie_odds=float(math.exp(fitted[-1])),
        votes=len(battles),
        voters=rows.voters,
        differences=(strengths[:, None] - strengths)[np.ix_(order, order)],
        errors=spread.errors[np.ix_(order, order)],
        naive=POINTS * _errors(naive_covariance(rows, fitted, prior)[:size, :size])[np.ix_(order, order)],
        apart=(beats | beats.T)[np.ix_(order, order)],
        islands=_name_islands(member, names),
    )


def votes_needed(ratings: Ratings, first: str, second: str) -> int | None:
    """Return how many more votes between two systems would separate them, if their difference is what it seems now.

    Counts votes from as many voters as now, for an interval of the difference that excludes zero with a power of 80 %:
    the information the difference lacks, divided by what a vote between the two adds, times the ratio of the
    voter-robust variance to that of independent votes in the present votes. The interval is the one that the next pair
    has to pass in Holm's procedure: 95 % if one pair is left undecided, wider if several are.

    Returns:
        0 if the two are separated already; None if nothing can be said: there is one voter, no difference, or no
        chain of battles between them.

    Raises:
        BadInput: a system was in no battle.
    """
    # What the votes say of the two so far.
    index = {rating.system: number for number, rating in enumerate(ratings.systems)}
    i, j = index[ratings.get(first).system], index[ratings.get(second).system]
    apart, error = abs(float(ratings.differences[i, j])), float(ratings.errors[i, j])
    together = any(first in island and second in island for island in ratings.islands)
    if math.isnan(error) or apart < 1e-6 or not together:
        return None
    if ratings.apart[i, j]:
        return 0
    # The information that the next pair in Holm's procedure needs, and what one vote adds to it.
    pairs = sum(len(island) * (len(island) - 1) // 2 for island in ratings.islands)
    undecided = max(1, pairs - int(ratings.apart.sum()) // 2)
    information_needed = ((float(special.ndtri(1 - 0.025 / undecided)) + _POWER_Z) / apart) ** 2
    dependence = (error / float(ratings.naive[i, j])) ** 2
    brought = information_of_a_battle(apart / POINTS, ratings.tie_odds) / POINTS**2 / dependence
    return math.ceil(max(0.0, information_needed - 1 / error**2) / brought) or 1


def _find_islands(a: NDArray[np.intp], b: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Return for each system the number of its island: the systems that battles connect."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    met = sparse.coo_array((np.ones(len(a)), (a, b)), shape=(size, size))
    member: NDArray[np.intp] = connected_components(met, directed=False)[1].astype(np.intp)
    return member


def _name_islands(member: NDArray[np.intp], names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the islands as names of their systems, the largest first."""
    groups = [tuple(names[i] for i in np.flatnonzero(member == number)) for number in range(int(member.max()) + 1)]
    return tuple(sorted(groups, key=len, reverse=True))


def _chance(strengths: Array, errors: Array, voters: int) -> Array:
    """Return the two-sided p of Student's test of each difference, with voters - 1 degrees of freedom.

    NaN if there are no errors.
    """
    apart = np.abs(strengths[:, None] - strengths)
    t = np.divide(apart, errors, out=np.zeros_like(apart), where=errors > 0)
    p: Array = np.where(np.isnan(errors), np.nan, 2 * special.stdtr(max(1, voters - 1), -t))
    return p


@dataclass(frozen=True)
class _Spread:
    """Bounds of ratings (size, 2) about 0 and of effects (k, 2), lower bounds of differences, and their errors."""

    ratings: Array
    effects: Array
    below: Array
    errors: Array


def _spread_by_sandwich(fitted: Array, variances: Array, size: int, reach: float) -> _Spread:
    centre = np.eye(size) - 1 / size
    strengths, covariances = centre @ fitted[:size], variances[:size, :size]
    half = reach * np.sqrt(np.maximum(0.0, np.diag(centre @ covariances @ centre)))
    errors = _errors(covariances)
    effects, far = fitted[size:], reach * np.sqrt(np.diag(variances)[size:])
    return _Spread(
        ratings=np.stack([strengths - half, strengths + half], axis=1),
        effects=np.stack([effects - far, effects + far], axis=1),
        below=strengths[:, None] - strengths - reach * errors,
        errors=errors,
    )


def _errors(covariances: Array) -> Array:
    """Return the standard errors of all differences."""
    variances = np.diag(covariances)
    errors: Array = np.sqrt(np.maximum(0.0, variances[:, None] + variances - 2 * covariances))
    return errors


def _to_bounds(bounds: Array) -> tuple[float | None, float | None]:
    low, high = (None if math.isnan(bound) else float(bound) for bound in bounds)
    return low, high
