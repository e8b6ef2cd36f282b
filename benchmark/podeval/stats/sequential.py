"""Evidence from paired differences with any distribution, which may be checked after each difference.

Two equal systems may be swapped in any pair without changing anything, so both signs of each difference, given its
size, are equally likely. A gambler who bets on "worse" pair by pair, with stakes that depend on sizes and earlier
pairs, cannot expect to win: their capital is a martingale, and the probability that it ever reaches 1/a is at most a
(Ville). The capital is the evidence (an e-process); it requires neither a normal distribution, nor a bound, nor a
number of pairs fixed beforehand. The capital after n differences d, with signs s and sizes r relative to the median
size so far, is a mixture over stakes c of the products of 1 + s tanh(c r).

The choice of this test is explained in docs/decisions/regression-gate.md. `python studies/regression_gate.py` measures
its rate of false alarms for equal systems and its power.
"""

import hashlib
import math
from bisect import insort
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Array = NDArray[np.float64]

_STAKES = {
    **{0.03125: 0.05, 0.0625: 0.05, 0.125: 0.06, 0.25: 0.06, 0.5: 0.06, 1.0: 0.06, 2.0: 0.06},
    **{4.0: 0.1, 16.0: 0.2, 64.0: 0.3},
}
"""Weights of stakes: large stakes detect a few pairs that all agree, small stakes a few bad pairs among a thousand."""

_LOG_WEIGHTS = np.log(np.array(list(_STAKES.values())))
_STEPS = 60
_EXACT_MOST = 200_000
"""Maximum number of rearrangements that are enumerated completely."""
_DRAWN = 20_000
_MOST_FACTOR = 20
_COMPARISONS = 200
"""Number of simulated comparisons for estimating how many differences are needed to show an increase of a given
size."""
_LENGTHS = (50, 200, 800, 3_200)
"""Numbers of differences to try."""
POWER = 0.8
"""Share of comparisons that should show the increase."""


def evidence_of_increase(differences: ArrayLike, margin: float = 0.0) -> Array:
    """Return the evidence, after each difference, that the differences are centred above a margin; 20 is evidence at
    the 5 % level.

    Args:
        differences: `(n,)`, in order; infinite ones count as the largest.
        margin: the margin above which the differences may be centred.
    """
    return np.exp(special.logsumexp(_log_capitals(differences, margin) + _LOG_WEIGHTS, axis=1))  # type: ignore[no-any-return]


def sequential_interval(differences: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """Return an interval for the centre of the differences that is valid at every look.

    The interval contains every centre against which there is not enough evidence on either side; None if there are too
    few differences for any evidence.
    """
    values = np.asarray(differences, np.float64)
    values = values[np.isfinite(values)]
    needed = 2 / (1 - level)
    if not len(values) or evidence_of_increase(np.ones(len(values)))[-1] < needed:
        return None
    low, high = float(values.min()), float(values.max())
    reach = 10 * (high - low) or 1e-12
    least = _bisect(lambda centre: bool(evidence_of_increase(values, centre)[-1] >= needed), low - reach, high)
    most = _bisect(lambda centre: bool(evidence_of_increase(-values, -centre)[-1] >= needed), high + reach, low)
    return min(least, most), max(least, most)


def count_needed(differences: ArrayLike, evidence: float, margin: float = 0.0) -> int | None:
    """Return how many differences like these are needed for this much evidence of an increase; None if no number is
    enough.

    The evidence is assumed to keep growing at its current rate for each stake.
    """
    capitals = _log_capitals(differences, margin)
    if not len(capitals):
        return None
    growth = capitals[-1] / len(capitals)
    grows = growth > 0
    if not grows.any():
        return None
    needed = (math.log(evidence) - _LOG_WEIGHTS[grows]) / growth[grows]
    count = max(len(capitals) + 1, math.ceil(float(needed.min())))
    return count if count <= _MOST_FACTOR * max(len(capitals), 10) else None


def count_repeats_needed(
    repeats: Sequence[Sequence[float]], differences: ArrayLike, evidence: float, margin: float = 0.0
) -> int | None:
    """Return how many more repeats of each unit are needed for this much evidence; None if ten times as many are too
    few.

    Additional repeats are assumed to have only one effect: they average out the differences between repeats.

    Args:
        repeats: the differences of each unit, one for each repeat.
        differences: the difference of each unit, in the direction of an increase.
        evidence: the evidence required for a decision.
        margin: the margin above which the differences may be centred.
    """
    counts = [len(values) for values in repeats]
    if min(counts) < 2 or len(counts) < 2:
        return None
    count = int(np.median(counts))
    increases = np.asarray(differences, np.float64)
    increases = increases[np.isfinite(increases)]
    within = float(np.mean([np.var(values, ddof=1) for values in repeats]))
    spread = float(np.var(increases, ddof=1))
    between = max(0.0, spread - within / count)
    centre = float(increases.mean())
    for total in range(count + 1, 10 * count + 1):
        factor = math.sqrt((between + within / total) / spread) if spread else 1.0
        if evidence_of_increase(centre + factor * (increases - centre), margin)[-1] >= evidence:
            return total - count
    return None


def count_to_show(
    differences: ArrayLike, size: float, evidence: float, margin: float = 0.0, seed: int = 0
) -> int | None:
    """Return the number of differences that show an increase of this size in 80 % of comparisons; None above 3,200.

    Differences are drawn from the given ones with replacement; each is given a random sign, as for equal systems, and
    the size is added. If the systems are not equal, the number is too large rather than too small.

    Args:
        differences: the given differences, ideally between two runs of one system.
        size: the size of the increase to show.
        evidence: the evidence required for a decision.
        margin: the margin above which the differences may be centred.
        seed: the seed of the draws.
    """
    values = np.asarray(differences, np.float64)
    values = values[np.isfinite(values)]
    generator = np.random.default_rng(seed)
    for length in _LENGTHS if len(values) else ():
        shape = (_COMPARISONS, length)
        rows = generator.choice(values, shape) * generator.choice((-1.0, 1.0), shape) + size
        shares = np.mean([evidence_of_increase(row, margin) >= evidence for row in rows], axis=0)
        if (shares >= POWER).any():
            return int(np.argmax(shares >= POWER)) + 1
    return None


def permutation_p(before: ArrayLike, after: ArrayLike, margin: float = 0.0, seed: int = 0) -> float:
    """Return the probability that the mean of repeats of one system increases by at least as much as was observed.

    For two equal systems, any rearrangement of all values into two groups is as likely as the actual one. All
    rearrangements are counted if there are few; otherwise 20,000 are drawn and the actual one is added, which preserves
    the level.

    Args:
        before: values of repeats, `(n,)`.
        after: values of the other side's repeats, `(m,)`.
        margin: the amount by which `after` may be greater.
        seed: the seed of the draws.
    """
    a, b = np.asarray(before, np.float64), np.asarray(after, np.float64) - margin
    values = np.concatenate([a, b])
    if math.comb(len(values), len(b)) <= _EXACT_MOST:
        sums = np.array([values[list(chosen)].sum() for chosen in combinations(range(len(values)), len(b))])
        return float(np.mean(sums >= b.sum() - 1e-9 * max(1.0, float(np.abs(values).sum()))))
    generator = np.random.default_rng(seed)
    drawn = np.array([generator.permutation(values)[: len(b)].sum() for _ in range(_DRAWN)])
    return float((1 + np.sum(drawn >= b.sum() - 1e-9)) / (1 + _DRAWN))


def least_permutation_p(before: int, after: int) -> float:
    """Return the lowest probability that `permutation_p` can return for these numbers of repeats."""
    return 1 / math.comb(before + after, after)


def _log_capitals(differences: ArrayLike, margin: float) -> Array:
    """Return the logarithm of the capital of each stake after each difference, `(n, stakes)`."""
    values = np.asarray(differences, np.float64) - margin
    sizes = np.abs(values)
    finite = sizes[np.isfinite(sizes)]
    sizes = np.where(np.isfinite(sizes), sizes, 2 * finite.max(initial=0.0) or 1.0)
    relative = np.zeros_like(sizes)
    ordered: list[float] = []
    for number, size in enumerate(sizes.tolist()):
        if size:
            insort(ordered, size)
            half = len(ordered) // 2
            relative[number] = size / (ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)
    stakes = np.array(list(_STAKES))
    # log(1 + s tanh(x)) = log 2 - log(1 + exp(-2 s x)), which neither overflows nor loses digits.
    factors = math.log(2) - np.logaddexp(0, -2 * np.outer(np.sign(values) * relative, stakes))
    return np.cumsum(factors, axis=0)


def _bisect(rejects: Callable[[float], bool], far: float, near: float) -> float:
    """Return the limit at which a test stops rejecting, between a rejected value and one that may not be rejected."""
    for _ in range(_STEPS):
        middle = (far + near) / 2
        far, near = (middle, near) if rejects(middle) else (far, middle)
    return near


# Pilots: a small sample that represents the whole, and the expected result for the whole.

T = TypeVar("T")

USUAL = 20
"""Number of items in a pilot if no number is given."""


def choose_pilot(strata: Sequence[Hashable], names: Sequence[str], count: int) -> list[int]:
    """Choose a stratified sample in which each stratum has its proportional share, to within one item.

    Items are ordered by stratum, then by a hash of their names, and every k-th is taken. The same items give the same
    sample.

    Args:
        strata: the stratum of each item.
        names: the name of each item.
        count: size of the sample; if there are no more items than this, all are taken.

    Returns:
        Positions of the chosen items, in ascending order.
    """
    digests = [hashlib.sha256(name.encode("utf-8", "replace")).hexdigest() for name in names]
    order = sorted(range(len(strata)), key=lambda i: (str(strata[i]), digests[i]))
    count = min(count, len(order))
    return sorted(order[int((place + 0.5) * len(order) / count)] for place in range(count))


def project_half_width(half: float, count: int, total: int) -> float:
    """Estimate the half width of a mean's interval with more items of the same kind.

    The half width shrinks with the square root of the number of items, and Student's t has more degrees of freedom.

    Args:
        half: half width of the 95 % interval with `count` items, at least two.
        count: number of items in the sample.
        total: number of items that will be measured in the end.
    """
    from podeval.stats.pair_comparisons import find_student_quantile

    narrower = find_student_quantile(total - 1, 0.95) / find_student_quantile(count - 1, 0.95)
    return half * math.sqrt(count / total) * narrower


def select_items(
    items: Sequence[T], limit: int | None, pilot: bool, stratum: Callable[[T], Hashable], name: Callable[[T], str]
) -> list[T]:
    """Select the items to work on: all, the first few, or a stratified sample.

    Args:
        items: the items to select from.
        limit: number of items; None for all items, or for a sample of the default size.
        pilot: whether to take a sample.
        stratum: function that returns the stratum of an item.
        name: function that returns the name of an item; the draw depends on the names.
    """
    if not pilot:
        return list(items[:limit])
    return [items[i] for i in choose_pilot([*map(stratum, items)], [*map(name, items)], limit or USUAL)]
