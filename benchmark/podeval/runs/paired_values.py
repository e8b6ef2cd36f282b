"""Values of two runs side by side: by pair of one item and one seed, with what one of them lost by its own fault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.metrics.score import Result, Score

Pair = tuple[str, int]
"""An item and a seed."""


@dataclass(frozen=True)
class PairedValues:
    """Values of one key in two runs: by pair where both have one; and pairs that one of them lost by its own fault."""

    before: dict[Pair, float]
    after: dict[Pair, float]
    weights: tuple[dict[Pair, float], dict[Pair, float]]
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
    """Pair the values of a key.

    Args:
        benchmark: the benchmark of the items.
        items: the items that both runs have, or should have.
        seeds: likewise.
        key: the key of a metric.
        first: results of the run that is compared with, by item and seed.
        second: results of the run that is judged.
    """
    before: dict[Pair, float] = {}
    after: dict[Pair, float] = {}
    weights: tuple[dict[Pair, float], dict[Pair, float]] = ({}, {})
    clusters: dict[Pair, str] = {}
    lost: list[Pair] = []
    won: list[Pair] = []
    for item in items:
        for seed in seeds:
            pair = item.id, seed
            clusters[pair] = benchmark.cluster(item)
            a, b = first.get(pair), second.get(pair)
            x, y = _value(a, key), _value(b, key)
            if x is not None and y is not None:
                before[pair], after[pair] = x, y
                weights[0][pair], weights[1][pair] = _weight(a, key), _weight(b, key)
            elif x is not None and _is_fault(b):
                lost.append(pair)
            elif y is not None and _is_fault(a):
                won.append(pair)
    return PairedValues(before, after, weights, clusters, tuple(lost), tuple(won))


def _value(result: Result | None, key: str) -> float | None:
    return result.values.get(key) if isinstance(result, Score) else None


def _weight(result: Result | None, key: str) -> float:
    return result.weights.get(key, 1.0) if isinstance(result, Score) else 1.0


def _is_fault(result: Result | None) -> bool:
    """Whether a system is to blame that there is no score."""
    return result is not None and not isinstance(result, Score) and result.cause == "system"
