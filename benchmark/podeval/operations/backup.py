"""Back up everything that cannot be recreated: judgements, submissions, uploads, runs, recordings of the arena.

The site and the workers keep running during the backup. The database is copied first, in one consistent state; then the
files are copied in one pass, each before the files that it refers to. Recordings that the database names but that
cannot be found are listed. A restored backup is a state that existed; later votes are read back from the public log and
the bucket.

A backup is a tar file with a manifest of lengths and SHA-256 sums. Nothing in a backup can be written outside the
target folder: names, links, devices and sizes are checked before anything is unpacked.
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
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from podeval.audio.container import AUDIO_ENDINGS
from podeval.errors import BadInput
from podeval.files import DiskFull, append_line, explain_write_errors, find_end_of_last_line, sync_folder
from podeval.operations.backup_database import copy_database, count_rows, list_sounds
from podeval.runs.run_folder import BACKUPS, SUPERSEDED, UPLOADS
from podeval.store.database import parse_address
from podeval.store.secret import read_secret
from podeval.version import __version__

DATABASE, SECRET, RUNS, MANIFEST = "database.sqlite", "secret", "runs", "manifest.json"
"""Names of files and of the folder of runs in a backup."""

SOUNDS = "sounds"
"""Folder in the folder of runs for recordings that were stored elsewhere."""

_NO_RUN = re.compile(r"\.(db|secret)(-wal|-shm|-journal)?(\.before-.*)?(-wal|-shm)?$")
"""Databases and secrets in the folder of runs; the ones that are needed are backed up separately."""

_ENDINGS = (".tar", ".tar.gz", ".tgz")
_LARGEST_MANIFEST = 1 << 28
_LOG = logging.getLogger("podeval.operations")


@dataclass(frozen=True)
class Backup:
    """The contents of a backup: its time, the kind of database, the rows of each table, and the numbers of runs,
    uploads, files and bytes.

    `secret` and `audio` say whether the backup contains the service's secret and the recordings; `absent` lists the
    recordings of the arena and of listening tests that were missing from the path given in the database.
    """

    made_at: str
    database: str
    rows: dict[str, int]
    runs: int
    uploads: int
    files: int
    bytes: int
    secret: bool
    audio: bool
    absent: list[str]


class BackupReader(contextlib.AbstractContextManager["BackupReader"]):
    """The reader of an existing backup; a context manager.

    Args:
        path: path of the backup.

    Raises:
        BadInput: the file is not a backup, is incomplete, or contains something that does not belong in a backup; the
            message names it.
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
            manifest = self._open(self._members.pop(MANIFEST)).read(_LARGEST_MANIFEST)
            self.manifest: dict[str, Any] = json.loads(manifest)
            self.contents = _read_contents(self.manifest)
        except (ValueError, KeyError, TypeError, AttributeError, OSError, tarfile.TarError, EOFError) as error:
            raise BadInput(f"the manifest of {path} is damaged or missing ({error}); use another backup") from None
        if wrong := sorted(self.manifest["files"].keys() ^ self._members.keys()):
            raise BadInput(f"{path} and its manifest differ in {', '.join(wrong[:3])}; use another backup")

    def unpack(self, folder: Path | None) -> None:
        """Compare every file with the manifest, write the files below a folder, and sync them.

        Args:
            folder: the existing folder; None writes nothing.

        Raises:
            BadInput: a file has changed; the message names it.
            DiskFull: there is not enough disk space.
        """
        if folder and sum(member.size for member in self._members.values()) > shutil.disk_usage(folder).free:
            raise DiskFull(f"the disk is full: {folder} has no room for {self.path}")
        # Follow the order of the archive, so that a compressed backup is read only once.
        for name, member in self._members.items():
            try:
                with explain_write_errors((folder or self.path.parent) / name):
                    if folder:
                        self._tar.extract(member, folder, set_attrs=False, filter="data")
                    with (folder / name).open("rb") if folder else self._open(member) as file:
                        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
                        if folder:
                            os.fsync(file.fileno())
            except (tarfile.TarError, EOFError, zlib.error) as error:
                raise BadInput(f"{self.path}: {name} cannot be read ({error}); use another backup") from None
            if digest != self.manifest["files"][name]["sha256"]:
                raise BadInput(f"{self.path}: {name} has changed since the backup; use another backup")

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def _open(self, member: tarfile.TarInfo) -> IO[bytes]:
        return cast("IO[bytes]", self._tar.extractfile(member))


def verify(path: Path) -> Backup:
    """Compare every file of a backup with its manifest; return its contents.

    The database in it was checked when it was copied.

    Raises:
        BadInput: the file is not a backup, or one of the files in it differs from the manifest.
    """
    with BackupReader(path) as reader:
        reader.unpack(None)
        return reader.contents


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
        StoreUnusable: the database is damaged, does not respond, or is on a server and its tables are from another
            version.
        DiskFull: the disk is full; no backup was made.
    """
    if runs is not None and not runs.is_dir():
        raise BadInput(f"there is no folder of runs {runs}; name another with --runs")
    if not target.name.endswith(_ENDINGS):
        raise BadInput(f"{target} does not end in {' or '.join(_ENDINGS)}; a backup is one file, name it so")
    if target.exists():
        raise BadInput(f"{target} already exists; give every backup a different name")
    secret = read_secret(parse_address(database)) if with_secret else None
    if with_secret and secret is None:
        raise BadInput("there is no secret to back up: neither PODEVAL_SECRET nor a file next to the database")
    runs = runs.resolve() if runs else None
    try:
        if runs is not None:
            # A later takedown is noted next to the backup, even if the backup is not complete yet.
            try:
                append_line(runs / BACKUPS, {"path": str(target.resolve())})
            except BadInput as error:
                _LOG.warning("no later takedown will be noted next to %s: %s", target, error)
        with explain_write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            # Use a folder that nobody else can read and that is removed completely.
            with tempfile.TemporaryDirectory(prefix=".", dir=target.absolute().parent) as folder:
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
    # Copy the database in a consistent state, and give the recordings outside the runs names that no earlier restore
    # used.
    copy_database(database, folder / DATABASE)
    paths = sorted(list_sounds(folder / DATABASE)) if with_audio else []
    outside = [path for path in paths if runs is None or not (runs / path).resolve().is_relative_to(runs)]
    sounds = {path: f"{RUNS}/{SOUNDS}/{secrets.token_hex(8)}{Path(path).suffix}" for path in outside}
    # Add the files in one pass, then the manifest.
    files: dict[str, dict[str, Any]] = {}
    archive = folder / name
    archive.touch(0o600)
    compressed: dict[str, Any] = {"mode": "w"} if name.endswith(".tar") else {"mode": "w:gz", "compresslevel": 3}
    with tarfile.open(archive, **compressed) as tar:

        def add(member: str, path: Path) -> None:
            if entry := _add_file(tar, member, path):
                files[member] = entry

        add(DATABASE, folder / DATABASE)
        if secret is not None:
            (folder / SECRET).write_bytes(secret)
            add(SECRET, folder / SECRET)
        for path in _list_files(runs, with_audio) if runs else ():
            add(f"{RUNS}/{path.relative_to(runs or '').as_posix()}", path)
        for place, member in sounds.items():
            add(member, Path(runs or "", place))
        manifest = {
            "schema": 1, "made_at": made_at, "podeval": __version__, "kind": parse_address(database).get_backend_name(),
            "rows": count_rows(folder / DATABASE), "audio": with_audio, "runs": str(runs or ""),
            "sounds": {path: member for path, member in sounds.items() if member in files},
            "absent": [path for path, member in sounds.items() if member not in files], "files": dict(files),
        }  # fmt: skip
        (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        add(MANIFEST, folder / MANIFEST)
    with archive.open("rb") as written:
        os.fsync(written.fileno())
    return _read_contents(manifest)


def _list_files(runs: Path, with_audio: bool) -> Iterator[Path]:
    """Yield the files of a folder of runs, each before the files that it refers to.

    Each kind of file is listed only after the previous kinds have been added: summaries, results, protocols and
    outputs, recordings.
    """

    def order(path: Path) -> int:
        if path.suffix[1:] in AUDIO_ENDINGS:
            return 3
        return 0 if path.name in ("summary.json", "board.parquet", "items.parquet") else 1 + (path.suffix != ".jsonl")

    for kind in range(4 if with_audio else 3):
        for folder, folders, names in os.walk(runs):
            folders[:] = [name for name in folders if not name.startswith(".") or name == SUPERSEDED]
            for path in (Path(folder, name) for name in names if not name.startswith(".")):
                if order(path) == kind and not _NO_RUN.search(path.name) and path.is_file():
                    yield path
    # For each unpacked upload, yield the file that describes it, then its recordings.
    for about in sorted((runs / UPLOADS).glob("u*.json")) if with_audio else ():
        if about.with_suffix("").is_dir():
            yield from (about, *about.with_suffix("").rglob("*"))


class _Hashed:
    """A reader that computes the digest of the bytes that it reads."""

    def __init__(self, source: IO[bytes]) -> None:
        self.digest, self._source = hashlib.sha256(), source

    def read(self, size: int) -> bytes:
        block = self._source.read(size)
        self.digest.update(block)
        return block


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> dict[str, Any] | None:
    """Add a file as it is now, up to its last complete line; return its entry, or None if there is no file."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; run as its owner") from error
    with file:
        member, source = tarfile.TarInfo(name), _Hashed(file)
        # A line that is still being written is left out.
        size = find_end_of_last_line(file) if path.suffix == ".jsonl" else os.fstat(file.fileno()).st_size
        file.seek(0)
        member.size, member.mode = size, 0o600
        tar.addfile(member, cast("IO[bytes]", source))
    return {"bytes": size, "sha256": source.digest.hexdigest()}


def _read_contents(manifest: dict[str, Any]) -> Backup:
    """Check and summarise a manifest; raise ValueError, KeyError or TypeError if it is invalid."""
    if manifest["schema"] != 1:
        raise ValueError(f"schema {manifest['schema']} belongs to another version of podeval")
    files: dict[str, dict[str, Any]] = manifest["files"]
    if outside := [name for name in files if not _is_of_backup(name)]:
        raise ValueError(f"{outside[0]!r} points outside it")
    if not set(manifest["sounds"].values()) <= {name for name in files if "/" in name} or DATABASE not in files:
        raise ValueError("it must contain one database, and list every recording that the database names")
    if not isinstance(manifest["runs"], str):
        raise TypeError("the folder of runs is not text")
    return Backup(
        made_at=str(manifest["made_at"]),
        database=str(manifest["kind"]),
        rows=dict(manifest["rows"]),
        runs=sum(name.endswith("/run.json") for name in files),
        uploads=sum(name.startswith(f"{RUNS}/{UPLOADS}/") and name.count("/") == 2 for name in files),
        files=len(files),
        bytes=sum(int(entry["bytes"]) for entry in files.values() if isinstance(entry["sha256"], str)),
        secret=SECRET in files,
        audio=bool(manifest["audio"]),
        absent=list(manifest["absent"]),
    )


def _is_of_backup(name: str) -> bool:
    """Return whether a backup may contain a file of this name: one of its own, or one inside the folder of runs."""
    path = PurePosixPath(name)
    inside = len(path.parts) > 1 and path.parts[0] == RUNS and ".." not in path.parts
    return name in (DATABASE, SECRET) or (
        inside and str(path) == name and "\x00" not in name and not (len(path.parts) == 2 and _NO_RUN.search(path.name))
    )
