"""`podeval arena`: operator commands for an arena, the storage of votes, and erasure."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.cli.completion import complete_benchmark, complete_split
from podeval.cli.database import DEFAULT, RUNS, Place, Runs, open_database, require_database, resolve_database
from podeval.cli.output import AsJson, emit, say
from podeval.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from podeval.arena import Arena
    from podeval.arena.ratings import Standings

arena = typer.Typer(
    help="Manage the arena: its recordings, ratings, votes and their storage.\n\n"
    "Example: podeval arena ratings --runs runs",
    no_args_is_help=True,
)


class Covariate(StrEnum):
    """Properties of outputs that may influence listeners in addition to the judged property."""

    LENGTH = "length"
    LOUDNESS = "loudness"


Dimension = Annotated[str | None, typer.Option(help="only battles on this dimension")]
Recount = Annotated[bool, typer.Option("--recount", help="first recount battles and votes; new votes must wait")]


@arena.command()
def add(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUNS|MANIFEST", help="a folder of runs, or a YAML or JSON file as described in docs/arena.md"
        ),
    ],
    benchmark: Annotated[str, typer.Option(help="only runs on this benchmark", autocompletion=complete_benchmark)] = "",
    split: Annotated[str, typer.Option(help="only runs on this split", autocompletion=complete_split)] = "",
    dimension: Annotated[str, typer.Option(help="dimension that listeners judge; overall by default")] = "",
    question: Annotated[
        str,
        typer.Option(help="question for listeners; by default, which recording they would rather keep listening to"),
    ] = "",
    controls: Annotated[
        bool, typer.Option("--controls", help="also add controls, which every listener should vote against")
    ] = False,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Add systems, items and recordings, from a manifest or from runs (the items that at least two systems share).

    Repeat the command to add new ones. The length and loudness of recordings are measured once. The exit code is 1 if
    outputs were left out because listeners have already heard other recordings of them.

    Example: podeval arena add .demo/runs

    Example: podeval arena add runs --benchmark lfs_bench --dimension drama --question "Who tells it better?"

    Example: podeval arena add battles.yaml
    """
    from podeval.arena.manifest import DIMENSION, QUESTION, make_manifest, read_manifest
    from podeval.arena.manifest import add as take_in

    if from_runs := source.is_dir():
        about = dimension or DIMENSION, question or QUESTION
        arena_manifest = make_manifest(
            source, benchmark=benchmark, split=split, dimension=about[0], question=about[1], controls=controls
        )
    elif benchmark or split or dimension or question or controls:
        raise BadInput(f"{source} is not a folder of runs; the other options apply only to runs, so leave them out")
    else:
        arena_manifest = read_manifest(source)
    if from_runs and not arena_manifest.outputs:
        raise BadInput(
            f"no item has recordings of two systems in {source}; create some by running `podeval run` for each system"
        )
    with open_database(resolve_database(database, source if from_runs else runs)) as opened:
        done = take_in(opened, arena_manifest, strict=not from_runs)
        new = ", ".join(f"{count} new {name}" for name, count in done.new.items())
        size = f"{len(arena_manifest.systems)} systems on {len(arena_manifest.items)} items, " if from_runs else ""
        print(f"{size}{new} in {opened.name}")
    for sentence in done.left_out:
        say(f"left out: {sentence}")
    if done.left_out:
        raise typer.Exit(1)


@arena.command()
def status(database: Place = DEFAULT, runs: Runs = RUNS, recount: Recount = False, as_json: AsJson = False) -> None:
    """Show counts, and check that the database is intact and that there is no alarm. The exit code is 1 if the database
    is damaged or there is an alarm.

    Example: podeval arena status --json
    """
    from podeval.store.database import find_damage
    from podeval.store.vote_counts import recount as count_anew

    with _open(database, runs) as opened:
        wrong, name = find_damage(opened.database), opened.database.name
        if wrong is not None:
            say(f"{name} is damaged: {wrong}; restore the last backup, then read back the public log")
            raise typer.Exit(1)
        if recount:
            opened.database.write(count_anew)
        now = opened.status()
    if as_json:
        emit(asdict(now) | {"votes": now.votes})
    else:
        print(f"{now.systems} systems on {now.items} items; {now.battles} battles")
        outcomes = ", ".join(f"{name} {count}" for name, count in sorted(now.outcomes.items()))
        print(f"{now.votes} votes by {now.voters} voters" + (f": {outcomes}" if outcomes else ""))
        print(f"{now.excluded} excluded from the rating, {now.excluded_by_people} of them by a person")
        print(f"{name} is intact, and every commit is synced to disk")
    _exit_at_alarm(now.alarms)


@arena.command()
def ratings(
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    dimension: Dimension = None,
    position: Annotated[bool, typer.Option("--position", help="also estimate the effect of being on side A")] = False,
    covariate: Annotated[
        list[Covariate] | None,
        typer.Option(
            help="also estimate this property's effect; ratings then assume equal values on both sides (repeatable)"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the ranking by counted votes: Bradley-Terry ratings with voter-clustered 95 % intervals, and rank ranges.

    Votes on excerpts and votes on whole recordings are rated separately.

    Example: podeval arena ratings --position --covariate length --covariate loudness
    """
    from podeval.arena.ratings import compute_standings_by_dimension, make_battles
    from podeval.arena.settings import PROTOCOLS

    with _open(database, runs) as opened:
        table = opened.battles(dimension=dimension)
    if table.empty:
        raise BadInput("there are no votes to rate" + (f" on {dimension}" if dimension else "") + " yet")
    rated: dict[str, dict[str, Standings]] = {}
    for protocol in PROTOCOLS:
        votes = table[table["protocol"] == protocol]
        if len(votes):
            battles = make_battles(votes, _differences(votes, covariate or []))
            rated[protocol] = compute_standings_by_dimension(battles, list(votes["dimension"]), position=position)
    if as_json:
        emit({protocol: {name: _plain(part) for name, part in parts.items()} for protocol, parts in rated.items()})
        return
    for protocol, parts in rated.items():
        for name, part in parts.items():
            if len(parts) != 2 or name != "pooled":
                _show(f"{protocol}, {name}", part)


def _differences(table: "pd.DataFrame", covariates: list[Covariate]) -> dict[str, list[float]]:
    """Return the difference between A and B (A minus B) in each vote, by covariate.

    Raises:
        BadInput: some outputs lack a covariate.
    """
    differences: dict[str, list[float]] = {}
    for name in dict.fromkeys(covariates):
        column = "seconds" if name == "length" else name
        difference = table[f"{column}_a"] - table[f"{column}_b"]
        if missing := int(difference.isna().sum()):
            raise BadInput(f"{missing} votes concern outputs without a {name}; leave out --covariate {name}")
        differences[name] = [float(value) for value in difference]
    return differences


@arena.command()
def sweep(database: Place = DEFAULT, runs: Runs = RUNS, as_json: AsJson = False) -> None:
    """Apply the integrity rules to all votes. The exit code is 1 if there is an alarm.

    Example: podeval arena sweep
    """
    with _open(database, runs) as opened:
        done = opened.sweep()
    if as_json:
        emit(done)
    else:
        out, back = len(done.excluded), len(done.restored)
        print(f"{done.votes} votes: {out} are now excluded, {back} count again, {done.signals} new signals")
    _exit_at_alarm(done.alarms)


@arena.command()
def flags(
    vote: Annotated[str | None, typer.Option(help="only flags of this vote")] = None,
    newest: Annotated[int, typer.Option(min=1, help="number of entries")] = 100,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """List the integrity rules' findings and all decisions, newest first; operators decide on `/admin`.

    Example: podeval arena flags --newest 20
    """
    with _open(database, runs) as opened:
        for flag in opened.flags(vote=vote, newest=newest):
            at = flag.made_at.isoformat(timespec="seconds")
            if as_json:
                names = ("vote", "kind", "rule", "points", "detail", "made_by")
                emit({name: getattr(flag, name) for name in names} | {"at": at})
            else:
                what = f"{flag.rule}: {flag.detail}" if flag.rule else flag.detail
                print(f"{at}  {flag.vote}  {flag.kind} by {flag.made_by}  {what}")


@arena.command()
def erase(
    name: Annotated[str | None, typer.Option(help="the name that the person signs in with")] = None,
    provider: Annotated[
        str,
        typer.Option(
            envvar="OPENID_PROVIDER_URL", help="with --name: the service for signing in: hf, or the provider's address"
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
    """Erase a person permanently, with all their votes and listening sessions.

    A Hub name is also looked up on the Hub, for people who voted before names were stored.

    Example: podeval arena erase --name alice
    """
    if sum(value is not None for value in (name, identity, pseudonym)) != 1:
        raise BadInput("give exactly one of --name, --identity and --pseudonym")
    if identity is not None and ":" in identity:
        # If the text after the provider is not an id, it is treated as an account name.
        provider, _, name = identity.rpartition(":")
    issuer = "hf" if provider.rstrip("/") in ("hf", "https://huggingface.co") else provider.rstrip("/")
    with _open(database, runs, objects) as opened:
        done = opened.erase(identity, pseudonym=pseudonym, account=(issuer, name) if name else None)
        if done is None and name and issuer == "hf":
            from podeval.hub.repo_info import find_user_id

            account = find_user_id(name)
            done = opened.erase(f"hf:{account}") if account else None
    if done is None:
        hint = f" of {issuer}; the person's name may have changed, so ask for the account's id (sub)" if name else ""
        raise BadInput(f"there are no votes or sessions for that identity{hint}")
    print(f"{done.pseudonym}: {done.votes} votes and {done.sessions} listening sessions erased")


@arena.command()
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
    from podeval.arena.vote_records import export as write

    with _open(database, runs) as opened:
        counts = write(opened.database, folder, comments=comments)
    print(f"{folder}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


@arena.command("import")
def take_in(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="a file of the public log, or a log of battles (.jsonl, .csv)")
    ],
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Import a file of the public log, or another battle log, completely or not at all; existing data is kept.

    Example: podeval arena import battles.jsonl
    """
    from podeval.arena.import_votes import import_file

    with open_database(resolve_database(database, runs)) as opened:
        print(_describe_taken_in(import_file(opened, path)))


@arena.command()
def mirror(
    repo: Annotated[str, typer.Argument(metavar="REPO", help="a dataset repo on the Hub, owner/name")],
    read_only: Annotated[bool, typer.Option("--read-back", help="only import records; append none")] = False,
    private: Annotated[
        bool, typer.Option("--private", help="make the repo private if this command creates it")
    ] = False,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Synchronise with the public log on the Hub: import its new records, then append new local ones.

    Example: podeval arena mirror my-lab/podeval-votes
    """
    from podeval.arena.public_log import PublicLog

    with _open(database, runs) as opened:
        log = PublicLog(opened.database, repo, private=private)
        if read_only:
            print(_describe_taken_in(log.read_back()))
            return
        done = log.push()
    print(f"{repo}: {done.records} records in {len(done.files)} new files")
    if done.others.votes:
        say(
            f"{done.others.votes} votes in {repo} were not from this database: another deployment writes there, or "
            "this deployment wrote them before it was restored. Separate arenas need separate repos."
        )


@contextmanager
def _open(database: str, runs: Path, objects: Path | None = None) -> "Iterator[Arena]":
    """Open the arena in a database; `objects` is the bucket for votes, if there is one."""
    from podeval.arena import Arena
    from podeval.arena.vote_objects import VoteObjects

    with open_database(require_database(database, runs)) as opened:
        yield Arena(opened, objects=VoteObjects(objects) if objects else None)


def _exit_at_alarm(alarms: list[str]) -> None:
    """Print alarms, and exit with code 1 if there are any."""
    for alarm in alarms:
        say(f"ALARM: {alarm}")
    if alarms:
        raise typer.Exit(1)


def _plain(part: "Standings") -> dict[str, Any]:
    return {
        "votes": part.ratings.votes,
        "voters": part.ratings.voters,
        "coverage": part.coverage,
        "systems": [asdict(row) for row in part.ratings.systems],
        "effects": [asdict(effect) for effect in part.ratings.effects],
        "undecided": [asdict(pair) for pair in part.undecided],
        "lowered": [asdict(cohort) for cohort in part.ratings.lowered],
    }


def _show(name: str, part: "Standings") -> None:
    from podeval.stats.bradley_terry import describe_missing

    print(f"{name}: {part.ratings.votes} votes by {part.ratings.voters} voters, {part.coverage:.0%} of pairs have met")
    width = max(len(row.system) for row in part.ratings.systems)
    for row in part.ratings.systems:
        if row.provisional is not None:
            rank, reach = "-", f"provisional, {describe_missing(row.provisional)}"
        else:
            rank = str(row.best) if row.best == row.worst else f"{row.best}-{row.worst}"
            reach = f"{row.low:6.0f} to {row.high:.0f}"
        print(f"  {rank:>5}  {row.system:{width}}  {row.rating:6.0f}  {reach}  ({row.battles} battles)")
    for cohort in part.ratings.lowered:
        print(f"  {cohort.describe()}")
    for effect in part.ratings.effects:
        bounded = effect.low is not None and effect.high is not None
        print(
            f"  {effect.name}: {effect.points:+.0f}"
            + (f" ({effect.low:+.0f} to {effect.high:+.0f})" if bounded else "")
        )
    if len(part.ratings.islands) > 1:
        print(
            "  these groups have no battles against each other, so their ratings cannot be compared: "
            + "; ".join(map(", ".join, part.ratings.islands))
        )


def _describe_taken_in(done: Any) -> str:
    return (
        f"{done.votes} new votes, {done.standings} decisions, {done.erasures} erasures; left out: "
        f"{done.repeated} already known, {done.erased} from erased voters and {done.orphans} without a vote"
    )
