"""Read a system's scores on each item of one benchmark, split and profile, or its results on one item for a page."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from podeval import benchmarks
from podeval.board.columns import MISSING, choose_decimals, format_value, get_column, to_number
from podeval.board.playable import list_parts
from podeval.board.runs_folder import RunsFolder
from podeval.metrics.defects import collect_defects
from podeval.metrics.score import BESIDE_VALUES, Result, Score, Timeline, Unscored, parse_result
from podeval.plots.lines import LEFT, RIGHT, Line, draw_lines
from podeval.plots.svg import Axis, Frame
from podeval.recording.defects import TimedDefect
from podeval.runs.board_tables import ITEMS
from podeval.texts import CAUSES, translate_reason

PARTS = 10
"""Number of equal parts of a recording for which a windowed metric's values are reported."""

KEPT = 12
"""Maximum number of systems whose scores are kept in memory."""

UNREADABLE = "its stored result cannot be read; measure the run again"

Place = tuple[str, str]
"""A metric and the id of its protocol."""

HEARD = "transcript"
"""Name of the note that contains the transcribed words."""

DEFECTS = "defects"
"""Name of the note that lists defects, with times."""

MOST_KEYS = 4
"""Maximum number of keys in a timeline."""


@dataclass(frozen=True)
class Listed:
    """An item with its display facts, and the path of the system's output for it ("" if there is none)."""

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
        values: the values by key; None if a key is not applicable.
        weights: weight of each value in the mean, by key.
        reason: the reason for a missing score; empty if there is a score.
        cause: the side that is responsible for a missing score, `system` or `ours`.
        notes: notes of the metric about its values.
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


def format_reading(reading: Reading | None, key: str, places: int, unscored: str) -> str:
    """Format the value of a key on one item; `unscored` is the text for a missing score."""
    if reading is None:
        return MISSING
    return unscored if reading.reason else format_value(reading.values.get(key), None, None, places)


@dataclass(frozen=True)
class BoardScores:
    """All scores of one system at one place: its items in order, and every metric's result on each item."""

    system: str
    where: str
    items: Mapping[str, Listed]
    results: Mapping[Place, Mapping[str, Reading]]

    def values(self, metric_protocol: Place, key: str) -> dict[str, float]:
        """Return the key's values by item, for the items that have a value."""
        values = {item: reading.values.get(key) for item, reading in self.results.get(metric_protocol, {}).items()}
        return {item: value for item, value in values.items() if value is not None}

    def weights(self, metric_protocol: Place, key: str) -> dict[str, float] | None:
        """Return the weight of each item's value; None if all the weights are equal."""
        readings = self.results.get(metric_protocol, {})
        if not any(key in reading.weights for reading in readings.values()):
            return None
        return {item: reading.weights.get(key, 1.0) for item, reading in readings.items()}

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Cluster of each item: the group of items that are resampled together, as defined by the benchmark."""
        benchmark = benchmarks.find_all().get(self.where.partition("/")[0])
        by = benchmark.aggregation.cluster if benchmark else "id"
        return {item: str(getattr(entry, by)) or item for item, entry in self.items.items()}


def select_rows(board: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return the rows of a board at `benchmark/split/profile`."""
    benchmark, _, rest = where.partition("/")
    split, _, profile = rest.partition("/")
    return board[(board["benchmark"] == benchmark) & (board["split"] == split) & (board["profile"] == profile)]


def read_scores(folder: RunsFolder, system: str, where: str) -> BoardScores:
    """Return a system's scores at `benchmark/split/profile`; the scores of a few systems are cached."""
    items = (ITEMS,)
    return folder.remember("scores", items, (system, where), lambda: _read(folder.items(), system, where), most=KEPT)


def _read(items: pd.DataFrame, system: str, where: str) -> BoardScores:
    rows = select_rows(items[items["system"] == system], where)
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
    """Parse one stored result; a result that cannot be parsed is unscored with the cause `ours`."""
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
    """Return the mean over the windows centred in each tenth of the recording; None for a tenth without windows."""
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


@dataclass(frozen=True)
class ShownValue:
    """One value of one metric on an item, or the reason why there is none.

    Attributes:
        metric: name of the metric, with the protocol if there are results under several protocols.
        name: name of the key, with direction and unit, as in a header.
        value: the value as the board formats it; empty if there is none. notes: name and text of each note of the
            metric, shown with its first key.
        reason, cause: the reason for a missing score, and the side that is responsible (`system` or `ours`).
    """

    metric: str
    name: str
    value: str = ""
    notes: Sequence[tuple[str, str]] = ()
    reason: str = ""
    cause: str = ""


def find_item_results(items: pd.DataFrame, system: str, where: str, item: str) -> tuple[dict[str, Result], str]:
    """Return every metric's result on one item, and the path of the item's output ("" if there is none).

    If a metric has results under several protocols, the name of each result includes the protocol.
    """
    rows = select_rows(items[items["item"] == item], where)
    rows = rows[rows["system"] == system]
    several = rows["metric"].duplicated(keep=False)
    results = {
        f"{row['metric']} ({row['protocol']})" if ambiguous else str(row["metric"]): _result(row["result"])
        for row, ambiguous in zip(rows.to_dict("records"), several, strict=True)
    }
    outputs = [str(output) for output in rows["output"] if output]
    return results, outputs[0] if outputs else ""


def list_scores(
    results: Mapping[str, Result], language: str = "en", words: Mapping[str, Any] = CAUSES
) -> list[ShownValue]:
    """Return an item's values in one of the site's languages, in metric order; `words` contains the texts for
    reasons.
    """
    values: list[ShownValue] = []
    for name, result in results.items():
        metric = name.partition(" (")[0]
        if isinstance(result, Unscored):
            values.append(
                ShownValue(
                    name, name.replace("_", " "), reason=translate_reason(result.reason, words), cause=result.cause
                )
            )
            continue
        notes = [
            (note.replace("_", " "), text)
            for note, value in result.notes.items()
            if note not in (HEARD, DEFECTS) and (text := _plain(value))
        ]
        for position, (key, value) in enumerate(result.values.items()):
            number = to_number(value)
            column = get_column(metric, key, metric)
            text = format_value(number, None, None, column.choose_decimals([number]))
            values.append(ShownValue(name, column.header_in(language), text, () if position else notes))
    return values


def read_transcripts(results: Mapping[str, Result]) -> list[tuple[str, str]]:
    """Return the transcripts, each preceded by the metric that produced it."""
    return [
        (name, str(result.notes[HEARD]))
        for name, result in results.items()
        if isinstance(result, Score) and HEARD in result.notes
    ]


def list_defects(results: Mapping[str, Result]) -> list[TimedDefect] | None:
    """Return the defects of an item in chronological order; None if no metric detects defects."""
    listened = [result for result in results.values() if isinstance(result, Score) and DEFECTS in result.notes]
    try:
        return collect_defects(listened) if listened else None
    except (KeyError, TypeError, AttributeError):
        return None  # The note was written by another version.


def collect_timelines(results: Mapping[str, Result]) -> dict[str, Timeline]:
    """Return the timelines of an item by metric."""
    return {
        metric: result.timeline for metric, result in results.items() if isinstance(result, Score) and result.timeline
    }


def draw_timeline(track: Timeline, title: str, names: Sequence[str]) -> str:
    """Draw a windowed metric of one recording over time: a line for each key, with points at its windows' centres.

    Args:
        track: the metric's timeline; at most `MOST_KEYS` of its keys are drawn.
        title: text for screen readers.
        names: names of the keys, in the order of the track.
    """
    middles = [start + track.window / 2 for start in track.starts]
    lines = [
        Line(list(zip(middles, track.values[key], strict=False)), css_class=f"key{number}", name=name)
        for number, (key, name) in enumerate(zip(list(track.values)[:MOST_KEYS], names, strict=False))
    ]
    in_time = track.unit == "s"
    along = Axis.over_length(max(track.starts, default=0.0) + track.window, LEFT, 480 - RIGHT, seconds=in_time)
    return draw_lines(lines, along, Frame(title, 480, 13, "drawn timeline"), 216, unit="" if in_time else track.unit)


def _result(text: str) -> Result:
    try:
        return parse_result(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Unscored(UNREADABLE, "ours")


def _plain(value: Any) -> str:
    """Format a note for a reader: `Leo 0.845, Ines 0.831`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    if isinstance(value, float) and not value.is_integer():
        return format_value(value, None, None, choose_decimals([value]))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_item_values(
    folder: RunsFolder, filters: Mapping[str, str], key: str, systems: Sequence[str]
) -> dict[str, list[float]]:
    """Return each system's per-item values, in ascending order; only the required rows of the table are read.

    Args:
        folder: the folder of runs.
        filters: required values, by column of `ItemRow`.
        key: the key of the metric.
        systems: ids of the systems.
    """

    def read() -> dict[str, list[float]]:
        values: dict[str, list[float]] = {system: [] for system in systems}
        table = folder.read_items(["system", "result"], filters, ("system", "in", tuple(systems)))
        for system, result in zip(table["system"].to_pylist(), table["result"].to_pylist(), strict=True):
            value = json.loads(result).get(key)
            if isinstance(value, int | float) and math.isfinite(value):
                values[system].append(float(value))
        return {system: sorted(of_system) for system, of_system in values.items() if of_system}

    return folder.remember("values of items", [ITEMS], (*filters.items(), key, *systems), read, most=64)


def choose_samples(folder: RunsFolder, board: str, profile: str) -> dict[str, str]:
    """Return an item to play for each system that has a recording on a board; if possible, the same item for all
    systems.

    Args:
        folder: the folder of runs.
        board: `benchmark/split`.
        profile: the profile of the systems' measurements.
    """

    def choose() -> dict[str, str]:
        benchmark, _, split = board.partition("/")
        filters = {"benchmark": benchmark, "split": split, "profile": profile}
        outputs: dict[str, dict[str, str]] = {}
        columns = ["system", "item", "output"]
        table = folder.read_items(columns, filters, ("output", "!=", ""))
        for row in table.group_by(columns).aggregate([]).to_pylist():
            outputs.setdefault(row["system"], {})[row["item"]] = row["output"]
        common = Counter(item for of_system in outputs.values() for item in of_system)
        chosen = {
            system: min(of_system, key=lambda item: (-common[item], item)) for system, of_system in outputs.items()
        }
        return {
            system: item for system, item in chosen.items() if list_parts(folder.path, outputs[system][item])[0].audio
        }

    return folder.remember("samples", [ITEMS], (board, profile), choose, most=64)
