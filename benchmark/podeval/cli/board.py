"""`podeval serve`, and the tables of a board in the terminal."""

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs
from podeval.cli.output import say
from podeval.errors import BadInput
from podeval.files import DiskFull, locate_hub_source
from podeval.text.terminal_safe import make_console, make_printable

if TYPE_CHECKING:
    from rich.table import Table

    from podeval.board.columns import Row

_LONGEST_NAME = 24
"""Maximum number of characters of a system's name on one line."""
_BETWEEN = 3
"""Number of characters that a column needs in addition to its text."""

_CORRECTED = {
    "": "Ranks are corrected separately in each column: if all systems were equally good, a false rank would be "
    "expected in at most {expected} of the {columns} ranked columns (5 % of them).",
    "view": "Ranks are corrected over all {columns} ranked columns together: if all systems were equally good, at "
    "most one such table in twenty would show any false rank.",
}
"""Sentences about a table's ranks, shown below the table, by the `correction` of its view."""
Port = Annotated[int, typer.Option(min=0, max=65535, help="port to listen on")]


def serve(
    runs: Runs = RUNS,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Port = 7860,
    database: Place = DEFAULT,
) -> None:
    """Serve the site over a folder of runs: leaderboard, arena, listening tests, methodology and API.

    On 127.0.0.1, you are the only person who votes and submits. At any other address, people sign in with the Hub
    (OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET); without these, the site is read-only. Votes are stored in podeval.db in
    the folder of runs, unless --database names another database.

    Example: podeval serve --runs .demo/runs
    """
    open_board(runs, host, port, database)


def print_board(
    runs: Path, profile: str = "embedded", correction: str = "column", protocols: tuple[str, ...] = ()
) -> None:
    """Print every benchmark, split and dimension of a profile: value, interval, rank range and scored items.

    If a metric has several protocols, the one in `protocols` is shown; protocols are given by id or by preset name.

    A table that is wider than the terminal continues in a second table with the same systems. The reasons for missing
    ranks and scores appear once for each system, after the tables of its board.
    """
    from podeval.board.columns import describe_reasons, write_dimension_title
    from podeval.board.runs_folder import Index
    from podeval.board.view import BoardView, build_lines, order, resolve_view
    from podeval.runs.board_tables import BOARD, read_table

    board = read_table(runs / BOARD)
    board = board[board.profile == profile]
    # Without a terminal, the width is unknown unless COLUMNS sets it.
    out = make_console(sys.stdout, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)
    if board.empty:
        out.print(make_printable(f"there are no results under the profile {profile} in {runs}"))
    index = Index.of(board, runs=runs)
    for name in dict.fromkeys(board.benchmark + "/" + board.split):
        overview = resolve_view(BoardView(board=name, protocols=protocols), index)
        rows: dict[str, list[Row]] = {}
        for dimension in overview.choices.dimensions:
            wish = BoardView(board=name, dimension=dimension, correction=correction, protocols=protocols)
            view = resolve_view(wish, index)
            lines = build_lines(view, order(view))
            headers = ["System", *(column.header for column in view.columns), "Scored", "Provenance"]
            cells = [[line.name, *map(str, line.cells), line.counted, line.provenance] for line in lines]
            title = f"{name} · {write_dimension_title(dimension)} · profile {profile}"
            if len(origins := {line.provenance for line in lines}) == 1:
                headers, cells = headers[:-1], [line[:-1] for line in cells]
                title += f" · {origins.pop()}"
            out.print(make_printable(title), style="italic", soft_wrap=True)
            for table in _build_tables(headers, cells, out.width):
                out.print(table)
                out.print()
            sentence = _CORRECTED[view.view.correction] if view.ranked_columns else "No column is ranked."
            out.print(sentence.format(columns=view.ranked_columns, expected=f"{view.expected_false:.2g}"))
            out.print()
            for line in lines:
                rows.setdefault(line.name, []).extend(line.rows)
        for system, of_system in rows.items():
            if reasons := describe_reasons(of_system):
                out.print(make_printable(f"{system}: {reasons}"), soft_wrap=True)


def _build_tables(headers: list[str], lines: list[list[str]], width: int) -> "Iterator[Table]":
    """Build the tables for all columns, as many per table as fit into the width; each table repeats the first
    column.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    columns = [[make_printable(cell) for cell in column] for column in zip(headers, *lines, strict=True)]
    # A header wraps between words, but a value never wraps.
    widths = [max(*map(cell_len, cells), *map(cell_len, header.split())) for header, *cells in columns]
    widths[0] = min(widths[0], _LONGEST_NAME)
    pages: list[list[int]] = []
    left = 0
    for number, needed in list(enumerate(widths))[1:]:
        if needed + _BETWEEN > left:
            pages.append([0])
            left = width - widths[0]
        pages[-1].append(number)
        left -= needed + _BETWEEN
    for page in pages:
        # Use `Text` throughout, because a system may be called `[/x]` or `[link=…]`, which rich treats as markup.
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for number in page:
            justify: Literal["left", "right"] = "right" if number else "left"
            table.add_column(Text(columns[number][0]), justify=justify, width=widths[number], overflow="fold")
        for row in list(zip(*columns, strict=True))[1:]:
            table.add_row(*(Text(row[number]) for number in page))
        yield table


def open_board(runs: Path, host: str, port: int, database: str = "") -> None:
    """Build the board's tables and serve them until stopped.

    Raises:
        BadInput: gradio is not installed, or the address cannot be bound.
    """
    import runpy

    from podeval.board.build import build
    from podeval.runs.run_folder import run_folders

    require_board(host, port)
    # A new board is empty, and so is a board with a misspelt folder.
    if not run_folders(runs):
        what = f"There are no runs in {runs}" if runs.is_dir() else f"{runs} is a new folder"
        say(f"{what}, so the board shows only the papers' figures; choose another folder with --runs")
    say(f"Reading the runs in {runs}")
    try:
        build(runs)
    except DiskFull as error:
        say(f"{error}; the site shows the last version of the board that was built")
    say("Starting the site and building its first pages; its address is printed next")
    space = locate_hub_source("space")
    sys.path.insert(0, str(space))
    app = runpy.run_path(str(space / "app.py"), run_name="podeval_space")
    app["serve"](runs, host, port, database or None)


def require_board(host: str, port: int) -> None:
    """Raise an error if the board cannot be served, so that this is known before long work starts.

    Raises:
        BadInput: gradio is not installed, or the address cannot be bound.
    """
    if importlib.util.find_spec("gradio") is None:
        raise BadInput("the board needs gradio; run `pip install 'podeval[space]'`")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        raise BadInput(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another port with --port (or another "
            f"address with --host)"
        ) from None
