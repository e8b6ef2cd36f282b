"""The board's table: numbers with what they may be trusted for.

Cells hold the raw number, so that sorting is by number; beside them stands what a reader sees: value, 95 %
interval, rank as a range, and `incomplete` where too little was scored for a rank.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from podeval.leaderboard.columns import Column
from podeval.leaderboard.view import PROVENANCES, Settled
from podeval.store.results import NOT_RANKED

SYSTEM, PROVENANCE, SCORED, REASONS = "System", "Provenance", "Scored", "Not scored, and why"
MISSING = "–"
KIND_MARKS = {"control": " (control)", "human": " (human)"}
COMPLETE = 0.95
"""Share of items that must be scored for a rank."""

Row = Mapping[Any, Any]


@dataclass(frozen=True)
class Table:
    """A table as shown: raw cells for sorting and searching, the same cells as read, and each row's system."""

    headers: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...]
    display: tuple[tuple[str, ...], ...]
    systems: tuple[str, ...]

    def system_of(self, label: str) -> str | None:
        """The system whose name cell reads so."""
        return next((s for s, row in zip(self.systems, self.cells, strict=True) if row[0] == label), None)


def present(value: Any) -> float | None:
    """A number, or None for what Parquet and pandas make of None."""
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else float(value)


def decimals(values: Iterable[float | None]) -> int:
    """Decimals that suit a column: three up to 2, two up to 100, one beyond."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return 3 if largest < 2 else 2 if largest < 100 else 1


def value_text(value: float | None, low: float | None, high: float | None, places: int) -> str:
    """`3.52 ±0.08` where the interval prints symmetric, else `3.52 [3.40, 3.71]`; without one, the value."""
    if value is None:
        return MISSING
    text = _fixed(value, places)
    if low is None or high is None:
        return text
    below, above = _fixed(value - low, places), _fixed(high - value, places)
    return f"{text} ±{above}" if below == above else f"{text} [{_fixed(low, places)}, {_fixed(high, places)}]"


def rank_text(best: float | None, worst: float | None) -> str:
    """`1`, or `1–2` where the data does not tell the places apart; empty without a rank."""
    if best is None or worst is None:
        return ""
    return f"{best:.0f}" if best == worst else f"{best:.0f}–{worst:.0f}"


def standing(row: Row) -> str:
    """What a number may be trusted for: its rank, `incomplete`, or nothing to say (a paper's row, a control)."""
    if row["rankable"]:
        rank = rank_text(present(row["rank_best"]), present(row["rank_worst"]))
        return f"#{rank}" if rank else ""
    if row["provenance"] == "reported":
        return ""
    scored, unscored = _count(row, "scored"), unscored_of(row)
    if _count(row, "unscored_ours") or scored < COMPLETE * (scored + unscored):
        return "incomplete" if scored else "unscored"
    return "" if row["system_kind"] == "control" else "not ranked"


def cell_text(row: Row | None, places: int) -> str:
    """One number as the board writes it: `3.52 ±0.08  #1–2`."""
    if row is None:
        return MISSING
    value, stands = present(row["value"]), standing(row)
    if value is None:
        return f"unscored ({unscored_of(row)})" if unscored_of(row) else MISSING
    return "  ".join(filter(None, (value_text(value, present(row["low"]), present(row["high"]), places), stands)))


def unscored_of(row: Row) -> int:
    """Items without a score, whoever's cause it is."""
    return _count(row, "unscored_system") + _count(row, "unscored_ours")


def reasons_text(rows: Iterable[Row]) -> str:
    """Why a system has no rank, and why items were not scored: `6 × the recording is silent (by the system: wer)`.

    Rows of one metric repeat the same counts for each key; each metric counts once.
    """
    listed = list(rows)
    unranked = dict.fromkeys(reason for row in listed for reason in _reasons(row) if reason.startswith(NOT_RANKED))
    metrics: dict[tuple[str, str], list[str]] = {}
    for metric, row in {str(row["metric"]): row for row in listed if unscored_of(row)}.items():
        system, ours = _count(row, "unscored_system"), _count(row, "unscored_ours")
        cause = "by us" if not system else "by the system" if not ours else f"{system} by the system, {ours} by us"
        whys = [f"{n} × {reason}" for reason, n in _reasons(row).items() if not reason.startswith(NOT_RANKED)]
        for why in whys or [f"{system + ours} × no reason recorded"]:
            metrics.setdefault((why, cause), []).append(metric)
    unscored = [f"{why} ({cause}: {', '.join(dict.fromkeys(of))})" for (why, cause), of in metrics.items()]
    return "; ".join([*unranked, *unscored])


def names(rows: pd.DataFrame) -> dict[str, str]:
    """What each system is called on the board: its title, with its id where two share one, and its kind's mark."""
    titles = {str(r["system"]): r for r in rows.to_dict("records")}
    shared = Counter(r["system_title"] for r in titles.values())
    return {
        system: (f"{r['system_title']} [{system}]" if shared[r["system_title"]] > 1 else str(r["system_title"]))
        + KIND_MARKS.get(r["system_kind"], "")
        for system, r in titles.items()
    }


def build(settled: Settled) -> Table:
    """The table of a view: one row a system and provenance, best first by the view's sort column."""
    columns = settled.columns
    grouped = _by_system(settled.rows, columns)
    called = names(settled.rows)
    places = {
        c.id: decimals(present(row["value"]) for cells in grouped.values() if (row := cells.get(c.id))) for c in columns
    }
    by = next((c for c in columns if c.id == settled.view.sort), columns[0] if columns else None)
    order = sorted(grouped, key=lambda entry: (*_place(grouped[entry], by), called[entry[0]].casefold()))
    cells, display = [], []
    for system, provenance in order:
        own = grouped[system, provenance]
        scored, total = _scored(own.values())
        counted = f"{scored}/{total}" if total else MISSING
        why = reasons_text(own.values())
        numbers = [present(row["value"]) if (row := own.get(c.id)) else None for c in columns]
        texts = [cell_text(own.get(c.id), places[c.id]) for c in columns]
        share = round(scored / total, 4) if total else None
        cells.append((called[system], *numbers, share, provenance, why))
        display.append((called[system], *texts, counted, provenance, why))
    headers = (SYSTEM, *(c.header for c in columns), SCORED, PROVENANCE, REASONS)
    return Table(_distinct(headers), tuple(cells), tuple(display), tuple(system for system, _ in order))


def tidy(settled: Settled) -> pd.DataFrame:
    """The numbers of the shown table, one a row, with interval, ranks, counts and protocol: what downloads hold."""
    shown = {c.id for c in settled.columns}
    rows = settled.rows
    return rows[(rows["metric"] + "." + rows["key"]).isin(shown)].reset_index(drop=True)


def csv_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy whose text cells no spreadsheet takes for a formula: a leading = + - @ or control gets an apostrophe."""
    safe = frame.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = safe[name].map(
                lambda cell: f"'{cell}" if isinstance(cell, str) and cell.startswith(tuple("=+-@\t\r\n")) else cell
            )
    return safe


def _by_system(rows: pd.DataFrame, columns: Sequence[Column]) -> dict[tuple[str, str], dict[str, Row]]:
    shown = {c.id for c in columns}
    grouped: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows.to_dict("records"):
        identity = f"{row['metric']}.{row['key']}"
        if identity in shown:
            grouped.setdefault((str(row["system"]), str(row["provenance"])), {})[identity] = row
    return grouped


def _place(own: Mapping[str, Row], by: Column | None) -> tuple[int, bool, bool, float]:
    """Run by us first, controls last, incomplete after complete, then the better the earlier."""
    some = next(iter(own.values()))
    row = own.get(by.id) if by else None
    value = present(row["value"]) if row else None
    behind = row is None or standing(row) in ("incomplete", "unscored")
    badness = by.badness(value) if by and value is not None else math.inf
    return (PROVENANCES.index(some["provenance"]), some["system_kind"] == "control", behind, badness)


def _scored(rows: Iterable[Row]) -> tuple[int, int]:
    """Scored and all measurements, each metric counted once."""
    by_metric = {row["metric"]: row for row in rows if present(row["scored"]) is not None}
    scored = sum(_count(row, "scored") for row in by_metric.values())
    return scored, scored + sum(unscored_of(row) for row in by_metric.values())


def _reasons(row: Row) -> dict[str, int]:
    try:
        reasons = json.loads(row["reasons"] or "{}")
    except ValueError:
        return {}
    return reasons if isinstance(reasons, dict) else {}


def _count(row: Row, name: str) -> int:
    return int(present(row[name]) or 0)


def _fixed(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{places}f}"


def _distinct(headers: Sequence[str]) -> tuple[str, ...]:
    seen: Counter[str] = Counter()
    result = []
    for header in headers:
        seen[header] += 1
        result.append(header if seen[header] == 1 else f"{header} ({seen[header]})")
    return tuple(result)
