"""Find the audio data in WAV and AIFF files, whatever their headers and chunks, and whatever lengths those state.

Headers are repeated in joined files and in streams with a header in every chunk; audio data continues past the stated
end if a header was written before the audio was complete. Each piece of audio data becomes a part with a correct
header. Sources: Microsoft RIFF, EBU Tech 3306 (RF64), ITU-R BS.2088 (BW64), Apple AIFF-C.
"""

import re
import struct
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import BinaryIO

from podeval.audio.container_parts import MOST_PARTS, Container, Part, find_marks, measure_rest, read_at
from podeval.errors import BadAudio

_MAX_CHUNKS = 1_000_000
_MOST_HEADER_BYTES = 4096
_LARGEST_PART = 2**31
# Lengths stated by streams from SoX, Pocket TTS, eSpeak NG and FFmpeg, or slightly less.
_PLACEHOLDERS = (0x7F000000, 2_000_000_000, 2**31, 2**32)
_ROUND = (10**8, 2**24)
_TAIL_BYTES = 65_536
_TAG = re.compile(rb"(?!RIFF|FORM|OggS|fLaC)[A-Za-z0-9_ ()]{4}")
_METADATA = re.compile(
    rb"(?:LIST|id3 |ID3 |bext|cue |smpl|inst|fact|PEAK|JUNK|junk|FLLR|PAD |iXML|_PMX|cart|acid|axml|chna"
    rb"|NAME|AUTH|ANNO|\(c\) |COMT|MARK|INST|MIDI|APPL|CHAN)"
)
# Text that a server appended to the audio data: JSON, events or the end of a multipart message.
_TEXT = re.compile(rb"\s*(?:[{\[<]|data: |event: |--)[\t\n\r -~]{15,}\Z")
# Minimum number of bytes after the stated end that may be audio data; fewer are left out.
_LEAST_RAW = 2048
# Format tags whose samples are not grouped in blocks: PCM, float, A-law, µ-law, extensible.
_WAV_RAW = (1, 3, 6, 7, 0xFFFE)
_AIFC_RAW = frozenset(b"NONE sowt twos raw in24 in32 fl32 fl64 FL32 FL64 ulaw alaw ULAW ALAW".split())

_DESCRIPTIONS = (b"FVER", b"COMM", b"fmt ", b"fact")
_WAV_LAYOUTS = {
    0x4: "mono",
    0x3: "stereo",
    0xB: "2.1",
    0x7: "3.0",
    0x103: "3.0(back)",
    0x107: "4.0",
    0x33: "quad",
    0x603: "quad(side)",
    0x37: "5.0",
    0x607: "5.0(side)",
    0x3F: "5.1",
    0x60F: "5.1(side)",
    0x13F: "6.1(back)",
    0x70F: "6.1",
    0x63F: "7.1",
}


@dataclass
class _Span:
    # Audio data from `start` to `end`, and the chunks that describe it, by tag.
    chunks: dict[bytes, bytes]
    start: int
    end: int


def read_riff(file: BinaryIO, size: int, name: str, path: object) -> Container:
    """Find all the audio data of a WAV or AIFF file.

    Args:
        file: an open, seekable file that begins with such a header.
        size: the size of the file in bytes.
        name: `wav` or `aiff`.
        path: used in messages only.

    Raises:
        BadAudio: a file of another kind, or too many files, are joined to it.
    """
    walker = _Walker(file, size, name, path)
    begins = [0, *islice(find_marks(file, 1, size, (name,)), MOST_PARTS)]
    if len(begins) > MOST_PARTS:
        raise BadAudio(f"{str(path)!r} has more than {MOST_PARTS:,} parts: join their sound into one file.")
    for begin, limit in pairwise([*begins, size]):
        chunks, end = walker.walk(begin, limit)
        walker.read_rest(chunks, end, limit)
    return walker.finish()


class _Walker:
    """Reads the chunks of joined files, one file after another."""

    def __init__(self, file: BinaryIO, size: int, name: str, path: object) -> None:
        self._file, self._size, self._name, self._path = file, size, name, path
        self._order, self._data = ("<", b"data") if name == "wav" else (">", b"SSND")
        self._spans: list[_Span] = []
        # The lengths that sound chunks state, and how many of those bytes would lie beyond the next header or the end.
        self._lengths: list[tuple[int, int]] = []
        self._unstated = False
        self._stated_bytes = self._joined = self._surplus = self._unread = 0
        self._steps = iter(range(_MAX_CHUNKS))

    def walk(self, begin: int, limit: int) -> tuple[dict[bytes, bytes], int]:
        """Read one file, from its header to the next header or the end.

        Returns:
            The chunks that describe its audio data, and the offset at which its last chunk ends.
        """
        chunks = {b"": read_at(self._file, begin + 8, 4)}
        before, long_size, at = len(self._spans), None, begin + 12
        for _ in self._steps:
            if at + 8 > limit or (len(self._spans) > before and not self._is_chunk(at, limit)):
                break
            tag, length = self._read_chunk(at)
            end = at + 8 + length
            if tag == b"ds64":
                long_size = int.from_bytes(read_at(self._file, at + 16, 8), "little")
            elif tag in _DESCRIPTIONS:
                # Sound found earlier keeps its own description.
                chunks = dict(chunks) if tag in chunks else chunks
                chunks[tag] = read_at(self._file, at + 8, min(length, _MOST_HEADER_BYTES))
            elif tag == self._data:
                length = long_size if long_size is not None and length == 0xFFFFFFFF else length
                end = self._add_span(chunks, at + 8, length, limit)
            # Chunks of odd length should be padded, but not every writer does so.
            at = end + (length % 2 and not self._is_chunk(end, limit))
        self._joined += len(self._spans) > before
        return chunks, at

    def finish(self) -> Container:
        """Create the parts, each small enough for the length fields in its header."""
        parts, carried = [], b""
        formats = [span.chunks.get(b"fmt ", b"") for span in self._spans]
        blocks = [max(1, int.from_bytes(fmt[12:14], "little")) for fmt in formats]
        uncut = len(set(blocks)) != 1 or sum(span.end - span.start for span in self._spans) % blocks[0]
        for number, (span, block) in enumerate(zip(self._spans, blocks, strict=True), 1):
            largest = _LARGEST_PART // block * block
            # A stream that was cut within a sample continues after the next header.
            split = 0 if uncut or number == len(blocks) else (len(carried) + span.end - span.start) % block
            for start, end in pairwise([*range(span.start, span.end - split, largest), span.end - split]):
                parts.append(Part(start, end, self._write_header(span.chunks, len(carried) + end - start) + carried))
                carried = b""
            carried += read_at(self._file, span.end - split, split)
        lacking = sum(after for _, after in self._lengths)
        if len(self._lengths) > 1 and len(dict(self._lengths)) == 1 and all(after for _, after in self._lengths):
            # All headers of a stream state the same length: that of the whole stream or the maximum.
            self._unstated, self._stated_bytes, lacking = True, 0, 0
        fmt = formats[0] if formats else b""
        extensible = len(fmt) >= 24 and fmt[:2] == b"\xfe\xff"
        return Container(
            self._name,
            "soundfile",
            tuple(parts),
            joined=self._joined,
            stated_bytes=self._stated_bytes,
            layout=_WAV_LAYOUTS.get(int.from_bytes(fmt[20:24], "little")) if extensible else None,
            surplus=self._surplus,
            unread=self._unread,
            lacking=lacking if self._stated_bytes <= self._size else 0,
            note="the length is not stated in the file (written as a stream)" if self._unstated else None,
        )

    def _read_chunk(self, at: int) -> tuple[bytes, int]:
        tag, length = struct.unpack(f"{self._order}4sI", read_at(self._file, at, 8).ljust(8, b"\0"))
        return tag, length

    def _is_chunk(self, at: int, limit: int) -> bool:
        # Within audio data, fewer than one position in a thousand looks like a chunk name with a plausible length.
        tag, length = self._read_chunk(at)
        # `data: {` and `data: [` begin events.
        is_sound = tag == self._data and length & 0xFFFFFF not in (0x7B203A, 0x5B203A)
        fits = is_sound or at + 8 + length <= limit + 1
        return at + 8 <= limit and fits and _TAG.fullmatch(tag) is not None

    def _add_span(self, chunks: dict[bytes, bytes], start: int, length: int, limit: int) -> int:
        """Add the audio data of a chunk and return the position of its end."""
        unstated = self._is_placeholder(start, length, limit)
        end = self._find_tail(start, limit) if unstated else min(start + length, limit)
        if start < end and not unstated:
            self._lengths.append((length, start + length - end))
        self._stated_bytes = max(self._stated_bytes, 0 if unstated else start + length)
        # The audio data of AIFF begins after an offset and a block size.
        if self._name == "aiff":
            start += 8 + int.from_bytes(read_at(self._file, start, 4), "big")
        if start < end:
            self._spans.append(_Span(chunks, start, end))
            self._unstated = self._unstated or unstated
        return end

    def _is_placeholder(self, start: int, length: int, limit: int) -> bool:
        """Return whether a length is 0 before audio data, or a known or round number far beyond the end of the file."""
        left = self._size - start
        if length == 0:
            return not self._is_chunk(start, limit)
        if length <= left:
            return False
        is_common = any(abs(length - placeholder) <= 0x1000 for placeholder in _PLACEHOLDERS)
        is_round = length > 2**23 and any(min(length % unit, -length % unit) <= 0x4000 for unit in _ROUND)
        return is_common or (length >= 10 * left and is_round) or length >= max(1000 * left, 2**30)

    def _find_tail(self, start: int, limit: int) -> int:
        """Return where audio data of unknown length ends: before any chunks or text at the end of the file."""
        base = max(start, limit - _TAIL_BYTES)
        tail = read_at(self._file, base, limit - base)
        text = _TEXT.search(tail)
        end = base + text.start() if text else limit
        for match in reversed(list(_METADATA.finditer(tail))):
            at = base + match.start()
            if end - 1 <= at + 8 + self._read_chunk(at)[1] <= end + 1:
                end = at
        return end

    def read_rest(self, chunks: dict[bytes, bytes], at: int, limit: int) -> None:
        """Add the bytes after the last chunk to the audio data if they may be part of it."""
        rest = measure_rest(self._file, at, limit, self._name, self._path)
        head = read_at(self._file, at, min(_TAIL_BYTES, rest))
        if not rest or _METADATA.match(head):
            return
        raw = (
            int.from_bytes(chunks.get(b"fmt ", b"")[:2], "little") in _WAV_RAW
            if self._name == "wav"
            else chunks[b""] == b"AIFF" or chunks.get(b"COMM", b"")[18:22].strip() in _AIFC_RAW
        )
        if not raw or not self._spans or rest < _LEAST_RAW or head.isascii():
            self._unread += rest
        elif at - self._spans[-1].end <= 1:
            self._spans[-1].end, self._surplus = limit, self._surplus + rest
        else:
            self._spans.append(_Span(chunks, at, limit))
            self._surplus += rest

    def _write_header(self, chunks: dict[bytes, bytes], length: int) -> bytes:
        pack = struct.Struct(f"{self._order}4sI").pack
        offsets = bytes(8) if self._name == "aiff" else b""
        body = chunks[b""]
        for tag in _DESCRIPTIONS:
            if tag in chunks:
                body += pack(tag, len(chunks[tag])) + chunks[tag] + bytes(len(chunks[tag]) % 2)
        body += pack(self._data, length + len(offsets)) + offsets
        return pack(b"RIFF" if self._name == "wav" else b"FORM", len(body) + length) + body
