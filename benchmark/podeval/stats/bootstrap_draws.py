"""Draws of a bootstrap over clusters, and the comparison of systems by them."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DRAWN_AT_ONCE = 20_000_000
"""Maximum numbers of a bootstrap that are drawn at once and cached."""

_NEAR_ZERO, _ROUNDED_PLACE = 1e-9, 1e-6
"""Differences of drawn means as a share of the largest mean, and of places in an order, that may be rounding errors."""


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
        drawn_means: of each system, `(rounds, systems)`.
        index: the system.
        others: those that it is compared with, by index.
        tail: the quantile of the differences that is to lie above zero.
    """
    near_zero = _NEAR_ZERO * float(np.abs(drawn_means).max(initial=0.0))
    return _count_draws(drawn_means[:, [index]] - drawn_means[:, others], near_zero, tail)


def _count_draws(gaps: Array, near_zero: float, tail: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    rank = tail * (len(gaps) - 1)
    above = (gaps <= near_zero).sum(axis=0) <= math.floor(rank - _ROUNDED_PLACE)
    below = (gaps < -near_zero).sum(axis=0) >= math.floor(rank + _ROUNDED_PLACE) + 2
    return above, ~above & ~below


def find_means_above_zero(
    sums: Array, sizes: Array, rounds: int, seed: int, find_tail: Callable[[int], float]
) -> NDArray[np.bool_]:
    """Return which means lie above zero with all their draws but the tail, each drawn from the clusters it has.

    Args:
        sums: sum of the values of each cluster, `(clusters, means)`.
        sizes: number of values of each cluster, likewise.
        rounds: number of draws.
        seed: seed of the draws.
        find_tail: returns the quantile that must lie above zero for a number of clusters.
    """
    present = sizes > 0
    counts, above = present.sum(axis=0), np.zeros(sums.shape[1], dtype=bool)
    # Means of equally many clusters are drawn together, their clusters counted from the first that each has.
    for count in np.unique(counts[counts > 1]):
        chosen = np.flatnonzero(counts == count)
        draws, tail = draw_clusters(int(count), rounds, seed), find_tail(int(count))
        kept = present[:, chosen].T
        own_sums, own_sizes = (table[:, chosen].T[kept].reshape(len(chosen), count).T for table in (sums, sizes))
        # The sign of a mean is that of its sum.
        drawn = draws @ np.ascontiguousarray(own_sums)
        above[chosen], unclear = _count_draws(drawn, 0.0, tail)
        means = drawn[:, unclear] / (draws @ own_sizes[:, unclear])
        above[chosen[unclear]] = np.quantile(means, tail, axis=0) > 0
    return above
