"""`podeval arena erase`, `export`, `import` and `mirror`: where votes are kept, and what is forgotten."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from podeval.cli.arena import open_arena
from podeval.cli.database import DEFAULT, RUNS, Place, Runs, resolve_database
from podeval.errors import BadInput


def erase(
    name: Annotated[str | None, typer.Option(help="the name that the person signs in with")] = None,
    provider: Annotated[
        str,
        typer.Option(
            envvar="OPENID_PROVIDER_URL", help="with --name: where the person signs in: hf, or the provider's address"
        ),
    ] = "hf",
    identity: Annotated[
        str | None,
        typer.Option(help="instead of --name: PROVIDER:ID, such as hf:5e67bdd61009063689407479"),
    ] = None,
    pseudonym: Annotated[str | None, typer.Option(help="instead of --name: the pseudonym in the public log")] = None,
    objects: Annotated[Path | None, typer.Option(help="the bucket of votes, if there is one")] = None,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Erase a person with all votes and listening sessions, permanently.

    A Hub name is also looked up on the Hub, for people who voted before names were stored.

    Example: podeval arena erase --name alice
    """
    if sum(value is not None for value in (name, identity, pseudonym)) != 1:
        raise BadInput("give one of --name, --identity and --pseudonym")
    if identity is not None and ":" in identity:
        # What follows the provider may be the name: it is tried where it is no id.
        provider, _, name = identity.rpartition(":")
    issuer = "hf" if provider.rstrip("/") in ("hf", "https://huggingface.co") else provider.rstrip("/")
    with open_arena(database, runs, objects) as opened:
        done = opened.erase(identity, pseudonym=pseudonym, account=(issuer, name) if name else None)
        if done is None and name and issuer == "hf":
            from podeval.hub.repo_info import find_user_id

            account = find_user_id(name)
            done = opened.erase(f"hf:{account}") if account else None
    if done is None:
        hint = f" of {issuer}; a name may have changed since: ask for the account's id (sub)" if name else ""
        raise BadInput(f"there are no votes or sessions of that identity{hint}")
    print(f"{done.pseudonym}: {done.votes} votes and {done.sessions} listening sessions erased")


def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="created if missing")],
    comments: Annotated[
        bool, typer.Option("--comments", help="include people's comments; not for publication")
    ] = False,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Export votes, decisions, erasures, ratings and answers as Parquet files, with pseudonyms for people.

    Example: podeval arena export ./votes
    """
    from podeval.arena.export import export as write

    with open_arena(database, runs) as opened:
        counts = write(opened.database, folder, comments=comments)
    print(f"{folder}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def take_in(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER|FILE", help="a folder made by `podeval arena export`, or a log of battles (.jsonl, .csv)"
        ),
    ],
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Import an export, or a log of battles from elsewhere, all or nothing; existing data is not changed.

    Example: podeval arena import ./votes

    Example: podeval arena import battles.jsonl
    """
    from podeval.arena.import_votes import import_files
    from podeval.store.database import Database

    with Database(resolve_database(database, runs)) as opened:
        print(_describe_taken_in(import_files(opened, path)))


def mirror(
    repo: Annotated[str, typer.Argument(metavar="REPO", help="a dataset repo on the Hub, owner/name")],
    read_only: Annotated[bool, typer.Option("--read-back", help="only import; append nothing")] = False,
    private: Annotated[
        bool, typer.Option("--private", help="make the repo private if this command creates it")
    ] = False,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Synchronise with the public log on the Hub: import what is new there, then append what is new here.

    Example: podeval arena mirror my-lab/podeval-votes
    """
    from podeval.arena.public_log import PublicLog

    with open_arena(database, runs) as opened:
        log = PublicLog(opened.database, repo, private=private)
        if read_only:
            print(_describe_taken_in(log.read_back()))
            return
        done = log.push()
    print(f"{repo}: {done.records} records in {len(done.files)} new files")
    if done.others.votes:
        print(
            f"{done.others.votes} votes in {repo} were not of this database: another deployment writes there, or this "
            "one did before it was restored; deployments that are not one arena need repos of their own",
            file=sys.stderr,
        )


def _describe_taken_in(done: Any) -> str:
    return (
        f"{done.votes} new votes, {done.standings} decisions, {done.erasures} erasures; {done.repeated} known, "
        f"{done.erased} of erased voters and {done.orphans} without their vote left out"
    )
