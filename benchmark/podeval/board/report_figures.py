"""Compare a system's figures with the median of the other systems, and with recordings of people on the same items."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from podeval.board.columns import Column, Row, choose_headlines, get_column, order_columns, to_number
from podeval.board.item_results import BoardScores, read_scores, select_rows
from podeval.board.runs_folder import RunsFolder, choose_protocols
from podeval.stats.intervals import Interval, mean_ci, paired_difference

Pairing = Callable[[Column, str], "Paired | None"]
Word = Literal["better", "worse", "higher", "lower", "equal", "in range", "unclear", ""]
"""Position of one value relative to another: `higher` or `lower` if neither direction is better, `in range` if both
values are in the ideal range, `unclear` if the interval allows both, empty if one value is missing."""


@dataclass(frozen=True)
class ReferenceFigure:
    """The comparison of a value with another value, and whether an interval supports the result."""

    word: Word = ""
    sure: bool = False

    def describe(self, texts: Mapping[str, Any]) -> str:
        """Describe the comparison in the words of the page `compare`; empty if nothing can be compared."""
        if not self.word:
            return ""
        phrase = str(texts["stands"][self.word])
        return phrase if self.sure else str(texts["unsure"]).format(phrase)


@dataclass(frozen=True)
class Paired:
    """The means of two systems a and b over the items on which both were scored, and the difference a minus b.

    `to_b` compares a with b; if the key has an ideal range, the comparison is between the distances from that range.
    """

    a: float
    b: float
    difference: Interval
    to_b: ReferenceFigure


@dataclass(frozen=True)
class ReportFigure:
    """One key of one metric of a system, over all items or one slice of them.

    Attributes:
        median: median of the other systems under the same protocol, without controls.
        person: the value of the recordings of people under the same protocol.
        beside: the system and people over common items; None if they share no item.
        to_median: comparison of the system with the median or, if there is only one other system, with that system over
            the common items.
        to_person: comparison of the system with people.
    """

    column: Column
    row: Row
    median: float | None
    others: tuple[float, ...]
    person: float | None
    beside: Paired | None
    to_median: ReferenceFigure
    to_person: ReferenceFigure

    @property
    def value(self) -> float | None:
        """The mean over scored items."""
        return to_number(self.row["value"])


@dataclass(frozen=True)
class DriftFigure:
    """The drift of a windowed key over the recordings of a system.

    Attributes:
        per: unit of the slope's denominator: a minute or a thousand tokens.
        slope: mean slope over items, with its interval.
        rising, falling: numbers of items whose slope's interval is entirely above or below zero.
        course: mean and interval in each tenth of the recordings; None for a tenth without windows.
    """

    column: Column
    per: str
    slope: Interval
    rising: int
    falling: int
    course: tuple[Interval | None, ...]


@dataclass(frozen=True)
class SystemFigures:
    """All figures of one system at one place.

    Attributes:
        reference: id of the recordings of people for the comparison; "" if there are none.
        protocols: protocol id by metric.
        figures: figures over all items (or the requested slice), in board order.
        slices: the headline figures for every slice, by the name of the slice on the board; "" for all items.
    """

    reference: str
    protocols: Mapping[str, str]
    figures: tuple[ReportFigure, ...]
    slices: Mapping[str, tuple[ReportFigure, ...]]

    @property
    def headlines(self) -> tuple[ReportFigure, ...]:
        """One figure for each dimension."""
        columns = choose_headlines(figure.column for figure in self.figures)
        return tuple(figure for figure in self.figures if figure.column in columns)


def count_rows_by_place(rows: pd.DataFrame) -> Counter[tuple[str, str, str]]:
    """Count rows by benchmark, split and profile."""
    benchmark, split, profile = (rows[name].astype(str) for name in ("benchmark", "split", "profile"))
    return Counter(zip(benchmark, split, profile, strict=True))


def build_figures(
    folder: RunsFolder, system: str, where: str, slice_: str = "", wishes: Sequence[str] = ()
) -> SystemFigures:
    """Compute a system's figures at `benchmark/split/profile`, compared with the others' median and with people.

    If the board's name for a slice of the items is given, the figures cover that slice. If a metric has several
    protocols, the one in `wishes` is used; each wish is a protocol id or the name of a preset.
    """
    here = select_rows(folder.board(), where)
    own_rows = here[here["system"] == system]
    protocols = choose_protocols(own_rows, wishes)
    here = here[here["protocol"] == here["metric"].map(protocols)]
    reference = _reference(here, system)
    fields: defaultdict[str, dict[Column, list[Row]]] = defaultdict(dict)
    for row in here.to_dict("records"):
        of = get_column(str(row["metric"]), str(row["key"]), str(row["dimension"]))
        fields[str(row["slice"])].setdefault(of, []).append(row)

    def beside(of: Column, other: str) -> Paired | None:
        scores = [read_scores(folder, one, where) for one in (system, other) if one]
        return pair_systems(scores[0], scores[1], of, protocols[of.metric]) if other else None

    def figures(wished: str) -> tuple[ReportFigure, ...]:
        pair, rows = None if wished else beside, fields[wished]
        own = [of for of in rows if any(row["system"] == system for row in rows[of])]
        return tuple(_figure(of, rows[of], system, reference, pair) for of in order_columns(own))

    whole = figures("")
    headlines = choose_headlines(figure.column for figure in whole)
    names = sorted(set(own_rows["slice"].astype(str)), key=lambda name: (name != "", name))
    figures_by_slice = {name: figures(name) if name else whole for name in names}
    slices = {name: tuple(one for one in of if one.column in headlines) for name, of in figures_by_slice.items()}
    return SystemFigures(reference, protocols, figures_by_slice.get(slice_, whole), slices)


def compute_drifts(scores: BoardScores, protocols: Mapping[str, str], columns: Iterable[Column]) -> list[DriftFigure]:
    """Return how every windowed key of a system changes over its recordings, in the order of the board's columns.

    A key that is not among these columns is listed next to its metric's columns.
    """

    def mean(values: Iterable[tuple[str, float | None]]) -> Interval | None:
        known = {item: value for item, value in values if value is not None}
        return mean_ci(list(known.values()), [scores.clusters[item] for item in known]) if known else None

    by_id = {of_board.id: of_board for of_board in columns}
    dimensions = {of_board.metric: of_board.dimension for of_board in by_id.values()}
    by_column = {}
    for metric, protocol in protocols.items():
        readings = scores.results.get((metric, protocol), {})
        for key in dict.fromkeys(key for reading in readings.values() for key in reading.course):
            slopes = {item: r.slopes[key] for item, r in readings.items() if key in r.slopes}
            courses = {item: r.course[key] for item, r in readings.items() if key in r.course}
            tenths = zip(*courses.values(), strict=True)
            slope = mean((item, slope.slope) for item, slope in slopes.items())
            if slope:
                of = by_id.get(f"{metric}.{key}") or get_column(metric, key, dimensions.get(metric, metric))
                by_column[of] = DriftFigure(
                    column=of,
                    per=next(iter(slopes.values())).per,
                    slope=slope,
                    rising=sum(slope.low > 0 for slope in slopes.values()),
                    falling=sum(slope.high < 0 for slope in slopes.values()),
                    course=tuple(mean(zip(courses, tenth, strict=True)) for tenth in tenths),
                )
    return [by_column[of] for of in order_columns(by_column)]


def set_against(
    value: float | None, other: float | None, of: Column, low: float | None, high: float | None
) -> ReferenceFigure:
    """Compare a value with another; if the other value is within the interval of the first, it is unclear which is
    better.
    """
    if value is None or other is None:
        return ReferenceFigure()
    alike = None if low is None or high is None else low <= other <= high
    return _verdict(of, (value, other), (of.badness(value), of.badness(other)), alike)


def pair_systems(a: BoardScores, b: BoardScores, of: Column, protocol: str) -> Paired | None:
    """Compare one key of two systems at the same place; return None if they share no item."""
    by_system = [scores.values((of.metric, protocol), of.key) for scores in (a, b)]
    given = [scores.weights((of.metric, protocol), of.key) for scores in (a, b)]
    common = sorted(by_system[0].keys() & by_system[1].keys())
    if not common:
        return None
    weights = [weight or dict.fromkeys(common, 1.0) for weight in given]
    both = (weights[0], weights[1]) if any(weight is not None for weight in given) else None

    def compare_means(mine: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[Interval, tuple[float, float]]:
        first, second = (
            sum(weight[item] * values[item] for item in common) / sum(weight[item] for item in common)
            for values, weight in zip((mine, theirs), weights, strict=True)
        )
        return paired_difference(mine, theirs, b.clusters | a.clusters, both), (first, second)

    difference, means = compare_means(by_system[0], by_system[1])
    telling, badness = difference, (of.badness(means[0]), of.badness(means[1]))
    if of.ideal:
        distances = [{item: of.badness(values[item]) for item in common} for values in by_system]
        telling, badness = compare_means(distances[0], distances[1])
    alike = None if telling.low is None or telling.high is None else telling.low <= 0 <= telling.high
    return Paired(*means, difference, _verdict(of, means, badness, alike))


def _verdict(
    of: Column, values: tuple[float, float], badness: tuple[float, float], alike: bool | None
) -> ReferenceFigure:
    """Compare two values by their badness (for means over items, the mean badness); every page uses this rule.

    `alike` states whether the interval leaves open which value is better; it is None if there is no interval.
    """
    sure = alike is not None
    if of.ideal and not any(badness):
        return ReferenceFigure("in range", sure)
    undirected = of.better == "informative" or (of.better == "in range" and not of.ideal)
    first, second = values if undirected else badness
    if first == second:
        return ReferenceFigure("equal", sure)
    if alike:
        return ReferenceFigure("unclear", sure)
    if undirected:
        return ReferenceFigure("higher" if first > second else "lower", sure)
    return ReferenceFigure("better" if first < second else "worse", sure)


def _reference(rows: pd.DataFrame, system: str) -> str:
    """Return the id of the recordings of people that have the most figures among these rows, excluding the system
    itself.
    """
    people = rows[(rows["system_kind"] == "human") & (rows["system"] != system) & rows["value"].notna()]
    counts = people["system"].value_counts()
    return str(min(counts.index, key=lambda name: (-counts[name], name))) if len(counts) else ""


def _figure(of: Column, rows: Sequence[Row], system: str, reference: str, pair: Pairing | None) -> ReportFigure:
    row = next(row for row in rows if row["system"] == system)
    others = [row for row in rows if row["system"] != system and row["system_kind"] != "control"]
    valued = {str(other["system"]): value for other in others if (value := to_number(other["value"])) is not None}
    values = list(valued.values())
    median = statistics.median(values) if values else None
    person = next((to_number(other["value"]) for other in others if other["system"] == reference), None)
    value, low, high = (to_number(row[name]) for name in ("value", "low", "high"))
    beside = pair(of, reference) if pair else None
    to_person = beside.to_b if beside else set_against(value, person, of, low, high)
    # With only one other system, there is no median, so the two systems are compared directly.
    alone = pair(of, next(iter(valued))) if pair and len(valued) == 1 else None
    to_median = alone.to_b if alone else set_against(value, median, of, low, high)
    return ReportFigure(of, row, median, tuple(values), person, beside, to_median, to_person)
