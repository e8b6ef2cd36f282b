"""Back up everything that cannot be recreated: judgements, submissions, uploads, runs and the arena's recordings.

The site and the workers keep running during the backup. The database is copied first, in one consistent state; then the
files are copied in one pass, each before the files that it refers to. A restored backup is a state that existed; later
votes are read back from the public log and the bucket.

A backup is a tar file with the database as one SQLite file, the folder of runs, and a manifest of SHA-256 sums.
"""

import contextlib
import hashlib
import logging
import os
import re
import secrets
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, Field
from sqlalchemy import Connection, NullPool, TableClause, create_engine, func, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from podeval.audio.container import AUDIO_ENDINGS
from podeval.errors import BadInput, StoreUnusable
from podeval.files import DiskFull, append_line, explain_write_errors, find_end_of_last_line, sync_folder
from podeval.runs.run_folder import BACKUPS, SUPERSEDED, UPLOADS
from podeval.store import operator_settings, submission_tables, vote_counts  # noqa: F401 - makes their tables known
from podeval.store.database import Database, parse_address
from podeval.store.migrate import upgrade
from podeval.store.secret import read_secret
from podeval.store.tables import ArenaItem, ArenaOutput, ListeningTest, TableBase, list_audio

DATABASE, SECRET, RUNS, MANIFEST, SOUNDS = "database.sqlite", "secret", "runs", "manifest.json", "sounds"
"""Names in a backup: its files, the folder of runs, and the folder in it for recordings that were stored elsewhere."""

_NO_RUN = re.compile(r"^\.|\.(db|secret)(-wal|-shm|-journal)?(\.before-.*)?$")
"""Hidden files, and databases and secrets in the folder of runs; the ones that are needed are backed up separately."""

_ENDINGS = (".tar", ".tar.gz", ".tgz")
_AUDIO = tuple(f".{ending}" for ending in AUDIO_ENDINGS)
_LOG = logging.getLogger("podeval.operations")


class BackupManifest(BaseModel):
    """The contents of a backup.

    Attributes:
        made_at: the time when the backup began.
        contents: the numbers of votes, submissions and runs, in words.
        runs: the path of the folder of runs.
        sounds: the names of the recordings that were outside the folder of runs, by their paths in the database.
        files: the SHA-256 sums of the files, by name.
    """

    schema_version: Literal[2] = Field(alias="schema")
    made_at: str
    contents: str
    runs: str
    sounds: dict[str, str]
    files: dict[str, str]


def make_backup(target: Path, database: str | Path, runs: Path, *, with_secret: bool = False) -> BackupManifest:
    """Make a backup; it is complete and synced to disk when this returns.

    The target is a new file named `.tar`, `.tar.gz` or `.tgz`. The database, a SQLite file or an address, may be in
    use; the folder of runs need not exist. A backup `with_secret` identifies the person behind each pseudonym.

    Raises:
        BadInput: there is no such database, or the target exists or has another extension.
        StoreUnusable: the database is damaged or does not respond, or a server's tables are from another version.
        DiskFull: the disk is full; no backup was made.
    """
    if not target.name.endswith(_ENDINGS):
        raise BadInput(f"{target} does not end in {' or '.join(_ENDINGS)}; choose a name with one of these endings")
    if target.exists():
        raise BadInput(f"{target} already exists; give every backup a different name")
    secret = read_secret(parse_address(database)) if with_secret else None
    if with_secret and secret is None:
        raise BadInput("there is no secret to back up: PODEVAL_SECRET is not set, and no file is next to the database")
    try:
        if runs.is_dir():
            # A later takedown is noted next to the backup, even if the backup is not complete yet.
            try:
                append_line(runs / BACKUPS, {"path": str(target.resolve())})
            except BadInput as error:
                _LOG.warning("later takedowns cannot be recorded next to the backup %s: %s", target, error)
        with explain_write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            # Use a folder that nobody else can read, that is removed completely, and that takedowns recognise.
            with tempfile.TemporaryDirectory(".partial", f".{target.name}.", target.absolute().parent) as folder:
                manifest = _write(Path(folder, target.name), database, runs.resolve(), secret)
                Path(folder, target.name).replace(target)
            sync_folder(target.parent)
    except DiskFull as error:
        raise DiskFull(f"the disk is full, so {target} was not written: free some space and try again") from error
    return manifest


def _write(archive: Path, database: str | Path, runs: Path, secret: bytes | None) -> BackupManifest:
    """Write a backup into an empty folder, and sync it."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    database_copy, secret_copy, manifest_file = (archive.with_name(name) for name in (DATABASE, SECRET, MANIFEST))
    rows, recordings = copy_database(database, database_copy)
    if secret is not None:
        secret_copy.write_bytes(secret)
    # Recordings outside the runs get names that no earlier restore used.
    outside = [path for path in sorted(recordings) if not (runs / path).resolve().is_relative_to(runs)]
    sounds = {path: f"{RUNS}/{SOUNDS}/{secrets.token_hex(8)}{Path(path).suffix}" for path in outside}
    members = chain(
        ((DATABASE, database_copy), (SECRET, secret_copy)),
        _list_runs(runs),
        ((member, runs / path) for path, member in sounds.items()),
    )
    archive.touch(0o600)
    compressed: dict[str, Any] = {"mode": "w"} if archive.suffix == ".tar" else {"mode": "w:gz", "compresslevel": 3}
    with tarfile.open(archive, **compressed) as tar:
        files = {name: digest for name, path in members if (digest := _add_file(tar, name, path))}
        for path in (path for path in outside if sounds[path] not in files):
            _LOG.warning("a recording of the arena no longer exists, so it is not in the backup: %s", path)
            del sounds[path]
        counts = [rows.get("votes", 0), rows.get("submissions", 0), sum(name.endswith("/run.json") for name in files)]
        contents = "{} votes, {} submissions, {} runs".format(*counts)
        manifest = BackupManifest(
            schema=2, made_at=made_at, contents=contents, runs=str(runs), sounds=sounds, files=files
        )
        manifest_file.write_text(manifest.model_dump_json(by_alias=True), encoding="utf-8")
        _add_file(tar, MANIFEST, manifest_file)
    with archive.open("rb") as written:
        os.fsync(written.fileno())
    return manifest


def _list_runs(runs: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files in a folder of runs and their names in a backup, each before the files that it refers to.

    A folder is listed only after the files in earlier folders have been added.
    """
    for recordings in (False, True):
        for folder, folders, names in os.walk(runs):
            visible = (name for name in folders if not name.startswith(".") or name in (SUPERSEDED, UPLOADS))
            folders[:] = sorted(visible, key=lambda name: name == "outputs")
            chosen = [name for name in names if name.endswith(_AUDIO) == recordings and not _NO_RUN.search(name)]
            # In reverse order, a summary comes before the results, and these come before the protocols.
            for path in (Path(folder, name) for name in sorted(chosen, reverse=True)):
                if path.is_file():
                    yield f"{RUNS}{folder.removeprefix(str(runs))}/{path.name}", path


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> str | None:
    """Add a file as it is now, up to its last complete line; return its SHA-256, or None if there is no file."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; run the command as the owner of the file") from error
    digest = hashlib.sha256()

    def read(size: int) -> bytes:
        block = file.read(size)
        digest.update(block)
        return block

    with file:
        member = tarfile.TarInfo(name)
        # A line that is still being written is left out.
        member.size = find_end_of_last_line(file) if path.suffix == ".jsonl" else os.fstat(file.fileno()).st_size
        member.mode = 0o600
        file.seek(0)
        tar.addfile(member, SimpleNamespace(read=read))
    return digest.hexdigest()


def is_of_backup(name: str) -> bool:
    """Return whether a backup may contain a file of this name: one of its own, or one inside the folder of runs."""
    path = PurePosixPath(name)
    inside = len(path.parts) > 1 and path.parts[0] == RUNS and ".." not in path.parts and not _NO_RUN.search(path.name)
    return name in (DATABASE, SECRET, MANIFEST) or (inside and str(path) == name and "\x00" not in name)


def copy_database(database: str | Path, file: Path) -> tuple[dict[str, int], set[str]]:
    """Copy a database that may be in use, in one consistent state, to a new SQLite file; see `make_backup` for errors.

    Return the number of rows in each table, and the paths of the recordings that the arena and listening tests use.
    """
    url, copy = parse_address(database), create_engine(f"sqlite:///{file}", poolclass=NullPool)
    with explain_copy_errors(
        f"{url.render_as_string()} cannot be copied", "check the database with `podeval arena status`"
    ):
        if url.get_backend_name() == "sqlite":
            if not Path(str(url.database)).is_file():
                raise BadInput(f"there is no database {url.database}; specify the database to back up")
            # Unlike a copy of the pages, this leaves out what remains of deleted rows.
            with contextlib.closing(sqlite3.connect(str(url.database), timeout=60)) as opened:
                opened.execute("VACUUM INTO ?", (str(file),))
        else:
            upgrade(copy, str(file))
            with Database(database, migrate=False) as server:
                one_state = server.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                with one_state.connect() as rows, copy.begin() as written:
                    copy_rows(rows, written)
        with Session(copy) as session:
            if (whole := session.scalar(text("PRAGMA integrity_check"))) != "ok":
                raise sqlite3.DatabaseError(whole)
            names = inspect(session.connection()).get_table_names()
            counts = {name: session.scalar(select(func.count()).select_from(TableClause(name))) or 0 for name in names}
            played = [{"audio": path} for path in session.scalars(select(ArenaOutput.audio))]
            documents = [*session.scalars(select(ArenaItem.turns)), *session.scalars(select(ListeningTest.design))]
    return counts, {path for path in list_audio([played, documents]) if path and "://" not in path}


@contextlib.contextmanager
def explain_copy_errors(problem: str, remedy: str) -> Iterator[None]:
    """Convert the errors of a database into errors that state the problem and the remedy; nothing has been changed."""
    try:
        yield
    except (sqlite3.DatabaseError, DBAPIError) as error:
        # The text of SQLAlchemy's errors contains the row; the driver's first line does not.
        reason = str(getattr(error, "orig", error)).partition("\n")[0]
        if "full" in reason or "disk I/O" in reason:
            raise DiskFull(f"the disk is full: {problem}; free some space and try again") from error
        raise StoreUnusable(f"{problem} ({reason}); nothing was changed: {remedy}") from error


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy all rows that a connection sees, 2,000 at a time, into the empty tables of another database."""
    for table in TableBase.metadata.sorted_tables:
        # Copy rows that refer to other rows of their table after those that do not.
        refers_to_itself = [key.parent.is_not(None) for key in table.foreign_keys if key.column.table is table]
        query = select(table).order_by(*refers_to_itself, *table.primary_key)
        for part in source.execute(query, execution_options={"yield_per": 2_000}).mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part])
        # A server continues numbering after the highest number; without a sequence or a row, `setval` does nothing.
        number = table.autoincrement_column
        if number is not None and target.dialect.name != "sqlite":
            sequence = func.pg_get_serial_sequence(table.name, number.name)
            target.execute(select(func.setval(sequence, func.max(number))))
