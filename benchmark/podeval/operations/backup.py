"""Back up everything that cannot be recreated: judgements, submissions, uploads, runs, recordings of the arena.

The site and the workers continue during the backup. The database is copied first, in one state; then the files in one
pass, each before the files that it refers to. Recordings in the database that cannot be found are listed. A restored
backup is a state that existed; later votes come back from the public log and the bucket.

A backup is a tar file with a manifest of lengths and SHA-256 sums. The content of a backup cannot lead out of a folder:
names, links, devices and sizes are checked before anything is unpacked.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from podeval.audio.container import AUDIO_ENDINGS
from podeval.errors import BadInput
from podeval.files import DiskFull, append_line, explain_write_errors, find_end_of_last_line, sync_folder, write_json
from podeval.operations.backup_database import copy_database, count_rows, list_sounds
from podeval.runs.run_folder import BACKUPS, SUPERSEDED, UPLOADS
from podeval.store.database import parse_address
from podeval.store.secret import read_secret
from podeval.version import __version__

DATABASE, SECRET, RUNS = "database.sqlite", "secret", "runs"
"""Names of two files and a folder in a backup."""

SOUNDS = "sounds"
"""Folder in the folder of runs for recordings that were stored elsewhere."""

MANIFEST = "manifest.json"
ENDINGS = (".tar", ".tar.gz", ".tgz")
"""Allowed extensions of a backup."""

NO_RUN = re.compile(r"\.(db|secret)(-wal|-shm|-journal)?(\.before-.*)?(-wal|-shm)?$")
"""Databases and secrets in the folder of runs: the necessary ones are backed up separately."""

_LOG = logging.getLogger("podeval.operations")
_BLOCK = 1 << 20
_LARGEST_MANIFEST = 1 << 28
_DERIVED = ("summary.json", "board.parquet", "items.parquet")


@dataclass(frozen=True)
class Backup:
    """The contents of a backup."""

    made_at: str
    database: str
    """Kind of the original database, `sqlite` or `postgresql`."""
    rows: dict[str, int]
    runs: int
    uploads: int
    files: int
    bytes: int
    secret: bool
    """Whether it contains the service's secret."""
    audio: bool
    """Whether it contains recordings."""
    absent: list[str] = field(default_factory=list)
    """Recordings of the arena and of listening tests that were not at the path given in the database."""


class _Hashed:
    """A reader that computes the digest of the bytes that it reads."""

    def __init__(self, source: IO[bytes]) -> None:
        self.digest, self._source = hashlib.sha256(), source

    def read(self, size: int) -> bytes:
        block = self._source.read(size)
        self.digest.update(block)
        return block


class BackupReader(contextlib.AbstractContextManager["BackupReader"]):
    """The reader of an existing backup; a context manager.

    Args:
        path: path of the backup.

    Raises:
        BadInput: it is not a backup, or incomplete, or it contains something that no backup contains; the message names
            it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._tar = tarfile.open(path, "r:*")  # noqa: SIM115 - closed with the reader
            members = self._tar.getmembers()
        except (tarfile.TarError, OSError, EOFError) as error:
            raise BadInput(f"{path} cannot be read as a backup ({error}); use another one") from None
        self._members = {member.name: member for member in members}
        if len(self._members) < len(members) or not all(member.isreg() and not member.issparse() for member in members):
            raise BadInput(
                f"{path} contains links, devices, folders or a duplicate name, so it is not a backup; use another file"
            )
        try:
            self.manifest: dict[str, Any] = json.loads(self._open(MANIFEST).read(_LARGEST_MANIFEST))
            self.contents = _read_contents(self.manifest)
        except (ValueError, KeyError, TypeError, AttributeError, OSError, tarfile.TarError, EOFError) as error:
            raise BadInput(f"the manifest of {path} is damaged or missing ({error}); use another backup") from None
        if wrong := sorted({*self.manifest["files"], MANIFEST} ^ self._members.keys()):
            raise BadInput(f"{path} and its manifest differ in {', '.join(wrong[:3])}; use another backup")

    def unpack(self, folder: Path | None) -> None:
        """Compare every file with the manifest, write the files below a folder, and sync them.

        Args:
            folder: the existing folder; None writes nothing.

        Raises:
            BadInput: a file has changed; the message names it.
            DiskFull: there is no room; nothing was changed.
        """
        full = (
            f"the disk is full, so {folder} could not be filled; nothing was changed: free some space and restore again"
        )
        if folder and sum(member.size for member in self._members.values()) > shutil.disk_usage(folder).free:
            raise DiskFull(full)
        # In the order of the archive, so that a compressed backup is read once.
        for name in self._members:
            if name == MANIFEST:
                continue
            source, target = _Hashed(self._open(name)), folder / name if folder else Path(os.devnull)
            try:
                with explain_write_errors(target):
                    _copy(source, target)
            except (tarfile.TarError, EOFError, zlib.error) as error:
                raise BadInput(f"{self.path}: {name} cannot be read ({error}); use another backup") from None
            except DiskFull as error:
                raise DiskFull(full) from error
            if source.digest.hexdigest() != self.manifest["files"][name]["sha256"]:
                raise BadInput(f"{self.path}: {name} has changed since the backup; use another backup")

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def _open(self, name: str) -> IO[bytes]:
        return cast("IO[bytes]", self._tar.extractfile(self._members[name]))


def _copy(source: _Hashed, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(cast("IO[bytes]", source), file, _BLOCK)
        file.flush()
        if target.is_file():
            os.fsync(file.fileno())


def make_backup(
    target: Path, database: str | Path, runs: Path | None, *, with_secret: bool = False, with_audio: bool = True
) -> Backup:
    """Make a backup; it is complete and synced to disk when this returns.

    Args:
        target: a new file, whose name ends in `.tar`, `.tar.gz` or `.tgz`.
        database: a SQLite file or a database address; may be in use.
        runs: the folder of runs, if there is one.
        with_secret: include the secret; together with the database, it identifies the person behind each pseudonym.
        with_audio: include recordings and uploads; without them, runs cannot be measured again.

    Raises:
        BadInput: there is no such database or folder, or the target exists or has another extension.
        StoreUnusable: the database is damaged, does not answer, or has the tables of another version on a server.
        DiskFull: the disk is full; no backup was made.
    """
    if runs is not None and not runs.is_dir():
        raise BadInput(f"there is no folder of runs {runs}; name another with --runs")
    if not target.name.endswith(ENDINGS):
        raise BadInput(f"{target} does not end in {' or '.join(ENDINGS)}; name the backup accordingly")
    if target.exists():
        raise BadInput(f"{target} already exists; give every backup a different name")
    secret = read_secret(parse_address(database)) if with_secret else None
    if with_secret and secret is None:
        raise BadInput("there is no secret to back up: neither PODEVAL_SECRET nor a file next to the database")
    runs = runs.resolve() if runs else None
    try:
        with explain_write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            # A folder that nobody else can read, and that is removed completely.
            with tempfile.TemporaryDirectory(prefix=".", dir=target.absolute().parent) as folder:
                if runs is not None:
                    _note_path(target, runs)
                contents = _write(Path(folder), target.name, database, runs, secret, with_audio)
                Path(folder, target.name).replace(target)
            sync_folder(target.parent)
    except DiskFull as error:
        raise DiskFull(f"the disk is full, so {target} was not made; free some space and try again") from error
    return contents


def _write(
    folder: Path, name: str, database: str | Path, runs: Path | None, secret: bytes | None, with_audio: bool
) -> Backup:
    """Write a backup into an empty folder, and sync it."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    # Copy the database in a consistent state.
    copy, key = folder / DATABASE, folder / SECRET
    copy_database(database, copy)
    paths = [(DATABASE, copy)]
    if secret is not None:
        key.write_bytes(secret)
        paths.append((SECRET, key))
    sounds = _name_sounds(list_sounds(copy), runs) if with_audio else {}
    outside = ((name, Path(runs or "", path)) for path, name in sounds.items())
    # Add the files in one pass, then the manifest.
    files: dict[str, dict[str, Any]] = {}
    archive = folder / name
    archive.touch(0o600)
    compressed: dict[str, Any] = {"mode": "w"} if name.endswith(".tar") else {"mode": "w:gz", "compresslevel": 3}
    with tarfile.open(archive, **compressed) as tar:
        for member, path in chain(paths, _list_files(runs, with_audio) if runs else (), outside):
            if entry := _add_file(tar, member, path):
                files[member] = entry
        manifest = {
            "schema": 1, "made_at": made_at, "podeval": __version__, "kind": parse_address(database).get_backend_name(),
            "rows": count_rows(copy), "audio": with_audio, "runs": str(runs or ""),
            "sounds": {path: name for path, name in sounds.items() if name in files},
            "absent": [path for path, name in sounds.items() if name not in files], "files": files,
        }  # fmt: skip
        write_json(folder / MANIFEST, manifest)
        _add_file(tar, MANIFEST, folder / MANIFEST)
    with archive.open("rb") as written:
        os.fsync(written.fileno())
    return _read_contents(manifest)


def _note_path(target: Path, runs: Path) -> None:
    """Record a backup in the folder of runs as soon as it begins, so that a later takedown is noted next to it."""
    try:
        append_line(runs / BACKUPS, {"path": str(target.resolve())})
    except BadInput as error:
        _LOG.warning("no later takedown will be noted next to %s: %s", target, error)


def verify(path: Path) -> Backup:
    """Compare every file of a backup with its manifest; return its contents.

    The database was checked when it was copied.

    Raises:
        BadInput: it is not a backup, or one of its files differs.
    """
    with BackupReader(path) as reader:
        reader.unpack(None)
        return reader.contents


def _list_files(runs: Path, with_audio: bool) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder of runs with their names, each before the files that it refers to.

    They are listed while they are added: results before their protocols, and both before outputs with their recordings.
    """

    def order(path: Path) -> tuple[bool, ...]:
        return path.suffix[1:] in AUDIO_ENDINGS, path.name not in _DERIVED, path.suffix != ".jsonl"

    for folder, folders, names in os.walk(runs):
        chosen = [name for name in folders if not name.startswith(".") or name == SUPERSEDED]
        folders[:] = sorted(chosen, key=lambda name: (name == "outputs", name))
        for path in sorted((Path(folder, name) for name in names), key=order):
            ours = not path.name.startswith(".") and not NO_RUN.search(path.name)
            if ours and path.is_file() and (with_audio or path.suffix[1:] not in AUDIO_ENDINGS):
                yield _name(path, runs), path
    # For each unpacked upload, the file about it, then its recordings.
    for about in sorted((runs / UPLOADS).glob("u*.json")) if with_audio else ():
        if about.with_suffix("").is_dir():
            for path in (about, *sorted(about.with_suffix("").rglob("*"))):
                yield _name(path, runs), path


def _name(path: Path, runs: Path) -> str:
    return f"{RUNS}/{path.relative_to(runs).as_posix()}"


def _name_sounds(paths: Iterable[str], runs: Path | None) -> dict[str, str]:
    """Return new names, unused by earlier restores, for the recordings outside the folder of runs."""
    outside = [path for path in sorted(paths) if runs is None or not (runs / path).resolve().is_relative_to(runs)]
    return {path: f"{RUNS}/{SOUNDS}/{secrets.token_hex(8)}{Path(path).suffix}" for path in outside}


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> dict[str, Any] | None:
    """Add a file in its present state, cut after its last complete line; return its entry, or None without a file."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; run as its owner") from error
    with file:
        member, source = tarfile.TarInfo(name), _Hashed(file)
        # A line that is being written is not in the backup.
        size = find_end_of_last_line(file) if path.suffix == ".jsonl" else os.fstat(file.fileno()).st_size
        file.seek(0)
        member.size, member.mode = size, 0o600
        tar.addfile(member, cast("IO[bytes]", source))
    return {"bytes": size, "sha256": source.digest.hexdigest()}


def _read_contents(manifest: dict[str, Any]) -> Backup:
    """Check a manifest and summarise it; raise ValueError, KeyError or TypeError if it is invalid."""
    if manifest["schema"] != 1:
        raise ValueError(f"schema {manifest['schema']} belongs to another version of podeval")
    files: dict[str, dict[str, Any]] = manifest["files"]
    if outside := [name for name in files if not _is_of_backup(name)]:
        raise ValueError(f"{outside[0]!r} points outside it")
    inside = {name for name in files if name.startswith(f"{RUNS}/")}
    if not set(manifest["sounds"].values()) <= inside or DATABASE not in files:
        raise ValueError("it must contain one database, and list every recording that the database names")
    if not isinstance(manifest["runs"], str):
        raise TypeError("the folder of runs is not text")
    return Backup(
        made_at=str(manifest["made_at"]),
        database=str(manifest["kind"]),
        rows=dict(manifest["rows"]),
        runs=sum(name.endswith("/run.json") for name in inside),
        uploads=sum(name.startswith(f"{RUNS}/{UPLOADS}/") and name.count("/") == 2 for name in files),
        files=len(files),
        bytes=sum(int(entry["bytes"]) for entry in files.values() if isinstance(entry["sha256"], str)),
        secret=SECRET in files,
        audio=bool(manifest["audio"]),
        absent=list(manifest["absent"]),
    )


def _is_of_backup(name: str) -> bool:
    """Return whether a backup may contain a file of this name: one of ours, or one that stays in the folder of runs."""
    path = PurePosixPath(name)
    inside = len(path.parts) > 1 and path.parts[0] == RUNS and ".." not in path.parts
    return name in (DATABASE, SECRET) or (
        inside and str(path) == name and "\x00" not in name and not (len(path.parts) == 2 and NO_RUN.search(path.name))
    )
