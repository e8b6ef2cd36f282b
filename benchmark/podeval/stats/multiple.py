"""Many comparisons at once: Holm's step-down procedure, which keeps the chance of any false one at its level."""

import numpy as np
from numpy.typing import NDArray


def holm(p: NDArray[np.float64], level: float = 0.95) -> NDArray[np.bool_]:
    """Which of some hypotheses are rejected together.

    The k-th smallest of m p-values is held against (1 - level) / (m - k + 1), the smallest first, until one is too
    large (Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure). Whatever the dependence between the
    tests, the chance that any true hypothesis is rejected is at most 1 - level.

    Args:
        p: of each test, in one dimension; NaN where it could not be made, which counts as none.
        level: 1 minus the chance of any false rejection.
    """
    rejected = np.zeros(p.shape, dtype=bool)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    holds = p[order] <= (1 - level) / np.arange(len(order), 0, -1)
    rejected[order[: len(order) if holds.all() else int(np.argmin(holds))]] = True
    return rejected


def holm_pairs(p: NDArray[np.float64], level: float = 0.95) -> NDArray[np.bool_]:
    """`holm` over all pairs of a symmetric table of p-values; symmetric, False on the diagonal."""
    above = np.triu_indices(len(p), 1)
    table = np.zeros(p.shape, dtype=bool)
    table[above] = holm(p[above], level)
    both: NDArray[np.bool_] = table | table.T
    return both
