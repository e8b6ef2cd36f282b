"""`podeval admin`: operator actions in a shell; all other decisions are made on the page `/admin`."""

import contextlib
import getpass
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, is_there, open_database, require_database, resolve_database
from podeval.cli.output import AsJson, emit, say
from podeval.errors import BadInput, PodevalError

admin = typer.Typer(
    help="Operator commands: takedowns, the log of decisions, a new secret. All other decisions are made on the site's "
    "page /admin.\n\nExample: podeval admin trail",
    no_args_is_help=True,
)


def _user() -> str:
    """Return the name of the user who runs the command, according to the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


Reason = Annotated[str, typer.Option(help="reason for the takedown, shown with the submission")]
By = Annotated[
    str, typer.Option(help="name of the person who decides; the log shows it to operators only", default_factory=_user)
]
Id = Annotated[str, typer.Argument(metavar="ID", help="id of the submission; `podeval submissions list` shows it")]


@admin.command()
def trail(
    newest: Annotated[int, typer.Option(min=1, help="number of entries")] = 100,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Show the log of decisions, newest first: time, author, action, subject and reason.

    Example: podeval admin trail --newest 20
    """
    from podeval.store.operator_settings import read_trail

    with open_database(require_database(database, runs)) as opened, opened.reading() as session:
        for row in read_trail(session, newest=newest):
            at = row.made_at.isoformat(timespec="seconds")
            if as_json:
                names = ("action", "subject", "reason", "made_by")
                emit({"at": at} | {name: getattr(row, name) for name in names})
            else:
                print(f"{at}  {row.made_by}  {row.action}  {row.subject}: {row.reason}")


@admin.command()
def takedown(id: Id, reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Remove a submission from the leaderboard and permanently delete its outputs, which are refused from then on.

    Copies that podeval made elsewhere are also deleted; a list shows the copies that you must delete yourself, and
    repeating the command shows this list again.

    Example: podeval admin takedown s0123456789ab --reason "it speaks with a stolen voice"
    """
    from podeval.board.build import build
    from podeval.submissions.moderation import SubmissionModeration
    from podeval.submissions.queue import Queue

    with open_database(require_database(database, runs)) as opened:
        done = SubmissionModeration(Queue(opened), runs, build).take_down(id, reason, by, say)
    print(f"{id}: {done.state}; its outputs were deleted")


@admin.command("new-secret")
def new_secret(reason: Reason, by: By, database: Place = DEFAULT, runs: Runs = RUNS) -> None:
    """Replace the secret for pseudonyms, so that everyone becomes a new voter and can vote again. Stop the site first.

    Example: podeval admin new-secret --reason "The disk with the secret is gone."
    """
    from podeval.store.secret import renew

    with open_database(require_database(database, runs)) as opened:
        people = renew(opened, reason, by)
    print(f"the secret was replaced; {people} existing voters now count as new voters")


# `podeval backup`, `restore` and `retention`, which protect data and free disk space.


def backup(
    target: Annotated[Path, typer.Argument(metavar="BACKUP", help="file to write: a .tar, .tar.gz or .tgz file")],
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    with_secret: Annotated[
        bool,
        typer.Option("--with-secret", help="include the secret behind the pseudonyms; keep such a backup confidential"),
    ] = False,
) -> None:
    """Back up the database, the runs and the arena's recordings while the site runs.

    To check a backup, restore it into an empty folder.

    Example: podeval backup /backups/podeval-2026-11-22.tar.gz --runs runs
    """
    from podeval.operations.backup import make_backup
    from podeval.store import operator_settings
    from podeval.store.database import Database

    location = resolve_database(database, runs)
    made = make_backup(target, location, runs, with_secret=with_secret)
    # The backup exists even if it cannot be recorded, for example because the disk is full.
    with contextlib.suppress(PodevalError), Database(location, migrate=False) as source:
        source.write(lambda s: operator_settings.note_done(s, operator_settings.BACKED_UP, datetime.now(UTC)))
    size = target.stat().st_size / 1e6
    print(f"wrote {target}: {made.contents}; {len(made.files)} files, {size:.1f} MB, as of {made.made_at}")
    if with_secret:
        say(
            "The backup contains the secret: anyone who has the secret can identify the person behind each "
            "pseudonym. Keep the backup confidential."
        )
    else:
        say(
            "The secret is not in the backup: keep PODEVAL_SECRET, or the file podeval.db.secret, in a separate "
            "place. Without the secret, a restored site does not recognise its users, and open battles end."
        )


def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="file made by `podeval backup`")],
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="replace existing data; replaced files are kept in another folder, but replaced rows of "
            "a server are not",
        ),
    ] = False,
) -> None:
    """Restore a backup after checking it; an older backup is upgraded to this version.

    Stop the site and the workers first. A SQLite backup can be restored to PostgreSQL, for a board that outgrows its
    machine, and a PostgreSQL backup to a SQLite file.

    Example: podeval restore /backups/podeval-2026-11-22.tar.gz --runs runs
    """
    from podeval.board.build import build
    from podeval.operations.backup import SECRET
    from podeval.operations.restore import restore as put_back
    from podeval.store.secret import explain_loss, read_secret
    from podeval.submissions.moderation import list_takedowns, repeat_takedowns

    target = resolve_database(database, runs)
    repeat = partial(repeat_takedowns, backup=source)
    done = put_back(source, target, runs, force=force, read_decisions=list_takedowns, settle=repeat)
    print(f"restored to {done.backup.made_at}: {done.backup.contents}")
    if done.forgotten:
        say(f"{done.forgotten} people asked to be forgotten after that date, and remain forgotten")
    if done.settled:
        build(runs)
        say(f"the content of {', '.join(done.settled)} was left out, because it was taken down")
    if done.kept:
        say(f"the replaced files are kept in {done.kept}")
    with open_database(target) as opened, opened.reading() as session:
        lost = explain_loss(session, opened, read_secret(opened.url))
    if lost:
        say(f"The site cannot start yet: {lost}")
    elif SECRET not in done.backup.files:
        say("The backup contains no secret: set PODEVAL_SECRET, or restore podeval.db.secret, before the site starts.")
    elif not opened.is_sqlite:
        say(f"Set PODEVAL_SECRET_FILE={runs / 'podeval.secret'} for the site and the workers.")
    say("If there is a public log, `podeval arena mirror REPO --read-back` imports the records added after the backup.")


def retention(
    runs: Runs = RUNS,
    database: Place = DEFAULT,
    gigabytes: Annotated[
        float | None,
        typer.Option(
            "--budget", min=0, envvar="PODEVAL_RUNS_GB", help="disk budget for the recordings of all runs, in GB"
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list the files to remove; remove nothing")] = False,
    fetch: Annotated[
        str, typer.Option("--fetch", metavar="RUN", help="fetch the moved recordings of a run, BENCHMARK/SPLIT/SYSTEM")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Delete the oldest recordings of finished runs to fit a disk budget; results and transcripts are kept.

    Recordings of battles and open listening tests are kept. If PODEVAL_RUNS_STORE is set to an address such as
    s3://BUCKET/FOLDER, recordings are moved there instead, in one tar file per run. A worker with --watch does this
    every hour if PODEVAL_RUNS_GB is set.

    Example: podeval retention --budget 200 --dry-run
    """
    from podeval.operations.retention import fetch_recordings, find_needed, keep_to_budget
    from podeval.runs.run_folder import RunFolder

    if fetch:
        if not (runs / fetch / "run.json").is_file():
            raise BadInput(f"there is no run {fetch} in {runs}; write BENCHMARK/SPLIT/SYSTEM")
        print(f"{fetch}: fetched the recordings of {fetch_recordings(RunFolder(runs, *fetch.split('/')))} items")
        return
    if gigabytes is None:
        raise BadInput("give the disk budget for recordings, in gigabytes, with --budget or PODEVAL_RUNS_GB")
    if not runs.is_dir():
        raise BadInput(f"there is no folder of runs {runs}; choose another folder with --runs")
    location = resolve_database(database, runs)
    needed: set[Path] = set()
    if is_there(location):
        with open_database(location) as opened:
            needed = find_needed(opened, runs)
    done = keep_to_budget(runs, int(gigabytes * 2**30), needed, dry_run=dry_run)
    if as_json:
        emit(asdict(done) | {"dry_run": dry_run})
        return
    print(f"the recordings take up {done.bytes / 2**30:.2f} GB")
    for name, items in done.removed.items():
        print(f"{name} {'would lose' if dry_run else 'lost'} the recordings of {len(items)} items")
    for name, reason in done.kept.items():
        print(f"{name} keeps its recordings: {reason}")
    print(f"{'then ' if dry_run and done.removed else ''}{done.describe()}")
