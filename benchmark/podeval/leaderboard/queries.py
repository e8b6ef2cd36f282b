"""Answer questions about a board as typed data; nothing is changed, and numbers of two protocols are never mixed."""

from typing import Any

import pandas as pd
from pydantic import BaseModel

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.leaderboard.columns import get_column
from podeval.leaderboard.compare import compare
from podeval.leaderboard.report_scores import ScoreCache
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.leaderboard.table import to_number
from podeval.metrics import catalogue
from podeval.sentences import write_sentence

MOST = 200
"""Most rows of an answer."""


class SystemFound(BaseModel):
    """A system of the board; `measured` lists where, as benchmark/split/profile."""

    system: str
    title: str
    kind: str
    provenance: str
    measured: list[str]


class Number(BaseModel):
    """One number: mean over the scored items with its 95 % interval, and the range of ranks that the data allows.

    `unscored_system` counts items without a score by the system's fault, `unscored_ours` those by the board's.
    """

    system: str
    title: str
    kind: str
    provenance: str
    benchmark: str
    split: str
    profile: str
    dimension: str
    metric: str
    key: str
    better: str
    unit: str
    slice: str
    value: float | None
    low: float | None
    high: float | None
    rank_best: int | None
    rank_worst: int | None
    rankable: bool
    scored: int | None
    unscored_system: int | None
    unscored_ours: int | None
    protocol: str


class NumbersView(BaseModel):
    """Numbers under one profile; only those of one metric and protocol may be compared.

    `total` counts all that match; `profiles` lists the available ones.
    """

    benchmark: str
    profile: str
    profiles: list[str]
    total: int
    numbers: list[Number]


class Compared(BaseModel):
    """One key of two systems: means over each one's scored items, and the paired difference (a minus b) over common
    items with its 95 % interval; null where they share none. `says` is how a stands to b, `sure` whether the interval
    says so.
    """

    metric: str
    key: str
    better: str
    unit: str
    protocol: str
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    says: str
    sure: bool


class SystemDifference(BaseModel):
    """The comparison of two systems where both were measured."""

    a: str
    b: str
    where: str
    items_in_common: int
    keys: list[Compared]


class Explained(BaseModel):
    """A metric: what it measures, how, in which range and direction, by what authority."""

    name: str
    title: str
    version: str
    dimension: str
    paper: str
    keys: list[dict[str, Any]]
    inputs: list[str]
    parameters: dict[str, Any]
    documentation: str


class BenchmarkFound(BaseModel):
    """A benchmark: what is asked, and what is measured on which dimensions."""

    name: str
    title: str
    description: str
    splits: list[str]
    tracks: list[str]
    dimensions: dict[str, list[str]]
    citation: str


class Questions:
    """The answers to questions about a folder of runs; may be used by any number of threads.

    Args:
        folder: the folder of runs.
    """

    def __init__(self, folder: RunsFolder) -> None:
        self._folder = folder
        self._shelf = ScoreCache(folder)

    def systems(self, query: str = "", benchmark: str = "") -> list[SystemFound]:
        """Return the systems whose id or title holds every word of the query; all systems without a query.

        Args:
            query: words.
            benchmark: only systems measured there.
        """
        board = self._folder.board()
        board = board[board["benchmark"] == benchmark] if benchmark else board
        words, systems = query.casefold().split(), []
        for system, rows in board.groupby("system", sort=True):
            first = rows.iloc[0]
            name = f"{system} {first['system_title']}".casefold()
            if all(word in name for word in words):
                places = rows[["benchmark", "split", "profile"]].drop_duplicates().astype(str)
                systems.append(
                    SystemFound(
                        system=str(system),
                        title=str(first["system_title"]),
                        kind=str(first["system_kind"]),
                        provenance=str(first["provenance"]),
                        measured=sorted("/".join(filter(None, where)) for where in places.to_numpy()),
                    )
                )
        return systems[:MOST]

    def leaderboard(
        self, benchmark: str, profile: str = "", metric: str = "", dimension: str = "", slice: str = "", split: str = ""
    ) -> NumbersView:
        """Return the numbers of a benchmark, best rank first.

        Args:
            benchmark: its name.
            profile: profile whose models measured; by default the first of embedded, reference, paper that has numbers.
            metric: only this one.
            dimension: only dimensions that begin so, such as `speech`.
            slice: slice of a breakdown, such as `category=Arts`; all items by default.
            split: only this one.

        Raises:
            BadInput: nothing was measured there; the message lists what was.
        """
        board = self._folder.board()
        rows = board[board["benchmark"] == benchmark]
        if rows.empty:
            names = ", ".join(sorted(set(board["benchmark"]))) or "nothing"
            raise BadInput(write_sentence("benchmark-not-measured", benchmark=f"{benchmark!r}", choices=names))
        return self._view(rows, benchmark, profile, metric, dimension, slice, split)

    def results(self, system: str, benchmark: str = "", profile: str = "", slice: str = "") -> list[NumbersView]:
        """Return all numbers of one system, a view for each benchmark and profile.

        Args:
            system: its id, as `systems` gives it.
            benchmark: only this one.
            profile: only this one.
            slice: slice of a breakdown; all items by default.

        Raises:
            BadInput: there is no such system.
        """
        rows = self._of(system)
        rows = rows[rows["benchmark"] == benchmark] if benchmark else rows
        views = []
        for (name, under), part in rows.groupby(["benchmark", "profile"], sort=True):
            if profile in ("", under):
                views.append(self._view(part, str(name), str(under), "", "", slice, ""))
        return views

    def compare(self, a: str, b: str, benchmark: str = "") -> SystemDifference:
        """Compare two systems by paired differences over the items they share.

        Args:
            a: id of one.
            b: id of the other.
            benchmark: the place; `benchmark`, `benchmark/split` or `benchmark/split/profile`.

        Raises:
            BadInput: there is no such system, or the two were not both measured there.
        """
        for system in (a, b):
            self._of(system)
        comparison = compare(self._folder.board(), self._shelf, a, b, benchmark)
        keys = []
        for pair in comparison.pairs:
            value_a, value_b = pair.values
            difference = pair.beside.difference if pair.beside else None
            keys.append(
                Compared(
                    metric=pair.column.metric,
                    key=pair.column.key,
                    better=pair.column.better,
                    unit=pair.column.unit,
                    protocol=pair.protocol,
                    a=value_a,
                    b=value_b,
                    difference=difference.mean if difference else None,
                    low=difference.low if difference else None,
                    high=difference.high if difference else None,
                    says=pair.to_b.word,
                    sure=pair.to_b.sure,
                )
            )
        common = sum(any(None not in both for both in item.readings.values()) for item in comparison.items)
        return SystemDifference(
            a=comparison.a.title, b=comparison.b.title, where=comparison.where, items_in_common=common, keys=keys
        )

    def metric(self, name: str) -> Explained:
        """Explain what a metric measures and how.

        Raises:
            BadInput: there is no such metric; the message lists the metrics.
        """
        if name not in catalogue.NAMES:
            raise BadInput(write_sentence("no-such-metric", metric=f"{name!r}", choices=", ".join(catalogue.NAMES)))
        metric = catalogue.get(name)
        return Explained(
            name=metric.name,
            title=metric.title,
            version=metric.version,
            dimension=metric.dimension,
            paper=metric.paper,
            keys=[
                {"name": key.name, "better": key.better, "unit": key.unit, "bounds": key.bounds} for key in metric.keys
            ],
            inputs=list(metric.inputs),
            parameters={parameter.name: parameter.default for parameter in metric.parameters},
            documentation=metric.documentation,
        )

    def benchmarks(self) -> list[BenchmarkFound]:
        """Return every benchmark."""
        records = []
        for name in benchmarks.list_benchmarks():
            benchmark = benchmarks.get(name)
            records.append(
                BenchmarkFound(
                    name=benchmark.name,
                    title=benchmark.title,
                    description=benchmark.description,
                    splits=[split.name for split in benchmark.splits],
                    tracks=sorted({track for split in benchmark.splits for track in split.tracks}),
                    dimensions={part.title: [use.name for use in part.metrics] for part in benchmark.dimensions},
                    citation=benchmark.citation,
                )
            )
        return records

    def _of(self, system: str) -> pd.DataFrame:
        board = self._folder.board()
        rows = board[board["system"] == system]
        if rows.empty:
            raise BadInput(write_sentence("system-unknown", system=f"{system!r}"))
        return rows

    def _view(
        self, rows: pd.DataFrame, benchmark: str, profile: str, metric: str, dimension: str, slice: str, split: str
    ) -> NumbersView:
        profiles = sorted(set(rows["profile"]), key=lambda name: (name == "paper", name))
        chosen = profile or profiles[0]
        rows = rows[(rows["profile"] == chosen) & (rows["slice"] == slice)]
        for name, value in (("metric", metric), ("split", split)):
            rows = rows[rows[name] == value] if value else rows
        rows = rows[rows["dimension"].str.startswith(dimension)] if dimension else rows
        rows = rows.sort_values(["metric", "key", "protocol", "rank_best", "system"], na_position="last")
        numbers = [_number(row) for row in rows.head(MOST).to_dict("records")]
        return NumbersView(benchmark=benchmark, profile=chosen, profiles=profiles, total=len(rows), numbers=numbers)


def _number(row: dict[Any, Any]) -> Number:
    of = get_column(str(row["metric"]), str(row["key"]), str(row["dimension"]))
    fields = {str(name): value for name, value in row.items() if str(name) in Number.model_fields}
    for name in ("value", "low", "high"):
        fields[name] = to_number(row[name])
    for name in ("rank_best", "rank_worst", "scored", "unscored_system", "unscored_ours"):
        count = to_number(row[name])
        fields[name] = None if count is None else int(count)
    return Number(
        **fields | {"title": row["system_title"], "kind": row["system_kind"], "better": of.better, "unit": of.unit}
    )
