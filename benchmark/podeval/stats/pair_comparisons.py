"""Which systems beat which: each two are compared on the items that both were scored on, and on nothing else.

What a third system lacks changes no verdict, and no system gains by what it lacks itself. How often equal systems are
separated, with and without gaps: `docs/decisions/ranks.md`, produced by `tests/studies/ranks.py`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput
from podeval.stats.bootstrap_draws import compare_draws, draw_clusters, find_means_above_zero
from podeval.stats.clusters import (
    NO_SPREAD,
    bound_alike,
    compute_pulls,
    expand_tail,
    make_membership,
    tabulate_values,
)
from podeval.stats.multiple import holm_pairs

Array = NDArray[np.float64]

ENOUGH_SHARED = 0.9
"""Share of the clusters of the system with more of them that a pair must have in common to be comparable.

Two systems that each lack at most a twentieth of the items always have them.
"""


@dataclass(frozen=True)
class PairVerdicts:
    """Which of some systems beats which.

    Attributes:
        systems: the names, in the order of the rows and columns.
        beats: whether the system of the row beats that of the column.
        shared: the number of clusters that two systems share; on the diagonal, those of one system.
        comparable: whether a pair shares enough clusters; True on the diagonal.
    """

    systems: tuple[str, ...]
    beats: NDArray[np.bool_]
    shared: NDArray[np.intp]
    comparable: NDArray[np.bool_]

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The best and the worst rank of each system that is comparable with another; 1 is the first rank.

        The best is 1 + the number of systems that beat it; the worst is the number of systems that it does not beat,
        itself included. So a pair that is not comparable widens both ranges.
        """
        compared = self.comparable.sum(axis=1) > 1
        best, worst = 1 + self.beats.sum(axis=0), compared.sum() - self.beats.sum(axis=1)
        places = zip(self.systems, compared, best.tolist(), worst.tolist(), strict=True)
        return {system: (first, last) for system, in_field, first, last in places if in_field}

    @property
    def clusters(self) -> dict[str, int]:
        """The fewest clusters that each system shares with a system it is comparable with."""
        counts = np.where(self.comparable, self.shared, self.shared.max()).min(axis=1)
        return dict(zip(self.systems, counts.tolist(), strict=True))


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
    y = tabulate_values([scores[system] for system in systems], items)
    table = _PairTable(y if higher_is_better else -y, make_membership(items, clusters))
    # Student's test of each claim to be ahead; the one that is behind makes none.
    shared, p = (np.array(rows) for rows in zip(*map(table.test_claims, range(len(systems))), strict=True))
    sizes = shared.diagonal()
    comparable = shared >= np.maximum(1, ENOUGH_SHARED * np.maximum.outer(sizes, sizes))
    p[~comparable] = np.nan
    ahead = holm_pairs(np.minimum(p, p.T), level) & (p < p.T)
    # The bootstrap of those claims that pass it.
    beats = np.zeros(p.shape, dtype=bool)
    for index in np.flatnonzero(ahead.any(axis=1)).tolist():
        others = np.flatnonzero(ahead[index])
        whole = table.whole[others] & table.whole[index]
        if whole.any():
            beats[index, others[whole]] = table.draw_whole(index, others[whole], rounds, seed, level)
        if not whole.all():
            beats[index, others[~whole]] = table.draw_common(index, others[~whole], rounds, seed, level)
    return PairVerdicts(tuple(systems), beats, shared, comparable)


class _PairTable:
    """The values of all systems, higher ones better, with NaN for what a system lacks."""

    def __init__(self, better: Array, membership: Any) -> None:
        self._present = ~np.isnan(better)
        self._better, self._membership = np.where(self._present, better, 0.0), membership
        self.whole: Any = self._present.all(axis=0)
        self._drawn_means: Array | None = None

    def _subtract(self, index: int, others: Any, filled: bool = False) -> tuple[Array, NDArray[np.bool_]]:
        """Return the differences of a system from others, `(items, others)`, 0 where one lacks the item, and whether
        both have it; one column for all where nobody lacks any.

        Args:
            index: the system.
            others: those it is compared with, by index.
            filled: whether the pair's worst difference for the system takes the place of each that it lacks.
        """
        if self.whole.all():
            return self._better[:, [index]] - self._better[:, others], self._present[:, [index]]
        both = self._present[:, others] & self._present[:, [index]]
        differences = np.where(both, self._better[:, [index]] - self._better[:, others], 0.0)
        if filled:
            worst = np.where(both, differences, np.inf).min(axis=0)
            differences = np.where(self._present[:, others] & ~both, worst, differences)
            both = self._present[:, others]
        return differences, both

    def test_claims(self, index: int) -> tuple[NDArray[np.intp], Array]:
        """Return the clusters that a system shares with each, and the two-sided p-value of its claim to be ahead.

        The p-value is 1 where it is not ahead, and NaN with fewer than two common clusters.
        """
        shared, p = self._test(*self._subtract(index, slice(None)))
        if not self.whole[index]:
            p = np.maximum(p, self._test(*self._subtract(index, slice(None), filled=True))[1])
        return shared, p

    def _test(self, differences: Array, both: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Array]:
        from scipy import special

        sizes = self._membership @ both.astype(np.float64)
        shared = (sizes > 0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = differences.sum(axis=0) / both.sum(axis=0)
            pulls = compute_pulls(self._membership @ np.where(both, differences - means, 0.0), sizes)
            errors = np.sqrt(np.einsum("ij,ij->j", pulls, pulls) / (shared * (shared - 1)))
            # Student's test; without any spread, the bound of `bound_alike` instead.
            alike = errors <= NO_SPREAD * np.abs(means)
            p = 2 * special.stdtr(shared - 1, -means / np.where(alike, 1.0, errors))
        p = np.where(alike, bound_alike(shared), p)
        p[means <= 0] = 1.0
        shared = np.broadcast_to(shared, p.shape)
        return shared, np.where(shared < 2, np.nan, p)

    def draw_whole(self, index: int, others: NDArray[np.intp], rounds: int, seed: int, level: float) -> Any:
        """Return which others a system is ahead of by the bootstrap, where none of them lacks anything."""
        membership, better = self._membership, self._better
        count, sizes = membership.shape[0], membership.sum(axis=1)
        draws, tail = draw_clusters(count, rounds, seed), expand_tail(count, level)
        drawn_items = (draws @ sizes)[:, None]
        if self._drawn_means is None:
            self._drawn_means = (draws @ (membership @ better)) / drawn_items
        above, unclear = compare_draws(self._drawn_means, index, others, tail)
        if unclear.any():
            # Differences are summed, not means subtracted: equal systems then differ by exactly zero.
            differences = membership @ (better[:, [index]] - better[:, others[unclear]])
            above[unclear] = np.quantile((draws @ differences) / drawn_items, tail, axis=0) > 0
        return above

    def draw_common(self, index: int, others: NDArray[np.intp], rounds: int, seed: int, level: float) -> Any:
        """Return the same where some lack something: on common items, and with the system's own gaps filled."""
        ahead = np.ones(len(others), dtype=bool)
        for filled in (False,) if self.whole[index] else (False, True):
            differences, both = self._subtract(index, others, filled)
            sums, sizes = self._membership @ differences, self._membership @ both.astype(np.float64)
            ahead &= find_means_above_zero(sums, sizes, rounds, seed, lambda count: expand_tail(count, level))
        return ahead
