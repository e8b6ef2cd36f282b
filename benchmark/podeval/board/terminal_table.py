"""Print the board as text, for a terminal."""

import sys
from pathlib import Path

from podeval.board.columns import write_dimension_title
from podeval.board.query import Index
from podeval.board.table import build
from podeval.board.view import EVERYTHING, OVERVIEW, BoardView, resolve_view
from podeval.runs.board_tables import BOARD, read_table
from podeval.text.terminal_safe import make_console, make_printable


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
            text = build(resolve_view(BoardView(board=name, dimension=dimension), index))
            title = f"{name} · {write_dimension_title(dimension)} · profile {profile}"
            # As `Text` throughout: a system may be called `[/x]` or `[link=…]`, which is markup to rich.
            table = Table(title=Text(make_printable(title)), title_justify="left", pad_edge=False)
            for number, header in enumerate(text.headers[:-1]):
                table.add_column(Text(make_printable(header)), justify="right" if number else "left")
            for row in text.display:
                table.add_row(*(Text(make_printable(cell)) for cell in row[:-1]))
            out.print(table)
            for row in text.display:
                if row[-1]:
                    out.print(make_printable(f"{row[0]}: {row[-1]}"), soft_wrap=True)


def print_rows(runs: Path, profile: str) -> None:
    """Print the rows of the board under a profile, one JSON object on each line."""
    board = read_table(runs / BOARD)
    print(board[board.profile == profile].to_json(orient="records", lines=True, force_ascii=False), end="")
