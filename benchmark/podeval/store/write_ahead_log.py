"""Whether SQLite's log still holds all that was committed: what SQLite itself does not ask.

After a crash SQLite reads its log up to the first frame that does not fit its checksum and forgets the rest: that rest
was not committed, as long as the disk keeps what it synced. Where the file was cut or changed afterwards, committed
changes are forgotten the same way, without a word. Two things tell: a frame that does not fit although a whole
transaction and the beginning of another follow it (the earlier one was synced before the later one began); and the
index of the log, which outlives a killed process and says how many frames there were.

Formats: sqlite.org/fileformat2.html#walformat and sqlite.org/walformat.html#walidxfmt.
"""

import struct
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

_HEADER, _FRAME, _INDEX = 32, 24, 48
_LITTLE, _BIG = 0x377F0682, 0x377F0683
_VERSION = 3_007_000
_TRIES = 5


@dataclass(frozen=True)
class _Index:
    """What the index says: frames there were, frames that are in the database already, and of which log."""

    frames: int
    written_back: int
    salts: bytes


def lost_frames(database: Path) -> int:
    """How many pages of committed changes a file of SQLite cannot read from its log any more; 0 where all is well.

    Args:
        database: the file; may be in use.
    """
    log, index = (database.with_name(database.name + ending) for ending in ("-wal", "-shm"))
    for _ in range(_TRIES):
        before = _bytes(index, 256)
        content = _bytes(log)
        if _bytes(index, 256) == before:
            # Nobody wrote meanwhile, so both are of one moment.
            return _lost(content, _index(before))
    return 0


def _lost(content: bytes, index: _Index | None) -> int:
    if index is not None and index.written_back >= index.frames > 0:
        return 0
    read = _valid(content)
    if read is None:
        unread = index.frames - index.written_back if index is not None and content else 0
        return max(0, unread)
    valid, later = read
    last = max((number for number, (of_this_log, _) in enumerate(later) if of_this_log), default=0)
    # Of a transaction that another one follows, every frame was synced.
    synced = [number for number, (of_this_log, ends) in enumerate(later) if of_this_log and ends and number < last]
    by_the_log = synced[-1] + 1 if synced else 0
    by_the_index = 0
    if index is not None and index.salts == content[16:24]:
        by_the_index = index.frames - max(valid, index.written_back)
    return max(0, by_the_log, by_the_index)


def _valid(content: bytes) -> tuple[int, list[tuple[bool, bool]]] | None:
    """How many frames fit their checksums from the first on, and of those after: of this log, end of a transaction."""
    if len(content) < _HEADER:
        return None
    magic, version, page = struct.unpack(">III", content[:12])
    if magic not in (_LITTLE, _BIG) or version != _VERSION or page < 512:
        return None
    little = magic == _LITTLE
    sums = _checksum(content[:24], (0, 0), little)
    if sums != struct.unpack(">II", content[24:32]):
        return None
    count, valid = (len(content) - _HEADER) // (_FRAME + page), 0
    for number in range(count):
        start = _HEADER + number * (_FRAME + page)
        head = content[start : start + _FRAME]
        if head[8:16] != content[16:24]:
            break
        sums = _checksum(head[:8], sums, little)
        sums = _checksum(content[start + _FRAME : start + _FRAME + page], sums, little)
        if sums != struct.unpack(">II", head[16:24]):
            break
        valid += 1
    later = []
    for number in range(valid, count):
        start = _HEADER + number * (_FRAME + page)
        head = content[start : start + _FRAME]
        later.append((head[8:16] == content[16:24], head[4:8] != bytes(4)))
    return valid, later


def _checksum(data: bytes, before: tuple[int, int], little: bool) -> tuple[int, int]:
    words = array("I", data)
    if (sys.byteorder == "little") != little:
        words.byteswap()
    first, second = before
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & 0xFFFFFFFF
        second = (second + words[at + 1] + first) & 0xFFFFFFFF
    return first, second


def _index(content: bytes) -> _Index | None:
    """The index, where both copies of its header agree; it is in the byte order of this machine."""
    if len(content) < 2 * _INDEX + 4 or content[:_INDEX] != content[_INDEX : 2 * _INDEX]:
        return None
    version, _, _, ready = struct.unpack("=IIIB", content[:13])
    if version != _VERSION or not ready:
        return None
    (frames,) = struct.unpack("=I", content[16:20])
    (written_back,) = struct.unpack("=I", content[96:100])
    return _Index(frames, written_back, content[32:40])


def _bytes(path: Path, most: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return b""
