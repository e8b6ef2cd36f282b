"""Values of one key in two runs, pair by pair (one item with one seed), and the items that became worse."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.metrics.score import Result, Score, Unscored
from podeval.stats.pair_comparisons import holm
from podeval.stats.sequential import count_repeats_needed, permutation_p

LEAST_SEEDS = 5
"""Minimum number of seeds for testing a single item."""

Pair = tuple[str, int]
"""An item and a seed."""


@dataclass(frozen=True)
class PairedValues:
    """Values of one key for pairs that both runs have, and the pairs that one run lacks through its system's fault."""

    before: dict[Pair, float]
    after: dict[Pair, float]
    weights: tuple[dict[Pair, float], ...]
    clusters: dict[Pair, str]
    lost: tuple[Pair, ...]
    won: tuple[Pair, ...]


def pair_values(
    benchmark: Benchmark,
    items: Sequence[Item],
    seeds: Sequence[int],
    key: str,
    first: Mapping[Pair, Result],
    second: Mapping[Pair, Result],
) -> PairedValues:
    """Pair the values of a metric's key; `second` contains the results of the run under test."""
    clusters = {(item.id, seed): benchmark.cluster(item) for item in items for seed in seeds}
    # The values of each side, with their weights.
    sides = [
        {
            pair: (value, score.weights.get(key, 1.0))
            for pair, score in side.items()
            if isinstance(score, Score) and (value := score.values.get(key)) is not None
        }
        for side in (first, second)
    ]
    both = [pair for pair in clusters if pair in sides[0] and pair in sides[1]]
    before, after = ({pair: side[pair][0] for pair in both} for side in sides)
    weights = tuple({pair: side[pair][1] for pair in both} for side in sides)
    # A pair is lost (or won) if only the first (or second) run has a value and the other run's system is to blame.
    lost = tuple(pair for pair in clusters if pair in sides[0] and _is_fault(second.get(pair)))
    won = tuple(pair for pair in clusters if pair in sides[1] and _is_fault(first.get(pair)))
    return PairedValues(before, after, weights, clusters, lost, won)


def _is_fault(result: Result | None) -> bool:
    """Return whether a system is to blame for a missing score."""
    return isinstance(result, Unscored) and result.cause == "system"


@dataclass(frozen=True)
class WorseItem:
    """An item whose results over the seeds became worse by more than chance alone would explain."""

    item: str
    before: float
    after: float
    p: float


def list_increases(paired: PairedValues, worse: float) -> list[float]:
    """Return how much worse the second run is in each cluster, in order; a lost pair is the largest difference."""
    by_cluster: dict[str, list[float]] = defaultdict(list)
    for pair, cluster in paired.clusters.items():
        if pair in paired.before:
            by_cluster[cluster].append(worse * (paired.after[pair] - paired.before[pair]))
        elif pair in paired.lost or pair in paired.won:
            by_cluster[cluster].append(math.inf if pair in paired.lost else -math.inf)
    return [_mean_of_cluster(values) for values in by_cluster.values()]


def _mean_of_cluster(values: Sequence[float]) -> float:
    """Return the mean of a cluster; if pairs were lost on both sides, the side with more losses decides."""
    lost = sum(math.copysign(1, value) for value in values if math.isinf(value))
    if lost:
        return math.copysign(math.inf, lost)
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else 0.0


def find_worse_items(paired: PairedValues, worse: float, margin: float, share: float) -> tuple[WorseItem, ...]:
    """Find items that are worse over their own seeds alone, corrected for the number of items (Holm)."""
    items: dict[str, list[Pair]] = defaultdict(list)
    for pair in paired.clusters:
        items[pair[0]].append(pair)
    beyond = 10 * max(map(abs, [*paired.before.values(), *paired.after.values()]), default=1.0)
    tested = []
    for item, pairs in items.items():
        usable = [pair for pair in pairs if pair in paired.before or pair in paired.lost or pair in paired.won]
        before = [
            worse * paired.before[pair] if pair in paired.before else beyond * (pair in paired.won) for pair in usable
        ]
        after = [
            worse * paired.after[pair] if pair in paired.after else beyond * (pair in paired.lost) for pair in usable
        ]
        p = permutation_p(before, after, margin) if len(usable) >= LEAST_SEEDS else 1.0
        tested.append(WorseItem(item, float(np.mean(before or [0])) * worse, float(np.mean(after or [0])) * worse, p))
    rejected = holm(np.array([one.p for one in tested]), 1 - share)
    return tuple(one for one, is_worse in zip(tested, rejected, strict=True) if is_worse)


def count_seeds(paired: PairedValues, worse: float, side: tuple[Sequence[float], float], needed: float) -> int | None:
    """Estimate how many more seeds a decision needs, if additional seeds only average out differences between seeds."""
    by_cluster: dict[str, list[float]] = defaultdict(list)
    for pair in paired.before:
        by_cluster[paired.clusters[pair]].append(worse * (paired.after[pair] - paired.before[pair]))
    return count_repeats_needed([*by_cluster.values()], side[0], needed, side[1])
