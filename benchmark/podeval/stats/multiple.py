"""Multiple comparisons: Holm's step-down procedure, which limits the probability of any false rejection."""

import numpy as np
from numpy.typing import NDArray


def holm(p: NDArray[np.float64], level: float = 0.95) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected together.

    The k-th smallest of m p-values is compared with (1 - level) / (m - k + 1), the smallest first, until one is too
    large (Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure). Whatever the dependence between the
    tests, the probability that any true hypothesis is rejected is at most 1 - level.

    Args:
        p: p-value of each test, in one dimension; NaN for a test that could not be made, which is not counted.
        level: 1 minus the probability of any false rejection.
    """
    rejected = np.zeros(p.shape, dtype=bool)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    holds = p[order] <= (1 - level) / np.arange(len(order), 0, -1)
    rejected[order[: len(order) if holds.all() else int(np.argmin(holds))]] = True
    return rejected


def holm_pairs(p: NDArray[np.float64], level: float = 0.95) -> NDArray[np.bool_]:
    """Apply `holm` to all pairs of a symmetric table of p-values; the result is symmetric, False on the diagonal."""
    above = np.triu_indices(len(p), 1)
    table = np.zeros(p.shape, dtype=bool)
    table[above] = holm(p[above], level)
    both: NDArray[np.bool_] = table | table.T
    return both
