"""Intervals of means, and ranks that do not pretend to a difference the data does not show.

`mean_ci` is analytic and clustered; `paired_bootstrap_ranks` and `paired_difference` compare systems on the items they
share. What is resampled (episode, dialogue, voter) is the cluster: values inside one may be as dependent as they like.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from podeval.errors import BadInput

Array = NDArray[np.float64]

_DRAWN_AT_ONCE = 20_000_000
"""Numbers of a bootstrap that are drawn at once, and kept."""


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval, in the unit of the values.

    `low` and `high` are None where no interval can be had: fewer than two clusters. `n` counts values.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    clusters: int


def mean_ci(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    weights: Sequence[float] | None = None,
) -> Interval:
    """Confidence interval of a mean, robust to dependence inside clusters.

    With G clusters, n values and the residual sums u_g = sum over cluster g of (y_i - mean), the variance of
    the mean is `G / (G - 1) * sum(u_g ** 2) / n ** 2` and the interval uses Student's t with G - 1 degrees of
    freedom. This is the cluster-robust estimator of Liang and Zeger (1986) for a regression on a constant,
    with the small-sample correction and degrees of freedom that Cameron and Miller (2015, A Practitioner's
    Guide to Cluster-Robust Inference) advise. When every value is its own cluster it is the textbook t
    interval with standard error s / sqrt(n). With few clusters of very unequal size it is somewhat too
    narrow, as all estimators of its kind are.

    Args:
        values: n finite numbers.
        clusters: the cluster of each value; None makes each value its own.
        level: the share of such intervals that hold the true mean, between 0 and 1.
        weights: how much each value counts, positive; with them the mean is a ratio of two sums, and its interval
            the linearised one of such a ratio (Cochran 1977, Sampling Techniques, section 6.3).

    Raises:
        BadInput: no values, values that are not finite, too few or many clusters or weights for them, a bad level.
    """
    y = np.asarray(values, dtype=np.float64)
    if y.ndim != 1 or y.size == 0:
        raise BadInput("a mean needs at least one value; leave the figure out where nothing was scored")
    if not np.isfinite(y).all():
        raise BadInput("the values to average hold NaN or infinity; leave unscored items out first")
    if not 0 < level < 1:
        raise BadInput(f"the confidence level must lie between 0 and 1, not {level}; 0.95 is the usual one")
    codes, count = cluster_codes(clusters, y.size)
    w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != y.shape or not (np.isfinite(w) & (w > 0)).all():
        raise BadInput(f"{y.size} values need as many weights, all of them positive")
    mean = float(y.mean() if weights is None else (w @ y) / w.sum())
    if count < 2:
        return Interval(mean, None, None, y.size, count)
    residuals = np.bincount(codes, weights=w * (y - mean), minlength=count)
    standard_error = math.sqrt(count / (count - 1) * float(residuals @ residuals)) / float(w.sum())
    half = _student_quantile(count - 1, level) * standard_error
    return Interval(mean, mean - half, mean + half, y.size, count)


def paired_bootstrap_ranks(
    scores: Mapping[str, Mapping[str, float]],
    higher_is_better: bool,
    clusters: Mapping[str, Hashable] | None = None,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, tuple[int, int]]:
    """The range of ranks each system may claim, from a paired bootstrap over the items all systems share.

    Clusters are drawn with replacement, the same draw for every system, and each pair of systems gets an
    interval for the difference of its means. One system beats another where that interval lies wholly on one
    side of zero. A system's best rank is 1 + the number of systems that beat it; its worst is the number of
    systems that it does not beat, itself included. Pairs are not corrected for their number.

    The intervals are percentile intervals widened for few clusters ("expanded percentile", Hesterberg 2015,
    What Teachers Should Know About the Bootstrap): the tail is Phi(-sqrt(G / (G - 1)) * t) where the plain
    one has (1 - level) / 2. With 6 clusters the plain one tells 13 % of equal pairs apart, this one 6 %.

    Args:
        scores: for each system, the value of each item it was scored on.
        higher_is_better: direction of the metric.
        clusters: the cluster of each item; None makes each item its own.
        rounds: number of bootstrap draws.
        seed: of the draws; the same seed gives the same ranks whatever the order of systems and items.
        level: confidence level of each pair's interval.

    Returns:
        For each system `(best, worst)`, 1 being the first rank. With fewer than two clusters everyone may be
        anywhere.

    Raises:
        BadInput: no systems, no item common to all, a value that is not finite, an item without cluster.
    """
    systems, items = _common_items(scores)
    y = _values(scores, systems, items)
    codes, count = _codes(_clusters_of(items, clusters))
    if count < 2 or len(systems) == 1:
        return dict.fromkeys(systems, (1, len(systems)))

    membership = _membership(codes, count)
    draws = _draws(count, rounds, seed)
    drawn_items = draws @ membership.sum(axis=1)
    tail = _expanded_tail(count, level)

    beats = np.zeros((len(systems), len(systems)), dtype=bool)
    for index in range(len(systems)):
        # Differences are summed, not means subtracted: equal systems then differ by exactly zero.
        differences = membership @ (y[:, [index]] - y)
        means = (draws @ differences) / drawn_items[:, None]
        low, high = np.quantile(means, [tail, 1 - tail], axis=0)
        beats[index] = low > 0 if higher_is_better else high < 0
    best = 1 + beats.sum(axis=0)
    worst = len(systems) - beats.sum(axis=1)
    return {system: (int(best[i]), int(worst[i])) for i, system in enumerate(systems)}


def paired_difference(
    a: Mapping[str, float],
    b: Mapping[str, float],
    clusters: Mapping[str, Hashable] | None = None,
    weights: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """The mean of one system minus that of another over the items both were scored on, with its interval.

    Draws and interval are those of `paired_bootstrap_ranks` for these two systems: where it says that one beats the
    other, this interval lies wholly on one side of zero.

    Args:
        a: the value of each item of one system.
        b: of the other.
        clusters: the cluster of each item; None makes each item its own.
        weights: how much each item's value counts in the mean of `a` and of `b`; each mean is then a ratio of sums.
        rounds: number of bootstrap draws.
        seed: of the draws.
        level: confidence level of the interval.

    Returns:
        `n` counts the common items; no `low` and `high` with fewer than two clusters.

    Raises:
        BadInput: no item common to both, a value that is not finite, a weight that is not positive, an item without
            cluster.
    """
    _, items = _common_items({"a": a, "b": b})
    y = _values({"a": a, "b": b}, ["a", "b"], items)
    w = np.ones_like(y) if weights is None else _values(dict(zip("ab", weights, strict=True)), ["a", "b"], items)
    if not (w > 0).all():
        raise BadInput("the weights of a mean must be positive")
    codes, count = _codes(_clusters_of(items, clusters))
    whole = (w * y).sum(axis=0) / w.sum(axis=0)
    # Equal systems differ by exactly zero, here as below.
    mean = float(np.mean(y[:, 0] - y[:, 1]) if weights is None else whole[0] - whole[1])
    if count < 2:
        return Interval(mean, None, None, len(items), count)
    membership, draws = _membership(codes, count), _draws(count, rounds, seed)
    if weights is None:
        drawn = (draws @ (membership @ (y[:, 0] - y[:, 1]))) / (draws @ membership.sum(axis=1))
    else:
        means = (draws @ (membership @ (w * y))) / (draws @ (membership @ w))
        drawn = means[:, 0] - means[:, 1]
    tail = _expanded_tail(count, level)
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(mean, float(low), float(high), len(items), count)


def _values(scores: Mapping[str, Mapping[str, float]], systems: Sequence[str], items: Sequence[str]) -> Array:
    """The scores of some systems on some items, `(items, systems)`."""
    y = np.array([[scores[system][item] for system in systems] for item in items], dtype=np.float64)
    if not np.isfinite(y).all():
        raise BadInput("the scores to rank hold NaN or infinity; leave unscored items out first")
    return y


def _membership(codes: NDArray[np.intp], count: int) -> Any:
    """Which item is in which cluster, `(clusters, items)`, ones and zeros, as a sparse matrix."""
    places = (codes, np.arange(len(codes)))
    return sparse.csr_array((np.ones(len(codes)), places), shape=(count, len(codes)))


class _Draws:
    """How often each cluster is drawn in each round, `(rounds, clusters)`; of many clusters, blocks of two bytes each.

    The blocks are what one call would draw, and no cluster of so many is drawn more than 65,535 times.
    """

    def __init__(self, count: int, rounds: int, seed: int) -> None:
        rows = max(1, _DRAWN_AT_ONCE // count)
        kept = np.float64 if rows >= rounds else np.uint16
        generator, shares = np.random.default_rng(seed), np.full(count, 1 / count)
        self._blocks: list[NDArray[Any]] = [
            generator.multinomial(count, shares, size=min(rows, rounds - start)).astype(kept)
            for start in range(0, rounds, rows)
        ]

    def __matmul__(self, of_clusters: Array) -> Array:
        """Sums over the clusters drawn, of values by cluster: `(clusters,)` or `(clusters, columns)`."""
        return np.concatenate([block @ of_clusters for block in self._blocks])


_few_draws = lru_cache(maxsize=8)(_Draws)


def _draws(count: int, rounds: int, seed: int) -> _Draws:
    """The draws of a seed; many keys of a comparison share them, where they are few enough to be kept."""
    return (_few_draws if count * rounds <= _DRAWN_AT_ONCE else _Draws)(count, rounds, seed)


def _common_items(scores: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[str]]:
    """Systems and the items scored for all of them, sorted so that draws do not depend on their order."""
    if not scores:
        raise BadInput("there is no system to rank")
    common = set.intersection(*(set(values) for values in scores.values()))
    if not common:
        raise BadInput(
            f"no item was scored for all {len(scores)} systems, so they cannot be ranked on equal terms; "
            "leave out the systems with too few scored items"
        )
    return sorted(scores), sorted(common)


def _clusters_of(items: Sequence[str], clusters: Mapping[str, Hashable] | None) -> Sequence[Hashable]:
    if clusters is None:
        return items
    missing = [item for item in items if item not in clusters]
    if missing:
        raise BadInput(f"{len(missing)} items have no cluster, the first is {missing[0]!r}; give one for each")
    return [clusters[item] for item in items]


def cluster_codes(clusters: Sequence[Hashable] | None, size: int) -> tuple[NDArray[np.intp], int]:
    """The cluster of each of `size` values as an integer from 0, and how many clusters there are.

    Raises:
        BadInput: not one cluster for each value.
    """
    if clusters is None:
        return np.arange(size, dtype=np.intp), size
    if len(clusters) != size:
        raise BadInput(f"{size} values came with {len(clusters)} clusters; give one cluster for each value")
    return _codes(clusters)


def _codes(labels: Sequence[Hashable]) -> tuple[NDArray[np.intp], int]:
    """Labels as integers from 0, in order of first appearance, and how many there are."""
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(label, len(numbers)) for label in labels]
    return np.asarray(codes, dtype=np.intp), len(numbers)


def _student_quantile(freedom: int, level: float) -> float:
    return float(special.stdtrit(freedom, (1 + level) / 2))


def _expanded_tail(count: int, level: float) -> float:
    return float(special.ndtr(-math.sqrt(count / (count - 1)) * _student_quantile(count - 1, level)))
