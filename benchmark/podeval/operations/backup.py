"""Back up everything that cannot be made again: judgements, submissions, uploads, runs, recordings of the arena.

The site and the workers go on meanwhile. The database is copied first, in one consistent state; then the runs, derived
files before the files they derive from, so that nothing in the backup refers to what is not in it. A restored backup is
a state that existed; later votes come back from the public log and the bucket, where there are any.
"""

import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.errors import BadInput
from podeval.operations.backup_database import copy_database, count_rows
from podeval.operations.backup_files import BackupReader, BackupWriter
from podeval.operations.postgresql_dump import count_dumped_rows
from podeval.runs.run_folder import SUPERSEDED, UPLOADS
from podeval.store.database import parse_address
from podeval.store.secret import read_secret

DATABASE, DUMP, SECRET, RUNS, SOUNDS = "database.sqlite", "database.dump", "secret", "runs", "sounds"
"""Names of three files, the database's by its kind, and two folders in a backup."""

_DERIVED = ("summary.json", "board.parquet", "items.parquet")
_NO_RUN = re.compile(r"\.(db|secret)(-wal|-shm|-journal)?(\.before-.*)?(-wal|-shm)?$")
"""Databases and secrets that lie with the runs: what is to be backed up of them is backed up by itself."""


@dataclass(frozen=True)
class Backup:
    """The contents of a backup."""

    made_at: str
    database: str
    """Kind of the original database, `sqlite` or `postgresql`."""
    rows: dict[str, int]
    runs: int
    uploads: int
    """Uploads of recordings, submitted or not."""
    files: int
    bytes: int
    secret: bool
    """Whether the service's secret is in it."""
    audio: bool
    """Whether recordings are in it."""
    absent: list[str] = field(default_factory=list)
    """Recordings of the arena that were not where the database says."""


def make_backup(
    target: Path, database: str | Path, runs: Path | None, *, with_secret: bool = False, with_audio: bool = True
) -> Backup:
    """Make a backup; it is complete and synced to disk when this returns.

    Args:
        target: a new file, whose name ends in `.tar`, `.tar.gz` or `.tgz`.
        database: a SQLite file or a database address; may be in use.
        runs: the folder of runs, if there is one.
        with_secret: include the secret that pseudonyms are made with: with it and the database, one can tell which
            pseudonym is whose. Without it, keep it elsewhere.
        with_audio: include recordings; without them, restored runs can be read and not measured again, and what
            people uploaded is not there.

    Raises:
        BadInput: there is no such database or folder, the target exists, or its name does not end as a backup's does.
            Or the database is PostgreSQL's, and `pg_dump` is not there or older than the server.
        StoreUnusable: the database is damaged or does not answer.
        DiskFull: the disk is full; no backup was made.
    """
    if runs is not None and not runs.is_dir():
        raise BadInput(f"there is no folder of runs {runs}; name another with --runs")
    secret = read_secret(parse_address(database)) if with_secret else None
    if with_secret and secret is None:
        raise BadInput("there is no secret to back up: neither PODEVAL_SECRET nor a file beside the database")
    with BackupWriter(target) as writer, tempfile.TemporaryDirectory(dir=_find_parent(target)) as folder:
        name = DATABASE if parse_address(database).get_backend_name() == "sqlite" else DUMP
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        copied = copy_database(database, Path(folder) / name)
        manifest: dict[str, Any] = {
            # What is dumped, a former podeval cannot read.
            "schema": 2 if name == DUMP else 1,
            "made_at": made_at, "podeval": _version(), "kind": copied.kind, "rows": copied.rows, "audio": with_audio,
            "runs": str(runs.resolve()) if runs else "", "sounds": {}, "absent": [], "revision": copied.revision,
        }  # fmt: skip
        _add_file(writer, name, Path(folder) / name)
        if secret is not None:
            writer.add(SECRET, io.BytesIO(secret), len(secret))
        if runs is not None:
            uploads = _list_uploads(runs.resolve()) if with_audio else ()
            for path in chain(_list_files(runs.resolve(), with_audio), uploads):
                _add_file(writer, f"{RUNS}/{path.relative_to(runs.resolve()).as_posix()}", path)
        if with_audio:
            _add_sounds(writer, manifest, copied.sounds, runs.resolve() if runs else None)
        writer.finish(manifest)
    return verify(target, thoroughly=False)


def verify(backup_path: Path, *, thoroughly: bool = True) -> Backup:
    """Compare every file of a backup with its manifest and check its database; return its contents.

    Args:
        backup_path: path of the backup.
        thoroughly: if not set, only the manifest is read.

    Raises:
        BadInput: it is not a backup, or differs from what was backed up; the message names the file. Or it holds a dump
            of PostgreSQL, and `pg_restore` is not there.
        StoreUnusable: its database is damaged.
    """
    with BackupReader(backup_path) as reader:
        backup = read_contents(reader)
        if thoroughly:
            reader.check()
            with tempfile.TemporaryDirectory(dir=_find_parent(backup_path)) as folder:
                name = DUMP if DUMP in reader.manifest["files"] else DATABASE
                reader.unpack(name, Path(folder) / name)
                if (count_dumped_rows if name == DUMP else count_rows)(Path(folder) / name) != backup.rows:
                    raise BadInput(
                        f"the database in {backup_path} does not have the rows that its manifest lists; use another one"
                    )
    return backup


def read_contents(reader: BackupReader) -> Backup:
    """Read the contents of a backup from its manifest.

    Raises:
        BadInput: the manifest lacks a field that every manifest has.
    """
    manifest = reader.manifest
    try:
        files = manifest["files"]
        return Backup(
            made_at=manifest["made_at"],
            database=manifest["kind"],
            rows=dict(manifest["rows"]),
            runs=sum(name.startswith(f"{RUNS}/") and name.endswith("/run.json") for name in files),
            uploads=sum(name.startswith(f"{RUNS}/{UPLOADS}/") and name.count("/") == 2 for name in files),
            files=len(files),
            bytes=sum(entry["bytes"] for entry in files.values()),
            secret=SECRET in files,
            audio=bool(manifest["audio"]),
            absent=list(manifest["absent"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the manifest of {reader.path} is damaged ({error}); use another backup") from None


def _list_files(runs: Path, with_audio: bool) -> Iterator[Path]:
    """Yield all files below a folder of runs, in an order in which each comes before those it refers to."""

    def kind(path: Path) -> int:
        if path.name in _DERIVED:
            return 0
        return 1 if path.suffix == ".jsonl" else 3 if path.suffix[1:] in AUDIO_ENDINGS else 2

    for number in range(4 if with_audio else 3):
        # Looked up anew for each kind: what came meanwhile is in it before what refers to it is not.
        for folder, folders, names in os.walk(runs):
            folders[:] = sorted(name for name in folders if not name.startswith(".") or name == SUPERSEDED)
            for path in (Path(folder) / name for name in sorted(names) if not name.startswith(".")):
                if kind(path) == number and path.is_file() and not _NO_RUN.search(path.name):
                    yield path


def _list_uploads(runs: Path) -> Iterator[Path]:
    """Yield the files of what was uploaded and unpacked: of each upload the file about it, then its recordings."""
    for about in sorted((runs / UPLOADS).glob("u*.json")):
        recordings = about.with_suffix("")
        if recordings.is_dir():
            yield about
            yield from (path for path in sorted(recordings.rglob("*")) if path.is_file())


def _add_sounds(writer: BackupWriter, manifest: dict[str, Any], paths: set[str], runs: Path | None) -> None:
    """Add the recordings that lie outside the runs, each once, named by its path's number in the list."""
    for number, path in enumerate(sorted(paths)):
        source = Path(path)
        if runs is not None and source.resolve().is_relative_to(runs):
            continue
        name = f"{SOUNDS}/{number:06d}{source.suffix}"
        if _add_file(writer, name, source):
            manifest["sounds"][path] = name
        else:
            manifest["absent"].append(path)


def _add_file(writer: BackupWriter, name: str, path: Path) -> bool:
    """Add a file in its present state, cut after its last whole line; return False where it no longer exists."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, IsADirectoryError):
        return False
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; run as its owner") from error
    with file:
        size = os.fstat(file.fileno()).st_size
        if path.suffix == ".jsonl":
            size = _measure_whole_lines(file, size)
        writer.add(name, file, size)
    return True


def _measure_whole_lines(file: Any, size: int) -> int:
    """Return the size of a file up to its last whole line: a line that is being written is not in the backup."""
    start = size
    while start:
        begin = max(0, start - 65_536)
        file.seek(begin)
        newline = file.read(start - begin).rfind(b"\n")
        if newline >= 0:
            start = begin + newline + 1
            break
        start = begin
    file.seek(0)
    return start


def _find_parent(path: Path) -> str:
    """Return the folder for the temporary copy of the database: on the disk of the backup, which has room for it."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise BadInput(f"there is no folder {parent}; make it first")
    return str(parent)


def _version() -> str:
    from podeval.version import __version__

    return __version__
