"""The database that a command uses: --database or DATABASE_URL, otherwise podeval.db in the folder of runs, as on the
site.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.store.database import Database
    from podeval.submissions.queue import Queue

NAME = "podeval.db"
DEFAULT = ""
RUNS = Path("runs")
Place = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="DATABASE_URL",
        help="a SQLite file, or postgresql://user@host/name; podeval.db in the folder of runs by default",
    ),
]


def _refuse_bucket(runs: Path) -> Path:
    """Refuse a bucket as the folder of runs, because votes and submissions would be written next to the runs."""
    if str(runs).startswith("hf:"):
        raise BadInput(f"{runs} is in a bucket, which only `podeval report show` and `podeval report export` can read")
    return runs


Runs = Annotated[
    Path, typer.Option("--runs", help="folder of runs that the leaderboard shows", callback=_refuse_bucket)
]


def resolve_database(database: str, runs: Path) -> str:
    """Return the file or address of the database; `database` is the requested database, or "" for the database in the
    folder of runs.
    """
    return database or str(runs / NAME)


def is_there(location: str) -> bool:
    """Return whether a SQLite file exists; a server is assumed to exist until it is used."""
    file = location.removeprefix("sqlite:///")
    return "://" in file or Path(file).expanduser().is_file()


def require_database(database: str, runs: Path) -> str:
    """Return the location of a database that must already exist.

    Raises:
        BadInput: the database does not exist.
    """
    location = resolve_database(database, runs)
    if not is_there(location):
        raise BadInput(
            f"there is no database {location}; name the board's database with --database, or its folder of runs "
            "with --runs; `podeval arena add`, `submit` and `serve` create one"
        )
    return location


def open_database(location: str) -> "Database":
    """Open a database; create it if it does not exist.

    Raises:
        BadInput: the packages that a database needs are not installed.
    """
    try:
        from podeval.store.database import Database
    except ModuleNotFoundError as missing:
        raise BadInput(f"a database needs the package {missing.name}; pip install 'podeval[space]'") from None
    return Database(location)


@contextmanager
def open_queue(url: str) -> Iterator["Queue"]:
    """Open the queue in a database."""
    from podeval.submissions.queue import Queue

    with open_database(url) as database:
        yield Queue(database)
