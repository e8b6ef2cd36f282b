"""`podeval admin`: what the operators' page does, on the command line."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, require_database
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.arena.moderation import ArenaModeration
    from podeval.operations.moderation import BoardModeration
    from podeval.store.database import Database
    from podeval.submissions.moderation import SubmissionModeration

admin = typer.Typer(
    help="Operator decisions: what is frozen, which users and votes count, what is on the board. All are logged.\n\n"
    'Example: podeval admin freeze votes --reason "We move until 14:00 UTC."',
    no_args_is_help=True,
)


def _user() -> str:
    """Who runs this, by the system's word."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


Reason = Annotated[str, typer.Option(help="why; what is frozen or about a vote or submission is shown with it")]
By = Annotated[str, typer.Option(help="who decides; on the trail, shown to operators only", default_factory=_user)]
Id = Annotated[str, typer.Argument(metavar="ID", help="of the submission; `podeval submissions list` shows it")]
What = Annotated[str, typer.Argument(metavar="votes|submissions")]
Vote = Annotated[str | None, typer.Option(help="id of a vote; `podeval arena flags` lists those flagged")]
Voter = Annotated[str | None, typer.Option(help="pseudonym of a voter: all their votes")]
Listener = Annotated[str | None, typer.Option(help="pseudonym of a listener, with --test")]
Test = Annotated[str | None, typer.Option(help="the listening test")]


@admin.command()
def trail(
    newest: Annotated[int, typer.Option(min=1, help="how many")] = 100,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Show every decision, newest first: when, who, what, about what, why.

    Example: podeval admin trail --newest 20
    """
    with _board(database, runs) as board:
        for row in board.trail(newest):
            at = row.made_at.isoformat(timespec="seconds")
            if as_json:
                names = ("action", "subject", "reason", "made_by")
                emit({"at": at} | {name: getattr(row, name) for name in names})
            else:
                print(f"{at}  {row.made_by}  {row.action}  {row.subject}: {row.reason}")


@admin.command()
def freeze(what: What, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Take no votes, or no submissions, from anybody; the reason is the sentence that everybody reads.

    Example: podeval admin freeze submissions --reason "The disk is full; back tomorrow."
    """
    with _board(database, runs) as board:
        board.freeze(what, reason, by)
    print(f"{what} are frozen")


@admin.command()
def thaw(what: What, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Take them again.

    Example: podeval admin thaw submissions --reason "there is space again"
    """
    with _board(database, runs) as board:
        board.thaw(what, reason, by)
    print(f"{what} are taken")


@admin.command()
def exclude(
    reason: Reason,
    by: By,
    vote: Vote = None,
    voter: Voter = None,
    listener: Listener = None,
    test: Test = None,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Leave a vote, all votes of a voter, or a listener of a test out of the results; they are kept.

    Example: podeval admin exclude --voter p4kd… --reason "a machine"
    """
    _count(database, runs, False, reason, by, vote, voter, listener, test)


@admin.command()
def include(
    reason: Reason,
    by: By,
    vote: Vote = None,
    voter: Voter = None,
    listener: Listener = None,
    test: Test = None,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Let them count again; the rules do not overrule it.

    Example: podeval admin include --vote 3f2a… --reason "explained by mail"
    """
    _count(database, runs, True, reason, by, vote, voter, listener, test)


@admin.command()
def requeue(id: Id, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Queue a failed or cancelled submission again; its finished items are kept.

    Example: podeval admin requeue s0123456789ab --reason "the Hub is back"
    """
    with _submissions(database, runs) as submissions:
        print(f"{id}: {submissions.requeue(id, reason, by).state}")


@admin.command()
def cancel(id: Id, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Stop a submission that is not published.

    Example: podeval admin cancel s0123456789ab --reason "its author asked"
    """
    with _submissions(database, runs) as submissions:
        print(f"{id}: {submissions.cancel(id, reason, by).state}")


@admin.command()
def withdraw(id: Id, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Take a published submission off the board; its history stays and its runs are kept aside.

    Example: podeval admin withdraw s0123456789ab --reason "its authors asked"
    """
    with _submissions(database, runs) as submissions:
        print(f"{id}: {submissions.withdraw(id, reason, by).state}")


@admin.command()
def takedown(id: Id, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Take a submission off the board and delete what it said, for good; the same is not taken in again.

    Copies that podeval made elsewhere are cleared too; what is left for you to do is said of each, and said again when
    the command is.

    Example: podeval admin takedown s0123456789ab --reason "it speaks with a stolen voice"
    """
    with _submissions(database, runs) as submissions:
        done = submissions.take_down(id, reason, by, lambda sentence: print(sentence, file=sys.stderr))
    print(f"{id}: {done.state}, what it said is deleted")


@admin.command()
def dimension(
    name: Annotated[str, typer.Argument(metavar="DIMENSION")],
    opened: Annotated[bool, typer.Option("--open/--close", help="whether new battles are made on it")],
    reason: Reason,
    by: By,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Make new battles on a dimension, or none any more; its votes count either way.

    Example: podeval admin dimension semantic --close --reason "enough votes"
    """
    with _arena(database, runs) as arena:
        arena.open_dimension(name, opened, reason, by)
    print(f"{name} is {'open' if opened else 'closed'}")


@admin.command()
def system(
    id: Annotated[str, typer.Argument(metavar="SYSTEM")],
    active: Annotated[bool, typer.Option("--in/--out", help="whether new battles may show it")],
    reason: Reason,
    by: By,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Put a system into the arena's pool, or take it out; its votes count either way.

    Example: podeval admin system my_tts --out --reason "its weights were replaced"
    """
    with _arena(database, runs) as arena:
        arena.pool_system(id, active, reason, by)
    print(f"{id} is {'in' if active else 'out of'} the pool")


@admin.command()
def goal(
    votes: Annotated[int, typer.Argument(metavar="VOTES", min=0, help="0 takes the goal away")],
    reason: Reason,
    by: By,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Say how many counted votes are wanted on each dimension; shown beside how many there are.

    Example: podeval admin goal 300 --reason "as many as the paper has"
    """
    with _arena(database, runs) as arena:
        arena.set_goal(votes or None, reason, by)
    print(f"{votes} votes are wanted on each dimension" if votes else "no number of votes is wanted")


def _count(
    database: str,
    runs: Path,
    counted: bool,
    reason: str,
    by: str,
    vote: str | None,
    voter: str | None,
    listener: str | None,
    test: str | None,
) -> None:
    if sum(name is not None for name in (vote, voter, listener)) != 1 or (listener is None) != (test is None):
        raise BadInput("name one: --vote, --voter, or --listener with --test")
    outcome = "counts" if counted else "does not count any more"
    if listener and test:
        from podeval.listening import Listening
        from podeval.listening.moderation import count_session

        with _open(database, runs) as opened:
            count_session(Listening(opened), test, listener, counted, reason, by)
    else:
        with _arena(database, runs) as arena:
            if vote:
                arena.count_vote(vote, counted, reason, by)
            elif voter:
                changed = arena.count_voter(voter, counted, reason, by)
                outcome += f": {changed} votes changed"
    print(f"{vote or voter or listener} {outcome}")


@admin.command("new-secret")
def new_secret(reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Take another secret for pseudonyms: everybody becomes a new voter, whose votes count again. Stop the site first.

    Example: podeval admin new-secret --reason "The disk with the secret is gone."
    """
    from podeval.store.secret import renew

    with _open(database, runs) as opened:
        people = renew(opened, reason, by)
    print(f"a new secret is taken; {people} people who were known before are new voters from now on")


@contextmanager
def _board(database: str, runs: Path) -> Iterator["BoardModeration"]:
    from podeval.operations.moderation import BoardModeration

    with _open(database, runs) as opened:
        yield BoardModeration(opened)


@contextmanager
def _arena(database: str, runs: Path) -> Iterator["ArenaModeration"]:
    from podeval.arena import Arena
    from podeval.arena.moderation import ArenaModeration

    with _open(database, runs) as opened:
        yield ArenaModeration(Arena(opened))


@contextmanager
def _submissions(database: str, runs: Path) -> Iterator["SubmissionModeration"]:
    from podeval.leaderboard.build import build
    from podeval.submissions.moderation import SubmissionModeration
    from podeval.submissions.queue import Queue

    with _open(database, runs) as opened:
        yield SubmissionModeration(Queue(opened), runs, build)


def _open(database: str, runs: Path) -> "Database":
    from podeval.store.database import Database

    return Database(require_database(database, runs))
