"""Measure how far each metric and judge agrees with people, on the same outputs of the same systems.

A metric's value for an output (system, item) is compared with the mean human score of that output. Metrics for which
lower is better are inverted, and those that are best in a range are converted to the distance from it, so a positive
correlation means agreement; keys without a direction are omitted. Both systems and items are samples, because a metric
is meant for systems that have not been measured yet. The variance is the variance over systems plus the variance over
items minus the variance over individual outputs (Cameron, Gelbach and Miller, 2011), each computed by the jackknife on
Fisher's z; the degrees of freedom of Student's t are those of the smaller of the two samples. With only the six systems
of a paper, the interval is wide, as it should be.

In addition, the module computes the agreement over the means of the few systems, also with each system left out in
turn, and the agreement that the best of an equal number of keys reaches by chance.
"""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from podeval.metrics import Key, catalogue
from podeval.metrics.description import read_table
from podeval.metrics.human_records import read_number
from podeval.stats.agreement import Estimate, krcc, plcc, srcc
from podeval.stats.intervals import number_clusters
from podeval.stats.mushra_scores import HIGH, LOW, Mark
from podeval.validation.human_scores import average_figures

FEWEST = 5
"""Minimum number of outputs with a metric's value and a human score for reporting an agreement."""
ENOUGH_SYSTEMS = 12
"""Minimum number of systems for detecting a correlation of .8 with a power of 80 % (docs/validity.md, power)."""
FEWEST_CLUSTERS = 3
"""Minimum number of systems, and of items, for an interval."""
MOST_OUTPUTS = 300
"""Maximum number of outputs for which the variance over individual outputs is subtracted."""
ALL_ORDERS, DRAWS = 6, 500
"""Maximum number of systems for which chance agreement is computed from all orders, and the number of random orders
that are drawn for more systems.
"""

Array = NDArray[np.float64]
Statistic = Callable[[Sequence[float], Sequence[float]], Estimate]
K = TypeVar("K")
V = TypeVar("V")
Output = tuple[str, str]
"""A system and an item."""
KeyValues = tuple[str, str, Key, Mapping[Output, float]]
"""A metric, a protocol, and a key of the metric with its values."""
Comparison = Callable[[KeyValues, str, Mapping[Output, float]], "Validity"]
"""Signature of `compare`."""

TABLES = Path(__file__).parent / "paper_tables"
Row = dict[str, str]


@dataclass(frozen=True)
class Validity:
    """Agreement of one key of one metric, under one protocol, with one human measure.

    Attributes:
        better: whether more is better, less is better (the key is inverted), or a range is ideal (the distance from the
            range is used).
        systems: SRCC over the systems' means.
        left_out: the same SRCC with each of the systems left out in turn.
        keys: number of keys that were compared with this measure.
        by_chance: the SRCC over systems that the best of `keys` keys reaches in at most 5 % of the orders of the
            systems, that is, by chance alone; None if there is no such SRCC.
        chance: the share of orders of the systems in which the best of `keys` keys reaches the SRCC of this key.
        within: mean over categories of the SRCC over the clips of a category, for published clips.
    """

    metric: str
    key: str
    protocol: str
    human: str
    better: str
    srcc: Estimate
    plcc: Estimate
    krcc: Estimate
    systems: Estimate
    left_out: Mapping[str, float | None]
    keys: int = 1
    by_chance: float | None = None
    chance: float | None = None
    within: Estimate | None = None

    @property
    def thin(self) -> bool:
        """Whether there are so few systems that a correlation is no more than a hint."""
        return self.systems.count < ENOUGH_SYSTEMS

    @property
    def without_one(self) -> tuple[float, float] | None:
        """The lowest and the highest SRCC with one system left out."""
        values = [value for value in self.left_out.values() if value is not None]
        return (min(values), max(values)) if values else None


def group_by_measure(tests: Mapping[str, Iterable[Mark]]) -> dict[str, list[Mark]]:
    """Group the marks of tests or files by human measure, that is, by the name of the test or file and the scale."""
    return _group(
        (f"{name} · {mark.scale}" if mark.scale else name, mark) for name, marks in tests.items() for mark in marks
    )


def _group(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, in their original order."""
    values: dict[K, list[V]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def compute_validity(items: pd.DataFrame, measures: Mapping[str, Iterable[Mark]]) -> list[Validity]:
    """Compute the agreement of every metric with every human measure, the strongest first.

    `items` are rows of `items.parquet`; pairs that have fewer than five common outputs are left out.
    """
    human = {measure: _mean_by_output(marks) for measure, marks in measures.items()}
    agreements = compare_all(_values_by_key(items), human)
    return sorted(agreements, key=lambda row: -(row.srcc.value if row.srcc.value is not None else -2))


def compare(
    of: KeyValues, measure: str, scores: Mapping[Output, float], *, over_outputs: bool = True, within: bool = False
) -> Validity:
    """Return the agreement of one key with people's scores of outputs that all have a value.

    Correlations over outputs, with their intervals, take most of the time; those within items are left out unless
    requested.
    """
    metric, protocol, key, values = of
    ours = {output: to_badness(key, values[output]) for output in scores}
    by_system, liked = average_by_system(ours), average_by_system(scores)
    sides, nothing = (list(ours.values()), list(scores.values())), Estimate(None, None, None, len(scores))
    rank, linear, tau = (correlate(one, *sides, [*scores]) if over_outputs else nothing for one in (srcc, plcc, krcc))
    of_systems = srcc(list(by_system.values()), list(liked.values()))
    left_out = correlate_without_each(by_system, liked)
    row = Validity(metric, key.name, protocol, measure, key.better, rank, linear, tau, of_systems, left_out)
    return replace(row, within=compare_within(ours, scores)) if within else row


def compare_all(
    keys: Iterable[KeyValues], human: Mapping[str, Mapping[Output, float]], comparison: Comparison = compare
) -> list[Validity]:
    """Return the agreement of each key with each human measure that shares at least five outputs with it. `comparison`
    is the function that compares one key with one measure.
    """
    agreements: list[Validity] = []
    means: dict[str, list[dict[str, float]]] = {}
    for of in keys:
        *_, key, values = of
        for measure, scores in human.items():
            shared = {output: score for output, score in scores.items() if output in values}
            if len(shared) >= FEWEST:
                agreements.append(comparison(of, measure, shared))
                ours = {output: to_badness(key, values[output]) for output in shared}
                means.setdefault(measure, []).append(average_by_system(ours))
    best = {measure: _draw_best(columns, human[measure]) for measure, columns in means.items()}
    # If only a few values are possible, more than the nominal share of orders may reach a quantile.
    rare = {
        measure: next((float(v) for v in np.unique(reached.round(9)) if (reached >= v - 1e-9).mean() <= 0.05), None)
        for measure, reached in best.items()
    }
    return [
        replace(row, keys=len(means[row.human]), by_chance=rare[row.human], chance=_reach(best[row.human], row.systems))
        for row in agreements
    ]


def _reach(by_chance: Array, estimate: Estimate) -> float | None:
    """Return the share of chance results that reach a value."""
    none = estimate.value is None or not by_chance.size
    return None if none else float((by_chance >= (estimate.value or 0.0) - 1e-9).mean())


def correlate_without_each(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float | None]:
    """Return the SRCC between two sets of means by system, leaving out each of the systems in turn."""
    return {left: srcc(*([of[name] for name in ours if name != left] for of in (ours, theirs))).value for left in ours}


def to_badness(key: Key, value: float) -> float:
    """Convert a value so that more is better: negate it, or take minus the distance from an ideal range."""
    if key.better == "in range" and key.ideal is not None:
        low, high = key.ideal
        return -max(low - value, value - high, 0.0)
    return -value if key.better == "lower" else value


def has_direction(key: Key) -> bool:
    """Return whether a key defines which of two values is better."""
    return key.better in ("higher", "lower") or (key.better == "in range" and key.ideal is not None)


def correlate(
    statistic: Statistic, ours: Sequence[float], theirs: Sequence[float], outputs: Sequence[tuple[Hashable, Hashable]]
) -> Estimate:
    """Return a correlation over outputs with its interval over systems and items.

    Args:
        statistic: function such as `srcc`; it is called without clusters.
        ours: a metric's value for each output.
        theirs: people's score for each output.
        outputs: the system and the item of each output.

    Raises:
        BadInput: the lists have unequal length, or values are not finite.
    """
    value, count = statistic(ours, theirs).value, len(ours)
    by_system, systems = number_clusters([system for system, _ in outputs], count)
    by_item, items = number_clusters([item for _, item in outputs], count)
    fewest = min(systems, items)
    if value is None or fewest < FEWEST_CLUSTERS:
        return Estimate(value, None, None, count)
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    # This term is omitted if it is small and takes long to compute; the interval then merely becomes wider.
    single = [np.arange(count)] if count <= MOST_OUTPUTS else []
    parts = [_jackknife(statistic, a, b, codes) for codes in (by_system, by_item, *single)]
    over_systems, over_items, over_outputs = [*parts, 0.0][:3]
    variance = float(np.max([over_systems + over_items - over_outputs, over_systems, over_items]))
    if math.isnan(variance):
        return Estimate(value, None, None, count)
    reach = float(special.stdtrit(fewest - 1, 0.975)) * math.sqrt(variance)
    z = float(_fisher(value))
    return Estimate(value, math.tanh(z - reach), math.tanh(z + reach), count)


def _jackknife(statistic: Statistic, a: Array, b: Array, codes: NDArray[np.intp]) -> float:
    """Return the jackknife variance of Fisher's z over clusters; NaN if z is undefined without some cluster."""
    count = int(codes.max()) + 1
    z = _fisher([statistic(a[codes != code].tolist(), b[codes != code].tolist()).value for code in range(count)])
    return (count - 1) / count * float(np.square(z - z.mean()).sum())


def _fisher(values: float | Sequence[float | None]) -> Array:
    return np.arctanh(np.clip(np.asarray(values, dtype=np.float64), -1 + 1e-9, 1 - 1e-9))


def _draw_best(columns: Sequence[Mapping[str, float]], scores: Mapping[Output, float]) -> Array:
    """Return the SRCC over systems that the best of these keys reaches, for each order that people could have given by
    chance. All orders of a few systems are tried, or random orders of many; the result is empty if nothing can be
    compared.

    Each column has the systems' means of a key, where more is better; only systems with values for all keys are
    compared. The actual keys are used, so correlated keys effectively count as fewer keys.
    """
    from scipy.spatial.distance import cdist
    from scipy.stats import rankdata

    shared = [system for system in columns[0] if all(system in column for column in columns)]
    keys = [[column[system] for system in shared] for column in columns]
    ranks = [rankdata(values) for values in keys if len(set(values)) > 1]
    if not ranks or len(shared) < FEWEST_CLUSTERS:
        return np.zeros(0)
    liked = average_by_system(scores)
    order = rankdata([liked[system] for system in shared])
    random = np.random.default_rng(0)
    few = len(shared) <= ALL_ORDERS
    orders = list(permutations(order)) if few else [random.permutation(order) for _ in range(DRAWS)]
    return np.asarray((1 - cdist(ranks, np.array(orders), "correlation")).max(axis=0))


def _values_by_key(items: pd.DataFrame) -> Iterator[KeyValues]:
    """Yield each key of each metric and protocol with its values by output."""
    columns = items[["metric", "protocol", "system", "item", "result"]]
    measured = _group(
        ((metric, protocol), ((system, item), json.loads(result)))
        for metric, protocol, system, item, result in columns.itertuples(index=False, name=None)
    )
    for (metric, protocol), rows in sorted(measured.items()):
        for key in filter(has_direction, catalogue.get(metric).keys):
            pairs = ((output, read_number(result.get(key.name))) for output, result in rows)
            yield metric, protocol, key, {output: value for output, value in pairs if value is not None}


def average_by_system(values: Mapping[Output, float]) -> dict[str, float]:
    """Return the mean of each system's values."""
    of_system = _group((system, value) for (system, _), value in values.items())
    return {system: fmean(several) for system, several in of_system.items()}


def _mean_by_output(marks: Iterable[Mark]) -> dict[Output, float]:
    rated = (mark for mark in marks if mark.stimulus not in (HIGH, LOW))
    of_output = _group(((mark.stimulus, mark.page), mark.value) for mark in rated)
    return {output: fmean(values) for output, values in sorted(of_output.items())}


def read_printed_audits() -> tuple[Row, ...]:
    """Read the papers' own figures on judges: MTalk-Bench's Tables 3 and 13, LFS-Bench's Tables 4 to 6, and PodBench's
    Table 4.
    """
    return read_table(TABLES / "judges.csv")


def compare_within(ours: Mapping[Output, float], theirs: Mapping[Output, float]) -> Estimate:
    """Return the mean over items of the SRCC over systems' outputs; its count is the number of items with an SRCC."""
    by_item = _group((item, (mine, theirs[system, item])) for (system, item), mine in ours.items())
    figures = [srcc(*map(list, zip(*pairs, strict=True))).value for pairs in by_item.values()]
    return average_figures([value for value in figures if value is not None], None, (-1, 1))
