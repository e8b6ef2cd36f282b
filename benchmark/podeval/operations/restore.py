"""Restore a database and a folder of runs from a backup: check and unpack it first, then move the files into place.

Existing data is not touched until everything is unpacked and the restored tables match this version. Replaced files
are kept in a folder next to the runs, with a timestamp in its name; replaced rows of a server are not kept.

A backup may come from a stranger. Names, links, devices and sizes are checked before anything is unpacked, and nothing
is written outside the target folders. The database must have exactly the schema of its version, because any triggers
and views in it would run when votes arrive; the tables of a server are always created by the migrations.
"""

import filecmp
import os
import re
import secrets
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, create_engine, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable, describe_validation_error
from podeval.files import DiskFull, explain_write_errors, hash_file, resolve_inside
from podeval.operations import backup
from podeval.operations.backup import DATABASE, MANIFEST, RUNS, SECRET, SOUNDS, BackupManifest
from podeval.runs.run_folder import REPLACED, UPLOADS
from podeval.store.database import Database, find_damage, parse_address
from podeval.store.migrate import create_tables
from podeval.store.pseudonyms import erase
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput, Erasure, ListeningTest


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore.

    Attributes:
        backup: contents of the backup.
        forgotten: number of people who asked to be forgotten after the backup was made; they stay forgotten.
        settled: the result of `settle`.
        secret: path of the service's restored secret; None if the backup contains no secret.
        kept: folder with the replaced files; None if nothing was replaced.
    """

    backup: BackupManifest
    forgotten: int
    settled: list[str]
    secret: Path | None
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
    """Restore a backup.

    Args:
        path: path of the backup.
        database: a SQLite file or the address of a database of any kind; it must not be in use.
        runs: the folder of runs; it is created if it does not exist.
        force: whether to replace existing data. Replaced files are kept in a separate folder, but the replaced rows of
            a server are not kept.
        read_decisions: function that reads decisions from the replaced database, if that can still be read.
        settle: function that receives the new database before it is moved into place, the unpacked runs, and the
            decisions.

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
            erasures, decisions = _read_replaced(database, force, read_decisions)
            _check_schema(unpacked / DATABASE)
            with Database(unpacked / DATABASE) as copy:
                if wrong := find_damage(copy):
                    raise StoreUnusable(f"the database of the backup is damaged: {wrong}; use another backup")
                settled = settle(copy, new_runs, decisions)
                copy.write(lambda session: _point_into(session, manifest, runs.resolve(), new_runs))
                forgotten = copy.write(lambda session: _forget_again(session, erasures))
                if file is None:
                    _fill_server(copy, database)
            secret, kept = _move_in(unpacked, file, runs)
    except DiskFull as error:
        raise DiskFull("the disk is full; nothing was changed: free some space and restore again") from error
    return Restored(manifest, forgotten, settled, secret, kept)


def _unpack(path: Path, folder: Path, existing: set[str]) -> BackupManifest:
    """Unpack a backup into an empty folder, and compare every file with the manifest.

    The backup must not contain runs that exist already.
    """
    try:
        with tarfile.open(path) as tar:
            members = tar.getmembers()
            names = {member.name for member in members}
            if len(names) < len(members) or not all(member.isreg() and not member.issparse() for member in members):
                raise BadInput(
                    f"{path} contains links, devices, folders or a duplicate name, so it is not a backup; use another"
                )
            if outside := [name for name in names if not backup.is_of_backup(name)]:
                raise BadInput(f"{path} contains {outside[0]!r}, which points outside a backup; use another")
            if blocking := sorted(existing & {name.split("/")[1] for name in names if "/" in name}):
                raise BadInput(
                    f"the folder of runs already contains {', '.join(blocking[:3])}; choose another folder with "
                    "--runs, or replace them with --force (they are kept under another name)"
                )
            if sum(member.size for member in members) > shutil.disk_usage(folder).free:
                raise DiskFull(f"the disk is full: {folder} has no room for {path}")
            for member in members:
                with explain_write_errors(folder / member.name):
                    tar.extract(member, folder, set_attrs=False, filter="data")
        manifest = BackupManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else error
        raise BadInput(
            f"{path} cannot be read as a backup: it, or its manifest, is damaged or missing ({reason}); use another"
        ) from None
    if wrong := sorted((manifest.files.keys() | {MANIFEST}) ^ names):
        raise BadInput(f"{path} and its manifest differ in {', '.join(wrong[:3])}; use another backup")
    for name, entry in manifest.files.items():
        if hash_file(folder / name) != entry.sha256:
            raise BadInput(f"{path}: {name} has changed since the backup; use another backup")
    return manifest


def _read_replaced(
    database: str | Path, force: bool, read_decisions: Callable[[Database], list[Any]]
) -> tuple[dict[str, datetime], list[Any]]:
    """Read people's erasures and decisions from the database to be replaced."""
    url = parse_address(database)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return {}, []
    try:
        with Database(database) as opened, opened.reading() as session:
            if not force and any(session.execute(select(table).limit(1)).first() for table in backup.list_tables()):
                raise BadInput(
                    f"{opened.name} already contains votes or submissions; name another one, or replace it with "
                    "--force (a file is kept in another folder, but the rows of a server are not)"
                )
            erasures = {row.pseudonym: row.erased_at for row in session.scalars(select(Erasure))}
            return erasures, read_decisions(opened)
    except StoreUnusable as error:
        raise StoreUnusable(
            f"erasures and takedowns cannot be read from the database that is to be replaced ({error}); if you accept "
            "their loss, move that database away and restore again"
        ) from error


def _check_schema(file: Path) -> None:
    """Refuse a SQLite file if its schema is not exactly that of its version, for example because of a trigger."""
    engine, expected = create_engine(f"sqlite:///{file}"), create_engine("sqlite://")
    try:
        with engine.connect() as opened:
            versions = opened.scalars(text("SELECT version_num FROM alembic_version")).all()
            actual = _read_schema(opened)
    except DBAPIError as error:
        raise StoreUnusable(f"the database of the backup is damaged: {error.orig}; use another backup") from error
    finally:
        engine.dispose()
    create_tables(expected, str(versions[0]) if versions else "", "the backup")
    with expected.connect() as made:
        if wrong := sorted(name for _, name, *_ in actual ^ _read_schema(made)):
            raise StoreUnusable(
                f"the database of the backup differs from that of its version ({', '.join(wrong[:3])}); use another"
            )


def _read_schema(opened: Connection) -> set[tuple[str, str, str, str]]:
    """Read all definitions in a SQLite file, ignoring spaces and quotes, because these differ between versions."""
    query = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat_'"
    return {(kind, name, table, re.sub(r"[\s\"`]", "", sql)) for kind, name, table, sql in opened.execute(text(query))}


def _fill_server(copy: Database, database: str | Path) -> None:
    """Replace all rows on a server with the rows in a file, in one transaction; the tables themselves do not change."""
    with (
        Database(database) as target,
        backup.explain_copy_errors(f"the rows of the backup do not fit the tables of {target.name}"),
        copy.engine.connect() as rows,
        target.engine.begin() as written,
    ):
        # Numbering restarts inside the transaction too, so a refused row does not reset it.
        written.execute(text(f"TRUNCATE {', '.join(map(str, backup.list_tables()))} RESTART IDENTITY"))
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

    def locate_all(document: Any, name: str = "") -> Any:
        if isinstance(document, dict):
            return {key: locate_all(part, key) for key, part in document.items()}
        if isinstance(document, list):
            return [locate_all(part) for part in document]
        if name != "audio" or not isinstance(document, str) or document.startswith(("https://", "http://")):
            return document
        return document and (locate(document) or str(runs / SOUNDS / "absent"))

    columns: tuple[tuple[Any, str], ...]
    columns = ((ArenaOutput, "audio"), (SubmissionRow, "place"), (ArenaItem, "turns"), (ListeningTest, "design"))
    for table, column in columns:
        for row in session.scalars(select(table)):
            value = getattr(row, column)
            setattr(row, column, locate(value) if isinstance(value, str) else locate_all(value))


def _forget_again(session: Session, erasures: dict[str, datetime]) -> int:
    new = erasures.keys() - set(session.scalars(select(Erasure.pseudonym)))
    for pseudonym in sorted(new):
        erase(session, pseudonym, now=erasures[pseudonym])
    return len(new)


def _move_in(unpacked: Path, file: Path | None, runs: Path) -> tuple[Path | None, Path | None]:
    """Move the database, the runs and the secret into place; return the secret's path, and the folder with the replaced
    files.
    """
    kept = runs / f"{REPLACED}{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    beside = file or runs / "podeval"
    secret, new_secret = beside.with_name(f"{beside.name}.secret"), unpacked / SECRET
    moves = [(new, runs / new.name) for new in sorted((unpacked / RUNS).iterdir())]
    if file is not None:
        backup.merge_log(unpacked / DATABASE)
        if file.exists():
            backup.merge_log(file)
        moves.insert(0, (unpacked / DATABASE, file))
    has_secret = new_secret.exists()
    if has_secret and not (secret.exists() and filecmp.cmp(secret, new_secret, shallow=False)):
        new_secret.chmod(0o600)
        moves.append((new_secret, secret))
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
            except OSError:
                near.unlink(missing_ok=True)
                raise
            near.rename(target)
    os.sync()
    return secret if has_secret else None, kept if kept.exists() else None
