"""Clusters of items, whose values may depend on each other in any way: their numbers, and what each does to a mean."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput

Array = NDArray[np.float64]

NO_SPREAD = 1e-9
"""Standard error, as a share of the difference, below which it is rounding error."""


def tabulate_values(columns: Sequence[Mapping[str, float]], items: Sequence[str]) -> Array:
    """Return values by item as columns of a table, `(items, columns)`, with NaN for what a column lacks.

    Raises:
        BadInput: a value is not finite.
    """
    y = np.array([[column.get(item, math.nan) for column in columns] for item in items], dtype=np.float64)
    if np.isfinite(y).sum() < sum(item in column for column in columns for item in items):
        raise BadInput("the scores to rank hold NaN or infinity; leave unscored items out first")
    return y


def make_membership(items: Sequence[str], clusters: Mapping[str, Hashable] | None) -> Any:
    """Return a sparse matrix of ones and zeros that says which item is in which cluster, `(clusters, items)`.

    Args:
        items: the items.
        clusters: the cluster of each item; None makes each item its own.

    Raises:
        BadInput: an item has no cluster.
    """
    from scipy import sparse

    missing = [item for item in items if clusters is not None and item not in clusters]
    if missing:
        raise BadInput(f"{len(missing)} items have no cluster, the first is {missing[0]!r}; give one for each")
    labels = items if clusters is None else [clusters[item] for item in items]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    places = ([numbers[label] for label in labels], np.arange(len(labels)))
    return sparse.csr_array((np.ones(len(labels)), places), shape=(len(numbers), len(labels)))


def compute_pulls(residuals: Array, sizes: Array) -> Array:
    """Return each cluster's influence on a mean, times G: without the cluster, the mean would be `pull / (G - 1)` less.

    Args:
        residuals: sum of the weighted residuals of each cluster, `(clusters,)` or `(clusters, columns)`.
        sizes: weight of each cluster, likewise; 0 for one that the mean does not have.
    """
    rest = sizes.sum(axis=0) - sizes
    pulls: Array = residuals * ((sizes > 0).sum(axis=0) - 1) / (rest if rest.ndim == residuals.ndim else rest[:, None])
    return pulls


def bound_alike(clusters: int | NDArray[np.intp]) -> Any:
    """Return an upper bound of the probability that two equal systems differ alike, and not by zero, in every cluster.

    Of two draws from one distribution, one exceeds the other by a given amount with probability sum p(x) p(x + d),
    which is at most 1/4 (Motzkin and Straus 1965); over all amounts the powers of these probabilities sum to at most 4
    (1/4) ** clusters.
    """
    return 4.0 ** (1.0 - clusters)


def find_student_quantile(freedom: int, level: float) -> float:
    """Return how many standard errors Student's interval of this level reaches."""
    from scipy import special

    return float(special.stdtrit(freedom, (1 + level) / 2))


def expand_tail(count: int, level: float) -> float:
    """Return the tail of the expanded percentile interval of so many clusters."""
    from scipy import special

    return float(special.ndtr(-math.sqrt(count / (count - 1)) * find_student_quantile(count - 1, level)))
