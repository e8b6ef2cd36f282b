"""Discrimination in ABX trials: how often listeners say rightly which of two recordings the third one is.

A share of one half is chance, 1 is perfect. d' is the distance of the two recordings in units of the noise of a
listener's impression, by the differencing model of ABX (Macmillan and Creelman 2005, Detection Theory, chapter 9): the
listener names the one that differs less from X, so that the share of right answers without bias is

    p = Phi(d' / sqrt(2)) Phi(d' / sqrt(6)) + Phi(-d' / sqrt(2)) Phi(-d' / sqrt(6))
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from scipy import optimize, stats

from podeval.errors import BadInput
from podeval.stats.intervals import Interval, mean_ci

_FARTHEST = 12.0
"""A d' beyond which the share of right answers is 1 in every digit that matters."""


@dataclass(frozen=True)
class Trial:
    """One answer: who gave it, whether X was the second side, and whether the answer was the second side."""

    rater: Hashable
    is_second: bool
    says_second: bool

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.is_second == self.says_second


@dataclass(frozen=True)
class Discrimination:
    """How well two recordings are told apart.

    Attributes:
        share: share of right answers, with its 95 % interval.
        p: chance of as many right answers, or more, from listeners who hear no difference.
        d_prime: sensitivity, free of a preference for one side; below 0 where more answers are wrong than right.
        bias: z-value of answering "the second side", 0 for no preference.
    """

    share: Interval
    p: float
    d_prime: float
    bias: float


def discrimination(trials: Sequence[Trial]) -> Discrimination:
    """Return how well listeners tell two recordings apart.

    The interval is Wilson's with the effective number of trials, as those of one listener depend on each other; with
    one listener it is the exact one (Clopper and Pearson). The p-value is of the exact binomial test. It takes no
    account of listeners and need not: what X is was drawn by lot, so that whoever hears no difference is right by
    chance in each trial, whatever their habits.

    Raises:
        BadInput: there are no trials.
    """
    if not trials:
        raise BadInput("there are no answers; every listener was left out or nobody finished")
    right = sum(trial.right for trial in trials)
    test = stats.binomtest(right, len(trials), 0.5, alternative="greater")
    share = mean_ci([float(t.right) for t in trials], [t.rater for t in trials], bounds=(0.0, 1.0))
    if share.low is None:
        exact = stats.binomtest(right, len(trials)).proportion_ci(0.95)
        share = Interval(share.mean, float(exact.low), float(exact.high), share.n, share.clusters)
    # Half an answer of each kind more, so that a perfect listener has a finite d' (Hautus 1995).
    hits, false_alarms = (
        (sum(t.says_second for t in trials if t.is_second == second) + 0.5)
        / (sum(t.is_second == second for t in trials) + 1)
        for second in (True, False)
    )
    z_hits, z_false_alarms = float(stats.norm.ppf(hits)), float(stats.norm.ppf(false_alarms))
    unbiased = float(stats.norm.cdf((z_hits - z_false_alarms) / 2))
    return Discrimination(share, float(test.pvalue), d_prime(unbiased), (z_hits + z_false_alarms) / 2)


def share_right(d: float) -> float:
    """Return the share of right answers at a sensitivity, for listeners without bias."""
    by_pair, by_third = d / math.sqrt(2), d / math.sqrt(6)
    cdf = stats.norm.cdf
    return float(cdf(by_pair) * cdf(by_third) + cdf(-by_pair) * cdf(-by_third))


def d_prime(share: float) -> float:
    """Return the sensitivity at which this share of answers is right; the negative of it for a share below one half."""
    if share < 0.5:
        return -d_prime(1 - share)
    if share >= share_right(_FARTHEST):
        return _FARTHEST
    return float(optimize.brentq(lambda d: share_right(d) - share, 0.0, _FARTHEST))
