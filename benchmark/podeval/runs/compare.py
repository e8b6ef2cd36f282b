"""Compare two runs pair by pair. A pair is one item with one seed; a difference is the second run minus the first.

Pairs of one cluster (the topic in Real-Pod) are averaged first, so each cluster has the same weight regardless of its
number of items and seeds. Only figures of the same protocol are compared. An item for which one of the two runs has no
scorable output counts as the largest possible difference, so a system never gains by producing no output.

The test of the mean may be checked after each item (`podeval.stats.sequential`). If there are enough seeds, items are
also tested one by one with a permutation test over the seeds, corrected for the number of items (Holm). Together, the
two tests fail at most 5 % of comparisons between equal systems, regardless of the number of watched metrics.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Literal

import numpy as np

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.errors import BadInput
from podeval.metrics import Key, Result
from podeval.runs.aggregate import collect_metrics
from podeval.runs.paired_values import (
    LEAST_SEEDS,
    Pair,
    PairedValues,
    WorseItem,
    count_seeds,
    find_worse_items,
    list_increases,
    pair_values,
)
from podeval.runs.run_folder import RunPlan, open_run
from podeval.stats.intervals import Interval, paired_difference
from podeval.stats.sequential import (
    count_needed,
    count_to_show,
    evidence_of_increase,
    least_permutation_p,
    sequential_interval,
)

LEVEL = 0.05
"""Maximum probability that a comparison between equal systems fails."""
Verdict = Literal["worse", "no worse", "undecided"]


@dataclass(frozen=True)
class QuarantinedItem:
    """An item that is compared but does not affect the verdict.

    Attributes:
        item: the item's id.
        reason: the stated reason, which may be empty.
        means: means of each watched column in the first and the second run, if both have values.
    """

    item: str
    reason: str
    means: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class ColumnComparison:
    """One column of two runs.

    Attributes:
        column: `metric.key`.
        key: declaration of the column.
        before, after: means over the pairs that both runs have.
        difference: difference between the means, with a clustered 95 % interval that is valid for a single look.
        anytime: the interval of the mean difference that is valid at every look; None for too few pairs.
        pairs: number of pairs with a value in both runs.
        lost, won: pairs for which only the first run (lost) or only the second run (won) has a value, because the other
            run's system failed.
        margin: margin by which the mean may become worse; None if the column is not watched.
        evidence: evidence that it became worse by more than the margin or, if `verdict` is "no worse", that it did not.
        needed: evidence required for a decision.
        verdict: the verdict on the column; None if it is not watched.
        worse_items: items whose seeds show that they are worse.
        more_items, more_seeds: estimated number of additional items or seeds needed for a decision; None if unknown.
        size: the size of a difference of interest; None if the caller gave none.
        items_to_show: number of items like these that would show a difference of this size in 80 % of comparisons; None
            if unknown.
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
    size: float | None = None
    items_to_show: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the column is watched and became worse, overall or on an item."""
        return self.verdict == "worse" or bool(self.worse_items)


@dataclass(frozen=True)
class RunComparison:
    """Two runs side by side.

    Attributes:
        first, second: plans of the runs.
        items: items that both runs have.
        seeds: seeds that both runs have.
        columns: the compared values, in the order of the board.
        apart: columns without a shared protocol, which are not compared.
        tested_items: whether items were tested separately.
        seeds_for_items: number of seeds needed to test these items separately.
        quarantined: items that do not affect the verdict.
    """

    first: RunPlan
    second: RunPlan
    items: int
    seeds: tuple[int, ...]
    columns: tuple[ColumnComparison, ...]
    apart: tuple[str, ...]
    tested_items: bool
    seeds_for_items: int
    quarantined: tuple[QuarantinedItem, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether any watched column became worse."""
        return any(column.failed for column in self.columns)


@dataclass
class _Measured:
    """All results of one run under a profile, by protocol and then by pair, and the metric of each protocol."""

    plan: RunPlan
    items: tuple[Item, ...]
    seeds: tuple[int, ...]
    results: dict[str, dict[Pair, Result]] = field(default_factory=lambda: defaultdict(dict))
    metrics: dict[str, str] = field(default_factory=dict)
    usual: set[str] = field(default_factory=set)


def compare_runs(
    first: Path,
    second: Path,
    watched: Mapping[str, float] = MappingProxyType({}),
    profile: str = "embedded",
    *,
    quarantine: Mapping[str, str] = MappingProxyType({}),
    sizes: Mapping[str, float] = MappingProxyType({}),
) -> RunComparison:
    """Compare two runs; `second` is the one that must not be worse.

    Args:
        first: folder of a run, RUNS/BENCHMARK/SPLIT/NAME.
        second: folder of the other run.
        watched: columns that must not become worse, each with its margin in the column's unit.
        profile: the profile of the measurements.
        quarantine: items that must not affect the verdict, each with the reason.
        sizes: columns, each with the size of a difference, to estimate how many items would show that difference.

    Raises:
        BadInput: a run does not exist, the runs have different splits or tracks or share no item or seed, a column has
            no shared protocol or no direction, or a quarantined item is in neither run.
    """
    a, b = _read(first, profile), _read(second, profile)
    _require_one_split(a, b, quarantine)
    benchmark = benchmarks.get(a.plan.benchmark)
    both = [item for item in a.items if item.id in {other.id for other in b.items}]
    items = [item for item in both if item.id not in quarantine]
    seeds = tuple(seed for seed in a.seeds if seed in b.seeds)
    if not items or not seeds:
        missing = "seed" if items else "item outside quarantine" if both else "item"
        raise BadInput(f"{first} and {second} have no {missing} in common, so nothing can be paired")
    keys = _columns(benchmark, a.plan.track)
    # If the runs share several protocols of a metric, the benchmark's own protocol is used.
    shared = sorted((one for one in a.results if one in b.results), key=lambda one: one in a.usual)
    protocols = {a.metrics[one]: one for one in shared}
    apart = sorted({*a.metrics.values(), *b.metrics.values()} - protocols.keys())
    limits, of_interest = (
        {_resolve(name, keys, protocols, apart): value for name, value in values.items()} for values in (watched, sizes)
    )
    share = LEVEL / max(1, len(limits))
    # The number of seeds that a test needs to detect a single worse item among all of them.
    enough = next(n for n in range(LEAST_SEEDS, 40) if least_permutation_p(n, n) <= share / 2 / len(items))
    test_items = len(seeds) >= enough
    share /= 2 if test_items else 1
    columns, resting = [], {item: QuarantinedItem(item, reason, {}) for item, reason in quarantine.items()}
    for column, key in keys.items():
        metric = column.partition(".")[0]
        if metric not in protocols:
            continue
        sides = [run.results[protocols[metric]] for run in (a, b)]
        paired = pair_values(benchmark, items, seeds, key.name, *sides)
        if compared := _compare(column, key, paired, limits.get(column), share, test_items, of_interest.get(column)):
            columns.append(compared)
        for item in (item for item in both if item.id in resting and column in limits):
            one = pair_values(benchmark, [item], seeds, key.name, *sides)
            if one.before:
                resting[item.id].means[column] = (fmean(one.before.values()), fmean(one.after.values()))
    tested = (len(items), seeds, tuple(columns), tuple(apart), test_items, enough)
    return RunComparison(a.plan, b.plan, *tested, tuple(resting.values()))


def _require_one_split(a: _Measured, b: _Measured, quarantine: Iterable[str]) -> None:
    """Refuse runs on different material, and quarantined items that are in neither run.

    Raises:
        BadInput: the runs differ, or items are unknown; the message names the differences or the items.
    """
    for name in ("benchmark", "split", "track", "dataset"):
        if getattr(a.plan, name) != getattr(b.plan, name):
            raise BadInput(
                f"the runs differ in their {name} ({getattr(a.plan, name)} and {getattr(b.plan, name)}); compare two "
                "runs of the same split and track"
            )
    if unknown := sorted({*quarantine} - {item.id for item in (*a.items, *b.items)}):
        raise BadInput(
            f"the quarantine lists {', '.join(unknown)}, which neither run contains; correct or remove these entries"
        )


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
        raise BadInput(f"{path} has no measurements of the profile {profile}; create some with `podeval run`")
    return measured


def _columns(benchmark: Benchmark, track: str) -> dict[str, Key]:
    """Collect the declarations of a track's columns that have a direction, in the order of the board."""
    declared = {
        f"{name}.{key.name}": key for name, metric in collect_metrics(benchmark, track).items() for key in metric.keys
    }
    on_board = dict.fromkeys(c for dimension in benchmark.dimensions_of(track) for c in dimension.columns)
    ordered = {column: declared[column] for column in on_board if column in declared} | declared
    return {column: key for column, key in ordered.items() if key.better in ("higher", "lower")}


def _resolve(name: str, keys: Mapping[str, Key], protocols: Mapping[str, str], apart: Sequence[str]) -> str:
    """Find a column by name: `metric.key`, or just the metric for its first key.

    Raises:
        BadInput: the column does not exist, or was measured differently in the two runs.
    """
    column = next((one for one in keys if name in (one, one.partition(".")[0])), None)
    if column is not None and column.partition(".")[0] in protocols:
        return column
    if name.partition(".")[0] in apart:
        raise BadInput(f"{name} has different protocols in the two runs; run both with this version of podeval")
    comparable = ", ".join(one for one in keys if one.partition(".")[0] in protocols)
    raise BadInput(f"{name} is not a column that has a better direction in both runs; choose from {comparable}")


def _compare(
    column: str,
    key: Key,
    paired: PairedValues,
    margin: float | None,
    share: float,
    test_items: bool,
    size: float | None,
) -> ColumnComparison | None:
    """Compare one column; return None if no pair has a value in both runs."""
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
    increases = list_increases(paired, worse)
    interval = sequential_interval([worse * value for value in increases])
    compared = ColumnComparison(
        column, key, before, after, difference, interval, len(paired.before), len(paired.lost), len(paired.won)
    )
    if size is not None:
        items_to_show = count_to_show(increases, size, 1 / share, margin or 0.0)
        compared = replace(compared, size=size, items_to_show=items_to_show)
    return compared if margin is None else _judge(compared, paired, increases, worse, margin, share, test_items)


def _judge(
    compared: ColumnComparison,
    paired: PairedValues,
    increases: Sequence[float],
    worse: float,
    margin: float,
    share: float,
    test_items: bool,
) -> ColumnComparison:
    """Decide whether a watched column became worse."""
    needed = 1 / share
    against = float(evidence_of_increase(increases, margin)[-1])
    in_favour = float(evidence_of_increase([-value for value in increases], -margin)[-1])
    verdict: Verdict = "worse" if against >= needed else "no worse" if in_favour >= needed else "undecided"
    items = find_worse_items(paired, worse, margin, share) if test_items else ()
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
        more_seeds=count_seeds(paired, worse, side, needed) if verdict == "undecided" else None,
    )
