"""One system as its page shows it: what it is, where it stands among the others, and its items."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from podeval.leaderboard.columns import Column, column, dimension_title, ordered
from podeval.leaderboard.table import MISSING, Row, cell_text, decimals, names, present, reasons_text, value_text
from podeval.leaderboard.view import View, choose_protocols, settle
from podeval.metrics.score import Result, Score, Timeline, Unscored, result_from_json

RESULT_HEADERS = ("Metric", "Value", "Median of others", "Against it", "Scored", "Dimension", "Not scored, and why")
SCORE_HEADERS = ("Metric", "Key", "Value", "Notes")


@dataclass(frozen=True)
class Facts:
    """What a system is and where its numbers come from."""

    title: str
    system: str
    kind: str
    provenances: tuple[str, ...]
    sources: tuple[str, ...]
    updated: str


def systems(board: pd.DataFrame) -> list[tuple[str, str]]:
    """Every system as (name, id): those with items to listen to first, then by name; names tell apart equal titles."""
    listed = {name: system for system, name in names(board).items()}
    kinds = board.drop_duplicates("system").set_index("system")["system_kind"]
    last = {"reported": 2, "control": 1}
    return sorted(listed.items(), key=lambda entry: (last.get(kinds[entry[1]], 0), entry[0].casefold()))


def boards_of(board: pd.DataFrame, system: str) -> list[tuple[str, str]]:
    """Where a system has numbers: label and `benchmark/split/profile`."""
    own = board[board["system"] == system][["benchmark", "split", "profile"]].drop_duplicates()
    parts = [tuple(map(str, row)) for row in own.itertuples(index=False)]
    return [(" · ".join(filter(None, part)), "/".join(part)) for part in parts]


def facts(board: pd.DataFrame, system: str) -> Facts:
    """What the board knows of a system."""
    own = board[board["system"] == system]
    return Facts(
        title=str(own["system_title"].iloc[0]),
        system=system,
        kind=str(own["system_kind"].iloc[0]),
        provenances=tuple(dict.fromkeys(own["provenance"])),
        sources=tuple(dict.fromkeys(filter(None, own["source"]))),
        updated=str(own["created"].max()),
    )


def results(board: pd.DataFrame, system: str, where: str, view: View) -> list[tuple[str, ...]]:
    """A system's results by dimension against the median of the other systems (controls left out).

    Args:
        board: the table of `BoardRow`.
        system: its id.
        where: `benchmark/split/profile`.
        view: the reader's choices, of which the protocols count here.

    Returns:
        Rows for `RESULT_HEADERS`; the medians are over numbers of the same protocol.
    """
    name, _, profile = where.rpartition("/")
    listed: list[tuple[Column, tuple[str, ...]]] = []
    here = board[(board["benchmark"] + "/" + board["split"] == name) & (board["profile"] == profile)]
    protocols, _ = choose_protocols(here[here["system"] == system], view.protocols)
    settled = settle(View(board=name, profile=profile, protocols=tuple(protocols.values())), board)
    for ids, rows in settled.rows.groupby(["metric", "key", "dimension"], sort=False):
        metric, key, dimension = map(str, ids)
        of_key = column(metric, key, dimension)
        own = rows[rows["system"] == system]
        if own.empty:
            continue
        row = own.to_dict("records")[0]
        others = rows[(rows["system"] != system) & (rows["system_kind"] != "control")]["value"].dropna()
        median = float(others.median()) if len(others) else None
        places = decimals([present(row["value"]), median])
        scored = present(row["scored"])
        total = (scored or 0) + (present(row["unscored_system"]) or 0) + (present(row["unscored_ours"]) or 0)
        cells = (
            of_key.header,
            cell_text(row, places),
            value_text(median, None, None, places),
            _against(row, median, of_key),
            f"{scored:.0f}/{total:.0f}" if scored is not None else MISSING,
            dimension_title(dimension),
            reasons_text([row]),
        )
        listed.append((of_key, cells))
    by_column = dict(listed)
    return [by_column[of_key] for of_key in ordered(by_column)]


def items_of(items: pd.DataFrame, system: str, where: str) -> list[tuple[str, str]]:
    """A system's items as (label, id): topic, category, and how many metrics could not score it."""
    own = _own(items, system, where)
    labels = []
    for item, rows in own.groupby("item", sort=True):
        first = rows.iloc[0]
        unscored = sum('"unscored"' in str(result) for result in rows["result"])
        parts = [str(first["topic"]) or str(item), str(first["category"]), f"{unscored} unscored" if unscored else ""]
        labels.append((" · ".join(filter(None, parts)), str(item)))
    return labels


def item_results(items: pd.DataFrame, system: str, where: str, item: str) -> tuple[dict[str, Result], str]:
    """Every metric's result on one item, and the path of the item's output ("" where there is none).

    Where a metric has results of several protocols, its name carries the protocol.
    """
    rows = _own(items, system, where)
    rows = rows[rows["item"] == item]
    several = rows["metric"].duplicated(keep=False)
    found: dict[str, Result] = {}
    for (_, row), ambiguous in zip(rows.iterrows(), several, strict=True):
        found[f"{row['metric']} ({row['protocol']})" if ambiguous else str(row["metric"])] = _result(row["result"])
    outputs = [output for output in rows["output"] if output]
    return found, outputs[0] if outputs else ""


def score_rows(found: Mapping[str, Result]) -> list[tuple[str, ...]]:
    """Rows for `SCORE_HEADERS`: every value, for what is unscored the reason and whose cause, last what was heard."""
    rows: list[tuple[str, ...]] = []
    heard: list[tuple[str, ...]] = []
    for metric, result in found.items():
        if isinstance(result, Unscored):
            cause = "by the system" if result.cause == "system" else "by us"
            rows.append((metric, "", f"unscored {cause}", result.reason))
            continue
        notes = "; ".join(f"{name}: {_plain(value)}" for name, value in result.notes.items() if name != "transcript")
        if "transcript" in result.notes:
            heard.append((metric, "transcript", "as heard", str(result.notes["transcript"])))
        for place, (key, value) in enumerate(result.values.items()):
            number = present(value)
            text = value_text(number, None, None, decimals([number])) if number is not None else "no meaning here"
            rows.append((metric, key, text, notes if place == 0 else ""))
    return rows + heard


def timelines(found: Mapping[str, Result]) -> dict[str, Timeline]:
    """The windowed metrics of an item, by metric."""
    return {
        metric: result.timeline for metric, result in found.items() if isinstance(result, Score) and result.timeline
    }


def _own(items: pd.DataFrame, system: str, where: str) -> pd.DataFrame:
    places = items["benchmark"] + "/" + items["split"] + "/" + items["profile"]
    return items[(items["system"] == system) & (places == where)]


def _result(text: str) -> Result:
    try:
        return result_from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Unscored("its stored result cannot be read; measure the run again", "ours")


def _against(row: Row, median: float | None, of_key: Column) -> str:
    """Whether the median of the others lies outside a number's interval, and on which side."""
    value, low, high = present(row["value"]), present(row["low"]), present(row["high"])
    if value is None or median is None:
        return MISSING
    if low is not None and high is not None and low <= median <= high:
        return "no clear difference"
    if of_key.better == "informative" or (of_key.better == "in range" and of_key.ideal is None):
        side = "higher" if value > median else "lower"
    else:
        side = "better" if of_key.badness(value) < of_key.badness(median) else "worse"
    if value == median or of_key.badness(value) == of_key.badness(median):
        side = "equal"
    return side if low is not None else f"{side}, without an interval"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def query(system: str, where: str, item: str) -> str:
    """The query string of an address that opens a system's page at an item."""
    fields = {"tab": "system", "system": system, "where": where, "item": item}
    return urlencode({name: value for name, value in fields.items() if value})
