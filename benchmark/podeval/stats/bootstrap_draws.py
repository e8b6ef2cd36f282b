"""Clusters of items, whose values may depend on each other in any way: what each does to a mean, and draws of them."""

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from podeval.errors import BadInput

Array = NDArray[np.float64]

_DRAWN_AT_ONCE = 20_000_000
"""Maximum numbers of a bootstrap that are drawn at once and cached."""

NEAR_ZERO, _ROUNDED_PLACE = 1e-9, 1e-6
"""Differences and errors as a share of the mean, and differences of places in an order, that may be rounding errors."""


def tabulate_values(columns: Sequence[Mapping[str, float]], items: Sequence[str]) -> Array:
    """Return values by item as columns of a table, `(items, columns)`, with NaN for what a column lacks.

    Raises:
        BadInput: a value is not finite.
    """
    y = np.array([[column.get(item, math.nan) for column in columns] for item in items], dtype=np.float64)
    if np.isfinite(y).sum() < sum(item in column for column in columns for item in items):
        raise BadInput("the scores to rank hold NaN or infinity; leave unscored items out first")
    return y


def make_membership(items: Sequence[str], clusters: Mapping[str, Hashable] | None) -> Any:
    """Return a sparse matrix of ones and zeros that says which item is in which cluster, `(clusters, items)`.

    Args:
        items: the items.
        clusters: the cluster of each item; None makes each item its own.

    Raises:
        BadInput: an item has no cluster.
    """
    from scipy import sparse

    missing = [item for item in items if clusters is not None and item not in clusters]
    if missing:
        raise BadInput(f"{len(missing)} items have no cluster, the first is {missing[0]!r}; give one for each")
    labels = items if clusters is None else [clusters[item] for item in items]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    places = [numbers[label] for label in labels], range(len(labels))
    return sparse.csr_array((np.ones(len(labels)), places), shape=(len(numbers), len(labels)))


def compute_pulls(residuals: Array, sizes: Array) -> Array:
    """Return each cluster's influence on a mean, times G: without the cluster, the mean would be `pull / (G - 1)` less.

    Args:
        residuals: sum of the weighted residuals of each cluster, `(clusters,)` or `(clusters, columns)`.
        sizes: weight of each cluster, likewise; 0 for one that the mean does not have.
    """
    rest = sizes.sum(axis=0) - sizes
    pulls: Array = residuals * ((sizes > 0).sum(axis=0) - 1) / (rest if rest.ndim == residuals.ndim else rest[:, None])
    return pulls


def bound_alike(clusters: int | NDArray[np.intp]) -> Any:
    """Return an upper bound of the probability that two equal systems differ alike, and not by zero, in every cluster.

    Of two draws from one distribution, one exceeds the other by a given amount with probability sum p(x) p(x + d),
    which is at most 1/4 (Motzkin and Straus 1965); over all amounts the powers of these probabilities sum to at most 4
    (1/4) ** clusters.
    """
    return 4.0 ** (1.0 - clusters)


def find_student_quantile(freedom: int, level: float) -> float:
    """Return how many standard errors Student's interval of this level reaches."""
    return float(special.stdtrit(freedom, (1 + level) / 2))


def expand_tail(count: int, level: float) -> float:
    """Return the tail of the expanded percentile interval of so many clusters."""
    return float(special.ndtr(-math.sqrt(count / (count - 1)) * find_student_quantile(count - 1, level)))


class Draws:
    """How often each cluster is drawn in each round, `(rounds, clusters)`; if many, in blocks of two-byte counts.

    The blocks equal what a single call would draw, and with so many clusters none is drawn more than 65,535 times.
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
    """Return the draws of a seed; if small enough they are cached, because many keys of a comparison share them."""
    return (_few_draws if count * rounds <= _DRAWN_AT_ONCE else Draws)(count, rounds, seed)


def compare_draws(
    drawn_means: Array, index: int, others: NDArray[np.intp], tail: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell over which others a system is for certain ahead in all drawn means but the tail, and where that is unclear.

    A quantile lies above zero where no more draws than the tail has are at or below zero: counting tells it without
    sorting. Means that were subtracted are off by rounding, so that draws near zero count as either.

    Args:
        drawn_means: drawn means of each system, `(rounds, systems)`.
        index: the system.
        others: those that it is compared with, by index.
        tail: the quantile of the differences that is to lie above zero.
    """
    near_zero = NEAR_ZERO * float(np.abs(drawn_means).max(initial=0.0))
    return _count_draws(drawn_means[:, [index]] - drawn_means[:, others], near_zero, tail)


def _count_draws(gaps: Array, near_zero: float, tail: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    rank = tail * (len(gaps) - 1)
    above = (gaps <= near_zero).sum(axis=0) <= math.floor(rank - _ROUNDED_PLACE)
    below = (gaps < -near_zero).sum(axis=0) >= math.floor(rank + _ROUNDED_PLACE) + 2
    return above, ~above & ~below


def find_means_above_zero(sums: Array, sizes: Array, rounds: int, seed: int, level: float) -> NDArray[np.bool_]:
    """Return of which means the expanded percentile interval is above zero, each drawn from the clusters it has.

    Args:
        sums: sum of the values of each cluster, `(clusters, means)`.
        sizes: number of values of each cluster, likewise.
        rounds: number of draws.
        seed: seed of the draws.
        level: confidence level of the interval.
    """
    sizes = np.broadcast_to(sizes, sums.shape)
    counts, above = (sizes > 0).sum(axis=0), np.zeros(sums.shape[1], dtype=bool)
    # Means of equally many clusters are drawn together, their clusters counted from the first that each has.
    for count in np.unique(counts[counts > 1]):
        chosen = np.flatnonzero(counts == count)
        draws, tail = draw_clusters(int(count), rounds, seed), expand_tail(int(count), level)
        kept = sizes[:, chosen].T > 0
        own_sums, own_sizes = (table[:, chosen].T[kept].reshape(len(chosen), count).T for table in (sums, sizes))
        # The sign of a mean is that of its sum.
        drawn = draws @ np.ascontiguousarray(own_sums)
        above[chosen], unclear = _count_draws(drawn, 0.0, tail)
        above[chosen[unclear]] = np.quantile(drawn[:, unclear] / (draws @ own_sizes[:, unclear]), tail, axis=0) > 0
    return above
