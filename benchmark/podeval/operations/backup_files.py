"""Where a backup lies: a folder, or one file of tar. It is there under its name when it is whole, not before.

The manifest is written last and names every file with its length and SHA-256; what is not in it is not in the backup.
"""

import contextlib
import gzip
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
from typing import IO, Any, Protocol

from podeval.errors import BadInput
from podeval.store.files import DiskFull, sync_folder, writing

MANIFEST = "manifest.json"
ARCHIVES = (".tar", ".tar.gz", ".tgz")
"""Endings of a name that make a backup one file."""

_BLOCK = 1 << 20
_LARGEST_MANIFEST = 1 << 30


class Writer(Protocol):
    """Takes the files of a backup one by one; a context manager that leaves nothing behind where it fails."""

    files: dict[str, dict[str, Any]]

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        """Keep so many bytes of an open file under a name."""

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest; now the backup is there."""

    def __enter__(self) -> "Writer": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def is_archive(place: Path) -> bool:
    """Whether a place is one file, by its name."""
    return place.name.endswith(ARCHIVES)


def new_backup(place: Path) -> Writer:
    """A backup to be written.

    Raises:
        BadInput: something is there already, or the place cannot be written to.
    """
    if place.exists() and (place.is_file() or any(place.iterdir())):
        raise BadInput(f"{place} is there already; give every backup a name of its own")
    return _Archive(place) if is_archive(place) else _Folder(place)


@contextlib.contextmanager
def _noted(place: Path) -> Iterator[None]:
    """A full disk told as what it means here."""
    try:
        with writing(place):
            yield
    except DiskFull as error:
        raise DiskFull(f"the disk is full: there is no backup {place}; free some space and make it again") from error


class _Counted(io.RawIOBase):
    """The first bytes of a file, with their digest as they pass."""

    def __init__(self, source: IO[bytes], size: int) -> None:
        self._source, self._left, self._digest = source, size, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        block = self._source.read(wanted)
        self._left -= len(block)
        self._digest.update(block)
        return block

    def entry(self, size: int) -> dict[str, Any]:
        if self._left:
            raise BadInput(f"a file became shorter by {self._left} bytes while it was copied; make the backup again")
        return {"bytes": size, "sha256": self._digest.hexdigest()}


class _Folder:
    def __init__(self, place: Path) -> None:
        self.files: dict[str, dict[str, Any]] = {}
        self._place = place
        self._partial = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")

    def __enter__(self) -> "_Folder":
        with _noted(self._place):
            self._partial.mkdir(parents=True, mode=0o700)
        return self

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        target, counted = self._partial / name, _Counted(source, size)
        with _noted(self._place):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                shutil.copyfileobj(counted, file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())
        self.files[name] = counted.entry(size)

    def finish(self, manifest: dict[str, Any]) -> None:
        text = _text(manifest, self.files)
        self.add(MANIFEST, io.BytesIO(text), len(text))
        with _noted(self._place):
            for folder in {self._partial, *(path for path in self._partial.rglob("*") if path.is_dir())}:
                sync_folder(folder)
            self._partial.rename(self._place)
            sync_folder(self._place.parent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)


class _Archive:
    def __init__(self, place: Path) -> None:
        self.files: dict[str, dict[str, Any]] = {}
        self._place = place
        self._partial = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")

    def __enter__(self) -> "_Archive":
        with _noted(self._place):
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            packed = not self._place.name.endswith(".tar")
            self._packer = gzip.GzipFile("", "wb", 3, self._file) if packed else None
            self._tar = tarfile.open(mode="w", fileobj=self._packer or self._file, format=tarfile.PAX_FORMAT)
        return self

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        entry, counted = tarfile.TarInfo(name), _Counted(source, size)
        entry.size, entry.mode = size, 0o600
        with _noted(self._place):
            self._tar.addfile(entry, counted)
        self.files[name] = counted.entry(size)

    def finish(self, manifest: dict[str, Any]) -> None:
        text = _text(manifest, self.files)
        self.add(MANIFEST, io.BytesIO(text), len(text))
        with _noted(self._place):
            self._tar.close()
            if self._packer is not None:
                self._packer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._partial.replace(self._place)
            sync_folder(self._place.parent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing what failed writes its last bytes once more, which fails as well.
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        self._partial.unlink(missing_ok=True)


class Reader:
    """A backup that is there; a context manager.

    Raises:
        BadInput: it is none, or not whole; says which.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self._tar: tarfile.TarFile | None = None
        if place.is_dir():
            self.names = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
        elif place.is_file():
            try:
                self._tar = tarfile.open(place, "r:*")  # noqa: SIM115 - closed with the reader
                self._members = {member.name: member for member in self._tar.getmembers() if member.isreg()}
            except (tarfile.TarError, OSError, EOFError) as error:
                raise BadInput(f"{place} cannot be read as a backup ({error}); take another one") from None
            self.names = set(self._members)
        else:
            raise BadInput(f"there is no backup {place}; name a folder or file that `podeval backup` made")
        if MANIFEST not in self.names:
            raise BadInput(f"{place} has no {MANIFEST}, so it is no backup or only a part of one; take another one")
        self.manifest = self._manifest()

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """One of its files."""
        if self._tar is None:
            with (self.place / name).open("rb") as file:
                yield file
        else:
            found = self._tar.extractfile(self._members[name])
            assert found is not None
            with found:
                yield found

    def check(self) -> None:
        """Compare every file with the manifest.

        Raises:
            BadInput: a file is missing, changed, or too many; names it.
        """
        listed = self.manifest["files"]
        if missing := sorted(listed.keys() - self.names):
            raise BadInput(f"{self.place} lacks {_some(missing)}; take another backup")
        if more := sorted(self.names - listed.keys() - {MANIFEST}):
            raise BadInput(f"{self.place} holds {_some(more)}, which its manifest does not name; take another backup")
        for name, entry in listed.items():
            try:
                with self.open(name) as file:
                    found = _digest(file)
            except (OSError, tarfile.TarError, EOFError) as error:
                raise BadInput(f"{self.place}: {name} cannot be read ({error}); take another backup") from None
            if found != entry["sha256"]:
                raise BadInput(f"{self.place}: {name} is not what was backed up; take another backup")

    def unpack(self, name: str, target: Path) -> None:
        """Write one of its files, synced."""
        with _restoring(target), self.open(name) as source:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                shutil.copyfileobj(source, file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        if self._tar is not None:
            self._tar.close()

    def _manifest(self) -> dict[str, Any]:
        try:
            with self.open(MANIFEST) as file:
                found = json.loads(file.read(_LARGEST_MANIFEST))
            if found["schema"] != 1:
                raise BadInput(f"{self.place} was made by a newer podeval (schema {found['schema']}); upgrade podeval")
            files = found["files"]
            if not all(_plain(name) and isinstance(entry["sha256"], str) for name, entry in files.items()):
                raise ValueError("a name leads out of it")
        except (ValueError, KeyError, TypeError, AttributeError, OSError, tarfile.TarError, EOFError) as error:
            raise BadInput(f"the manifest of {self.place} is damaged ({error}); take another backup") from None
        plain: dict[str, Any] = found
        return plain


@contextlib.contextmanager
def _restoring(target: Path) -> Iterator[None]:
    try:
        with writing(target):
            yield
    except DiskFull as error:
        raise DiskFull(
            f"the disk is full while {target.parent} is restored; what was there is as it was: free some space and "
            "restore again"
        ) from error


def _plain(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\x00" not in name


def _text(manifest: dict[str, Any], files: dict[str, dict[str, Any]]) -> bytes:
    content = {"schema": 1, **manifest, "files": dict(sorted(files.items()))}
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
