"""Biases of a human or machine judge: whether the position or the length of an answer influences the outcome.

MTalk-Bench (App. C.1.3) reports shares with Wilson intervals and tests them by shuffling labels between two groups of
one binary list; that test is degenerate. Here, position is tested exactly, and length by exchanging the sides within
battles: if length does not matter, the longer answer is equally likely to win and lose. Votes by one person are not
independent evidence, so the battles of a voter are exchanged together, and intervals are clustered by voter.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from podeval.errors import BadInput
from podeval.stats.agreement import Array, Estimate
from podeval.stats.intervals import mean_ci, number_clusters, wilson_bounds

PERMUTATIONS = 10_000
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Bias:
    """A judge's preference, and the probability that chance produces a preference at least as strong.

    `share` is the share of decided battles with the preference (0.5 = none); `difference` is this share minus the share
    without it, -1..1, as MTalk-Bench reports it; `p` is two-sided, or None if no battle was decided or a single voter
    decided them all.
    """

    share: Estimate
    difference: Estimate
    p: float | None


@dataclass(frozen=True)
class LengthBias:
    """Preference for the longer answer: how often it wins and how much longer winners are, clustered by voter.

    `longer` covers the battles whose answers differ in length; `excess` is the mean length of winners minus the mean
    length of losers, in the unit given, and `p_excess` the share of 10,000 exchanges of sides with an excess at least
    as large.
    """

    longer: Bias
    excess: Estimate
    p_excess: float | None


def wilson(successes: int, n: int) -> Estimate:
    """Return a share with Wilson's score interval at 95 %.

    Raises:
        BadInput: the number of successes is below 0 or above n.
    """
    if not 0 <= successes <= n:
        raise BadInput(f"the number of successes must be between 0 and {n}, not {successes}")
    if n == 0:
        return Estimate(None, None, None, 0)
    return Estimate(successes / n, *wilson_bounds(successes / n, n), n)


def position_bias(first_wins: int, n: int) -> Bias:
    """Test the preference for the side shown first, based on `n` decided battles whose sides were assigned at random.

    Uses Wilson's interval and the exact two-sided binomial test against one half. Ties must be excluded beforehand.
    Every battle is treated as judged by a different voter; `preference` takes voters into account.

    Raises:
        BadInput: there are more wins than battles.
    """
    share = wilson(first_wins, n)
    return Bias(share, _difference(share), float(stats.binomtest(first_wins, n, 0.5).pvalue) if n else None)


def preference(preferred: Sequence[bool], voters: Sequence[Hashable] | None = None, seed: int = 0) -> Bias:
    """Test whether something, such as the side shown first, is preferred, based on decided battles.

    If voters judged several battles, the sign of each voter's excess of preferences is randomised in the test, and the
    interval is clustered by voter; with a single voter, there is neither a test nor an interval. Otherwise, the result
    is that of `position_bias`.

    Args:
        preferred: whether the side in question won each decided battle.
        voters: the person who judged each battle, or another cause of dependence between battles, such as a pair shown
            twice.
        seed: seed of the random signs.

    Raises:
        BadInput: the number of voters differs from the number of battles.
    """
    wins = np.asarray(preferred, dtype=bool)
    codes, groups = number_clusters(voters, wins.size)
    if groups == wins.size:
        return position_bias(int(wins.sum()), wins.size)
    # The mean of +1 and -1 is the difference d; the share is (1 + d) / 2.
    signs = np.where(wins, 1.0, -1.0)
    mean = mean_ci(signs.tolist(), codes.tolist(), bounds=(-1, 1))
    difference = Estimate(mean.mean, mean.low, mean.high, wins.size)
    low, high = (None if bound is None else (1 + bound) / 2 for bound in (mean.low, mean.high))
    # Exchange each voter's battles together.
    sums: Array = np.bincount(codes, weights=signs, minlength=groups).astype(np.float64)
    p = _test_by_exchange(sums, seed) if groups > 1 else None
    return Bias(Estimate((1 + mean.mean) / 2, low, high, wins.size), difference, p)


def length_bias(
    winner_lengths: Sequence[float],
    loser_lengths: Sequence[float],
    voters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> LengthBias:
    """Test the preference for the longer answer, based on decided battles.

    `longer` is tested exactly (binomial), excluding battles whose answers have the same length. `excess` is tested by
    exchanging winner and loser within battles at random. With `voters`, a voter's battles are exchanged together in
    both tests and both intervals are clustered by voter.

    Args:
        winner_lengths: length of the preferred answer of each decided battle (seconds, words).
        loser_lengths: length of the other answer of each decided battle.
        voters: the person who judged each battle.
        seed: seed of the exchanges.

    Raises:
        BadInput: the lists have unequal length, or lengths are not finite.
    """
    won, lost = np.asarray(winner_lengths, dtype=np.float64), np.asarray(loser_lengths, dtype=np.float64)
    if won.ndim != 1 or won.shape != lost.shape:
        raise BadInput(f"length bias needs two lengths for each battle, but {won.size} and {lost.size} are given")
    if not (np.isfinite(won).all() and np.isfinite(lost).all()):
        raise BadInput("the lengths contain NaN or infinity; leave those battles out")
    # How often the longer answer wins.
    excess = won - lost
    codes, groups = number_clusters(voters, excess.size)
    unequal = excess != 0
    longer = preference((excess > 0)[unequal].tolist(), codes[unequal].tolist(), seed)
    if not excess.size:
        return LengthBias(longer, Estimate(None, None, None, 0), None)
    # How much longer the winners are.
    mean = mean_ci(excess.tolist(), voters)
    sums: Array = np.bincount(codes, weights=excess, minlength=groups).astype(np.float64)
    return LengthBias(longer, Estimate(mean.mean, mean.low, mean.high, mean.n), _test_by_exchange(sums, seed))


def _test_by_exchange(sums: Array, seed: int) -> float:
    """Return the two-sided p-value of the sum under random signs, counting the observed signs as one of the draws."""
    random = np.random.default_rng(seed)
    observed = abs(float(sums.sum()))
    tolerance = 1e-9 * float(np.abs(sums).sum())
    as_much = 0
    step = max(1, _BLOCK // sums.size)
    for start in range(0, PERMUTATIONS, step):
        signs = 2.0 * random.integers(0, 2, size=(min(step, PERMUTATIONS - start), sums.size), dtype=np.int8) - 1
        as_much += int((np.abs(signs @ sums) >= observed - tolerance).sum())
    return (as_much + 1) / (PERMUTATIONS + 1)


def _difference(share: Estimate) -> Estimate:
    """Convert a share p to the difference p - (1 - p)."""
    if share.value is None or share.low is None or share.high is None:
        return share
    return Estimate(2 * share.value - 1, 2 * share.low - 1, 2 * share.high - 1, share.count)
