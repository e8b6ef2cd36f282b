"""Restore a database and a folder of runs from a backup: check and unpack it first, then move the files into place.

Existing data is not touched until everything is unpacked and the restored tables match this version. Replaced files
are kept in a folder next to the runs, with a timestamp in its name; replaced rows of a server are not kept.

A backup may come from a stranger. Names, links, devices and sizes are checked before anything is unpacked, and nothing
is written outside the target folders. The database must have exactly the schema of its version, because any triggers
and views in it would run when votes arrive; the tables of a server are always created by the migrations.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, NullPool, create_engine, select, text
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable, describe_validation_error
from podeval.files import DiskFull, explain_write_errors, hash_file, resolve_inside
from podeval.operations import backup
from podeval.operations.backup import DATABASE, MANIFEST, RUNS, SECRET, SOUNDS, BackupManifest, explain_copy_errors
from podeval.runs.run_folder import REPLACED, UPLOADS
from podeval.store.database import Database, find_damage, parse_address
from podeval.store.migrate import create_tables
from podeval.store.pseudonyms import erase
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput, Erasure, ListeningTest, TableBase


@dataclass(frozen=True)
class Restored:
    """The backup, the number of people erased again, the result of `settle`, and the folder of the replaced files."""

    backup: BackupManifest
    forgotten: int
    settled: list[str]
    kept: Path | None


def restore(
    path: Path,
    database: str | Path,
    runs: Path,
    *,
    force: bool = False,
    read_decisions: Callable[[Database], list[Any]] = lambda replaced: [],
    settle: Callable[[Database, Path, list[Any]], list[str]] = lambda copy, unpacked_runs, decisions: [],
) -> Restored:
    """Restore a backup into a folder of runs, and into a database that is not in use: a SQLite file or an address.

    Existing data is replaced only with `force`: files are kept in another folder, but the rows of a server are not.
    `read_decisions` reads decisions from the replaced database. `settle` receives the new database, the new runs and
    these decisions before anything is moved into place.

    Raises:
        BadInput: the backup is damaged, or data exists and `force` is not set. Nothing was changed.
        StoreUnusable: the database is in use, or cannot be opened, or a server refuses a row.
        DiskFull: the disk is full; nothing was changed.
    """
    url = parse_address(database)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    try:
        runs.mkdir(parents=True, exist_ok=True)
        # Prepare everything in a separate folder, which nobody else can read.
        with tempfile.TemporaryDirectory(prefix=".restoring-", dir=runs, ignore_cleanup_errors=True) as folder:
            unpacked, new_runs = Path(folder), Path(folder, RUNS)
            manifest = _unpack(path, unpacked, set() if force else {existing.name for existing in runs.iterdir()})
            new_runs.mkdir(exist_ok=True)
            if (new_runs / UPLOADS).is_dir():
                (new_runs / UPLOADS).chmod(0o700)
            erasures, decisions = _read_replaced(database, file, force, read_decisions)
            _check_schema(unpacked / DATABASE)
            with Database(unpacked / DATABASE) as copy:
                if wrong := find_damage(copy):
                    raise StoreUnusable(f"the database of the backup is damaged: {wrong}; use another backup")
                settled = settle(copy, new_runs, decisions)
                copy.write(lambda session: _point_into(session, manifest, runs.resolve(), new_runs))
                forgotten = sorted(erasures.keys() - set(copy.list_rows(select(Erasure.pseudonym))))
                for pseudonym in forgotten:
                    copy.write(partial(erase, pseudonym=pseudonym, now=erasures[pseudonym]))
                if file is None:
                    _fill_server(copy, database)
            kept = _move_in(unpacked, file, runs)
    except DiskFull as error:
        raise DiskFull("the disk is full, and nothing was changed; free some space and restore again") from error
    return Restored(manifest, len(forgotten), settled, kept)


def _unpack(path: Path, folder: Path, existing: set[str]) -> BackupManifest:
    """Unpack a backup into an empty folder and compare it with its manifest; refuse runs that already exist."""
    try:
        with tarfile.open(path) as tar:
            members = tar.getmembers()
            names = {member.name for member in members}
            if len(names) < len(members) or not all(member.isreg() and not member.issparse() for member in members):
                raise BadInput(f"{path} contains links, devices, folders or a duplicate name; use another backup")
            if outside := [name for name in names if not backup.is_of_backup(name)]:
                raise BadInput(f"{path} contains {outside[0]!r}, which does not belong in a backup; use another backup")
            if blocking := sorted(existing & {name.split("/")[1] for name in names if "/" in name}):
                raise BadInput(f"the runs folder already contains {blocking[0]}; choose another folder, or use --force")
            if sum(member.size for member in members) > shutil.disk_usage(folder).free:
                raise DiskFull(f"the disk is full: {folder} has too little space for {path}")
            for member in members:
                with explain_write_errors(folder / member.name):
                    tar.extract(member, folder, set_attrs=False, filter="data")
        manifest = BackupManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else error
        raise BadInput(
            f"{path} cannot be read as a backup: it is damaged or missing ({reason}); use another backup"
        ) from None
    digests = {name: hash_file(folder / name) for name in names - {MANIFEST}}
    if wrong := sorted({name for name, _ in digests.items() ^ manifest.files.items()}):
        raise BadInput(f"{path} has changed since it was made, in {', '.join(wrong[:3])}; use another backup")
    return manifest


def _read_replaced(
    database: str | Path, file: Path | None, force: bool, read_decisions: Callable[[Database], list[Any]]
) -> tuple[dict[str, datetime], list[Any]]:
    """Read people's erasures and decisions from the database to be replaced."""
    if file is not None and not file.exists():
        return {}, []
    try:
        with Database(database) as opened, opened.reading() as session:
            filled = any(session.execute(select(table).limit(1)).first() for table in TableBase.metadata.sorted_tables)
            if filled and not force:
                raise BadInput(
                    f"{opened.name} already contains votes or submissions; choose another database, or use --force"
                )
            erasures = {row.pseudonym: row.erased_at for row in session.scalars(select(Erasure))}
            return erasures, read_decisions(opened)
    except StoreUnusable as error:
        raise StoreUnusable(
            f"erasures and takedowns cannot be read from the database that is to be replaced ({error}); if you accept "
            "their loss, move that database to another folder and restore again"
        ) from error


def _check_schema(file: Path) -> None:
    """Refuse a SQLite file if its schema is not exactly that of its version, for example because of a trigger."""
    engine, expected = create_engine(f"sqlite:///{file}", poolclass=NullPool), create_engine("sqlite://")
    with explain_copy_errors("the backup's database is damaged", "use another backup"), engine.connect() as opened:
        create_tables(expected, str(opened.scalar(text("SELECT version_num FROM alembic_version"))), "the backup")
        with expected.connect() as made:
            wrong = sorted(name for _, name, *_ in _read_schema(opened) ^ _read_schema(made))
    if wrong:
        raise StoreUnusable(
            f"the schema of the backup's database differs from that of its version (in {wrong[0]}); use another backup"
        )


def _read_schema(opened: Connection) -> set[tuple[str, str, str, str]]:
    """Read all definitions in a SQLite file, ignoring spaces and quotes, because these differ between versions."""
    query = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat_'"
    return {(kind, name, table, re.sub(r"[\s\"`]", "", sql)) for kind, name, table, sql in opened.execute(text(query))}


def _fill_server(copy: Database, database: str | Path) -> None:
    """Replace all rows on a server with the rows in a file, in one transaction; the tables themselves do not change."""
    with (
        Database(database) as target,
        explain_copy_errors(f"the backup's rows do not fit the tables of {target.name}", "use another backup"),
        copy.engine.connect() as rows,
        target.engine.begin() as written,
    ):
        # Numbering restarts inside the transaction too, so a refused row does not reset it.
        written.execute(text(f"TRUNCATE {', '.join(map(str, TableBase.metadata.sorted_tables))} RESTART IDENTITY"))
        backup.copy_rows(rows, written)


def _point_into(session: Session, manifest: BackupManifest, runs: Path, unpacked: Path) -> None:
    """Change the recordings' paths to their future locations in the folder of runs, so that none leads outside it."""
    before = Path(manifest.runs)

    def locate(path: str) -> str:
        name = manifest.sounds.get(path, "").removeprefix(f"{RUNS}/") or os.path.relpath(before / path, before)
        try:
            resolve_inside(unpacked, name)
        except BadInput:
            return ""
        return str(runs / name)

    def point(part: dict[str, Any]) -> dict[str, Any]:
        audio = part.get("audio")
        if isinstance(audio, str) and audio and not audio.startswith(("https://", "http://")):
            part["audio"] = locate(audio) or str(runs / SOUNDS / "absent")
        return part

    for column in (ArenaOutput.audio, SubmissionRow.place, ArenaItem.turns, ListeningTest.design):
        for row in session.scalars(select(column.class_)):
            value = getattr(row, column.key)
            new = locate(value) if isinstance(value, str) else json.loads(json.dumps(value), object_hook=point)
            setattr(row, column.key, new)


def _move_in(unpacked: Path, file: Path | None, runs: Path) -> Path | None:
    """Move the database, the runs and the secret into place; return the folder with the replaced files, if any."""
    kept = runs / f"{REPLACED}{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    moves = [(new, runs / new.name) for new in sorted((unpacked / RUNS).iterdir())]
    if file is not None:
        moves.insert(0, (unpacked / DATABASE, file))
        for log in filter(Path.exists, moves[0]):
            with (
                explain_copy_errors(f"podeval is running on {log}", "stop its site and workers, then restore again"),
                contextlib.closing(sqlite3.connect(log, isolation_level=None, timeout=0.2)) as opened,
            ):
                # Write what is in a log into the file; another process that has the file open prevents this.
                opened.execute("PRAGMA journal_mode = DELETE")
    if (unpacked / SECRET).exists():
        (unpacked / SECRET).chmod(0o600)
        moves.append((unpacked / SECRET, Path(f"{file or runs / 'podeval'}.secret")))
    for new, target in moves:
        near = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        # Copy to the target's disk first; it may be a different disk, and it may be full or not writable.
        with explain_write_errors(target):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(new, near)
                # A log that a damaged database left behind would be applied to the new database.
                for old in filter(Path.exists, (target, Path(f"{target}-wal"), Path(f"{target}-shm"))):
                    kept.mkdir(exist_ok=True)
                    shutil.move(old, kept / old.name)
                near.rename(target)
            finally:
                near.unlink(missing_ok=True)
    os.sync()
    return kept if kept.exists() else None
