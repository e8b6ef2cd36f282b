"""The standing of each system in each column: its range of ranks, or the reason why it has none.

A column is one key over all items or one slice of them, in one benchmark, split, profile and protocol. Each pair of
systems is compared on its common items, with a correction for the number of pairs in the column. A system is ranked
only if it is complete in the column (an item counts as unscored if it lacks a value that it could have for the key), is
not a control, ran a split that is large enough for ranks, and can be compared with at least one other system. For the
error rates themselves, and in dimensions that need accurate speech, the system's WER and CER must also stay below the
benchmark's ceiling in each language; in dimensions with a guard, nearly all of the system's items must pass the guard.
Values that the metric itself marks as unranked (`Score.unranked`), such as the richness of three words, are not ranked.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.board.columns import JUDGED
from podeval.errors import BadInput
from podeval.metrics import Key, Metric, Result, Score, Unscored
from podeval.metrics.aggregate import COMPLETE, find_gap, is_complete
from podeval.runs.aggregate import collect_metrics
from podeval.runs.board_tables import ALONE, EVIDENT, NOT_RANKED
from podeval.runs.run_folder import MetricSummary, RunFolder, RunSummary, run_folders
from podeval.stats.pair_comparisons import ENOUGH_SHARED, compare_columns

Place = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Run:
    """One run as measured under one profile, with its results in memory."""

    folder: RunFolder
    summary: RunSummary
    benchmark: Benchmark
    items: tuple[Item, ...]
    results: dict[tuple[str, str], Result]

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The declarations of all metrics that are measured on the run's track."""
        return collect_metrics(self.benchmark, self.summary.plan.track)

    @cached_property
    def clusters(self) -> dict[str, str]:
        """The cluster (topic, text, dialogue) of each item."""
        return {item.id: self.benchmark.cluster(item) for item in self.items}

    @cached_property
    def error_rates(self) -> list[tuple[float, str, str]]:
        """The mean, key and slice of the run's error rates over all items and in each language.

        English has both rates and Chinese has only the CER, so in a CER over all items, the English rate would mask the
        Chinese rate. If there are several settings, the benchmark's own setting is used.
        """
        protocol = self.summary.choose_protocols().get("wer")
        return [
            (rate.mean, name, row.slice)
            for row in self.summary.metrics
            if row.protocol == protocol and (not row.slice or row.slice.startswith("language="))
            for name in ("wer", "cer")
            if (rate := row.keys.get(name)) is not None
        ]

    def find_mean(self, column: str) -> float | None:
        """Return the mean of a column (`metric.key`) over all items; None if there is none."""
        metric, _, key = column.partition(".")
        values = [row.keys.get(key) for row in self.summary.metrics if row.metric == metric and not row.slice]
        return values[0].mean if values and values[0] is not None else None

    def comparison_key(self, protocol: str, slice_: str) -> Place:
        """Return the place within which the run's numbers can be compared with the numbers of other runs."""
        return (self.summary.plan.benchmark, self.summary.plan.split, self.summary.profile, protocol, slice_)

    def select_scores(self, protocol: str, slice_: str) -> dict[str, Score]:
        """Return the scores on the items of a slice."""
        field, _, group = slice_.partition("=")
        within = any(breakdown.name == field and breakdown.within for breakdown in self.benchmark.breakdowns)
        scores = {}
        for item in self.items:
            result = self.results.get((item.id, protocol))
            if within and isinstance(result, Score):
                result = result.part(field, group)
            elif slice_ and item.group(field) != group:
                continue
            if isinstance(result, Score):
                scores[item.id] = result
        return scores

    def find_foreign(self, protocol: str, slice_: str, name: str) -> list[Unscored]:
        """Find the unscored items of a slice that cannot have a key because the key is named after one group of a
        breakdown and the items belong to another group.
        """
        field, _, group = slice_.partition("=")
        of = next((breakdown.name for breakdown in self.benchmark.breakdowns if name in breakdown.groups), "")
        items = [item for item in self.items if of and item.group(of) != name]
        results = [self.results.get((item.id, protocol)) for item in items if not slice_ or item.group(field) == group]
        return [result for result in results if isinstance(result, Unscored)]


@dataclass
class Standing:
    """The standing of a system in one column.

    Attributes:
        scored: the number of items with all values of this key that these items can have.
        unscored_system: the number of items that are unscored, or lack a value of this key, because of the system.
        unscored_ours: the number of such items for which the cause is ours, not the system's.
        reasons: the reasons why items are unscored or the system has no rank, each with the number of items.
        values: the number of items that have a value.
        clusters: the number of independent clusters on which the rank or, if there is no rank, the value is based.
        rankable: whether the system can be ranked if there are other systems to compare it with.
        rank: best and worst rank; None if unranked.
    """

    scored: int
    unscored_system: int
    unscored_ours: int
    reasons: dict[str, int]
    values: int
    clusters: int
    rankable: bool
    rank: tuple[int, int] | None = None


def find_standings(
    runs: Sequence[Run], together: Collection[tuple[str, str, str]] = ()
) -> dict[tuple[Place, str, str], Standing]:
    """Return the standing of each system in each column, by place, key and system.

    Args:
        runs: all compared runs.
        together: protocol, slice and key of each column to rank; the ranks are corrected together for the number of
            pairs in these columns. If empty, all columns are ranked and corrected separately.
    """
    places: dict[Place, list[tuple[Run, MetricSummary]]] = defaultdict(list)
    for run in runs:
        for row in run.summary.metrics:
            places[run.comparison_key(row.protocol, row.slice)].append((run, row))
    standings: dict[tuple[Place, str, str], Standing] = {}
    family: list[_Column] = []
    for place, entries in places.items():
        keys = dict.fromkeys(key for _, row in entries for key in row.keys)
        wanted_keys = [key for key in keys if not together or (*place[3:], key) in together]
        scores = [run.select_scores(row.protocol, row.slice) for run, row in entries] if wanted_keys else []
        clusters = {item: cluster for run, _ in entries for item, cluster in run.clusters.items()}
        for key in wanted_keys:
            family.append(_fill_column(key, entries, scores, clusters))
            standings |= {(place, key, of): one for of, one in family[-1][0].items()}
            if not together:
                _rank_columns([family.pop()])
    _rank_columns(family)
    return standings


_Column = tuple[dict[str, Standing], dict[str, dict[str, float]], bool, Mapping[str, str]]
"""A column before ranking: its standings, the values that may be ranked, whether higher values are better, and the
cluster of each item."""


def _rank_columns(columns: Sequence[_Column]) -> None:
    """Fill in the ranks of the standings, corrected over these columns together, or the reasons for missing ranks."""
    ranked = [column for column in columns if column[1]]
    for (standings, field, *_), verdicts in zip(ranked, compare_columns([c[1:] for c in ranked]), strict=True):
        for index, system in enumerate(sorted(field)):
            standing, alone = standings[system], len(field) == 1
            standing.rank = verdicts.ranges.get(system)
            standing.clusters = verdicts.clusters.get(system, standing.clusters)
            if standing.rank is None:
                standing.reasons[ALONE if alone else _explain_lonely(index, verdicts.shared)] = standing.values
                standing.rankable = alone


def _fill_column(
    name: str,
    entries: Sequence[tuple[Run, MetricSummary]],
    scores: Sequence[Mapping[str, Score]],
    clusters: Mapping[str, str],
) -> _Column:
    key = next(
        (key for key in entries[0][0].metrics[entries[0][1].metric].keys if key.name == name),
        Key(name, "informative", only_for="what nothing declares"),
    )
    standings: dict[str, Standing] = {}
    field: dict[str, dict[str, float]] = {}
    for (run, row), of_items in zip(entries, scores, strict=True):
        system, values = run.summary.plan.system, _pool_values(name, of_items)
        foreign = run.find_foreign(row.protocol, row.slice, name)
        standings[system] = standing = _count_items(key, row, of_items, clusters, foreign)
        if not standing.rankable:
            standing.reasons = standing.reasons or {EVIDENT["values"]: len(foreign)}
            continue
        bar = _explain_bar(run, row.metric) or _explain_refusals(name, of_items, standing)
        standing.rankable = not bar
        if why := bar or _explain_column(key, values):
            standing.reasons[why] = row.scored
        else:
            field[system] = values
    return standings, field, key.better == "higher", clusters


def _count_items(
    key: Key,
    row: MetricSummary,
    of_items: Mapping[str, Score],
    clusters: Mapping[str, str],
    foreign: Sequence[Unscored] = (),
) -> Standing:
    """Return the standing of a system before ranking. Missing values of this key count as unscored; unscored items that
    cannot have the key are not counted.
    """
    gaps = [gap for score in of_items.values() if (gap := find_gap(score, key))]
    ours = row.unscored_ours + sum(gap.cause == "ours" for gap in gaps) - sum(one.cause == "ours" for one in foreign)
    scored, unscored = row.scored - len(gaps), row.unscored_system + row.unscored_ours + len(gaps) - len(foreign)
    having = [item for item, score in of_items.items() if score.values.get(key.name) is not None]
    return Standing(
        scored=scored,
        unscored_system=unscored - ours,
        unscored_ours=ours,
        reasons=dict(Counter(row.reasons) + Counter(gap.reason for gap in gaps) - Counter(o.reason for o in foreign)),
        values=len(having),
        clusters=len({clusters[item] for item in having}),
        rankable=is_complete(scored, unscored - ours, ours),
    )


def _pool_values(name: str, of_items: Mapping[str, Score]) -> dict[str, float]:
    """Return the rankable values of a key, by item; weighted values are scaled by their weight.

    If there are weights (for example, if a mean is pooled over criteria), the mean of the returned values is the
    weighted mean.
    """
    kept = {
        item: (value, score.weights.get(name, 1.0))
        for item, score in of_items.items()
        if (value := score.values.get(name)) is not None and name not in score.unranked
    }
    total = sum(weight for _, weight in kept.values())
    return {item: value * weight * len(kept) / total for item, (value, weight) in kept.items()} if total else {}


def _explain_bar(run: Run, metric: str) -> str:
    """Return the reason why a run that was scored on a metric is not ranked on it; empty if there is none."""
    if not run.benchmark.split(run.summary.plan.split).ranked:
        return f"{NOT_RANKED}: the {len(run.items)} items of its split are too few for ranks"
    of_track = run.benchmark.dimensions_of(run.summary.plan.track)
    needing = [d for d in of_track if any(use.name == metric for use in d.metrics)]
    for guard in dict.fromkeys(dimension.guard for dimension in needing if dimension.guard):
        if (passed := run.find_mean(guard)) is None:
            return f"{NOT_RANKED}: it is unknown which of its items pass {guard}"
        if passed < COMPLETE:
            return f"{NOT_RANKED}: {passed:.0%} of its items pass {guard}, but {COMPLETE:.0%} are needed"
    if metric == "wer" or any(dimension.needs_accurate_speech for dimension in needing):
        if not run.error_rates:
            return f"{NOT_RANKED}: its WER is not known"
        ceiling = run.benchmark.wer_ceiling
        for mean, name, slice_ in run.error_rates:
            if ceiling is not None and mean > ceiling:
                where = f" ({slice_})" if slice_ else ""
                return f"{NOT_RANKED}: its {name.upper()} of {mean:.2f}{where} is above the ceiling of {ceiling:.2f}"
    return EVIDENT["control"] if run.summary.plan.system_kind == "control" else ""


def _explain_refusals(name: str, of_items: Mapping[str, Score], standing: Standing) -> str:
    """Return the reason if a key is not ranked because its metric marks too many values as unranked; otherwise, ""."""
    refusals = Counter(reason for score in of_items.values() if (reason := score.unranked.get(name)))
    total = standing.scored + standing.unscored_system
    many = refusals and refusals.total() + standing.unscored_system > (1 - COMPLETE) * total
    return f"{NOT_RANKED}: {refusals.most_common(1)[0][0]} ({refusals.total()} of {total})" if many else ""


def _explain_column(key: Key, values: Collection[str]) -> str:
    """Return the reason why a key ranks no system, for example because no item has the key; empty if there is no such
    reason.
    """
    checks = {"direction": key.better in ("higher", "lower"), "printed": key.ranked, "values": bool(values)}
    return next((EVIDENT[name] for name, passed in checks.items() if not passed), "")


def _explain_lonely(index: int, shared: NDArray[np.intp]) -> str:
    """Return the reason why a system is not compared with others, stating whose results are missing."""
    sizes = shared.diagonal().tolist()
    least = min(range(len(sizes)), key=lambda other: shared[index, other] / max(sizes[index], sizes[other]))
    whose = "its own" if sizes[index] < sizes[least] else "both" if sizes[index] == sizes[least] else "the other's"
    return (
        f"{NOT_RANKED}: it shares {shared[index, least]} of {max(sizes[index], sizes[least])} independent items with "
        f"another system, but {100 * ENOUGH_SHARED:.0f} % are needed; the others are missing from {whose} results"
    )


def read_runs(runs: Path, board: str = "", profile: str = "") -> Iterable[Run]:
    """Read the runs of a folder: all runs, or only the runs of one `benchmark/split` under one profile."""
    for folder in run_folders(runs):
        for summary in folder.summaries():
            where = f"{summary.plan.benchmark}/{summary.plan.split}"
            if board not in ("", where) or profile not in ("", summary.profile):
                continue
            try:
                benchmark = benchmarks.get(summary.plan.benchmark)
                items = folder.items() or benchmark.items(summary.plan.split)
            except BadInput as error:
                raise BadInput(
                    f"the run in {folder.path} cannot be shown: {error}; move the run to another folder"
                ) from error
            yield Run(folder, summary, benchmark, items, folder.results(summary.profile))


def correct_together(
    runs: Path, numbers: pd.DataFrame, board: str, profile: str, together: Collection[tuple[str, str, str]]
) -> pd.DataFrame | None:
    """Return numbers with ranks that are corrected together for the number of pairs in some columns (Holm).

    Args:
        runs: folder of the runs that the numbers come from.
        numbers: a copy of the numbers, with ranks corrected separately in each column; this copy is modified.
        board: `benchmark/split` of the numbers.
        profile: the profile with which the values were measured.
        together: protocol, slice and key of each of these columns.

    Returns:
        The numbers, in which ratings from battles have no rank; None if the folder lacks some of the ranked runs.
    """
    try:
        standings = find_standings(list(read_runs(runs, board, profile)), together)
    except BadInput:
        return None
    ranks = {(*place[3:], key, of): standing.rank for (place, key, of), standing in standings.items()}
    # Ranks from battles are corrected only among themselves, so they are not shown here.
    numbers.loc[numbers["metric"] == f"{JUDGED}_arena", ["rank_best", "rank_worst"]] = np.nan
    ids = list(numbers[["protocol", "slice", "key", "system"]].itertuples(index=False, name=None))
    has_rank = numbers["rank_best"].notna() & np.array([id[:3] in together for id in ids], dtype=bool)
    corrected = [ranks.get(id) for id, ranked in zip(ids, has_rank, strict=True) if ranked]
    if None in corrected:
        return None
    numbers.loc[has_rank, ["rank_best", "rank_worst"]] = np.array(corrected, dtype=float).reshape(-1, 2)
    return numbers
