"""Intervals of means, and ranges of ranks that claim only differences that the data support.

Student's interval is symmetric, so it suits symmetric values. Values near a bound that they cannot pass are skewed, and
the interval of their mean must be wider on the side of the tail; values that always equal one of the bounds are
yes-or-no values, and their mean is a share.

`mean_ci` is analytic and clustered; `paired_bootstrap_ranks` and `paired_difference` compare systems on the items that
they share. The unit that is resampled (episode, dialogue, voter) is the cluster: values within a cluster may depend on
each other in any way. For how often each interval covers the truth, and how often equal systems are separated, see
`docs/decisions/intervals.md` and `docs/decisions/ranks.md`, produced by `studies/ranks.py`.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput

Array = NDArray[np.float64]
Bounds = tuple[float | None, float | None]

_CROWDED = 3.0
"""Distance of a mean from a bound, in standard deviations, within which its values count as skewed by the bound."""

_LONG_TAIL = 3.0
"""The number of values that a long tail is assumed to be worth; `long_tail_reach` explains the choice."""

_LONGEST_TAIL = 3.0
"""Logarithm of the maximum ratio of a long tail's limit to the mean; a single outlier is no proof of a longer tail."""

_FINEST_STEP = 1e-3
"""Finest step assumed for continuous values: the last decimal shown on a board."""

# After changing the method for intervals or ranks, increase `podeval.metrics.score.INTERVALS`.


def wilson_bounds(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval (1927) for a share of n independent draws; n need not be an integer."""
    from scipy import special

    z = float(special.ndtri((1 + level) / 2))
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def share_interval(share: float, error: float, sizes: Array, values: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval for a share whose draws may come in clusters.

    The number of draws is the effective one of Korn and Graubard (1998, Confidence Intervals for Proportions with Small
    Expected Number of Positive Counts): the number of independent draws with the same error, reduced for few clusters.
    If all draws are equal, no error can be estimated, so each cluster counts as one draw.

    Args:
        share: the share, from 0 to 1.
        error: its cluster-robust standard error.
        sizes: weight of each cluster.
        values: number of draws.
        level: confidence level.
    """
    clusters = float(sizes.sum() ** 2 / (sizes @ sizes))
    draws = float(values)
    if len(sizes) < values or clusters < values * (1 - 1e-9):
        alike = error < 1e-9 or not 0 < share < 1
        apart = clusters if alike else min(draws, max(clusters, share * (1 - share) / error**2))
        from scipy import special

        z, t = special.ndtri((1 + level) / 2), special.stdtrit(len(sizes) - 1, (1 + level) / 2)
        draws = apart if alike else max(1.0, apart * float(z / t) ** 2)
    return wilson_bounds(share, draws, level)


def skewed_reach(pulls: Array, quantile: float) -> tuple[float, float]:
    """Return the reach of a mean's interval below and above it: the wider of Student's and Hall's on each side.

    Hall (1992, On the Removal of Skewness by Transformation) makes the studentised mean symmetric by a cubic whose
    inverse exists everywhere; it is used here with Student's quantile and the bias-corrected sample skewness.

    Args:
        pulls: influence of each cluster on the mean times the number of clusters; without clusters, the distances of
            the values from the mean.
        quantile: the quantile of Student's t that the interval uses.
    """
    # Student's reach.
    count = len(pulls)
    error = math.sqrt(float(pulls @ pulls) / (count * (count - 1)))
    half = quantile * error
    second = float(np.mean(pulls**2))
    if count < 3 or second == 0.0:
        return half, half
    # Hall's reach, from the skewness.
    skewness: float = float(np.mean(pulls**3)) / second**1.5 * math.sqrt(count * (count - 1)) / (count - 2)
    if abs(skewness) < 1e-6:
        return half, half

    def untransformed(at: float) -> float:
        return 3 / skewness * (float(np.cbrt(1 + skewness * (at - skewness / (6 * count)))) - 1)

    deviation, at = error * math.sqrt(count), quantile / math.sqrt(count)
    return max(half, deviation * untransformed(at)), max(half, -deviation * untransformed(-at))


def long_tail_reach(distances: Array, quantile: float) -> float:
    """Return the reach of the interval into an unbounded tail, modelled as a lognormal's.

    A few values rarely include one from the far end of a long tail, so their sample spread and skewness are too small.
    The upper limit of a lognormal mean (Olsson 2005, Confidence Intervals for the Mean of a Log-Normal Distribution)
    accounts for the far end, but is too wide for shorter tails. This limit is therefore given the weight 3 / n: one
    half with six values, and practically zero with enough values to show their skewness. The factor 3 is the smallest
    with which the interval contains the true mean in 93 % of cases for six lognormal values with sigma 1.

    Args:
        distances: distance of each value from the bound on the other side; the result is 0 if one is not positive.
        quantile: the quantile of Student's t that the interval uses.
    """
    count = len(distances)
    if not (distances > 0).all():
        return 0.0
    logs = np.log(distances)
    variance = float(logs.var(ddof=1))
    error = math.sqrt(variance / count + variance**2 / (2 * (count - 1)))
    mean = float(distances.mean())
    limit = math.exp(min(float(logs.mean()) + variance / 2 + quantile * error, math.log(mean) + _LONGEST_TAIL))
    return (limit - mean) * min(1.0, _LONG_TAIL / count)


def find_step(values: Array) -> float:
    """Return the resolution of values: the last decimal place of any of them, from 1 to 0.001."""
    steps = (10.0**-places for places in range(3) if np.allclose(values, values.round(places), rtol=0, atol=1e-9))
    return next(steps, _FINEST_STEP)


def alike_reach(sizes: Array, values: int, step: float, level: float) -> float:
    """Return the reach of a mean's interval if all clusters agree, so that no error can be estimated.

    Even if n draws are equal, further draws may differ, or the measurement may be too coarse to show a difference. As
    for shares, Wilson's interval for 0 out of n gives the share of draws that may differ (39 % with six draws, 7 % with
    51), and the smallest possible difference is one step of the measurement. For yes-or-no values, for which a step is
    the whole scale, the result is the share's own interval.

    Args:
        sizes: weight of each cluster.
        values: number of values.
        step: the resolution of the values.
        level: confidence level.
    """
    return step * share_interval(0.0, 0.0, sizes, values, level)[1]


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval, in the unit of the values.

    `low` and `high` are None if no interval can be computed because there are fewer than two clusters. `n` counts
    values.
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
    bounds: Bounds = (None, None),
    step: float | None = None,
) -> Interval:
    """Return the confidence interval of a mean, robust to dependence within clusters.

    A cluster's influence is the change in the mean if the cluster is left out: u_g / (W - w_g), with u_g the sum of w
    (y - mean) over cluster g, w_g its weight and W the total weight. The variance is (G - 1) / G times the sum of the
    squared influences: the jackknife over clusters, CR3 in Cameron and Miller (2015, A Practitioner's Guide to
    Cluster-Robust Inference). The interval uses Student's t with G - 1 degrees of freedom. If every value is its own
    cluster, it is the textbook t interval with standard error s / sqrt(n).

    Bounds have three consequences. Values that all equal one of the bounds are yes-or-no values: the interval is
    Wilson's, with the effective number of draws. If a bound is within three standard deviations of the mean, the values
    are skewed: each side has the wider reach of Student's and Hall's intervals, and is extended towards an unbounded
    tail if there are few values. An interval never exceeds a bound.

    If all clusters agree, the interval follows from the resolution of the values instead (`alike_reach`).

    Args:
        values: n finite numbers.
        clusters: the cluster of each value; None makes each value its own cluster.
        level: confidence level, between 0 and 1.
        weights: positive weight of each value; with weights, the mean is a ratio of two sums.
        bounds: the smallest and the largest possible value; None if there is no bound.
        step: the smallest difference between two values; None means their last decimal (`find_step`).

    Raises:
        BadInput: there are no values, a value is not finite, the number of clusters or weights differs, or the level is
            out of range.
    """
    from podeval.stats.pair_comparisons import NEAR_ZERO, compute_pulls, find_student_quantile

    y = np.asarray(values, dtype=np.float64)
    if y.ndim != 1 or y.size == 0:
        raise BadInput("a mean needs at least one value; leave the mean out if nothing was scored")
    if not np.isfinite(y).all():
        raise BadInput("the values to average contain NaN or infinity; leave unscored items out first")
    if not 0 < level < 1:
        raise BadInput(f"the confidence level must be between 0 and 1, not {level}; 0.95 is the usual one")
    codes, count = number_clusters(clusters, y.size)
    w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != y.shape or not (np.isfinite(w) & (w > 0)).all():
        raise BadInput(f"{y.size} values need {y.size} positive weights")
    mean = float(y.mean() if weights is None else (w @ y) / w.sum())
    if count < 2:
        return Interval(mean, None, None, y.size, count)
    sizes: Array = np.bincount(codes, weights=w, minlength=count).astype(np.float64)
    residuals: Array = np.bincount(codes, weights=w * (y - mean), minlength=count).astype(np.float64)
    pulls = compute_pulls(residuals, sizes)
    low, high = bounds
    error = math.sqrt(float(pulls @ pulls) / (count * (count - 1)))
    # If every value equals one of the bounds, these are yes-or-no values.
    if low is not None and high is not None and np.all((y == low) | (y == high)):
        least, most = share_interval((mean - low) / (high - low), error / (high - low), sizes, y.size, level)
        return Interval(mean, low + least * (high - low), low + most * (high - low), y.size, count)
    quantile = find_student_quantile(count - 1, level)
    near = _CROWDED * float(y.std(ddof=1))
    if error <= NEAR_ZERO * float(np.abs(y).max()):
        below = above = alike_reach(sizes, y.size, step or find_step(y), level)
    elif any(bound is not None and abs(mean - bound) < near for bound in bounds):
        below, above = skewed_reach(pulls, quantile)
        if count == y.size and weights is None:
            if low is not None and high is None:
                above = max(above, long_tail_reach(y - low, quantile))
            elif high is not None and low is None:
                below = max(below, long_tail_reach(high - y, quantile))
    else:
        below = above = quantile * error
    # A value may exceed a declared bound through rounding; the interval always contains the mean.
    least = mean - below if low is None else min(mean, max(low, mean - below))
    most = mean + above if high is None else max(mean, min(high, mean + above))
    return Interval(mean, least, most, y.size, count)


def paired_bootstrap_ranks(
    scores: Mapping[str, Mapping[str, float]],
    higher_is_better: bool,
    clusters: Mapping[str, Hashable] | None = None,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, tuple[int, int]]:
    """Return the range of ranks that each system may claim, from pairwise comparisons on common items.

    One system beats another if two intervals for the paired difference between their means exclude zero:

    - Student's, clustered, corrected for the number of pairs by Holm's procedure, so that among equal systems the
      probability of any false order is at most 1 - level;
    - the bootstrap's: clusters are drawn with replacement, the same draw for every system. It is a percentile interval
      widened for few clusters ("expanded percentile", Hesterberg 2015, What Teachers Should Know About the Bootstrap):
      the tail is Phi(-sqrt(G / (G - 1)) * t) instead of the plain (1 - level) / 2. This interval is not corrected.

    If the difference is the same in each of G clusters, there is no spread to estimate an error from. The probability
    that two equal systems differ by any one amount is at most a quarter, so the p-value is then 4 ** (1 - G).

    Gaps count against the system that has them: if it lacks items that another system has, it beats that system only if
    both intervals exclude zero even when each missing item counts as a loss by one standard deviation of their
    differences. If a pair shares less than 90 % of the clusters of the system with more clusters, neither beats the
    other, and the system with fewer clusters is not compared with any system.

    A system's best rank is 1 + the number of systems that beat it; its worst rank is the number of systems that it does
    not beat, including itself. A system that is not compared with any other may have any rank.

    Args:
        scores: value of each item that a system was scored on, by system.
        higher_is_better: direction of the metric.
        clusters: the cluster of each item; None makes each item its own cluster.
        rounds: number of bootstrap draws.
        seed: seed of the draws; the same seed gives the same ranks regardless of the order of systems and items.
        level: 1 minus the probability of any false order among equal systems.

    Returns:
        Range of ranks `(best, worst)` by system, 1 being the first rank. With fewer than two clusters, every system may
        have any rank.

    Raises:
        BadInput: there are no systems, no two systems share an item, a value is not finite, or an item has no cluster.
    """
    from podeval.stats.pair_comparisons import compare_pairs

    verdicts = compare_pairs(scores, higher_is_better, clusters, rounds, seed, level)
    if len(scores) > 1 and not np.triu(verdicts.shared, 1).any():
        raise BadInput(
            f"no item was scored for all {len(scores)} systems, nor for any two of them, so they cannot be ranked on "
            "equal terms; leave out the systems with too few scored items"
        )
    return dict.fromkeys(sorted(scores), (1, len(scores))) | verdicts.ranges


def paired_difference(
    a: Mapping[str, float],
    b: Mapping[str, float],
    clusters: Mapping[str, Hashable] | None = None,
    weights: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the mean of one system minus that of another over the items on which both were scored, with its interval.

    On each side, the interval has the wider reach of the two intervals in `paired_bootstrap_ranks`; if the difference
    is the same in every cluster, the interval follows from the resolution of the values (`alike_reach`). A single pair
    chosen by a reader needs no correction: among only these two systems, one beats the other if and only if this
    interval is entirely on one side of zero.

    Args:
        a: values of the first system by item.
        b: values of the second system by item.
        clusters: the cluster of each item; None makes each item its own cluster.
        weights: weight of each item's value in the means of `a` and `b`; each mean is then a ratio of sums.
        rounds: number of bootstrap draws.
        seed: seed of the draws.
        level: confidence level of the interval.

    Returns:
        The interval; `n` counts the common items. It has no `low` and `high` with fewer than two clusters, or if the
        difference is the same in each of so few clusters that chance could explain it.

    Raises:
        BadInput: the systems share no item, a value is not finite, a weight is not positive, or an item has no cluster.
    """
    # Imported only for bootstrap intervals, which a single recording does not have, so a short command starts sooner.
    from podeval.stats import pair_comparisons as draws

    if not (items := sorted(a.keys() & b.keys())):
        raise BadInput("no item was scored for both systems, so they cannot be compared")
    y = draws.tabulate_values((a, b), items)
    w = np.ones_like(y) if weights is None else draws.tabulate_values(weights, items)
    if not (w > 0).all():
        raise BadInput("the weights of a mean must be positive")
    membership = draws.make_membership(items, clusters)
    count: int = membership.shape[0]
    whole = (w * y).sum(axis=0) / w.sum(axis=0)
    # The difference between equal systems must be exactly zero, as below.
    mean = float(np.mean(y[:, 0] - y[:, 1]) if weights is None else whole[0] - whole[1])
    if count < 2:
        return Interval(mean, None, None, len(items), count)
    drawn_clusters = draws.draw_clusters(count, rounds, seed)
    if weights is None:
        difference = y[:, 0] - y[:, 1]
        drawn = (drawn_clusters @ (membership @ difference)) / (drawn_clusters @ membership.sum(axis=1))
        pulls = draws.compute_pulls(membership @ (difference - mean), membership.sum(axis=1))
    else:
        means = (drawn_clusters @ (membership @ (w * y))) / (drawn_clusters @ (membership @ w))
        drawn = means[:, 0] - means[:, 1]
        of_both = draws.compute_pulls(membership @ (w * (y - whole)), membership @ w)
        pulls = of_both[:, 0] - of_both[:, 1]
    error = math.sqrt(float(pulls @ pulls) / (count * (count - 1)))
    if error <= draws.NEAR_ZERO * abs(mean):
        if mean != 0 and draws.bound_alike(count) > 1 - level:
            return Interval(mean, None, None, len(items), count)
        # The step is at most the difference itself, so the interval excludes zero if and only if one beats the other.
        half = alike_reach(membership @ w[:, 0], len(items), min(find_step(y), abs(mean) or 1.0), level)
        return Interval(mean, mean - half, mean + half, len(items), count)
    tail, half = draws.expand_tail(count, level), draws.find_student_quantile(count - 1, level) * error
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(mean, min(float(low), mean - half), max(float(high), mean + half), len(items), count)


def number_clusters(clusters: Sequence[Hashable] | None, size: int) -> tuple[NDArray[np.intp], int]:
    """Return the cluster of each of `size` values as an integer from 0, and the number of clusters.

    Raises:
        BadInput: the number of clusters differs from the number of values.
    """
    if clusters is None:
        return np.arange(size, dtype=np.intp), size
    if len(clusters) != size:
        raise BadInput(f"{size} values came with {len(clusters)} clusters; give one cluster for each value")
    numbers = {label: number for number, label in enumerate(dict.fromkeys(clusters))}
    return np.array([numbers[label] for label in clusters], dtype=np.intp), len(numbers)
