"""Derived facts on disk: content-addressed, verified when read, limited in size, and safe to delete at any time.

An entry's name begins with a digest of the content that it describes, so everything about one recording can be deleted.
An entry consists of the SHA-256 of its payload (32 bytes), followed by the payload itself. It is written under a
temporary name and moved into place, so a reader sees either a complete entry or no entry; an entry whose payload does
not match the digest is computed again. Two processes may share a folder: at worst, both compute the same entry.
"""

import contextlib
import functools
import hashlib
import io
import json
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

from podeval.errors import BadInput

_VERSION = 2
_DIGEST = 32
_PRUNE_EVERY, _PRUNE_SHARE = 200, 1 / 50
"""Number of new entries, or share of the limit in new bytes, after which the folder is scanned again."""

_LOOKED, _LOOK_HOLDS = ".looked-through", 3600.0
"""The file that is touched whenever the folder is scanned, and the number of seconds for which a new process relies on
that scan.
"""

_DERIVED = "/"


class Cache:
    """A folder of entries of at most `limit` bytes; the least recently used entries are deleted first."""

    def __init__(self, folder: Path, limit: int = 20 * 2**30) -> None:
        self.folder = folder
        self.limit = limit
        self._writes_left = 0
        self._bytes_left: float | None = None

    @staticmethod
    def key(content: str, fact: str, **dependencies: Any) -> str:
        """Return the name of an entry, from the content, the fact and all settings that can change it."""
        text = json.dumps([_VERSION, content, fact, dependencies], sort_keys=True)
        return f"{_make_prefix(content)}-{hashlib.sha256(text.encode()).hexdigest()[:48]}"

    def delete_about(self, contents: Iterable[str]) -> int:
        """Delete every entry about these contents or derived from them; return the number of entries.

        Entries from earlier versions, whose names do not identify their recording, are also deleted.
        """
        prefixes = {_make_prefix(content) for content in contents}
        deleted = 0
        for path in self.folder.glob("??/*") if prefixes else ():
            start, dash, _ = (path.parent.name + path.name).partition("-")
            if not dash or start in prefixes:
                with contextlib.suppress(OSError):
                    path.unlink()
                    deleted += 1
        return deleted

    def get(self, key: str) -> bytes | None:
        """Return the payload, or None if it does not exist or is damaged."""
        path = self._path(key)
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        digest, payload = entry[:_DIGEST], entry[_DIGEST:]
        if hashlib.sha256(payload).digest() != digest:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store a payload; if the disk is full or read-only, only the entry is lost, never the result."""
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(prefix=".partial-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(payload).digest() + payload)
                os.replace(partial, path)
            except BaseException:
                os.unlink(partial)
                raise
        if self._bytes_left is None:
            self._bytes_left = _PRUNE_SHARE * self.limit if self._was_looked_through() else 0.0
        self._writes_left -= 1
        self._bytes_left -= _DIGEST + len(payload)
        if self._bytes_left <= 0 and self._writes_left <= 0:
            self.prune()

    def prune(self) -> None:
        """Delete the least recently used entries until the folder is within its limit."""
        entries = self._list_entries()
        size = sum(entry[1] for entry in entries)
        for _, bytes_freed, path in sorted(entries):
            if size <= self.limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                size -= bytes_freed
        self._writes_left, self._bytes_left = _PRUNE_EVERY, _PRUNE_SHARE * self.limit
        with contextlib.suppress(OSError):
            (self.folder / _LOOKED).touch()

    def measure_bytes(self) -> int:
        """Return the total size of the entries in bytes."""
        return sum(size for _, size, _ in self._list_entries())

    def _list_entries(self) -> list[tuple[float, int, Path]]:
        """List each entry's time of last use, size in bytes and file; another process may delete entries in the
        meantime.
        """
        entries = []
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                entries.append((stat.st_mtime, stat.st_size, path))
        return entries

    def _was_looked_through(self) -> bool:
        """Return whether this or an earlier process pruned the folder recently."""
        with contextlib.suppress(OSError):
            return 0 <= time.time() - (self.folder / _LOOKED).stat().st_mtime < _LOOK_HOLDS
        return False

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def derive_content(content: str, *how: Any) -> str:
    """Return the content key of a recording derived from an original, whose deletion also deletes the derived facts."""
    digest = hashlib.sha256(json.dumps([content, *how], sort_keys=True).encode()).hexdigest()
    return f"{content.partition(_DERIVED)[0]}{_DERIVED}{digest}"


def _make_prefix(content: str) -> str:
    return hashlib.sha256(content.partition(_DERIVED)[0].encode()).hexdigest()[:16]


def dump_array(array: NDArray[Any]) -> bytes:
    """Convert an array to the bytes that `Cache.put` expects."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def load_array(payload: bytes) -> NDArray[Any]:
    """Convert the bytes from `dump_array` back to an array."""
    return np.asarray(np.load(io.BytesIO(payload), allow_pickle=False))


@functools.cache
def open_default_cache() -> Cache:
    """Return this user's cache: `PODEVAL_CACHE` or the platform's cache folder, limited to `PODEVAL_CACHE_GB` gigabytes
    (20 by default).

    Raises:
        BadInput: `PODEVAL_CACHE_GB` is not a number.
    """
    folder = os.environ.get("PODEVAL_CACHE") or platformdirs.user_cache_dir("podeval")
    size = os.environ.get("PODEVAL_CACHE_GB") or "20"
    try:
        limit = int(float(size) * 2**30)
    except (ValueError, OverflowError):
        raise BadInput(f"PODEVAL_CACHE_GB must be a number of gigabytes, such as 20, not {size!r}") from None
    return Cache(Path(folder) / "analysis", limit)


def find_version(library: str) -> str | None:
    """Return the version of an installed library, on which facts depend; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:
        return None
