"""Derived facts on disk: content-addressed, verified when read, bounded in size, safe to delete at any time.

An entry's name begins with a digest of the content that it is about, so that everything about one recording can be
deleted. An entry is 32 bytes of SHA-256 followed by the payload that it is the digest of. It is written under another
name and moved into place, so a reader sees a whole entry or none; an entry that does not match its digest is computed
anew. Two processes may share one folder: at worst both compute the same entry.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import platformdirs
from numpy.typing import NDArray

from podeval.audio.prosody import VoiceContour, measure_prosody
from podeval.errors import BadInput
from podeval.models.interfaces import Samples

T = TypeVar("T")

_VERSION = 2
_DIGEST = 32
_PRUNE_EVERY = 200
"""Entries that are written at least between two looks through the folder."""

_PRUNE_SHARE, _PRUNE_LEAST = 1 / 16, 1 / 50
"""Bytes written between two looks: a share of the room that was left at the last, and at least one of the limit.

So the looks at a folder that fills do not take longer and longer: they become rarer as it grows, and closer only near
the limit. Other processes write too, and the share leaves room for theirs.
"""

_LOOKED = ".looked-through"
_LOOK_HOLDS, _LOOK_HOLDS_LEAST = 3600.0, 60.0
"""Seconds for which a process believes how much room an earlier one found: in an empty folder, and in a full one."""

_DERIVED = "/"


class Cache:
    """A folder of entries, limited to `limit` bytes; the least recently used are deleted first."""

    def __init__(self, folder: Path, limit: int = 20 * 2**30) -> None:
        self.folder = folder
        self.limit = limit
        self._writes_left = 0
        self._bytes_left: float | None = None

    @staticmethod
    def key(content: str, fact: str, **dependencies: Any) -> str:
        """Return the name of an entry, from its content, its fact and everything that can change it."""
        text = json.dumps([_VERSION, content, fact, dependencies], sort_keys=True)
        return f"{_make_prefix(content)}-{hashlib.sha256(text.encode()).hexdigest()[:48]}"

    def delete_about(self, contents: Iterable[str]) -> int:
        """Delete every entry about these contents or derived from them; return how many.

        Entries of earlier versions, whose names do not say what they are about, are deleted as well.
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
        """Return the payload, or None if there is none or it is damaged."""
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
        """Store a payload; a full or read-only disk costs the entry, never the result."""
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
            self._bytes_left = self._read_allowance()
        self._writes_left -= 1
        self._bytes_left -= _DIGEST + len(payload)
        if self._bytes_left <= 0 and self._writes_left <= 0:
            self.prune()

    def prune(self) -> None:
        """Delete the least recently used entries until the folder is within its limit."""
        size = self._delete_oldest()
        self._writes_left = _PRUNE_EVERY
        self._bytes_left = self._allow(size)
        with contextlib.suppress(OSError):
            (self.folder / _LOOKED).write_text(str(size), encoding="ascii")

    def _allow(self, size: float) -> float:
        """Return the bytes that may be written before the folder, of this size now, is looked through again."""
        return max(_PRUNE_SHARE * (self.limit - size), _PRUNE_LEAST * self.limit)

    def _read_allowance(self) -> float:
        """Return what an earlier process leaves this one to write; nothing where none has looked lately."""
        path = self.folder / _LOOKED
        try:
            size, age = float(path.read_text(encoding="ascii")), time.time() - path.stat().st_mtime
        except (OSError, ValueError):
            return 0.0
        holds = max(_LOOK_HOLDS_LEAST, _LOOK_HOLDS * (1 - size / self.limit))
        return self._allow(size) if 0 <= age < holds else 0.0

    def _delete_oldest(self) -> int:
        """Do what `prune` does, and return the bytes that are left."""
        entries = []
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                entries.append((stat.st_mtime, stat.st_size, path))
        size = sum(entry[1] for entry in entries)
        for _, bytes_freed, path in sorted(entries):
            if size <= self.limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                size -= bytes_freed
        return size

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def derive_content(content: str, *how: Any) -> str:
    """Return the content key of a recording derived from another; its facts are deleted with those of the original."""
    digest = hashlib.sha256(json.dumps([content, *how], sort_keys=True).encode()).hexdigest()
    return f"{content.partition(_DERIVED)[0]}{_DERIVED}{digest}"


def _make_prefix(content: str) -> str:
    return hashlib.sha256(content.partition(_DERIVED)[0].encode()).hexdigest()[:16]


def dump_array(array: NDArray[Any]) -> bytes:
    """Write an array as `Cache.put` takes it."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def load_array(payload: bytes) -> NDArray[Any]:
    """Read what `dump_array` wrote."""
    array: NDArray[Any] = np.load(io.BytesIO(payload), allow_pickle=False)
    return array


@functools.cache
def open_default_cache() -> Cache:
    """Return this user's cache: `PODEVAL_CACHE` or the platform's cache folder, `PODEVAL_CACHE_GB` gigabytes (20).

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


class DerivedFacts:
    """What is derived of one recording, by name, kept in memory; each piece is computed once, whichever threads ask."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._locks: dict[str, Any] = {}

    def compute_once(self, name: str, make: Callable[[], T]) -> T:
        """Return a value, computed when it is first asked for; who asks meanwhile waits for it."""
        with self.lock(name):
            if name not in self._values:
                self._values[name] = make()
            value: T = self._values[name]
            return value

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of a name: one thread at a time is inside, as often as it likes."""
        # `setdefault` is one step to all threads.
        with self._locks.setdefault(name, RLock()):
            yield


_PROSODY_METHOD = "1"
"""Changes with what `measure_prosody` gives."""


def load_or_measure_prosody(cache: Cache, content: str, upsampled: bool, read: Callable[[], Samples]) -> VoiceContour:
    """Return pitch and level from the cache, or measure and keep them.

    Args:
        cache: the place where they are kept.
        content: the content hash of the recording.
        upsampled: whether the recording itself has a lower rate than 16 kHz.
        read: returns its samples, mono at 16 kHz.

    Raises:
        ModelMissing: librosa is not installed.
    """
    librosa = None
    with contextlib.suppress(PackageNotFoundError):
        librosa = version("librosa")
    key = Cache.key(content, "prosody", method=_PROSODY_METHOD, librosa=librosa, upsampled=upsampled)
    if (payload := cache.get(key)) is not None:
        # An entry in another form is measured anew.
        with contextlib.suppress(ValueError, EOFError):
            pitch, level = load_array(payload)
            return VoiceContour(pitch, level)
    measured = measure_prosody(read())
    cache.put(key, dump_array(np.stack([measured.pitch, measured.level])))
    return measured
