"""`podeval admin`: what an operator does in a shell; every other decision is made on the page `/admin`."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, require_database
from podeval.cli.output import AsJson, emit, say

if TYPE_CHECKING:
    from podeval.store.database import Database

admin = typer.Typer(
    help="Operator commands: takedowns, the log of decisions, a new secret. Everything else is decided on the page "
    "/admin of the site.\n\nExample: podeval admin trail",
    no_args_is_help=True,
)


def _user() -> str:
    """Who runs this, by the system's word."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


Reason = Annotated[str, typer.Option(help="reason; shown with the submission")]
By = Annotated[
    str, typer.Option(help="name of who decides; in the log, shown to operators only", default_factory=_user)
]
Id = Annotated[str, typer.Argument(metavar="ID", help="id of the submission; `podeval submissions list` shows it")]


@admin.command()
def trail(
    newest: Annotated[int, typer.Option(min=1, help="number of entries")] = 100,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Show the log of decisions, newest first: when, who, what, about what and why.

    Example: podeval admin trail --newest 20
    """
    from podeval.store.operator_settings import read_trail

    with _open(database, runs) as opened, opened.reading() as session:
        for row in read_trail(session, newest=newest):
            at = row.made_at.isoformat(timespec="seconds")
            if as_json:
                names = ("action", "subject", "reason", "made_by")
                emit({"at": at} | {name: getattr(row, name) for name in names})
            else:
                print(f"{at}  {row.made_by}  {row.action}  {row.subject}: {row.reason}")


@admin.command()
def takedown(id: Id, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Take a submission off the leaderboard and delete its outputs permanently; the same outputs are refused from
    then on.

    Copies that podeval made elsewhere are deleted too; a list says what is left for you to do, also when you repeat
    the command.

    Example: podeval admin takedown s0123456789ab --reason "it speaks with a stolen voice"
    """
    from podeval.board.build import build
    from podeval.submissions.moderation import SubmissionModeration
    from podeval.submissions.queue import Queue

    with _open(database, runs) as opened:
        done = SubmissionModeration(Queue(opened), runs, build).take_down(id, reason, by, say)
    print(f"{id}: {done.state}, its outputs are deleted")


@admin.command("new-secret")
def new_secret(reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Replace the secret for pseudonyms: everybody becomes a new voter and may vote again. Stop the site first.

    Example: podeval admin new-secret --reason "The disk with the secret is gone."
    """
    from podeval.store.secret import renew

    with _open(database, runs) as opened:
        people = renew(opened, reason, by)
    print(f"the secret is replaced; {people} people who were known count as new voters from now on")


def _open(database: str, runs: Path) -> "Database":
    from podeval.store.database import Database

    return Database(require_database(database, runs))
