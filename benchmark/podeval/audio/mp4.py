"""Walk the boxes of an MP4 file to find where each movie ends, and check that the counts in the file's index are
possible.

Before FFmpeg reads any sample, it builds an entry of about 36 bytes for each sample that the index states. An index can
state millions of samples in a few bytes (one size, or one duration, for all samples), so this module counts the samples
and compares their number with the file size. Source: ISO/IEC 14496-12 (boxes of a movie, 8.6 to 8.8), QuickTime File
Format (`keys`).
"""

from collections import Counter
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from podeval.audio.container import Container, ImpossibleCounts, cut, read_at

MOST_TRACKS = 8
MOST_EDITS = 4
"""A track with at most this many edits needs no further check; if there are more, the samples that all edits together
could show must fit into the file.
"""

_TOP = frozenset(b"ftyp styp moov moof mdat free skip wide mfra sidx ssix uuid meta udta pnot prft emsg".split())
_MOST_BOXES = 2_000_000
_DEEPEST, _BLOCK = 16, 2**20
_PARENTS = frozenset(b"moov trak edts mdia minf stbl mvex moof traf udta meta dinf ipro sinf schi".split())
_SOUND = frozenset(b"mdat free skip wide".split())
_COUNTS = {
    **dict.fromkeys(b"stts ctts stsc stco co64 stss stps elst trun keys senc stsd dref subs".split(), (4, 4)),
    **dict.fromkeys((b"stsz", b"stz2"), (8, 8)),
    **dict.fromkeys((b"sbgp", b"sgpd"), (8, 12)),
    b"saio": (4, 4),
    b"saiz": (5, 5),
    b"iloc": (6, 6),
    b"iinf": (4, 4),
    b"pssh": (20, 20),
}
"""Offset of a box's entry count from the end of the box's header, in version 0 and in later versions."""
_KINDS_OF_AUXILIARY = (b"saio", b"saiz")
_SHORT = (b"iloc", b"iinf")
_SAMPLES = (b"stsz", b"stz2", b"trun")
_RUNS = {b"stts": 8, b"ctts": 8}
"""Tables of runs: each entry begins with the number of samples that it covers."""


def read_mp4(file: BinaryIO, start: int, size: int) -> Container:
    """Walk the boxes; a movie ends before the next `ftyp` that follows its media.

    Raises:
        ImpossibleCounts: the index states impossible values.
    """
    at, cuts, kinds = 0, [0], set[bytes]()
    for _ in range(_MOST_BOXES):
        header = read_at(file, min(at, size), 16)
        length, kind = int.from_bytes(header[:4], "big"), header[4:8]
        length = int.from_bytes(header[8:16], "big") if length == 1 else length or size - at
        is_box = kind in _TOP or (kind.isalnum() and at + length <= size)
        if not is_box or length < 8 or (kind == b"moov" and kind in kinds):
            break
        if kind == b"ftyp" and kinds & {b"mdat", b"moof"}:
            cuts.append(at)
            kinds.clear()
        kinds.add(kind)
        at += length
    for begin, end in pairwise([*cuts, size]):
        _Index(file, size).walk(begin, end)
    return Container("mp4", "av", cut(cuts, size), len(cuts), at or None)


class _Index:
    """Adds up the counts in all boxes of a movie, because FFmpeg reads these boxes wherever they are in the file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self._totals = Counter[bytes]()
        self._boxes = 0

    def walk(self, begin: int, end: int, depth: int = 0) -> None:
        """Walk the boxes between two offsets.

        Raises:
            ImpossibleCounts: a total exceeds the file's size, or a box of the index exceeds the rest of the file.
        """
        at = begin
        while at + 8 <= min(end, self._size):
            header = read_at(self._file, at, 24)
            length, kind, head = int.from_bytes(header[:4], "big"), header[4:8], 8
            if length == 1:
                length, head = int.from_bytes(header[8:16], "big"), 16
            length = length or end - at
            self._boxes += 1
            if length < head or self._boxes > _MOST_BOXES:
                break
            if kind == b"cmov":
                raise ImpossibleCounts("has a compressed index, which podeval does not support: convert it to FLAC")
            # FFmpeg also looks for movies in free boxes.
            hidden = kind in (b"free", b"hoov") and header[head + 4 : head + 8] in (b"moov", b"cmov")
            if (kind in _PARENTS or hidden) and depth < _DEEPEST:
                # Only in the ISO form of `meta` do the contents follow a version field.
                inside = at + head + (4 if kind == b"meta" and header[head + 4 : head + 8] != b"hdlr" else 0)
                samples, edits = self._sum_samples(), self._totals[b"elst"]
                self._add(b"trak", kind == b"trak")
                self.walk(inside, at + length, depth + 1)
                samples, edits = self._sum_samples() - samples, self._totals[b"elst"] - edits
                if kind == b"trak" and edits > MOST_EDITS:
                    self._require(b"elst", samples * edits)
            elif kind not in _SOUND and (depth or kind == b"uuid") and at + length > self._size:
                raise ImpossibleCounts(f"is cut off: its index ends at byte {at + length} of {self._size}")
            if kind in _COUNTS:
                self._count(kind, at + head, at + length)
            at += length

    def _count(self, kind: bytes, at: int, end: int) -> None:
        """Add the entries of a box, and the samples of its runs, to the totals."""
        body = read_at(self._file, at, 32)
        later = body[:1] > b"\0"
        offset = _COUNTS[kind][later] + (8 if kind in _KINDS_OF_AUXILIARY and body[3:4] == b"\1" else 0)
        short = kind in _SHORT and (body[:1] < b"\2" if kind == b"iloc" else not later)
        if kind == b"pssh" and not later:
            return
        count = int.from_bytes(body[offset : offset + (2 if short else 4)], "big")
        self._add(kind, count)
        if kind == b"stsz" and count:
            self._require(kind, count * int.from_bytes(body[4:8], "big"))
        if kind in _RUNS:
            for start in range(at + 8, min(at + 8 + count * _RUNS[kind], end, self._size), _BLOCK):
                block = read_at(self._file, start, min(_BLOCK, end - start))
                numbers = np.frombuffer(block[: len(block) // 8 * 8], ">u4")[::2]
                self._add(kind + b" samples", int(numbers.sum(dtype=np.uint64)))

    def _sum_samples(self) -> int:
        return sum(self._totals[kind] for kind in _SAMPLES)

    def _add(self, kind: bytes, count: int) -> None:
        self._totals[kind] += count
        self._require(kind, self._sum_samples() if kind in _SAMPLES else self._totals[kind])
        if self._totals[b"trak"] > MOST_TRACKS:
            raise ImpossibleCounts(f"has more than {MOST_TRACKS} tracks: give a file with one track")

    def _require(self, kind: bytes, total: int) -> None:
        if total > self._size:
            raise ImpossibleCounts(
                f"is damaged: its index states {total:,} in {kind.decode('latin-1')!r}, but it has {self._size:,} bytes"
            )
