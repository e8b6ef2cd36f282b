"""The board as text, for a terminal."""

import json
from pathlib import Path

import pandas as pd

from podeval.leaderboard.build import NOT_RANKED
from podeval.leaderboard.columns import dimension_title
from podeval.leaderboard.table import build
from podeval.leaderboard.view import OVERVIEW, View, settle
from podeval.store.results import BOARD, read_table


def print_board(runs: Path, profile: str = "embedded") -> None:
    """Print every benchmark, split and dimension of a profile: value, interval, rank range, scored of all."""
    from rich.console import Console
    from rich.table import Table

    board = read_table(runs / BOARD)
    board = board[board.profile == profile]
    console = Console(width=None if Console().is_terminal else 200)
    if board.empty:
        console.print(f"no results under profile {profile} in {runs}", highlight=False)
    for name in dict.fromkeys(board.benchmark + "/" + board.split):
        overview = settle(View(board=name), board)
        for _, dimension in overview.choices.dimensions:
            if dimension == OVERVIEW:
                continue
            shown = build(settle(View(board=name, dimension=dimension), board))
            title = f"{name} · {dimension_title(dimension)} · profile {profile}"
            table = Table(title=title, title_justify="left", pad_edge=False)
            for number, header in enumerate(shown.headers):
                table.add_column(header, justify="left" if number in (0, len(shown.headers) - 1) else "right")
            for row in shown.display:
                table.add_row(*row)
            console.print(table)
            for reason in _not_ranked(board, name, dimension):
                console.print(reason, highlight=False, markup=False)


def _not_ranked(board: pd.DataFrame, name: str, dimension: str) -> list[str]:
    """Why systems that were scored have no rank, a line each."""
    rows = board[(board.benchmark + "/" + board.split == name) & (board.dimension == dimension) & (board.slice == "")]
    lines = {
        f"{row.system_title}: {reason}": None
        for row in rows[rows.system_kind != "control"].itertuples()
        for reason in json.loads(str(row.reasons))
        if reason.startswith(NOT_RANKED)
    }
    return list(lines)


def print_rows(runs: Path, profile: str) -> None:
    """Print the rows of the board under a profile, one JSON object a line."""
    board = read_table(runs / BOARD)
    print(board[board.profile == profile].to_json(orient="records", lines=True, force_ascii=False), end="")
