"""Collect one item of a system for its page: every score with its notes or its reason, and the windowed values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from podeval.board.columns import get_column
from podeval.board.report_figures import select_rows
from podeval.board.report_scores import UNREADABLE
from podeval.board.table import MISSING, choose_decimals, format_value, to_number
from podeval.metrics.defects import collect_defects
from podeval.metrics.score import Result, Score, Timeline, Unscored, parse_result
from podeval.plots.lines import LEFT, RIGHT, Line, draw_lines
from podeval.plots.svg import Axis, Frame
from podeval.recording.defects import TimedDefect
from podeval.texts import CAUSES, translate_reason

HEARD = "transcript"
"""Name of the note that holds the transcribed words."""

DEFECTS = "defects"
"""Name of the note that lists what went wrong, with times."""

MOST_KEYS = 4
"""Most keys in a timeline."""


@dataclass(frozen=True)
class ShownValue:
    """One value of one metric on an item, or why there is none.

    Attributes:
        metric: its name, with the protocol where there are results of several.
        name: name of the key, with direction and unit, as in a header.
        value: the value as the board formats it; empty where there is none.
        notes: what the metric noted, beside its first key.
        reason, cause: why there is no score, and the cause of that.
    """

    metric: str
    name: str
    value: str = ""
    notes: str = ""
    reason: str = ""
    cause: str = ""


def find_item_results(items: pd.DataFrame, system: str, where: str, item: str) -> tuple[dict[str, Result], str]:
    """Return every metric's result on one item, and the path of the item's output ("" where there is none).

    Where a metric has results of several protocols, its name carries the protocol.
    """
    rows = select_rows(items[items["item"] == item], where)
    rows = rows[rows["system"] == system]
    several = rows["metric"].duplicated(keep=False)
    results: dict[str, Result] = {}
    for row, ambiguous in zip(rows.to_dict("records"), several, strict=True):
        results[f"{row['metric']} ({row['protocol']})" if ambiguous else str(row["metric"])] = _result(row["result"])
    outputs = [str(output) for output in rows["output"] if output]
    return results, outputs[0] if outputs else ""


def list_scores(
    results: Mapping[str, Result], language: str = "en", words: Mapping[str, Any] = CAUSES
) -> list[ShownValue]:
    """Return every value of an item in a language of the site, in the order of the metrics; `words` has reasons."""
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
        notes = "; ".join(
            f"{note.replace('_', ' ')}: {_plain(value)}"
            for note, value in result.notes.items()
            if note not in (HEARD, DEFECTS)
        )
        for position, (key, value) in enumerate(result.values.items()):
            number = to_number(value)
            text = MISSING if number is None else format_value(number, None, None, choose_decimals([number]))
            values.append(
                ShownValue(name, get_column(metric, key, metric).header_in(language), text, "" if position else notes)
            )
    return values


def read_transcripts(results: Mapping[str, Result]) -> list[tuple[str, str]]:
    """Return the transcribed words, by the metric that transcribed them."""
    return [
        (name, str(result.notes[HEARD]))
        for name, result in results.items()
        if isinstance(result, Score) and HEARD in result.notes
    ]


def list_defects(results: Mapping[str, Result]) -> list[TimedDefect] | None:
    """Return what went wrong in an item, in order of time; None where no metric listened for it."""
    listened = [result for result in results.values() if isinstance(result, Score) and DEFECTS in result.notes]
    try:
        return collect_defects(listened) if listened else None
    except (KeyError, TypeError, AttributeError):
        return None  # Written by another version.


def collect_timelines(results: Mapping[str, Result]) -> dict[str, Timeline]:
    """Return the timelines of an item, by metric."""
    return {
        metric: result.timeline for metric, result in results.items() if isinstance(result, Score) and result.timeline
    }


def draw_timeline(track: Timeline, title: str, names: Sequence[str]) -> str:
    """Draw a windowed metric of one recording over its time: a line for each key, at the middle of its windows.

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
