"""Correlations with bootstrap intervals over clusters, and partial correlations.

The interval contains the middle 95 % of the statistic's values over `ROUNDS` draws, each of whole clusters; it is
widened if there are few clusters (`pair_comparisons.expand_tail`). A cluster that is drawn k times counts k times;
ranks are those of the drawn values, and tied values share their mean rank. There is no interval with fewer than
`FEWEST_DRAWN` clusters, or if the draws have no spread.
"""

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from podeval.stats.agreement import Estimate
from podeval.stats.intervals import number_clusters
from podeval.stats.pair_comparisons import expand_tail

ROUNDS = 1000
FEWEST_DRAWN = 5
"""Number of clusters below which there is no interval, because there are too few different draws."""
_AT_ONCE = 1_000_000
"""Maximum number of values in memory at once."""

Array = NDArray[np.float64]


def correlate_by_cluster(
    x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[Estimate, Estimate, Estimate]:
    """Return SRCC, PLCC and KRCC (tau-b) of two variables, with intervals over clusters."""
    table = np.array([x, y], dtype=np.float64)
    codes, count = number_clusters(clusters, len(x))
    # For every two clusters: the number of pairs of values in the same order minus the number in opposite orders, and
    # the numbers of pairs that differ in x and in y.
    pairs = np.zeros((3, count, count))
    membership = np.eye(count)[codes]
    step = max(1, _AT_ONCE // max(1, len(x)))
    for start in range(0, len(x), step):
        signs_x, signs_y = np.sign(table[:, start : start + step, None] - table[:, None, :])
        signs = np.array([signs_x * signs_y, np.abs(signs_x), np.abs(signs_y)])
        pairs += membership[start : start + step].T @ (signs @ membership)
    figures = []
    for drawn in _draw_clusters(count, len(x)):
        weights = drawn[:, codes]
        rank, linear = (_correlate(of, weights)[:, 0, 1] for of in (_rank(table, weights), table[:, None]))
        alike, differ_x, differ_y = ((drawn @ of * drawn).sum(axis=1) for of in pairs)
        with np.errstate(invalid="ignore", divide="ignore"):
            figures.append(np.array([rank, linear, alike / np.sqrt(differ_x * differ_y)]))
    srcc, plcc, krcc = (_estimate(of, count, len(x)) for of in np.concatenate(figures, axis=1))
    return srcc, plcc, krcc


def correlate_partially(
    x: Sequence[float], y: Sequence[float], controls: Sequence[Sequence[float]], clusters: Sequence[Hashable]
) -> Estimate:
    """Return the partial rank correlation of two variables, after removing the linear influence of the ranks of other
    variables.

    The correlation is −P₁₂ / √(P₁₁ P₂₂), with P the inverse of the matrix of Spearman's correlations. The correlation
    is not defined if the controls determine one of the two variables, or if there are fewer values than the number of
    variables plus two.

    Args:
        x: the first variable.
        y: the second variable.
        controls: the variables whose influence is removed.
        clusters: the cluster of each value.
    """
    table = np.array([x, y, *controls], dtype=np.float64)
    codes, count = number_clusters(clusters, len(x))
    if len(x) < len(table) + 2:
        return Estimate(None, None, None, len(x))
    figures = []
    for drawn in _draw_clusters(count, table.size):
        weights = drawn[:, codes]
        correlations = _correlate(_rank(table, weights), weights)
        partial = np.full(len(drawn), np.nan)
        usable = np.array([np.isfinite(one).all() for one in correlations])
        usable[usable] = np.linalg.cond(correlations[usable]) < 1e10
        inverse = np.linalg.inv(correlations[usable])
        partial[usable] = -inverse[:, 0, 1] / np.sqrt(inverse[:, 0, 0] * inverse[:, 1, 1])
        figures.append(partial)
    return _estimate(np.concatenate(figures), count, len(x))


def _draw_clusters(count: int, size: int) -> Iterator[Array]:
    """Yield how often each cluster is drawn, in blocks `(rounds, clusters)`; the first round draws each once."""
    yield np.ones((1, count))
    random, block = np.random.default_rng(0), max(1, _AT_ONCE // max(1, size))
    for start in range(0, ROUNDS if count >= FEWEST_DRAWN else 0, block):
        yield random.multinomial(count, [1 / count] * count, size=min(block, ROUNDS - start)).astype(np.float64)


def _rank(table: Array, weights: Array) -> Array:
    """Return the mean ranks of values, `(variables, rounds, values)`; a weight is a value's number of occurrences."""
    ranks = np.empty((len(table), *weights.shape))
    for row, values in zip(ranks, table, strict=True):
        order = values.argsort(kind="stable")
        _, starts, group = np.unique(values[order], return_index=True, return_inverse=True)
        of_groups = np.add.reduceat(weights[:, order], starts, axis=1)
        row[:, order] = (np.cumsum(of_groups, axis=1) - (of_groups - 1) / 2)[:, group]
    return ranks


def _correlate(values: Array, weights: Array) -> Array:
    """Return Pearson's correlations of variables, `(rounds, variables, variables)`; NaN if a variable does not vary.

    Args:
        values: `(variables, rounds, values)`, or one round for all.
        weights: `(rounds, values)`.
    """
    centred = values - ((values * weights).sum(axis=2) / weights.sum(axis=1))[..., None]
    covariances = np.einsum("arn,brn->rab", centred * weights, np.broadcast_to(centred, (len(values), *weights.shape)))
    variances = np.einsum("raa->ra", covariances)
    scale = np.sqrt(np.where(variances > 1e-9, variances, np.nan))
    correlations: Array = covariances / (scale[:, :, None] * scale[:, None, :])
    return np.clip(correlations, -1, 1)


def _estimate(figures: Array, count: int, size: int) -> Estimate:
    """Return the statistic (the first value) with its interval from the other values; no interval if half of these are
    undefined.
    """
    value, drawn = figures[0], figures[1:][np.isfinite(figures[1:])]
    if not np.isfinite(value) or size < 3:
        return Estimate(None, None, None, size)
    if drawn.size == 0 or drawn.size < (len(figures) - 1) / 2 or np.ptp(drawn) < 1e-9:
        return Estimate(float(value), None, None, size)
    tail = expand_tail(count, 0.95)
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return Estimate(float(value), float(low), float(high), size)
