"""The file of a backup: a tar file with a manifest, which names every file with its length and SHA-256.

The file gets its name only when it is complete. What is read from one is believed in nothing that leads out of a
folder: names, links, devices and sizes are checked before anything is unpacked.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tarfile
import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from podeval.errors import BadInput
from podeval.files import DiskFull, explain_write_errors, sync_folder
from podeval.runs.run_folder import UPLOADS

DATABASE, DUMP, SECRET, RUNS = "database.sqlite", "database.dump", "secret", "runs"
"""Names of three files, the database's by its kind, and a folder in a backup."""

SOUNDS = "sounds"
"""Folder in that of the runs for recordings that lie elsewhere."""

MANIFEST = "manifest.json"
ENDINGS = (".tar", ".tar.gz", ".tgz")
"""Allowed endings of a backup's name."""

NO_RUN = re.compile(r"\.(db|secret)(-wal|-shm|-journal)?(\.before-.*)?(-wal|-shm)?$")
"""Databases and secrets that lie with the runs: what is to be backed up of them is backed up by itself."""

_BLOCK = 1 << 20
_LARGEST_MANIFEST = 1 << 28


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
    """Recordings of the arena and of listening tests that were not where the database says."""


class BackupWriter:
    """The files of a backup that is being written; see `write_backup`."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.files: dict[str, dict[str, Any]] = {}
        self._tar = tar

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        """Add a file of this name with the next `size` bytes of an open file."""
        entry, hashed = tarfile.TarInfo(name), _Hashed(source)
        entry.size, entry.mode = size, 0o600
        self._tar.addfile(entry, cast("IO[bytes]", hashed))
        self.files[name] = {"bytes": size, "sha256": hashed.digest.hexdigest()}

    def finish(self, manifest: dict[str, Any]) -> None:
        """Add the manifest."""
        text = json.dumps({"schema": 1, **manifest, "files": self.files}, ensure_ascii=False, indent=1).encode()
        self.add(MANIFEST, io.BytesIO(text), len(text))


class _Hashed:
    """A reader that computes the digest of what passes."""

    def __init__(self, source: IO[bytes]) -> None:
        self.digest, self._source = hashlib.sha256(), source

    def read(self, size: int) -> bytes:
        block = self._source.read(size)
        self.digest.update(block)
        return block


@contextlib.contextmanager
def write_backup(path: Path) -> Iterator[BackupWriter]:
    """Write a backup, which has its name and is synced when the block ends, and leaves nothing behind if it fails.

    Raises:
        BadInput: the path exists, or its name does not end as the name of a backup does.
        DiskFull: the disk is full; there is no backup.
    """
    if not path.name.endswith(ENDINGS):
        raise BadInput(f"{path} does not end in {' or '.join(ENDINGS)}; a backup is one file, name it so")
    if path.exists():
        raise BadInput(f"{path} exists already; give every backup a name of its own")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    compressed: dict[str, Any] = {"mode": "w"} if path.name.endswith(".tar") else {"mode": "w:gz", "compresslevel": 3}
    try:
        with explain_write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                with tarfile.open(fileobj=file, format=tarfile.PAX_FORMAT, **compressed) as tar:
                    yield BackupWriter(tar)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            sync_folder(path.parent)
    except DiskFull as error:
        raise DiskFull(f"the disk is full: there is no backup {path}; free some space and make it again") from error
    finally:
        partial.unlink(missing_ok=True)


class BackupReader:
    """The reader of an existing backup; a context manager.

    Args:
        path: path of the backup.

    Raises:
        BadInput: it is not a backup, or not whole, or it names what no backup has; the message says which.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise BadInput(f"there is no backup {path}; name a file that `podeval backup` made")
        try:
            self._tar = tarfile.open(path, "r:*")  # noqa: SIM115 - closed with the reader
            members = self._tar.getmembers()
        except (tarfile.TarError, OSError, EOFError) as error:
            raise BadInput(f"{path} cannot be read as a backup ({error}); use another one") from None
        self._members = {member.name: member for member in members}
        if len(self._members) < len(members) or not all(member.isreg() and not member.issparse() for member in members):
            raise BadInput(f"{path} has links, devices, folders or a name twice, as no backup does; use another one")
        if MANIFEST not in self._members:
            raise BadInput(f"{path} has no {MANIFEST}, so it is not a complete backup; use another one")
        try:
            self.manifest: dict[str, Any] = json.loads(self._open(MANIFEST).read(_LARGEST_MANIFEST))
            self.contents = _read_contents(self.manifest)
        except (ValueError, KeyError, TypeError, AttributeError, OSError, tarfile.TarError, EOFError) as error:
            raise BadInput(f"the manifest of {path} is damaged ({error}); use another backup") from None
        expected = {*self.manifest["files"], MANIFEST}
        if missing := sorted(expected - self._members.keys()):
            raise BadInput(f"{path} lacks {', '.join(missing[:3])}; use another backup")
        if more := sorted(self._members.keys() - expected):
            raise BadInput(f"{path} holds {', '.join(more[:3])}, which its manifest does not name; use another backup")

    def unpack(self, folder: Path, only: Container[str] | None = None) -> None:
        """Compare every file with the manifest, and write them below a folder, synced.

        Args:
            folder: the folder, which is made.
            only: names of the files that are written; None writes all.

        Raises:
            BadInput: a file has changed; the message names it.
            DiskFull: there is no room; nothing that was there has changed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        full = f"the disk is full while {folder} is filled; nothing was changed: free some space and restore again"
        if only is None and sum(member.size for member in self._members.values()) > shutil.disk_usage(folder).free:
            raise DiskFull(full)
        # In the order of the archive, so that a compressed backup is read once.
        for name in self._members:
            if name == MANIFEST:
                continue
            target = folder / name if only is None or name in only else None
            try:
                with explain_write_errors(folder / name):
                    digest = self._copy(name, target)
            except (tarfile.TarError, EOFError, zlib.error) as error:
                raise BadInput(f"{self.path}: {name} cannot be read ({error}); use another backup") from None
            except DiskFull as error:
                raise DiskFull(full) from error
            if digest != self.manifest["files"][name]["sha256"]:
                raise BadInput(f"{self.path}: {name} has changed since the backup; use another backup")

    def __enter__(self) -> "BackupReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def _open(self, name: str) -> IO[bytes]:
        return cast("IO[bytes]", self._tar.extractfile(self._members[name]))

    def _copy(self, name: str, target: Path | None) -> str:
        """Return the digest of a file, after writing it to a new file where one is named."""
        with self._open(name) as source:
            if target is None:
                return hashlib.file_digest(cast("io.BufferedReader", source), "sha256").hexdigest()
            hashed = _Hashed(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                shutil.copyfileobj(cast("IO[bytes]", hashed), file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())
            return hashed.digest.hexdigest()


def _read_contents(manifest: dict[str, Any]) -> Backup:
    """Check a manifest and summarise it; raises ValueError, KeyError or TypeError where it is not one."""
    if manifest["schema"] != 1:
        raise ValueError(f"schema {manifest['schema']} is of another podeval")
    files: dict[str, dict[str, Any]] = manifest["files"]
    outside = [name for name in files if not _is_of_backup(name)]
    if outside:
        raise ValueError(f"{outside[0]!r} points outside it")
    if (
        not set(manifest["sounds"].values()) <= {name for name in files if name.startswith(f"{RUNS}/")}
        or len(files.keys() & {DATABASE, DUMP}) != 1
    ):
        raise ValueError("it needs one database, and lists every recording that it names")
    if not isinstance(manifest["runs"], str):
        raise TypeError("the folder of runs is no text")
    return Backup(
        made_at=str(manifest["made_at"]),
        database=str(manifest["kind"]),
        rows=dict(manifest["rows"]),
        runs=sum(name.startswith(f"{RUNS}/") and name.endswith("/run.json") for name in files),
        uploads=sum(name.startswith(f"{RUNS}/{UPLOADS}/") and name.count("/") == 2 for name in files),
        files=len(files),
        bytes=sum(int(entry["bytes"]) for entry in files.values() if isinstance(entry["sha256"], str)),
        secret=SECRET in files,
        audio=bool(manifest["audio"]),
        absent=list(manifest["absent"]),
    )


def _is_of_backup(name: str) -> bool:
    """Return whether a backup may have a file of this name: one of ours, or one that stays in the folder of runs."""
    path = PurePosixPath(name)
    inside = len(path.parts) > 1 and path.parts[0] == RUNS and ".." not in path.parts
    return name in (DATABASE, DUMP, SECRET) or (
        inside and str(path) == name and "\x00" not in name and not (len(path.parts) == 2 and NO_RUN.search(path.name))
    )
