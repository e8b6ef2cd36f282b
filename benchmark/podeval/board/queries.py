"""Answer questions about a board as plain data; nothing is changed, and numbers of two protocols are never mixed."""

from typing import Any

import pandas as pd

from podeval import benchmarks
from podeval.board.columns import get_column
from podeval.board.compare import compare
from podeval.board.runs_folder import RunsFolder
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.description import describe_metric
from podeval.texts import write_sentence

MOST = 200
"""Most rows of an answer."""
FIELDS = {
    "system": "system",
    "system_title": "title",
    "system_kind": "kind",
    **{name: name for name in ("provenance", "benchmark", "split", "profile", "dimension", "metric", "key", "slice")},
    **{name: name for name in ("value", "low", "high", "rank_best", "rank_worst", "rankable")},
    **{name: name for name in ("scored", "unscored_system", "unscored_ours", "protocol")},
}
"""Columns of the board in a number, with their names there."""

INTERVAL = {"difference": "mean", "low": "low", "high": "high"}
"""Parts of a paired difference, with their names in an interval."""

Answer = dict[str, Any]


class Questions:
    """The answers to questions about a folder of runs; may be used by any number of threads.

    Args:
        folder: the folder of runs.
    """

    def __init__(self, folder: RunsFolder) -> None:
        self._folder = folder

    def systems(self, query: str = "", benchmark: str = "") -> list[Answer]:
        """Return the systems whose id or title contains every word of the query; all systems without a query.

        Args:
            query: words.
            benchmark: only systems measured there.

        Returns:
            Id, title, kind and provenance of each, and where it was `measured`, as benchmark/split/profile.
        """
        board = self._folder.board()
        board = board[board["benchmark"] == benchmark] if benchmark else board
        words, systems = query.casefold().split(), []
        for system, rows in board.groupby("system", sort=True):
            first = rows.iloc[0]
            name = f"{system} {first['system_title']}".casefold()
            if all(word in name for word in words):
                places = rows[["benchmark", "split", "profile"]].drop_duplicates().astype(str)
                fields = ("system", "system_title", "system_kind", "provenance")
                measured = sorted("/".join(filter(None, where)) for where in places.to_numpy())
                systems.append({**{FIELDS[field]: str(first[field]) for field in fields}, "measured": measured})
        return systems[:MOST]

    def leaderboard(
        self, benchmark: str, profile: str = "", metric: str = "", dimension: str = "", slice: str = "", split: str = ""
    ) -> Answer:
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
        profiles = sorted(set(rows["profile"]), key=lambda name: (name == "paper", name))
        if rows.empty:
            names = ", ".join(sorted(set(board["benchmark"]))) or "nothing"
            raise BadInput(write_sentence("benchmark-not-measured", benchmark=f"{benchmark!r}", choices=names))
        for name, value in (("metric", metric), ("split", split)):
            rows = rows[rows[name] == value] if value else rows
        rows = rows[rows["dimension"].str.startswith(dimension)] if dimension else rows
        return _view(rows, benchmark, profiles, profile or profiles[0], slice)

    def results(self, system: str, benchmark: str = "", profile: str = "", slice: str = "") -> list[Answer]:
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
        return [
            _view(part, str(name), [str(under)], str(under), slice)
            for (name, under), part in rows.groupby(["benchmark", "profile"], sort=True)
            if profile in ("", under)
        ]

    def compare(self, a: str, b: str, benchmark: str = "") -> Answer:
        """Compare two systems by paired differences over the items they share.

        Args:
            a: id of one.
            b: id of the other.
            benchmark: the place; `benchmark`, `benchmark/split` or `benchmark/split/profile`.

        Returns:
            By key the means over each one's scored items, and the paired difference (a minus b) over common items with
            its 95 % interval; null where they share none. `says` is how a compares with b, `sure` whether the interval
            says so.

        Raises:
            BadInput: there is no such system, or the two were not both measured there.
        """
        for system in (a, b):
            self._of(system)
        comparison = compare(self._folder, a, b, benchmark)
        keys = []
        for pair in comparison.pairs:
            difference = pair.beside.difference if pair.beside else None
            of = {name: getattr(pair.column, name) for name in ("metric", "key", "better", "unit")}
            values = dict(zip(("a", "b"), pair.values, strict=True))
            over = {name: getattr(difference, field, None) for name, field in INTERVAL.items()}
            keys.append(
                of | values | over | {"protocol": pair.protocol, "says": pair.to_b.word, "sure": pair.to_b.sure}
            )
        return {
            "a": comparison.a.title,
            "b": comparison.b.title,
            "where": comparison.where,
            "items_in_common": sum(any(None not in both for both in i.readings.values()) for i in comparison.items),
            "keys": keys,
        }

    def metric(self, name: str) -> Answer:
        """Explain what a metric measures and how.

        Raises:
            BadInput: there is no such metric; the message lists the metrics.
        """
        if name not in catalogue.NAMES:
            raise BadInput(write_sentence("no-such-metric", metric=f"{name!r}", choices=", ".join(catalogue.NAMES)))
        metric = catalogue.get(name)
        return describe_metric(metric) | {"documentation": metric.documentation}

    def benchmarks(self) -> list[Answer]:
        """Return every benchmark: what is asked, and what is measured on which dimensions."""
        return [
            {
                "name": benchmark.name,
                "title": benchmark.title,
                "description": benchmark.description,
                "splits": [split.name for split in benchmark.splits],
                "tracks": sorted({track for split in benchmark.splits for track in split.tracks}),
                "dimensions": {part.title: [use.name for use in part.metrics] for part in benchmark.dimensions},
                "citation": benchmark.citation,
            }
            for benchmark in map(benchmarks.get, benchmarks.list_benchmarks())
        ]

    def _of(self, system: str) -> pd.DataFrame:
        board = self._folder.board()
        rows = board[board["system"] == system]
        if rows.empty:
            raise BadInput(write_sentence("system-unknown", system=f"{system!r}"))
        return rows


def _view(rows: pd.DataFrame, benchmark: str, profiles: list[str], profile: str, slice: str) -> Answer:
    """Return numbers under one profile; only those of one metric and protocol may be compared.

    `total` counts all that match; `profiles` lists the available ones. A number has its mean over the scored items with
    the 95 % interval and the range of ranks that the data allows; `unscored_system` counts items without a score by the
    system's fault, `unscored_ours` those by the board's.
    """
    rows = rows[(rows["profile"] == profile) & (rows["slice"] == slice)]
    rows = rows.sort_values(["metric", "key", "protocol", "rank_best", "system"], na_position="last")
    shown = rows.head(MOST)[list(FIELDS)].rename(columns=FIELDS).astype(object)
    numbers: list[Answer] = shown.where(shown.notna(), None).to_dict("records")  # type: ignore[assignment]
    for number in numbers:
        column = get_column(number["metric"], number["key"], number["dimension"])
        number |= {"better": column.better, "unit": column.unit}
    return {"benchmark": benchmark, "profile": profile, "profiles": profiles, "total": len(rows), "numbers": numbers}
