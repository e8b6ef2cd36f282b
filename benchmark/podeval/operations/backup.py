"""Back up everything that cannot be made again: judgements, submissions, uploads, runs, recordings of the arena.

The site and the workers go on meanwhile. The database is copied first, in one consistent state; then the runs, derived
files before the files they derive from, so that nothing in the backup refers to what is not in it. A restored backup is
a state that existed; later votes come back from the public log and the bucket, where there are any.
"""

import io
import os
import secrets
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.errors import BadInput
from podeval.files import append_line, find_end_of_last_line
from podeval.operations.backup_archive import (
    DATABASE,
    DUMP,
    NO_RUN,
    RUNS,
    SECRET,
    SOUNDS,
    Backup,
    BackupReader,
    BackupWriter,
    write_backup,
)
from podeval.operations.backup_database import copy_sqlite, count_rows, dump, list_sounds
from podeval.runs.run_folder import BACKUPS, SUPERSEDED, UPLOADS
from podeval.store.database import Database, parse_address
from podeval.store.secret import read_secret
from podeval.version import __version__

_DERIVED = ("summary.json", "board.parquet", "items.parquet")


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
    runs = runs.resolve() if runs else None
    url = parse_address(database)
    name = DATABASE if url.get_backend_name() == "sqlite" else DUMP
    secret = read_secret(url) if with_secret else None
    if with_secret and secret is None:
        raise BadInput("there is no secret to back up: neither PODEVAL_SECRET nor a file beside the database")
    with write_backup(target) as writer, tempfile.TemporaryDirectory(dir=target.absolute().parent) as folder:
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        copy = Path(folder) / name
        if name == DATABASE:
            copy_sqlite(Path(str(url.database)), copy)
            url = make_url(f"sqlite:///{copy}")
        else:
            with Database(database, migrate=False) as opened:
                dump(opened, copy)
        # After a dump: what came meanwhile is one recording too many, and none is missing.
        sounds = list_sounds(url)
        manifest: dict[str, Any] = {
            "made_at": made_at, "podeval": __version__, "kind": url.get_backend_name(), "rows": count_rows(copy),
            "audio": with_audio, "runs": str(runs or ""), "sounds": {}, "absent": [],
        }  # fmt: skip
        _add_file(writer, name, copy)
        if secret is not None:
            writer.add(SECRET, io.BytesIO(secret), len(secret))
        if runs is not None:
            for path in chain(_list_files(runs, with_audio), _list_uploads(runs) if with_audio else ()):
                _add_file(writer, f"{RUNS}/{path.relative_to(runs).as_posix()}", path)
        if with_audio:
            _add_sounds(writer, manifest, sounds, runs)
        writer.finish(manifest)
    if runs is not None:
        append_line(runs / BACKUPS, {"path": str(target.resolve())})
    with BackupReader(target) as reader:
        return reader.contents


def verify(backup_path: Path) -> Backup:
    """Compare every file of a backup with its manifest and check its database; return its contents.

    Raises:
        BadInput: it is not a backup, or differs from what was backed up; the message names the file. Or it holds a dump
            of PostgreSQL, and `pg_restore` is not there.
        StoreUnusable: its database is damaged.
    """
    with (
        BackupReader(backup_path) as reader,
        tempfile.TemporaryDirectory(dir=backup_path.absolute().parent) as folder,
    ):
        reader.unpack(Path(folder), only=(DATABASE, DUMP))
        (copy,) = Path(folder).iterdir()
        if count_rows(copy) != reader.contents.rows:
            raise BadInput(
                f"the database in {backup_path} does not have the rows that its manifest lists; use another one"
            )
        return reader.contents


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
                if kind(path) == number and path.is_file() and not NO_RUN.search(path.name):
                    yield path


def _list_uploads(runs: Path) -> Iterator[Path]:
    """Yield the files of what was uploaded and unpacked: of each upload the file about it, then its recordings."""
    for about in sorted((runs / UPLOADS).glob("u*.json")):
        recordings = about.with_suffix("")
        if recordings.is_dir():
            yield about
            yield from (path for path in sorted(recordings.rglob("*")) if path.is_file())


def _add_sounds(writer: BackupWriter, manifest: dict[str, Any], paths: set[str], runs: Path | None) -> None:
    """Add the recordings that lie outside the runs, each once, under names that no earlier restore used."""
    for path in sorted(paths):
        source = Path(runs or "", path)
        if runs is not None and source.resolve().is_relative_to(runs):
            continue
        name = f"{RUNS}/{SOUNDS}/{secrets.token_hex(8)}{source.suffix}"
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
            # A line that is being written is not in the backup.
            size = find_end_of_last_line(file)
            file.seek(0)
        writer.add(name, file, size)
    return True
