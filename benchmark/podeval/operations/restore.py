"""Restore a database and a folder of runs from a backup, which is checked first and then moved into place.

Nothing existing is touched until everything is unpacked and its tables are of this version. Replaced files are kept
next to the new ones, with a timestamp in their names; the tables of a server are not kept.
"""

import contextlib
import logging
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable
from podeval.files import explain_write_errors, resolve_inside
from podeval.operations.backup import DATABASE, RUNS, SECRET, SOUNDS, Backup, BackupReader
from podeval.operations.backup_database import check_schema, copy_rows, list_tables, merge_log
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
        forgotten: people who asked to be forgotten after the backup was made, and who stay forgotten.
        settled: the result of `settle`.
        secret: current path of the service's secret; None if the backup contains none.
        kept: new paths of the replaced files.
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
        database: a SQLite file or the address of a database of any kind; it must not be in use.
        runs: the folder of runs; it is created if it does not exist.
        force: replace what exists. Files are kept under other names, but the rows of a server are not.
        read_decisions: function that gets the replaced database, if it can still be read.
        settle: function that gets the new database before it is moved into place, the unpacked runs and the decisions.

    Raises:
        BadInput: the backup is damaged, or something exists and `force` is not set. Nothing was changed.
        StoreUnusable: the database is in use, or cannot be opened, or a server refuses a row.
        DiskFull: the disk is full; nothing was changed.
    """
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    url = parse_address(database)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    kept: list[Path] = []
    with BackupReader(path) as reader:
        if not force:
            _refuse_to_replace(reader, runs)
        runs.mkdir(parents=True, exist_ok=True)
        # Prepare everything in a separate folder, which nobody else can read.
        with tempfile.TemporaryDirectory(prefix=".restoring-", dir=runs, ignore_cleanup_errors=True) as folder:
            unpacked, new_runs = Path(folder), Path(folder, RUNS)
            reader.unpack(unpacked)
            new_runs.mkdir(exist_ok=True)
            if (new_runs / UPLOADS).is_dir():
                (new_runs / UPLOADS).chmod(0o700)
            erasures, decisions = _read_replaced(database, file, force, read_decisions)
            check_schema(unpacked / DATABASE)
            with Database(unpacked / DATABASE) as copy:
                if wrong := find_damage(copy):
                    raise StoreUnusable(f"the database of the backup is damaged: {wrong}; use another backup")
                settled = settle(copy, new_runs, decisions)
                copy.write(lambda session: _point_into(session, reader.manifest, runs.resolve(), new_runs))
                forgotten = copy.write(lambda session: _forget_again(session, erasures))
                with copy.reading() as session:
                    rows = _count_rows(session)
                if file is None:
                    _fill_server(copy, database)
            # Move the file, the runs and the secret into place.
            if file is not None:
                _put_file(unpacked / DATABASE, file, moment, kept)
            _move_in(new_runs, runs, runs / f"{REPLACED}{moment}", kept)
            beside = file.with_name(f"{file.name}.secret") if file is not None else runs / "podeval.secret"
            secret = _put_secret(unpacked / SECRET, beside, moment, kept)
    return Restored(reader.contents, rows, forgotten, settled, secret, kept)


def _refuse_to_replace(reader: BackupReader, runs: Path) -> None:
    """Refuse a folder of runs that already has files of the backup."""
    names = sorted({name.split("/")[1] for name in reader.manifest["files"] if name.startswith(f"{RUNS}/")})
    if blocking := [name for name in names if (runs / name).exists()]:
        raise BadInput(
            f"{runs} already contains {', '.join(blocking[:3])}; choose another folder with --runs, or replace them "
            "with --force (they are kept under another name)"
        )


def _count_rows(session: Session) -> dict[str, int]:
    return {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in list_tables()}


def _read_replaced(
    database: str | Path, file: Path | None, force: bool, read_decisions: Read
) -> tuple[dict[str, datetime], list[Any]]:
    """Read people's erasures and decisions from the database that is replaced, as far as it can still be read."""
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
        _LOG.warning("erasures and takedowns cannot be read from %s: %s", file, error)
        has_rows, erasures, decisions = True, {}, []
    if has_rows and not force:
        raise BadInput(
            f"{parse_address(database).render_as_string()} already contains votes or submissions; name another one, "
            "or replace it with --force (a file is kept under another name, but the rows of a server are not)"
        )
    return erasures, decisions


def _put_file(file: Path, target: Path, moment: str, kept: list[Path]) -> None:
    """Move a SQLite file into place, and the replaced one next to it."""
    merge_log(file)
    beside = target.with_name(f".{target.name}.{moment}")
    # Copy to the target's disk first, which may be a different one, and full or not writable.
    with explain_write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.move(file, beside)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
    if target.exists():
        with contextlib.suppress(sqlite3.DatabaseError):
            merge_log(target)
        kept.append(target.with_name(f"{target.name}.before-{moment}"))
        for ending in ("", "-wal", "-shm"):
            path = target.with_name(target.name + ending)
            if path.exists():
                path.replace(f"{kept[-1]}{ending}")
    beside.replace(target)


def _fill_server(copy: Database, database: str | Path) -> None:
    """Copy all rows into a separate schema on a server, and replace the old tables with its tables.

    Raises:
        StoreUnusable: the server refuses a row, or a schema; nothing was changed.
    """
    name = f"podeval_{secrets.token_hex(4)}"
    with Database(database) as target:
        try:
            with target.engine.begin() as connection:
                current = connection.scalar(text("SELECT current_schema()"))
                connection.execute(text(f"CREATE SCHEMA {name}"))
            address = target.url.update_query_dict({"options": f"-csearch_path={name}"})
            with Database(address.render_as_string(hide_password=False)) as filled, copy.engine.connect() as rows:
                copy_rows(rows, filled)
            tables = ["alembic_version", *map(str, list_tables())]
            with target.engine.begin() as connection:
                connection.execute(text(f"DROP TABLE {', '.join(tables)}"))
                for table in tables:
                    connection.execute(text(f'ALTER TABLE {name}."{table}" SET SCHEMA "{current}"'))
        except DBAPIError as error:
            reason = str(error.orig).partition("\n")[0]
            raise StoreUnusable(
                f"the rows of the backup do not fit the tables of {target.name} ({reason}); nothing was changed"
            ) from error
        finally:
            with target.engine.begin() as connection:
                connection.execute(text(f"DROP SCHEMA IF EXISTS {name} CASCADE"))


def _point_into(session: Session, manifest: dict[str, Any], runs: Path, unpacked: Path) -> None:
    """Change the paths of recordings to their future places in the folder of runs; afterwards none leads out of it."""
    before = Path(manifest["runs"])

    def locate(path: str) -> str:
        if path in manifest["sounds"]:
            return str(runs / Path(manifest["sounds"][path]).relative_to(RUNS))
        with contextlib.suppress(ValueError, BadInput):
            name = (before / path).relative_to(before.absolute())
            resolve_inside(unpacked, str(name))
            return str(runs / name)
        return ""

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


def _move_in(new: Path, runs: Path, old: Path, kept: list[Path]) -> None:
    """Move runs and recordings into place, and the replaced ones into a folder next to them."""
    for path in sorted(new.iterdir()):
        target = runs / path.name
        if target.exists():
            old.mkdir(exist_ok=True)
            target.rename(old / path.name)
        path.rename(target)
    if old.is_dir():
        kept.append(old)


def _put_secret(file: Path, target: Path, moment: str, kept: list[Path]) -> Path | None:
    """Move the secret into place, if there is one."""
    if not file.exists():
        return None
    file.chmod(0o600)
    if target.exists() and target.read_bytes() != file.read_bytes():
        kept.append(target.with_name(f"{target.name}.before-{moment}"))
        target.rename(kept[-1])
    shutil.move(file, target)
    return target
