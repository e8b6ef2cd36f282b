"""Write files completely or not at all, append lines that survive a killed process, and find podeval's own folders."""

import contextlib
import errno
import hashlib
import importlib.util
import io
import json
import os
import secrets
import shutil
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from podeval.errors import BadInput, PodevalError

LEAST_ROOM = 2**20
"""Number of free bytes below which a disk counts as full."""


class DiskFull(PodevalError):
    """The disk is full; data that was already written is safe."""


def explain_unwritable(folder: Path) -> str | None:
    """Return the reason why a folder is not writable, with the remedy; None if it is writable."""
    if not os.access(folder, os.W_OK):
        return "read-only for this user; mount it for writing, or change its permissions"
    return "full; free some space" if shutil.disk_usage(folder).free < LEAST_ROOM else None


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Convert errors caused by a full or read-only disk into errors that say what to do.

    Raises:
        DiskFull: no space is left.
        BadInput: the location is not writable.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFull(
                f"cannot write {path}, because the disk is full or a quota is used up. Everything finished so far is "
                "kept: free some space and run the same command again, which resumes where it stopped"
            ) from error
        raise BadInput(f"cannot write {path}: {error.strerror}; choose a folder that you can write to") from error


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def resolve_inside(folder: Path, name: str) -> Path:
    """Return the file that a document names in a folder, with all links resolved; the file need not exist.

    Raises:
        BadInput: the name is absolute, leaves the folder through `..` or a link, or is not a valid name.
    """
    parts = Path(name).parts
    try:
        path = Path(os.path.realpath(folder / name))
    except ValueError:  # NUL, or half of a surrogate pair
        parts = ()
    if not parts or Path(name).is_absolute() or ".." in parts:
        raise BadInput(f"{name!r} points outside the folder; name a file in it")
    if not path.is_relative_to(os.path.realpath(folder)):
        raise BadInput(f"{name!r} is a link that points outside the folder; put the file itself there")
    return path


def shorten_names(names: Sequence[str]) -> list[str]:
    """Return paths without their common leading folders; return them unchanged if two would become equal."""
    if len(names) < 2:
        return [Path(name).name or name for name in names]
    try:
        shared = os.path.commonpath([str(Path(name).parent) for name in names])
        short = [os.path.relpath(name, shared) if shared else name for name in names]
    except ValueError:
        return list(names)
    return short if len(set(short)) == len(names) else list(names)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file's content, and sync the file and its name; readers see the old or the new content, never a
    mixture.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with explain_write_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            sync_folder(path.parent)
        finally:
            partial.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    """Write plain data as JSON, completely or not at all."""
    write_whole(path, (json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode())


def append_line(path: Path, data: Any) -> None:
    """Append one JSON line and sync it, after removing any half-written last line left by a killed process."""
    append_lines(path, [data])


def append_lines(path: Path, rows: Iterable[Any]) -> None:
    """Append JSON lines with one sync; if the process is killed, only the first few may have been written."""
    text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file is unbuffered, so data that did not fit is not written when it is closed.
        with path.open("a+b", buffering=0) as file:
            end = append_synced(file, text)
        if not end:
            sync_folder(path.parent)


def append_synced(file: io.FileIO, lines: bytes) -> int:
    """Append complete lines to an open file, either all or none of them, and sync the file; return the offset at which
    the lines begin.

    Any half-written last line left by a killed process is removed first.
    """
    end = find_end_of_last_line(file)
    file.truncate(end)
    try:
        rest = memoryview(lines)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            file.truncate(end)
        raise
    return end


@contextlib.contextmanager
def _explain_storage_errors(address: str) -> Iterator[tuple[Any, str]]:
    """Yield the storage behind an address and the path in that storage; convert all kinds of storage errors to one
    type.
    """
    import fsspec

    try:
        yield fsspec.core.url_to_fs(address)
    except Exception as error:
        raise PodevalError(f"{address} cannot be used ({error}); check the address and your access to it") from error


def write_shard(address: str, paths: Iterable[Path]) -> None:
    """Write files into one tar archive, in a folder or in object storage that fsspec supports, such as `s3://…` or
    `hf://…`.

    Raises:
        PodevalError: the archive cannot be written there.
    """
    import fsspec

    with (
        _explain_storage_errors(address),
        fsspec.open(address, "wb") as target,
        tarfile.open(fileobj=target, mode="w|") as shard,
    ):
        for path in paths:
            shard.add(path, path.name)


def read_shard(address: str, folder: Path) -> None:
    """Extract the files of an archive that `write_shard` wrote, if the archive exists; no file is written outside the
    folder.

    Raises:
        PodevalError: the archive cannot be read.
    """
    with _explain_storage_errors(address) as (storage, path):
        if storage.exists(path):
            with storage.open(path, "rb") as source, tarfile.open(fileobj=source, mode="r|") as shard:
                shard.extractall(folder, filter="data")


def delete_shard(address: str) -> None:
    """Delete an archive that `write_shard` wrote, if the archive exists.

    Raises:
        PodevalError: the archive cannot be deleted.
    """
    with _explain_storage_errors(address) as (storage, path):
        if storage.exists(path):
            storage.rm(path)


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, so that a new file survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some mounts, such as buckets, have no folders to sync
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> list[Any]:
    """Read the complete JSON lines of a file; a half-written last line is ignored.

    Raises:
        BadInput: an earlier line is not JSON; the message names the line.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    lines = content[: content.rfind(b"\n") + 1].split(b"\n")
    return [_parse_line(line, path, number) for number, line in enumerate(lines, 1) if line.strip()]


def _parse_line(line: bytes, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise BadInput(
            f"{path}, line {number} is damaged ({error}); delete that line and run the same "
            "command again, which restores its content"
        ) from None


def import_file(path: Path, name: str) -> ModuleType:
    """Import a Python file as a module of this name, and return it.

    Raises:
        PodevalError: the file is not a Python file; errors that the file raises are passed on.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PodevalError(f"{path} cannot be imported; reinstall podeval")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def lock_folder(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a folder for this process; the lock is released when the process ends, even if it is killed.

    Args:
        folder: the folder to lock; it is created if it does not exist.
        wait: whether to wait for another process to release the lock instead of raising.

    Raises:
        BadInput: another process holds the lock.
    """
    from filelock import FileLock, Timeout

    # A thread other than the one that locked may release the lock. Soft locks, the only kind available on some mounts,
    # are not used because they outlive their process.
    lock = FileLock(folder / ".lock", thread_local=False, fallback_to_soft=False)
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=wait)
        except Timeout:
            raise BadInput(f"another podeval run is writing to {folder}; wait, or choose another folder") from None
    try:
        yield
    finally:
        lock.release()


def find_end_of_last_line(file: IO[bytes]) -> int:
    """Return the offset after the last newline; only the end of the file is read."""
    end = file.seek(0, os.SEEK_END)
    position = end
    while position > 0:
        start = max(0, position - 65536)
        file.seek(start)
        newline = file.read(position - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        position = start
    return 0


def find_user_folder() -> Path:
    """Return the folder for this user's podeval results: `PODEVAL_CACHE`, or the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("PODEVAL_CACHE") or platformdirs.user_cache_dir("podeval"))


def locate_hub_source(name: str) -> Path:
    """Return the folder of that name that contains the source of a Hub repo, in both wheels and editable installs.

    Raises:
        PodevalError: the installation lacks this folder.
    """
    package = Path(__file__).parent
    for candidate in (package / "_hub" / name, package.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise PodevalError(f"this installation of podeval lacks {name}/; reinstall it")
