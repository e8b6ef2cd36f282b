"""Two runs are compared pair by pair, a pair being one item and one seed; differences are those of the second run.

Pairs of one cluster (the topic in Real-Pod) are averaged first, so that a cluster counts once however many items and
seeds it has. Only figures of one protocol are compared. An item on which one of the two made nothing that could be
scored counts as the greatest difference there is, so that silence never pays.

The test of the mean may be looked at after each item (`podeval.stats.sequential`). Items are tested one by one as well
where there are enough seeds: by rearranging the seeds, corrected for the number of items (Holm). Both together fail at
most 5 % of comparisons of equal systems, however many metrics are watched.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.errors import BadInput
from podeval.metrics.declaration import Key
from podeval.metrics.score import Result, Score, Unscored
from podeval.runs.aggregate import collect_metrics
from podeval.runs.run_folder import RunPlan, open_run
from podeval.stats.intervals import Interval, paired_difference
from podeval.stats.pair_comparisons import holm
from podeval.stats.sequential import (
    count_needed,
    evidence_of_increase,
    least_permutation_p,
    permutation_p,
    sequential_interval,
)

LEVEL = 0.05
"""Chance, at most, that a comparison of equal systems fails."""
LEAST_SEEDS = 5
"""Seeds of an item that are tested by themselves."""

Verdict = Literal["worse", "no worse", "undecided"]

Pair = tuple[str, int]
"""An item and a seed."""


@dataclass(frozen=True)
class PairedValues:
    """Values of one key in two runs: by pair where both have one; and pairs that one of them lost by its own fault."""

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
    """Pair the values of a key of a metric; `second` has the results of the run that is judged."""
    clusters = {(item.id, seed): benchmark.cluster(item) for item in items for seed in seeds}
    # Values with their weights, of each side.
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
    # A pair is lost, or won, where the other side has a value and this one's system is to blame that it has none.
    lost = tuple(pair for pair in clusters if pair in sides[0] and _is_fault(second.get(pair)))
    won = tuple(pair for pair in clusters if pair in sides[1] and _is_fault(first.get(pair)))
    return PairedValues(before, after, weights, clusters, lost, won)


def _is_fault(result: Result | None) -> bool:
    """Whether a system is to blame that there is no score."""
    return isinstance(result, Unscored) and result.cause == "system"


@dataclass(frozen=True)
class WorseItem:
    """An item whose seeds by themselves are worse than chance has them."""

    item: str
    before: float
    after: float
    p: float


@dataclass(frozen=True)
class ColumnComparison:
    """One column of two runs.

    Attributes:
        column: `metric.key`.
        key: its declaration.
        before, after: means of the pairs that both runs have.
        difference: difference of the means, with the clustered 95 % interval of one look.
        anytime: the interval of the difference's centre that holds however often one looks; None for too few pairs.
        pairs: number of pairs that both runs have a value of.
        lost, won: pairs that only the first, only the second run has a value of, by the other system's fault.
        margin: margin by which the mean may become worse; None if it is not watched.
        evidence: evidence that it became worse by more than the margin, or with `verdict` "no worse" that it did not.
        needed: evidence that decides.
        verdict: None where it is not watched.
        worse_items: found by their seeds.
        more_items, more_seeds: number that would decide in addition, as far as these tell; None if that is not known.
    """

    column: str
    key: Key
    before: float
    after: float
    difference: Interval
    anytime: tuple[float, float] | None
    pairs: int
    lost: int
    won: int
    margin: float | None = None
    evidence: float | None = None
    needed: float | None = None
    verdict: Verdict | None = None
    worse_items: tuple[WorseItem, ...] = ()
    more_items: int | None = None
    more_seeds: int | None = None

    @property
    def failed(self) -> bool:
        """Whether it is watched and became worse, as a whole or on an item."""
        return self.verdict == "worse" or bool(self.worse_items)


@dataclass(frozen=True)
class RunComparison:
    """Two runs side by side.

    Attributes:
        first, second: their plans.
        items: items of both runs.
        seeds: seeds of both runs.
        columns: columns in the order of the board.
        apart: columns that were not measured by one protocol, and so are not compared.
        tested_items: whether items were tested by themselves.
        seeds_for_items: number of seeds that such a test needs here.
    """

    first: RunPlan
    second: RunPlan
    items: int
    seeds: tuple[int, ...]
    columns: tuple[ColumnComparison, ...]
    apart: tuple[str, ...]
    tested_items: bool
    seeds_for_items: int

    @property
    def failed(self) -> bool:
        """Whether any column that is watched became worse."""
        return any(column.failed for column in self.columns)


@dataclass
class _Measured:
    """All results of one run under a profile: by protocol, then by pair; and which protocol is of which metric."""

    plan: RunPlan
    items: tuple[Item, ...]
    seeds: tuple[int, ...]
    results: dict[str, dict[Pair, Result]] = field(default_factory=lambda: defaultdict(dict))
    metrics: dict[str, str] = field(default_factory=dict)
    usual: set[str] = field(default_factory=set)


def compare_runs(
    first: Path, second: Path, watched: Mapping[str, float] = MappingProxyType({}), profile: str = "embedded"
) -> RunComparison:
    """Compare two runs; `second` is the one that must not be worse.

    Args:
        first: folder of a run, RUNS/BENCHMARK/SPLIT/NAME.
        second: the same of the other.
        watched: columns that must not become worse, and by how much each may, in its own unit.
        profile: the profile of the measurements.

    Raises:
        BadInput: there is no run, they are of different benchmarks, splits or tracks, have no item or seed in common,
            or a watched column was not measured by one protocol in both or has no better end.
    """
    a, b = _read(first, profile), _read(second, profile)
    for name in ("benchmark", "split", "track", "dataset"):
        if getattr(a.plan, name) != getattr(b.plan, name):
            raise BadInput(
                f"the runs differ in their {name} ({getattr(a.plan, name)} and {getattr(b.plan, name)}); compare two "
                "runs of one split"
            )
    benchmark = benchmarks.get(a.plan.benchmark)
    items = [item for item in a.items if item.id in {other.id for other in b.items}]
    seeds = tuple(seed for seed in a.seeds if seed in b.seeds)
    if not items or not seeds:
        raise BadInput(
            f"{first} and {second} have no {'seed' if items else 'item'} in common, so nothing can be paired"
        )
    keys = _columns(benchmark, a.plan.track)
    # Of several that both have, the one of the benchmark as it is.
    shared = sorted((one for one in a.results if one in b.results), key=lambda one: one in a.usual)
    protocols = {a.metrics[one]: one for one in shared}
    apart = sorted({*a.metrics.values(), *b.metrics.values()} - protocols.keys())
    limits = {_resolve(name, keys, protocols, apart): margin for name, margin in watched.items()}
    share = LEVEL / max(1, len(limits))
    # Seeds that a test of single items needs, to be able to find one among so many.
    enough = next(n for n in range(LEAST_SEEDS, 40) if least_permutation_p(n, n) <= share / 2 / len(items))
    test_items = len(seeds) >= enough
    share /= 2 if test_items else 1
    columns = []
    for column, key in keys.items():
        metric = column.partition(".")[0]
        if metric not in protocols:
            continue
        paired = pair_values(benchmark, items, seeds, key.name, *(run.results[protocols[metric]] for run in (a, b)))
        if compared := _compare(column, key, paired, limits.get(column), share, test_items):
            columns.append(compared)
    return RunComparison(a.plan, b.plan, len(items), seeds, tuple(columns), tuple(apart), test_items, enough)


def _read(path: Path, profile: str) -> _Measured:
    run = open_run(path)
    folders = run.by_seed()
    measured = _Measured(run.plan(), run.items() or (), tuple(folders))
    for seed, folder in folders.items():
        protocols = folder.protocols(profile)
        for (item, protocol), result in folder.results(profile).items():
            measured.results[protocol][item, seed] = result
            if protocol in protocols:
                measured.metrics[protocol] = str(protocols[protocol]["metric"])
    measured.usual.update(*(s.choose_protocols().values() for s in run.summaries() if s.profile == profile))
    if not measured.results:
        raise BadInput(f"{path} has no measurements of the profile {profile}; create them with `podeval run`")
    return measured


def _columns(benchmark: Benchmark, track: str) -> dict[str, Key]:
    """Collect the declaration of every column of a track that has a better end, in the order of the board."""
    declared = {
        f"{name}.{key.name}": key for name, metric in collect_metrics(benchmark, track).items() for key in metric.keys
    }
    on_board = dict.fromkeys(c for dimension in benchmark.dimensions_of(track) for c in dimension.columns)
    ordered = {column: declared[column] for column in on_board if column in declared} | declared
    return {column: key for column, key in ordered.items() if key.better in ("higher", "lower")}


def _resolve(name: str, keys: Mapping[str, Key], protocols: Mapping[str, str], apart: Sequence[str]) -> str:
    """Find the column that a name means: `metric.key`, or a metric for the first of its keys.

    Raises:
        BadInput: there is none, or it was not measured alike in both runs.
    """
    column = next((one for one in keys if name in (one, one.partition(".")[0])), None)
    if column is not None and column.partition(".")[0] in protocols:
        return column
    if name.partition(".")[0] in apart:
        raise BadInput(f"{name} was not measured by one protocol in both runs; run both with this version of podeval")
    comparable = ", ".join(one for one in keys if one.partition(".")[0] in protocols)
    raise BadInput(f"{name} is not a column with a direction in both runs; choose from {comparable}")


def _compare(
    column: str, key: Key, paired: PairedValues, margin: float | None, share: float, test_items: bool
) -> ColumnComparison | None:
    """Compare one column; None where no pair has it in both runs."""
    if not paired.before:
        return None
    names = {pair: f"{pair[0]} {pair[1]}" for pair in paired.clusters}
    a, b = ({names[pair]: value for pair, value in side.items()} for side in (paired.before, paired.after))
    weights = tuple({names[pair]: weight for pair, weight in side.items()} for side in paired.weights)
    weighted = any(weight != 1.0 for side in weights for weight in side.values())
    clusters = {names[pair]: cluster for pair, cluster in paired.clusters.items()}
    difference = paired_difference(b, a, clusters, weights[::-1] if weighted else None)  # type: ignore[arg-type]
    before, after = (
        float(np.average([*side.values()], weights=[*w.values()])) for side, w in zip((a, b), weights, strict=True)
    )
    worse = 1.0 if key.better == "lower" else -1.0
    increases = _increases(paired, worse)
    interval = sequential_interval([worse * value for value in increases])
    compared = ColumnComparison(
        column, key, before, after, difference, interval, len(paired.before), len(paired.lost), len(paired.won)
    )
    return compared if margin is None else _judge(compared, paired, increases, worse, margin, share, test_items)


def _increases(paired: PairedValues, worse: float) -> list[float]:
    """How much worse the second run is in each cluster, in order; a pair that one of them lost is beyond all."""
    by_cluster: dict[str, list[float]] = defaultdict(list)
    for pair, cluster in paired.clusters.items():
        if pair in paired.before:
            by_cluster[cluster].append(worse * (paired.after[pair] - paired.before[pair]))
        elif pair in paired.lost or pair in paired.won:
            by_cluster[cluster].append(math.inf if pair in paired.lost else -math.inf)
    return [_mean_of_cluster(values) for values in by_cluster.values()]


def _mean_of_cluster(values: Sequence[float]) -> float:
    """Their mean; where pairs were lost on both sides, the side that lost more counts."""
    lost = sum(math.copysign(1, value) for value in values if math.isinf(value))
    if lost:
        return math.copysign(math.inf, lost)
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else 0.0


def _judge(
    compared: ColumnComparison,
    paired: PairedValues,
    increases: Sequence[float],
    worse: float,
    margin: float,
    share: float,
    test_items: bool,
) -> ColumnComparison:
    """Say whether a watched column became worse."""
    needed = 1 / share
    against = float(evidence_of_increase(increases, margin)[-1])
    in_favour = float(evidence_of_increase([-value for value in increases], -margin)[-1])
    verdict: Verdict = "worse" if against >= needed else "no worse" if in_favour >= needed else "undecided"
    items = _find_worse_items(paired, worse, margin, share) if test_items else ()
    centre = float(np.median(increases))
    side = (increases, margin) if centre > margin else ([-value for value in increases], -margin)
    count = count_needed(side[0], needed, side[1]) if verdict == "undecided" else None
    return replace(
        compared,
        margin=margin,
        evidence=against if verdict != "no worse" else in_favour,
        needed=needed,
        verdict=verdict,
        worse_items=items,
        more_items=None if count is None else count - len(increases),
        more_seeds=_count_seeds(paired, worse, side, needed) if verdict == "undecided" else None,
    )


def _find_worse_items(paired: PairedValues, worse: float, margin: float, share: float) -> tuple[WorseItem, ...]:
    """Find items whose seeds by themselves are worse, corrected for the number of items (Holm)."""
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


def _count_seeds(paired: PairedValues, worse: float, side: tuple[Sequence[float], float], needed: float) -> int | None:
    """How many more seeds would decide, if they do no more than average out what differs between seeds."""
    by_cluster: dict[str, list[float]] = defaultdict(list)
    for pair in paired.before:
        by_cluster[paired.clusters[pair]].append(worse * (paired.after[pair] - paired.before[pair]))
    counts = [len(values) for values in by_cluster.values()]
    if min(counts) < 2 or len(counts) < 2:
        return None
    seeds = int(np.median(counts))
    increases, margin = np.asarray(side[0], np.float64), side[1]
    increases = increases[np.isfinite(increases)]
    within = float(np.mean([np.var(values, ddof=1) for values in by_cluster.values()]))
    spread = float(np.var(increases, ddof=1))
    between = max(0.0, spread - within / seeds)
    centre = float(increases.mean())
    for total in range(seeds + 1, 10 * seeds + 1):
        factor = math.sqrt((between + within / total) / spread) if spread else 1.0
        if evidence_of_increase(centre + factor * (increases - centre), margin)[-1] >= needed:
            return total - seeds
    return None
