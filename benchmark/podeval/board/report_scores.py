"""Read what a system scored on each item of one benchmark, split and profile, once from the table of items."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from podeval import benchmarks
from podeval.board.runs_folder import RunsFolder
from podeval.errors import BadInput
from podeval.metrics.score import BESIDE_VALUES
from podeval.runs.board_tables import ITEMS

PARTS = 10
"""Number of equal parts of a recording for which the course of a windowed metric is given."""

KEPT = 12
"""Number of systems whose scores are kept in memory."""

UNREADABLE = "its stored result cannot be read; measure the run again"

Place = tuple[str, str]
"""A metric and the id of its protocol."""


@dataclass(frozen=True)
class Listed:
    """An item with its display facts, and the path of the system's output for it ("" where there is none)."""

    id: str
    topic: str
    category: str
    output: str

    @property
    def title(self) -> str:
        """Display title of the item."""
        return self.topic or self.id


@dataclass(frozen=True)
class Slope:
    """The drift of a windowed key over a recording, per minute or per thousand tokens, with its 95 % interval."""

    slope: float
    low: float
    high: float
    per: str


@dataclass(frozen=True)
class Reading:
    """One metric's result on one item, without its windows.

    Attributes:
        values: by key; None where a key has no meaning.
        weights: weight of each value in the mean, by key.
        reason: why there is no score; empty where there is one.
        cause: the cause of that, `system` or `ours`.
        notes: what the metric noted beside its values.
        slopes: the drift of each windowed key.
        course: the mean of each windowed key in each tenth of the recording.
    """

    values: Mapping[str, float | None] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    cause: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
    slopes: Mapping[str, Slope] = field(default_factory=dict)
    course: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class BoardScores:
    """All scores of one system at one place: its items in order, and every metric's result on each of them."""

    system: str
    where: str
    items: Mapping[str, Listed]
    results: Mapping[Place, Mapping[str, Reading]]

    def values(self, metric_protocol: Place, key: str) -> dict[str, float]:
        """Return the key's value by item, for items that have one."""
        values = {item: reading.values.get(key) for item, reading in self.results.get(metric_protocol, {}).items()}
        return {item: value for item, value in values.items() if value is not None}

    def weights(self, metric_protocol: Place, key: str) -> dict[str, float] | None:
        """Return the weight of each item's value; None where all are equal."""
        readings = self.results.get(metric_protocol, {})
        if not any(key in reading.weights for reading in readings.values()):
            return None
        return {item: reading.weights.get(key, 1.0) for item, reading in readings.items()}

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Cluster by item, with which the item is resampled, as its benchmark says."""
        try:
            by = benchmarks.get(self.where.partition("/")[0]).aggregation.cluster
        except BadInput:
            by = "id"
        return {item: str(getattr(entry, by)) or item for item, entry in self.items.items()}


def read_scores(folder: RunsFolder, system: str, where: str) -> BoardScores:
    """Return the scores of a system at `benchmark/split/profile`; those of a few systems are cached."""
    items = (ITEMS,)
    return folder.remember("scores", items, (system, where), lambda: _read(folder.items(), system, where), most=KEPT)


def _read(items: pd.DataFrame, system: str, where: str) -> BoardScores:
    rows = items[items["system"] == system]
    for name, value in zip(("benchmark", "split", "profile"), where.split("/"), strict=False):
        rows = rows[rows[name] == value]
    entries: dict[str, Listed] = {}
    results: dict[Place, dict[str, Reading]] = {}
    names = ("item", "topic", "category", "output", "metric", "protocol", "result")
    for item, topic, category, output, metric, protocol, result in zip(
        *(rows[n].astype(str) for n in names), strict=True
    ):
        if item not in entries or (output and not entries[item].output):
            entries[item] = Listed(item, topic, category, output)
        results.setdefault((metric, protocol), {})[item] = parse_reading(result)
    return BoardScores(system, where, dict(sorted(entries.items())), results)


def parse_reading(text: str) -> Reading:
    """Parse one stored result; one that cannot be parsed is unscored with the cause `ours`."""
    try:
        data = json.loads(text)
        if "unscored" in data:
            return Reading(reason=str(data["unscored"]), cause="system" if data["cause"] == "system" else "ours")
        values = {str(key): _number(value) for key, value in data.items() if key not in BESIDE_VALUES}
        weights = {str(key): float(value) for key, value in data.get("weights", {}).items()}
        notes = dict(data.get("notes", {}))
        return Reading(values, weights, notes=notes, slopes=_slopes(data.get("drift", {})), course=_courses(data))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Reading(reason=UNREADABLE, cause="ours")


def compute_course(starts: list[float], window: float, values: list[float | None]) -> tuple[float | None, ...]:
    """Return the mean of the windows whose middle lies in each tenth of the recording; None in a tenth without any."""
    end = starts[-1] + window if starts else 0.0
    if end <= 0:
        return (None,) * PARTS
    held: list[list[float]] = [[] for _ in range(PARTS)]
    for start, value in zip(starts, values, strict=False):
        if value is not None:
            held[min(PARTS - 1, int(PARTS * (start + window / 2) / end))].append(value)
    return tuple(float(np.mean(part)) if part else None for part in held)


def _courses(data: Mapping[str, Any]) -> dict[str, tuple[float | None, ...]]:
    timeline = data.get("timeline")
    if not timeline:
        return {}
    starts, window = [float(start) for start in timeline["starts"]], float(timeline["window"])
    return {key: compute_course(starts, window, list(column)) for key, column in timeline["values"].items()}


def _slopes(drift: Mapping[str, Any]) -> dict[str, Slope]:
    return {
        key: Slope(float(trend["slope"]), float(trend["ci95"][0]), float(trend["ci95"][1]), str(drift["per"]))
        for key, trend in drift.items()
        if isinstance(trend, dict)
    }


def _number(value: Any) -> float | None:
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else None
