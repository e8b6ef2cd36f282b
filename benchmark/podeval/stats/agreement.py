"""Agreement between two judgements of the same items: correlations, kappas, Krippendorff's alpha, absolute errors,
pairwise accuracy. Every statistic has a 95 % interval and states the number of items that it is based on. Items that
are not independent (turns of one dialogue, items of one voter) are grouped by `clusters`: the interval then treats a
cluster as one draw. A statistic that is undefined, such as the correlation with a constant, has the value None, not 0.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from podeval.errors import BadInput
from podeval.stats.intervals import mean_ci, number_clusters, wilson_bounds

Array = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval", "ratio"]

ROUNDS = 1000
FEWEST_THINGS = 10
"""Number of items (or clusters) below which kappas and alpha have no interval; with six, the coverage of an interval
would be 0.7 to 0.8."""
FEWEST_CLUSTERS = 5
"""Number of clusters below which a correlation has no interval."""
MOST_LEFT_OUT = 200
"""Number of clusters above which they are resampled, because leaving out each cluster in turn is slow and has no
advantage."""
_BLOCK = 2_000_000


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95 % interval; `count` is the number of items it is based on.

    `value` is None if the statistic is not defined; `low` and `high` are None if no interval can be computed, as for
    perfect agreement, which leaves no spread to estimate an interval from.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int


def format_estimate(estimate: Estimate, digits: int = 2) -> str:
    """Format a statistic with its interval; a dash if it is not defined."""
    if estimate.value is None:
        return "–"
    bounds = "" if estimate.low is None else f" [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"
    return f"{estimate.value:.{digits}f}{bounds}"


def srcc(x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """Return Spearman's rank correlation, with ties at their mean rank.

    Interval: Fisher's z with Bonett and Wright's (2000) standard error sqrt((1 + r² / 2) / (n - 3)); with clusters, the
    jackknife of z over clusters with Student's t, if there are at least `FEWEST_CLUSTERS` (coverage 0.90 to 0.97 with 6
    to 51 clusters).

    Raises:
        BadInput: the lists have unequal length, or values are not finite.
    """
    return _correlation(
        x,
        y,
        clusters,
        lambda a, b: float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1]),
        lambda r, n: (1 + r * r / 2) / (n - 3),
    )


def plcc(x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """Return Pearson's correlation.

    Interval: Fisher's z with standard error 1 / sqrt(n - 3); with clusters as in `srcc`.

    Raises:
        BadInput: the lists have unequal length, or values are not finite.
    """
    return _correlation(x, y, clusters, lambda a, b: float(np.corrcoef(a, b)[0, 1]), lambda r, n: 1 / (n - 3))


def krcc(x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """Return Kendall's tau-b; the interval uses Fisher's z with the variance 0.437 / (n - 4) of Fieller et al. (1957).

    Raises:
        BadInput: the lists have unequal length, or values are not finite.
    """
    # SciPy would compute a p-value too, by default an exact one, which takes longer than the statistic.
    return _correlation(
        x,
        y,
        clusters,
        lambda a, b: float(stats.kendalltau(a, b, method="asymptotic").statistic),
        lambda r, n: 0.437 / (n - 4),
    )


def mae(x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """Return the mean absolute difference, in the unit of the values, with the clustered interval of a mean.

    Raises:
        BadInput: the lists are empty or of unequal length, or values are not finite.
    """
    a, b = _validate_pair(x, y)
    interval = mean_ci(np.abs(a - b).tolist(), clusters)
    return Estimate(interval.mean, None if interval.low is None else max(0.0, interval.low), interval.high, interval.n)


def pairwise_accuracy(
    judged: Sequence[float], truth: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> Estimate:
    """Return the share of pairs that the judged values order as the truth does; ties in the judged values count as one
    half.

    The interval is Wilson's for the number of independent pairs with the same variance: A (1 - A) / SE², with SE from
    each item's influence on the ratio of the two U-statistics (its Hájek projection); that number is at least the
    number of disjoint pairs. `count` is the number of items.

    Raises:
        BadInput: the lists have unequal length, or values are not finite.
    """
    a, b = _validate_pair(judged, truth)
    codes, groups = number_clusters(clusters, a.size)
    # For each item: the number of pairs that the truth orders, and how many of them the judged values order the same
    # way.
    alike, ordered = np.zeros(a.size), np.zeros(a.size)
    step = max(1, _BLOCK // max(1, a.size))
    for start in range(0, a.size, step):
        part = slice(start, start + step)
        true = np.sign(b[part, None] - b[None, :])
        seen = np.sign(a[part, None] - a[None, :])
        alike[part] = np.where(true != 0, (1 + true * seen) / 2, 0).sum(axis=1)
        ordered[part] = (true != 0).sum(axis=1)
    total = float(ordered.sum())
    if not total:
        return Estimate(None, None, None, a.size)
    share = float(alike.sum()) / total
    # The variance, from each cluster's influence on the share.
    influence = np.bincount(codes, weights=2 * (alike - share * ordered) / total, minlength=groups)
    if groups < 2:
        return Estimate(share, None, None, a.size)
    variance = groups / (groups - 1) * float(influence @ influence)
    # The number of independent pairs with that variance.
    independent: float = groups // 2
    if variance > 0:
        independent = max(independent, share * (1 - share) / variance)
    low, high = wilson_bounds(share, min(independent, total / 2))
    return Estimate(share, low, high, a.size)


def qwk(x: Sequence[float], y: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """Return Cohen's kappa with quadratic weights: 1 minus Σ(x - y)² / n divided by the value expected by chance.

    The weights are the squared distances of the scores themselves, so categories need not be listed and unused scores
    have no effect. Interval: jackknife over items (or clusters) with Student's t, if there are at least
    `FEWEST_THINGS`.

    Raises:
        BadInput: the lists have unequal length, or values are not finite.
    """
    a, b = _validate_pair(x, y)
    moments = np.stack([np.ones_like(a), a, b, a * a, b * b, (a - b) ** 2], axis=1)

    def kappa(sums: Array) -> Array:
        n, sum_a, sum_b, squares_a, squares_b, apart = np.moveaxis(sums, -1, 0)
        by_chance = squares_a + squares_b - 2 * sum_a * sum_b / n
        return _ratio(by_chance - apart, by_chance)

    return _estimate_from_sums(moments, clusters, kappa)


def cohen_kappa(x: Sequence[Hashable], y: Sequence[Hashable], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """Return Cohen's kappa for two raters on the same items, with unordered categories.

    Interval: jackknife over items (or clusters) with Student's t, if there are at least `FEWEST_THINGS`; at a true
    kappa of 0.6, its coverage is 0.94 / 0.92 / 0.95 with 10 / 20 / 51 items.

    Raises:
        BadInput: the lists have unequal length.
    """
    if len(x) != len(y):
        raise BadInput(f"agreement needs two judgements of each item, but there are {len(x)} and {len(y)} judgements")
    # Number the categories, and assign each item to a cell of their contingency table.
    names: dict[Hashable, int] = {}
    first = np.array([names.setdefault(value, len(names)) for value in x], dtype=np.intp)
    second = np.array([names.setdefault(value, len(names)) for value in y], dtype=np.intp)
    size = len(names)
    cells = np.zeros((len(x), size * size))
    cells[np.arange(len(x)), first * size + second] = 1.0

    def kappa(sums: Array) -> Array:
        table = sums.reshape(*sums.shape[:-1], size, size)
        n = table.sum(axis=(-1, -2))
        agreed = np.trace(table, axis1=-2, axis2=-1) / n
        expected = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1) / n**2
        return _ratio(agreed - expected, 1 - expected)

    return _estimate_from_sums(cells, clusters, kappa)


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]], level: Level = "ordinal") -> Estimate:
    """Return Krippendorff's alpha for any number of raters, who may skip items.

    The value is computed by evalica. Interval: jackknife over items with Student's t, if there are at least
    `FEWEST_THINGS`.

    Args:
        ratings: one list per rater with one entry per item; None if the rater gave no rating.
        level: nominal, ordinal, interval or ratio.

    Returns:
        The estimate; its `count` is the number of items with at least two ratings.

    Raises:
        BadInput: the lists have unequal length, or the level is unknown.
    """
    import evalica
    import pandas

    if level not in get_args(Level):
        raise BadInput(f"the level of measurement must be nominal, ordinal, interval or ratio, not {level!r}")
    if len({len(row) for row in ratings}) > 1:
        raise BadInput("every rater needs one entry for each item, or None if there is no rating")
    table = np.array([[np.nan if value is None else value for value in row] for row in ratings], dtype=np.float64)
    table = table[:, (~np.isnan(table)).sum(axis=0) >= 2] if table.size else np.zeros((0, 0))
    things = table.shape[1]

    def alpha(columns: Array) -> float:
        ratings_there = columns[~np.isnan(columns)]
        if ratings_there.size == 0 or (ratings_there == ratings_there[0]).all():
            return math.nan
        return float(evalica.alpha(pandas.DataFrame(columns), level).alpha)

    # The value, and its interval: by the jackknife or, if there are many items, by resampling.
    value = alpha(table) if things else math.nan
    if math.isnan(value):
        return Estimate(None, None, None, things)
    if things < FEWEST_THINGS:
        return Estimate(value, None, None, things)
    if things <= MOST_LEFT_OUT:
        without = np.array([alpha(np.delete(table, number, axis=1)) for number in range(things)])
        return Estimate(value, *_jackknife(value, without, -math.inf, 1.0), things)
    draws = np.random.default_rng(0).integers(0, things, size=(ROUNDS, things))
    low, high = _percentiles(np.array([alpha(table[:, draw]) for draw in draws]))
    return Estimate(value, low, high, things)


MEASURES = {"SRCC": srcc, "PLCC": plcc, "KRCC": krcc, "QWK": qwk, "MAE": mae}
"""The measures of agreement between two raters on the same items, by name."""


def leave_one_out(ratings: Sequence[Sequence[float | None]]) -> list[dict[str, Estimate]]:
    """Return each rater's agreement with the mean of the other raters on shared items, as in LFS-Bench's Table 6.

    The measures are `MEASURES`, by name.
    """
    table = np.array([[np.nan if value is None else value for value in row] for row in ratings], dtype=np.float64)
    correlations = []
    for number, row in enumerate(table):
        rest = np.delete(table, number, axis=0)
        both = ~np.isnan(row) & ~np.isnan(rest).all(axis=0)
        others = np.nanmean(rest[:, both], axis=0) if both.any() else np.zeros(0)
        ratings_of_one, mean = row[both].tolist(), others.tolist()
        nothing = Estimate(None, None, None, 0)
        correlations.append({n: measure(ratings_of_one, mean) if mean else nothing for n, measure in MEASURES.items()})
    return correlations


def _correlation(
    x: Sequence[float],
    y: Sequence[float],
    clusters: Sequence[Hashable] | None,
    function: Callable[[Array, Array], float],
    variance: Callable[[float, int], float],
) -> Estimate:
    a, b = _validate_pair(x, y)
    if a.size < 3 or (a == a[0]).all() or (b == b[0]).all():
        return Estimate(None, None, None, a.size)
    value = min(1.0, max(-1.0, function(a, b)))
    # The interval: by clusters, or by Fisher's z.
    if clusters is not None:
        low, high = _resample_clusters(a, b, clusters, function)
        return Estimate(value, low, high, a.size)
    if a.size < 5 or abs(value) > 1 - 1e-12:
        return Estimate(value, None, None, a.size)
    half = float(special.ndtri(0.975)) * math.sqrt(variance(value, a.size))
    return Estimate(value, math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half), a.size)


def _resample_clusters(
    a: Array, b: Array, clusters: Sequence[Hashable], function: Callable[[Array, Array], float]
) -> tuple[float | None, float | None]:
    """Return a correlation's interval over its clusters: by the jackknife, or by resampling if there are many."""
    codes, count = number_clusters(clusters, a.size)
    if count < FEWEST_CLUSTERS:
        return None, None

    def correlate(chosen: NDArray[Any]) -> float:
        one, two = a[chosen], b[chosen]
        constant = one.size < 3 or (one == one[0]).all() or (two == two[0]).all()
        return math.nan if constant else function(one, two)

    if count <= MOST_LEFT_OUT:
        return _jackknife_correlation(function(a, b), np.array([correlate(codes != code) for code in range(count)]))
    # The correlation in each draw of clusters.
    members = [np.flatnonzero(codes == code) for code in range(count)]
    draws = np.random.default_rng(0).integers(0, count, size=(ROUNDS, count))
    return _percentiles(np.array([correlate(np.concatenate([members[code] for code in draw])) for draw in draws]))


def _estimate_from_sums(rows: Array, clusters: Sequence[Hashable] | None, figure: Callable[[Array], Array]) -> Estimate:
    """Estimate a statistic of column sums, with its interval over rows (or clusters of rows)."""
    count = len(rows)
    codes, groups = number_clusters(clusters, count)
    if not count:
        return Estimate(None, None, None, 0)
    value = float(figure(rows.sum(axis=0)))
    if math.isnan(value):
        return Estimate(None, None, None, count)
    if groups < FEWEST_THINGS:
        return Estimate(value, None, None, count)
    # Sums by cluster, and the statistic without each of them.
    sums = np.zeros((groups, rows.shape[1]))
    np.add.at(sums, codes, rows)
    return Estimate(value, *_jackknife(value, figure(sums.sum(axis=0) - sums), -math.inf, 1.0), count)


def _jackknife(value: float, without: Array, lowest: float, highest: float) -> tuple[float | None, float | None]:
    """Return a statistic's interval from its leave-one-cluster-out values; no interval if one of them is undefined."""
    count = len(without)
    if np.isnan(without).any():
        return None, None
    error = math.sqrt((count - 1) / count * float(np.square(without - without.mean()).sum()))
    if error <= 1e-12:
        return None, None
    reach = float(special.stdtrit(count - 1, 0.975)) * error
    return max(lowest, value - reach), min(highest, value + reach)


def _jackknife_correlation(value: float, without: Array) -> tuple[float | None, float | None]:
    """Return a correlation's interval from its leave-one-cluster-out values, on the scale of Fisher's z."""
    if abs(value) > 1 - 1e-12 and np.allclose(without, value):
        return None, None
    z = np.arctanh(np.clip(without, -1 + 1e-9, 1 - 1e-9))
    low, high = _jackknife(math.atanh(min(max(value, -1 + 1e-9), 1 - 1e-9)), z, -math.inf, math.inf)
    return (None, None) if low is None or high is None else (math.tanh(low), math.tanh(high))


def _percentiles(values: Array) -> tuple[float | None, float | None]:
    kept = values[~np.isnan(values)]
    if kept.size < 2 or np.ptp(kept) <= 1e-12:
        return None, None
    low, high = np.quantile(kept, (0.025, 0.975))
    return float(low), float(high)


def _ratio(over: Array, under: Array) -> Array:
    """Divide element by element; NaN if the divisor is zero."""
    return np.asarray(np.divide(over, under, out=np.full(np.shape(under), np.nan), where=np.abs(under) > 1e-12))


def _validate_pair(x: Sequence[float], y: Sequence[float]) -> tuple[Array, Array]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise BadInput(f"agreement needs two judgements of each item, but there are {len(x)} and {len(y)} judgements")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise BadInput("the judgements contain NaN or infinity; leave out items that were not judged twice")
    return a, b
