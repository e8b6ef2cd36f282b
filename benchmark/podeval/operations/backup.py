"""Back up everything that cannot be recreated: judgements, submissions, uploads, runs and the arena's recordings.

The site and the workers keep running during the backup. The database is copied first, in one consistent state; then the
files are copied in one pass, each before the files that it refers to. A restored backup is a state that existed; later
votes are read back from the public log and the bucket.

A backup is a tar file that contains the database as one SQLite file, the folder of runs, and a manifest of lengths and
SHA-256 sums.
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
from sqlalchemy import Connection, NullPool, Table, create_engine, func, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from podeval.audio.container import AUDIO_ENDINGS
from podeval.errors import BadInput, StoreUnusable
from podeval.files import DiskFull, append_line, explain_write_errors, find_end_of_last_line, sync_folder
from podeval.runs.run_folder import BACKUPS, SUPERSEDED, UPLOADS
from podeval.store import operator_settings, submission_tables, vote_counts  # noqa: F401 - makes their tables known
from podeval.store.database import Database, parse_address
from podeval.store.secret import read_secret
from podeval.store.tables import ArenaItem, ArenaOutput, ListeningTest, TableBase, list_audio
from podeval.version import __version__

DATABASE, SECRET, RUNS, MANIFEST = "database.sqlite", "secret", "runs", "manifest.json"
"""Names of files and of the folder of runs in a backup."""

SOUNDS = "sounds"
"""Folder in the folder of runs for recordings that were stored elsewhere."""

_NO_RUN = re.compile(r"\.(db|secret)(-wal|-shm|-journal)?(\.before-.*)?$")
"""Databases and secrets in the folder of runs, which are skipped; the necessary ones are backed up separately."""

_ENDINGS = (".tar", ".tar.gz", ".tgz")
_ROWS = 2_000
"""Maximum number of rows in memory at once."""
_LOG = logging.getLogger("podeval.operations")


class BackedUpFile(BaseModel):
    """The length and the SHA-256 sum of a file in a backup."""

    bytes: int
    sha256: str


class BackupManifest(BaseModel):
    """The contents of a backup.

    Attributes:
        made_at: the time when the backup began.
        podeval: the version of podeval.
        kind: the kind of database that was backed up.
        rows: the number of rows in each table.
        runs: the path of the folder of runs.
        sounds: the names of the recordings that were outside the folder of runs, by their paths in the database.
        files: the length and the hash of each file, by name.
    """

    schema_version: Literal[1] = Field(alias="schema")
    made_at: str
    podeval: str
    kind: str
    rows: dict[str, int]
    runs: str
    sounds: dict[str, str]
    files: dict[str, BackedUpFile]

    def describe(self) -> str:
        """Describe the contents in a few words."""
        votes, submissions = self.rows.get("votes", 0), self.rows.get("submissions", 0)
        runs = sum(name.endswith("/run.json") for name in self.files)
        return f"{votes} votes, {submissions} submissions, {runs} runs"


def make_backup(target: Path, database: str | Path, runs: Path, *, with_secret: bool = False) -> BackupManifest:
    """Make a backup; it is complete and synced to disk when this returns.

    Args:
        target: a new file, whose name ends in `.tar`, `.tar.gz` or `.tgz`.
        database: a SQLite file or a database address; it may be in use.
        runs: the folder of runs; it need not exist.
        with_secret: whether to include the secret; together with the database, it identifies the person behind each
            pseudonym.

    Raises:
        BadInput: there is no such database, or the target exists or has a different extension.
        StoreUnusable: the database is damaged, does not respond, or is on a server and its tables are from another
            version.
        DiskFull: the disk is full; no backup was made.
    """
    if not target.name.endswith(_ENDINGS):
        raise BadInput(f"{target} does not end in {' or '.join(_ENDINGS)}; give the backup such a name")
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
                _LOG.warning("later takedowns cannot be noted next to %s: %s", target, error)
        with explain_write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            # Use a folder that nobody else can read, that is removed completely, and that takedowns recognise.
            with tempfile.TemporaryDirectory(".partial", f".{target.name}.", target.absolute().parent) as folder:
                manifest = _write(Path(folder, target.name), database, runs.resolve(), secret)
                Path(folder, target.name).replace(target)
            sync_folder(target.parent)
    except DiskFull as error:
        raise DiskFull(f"the disk is full, so {target} was not written; free some space and try again") from error
    return manifest


def _write(archive: Path, database: str | Path, runs: Path, secret: bytes | None) -> BackupManifest:
    """Write a backup into an empty folder, and sync it."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    own = {name: archive.with_name(name) for name in (DATABASE, SECRET, MANIFEST)}
    rows = copy_database(database, own[DATABASE])
    if secret is not None:
        own[SECRET].write_bytes(secret)
    # Recordings outside the runs get names that no earlier restore used.
    outside = [path for path in _list_sounds(own[DATABASE]) if not (runs / path).resolve().is_relative_to(runs)]
    sounds = {path: f"{RUNS}/{SOUNDS}/{secrets.token_hex(8)}{Path(path).suffix}" for path in sorted(outside)}
    members: Iterator[tuple[str, Path]] = chain(
        ((name, own[name]) for name in (DATABASE, SECRET)),
        ((f"{RUNS}/{path.relative_to(runs).as_posix()}", path) for path in _list_files(runs)),
        ((member, runs / path) for path, member in sounds.items()),
    )
    archive.touch(0o600)
    compressed: dict[str, Any] = {"mode": "w"} if archive.suffix == ".tar" else {"mode": "w:gz", "compresslevel": 3}
    with tarfile.open(archive, **compressed) as tar:
        files = {name: entry for name, path in members if (entry := _add_file(tar, name, path))}
        for path in (path for path, member in sounds.items() if member not in files):
            _LOG.warning("a recording of the arena no longer exists and so is not in the backup: %s", path)
        sounds = {path: member for path, member in sounds.items() if member in files}
        manifest = BackupManifest(
            schema=1, made_at=made_at, podeval=__version__, kind=parse_address(database).get_backend_name(), rows=rows,
            runs=str(runs), sounds=sounds, files=files,
        )  # fmt: skip
        own[MANIFEST].write_text(manifest.model_dump_json(by_alias=True), encoding="utf-8")
        _add_file(tar, MANIFEST, own[MANIFEST])
    with archive.open("rb") as written:
        os.fsync(written.fileno())
    return manifest


def _list_files(runs: Path) -> Iterator[Path]:
    """Yield the files of a folder of runs, each before the files that it refers to.

    Each kind of file is listed only after the previous kinds have been added: summaries, results, protocols and
    outputs, recordings.
    """

    def order(path: Path) -> int:
        if path.suffix[1:] in AUDIO_ENDINGS:
            return 3
        return 0 if path.name in ("summary.json", "board.parquet", "items.parquet") else 1 + (path.suffix != ".jsonl")

    for kind in range(4):
        for folder, folders, names in os.walk(runs):
            folders[:] = [name for name in folders if not name.startswith(".") or name in (SUPERSEDED, UPLOADS)]
            for path in (Path(folder, name) for name in names if not name.startswith(".")):
                if order(path) == kind and not _NO_RUN.search(path.name) and path.is_file():
                    yield path


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> BackedUpFile | None:
    """Add a file as it is now, up to its last complete line; return its entry, or None if there is no file."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; run as its owner") from error
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
    return BackedUpFile(bytes=member.size, sha256=digest.hexdigest())


def is_of_backup(name: str) -> bool:
    """Return whether a backup may contain a file of this name: one of its own, or one inside the folder of runs."""
    path = PurePosixPath(name)
    inside = len(path.parts) > 1 and path.parts[0] == RUNS and ".." not in path.parts and not _NO_RUN.search(path.name)
    return name in (DATABASE, SECRET, MANIFEST) or (inside and str(path) == name and "\x00" not in name)


def list_tables() -> list[Table]:
    """List all tables, each after the tables that it refers to."""
    return TableBase.metadata.sorted_tables


def copy_database(database: str | Path, file: Path) -> dict[str, int]:
    """Copy a database that may be in use, in one consistent state, to a new SQLite file; count the rows of its tables.

    Raises:
        BadInput: there is no such database.
        StoreUnusable: the database is damaged, does not respond, or is on a server and its tables are from another
            version.
        DiskFull: there is not enough disk space for the copy.
    """
    url = parse_address(database)
    with explain_copy_errors(f"the database {url.render_as_string()} cannot be copied"):
        if url.get_backend_name() == "sqlite":
            if not Path(str(url.database)).is_file():
                raise BadInput(f"there is no database {url.database}; name the one to back up")
            with (
                contextlib.closing(sqlite3.connect(str(url.database), timeout=60)) as opened,
                contextlib.closing(sqlite3.connect(file)) as copied,
            ):
                opened.backup(copied)
        else:
            with Database(database, migrate=False) as server, Database(file) as copy:
                one_state = server.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                with one_state.connect() as rows, copy.engine.begin() as written:
                    copy_rows(rows, written)
        merge_log(file)
        return _count_rows(file)


@contextlib.contextmanager
def explain_copy_errors(problem: str) -> Iterator[None]:
    """Convert the errors of a database into errors that state the problem; nothing has been changed."""
    try:
        yield
    except (sqlite3.DatabaseError, DBAPIError) as error:
        # The text of SQLAlchemy's errors contains the row; the driver's first line does not.
        reason = str(getattr(error, "orig", error)).partition("\n")[0]
        if "full" in reason or "disk I/O" in reason:
            raise DiskFull(f"the disk is full: {problem}; free some space and try again") from error
        raise StoreUnusable(
            f"{problem} ({reason}); nothing was changed, and `podeval arena status` checks a database"
        ) from error


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy all rows that a connection sees into the empty tables of another database."""
    for table in list_tables():
        # Copy rows that refer to other rows of their table after rows that do not.
        refers_to_itself = [key.parent.is_not(None) for key in table.foreign_keys if key.column.table is table]
        query = select(table).order_by(*refers_to_itself, *table.primary_key)
        for part in source.execute(query, execution_options={"yield_per": _ROWS}).mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part])
        # A server continues numbering after the highest number; without a sequence or a row, `setval` does nothing.
        number = table.autoincrement_column
        if number is not None and target.dialect.name != "sqlite":
            sequence = func.pg_get_serial_sequence(table.name, number.name)
            target.execute(select(func.setval(sequence, func.max(number))))


def merge_log(file: Path) -> None:
    """Write the write-ahead log of a SQLite file into the file.

    Raises:
        StoreUnusable: another process has the file open.
    """
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=0.2)) as opened:
        try:
            opened.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreUnusable(f"podeval is running on {file}; stop its site and workers, then restore") from error
            raise


def _count_rows(file: Path) -> dict[str, int]:
    """Check a SQLite file, and count the rows in each of its tables."""
    with contextlib.closing(sqlite3.connect(file)) as opened:
        if (whole := opened.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(whole)
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        tables = [name for (name,) in opened.execute(names)]
        return {name: opened.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608 - names of its own tables


def _list_sounds(file: Path) -> set[str]:
    """List the paths of all recordings that the arena and the listening tests in a copy use."""
    with Session(create_engine(f"sqlite:///{file}", poolclass=NullPool)) as session:
        played: list[Any] = [{"audio": path} for path in session.scalars(select(ArenaOutput.audio))]
        documents = [*session.scalars(select(ArenaItem.turns)), *session.scalars(select(ListeningTest.design))]
    return {path for path in list_audio([played, documents]) if path and "://" not in path}
