"""Restore a database and a folder of runs from a backup: check and unpack it first, then move the files into place.

Existing data is not touched until everything is unpacked and the restored tables are of this version. Replaced files
are kept next to the new ones, with a timestamp in their names; replaced rows of a server are not kept.
"""

import contextlib
import filecmp
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

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable
from podeval.files import DiskFull, explain_write_errors, resolve_inside
from podeval.operations.backup import DATABASE, RUNS, SECRET, SOUNDS, Backup, BackupReader
from podeval.operations.backup_database import check_schema, count_rows, fill_server, list_tables, merge_log
from podeval.runs.run_folder import REPLACED, UPLOADS
from podeval.store.database import Database, find_damage, parse_address
from podeval.store.pseudonyms import erase
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput, Erasure, ListeningTest

_LOG = logging.getLogger("podeval.operations")


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore.

    Attributes:
        backup: contents of the backup.
        rows: number of rows in each table of the database.
        forgotten: number of people who asked to be forgotten after the backup was made; they stay forgotten.
        settled: the result of `settle`.
        secret: path of the restored secret of the service; None if the backup contains no secret.
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
    read_decisions: Callable[[Database], list[Any]] = lambda replaced: [],
    settle: Callable[[Database, Path, list[Any]], list[str]] = lambda copy, unpacked_runs, decisions: [],
) -> Restored:
    """Restore a backup.

    Args:
        path: path of the backup.
        database: a SQLite file or the address of a database of any kind; it must not be in use.
        runs: the folder of runs; it is created if it does not exist.
        force: replace existing data. Replaced files are kept under other names, but the replaced rows of a server are
            not.
        read_decisions: function that reads decisions from the replaced database, if that can still be read.
        settle: function that receives the new database before it is moved into place, the unpacked runs, and the
            decisions.

    Raises:
        BadInput: the backup is damaged, or data exists and `force` is not set. Nothing was changed.
        StoreUnusable: the database is in use, or cannot be opened, or a server refuses a row.
        DiskFull: the disk is full; nothing was changed.
    """
    url, moment = parse_address(database), f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    try:
        with BackupReader(path) as reader:
            names = {name.split("/")[1] for name in reader.manifest["files"] if name.startswith(f"{RUNS}/")}
            if not force and (blocking := sorted(name for name in names if (runs / name).exists())):
                raise BadInput(
                    f"{runs} already contains {', '.join(blocking[:3])}; choose another folder with --runs, or "
                    "replace them with --force (they are kept under another name)"
                )
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
                    if file is None:
                        fill_server(copy, database)
                rows = count_rows(unpacked / DATABASE)
                secret, kept = _move_in(unpacked, file, runs, moment)
    except DiskFull as error:
        raise DiskFull("the disk is full; nothing was changed: free some space and restore again") from error
    return Restored(reader.contents, rows, forgotten, settled, secret, kept)


def _read_replaced(
    database: str | Path, file: Path | None, force: bool, read_decisions: Callable[[Database], list[Any]]
) -> tuple[dict[str, datetime], list[Any]]:
    """Read people's erasures and decisions from the database to be replaced, as far as it is still readable."""
    if file is not None and not file.exists():
        return {}, []
    try:
        with Database(database) as opened, opened.reading() as session:
            has_rows = any(session.execute(select(table).limit(1)).first() for table in list_tables())
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


def _point_into(session: Session, manifest: dict[str, Any], runs: Path, unpacked: Path) -> None:
    """Change the recordings' paths to their future locations in the folder of runs, so that none leads outside it."""
    before = Path(manifest["runs"])
    sounds = {path: name.removeprefix(f"{RUNS}/") for path, name in manifest["sounds"].items()}

    def locate(path: str) -> str:
        with contextlib.suppress(ValueError, BadInput):
            name = sounds.get(path) or str((before / path).relative_to(before.absolute()))
            resolve_inside(unpacked, name)
            return str(runs / name)
        return ""

    def locate_all(document: Any, name: str = "") -> Any:
        if isinstance(document, dict):
            return {key: locate_all(part, key) for key, part in document.items()}
        if isinstance(document, list):
            return [locate_all(part) for part in document]
        if name != "audio" or not isinstance(document, str) or document.startswith(("https://", "http://")):
            return document
        return document and (locate(document) or str(runs / SOUNDS / "absent"))

    for output in session.scalars(select(ArenaOutput)):
        output.audio = locate(output.audio)
    for item in session.scalars(select(ArenaItem)):
        item.turns = locate_all(item.turns)
    for test in session.scalars(select(ListeningTest)):
        test.design = locate_all(test.design)
    for submission in session.scalars(select(SubmissionRow)):
        submission.place = locate(submission.place)


def _forget_again(session: Session, erasures: dict[str, datetime]) -> int:
    new = erasures.keys() - set(session.scalars(select(Erasure.pseudonym)))
    for pseudonym in sorted(new):
        erase(session, pseudonym, now=erasures[pseudonym])
    return len(new)


def _move_in(unpacked: Path, file: Path | None, runs: Path, moment: str) -> tuple[Path | None, list[Path]]:
    """Move the database, the runs and the secret into place; return the secret's path, and those of replaced files."""
    beside = file or runs / "podeval"
    secret, old_runs = beside.with_name(f"{beside.name}.secret"), runs / f"{REPLACED}{moment}"
    old_file, old_secret = (path.with_name(f"{path.name}.before-{moment}") for path in (beside, secret))
    if file is not None:
        merge_log(unpacked / DATABASE)
        if file.exists():
            with contextlib.suppress(sqlite3.DatabaseError):
                merge_log(file)
        _replace(unpacked / DATABASE, file, old_file)
    for path in sorted((unpacked / RUNS).iterdir()):
        _replace(path, runs / path.name, old_runs / path.name)
    new_secret, contains_secret = unpacked / SECRET, (unpacked / SECRET).exists()
    if contains_secret and not (secret.exists() and filecmp.cmp(secret, new_secret, shallow=False)):
        new_secret.chmod(0o600)
        _replace(new_secret, secret, old_secret)
    return secret if contains_secret else None, [path for path in (old_file, old_runs, old_secret) if path.exists()]


def _replace(new: Path, target: Path, old: Path) -> None:
    """Move a file or folder to `target`, and the one that it replaces, with a damaged database's log, to `old`."""
    near = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    # Copy to the target's disk first; it may be a different disk, and it may be full or not writable.
    with explain_write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.move(new, near)
        except OSError:
            near.unlink(missing_ok=True)
            raise
        if target.exists():
            old.parent.mkdir(exist_ok=True)
            for ending in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{target}{ending}").rename(f"{old}{ending}")
        near.rename(target)
