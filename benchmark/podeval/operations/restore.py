"""Restore a database and a folder of runs from a backup, which is checked first and then moved into place.

Nothing existing is touched until everything is unpacked and its tables are of this version. What is replaced is kept
beside it, under a name with the time; the tables of a server are not kept.
"""

import contextlib
import logging
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable
from podeval.operations.backup import DATABASE, DUMP, RUNS, SECRET, SOUNDS, Backup, BackupReader
from podeval.operations.backup_database import check_schema, copy_rows, list_tables, load_dump, merge_log
from podeval.runs.run_folder import REPLACED, UPLOADS
from podeval.store.database import Database, find_damage, parse_address
from podeval.store.pseudonyms import erase
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput, Erasure, ListeningTest

Read = Callable[[Database], list[Any]]
Settle = Callable[[Database, Path, list[Any]], list[str]]

_LOG = logging.getLogger("podeval.operations")


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore.

    Attributes:
        backup: contents of the backup.
        rows: rows of the database, by table.
        forgotten: persons who asked to be forgotten after the backup was made, and still are.
        settled: what `settle` returned.
        secret: path of the service's secret now; None where the backup holds none.
        kept: new paths of what was replaced.
    """

    backup: Backup
    rows: dict[str, int]
    forgotten: int
    settled: list[str]
    secret: Path | None
    kept: list[Path]


def restore(
    path: Path,
    database: str | Path,
    runs: Path,
    *,
    force: bool = False,
    read_decisions: Read = lambda replaced: [],
    settle: Settle = lambda copy, unpacked_runs, decisions: [],
) -> Restored:
    """Restore a backup.

    Args:
        path: path of the backup.
        database: a SQLite file or a database address, not in use; a backup of PostgreSQL needs a server.
        runs: the folder of runs; it is made where it does not exist.
        force: replace what exists. Files are kept under other names, the rows of a server are not.
        read_decisions: called with the database that is replaced, as far as it can still be read.
        settle: called with the database that is not yet in its place, the unpacked runs and the decisions that were
            read.

    Raises:
        BadInput: the backup is damaged, or something exists and `force` is not set, or the backup holds a dump of
            PostgreSQL and `pg_restore` is not there. Nothing was changed.
        StoreUnusable: the database is in use, or cannot be opened.
        DiskFull: the disk is full; nothing was changed.
    """
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    kept: list[Path] = []
    with BackupReader(path) as reader:
        # Check that nothing would be overwritten.
        names = sorted({name.split("/")[1] for name in reader.manifest["files"] if name.startswith(f"{RUNS}/")})
        if not force and (blocking := [name for name in names if (runs / name).exists()]):
            raise BadInput(
                f"{runs} holds {', '.join(blocking[:3])} already; choose another folder with --runs, or replace them "
                "with --force (they are kept under another name)"
            )
        unpacked = runs / f".restoring-{secrets.token_hex(4)}"
        # Prepare everything in a folder of its own.
        try:
            unpacked.mkdir(mode=0o700, parents=True)
            reader.unpack(unpacked)
            (unpacked / RUNS).mkdir(exist_ok=True)
            if (unpacked / RUNS / UPLOADS).is_dir():
                (unpacked / RUNS / UPLOADS).chmod(0o700)
            erasures, decisions = _read_replaced(database, force, read_decisions)
            with _open_copy(unpacked, database, moment, kept) as copy:
                settled = settle(copy, unpacked / RUNS, decisions)
                copy.write(lambda session: _point_into(session, reader.manifest, runs.resolve()))
                forgotten = copy.write(lambda session: _forget_again(session, erasures))
                with copy.reading() as session:
                    rows = _count_rows(session)
            # The database is in its place; move the runs and the secret there.
            _move_in(unpacked, runs, runs / f"{REPLACED}{moment}", kept)
            secret = _put_secret(unpacked / SECRET, database, runs, moment, kept)
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
    return Restored(reader.contents, rows, forgotten, settled, secret, kept)


def _count_rows(session: Session) -> dict[str, int]:
    return {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in list_tables()}


def _read_replaced(database: str | Path, force: bool, read_decisions: Read) -> tuple[dict[str, datetime], list[Any]]:
    """Read persons' erasures and decisions from the database that is replaced, as far as it can still be read."""
    url = parse_address(database)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    if file is not None and not file.exists():
        return {}, []
    try:
        with Database(database) as opened, opened.reading() as session:
            has_rows = any(_count_rows(session).values())
            erasures = {row.pseudonym: row.erased_at for row in session.scalars(select(Erasure))}
            decisions = read_decisions(opened)
    except (StoreUnusable, DBAPIError) as error:
        if file is None:
            raise
        _LOG.warning("who was forgotten and what was taken down cannot be read from %s: %s", file, error)
        has_rows, erasures, decisions = True, {}, []
    if has_rows and not force:
        raise BadInput(
            f"{url.render_as_string()} holds votes or submissions already; name another database, or replace it with "
            "--force (a file is kept under another name, the rows of a server are not)"
        )
    return erasures, decisions


@contextlib.contextmanager
def _open_copy(unpacked: Path, database: str | Path, moment: str, kept: list[Path]) -> Iterator[Database]:
    """Open an unpacked database beside its place, with the tables of this version, and put it there at the end."""
    url, file = parse_address(database), unpacked / DATABASE
    if url.get_backend_name() != "sqlite":
        with _open_schema(unpacked, database) as copy:
            yield copy
        return
    if not file.exists():
        raise BadInput("it is a backup of PostgreSQL; name a server with --database postgresql://user@host/name")
    with _open_checked(file) as copy:
        yield copy
    merge_log(file)
    target = Path(str(url.database))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        with contextlib.suppress(sqlite3.DatabaseError):
            merge_log(target)
        kept.append(target.with_name(f"{target.name}.before-{moment}"))
        for ending in ("", "-wal", "-shm"):
            path = target.with_name(target.name + ending)
            if path.exists():
                path.replace(f"{kept[-1]}{ending}")
    file.replace(target)


@contextlib.contextmanager
def _open_checked(file: Path) -> Iterator[Database]:
    """Open an unpacked SQLite file that is whole and has the tables of its version alone."""
    check_schema(file)
    with Database(file) as copy:
        if wrong := find_damage(copy):
            raise StoreUnusable(f"the database of the backup is damaged: {wrong}; use another backup")
        yield copy


@contextlib.contextmanager
def _open_schema(unpacked: Path, database: str | Path) -> Iterator[Database]:
    """Open a copy in a schema of its own on a server, and let its tables take the place of the old ones at the end."""
    name = f"podeval_{unpacked.name.rpartition('-')[2]}"
    with Database(database) as target:
        with target.engine.begin() as connection:
            current = connection.scalar(text("SELECT current_schema()"))
            connection.execute(text(f"CREATE SCHEMA {name}"))
        address = target.url.update_query_dict({"options": f"-csearch_path={name}"})
        try:
            if (unpacked / DUMP).exists():
                load_dump(unpacked / DUMP, address)
            with Database(address.render_as_string(hide_password=False)) as copy:
                if (unpacked / DATABASE).exists():
                    with _open_checked(unpacked / DATABASE) as source:
                        copy_rows(source, copy)
                yield copy
            tables = ["alembic_version", *map(str, list_tables())]
            with target.engine.begin() as connection:
                connection.execute(text(f"DROP TABLE {', '.join(tables)}"))
                for table in tables:
                    connection.execute(text(f'ALTER TABLE {name}."{table}" SET SCHEMA "{current}"'))
        finally:
            with target.engine.begin() as connection:
                connection.execute(text(f"DROP SCHEMA {name} CASCADE"))


def _point_into(session: Session, manifest: dict[str, Any], runs: Path) -> None:
    """Change the paths of recordings to their future places in the folder of runs; none leads out of it afterwards."""
    before = Path(manifest["runs"])

    def locate(path: str) -> str:
        if path in manifest["sounds"]:
            return str(runs / Path(manifest["sounds"][path]).relative_to(RUNS))
        inside = before.is_absolute() and (before / path).is_relative_to(before) and ".." not in Path(path).parts
        return str(runs / (before / path).relative_to(before)) if inside else ""

    def locate_all(document: Any, name: str = "") -> Any:
        if isinstance(document, dict):
            return {key: locate_all(part, key) for key, part in document.items()}
        if isinstance(document, list):
            return [locate_all(part) for part in document]
        if (
            name == "audio"
            and isinstance(document, str)
            and document
            and not document.startswith(("https://", "http://"))
        ):
            return locate(document) or str(runs / SOUNDS / "absent")
        return document

    for output in session.scalars(select(ArenaOutput).where(ArenaOutput.audio != "")):
        output.audio = locate(output.audio)
    for item in session.scalars(select(ArenaItem)):
        item.turns = locate_all(item.turns)
    for test in session.scalars(select(ListeningTest)):
        test.design = locate_all(test.design)
    for submission in session.scalars(select(SubmissionRow).where(SubmissionRow.place != "")):
        submission.place = locate(submission.place)


def _forget_again(session: Session, erasures: dict[str, datetime]) -> int:
    new = erasures.keys() - set(session.scalars(select(Erasure.pseudonym)))
    for pseudonym in sorted(new):
        erase(session, pseudonym, now=erasures[pseudonym])
    return len(new)


def _move_in(unpacked: Path, runs: Path, old: Path, kept: list[Path]) -> None:
    """Move runs and recordings into place, and what they replace into a folder beside them."""
    for path in sorted((unpacked / RUNS).iterdir()):
        target = runs / path.name
        if target.exists():
            old.mkdir(exist_ok=True)
            target.rename(old / path.name)
        path.rename(target)
    if old.is_dir():
        kept.append(old)


def _put_secret(file: Path, database: str | Path, runs: Path, moment: str, kept: list[Path]) -> Path | None:
    """Move the secret, if there is one, beside the database where that is a file, else beside the runs."""
    url = parse_address(database)
    target = Path(f"{url.database}.secret") if url.get_backend_name() == "sqlite" else runs / "podeval.secret"
    if not file.exists():
        return None
    file.chmod(0o600)
    if target.exists() and target.read_bytes() != file.read_bytes():
        kept.append(target.with_name(f"{target.name}.before-{moment}"))
        target.rename(kept[-1])
    shutil.move(file, target)
    return target
