"""Which systems beat which: each two are compared on the items that both were scored on, and on nothing else.

What a third system lacks changes no verdict, and no system gains by what it lacks itself. How often equal systems are
separated, with and without gaps: `docs/decisions/ranks.md`, produced by `studies/ranks.py`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from podeval.errors import BadInput
from podeval.stats import bootstrap_draws as clustered


def holm(p: NDArray[np.float64], level: float = 0.95) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected together.

    The k-th smallest of m p-values is compared with (1 - level) / (m - k + 1), the smallest first, until one is too
    large (Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure). Whatever the dependence between the
    tests, the probability that any true hypothesis is rejected is at most 1 - level.

    Args:
        p: p-value of each test, in one dimension; NaN for a test that could not be made, which is not counted.
        level: 1 minus the probability of any false rejection.
    """
    rejected = np.zeros(p.shape, dtype=bool)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    holds = p[order] <= (1 - level) / np.arange(len(order), 0, -1)
    rejected[order[: len(order) if holds.all() else int(np.argmin(holds))]] = True
    return rejected


def holm_pairs(p: NDArray[np.float64], level: float = 0.95) -> NDArray[np.bool_]:
    """Apply `holm` to all pairs of a symmetric table of p-values; the result is symmetric, False on the diagonal."""
    above = np.triu_indices(len(p), 1)
    table = np.zeros(p.shape, dtype=bool)
    table[above] = holm(p[above], level)
    both: NDArray[np.bool_] = table | table.T
    return both


# Share of the clusters of the system with more of them that a pair must have in common to be comparable. Two systems
# that each lack at most a twentieth of the items have them.
ENOUGH_SHARED = 0.9


@dataclass(frozen=True)
class PairVerdicts:
    """The outcome of comparing each two of some systems.

    Attributes:
        ranges: the best and the worst rank of each system that is comparable with another; 1 is the first rank.
        clusters: the fewest clusters that each of them shares with a system it is comparable with.
        shared: for each two systems, in the order of their names, the number of clusters they share; on the diagonal,
            those of one system.
    """

    ranges: dict[str, tuple[int, int]]
    clusters: dict[str, int]
    shared: NDArray[np.intp]


def compare_pairs(
    scores: Mapping[str, Mapping[str, float]],
    higher_is_better: bool,
    clusters: Mapping[str, Hashable] | None = None,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> PairVerdicts:
    """Compare each two systems, as `paired_bootstrap_ranks` says; the arguments are those of that function.

    Raises:
        BadInput: there are no systems, a value that is not finite, or an item without a cluster.
    """
    if not scores:
        raise BadInput("there is no system to rank")
    systems, items = sorted(scores), sorted(set().union(*scores.values()))
    table = _PairTable(
        clustered.tabulate_values([scores[system] for system in systems], items) * (1 if higher_is_better else -1),
        clustered.make_membership(items, clusters),
    )
    # Student's test of each claim to be ahead; the one that is behind makes none.
    shared, p = (np.array(rows) for rows in zip(*map(table.test_claims, range(len(systems))), strict=True))
    sizes = shared.diagonal()
    comparable = shared >= np.maximum(1, ENOUGH_SHARED * np.maximum.outer(sizes, sizes))
    # Of two that are not comparable, the one with fewer clusters is compared with nobody.
    lacking = (~comparable & (sizes > sizes[:, None])).any(axis=1)
    comparable &= ~(lacking[:, None] | lacking)
    p[~comparable] = np.nan
    ahead = holm_pairs(np.minimum(p, p.T), level) & (p < p.T)
    # The bootstrap of the claims that pass it.
    beats = np.zeros(p.shape, dtype=bool)
    for index in np.flatnonzero(ahead.any(axis=1)).tolist():
        beats[index, ahead[index]] = table.draw_claims(index, np.flatnonzero(ahead[index]), rounds, seed, level)
    # A pair that is not comparable widens both ranges; a system that is comparable with nobody has none.
    field = np.flatnonzero(comparable.sum(axis=1) > 1)
    best, worst = 1 + beats.sum(axis=0), len(field) - beats.sum(axis=1)
    return PairVerdicts(
        {systems[index]: (int(best[index]), int(worst[index])) for index in field},
        {systems[index]: int(shared[index, comparable[index]].min()) for index in field},
        shared,
    )


class _PairTable:
    """The values of all systems, higher ones better, with NaN for what a system lacks."""

    def __init__(self, better: NDArray[np.float64], membership: Any) -> None:
        self._present = ~np.isnan(better)
        self._better, self._membership = np.where(self._present, better, 0.0), membership
        self._whole: Any = self._present.all(axis=0)
        self._drawn_means: NDArray[np.float64] | None = None

    def _subtract(self, index: int, others: Any, filled: bool = False) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the differences of a system from others, `(items, others)`, 0 where one lacks the item, and whether
        both have it; one column for all where nobody lacks any.

        Args:
            index: the system.
            others: those it is compared with, by index.
            filled: whether the system is behind by a standard deviation of their differences where it lacks an item.
        """
        differences = self._better[:, [index]] - self._better[:, others]
        if self._whole.all():
            return differences, self._present[:, [index]]
        theirs = self._present[:, others]
        both = theirs & self._present[:, [index]]
        if filled:
            # Where they share nothing there is no spread, and no test either.
            spread = np.std(differences, axis=0, where=both | ~both.any(axis=0))
            return np.where(both, differences, np.where(theirs, -spread, 0.0)), theirs
        return np.where(both, differences, 0.0), both

    def test_claims(self, index: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the clusters that a system shares with each, and the two-sided p-value of its claim to be ahead.

        The p-value is 1 where it is not ahead, and NaN with fewer than two common clusters.
        """
        shared, p = self._test(*self._subtract(index, slice(None)))
        if self._whole[index]:
            return shared, p
        return shared, np.maximum(p, self._test(*self._subtract(index, slice(None), filled=True))[1])

    def _test(
        self, differences: NDArray[np.float64], both: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        sizes = self._membership @ both.astype(np.float64)
        shared = np.broadcast_to((sizes > 0).sum(axis=0), differences.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            means = differences.sum(axis=0) / both.sum(axis=0)
            pulls = clustered.compute_pulls(self._membership @ np.where(both, differences - means, 0.0), sizes)
            errors = np.sqrt(np.einsum("ij,ij->j", pulls, pulls) / (shared * (shared - 1)))
            # Student's test; without any spread, the bound of `bound_alike` instead.
            alike = errors <= clustered.NEAR_ZERO * np.abs(means)
            students_p = 2 * special.stdtr(shared - 1, -means / np.where(alike, 1.0, errors))
        claimed_p = np.where(means > 0, np.where(alike, clustered.bound_alike(shared), students_p), 1.0)
        return shared, np.where(shared < 2, np.nan, claimed_p)

    def draw_claims(self, index: int, others: NDArray[np.intp], rounds: int, seed: int, level: float) -> Any:
        """Return which others a system is ahead of by the bootstrap, also with its own gaps filled."""
        count, sizes = self._membership.shape[0], self._membership.sum(axis=1)
        if self._drawn_means is None:
            draws = clustered.draw_clusters(count, rounds, seed)
            self._drawn_means = (draws @ (self._membership @ self._better)) / (draws @ sizes)[:, None]
        # The means of systems that lack nothing are drawn once; of others, and close ones, the differences.
        ahead, unclear = clustered.compare_draws(self._drawn_means, index, others, clustered.expand_tail(count, level))
        unclear |= ~(self._whole[others] & self._whole[index])
        ahead |= unclear
        for filled in (False,) if self._whole[index] else (False, True):
            differences, both = self._subtract(index, others[unclear], filled)
            ahead[unclear] &= clustered.find_means_above_zero(
                self._membership @ differences, self._membership @ both.astype(np.float64), rounds, seed, level
            )
        return ahead
