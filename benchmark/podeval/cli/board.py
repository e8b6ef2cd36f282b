"""`podeval serve` and `podeval report`: results for people."""

import importlib.util
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.bucket_runs import ReadRuns, fetch_runs
from podeval.cli.database import DEFAULT, RUNS, Place, Runs
from podeval.cli.output import AsJson, say
from podeval.errors import BadInput

Port = Annotated[int, typer.Option(min=0, max=65535, help="port to listen on")]


def serve(
    runs: Runs = RUNS,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Port = 7860,
    database: Place = DEFAULT,
) -> None:
    """Serve the site over a folder of runs: leaderboard, arena, listening tests, methodology and API.

    On 127.0.0.1 you are the one person who votes and submits. At any other address people sign in with the Hub
    (OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET); without that the site can only be read. Votes lie in podeval.db in the
    folder of runs, unless --database names another.

    Example: podeval serve --runs .demo/runs
    """
    open_board(runs, host, port, database)


report = typer.Typer(
    help="Print results with intervals, rank ranges and unscored items; or check how far metrics and judges agree "
    "with people.\n\nExample: podeval report --runs .demo/runs"
)


@report.callback(invoke_without_command=True)
def print_report(
    context: typer.Context,
    runs: ReadRuns = RUNS,
    profile: Annotated[
        str, typer.Option(help="models of the results: embedded or reference, or `paper` for reported figures")
    ] = "embedded",
    as_json: AsJson = False,
) -> None:
    """Print the results of a folder of runs: values with intervals, rank ranges, what is unscored and why.

    Example: podeval report --runs .demo/runs
    """
    if context.invoked_subcommand:
        return
    from podeval.board.build import build
    from podeval.board.table import print_board, print_rows
    from podeval.models.card import PROFILES
    from podeval.runs.run_folder import run_folders

    runs = fetch_runs(runs)
    if profile not in (*PROFILES, "paper"):
        raise BadInput(f"there is no profile {profile!r}; choose {', '.join(PROFILES)} or paper")
    if not run_folders(runs):
        raise BadInput(
            f"there are no runs in {runs}; create some with `podeval run` or `podeval demo`, "
            "or choose another folder with --runs"
        )
    build(runs)
    if as_json:
        print_rows(runs, profile)
    else:
        print_board(runs, profile)


def open_board(runs: Path, host: str, port: int, database: str = "") -> None:
    """Build the board's tables and serve them until stopped.

    Raises:
        BadInput: gradio is not installed, or nobody can listen at this address.
    """
    import runpy

    from podeval.board.build import build
    from podeval.hub_sources import locate_hub_source
    from podeval.runs.run_folder import run_folders

    require_board(host, port)
    # A new board begins with nothing; so does one whose folder is misspelt.
    if not run_folders(runs):
        what = f"There are no runs in {runs}" if runs.is_dir() else f"{runs} is a new folder"
        say(f"{what}, so the board is empty; choose another folder with --runs")
    build(runs)
    space = locate_hub_source("space")
    sys.path.insert(0, str(space))
    app = runpy.run_path(str(space / "app.py"), run_name="podeval_space")
    app["serve"](runs, host, port, database or None)


def require_board(host: str, port: int) -> None:
    """Say before long work, rather than after it, that the board cannot be served.

    Raises:
        BadInput: gradio is not installed, or nobody can listen at this address.
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
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another with --port (or --host)"
        ) from None
