"""Agreement where both systems and items are draws: a metric that is valid holds for new systems and new items.

The variance is that over systems plus that over items less that over single outputs (Cameron, Gelbach and Miller,
2011), each by the jackknife on Fisher's z; Student's t with as many degrees of freedom as the smaller of the two has.
With the six systems of a paper that is a wide interval, as it should be.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from podeval.stats.agreement import Estimate
from podeval.stats.intervals import number_clusters

Array = NDArray[np.float64]
Statistic = Callable[[Sequence[float], Sequence[float]], Estimate]

FEWEST = 3
"""Systems, and items, below which there is no interval."""
MOST_OUTPUTS = 300
"""Outputs beyond which the variance over single ones is not subtracted."""


@dataclass(frozen=True)
class WithoutSystem:
    """The agreement without one system."""

    system: str
    value: float | None


def correlate(
    statistic: Statistic,
    ours: Sequence[float],
    theirs: Sequence[float],
    systems: Sequence[Hashable],
    items: Sequence[Hashable],
) -> Estimate:
    """Return a correlation of outputs with its interval over systems and items.

    Args:
        statistic: such as `srcc`; called without clusters.
        ours: a metric's value of each output.
        theirs: people's score of each output.
        systems: the system of each output.
        items: the item of each output.

    Raises:
        BadInput: the lists have unequal length, or values are not finite.
    """
    value = statistic(ours, theirs).value
    count = len(ours)
    if value is None:
        return Estimate(None, None, None, count)
    by_system, system_count = number_clusters(systems, count)
    by_item, item_count = number_clusters(items, count)
    if min(system_count, item_count) < FEWEST:
        return Estimate(value, None, None, count)
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    # Left out where it is dear and small, which only widens the interval.
    outputs = [np.arange(count)] if count <= MOST_OUTPUTS else []
    parts = [_variance(statistic, a, b, codes) for codes in (by_system, by_item, *outputs)]
    if any(part is None for part in parts):
        return Estimate(value, None, None, count)
    over_systems, over_items, over_outputs = [*(part or 0.0 for part in parts), 0.0][:3]
    variance = max(over_systems + over_items - over_outputs, over_systems, over_items)
    reach = float(special.stdtrit(min(system_count, item_count) - 1, 0.975)) * math.sqrt(variance)
    z = math.atanh(_inside(value))
    return Estimate(value, math.tanh(z - reach), math.tanh(z + reach), count)


def leave_out_systems(
    statistic: Statistic, ours: Sequence[float], theirs: Sequence[float], systems: Sequence[str]
) -> tuple[WithoutSystem, ...]:
    """Return the agreement without each system in turn: whether one of them makes it."""
    left_out = []
    for system in dict.fromkeys(systems):
        kept = [number for number, name in enumerate(systems) if name != system]
        estimate = statistic([ours[n] for n in kept], [theirs[n] for n in kept])
        left_out.append(WithoutSystem(system, estimate.value))
    return tuple(left_out)


def best_by_chance(
    keys: Sequence[Sequence[float]], people: Sequence[float], rounds: int = 500, share: float = 0.95
) -> float | None:
    """Return what the best of so many keys reaches in 95 % of draws in which people's order has nothing to do with
    them.

    Args:
        keys: the systems' means by each key, turned so that more is better.
        people: the systems' means by people, in the same order.
        rounds: draws.
        share: the quantile.
    """
    from scipy.stats import rankdata

    ranks = np.array([rankdata(values) for values in keys if len(set(values)) > 1])
    if len(ranks) == 0 or len(people) < FEWEST:
        return None
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    order = rankdata(people) - (len(people) + 1) / 2
    random = np.random.default_rng(0)
    draws = np.array([random.permutation(order) for _ in range(rounds)])
    norms = np.linalg.norm(centred, axis=1)[:, None] * np.linalg.norm(order)
    return float(np.quantile((centred @ draws.T / norms).max(axis=0), share))


def _variance(statistic: Statistic, a: Array, b: Array, codes: NDArray[np.intp]) -> float | None:
    """Return the jackknife's variance of Fisher's z over clusters; None where one leaves nothing to correlate."""
    z = []
    count = int(codes.max()) + 1
    for code in range(count):
        kept = codes != code
        value = statistic(a[kept].tolist(), b[kept].tolist()).value
        if value is None:
            return None
        z.append(math.atanh(_inside(value)))
    return (count - 1) / count * float(np.square(np.array(z) - np.mean(z)).sum())


def _inside(value: float) -> float:
    return min(max(value, -1 + 1e-9), 1 - 1e-9)
