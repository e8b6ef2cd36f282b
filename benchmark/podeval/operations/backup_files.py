"""Read and write the file of a backup: a tar file with a manifest, which gets its name only when it is complete.

The manifest is written last and names every file with its length and SHA-256; what is not in it is not in the backup.
"""

import contextlib
import hashlib
import io
import json
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any, cast

from podeval.errors import BadInput
from podeval.store.files import DiskFull, explain_write_errors, sync_folder

MANIFEST = "manifest.json"
ENDINGS = (".tar", ".tar.gz", ".tgz")
"""Allowed endings of a backup's name."""

_BLOCK = 1 << 20
_COMPRESSION = 3
_LARGEST_MANIFEST = 1 << 30


class BackupWriter:
    """The writer of a backup's files, one by one; a context manager that leaves nothing behind where it fails.

    Args:
        path: path of the backup.

    Raises:
        BadInput: the path exists, or its name does not end as the name of a backup does.
    """

    def __init__(self, path: Path) -> None:
        if not path.name.endswith(ENDINGS):
            raise BadInput(f"{path} does not end in {' or '.join(ENDINGS)}; a backup is one file, name it so")
        if path.exists():
            raise BadInput(f"{path} exists already; give every backup a name of its own")
        self.files: dict[str, dict[str, Any]] = {}
        self._path = path
        self._partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")

    def __enter__(self) -> "BackupWriter":
        with _backing_up(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            if self._path.name.endswith(".tar"):
                self._tar = tarfile.open(mode="w", fileobj=self._file, format=tarfile.PAX_FORMAT)
            else:
                self._tar = tarfile.open(
                    mode="w:gz", fileobj=self._file, format=tarfile.PAX_FORMAT, compresslevel=_COMPRESSION
                )
        return self

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        """Add a file of this name with the next `size` bytes of an open file."""
        entry, counted = tarfile.TarInfo(name), _Counted(source, size)
        entry.size, entry.mode = size, 0o600
        with _backing_up(self._path):
            self._tar.addfile(entry, counted)
        self.files[name] = counted.entry(size)

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, and give the backup its name."""
        content = {"schema": 1, **manifest, "files": dict(sorted(self.files.items()))}
        text = (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()
        self.add(MANIFEST, io.BytesIO(text), len(text))
        with _backing_up(self._path):
            self._tar.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._partial.replace(self._path)
            sync_folder(self._path.parent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing what failed writes its last bytes once more, which fails as well.
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        self._partial.unlink(missing_ok=True)


class BackupReader:
    """The reader of an existing backup; a context manager.

    Args:
        path: path of the backup.

    Raises:
        BadInput: it is not a backup, or not whole; the message says which.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise BadInput(
                f"{path} is a folder, and a backup is one file; one that an earlier podeval made as a folder becomes "
                f"a file by: (cd {path} && tar -cf ../{path.name}.tar *)"
            )
        if not path.is_file():
            raise BadInput(f"there is no backup {path}; name a file that `podeval backup` made")
        try:
            self._tar = tarfile.open(path, "r:*")  # noqa: SIM115 - closed with the reader
            self._members = {member.name: member for member in self._tar.getmembers() if member.isreg()}
        except (tarfile.TarError, OSError, EOFError) as error:
            raise BadInput(f"{path} cannot be read as a backup ({error}); use another one") from None
        if MANIFEST not in self._members:
            raise BadInput(f"{path} has no {MANIFEST}, so it is not a complete backup; use another one")
        self.manifest = self._read_manifest()

    def check(self) -> None:
        """Compare every file with the manifest.

        Raises:
            BadInput: a file is missing, changed, or not in the manifest; the message names it.
        """
        entries = self.manifest["files"]
        if missing := sorted(entries.keys() - self._members.keys()):
            raise BadInput(f"{self.path} lacks {_list_some(missing)}; use another backup")
        if more := sorted(self._members.keys() - entries.keys() - {MANIFEST}):
            raise BadInput(
                f"{self.path} holds {_list_some(more)}, which its manifest does not name; use another backup"
            )
        for name in self._in_order():
            try:
                with self._open(name) as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except (OSError, tarfile.TarError, EOFError) as error:
                raise BadInput(f"{self.path}: {name} cannot be read ({error}); use another backup") from None
            if digest != entries[name]["sha256"]:
                raise BadInput(f"{self.path}: {name} has changed since the backup; use another backup")

    def unpack(self, name: str, target: Path) -> None:
        """Write one file of the backup to a path, synced."""
        with _restoring(target), self._open(name) as source:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                shutil.copyfileobj(source, file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())

    def unpack_all(self, folder: Path) -> None:
        """Write all files that the manifest names below a folder, synced."""
        for name in self._in_order():
            self.unpack(name, folder / name)

    def __enter__(self) -> "BackupReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def _in_order(self) -> list[str]:
        """List the files in the order of the archive, so that a compressed backup is read once."""
        return [name for name in self._members if name != MANIFEST]

    def _open(self, name: str) -> io.BufferedReader:
        return cast("io.BufferedReader", self._tar.extractfile(self._members[name]))

    def _read_manifest(self) -> dict[str, Any]:
        try:
            with self._open(MANIFEST) as file:
                manifest: dict[str, Any] = json.loads(file.read(_LARGEST_MANIFEST))
            if manifest["schema"] not in (1, 2):
                raise BadInput(
                    f"{self.path} was made by a newer podeval (schema {manifest['schema']}); upgrade podeval"
                )
            files = manifest["files"]
            if not all(_stays_inside(name) and isinstance(entry["sha256"], str) for name, entry in files.items()):
                raise ValueError("a name points outside it")
        except (ValueError, KeyError, TypeError, AttributeError, OSError, tarfile.TarError, EOFError) as error:
            raise BadInput(f"the manifest of {self.path} is damaged ({error}); use another backup") from None
        return manifest


@contextlib.contextmanager
def _backing_up(path: Path) -> Iterator[None]:
    """Explain a full disk as a failed backup."""
    try:
        with explain_write_errors(path):
            yield
    except DiskFull as error:
        raise DiskFull(f"the disk is full: there is no backup {path}; free some space and make it again") from error


class _Counted(io.RawIOBase):
    """A reader of the first bytes of a file, which computes their digest as they pass."""

    def __init__(self, source: IO[bytes], size: int) -> None:
        self._source, self._left, self._digest = source, size, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        most = self._left if size is None or size < 0 else min(size, self._left)
        block = self._source.read(most)
        self._left -= len(block)
        self._digest.update(block)
        return block

    def entry(self, size: int) -> dict[str, Any]:
        if self._left:
            raise BadInput(f"a file shrank by {self._left} bytes while it was copied; make the backup again")
        return {"bytes": size, "sha256": self._digest.hexdigest()}


@contextlib.contextmanager
def _restoring(target: Path) -> Iterator[None]:
    """Explain a full disk as a failed restore."""
    try:
        with explain_write_errors(target):
            yield
    except DiskFull as error:
        raise DiskFull(
            f"the disk is full while {target.parent} is restored; nothing was changed: free some space and "
            "restore again"
        ) from error


def _stays_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\x00" not in name


def _list_some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
