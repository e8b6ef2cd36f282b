"""Restore a database and a folder of runs from a backup, which is checked first and then moved into place.

Nothing existing is touched until everything is unpacked and its tables are of this version. What is replaced is kept
beside it, under a name with the time.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from podeval.errors import BadInput
from podeval.operations.backup import (
    DATABASE,
    DUMP,
    RUNS,
    SECRET,
    SOUNDS,
    Backup,
    read_contents,
)
from podeval.operations.backup_database import count_rows, put_back
from podeval.operations.backup_files import BackupReader
from podeval.operations.postgresql_dump import load_dump
from podeval.runs.run_folder import REPLACED, UPLOADS
from podeval.store.database import Database, parse_address
from podeval.store.files import write_whole
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput

Settle = Callable[[Path, Path], None]


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore.

    Attributes:
        backup: contents of the backup.
        rows: rows of the database, by table.
        forgotten: persons who asked to be forgotten after the backup was made, and still are.
        secret: path of the service's secret now; None where the backup holds none.
        kept: new paths of what was replaced.
    """

    backup: Backup
    rows: dict[str, int]
    forgotten: int
    secret: Path | None
    kept: list[Path]


def restore(
    path: Path,
    database: str | Path,
    runs: Path,
    *,
    force: bool = False,
    settle: Settle = lambda copy, unpacked_runs: None,
) -> Restored:
    """Restore a backup.

    Args:
        path: path of the backup.
        database: a SQLite file or a database address, not in use; it need not be of the kind that was backed up.
        runs: the folder of runs; it is made where it does not exist.
        force: replace what exists. Files are kept under other names, the rows of a server are not.
        settle: called with the unpacked database and the unpacked runs before anything is moved into place.

    Raises:
        BadInput: the backup is damaged, or something exists and `force` is not set, or the backup holds a dump of
            PostgreSQL and `pg_restore` is not there. Nothing was changed.
        StoreUnusable: the database is in use, or cannot be opened.
        DiskFull: the disk is full; nothing was changed.
    """
    with BackupReader(path) as reader:
        # Check the backup, and that nothing would be overwritten.
        backup = read_contents(reader)
        reader.check()
        if not force and runs.is_dir() and (blocking := _list_blocking(reader, runs)):
            raise BadInput(
                f"{runs} holds {', '.join(blocking[:3])} already; choose another folder with --runs, or replace them "
                "with --force (they are kept under another name)"
            )
        runs.mkdir(parents=True, exist_ok=True)
        unpacked = runs / f".restoring-{secrets.token_hex(4)}"
        # Prepare everything in a folder of its own.
        try:
            reader.unpack_all(unpacked)
            _read_dump(unpacked, reader, backup)
            settle(unpacked / DATABASE, unpacked / RUNS)
            (unpacked / RUNS / ".lock").unlink(missing_ok=True)
            _point_to_sounds(unpacked / DATABASE, reader.manifest, runs)
            _point_to_uploads(unpacked / DATABASE, reader.manifest, runs)
            # Move the database, the runs and the secret into place.
            done = put_back(unpacked / DATABASE, database, force=force)
            kept = [done.kept] if done.kept else []
            if (old := _move_in(unpacked, runs)) is not None:
                kept.append(old)
            secret = _put_secret(unpacked / SECRET, database, runs, kept) if backup.secret else None
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
    return Restored(backup, done.rows, done.forgotten, secret, kept)


def _read_dump(unpacked: Path, reader: BackupReader, backup: Backup) -> None:
    """Turn the dump of a server, where the backup holds one, into a SQLite file, and compare its rows."""
    if not (unpacked / DUMP).exists():
        return
    load_dump(unpacked / DUMP, str(reader.manifest.get("revision")), unpacked / DATABASE)
    (unpacked / DUMP).unlink()
    if count_rows(unpacked / DATABASE) != backup.rows:
        raise BadInput(f"the database in {reader.path} does not have the rows that its manifest lists; use another one")


def _list_blocking(reader: BackupReader, runs: Path) -> list[str]:
    names = {name.split("/")[1] for name in reader.manifest["files"] if name.startswith(f"{RUNS}/")}
    return sorted(name for name in names if (runs / name).exists())


def _move_in(unpacked: Path, runs: Path) -> Path | None:
    """Move runs and recordings into place; return the folder that keeps the replaced ones, if there were any."""
    old = runs / f"{REPLACED}{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    moved = sorted((unpacked / RUNS).iterdir()) if (unpacked / RUNS).is_dir() else []
    if (unpacked / SOUNDS).is_dir():
        moved.append(unpacked / SOUNDS)
    for path in moved:
        target = runs / path.name
        if target.exists():
            old.mkdir(exist_ok=True)
            target.rename(old / path.name)
        path.rename(target)
    return old if old.is_dir() else None


def _point_to_sounds(copy: Path, manifest: dict[str, Any], runs: Path) -> None:
    """Change the paths of the arena's recordings to their future places."""
    before, now = str(manifest["runs"]), runs.resolve()
    sounds: dict[str, str] = manifest["sounds"]

    # Translate a path of the backed-up machine to this one.
    def locate(path: str) -> str:
        if path in sounds:
            return str(now / sounds[path])
        inside = before and path.startswith(before + os.sep)
        return str(now / path[len(before) + 1 :]) if inside else path

    # Change the paths of outputs and of users' turns in items.
    def work(session: Any) -> None:
        for output in session.scalars(select(ArenaOutput).where(ArenaOutput.audio != "")):
            output.audio = locate(output.audio)
        for item in session.scalars(select(ArenaItem)):
            turns = [{**turn, "audio": locate(turn["audio"])} if turn.get("audio") else turn for turn in item.turns]
            if turns != item.turns:
                item.turns = turns

    with Database(copy) as opened:
        opened.write(work)


def _point_to_uploads(copy: Path, manifest: dict[str, Any], runs: Path) -> None:
    """Change the folder of the submissions of uploaded recordings to its future place, which others do not read."""
    before, now = str(Path(manifest["runs"], UPLOADS)), str(runs.resolve() / UPLOADS)
    uploads = copy.parent / RUNS / UPLOADS
    if uploads.is_dir():
        uploads.chmod(0o700)

    def work(session: Any) -> None:
        session.execute(update(SubmissionRow).where(SubmissionRow.place == before).values(place=now))

    with Database(copy) as opened:
        opened.write(work)


def _put_secret(file: Path, database: str | Path, runs: Path, kept: list[Path]) -> Path:
    """Move the secret beside the database where that is a file, else beside the runs; return its path."""
    url = parse_address(database)
    target = Path(f"{url.database}.secret") if url.get_backend_name() == "sqlite" else runs / "podeval.secret"
    content = file.read_bytes()
    if target.exists():
        if target.read_bytes() == content:
            return target
        old = target.with_name(f"{target.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        target.rename(old)
        kept.append(old)
    with _private():
        write_whole(target, content)
    return target


@contextlib.contextmanager
def _private() -> Any:
    """Make files created meanwhile readable by their owner alone."""
    before: int = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
