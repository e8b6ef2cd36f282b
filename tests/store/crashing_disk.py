"""A disk that forgets what was not synced: SQLite's own file system layer, watched from Python.

SQLite reaches files through a table of functions (its VFS). This module registers a copy of the default one, through
`ctypes`, in the very library that Python's `sqlite3` uses, and makes it the default. Writing, truncating and syncing
pass through here: each file is kept as what is certainly on the disk (its content at the last sync) and the writes
since. Nothing in SQLite or podeval is changed or replaced, and no other program is needed. What it does not model:
a sync that lies, sectors torn in half, and names of files that a folder forgets. Where `sqlite3` has SQLite built in,
its functions cannot be reached, and the tests skip.

Interfaces: sqlite.org/c3ref/vfs.html and sqlite.org/c3ref/io_methods.html.
"""

import _sqlite3
import ctypes
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_P = ctypes.c_void_p
_I = ctypes.c_int
_L = ctypes.c_int64
# The name stays an address: SQLite reads it from there until the file is closed, and a copy of ours would be gone.
_OPEN = ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _P)
_WRITE = ctypes.CFUNCTYPE(_I, _P, _P, _I, _L)
_TRUNCATE = ctypes.CFUNCTYPE(_I, _P, _L)
_SYNC = ctypes.CFUNCTYPE(_I, _P, _I)
_DELETE = ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, _I)


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", _I), ("file_size", _I), ("longest", _I), ("next", _P), ("name", ctypes.c_char_p), ("data", _P),
        ("open", _P), ("delete", _P), ("rest", _P * 14),
    ]  # fmt: skip


class _Methods(ctypes.Structure):
    _fields_ = [
        ("version", _I), ("close", _P), ("read", _P), ("write", _P), ("truncate", _P), ("sync", _P), ("rest", _P * 13),
    ]  # fmt: skip


def library() -> ctypes.CDLL | None:
    """The SQLite that Python's `sqlite3` is linked to; None where it is built in."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return None
    assert _sqlite3
    found = re.search(r"(/\S*libsqlite3\.so\S*)", maps)
    return ctypes.CDLL(found.group(1)) if found else None


Change = Callable[[bytearray], None]


_ALIVE: list["CrashingDisk"] = []
"""All that were started: SQLite calls their functions for as long as a file it opened then is open."""


class CrashingDisk:
    """Watches all files of SQLite below one folder, from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve())
        self.synced: dict[str, bytes] = {}
        self.unsynced: dict[str, list[Change]] = {}
        self.syncs = 0
        found = library()
        assert found is not None
        self._library = found
        self._library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        self._library.sqlite3_vfs_register.argtypes = [_P, _I]
        self._library.sqlite3_vfs_unregister.argtypes = [_P]
        self._names: dict[int, str] = {}
        self._tables: dict[int, _Methods] = {}
        self._kept: list[Any] = []

    def start(self) -> None:
        """From now on, SQLite's files are watched."""
        _ALIVE.append(self)
        self._default = self._library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._default.contents)
        # A connection that was opened then uses it to the end, also after another start.
        self._kept.append(self._vfs)
        self._vfs.name = b"crashing-disk"
        self._vfs.open = self._function(_OPEN, self._opens(_OPEN(self._vfs.open)))
        self._vfs.delete = self._function(_DELETE, self._deletes(_DELETE(self._vfs.delete)))
        assert self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == 0

    def stop(self) -> None:
        """No longer; what is open stays watched."""
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
        assert self._library.sqlite3_vfs_register(self._default, 1) == 0

    def crash(self, into: Path, chance: random.Random | None = None) -> Path:
        """The folder as the disk has it when the power fails now.

        Args:
            into: a new folder.
            chance: draws, of each file, which of its unsynced writes reached the disk all the same, in whatever order;
                none without it.
        """
        into.mkdir()
        for name in self.synced.keys() | self.unsynced.keys():
            content = bytearray(self.synced.get(name, b""))
            for change in self.unsynced.get(name, ()):
                if chance is not None and chance.random() < 0.5:
                    change(content)
            (into / Path(name).name).write_bytes(bytes(content))
        return into

    def _opens(self, original: Any) -> Any:
        def opened(vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
            code = int(original(ctypes.addressof(self._default.contents), name, file, flags, out))
            path = os.fsdecode(ctypes.string_at(name)) if name else ""
            if code == 0 and path.startswith(self._folder):
                self._names[file] = path
                if path not in self.synced and path not in self.unsynced:
                    self.unsynced[path] = []
                    if os.path.getsize(path):
                        self.synced[path] = Path(path).read_bytes()
                self._watch(file)
            return code

        return opened

    def _deletes(self, original: Any) -> Any:
        def deleted(vfs: int, name: bytes, sync: int) -> int:
            code = int(original(ctypes.addressof(self._default.contents), name, sync))
            if code == 0:
                self.synced.pop(os.fsdecode(name), None)
                self.unsynced.pop(os.fsdecode(name), None)
            return code

        return deleted

    def _watch(self, file: int) -> None:
        """Give an open file the watched functions; the rest of its functions stay."""
        pointer = ctypes.cast(file, ctypes.POINTER(_P))
        original = int(pointer[0])
        if original not in self._tables:
            methods = _Methods.from_buffer_copy(_Methods.from_address(original))
            methods.write = self._function(_WRITE, self._writes(_WRITE(methods.write)))
            methods.truncate = self._function(_TRUNCATE, self._truncates(_TRUNCATE(methods.truncate)))
            methods.sync = self._function(_SYNC, self._syncs(_SYNC(methods.sync)))
            self._tables[original] = methods
        pointer[0] = ctypes.addressof(self._tables[original])

    def _writes(self, original: Any) -> Any:
        def written(file: int, data: int, count: int, offset: int) -> int:
            block = ctypes.string_at(data, count)

            def change(content: bytearray) -> None:
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + count] = block

            self._unsynced(file).append(change)
            return int(original(file, data, count, offset))

        return written

    def _truncates(self, original: Any) -> Any:
        def truncated(file: int, size: int) -> int:
            self._unsynced(file).append(lambda content: content.__delitem__(slice(size, None)))
            return int(original(file, size))

        return truncated

    def _syncs(self, original: Any) -> Any:
        def done(file: int, flags: int) -> int:
            code = int(original(file, flags))
            name = self._names[file]
            if code == 0:
                content = bytearray(self.synced.get(name, b""))
                for change in self.unsynced.get(name, ()):
                    change(content)
                self.synced[name], self.unsynced[name] = bytes(content), []
                self.syncs += 1
            return code

        return done

    def _unsynced(self, file: int) -> list[Change]:
        return self.unsynced.setdefault(self._names[file], [])

    def _function(self, kind: Any, function: Any) -> Any:
        made = kind(function)
        self._kept.append(made)
        return ctypes.cast(made, _P).value
