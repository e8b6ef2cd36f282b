"""Write the board's table, also for a terminal: numbers with their intervals and ranks, or why they have none.

Cells hold the raw number, so that sorting is by number; beside it stands the text for readers: value, 95 % interval,
rank as a range, and `incomplete` where too little was scored for a rank.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from podeval.board.columns import read_object, write_dimension_title
from podeval.board.runs_folder import PROVENANCES, Index, Key, Sheet, name_systems
from podeval.board.system_info import Facts
from podeval.board.view import EVERYTHING, OVERVIEW, BoardView, ResolvedView, resolve_view
from podeval.metrics.aggregate import COMPLETE
from podeval.runs.board_tables import BOARD, EVIDENT, NOT_RANKED, read_table
from podeval.text.terminal_safe import make_console, make_printable
from podeval.texts import CAUSES, translate_reason

MISSING = "–"
ALIKE = "{0} of {0}"
"""What stands in the place of an interval where every item has the same value."""

Row = Mapping[Any, Any]


@dataclass(frozen=True)
class Cell:
    """One number as a reader sees it, in parts.

    Attributes:
        number: the value, or `–`, or `unscored (6)`.
        interval: `±0.08`, `[3.40, 3.71]`, `6 of 6` where all items have this value, or empty.
        standing: `#1–2`, `incomplete`, `unscored`, `not ranked`, or empty.
        value: the raw number; None where there is none.
    """

    number: str
    interval: str = ""
    standing: str = ""
    value: float | None = None

    def __str__(self) -> str:
        figure = " ".join(filter(None, (self.number, self.interval)))
        return "  ".join(filter(None, (figure, self.standing)))


@dataclass(frozen=True)
class TableRow:
    """One row of the table: a system's numbers of one provenance."""

    system: str
    name: str
    kind: str
    provenance: str
    cells: tuple[Cell, ...]
    scored: int
    total: int
    rows: tuple[Row, ...]

    @property
    def reasons(self) -> str:
        """The reasons why it has no rank, and why items are unscored."""
        return describe_reasons(self.rows)

    @property
    def counted(self) -> str:
        """Number of scored and of all measurements, `306/306`; `–` where a paper does not say."""
        return f"{self.scored}/{self.total}" if self.total else MISSING


def count_clusters_behind(lines_shown: Iterable[TableRow]) -> tuple[int, int] | None:
    """Return the fewest and the most clusters that ranks of some lines rest on; None where nothing is ranked."""
    counts = [
        int(count)
        for line in lines_shown
        for row in line.rows
        if to_number(row["rank_best"]) is not None and (count := to_number(row.get("clusters"))) is not None
    ]
    return (min(counts), max(counts)) if counts else None


def to_number(value: Any) -> float | None:
    """Return a number, or None for the missing values of Parquet and pandas."""
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else float(value)


def choose_decimals(values: Iterable[float | None]) -> int:
    """Return the number of decimals that suits a column: three up to 2, two up to 100, one beyond."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return 3 if largest < 2 else 2 if largest < 100 else 1


def format_value(value: float | None, low: float | None, high: float | None, places: int) -> str:
    """Format `3.52 ±0.08` where the interval prints symmetric, else `3.52 [3.40, 3.71]`; without one, the value."""
    if value is None:
        return MISSING
    return " ".join(filter(None, (_fixed(value, places), _interval(value, low, high, places))))


def format_standing(row: Row) -> str:
    """Return the standing of a number: its rank, `incomplete`, or nothing (a paper's row, a control)."""
    if row["rankable"]:
        best, worst = to_number(row["rank_best"]), to_number(row["rank_worst"])
        if best is None or worst is None:
            return ""
        # A range where the data does not tell the places apart.
        return f"#{best:.0f}" if best == worst else f"#{best:.0f}–{worst:.0f}"
    if row["provenance"] == "reported":
        return ""
    scored, unscored = _count(row, "scored"), count_unscored(row)
    if _count(row, "unscored_ours") or scored < COMPLETE * (scored + unscored):
        return "incomplete" if scored else "unscored"
    return "" if row["system_kind"] == "control" else "not ranked"


def build_cell(row: Row, places: int) -> Cell:
    """Return one number as the board writes it; a paper's figure as the paper prints it."""
    value = to_number(row["value"])
    if row["provenance"] == "reported" and (text := _printed_text(row)):
        return Cell(text, value=value)
    if value is None:
        return Cell(f"unscored ({count_unscored(row)})" if count_unscored(row) else MISSING)
    low, high = to_number(row["low"]), to_number(row["high"])
    # A mean is one end of its interval only where all items have one value: no chance of a draw can be seen there.
    alike = low is not None and value in (low, high)
    count = to_number(row.get("values")) or _count(row, "scored")
    interval = ALIKE.format(f"{count:.0f}") if alike and count else _interval(value, low, high, places)
    return Cell(_fixed(value, places), interval, format_standing(row), value)


def count_unscored(row: Row) -> int:
    """Return the number of items without a score, whatever the cause."""
    return _count(row, "unscored_system") + _count(row, "unscored_ours")


def describe_reasons(rows: Iterable[Row], words: Mapping[str, Any] = CAUSES) -> str:
    """Describe why a system has no rank and why items are unscored: `6 × the recording is silent (by the system: wer)`.

    Rows of one metric repeat the same counts for each key, and have those of their own key besides; each counts once.
    """
    every_row = list(rows)
    unranked = dict.fromkeys(
        reason
        for row in every_row
        for reason in read_object(row["reasons"])
        if reason.startswith(NOT_RANKED) and reason not in EVIDENT.values()
    )
    metrics: dict[tuple[str, str], list[str]] = {}
    for row in filter(count_unscored, every_row):
        system, ours = _count(row, "unscored_system"), _count(row, "unscored_ours")
        alone = words["by us" if not system else "by the system"]
        cause = words["both"].format(system, ours) if system and ours else alone
        whys = [
            f"{n} × {translate_reason(reason, words)}"
            for reason, n in read_object(row["reasons"]).items()
            if not reason.startswith(NOT_RANKED)
        ]
        for why in whys or [f"{system + ours} × {words['unknown']}"]:
            if not any(row["metric"] in of for (same, _), of in metrics.items() if same == why):
                metrics.setdefault((why, cause), []).append(str(row["metric"]))
    unscored = [words["one"].format(why, cause, ", ".join(dict.fromkeys(of))) for (why, cause), of in metrics.items()]
    return str(words["between"]).join([*(translate_reason(reason, words) for reason in unranked), *unscored])


def choose_names(rows: pd.DataFrame) -> dict[str, str]:
    """Return the display names of systems: the title, with the id where two share one, and the mark of the kind."""
    latest = rows.drop_duplicates("system", keep="last")[["system", "system_title", "system_kind"]]
    return name_systems(latest.to_dict("records"))  # type: ignore[arg-type]


def order(settled: ResolvedView) -> list[Key]:
    """Return the rows of a view in order: pinned ones on top, then best first by the view's sort column."""
    wish = settled.view.sort
    by = next((c for c in settled.columns if c.id == wish.lstrip("-")), None)
    called_, systems = settled.board.names, settled.board.systems
    cells: Mapping[Key, Row] = settled.sheet.rows(by.id) if by else {}
    sign = -1.0 if wish.startswith("-") else 1.0
    pins = {system: number for number, system in enumerate(settled.view.pins)}

    def rank_key(key: Key) -> tuple[Any, ...]:
        """Return the sort key: pinned, then run by us, controls last, incomplete after complete, then best first."""
        row = cells.get(key)
        value = to_number(row["value"]) if row else None
        behind = by is not None and (row is None or format_standing(row) in ("incomplete", "unscored"))
        badness = sign * by.badness(value) if by and value is not None else math.inf
        control = systems[key[0]]["system_kind"] == "control"
        return (pins.get(key[0], len(pins)), PROVENANCES.index(key[1]), control, behind, badness)

    by_name = sorted(settled.keys, key=lambda key: called_[key[0]].casefold(), reverse=wish == "-system")
    return sorted(by_name, key=rank_key)


def build_lines(settled: ResolvedView, keys: Sequence[Key]) -> list[TableRow]:
    """Return some rows of a view, formatted, each once for the columns that the view has."""
    ids = [column.id for column in settled.columns]
    written: dict[Key, TableRow] = settled.sheet.recent.get(("lines", *ids), dict)
    if missing := [key for key in keys if key not in written]:
        columns = [_write_column(settled.sheet, id) for id in ids]
        written |= {key: _line(settled, columns, key) for key in missing}
    return [written[key] for key in keys]


def _write_column(sheet: Sheet, column: str) -> Mapping[Key, tuple[Row, Cell]]:
    """Return the rows of a column with their cells."""

    def write() -> Mapping[Key, tuple[Row, Cell]]:
        rows = sheet.rows(column)
        places = choose_decimals(to_number(row["value"]) for row in rows.values())
        return {key: (row, build_cell(row, places)) for key, row in rows.items()}

    return sheet.kept.get(("cells", column), write)


def _line(settled: ResolvedView, columns: Sequence[Mapping[Key, tuple[Row, Cell]]], key: Key) -> TableRow:
    own_rows = tuple(column[key][0] for column in columns if key in column)
    scored, total = _count_scored(own_rows)
    return TableRow(
        key[0],
        settled.board.names[key[0]],
        str(settled.board.systems[key[0]]["system_kind"]),
        key[1],
        tuple(column[key][1] if key in column else Cell(MISSING) for column in columns),
        scored,
        total,
        own_rows,
    )


def make_tidy(settled: ResolvedView) -> pd.DataFrame:
    """Return the numbers of the shown table for downloads, one in each row.

    Beside each stand interval, ranks, counts, protocol and the stated facts of the system.
    """
    ids = {c.id for c in settled.columns}
    kept = set(settled.keys)
    rows = settled.sheet.frame(kept.__contains__)
    rows = rows[(rows["metric"] + "." + rows["key"]).isin(ids)].reset_index(drop=True)
    facts = [settled.facts.get(system, Facts()) for system in rows["system"]]
    return rows.assign(
        licence=[fact.licence for fact in facts],
        openness=[fact.openness for fact in facts],
        size_parameters=pd.Series([fact.size for fact in facts], dtype="float64"),
        languages=[" ".join(fact.languages) for fact in facts],
    )


def _interval(value: float, low: float | None, high: float | None, places: int) -> str:
    if low is None or high is None:
        return ""
    below, above = _fixed(value - low, places), _fixed(high - value, places)
    return f"±{above}" if below == above else f"[{_fixed(low, places)}, {_fixed(high, places)}]"


def _count_scored(rows: Iterable[Row]) -> tuple[int, int]:
    """Return the numbers of scored and of all measurements, each metric counted once, by its key with most gaps."""
    by_metric = {row["metric"]: row for row in sorted(rows, key=count_unscored) if to_number(row["scored"]) is not None}
    scored = sum(_count(row, "scored") for row in by_metric.values())
    return scored, scored + sum(count_unscored(row) for row in by_metric.values())


def _printed_text(row: Row) -> str:
    """Format a paper's figure with the digits and the standard deviation it is printed with: `0.96 (SD 0.008)`."""
    content = read_object(row.get("protocol_json"))
    text = str(content.get("value", "")).replace("-", "−")
    return f"{text} (SD {content['spread']})" if text and "spread" in content else text


def _count(row: Row, name: str) -> int:
    return int(to_number(row[name]) or 0)


def _fixed(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{places}f}"


def print_board(runs: Path, profile: str = "embedded") -> None:
    """Print every benchmark, split and dimension of a profile: value, interval, rank range, and scored of all."""
    from rich.table import Table
    from rich.text import Text

    board = read_table(runs / BOARD)
    board = board[board.profile == profile]
    out = make_console(sys.stdout, width=None if sys.stdout.isatty() else 200)
    if board.empty:
        out.print(make_printable(f"no results under profile {profile} in {runs}"))
    index = Index.of(board)
    for name in dict.fromkeys(board.benchmark + "/" + board.split):
        overview = resolve_view(BoardView(board=name), index)
        for _, dimension in overview.choices.dimensions:
            if dimension in (OVERVIEW, EVERYTHING):  # columns of the dimensions again, too many for a line
                continue
            view = resolve_view(BoardView(board=name, dimension=dimension), index)
            lines = build_lines(view, order(view))
            title = f"{name} · {write_dimension_title(dimension)} · profile {profile}"
            # As `Text` throughout: a system may be called `[/x]` or `[link=…]`, which is markup to rich.
            table = Table(title=Text(make_printable(title)), title_justify="left", pad_edge=False)
            for number, header in enumerate(("System", *(c.header for c in view.columns), "Scored", "Provenance")):
                table.add_column(Text(make_printable(header)), justify="right" if number else "left")
            for line in lines:
                cells = (line.name, *map(str, line.cells), line.counted, line.provenance)
                table.add_row(*(Text(make_printable(cell)) for cell in cells))
            out.print(table)
            for line in lines:
                if line.reasons:
                    out.print(make_printable(f"{line.name}: {line.reasons}"), soft_wrap=True)


def print_rows(runs: Path, profile: str) -> None:
    """Print the rows of the board under a profile, one JSON object on each line."""
    board = read_table(runs / BOARD)
    print(board[board.profile == profile].to_json(orient="records", lines=True, force_ascii=False), end="")
