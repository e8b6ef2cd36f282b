"""The papers' rows below the measured ones: systems that readers know, with what was printed of them, unranked."""

from __future__ import annotations

from dataclasses import dataclass

from board_rows import write_address
from board_words import Words
from links import write_system_address

from podeval.leaderboard import table
from podeval.leaderboard.query import Index
from podeval.leaderboard.system_info import NOT_STATED, Facts
from podeval.leaderboard.view import BoardView, ResolvedView, resolve_view

MOST_ROWS, MOST_COLUMNS = 30, 8


@dataclass(frozen=True)
class PapersTable:
    """Heads, rows of a name, its address, what is stated, and the printed figures; and where all of them stand."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, str, str, tuple[str, ...]], ...]
    more: str


def build_papers(settled: ResolvedView, index: Index, words: Words) -> PapersTable | None:
    """Return the printed figures of a board's benchmark; None where there are none, or where they are what is shown."""
    view = settled.view
    if view.profile == "paper" or view.slice or "paper" not in index.profiles(view.board):
        return None

    def make() -> PapersTable | None:
        printed = resolve_view(BoardView(board=view.board, profile="paper"), index)
        columns = printed.columns[:MOST_COLUMNS]
        by_name = sorted(printed.keys, key=lambda key: printed.board.names[key[0]].casefold())
        rows = []
        for line in table.build_lines(printed, by_name):
            cells = tuple(str(cell) for cell in line.cells[: len(columns)])
            if any(cell != table.MISSING for cell in cells):
                page = write_system_address(line.system, f"{view.board.partition('/')[0]}")
                rows.append((line.name, page, _stated(printed.facts.get(line.system, Facts()), words), cells))
        heads = tuple(words.column(column) for column in columns)
        more = write_address(BoardView(board=view.board, profile="paper"))
        return PapersTable(heads, tuple(rows[:MOST_ROWS]), more) if rows else None

    return settled.sheet.kept.get(("papers in", words.language), make)


def _stated(facts: Facts, words: Words) -> str:
    openness = words.fact("openness", facts.openness) if facts.openness != NOT_STATED else ""
    return " · ".join(filter(None, (facts.organisation, openness)))
