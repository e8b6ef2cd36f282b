"""Find the systems that beat others: two systems are compared only on items on which both were scored.

Items that a third system lacks do not change a verdict, and a system never gains from items that it lacks itself. For
how often equal systems are separated, with and without gaps, see `docs/decisions/ranks.md`, produced by
`studies/ranks.py`.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from podeval.errors import BadInput

Array = NDArray[np.float64]

_DRAWN_AT_ONCE = 20_000_000
"""Maximum number of bootstrap values that are drawn together and cached."""

NEAR_ZERO, _ROUNDED_PLACE = 1e-9, 1e-6
"""Largest rounding errors: of a difference relative to the means, and of a quantile's position among the draws."""


def tabulate_values(columns: Sequence[Mapping[str, float]], items: Sequence[str]) -> Array:
    """Arrange values by item as columns of a table, `(items, columns)`, with NaN for missing values.

    Raises:
        BadInput: a value is not finite.
    """
    y = np.array([[column.get(item, math.nan) for column in columns] for item in items], dtype=np.float64)
    if np.isfinite(y).sum() < sum(item in column for column in columns for item in items):
        raise BadInput("the scores to rank contain NaN or infinity; leave unscored items out first")
    return y


def make_membership(items: Sequence[str], clusters: Mapping[str, Hashable] | None) -> Any:
    """Return a sparse matrix of ones and zeros that assigns items to clusters, `(clusters, items)`.

    Args:
        items: the items, in the order of the columns.
        clusters: the cluster of each item; None makes each item its own cluster.

    Raises:
        BadInput: an item has no cluster.
    """
    from scipy import sparse

    missing = [item for item in items if clusters is not None and item not in clusters]
    if missing:
        raise BadInput(f"{len(missing)} items have no cluster, such as {missing[0]!r}; give a cluster for each item")
    labels = items if clusters is None else [clusters[item] for item in items]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    places = [numbers[label] for label in labels], range(len(labels))
    return sparse.csr_array((np.ones(len(labels)), places), shape=(len(numbers), len(labels)))


def compute_pulls(residuals: Array, sizes: Array) -> Array:
    """Return G times each cluster's influence on a mean; without the cluster, the mean would be lower by
    `pull / (G - 1)`.

    Args:
        residuals: sum of the weighted residuals of each cluster, `(clusters,)` or `(clusters, columns)`.
        sizes: weight of each cluster, in the same shape; 0 for a cluster that is not in the mean.
    """
    rest = sizes.sum(axis=0) - sizes
    return np.asarray(
        residuals * ((sizes > 0).sum(axis=0) - 1) / (rest if rest.ndim == residuals.ndim else rest[:, None])
    )


def bound_alike(clusters: int | NDArray[np.intp]) -> Any:
    """Bound the probability that two equal systems differ by the same nonzero amount in every cluster.

    Of two draws from one distribution, one exceeds the other by a given amount with probability sum p(x) p(x + d),
    which is at most 1/4 (Motzkin and Straus 1965); over all amounts, the powers of these probabilities sum to at most 4
    (1/4) ** clusters.
    """
    return 4.0 ** (1.0 - clusters)


def find_student_quantile(freedom: int, level: float) -> float:
    """Return the reach of Student's interval at this level, in standard errors."""
    return float(special.stdtrit(freedom, (1 + level) / 2))


def expand_tail(count: int, level: float) -> float:
    """Return the tail of the expanded percentile interval for a number of clusters."""
    return float(special.ndtr(-math.sqrt(count / (count - 1)) * find_student_quantile(count - 1, level)))


class Draws:
    """The number of times each cluster is drawn in each round, `(rounds, clusters)`; large tables are stored as blocks
    of two-byte counts.

    Together, the blocks contain the same draws as a single call would; with this many clusters, no count exceeds
    65,535.
    """

    def __init__(self, count: int, rounds: int, seed: int) -> None:
        rows = max(1, _DRAWN_AT_ONCE // count)
        dtype = np.float64 if rows >= rounds else np.uint16
        generator, shares = np.random.default_rng(seed), np.full(count, 1 / count)
        self._blocks: list[NDArray[Any]] = [
            generator.multinomial(count, shares, size=min(rows, rounds - start)).astype(dtype)
            for start in range(0, rounds, rows)
        ]

    def __matmul__(self, of_clusters: Array) -> Array:
        """Sum values by cluster, `(clusters,)` or `(clusters, columns)`, over the clusters drawn in each round."""
        return np.concatenate([block @ of_clusters for block in self._blocks])


_few_draws = lru_cache(maxsize=8)(Draws)


def draw_clusters(count: int, rounds: int, seed: int) -> Draws:
    """Return the draws for a seed; small tables are cached, because many keys of a comparison share them."""
    return (_few_draws if count * rounds <= _DRAWN_AT_ONCE else Draws)(count, rounds, seed)


def compare_draws(
    drawn_means: Array, index: int, others: NDArray[np.intp], tail: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the systems that are certainly behind a system in all drawn means except the tail, and the systems for
    which this is unclear.

    A quantile is above zero if the share of draws at or below zero is at most that of the tail; these draws can be
    counted without sorting. Subtracting one mean from another causes rounding errors, so a draw near zero may be on
    either side.

    Args:
        drawn_means: drawn means of each system, `(rounds, systems)`.
        index: the system.
        others: the systems for the comparison, by index.
        tail: the quantile of the differences that must be above zero.
    """
    near_zero = NEAR_ZERO * float(np.abs(drawn_means).max(initial=0.0))
    return _count_draws(drawn_means[:, [index]] - drawn_means[:, others], near_zero, tail)


def _count_draws(gaps: Array, near_zero: float, tail: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    rank = tail * (len(gaps) - 1)
    above = (gaps <= near_zero).sum(axis=0) <= math.floor(rank - _ROUNDED_PLACE)
    below = (gaps < -near_zero).sum(axis=0) >= math.floor(rank + _ROUNDED_PLACE) + 2
    return above, ~above & ~below


def find_means_above_zero(sums: Array, sizes: Array, rounds: int, seed: int, level: float) -> NDArray[np.bool_]:
    """Return the means with an expanded percentile interval above zero, each drawn from its own clusters.

    Args:
        sums: sum of the values of each cluster, `(clusters, means)`.
        sizes: number of values of each cluster, in the same shape.
        rounds: number of draws.
        seed: seed of the draws.
        level: confidence level of the interval.
    """
    sizes = np.broadcast_to(sizes, sums.shape)
    counts, above = (sizes > 0).sum(axis=0), np.zeros(sums.shape[1], dtype=bool)
    # Means over the same number of clusters are drawn together; for each mean, only its own clusters are numbered.
    for count in np.unique(counts[counts > 1]):
        chosen = np.flatnonzero(counts == count)
        draws, tail = draw_clusters(int(count), rounds, seed), expand_tail(int(count), level)
        kept = sizes[:, chosen].T > 0
        own_sums, own_sizes = (table[:, chosen].T[kept].reshape(len(chosen), count).T for table in (sums, sizes))
        # A mean has the sign of its sum.
        drawn = draws @ np.ascontiguousarray(own_sums)
        above[chosen], unclear = _count_draws(drawn, 0.0, tail)
        above[chosen[unclear]] = np.quantile(drawn[:, unclear] / (draws @ own_sizes[:, unclear]), tail, axis=0) > 0
    return above


def holm(p: NDArray[np.float64], level: float = 0.95) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected together.

    The k-th smallest of m p-values is compared with (1 - level) / (m - k + 1), in ascending order, until one is too
    large (Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure). However the tests depend on each other,
    the probability that any true hypothesis is rejected is at most 1 - level.

    Args:
        p: p-value of each test, in one dimension; NaN for a test that is impossible and therefore does not count.
        level: 1 minus the probability of any false rejection.
    """
    rejected = np.zeros(p.shape, dtype=bool)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    holds = p[order] <= (1 - level) / np.arange(len(order), 0, -1)
    rejected[order[: len(order) if holds.all() else int(np.argmin(holds))]] = True
    return rejected


def holm_pairs(*tables: NDArray[np.float64], level: float = 0.95) -> list[NDArray[np.bool_]]:
    """Apply `holm` to all pairs of all symmetric tables of p-values together; the diagonals become False."""
    corners = [np.triu_indices(len(p), 1) for p in tables]
    pairs = [p[above] for p, above in zip(tables, corners, strict=True)]
    rejected = np.split(holm(np.concatenate(pairs), level), np.cumsum([len(p) for p in pairs])[:-1])
    both = [np.zeros(p.shape, dtype=bool) for p in tables]
    for table, above, of_table in zip(both, corners, rejected, strict=True):
        table[above] = of_table
    return [table | table.T for table in both]


# Share of the larger system's clusters that a pair must have in common to be comparable. Two systems that each lack at
# most 5 % of the items reach it.
ENOUGH_SHARED = 0.9


@dataclass(frozen=True)
class PairVerdicts:
    """The outcome of comparing systems pairwise.

    Attributes:
        ranges: the best and the worst rank of each system that is comparable with another, with 1 as the first rank.
        clusters: the smallest number of clusters that each of these systems shares with a comparable system.
        shared: number of clusters that two systems share, in the order of their names; on the diagonal, the number of
            clusters that one system has.
    """

    ranges: dict[str, tuple[int, int]]
    clusters: dict[str, int]
    shared: NDArray[np.intp]


Column = tuple[Mapping[str, Mapping[str, float]], bool, Mapping[str, Hashable] | None]
"""Values by system and item, whether higher is better, and the cluster of each item."""


def compare_pairs(
    scores: Mapping[str, Mapping[str, float]],
    higher_is_better: bool,
    clusters: Mapping[str, Hashable] | None = None,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> PairVerdicts:
    """Compare systems pairwise by the rules of `paired_bootstrap_ranks`, which has the same arguments.

    Raises:
        BadInput: there are no systems, a value is not finite, or an item has no cluster.
    """
    return compare_columns([(scores, higher_is_better, clusters)], rounds, seed, level)[0]


def compare_columns(
    columns: Sequence[Column], rounds: int = 2000, seed: int = 0, level: float = 0.95
) -> list[PairVerdicts]:
    """Compare systems pairwise in each column, corrected for the number of pairs in all columns together.

    The probability of any false order among equal systems in any of these columns is therefore at most 1 - level. With
    one column, this is `paired_bootstrap_ranks`.

    Raises:
        BadInput: a column has no systems, a value is not finite, or an item has no cluster.
    """
    if not columns:
        return []
    tests = [_PairTable(*column) for column in columns]
    apart = holm_pairs(*(np.minimum(one.p, one.p.T) for one in tests), level=level)
    return [one.rank(of_one, rounds, seed, level) for one, of_one in zip(tests, apart, strict=True)]


class _PairTable:
    """The values of all systems in a column, with higher values better, and Student's test for each pair.

    Attributes:
        p: p-value of each system's claim to be ahead of each other system; NaN if two are not comparable.
    """

    def __init__(
        self,
        scores: Mapping[str, Mapping[str, float]],
        higher_is_better: bool,
        clusters: Mapping[str, Hashable] | None,
    ) -> None:
        if not scores:
            raise BadInput("there is no system to rank")
        self._systems, items = sorted(scores), sorted(set().union(*scores.values()))
        better = tabulate_values([scores[system] for system in self._systems], items)
        # Higher is better, and 0 stands for missing values.
        self._present, better = ~np.isnan(better), better * (1 if higher_is_better else -1)
        self._better, self._membership = np.where(self._present, better, 0.0), make_membership(items, clusters)
        self._whole: Any = self._present.all(axis=0)
        self._drawn_means: NDArray[np.float64] | None = None
        # Student's test of each claim to be ahead; the system that is behind makes no claim.
        claims = map(self.test_claims, range(len(self._systems)))
        self._shared, self.p = (np.array(rows) for rows in zip(*claims, strict=True))
        sizes = self._shared.diagonal()
        self._comparable = self._shared >= np.maximum(1, ENOUGH_SHARED * np.maximum.outer(sizes, sizes))
        # If two are not comparable, the one with fewer clusters is not compared with any system.
        lacking = (~self._comparable & (sizes > sizes[:, None])).any(axis=1)
        self._comparable &= ~(lacking[:, None] | lacking)
        self.p[~self._comparable] = np.nan

    def rank(self, apart: NDArray[np.bool_], rounds: int, seed: int, level: float) -> PairVerdicts:
        """Return the ranks that follow from the pairs that the test separates and the bootstrap confirms."""
        systems, shared, comparable = self._systems, self._shared, self._comparable
        ahead, beats = apart & (self.p < self.p.T), np.zeros(self.p.shape, dtype=bool)
        for index in np.flatnonzero(ahead.any(axis=1)).tolist():
            beats[index, ahead[index]] = self.draw_claims(index, np.flatnonzero(ahead[index]), rounds, seed, level)
        # A pair that is not comparable widens both ranges; a system that is not comparable with any other has no range.
        field = np.flatnonzero(comparable.sum(axis=1) > 1)
        best, worst = 1 + beats.sum(axis=0), len(field) - beats.sum(axis=1)
        return PairVerdicts(
            {systems[index]: (int(best[index]), int(worst[index])) for index in field},
            {systems[index]: int(shared[index, comparable[index]].min()) for index in field},
            shared,
        )

    def _subtract(self, index: int, others: Any, filled: bool = False) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return a system's differences from others, `(items, others)`, and whether both systems have each item. A
        difference is 0 if either system lacks the item; the second table has a single column if no items are missing.

        Args:
            index: the system.
            others: the systems it is compared with, by index.
            filled: whether each item that the system lacks counts as a loss by one standard deviation of the
                differences.
        """
        differences = self._better[:, [index]] - self._better[:, others]
        if self._whole.all():
            return differences, self._present[:, [index]]
        theirs = self._present[:, others]
        both = theirs & self._present[:, [index]]
        if filled:
            # Pairs that share nothing have no spread, so they cannot be tested.
            spread = np.std(differences, axis=0, where=both | ~both.any(axis=0))
            return np.where(both, differences, np.where(theirs, -spread, 0.0)), theirs
        return np.where(both, differences, 0.0), both

    def test_claims(self, index: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the number of clusters that a system shares with each other system, and the two-sided p-value of its
        claim to be ahead.

        The p-value is 1 if the system is not ahead, and NaN with fewer than two common clusters.
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
            pulls = compute_pulls(self._membership @ np.where(both, differences - means, 0.0), sizes)
            errors = np.sqrt(np.einsum("ij,ij->j", pulls, pulls) / (shared * (shared - 1)))
            # Student's test or, without any spread, the bound from `bound_alike`.
            alike = errors <= NEAR_ZERO * np.abs(means)
            students_p = 2 * special.stdtr(shared - 1, -means / np.where(alike, 1.0, errors))
        claimed_p = np.where(means > 0, np.where(alike, bound_alike(shared), students_p), 1.0)
        return shared, np.where(shared < 2, np.nan, claimed_p)

    def draw_claims(self, index: int, others: NDArray[np.intp], rounds: int, seed: int, level: float) -> Any:
        """Return which other systems a system is ahead of according to the bootstrap, even with its own gaps filled."""
        count, sizes = self._membership.shape[0], self._membership.sum(axis=1)
        if self._drawn_means is None:
            draws = draw_clusters(count, rounds, seed)
            self._drawn_means = (draws @ (self._membership @ self._better)) / (draws @ sizes)[:, None]
        # The means of systems without gaps are drawn once; for other systems, and for close pairs, the differences are
        # drawn.
        ahead, unclear = compare_draws(self._drawn_means, index, others, expand_tail(count, level))
        unclear |= ~(self._whole[others] & self._whole[index])
        ahead |= unclear
        for filled in (False,) if self._whole[index] else (False, True):
            differences, both = self._subtract(index, others[unclear], filled)
            ahead[unclear] &= find_means_above_zero(
                self._membership @ differences, self._membership @ both.astype(np.float64), rounds, seed, level
            )
        return ahead
