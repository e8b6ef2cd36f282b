"""The container of an audio file, recognised by its bytes, and the parts of the file that are decoded in turn.

A file has several parts if audio files were joined, or if its audio data is in several chunks. WAV and AIFF headers are
repeated in joined files, and in streams with a header in every chunk. Audio data continues past the stated end if the
header was written before the audio was complete. Each piece of audio data becomes a part with a correct header. Streams
of MPEG audio have no container; they are recognised by ID3 tags, ADTS frames, and Layer II and III frames. Sources:
Microsoft RIFF, EBU Tech 3306 (RF64), ITU-R BS.2088 (BW64), Apple AIFF-C; ISO/IEC 11172-3 and 13818-3 (frame header),
13818-7 (ADTS), id3.org (ID3v2.4).
"""

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import BinaryIO, Literal

from podeval.errors import BadAudio

Reader = Literal["soundfile", "av"]


class ImpossibleCounts(ValueError):
    """An index states more samples than the file has bytes; the message follows the file's name in a sentence."""


# Maximum number of joined files; a stream with a header every 20 ms reaches it after 33 minutes.
MOST_PARTS = 100_000
# Maximum number of seconds by which a readable file may be shorter than stated; the shortfall is noted.
NOTED_SHORTFALL = 0.05

# Patterns that identify the beginning of an audio file within other bytes; each begins with fixed bytes.
MARKS = {
    # A FLAC file may contain the header of the original file; the pattern excludes that header.
    "wav": (rb"RIFF(?<!riffRIFF).{4}WAVE", rb"RF64.{4}WAVE", rb"BW64.{4}WAVE"),
    "aiff": (rb"FORM(?<!aiffFORM).{4}AIF[FC]",),
    "flac": (rb"fLaC[\x00\x80]\x00\x00\x22",),
    "ogg": (rb"OggS\x00\x02",),
    "matroska": (rb"\x1aE\xdf\xa3.{1,64}?B\x82.(?:webm|matroska)",),
    "mp4": (rb"\x00\x00\x00.ftyp(?:M4A|M4V|iso|mp4|qt  |dash|avc1|MSNV|3gp)",),
}

TIMED = ("ogg", "matroska", "mp4")
"""Containers whose packets state their times."""

_MAGIC = {
    "wav": re.compile(rb"(?:RIFF|RF64|BW64).{4}WAVE", re.DOTALL),
    "aiff": re.compile(rb"FORM.{4}AIF[FC]", re.DOTALL),
    "ogg": re.compile(rb"OggS"),
    "matroska": re.compile(rb"\x1aE\xdf\xa3"),
    "mp4": re.compile(rb".{4}(?:ftyp|moov|mdat|wide)", re.DOTALL),
}
_BLOCK_BYTES = 4 * 2**20
_LONGEST_MARK = 96
_MOST_PADDING = 65_536
_FILLING = bytes((0, 9, 10, 13, *range(32, 127)))

_MPEG1_RATES = (44_100, 48_000, 32_000)
_MPEG1_LAYER3 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG1_LAYER2 = (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384)
_MPEG2_KBPS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MAX_TAGS = 16


@dataclass(frozen=True)
class Part:
    """A region of a file that a decoder can open as a file of its own.

    Attributes:
        start: the offset of the region's first byte in the file.
        end: the offset after the region's last byte.
        head: the header that precedes these bytes for the decoder, with the correct lengths.
    """

    start: int
    end: int
    head: bytes = b""


@dataclass(frozen=True)
class Container:
    """The format of a file: the way to open it, and what the file states about its own content.

    Attributes:
        name: wav, flac, ogg, mp3, aac, aiff, mp4 (also M4A and MOV) or matroska (also WebM).
        reader: the library that decodes the format.
        parts: the regions of the file that contain its audio data, in order.
        joined: the number of files of this format that were joined.
        stated_bytes: position at which the file should end according to its own structure; None if not stated.
        stated_seconds: length of the audio according to its header; None if not stated.
        tolerance: number of seconds by which complete audio may be shorter than stated (encoder delay and padding).
        layout: FFmpeg's name for the channel layout, if the header names one.
        surplus: the number of bytes of audio data beyond the ends that headers state.
        lacking: the number of bytes that are stated in headers but missing before the next header.
        unread: the number of bytes outside the parts that are neither metadata nor padding.
        note: a sentence about the file for readers of a score.
    """

    name: str
    reader: Reader
    parts: tuple[Part, ...]
    joined: int = 1
    stated_bytes: int | None = None
    stated_seconds: float | None = None
    tolerance: float = 0.0
    layout: str | None = None
    surplus: int = 0
    lacking: int = 0
    unread: int = 0
    note: str | None = None

    @property
    def nbytes(self) -> int:
        """Total number of bytes in the parts."""
        return sum(part.end - part.start for part in self.parts)

    def estimate_missing(self, seconds: float, size: int) -> float:
        """Estimate how many seconds are missing at the end of a truncated file.

        Args:
            seconds: the length of the available audio.
            size: the size of the file in bytes.
        """
        end = min(size, self.parts[-1].end) if self.parts else size
        return seconds * max(0, (self.stated_bytes or 0) - end) / max(1, self.nbytes)


def cut(cuts: list[int], size: int) -> tuple[Part, ...]:
    """Return the parts between offsets, up to the end of the file."""
    return tuple(Part(start, end) for start, end in pairwise([*cuts, size]))


class PartReader:
    """A part as a separate file without a name; impossible seeks caused by a damaged header are ignored."""

    def __init__(self, file: BinaryIO, part: Part) -> None:
        self._file, self._part, self._at = file, part, 0
        self._size = len(part.head) + part.end - part.start

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        size = max(0, min(size if size >= 0 else self._size, self._size - self._at))
        content = self._part.head[self._at : self._at + size]
        if len(content) < size:
            at = self._part.start + self._at + len(content) - len(self._part.head)
            content += read_at(self._file, at, size - len(content))
        self._at += len(content)
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset unless it is impossible, and return the current offset."""
        at = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence] + offset
        self._at = at if 0 <= at < 2**62 else self._at
        return self._at

    def tell(self) -> int:
        """Return the offset of the next byte to read."""
        return self._at


@dataclass(frozen=True)
class MpegFrame:
    """A Layer II or III frame header: rate in Hz, bytes per frame, samples per channel, bytes before a Xing header."""

    rate: int
    length: int
    samples: int
    side_info_end: int
    kind: tuple[int, int, int]


def skip_id3(file: BinaryIO, start: int = 0) -> int:
    """Return the offset of the audio after any ID3v2 tags at `start` and their zero padding."""
    at = start
    for _ in range(_MAX_TAGS):
        header = read_at(file, at, 10)
        if header[:3] != b"ID3" or len(header) < 10 or max(header[6:10]) > 0x7F:
            break
        length = 0
        for byte in header[6:10]:
            length = length << 7 | byte
        at += 10 + length + (10 if header[5] & 0x10 else 0)
    if at > start:
        padding = read_at(file, at, _MOST_PADDING)
        at += len(padding) - len(padding.lstrip(b"\0"))
    return at


def skip_tags(file: BinaryIO, start: int, end: int) -> int:
    """Return the offset after any tags at `start` (ID3v2 and 1, APE, Lyrics3), each skipped according to its stated
    length.
    """
    at, before = start, -1
    while before < at < end:
        before, at = at, skip_id3(file, at)
        head = read_at(file, at, 32)
        if head[:3] == b"TAG":
            at += 128
        elif head[:8] == b"APETAGEX" and len(head) == 32:
            # The length excludes the header; a footer without a header belongs to a tag that has already been skipped.
            at += 32 + (int.from_bytes(head[12:16], "little") if head[23] & 0x20 else 0)
        elif head[:11] == b"LYRICSBEGIN":
            text = read_at(file, at, _MOST_PADDING)
            at += max(text.find(b"LYRICS200"), text.find(b"LYRICSEND"), 2) + 9
    return min(at, end)


def is_adts(file: BinaryIO, at: int, size: int) -> bool:
    """Return whether `at` is the start of two consecutive ADTS frames (raw AAC), or of a single frame that ends the
    file.
    """
    length = _parse_adts_length(read_at(file, at, 7))
    if length is None:
        return False
    following = read_at(file, at + length, 7)
    return at + length + 7 > size or _parse_adts_length(following) is not None


def read_mpeg_frame(file: BinaryIO, at: int, size: int) -> MpegFrame | None:
    """Read the Layer II or III frame at `at`.

    Return None unless another frame of its kind follows or the file ends before one could.
    """
    frame = _parse_mpeg_header(read_at(file, at, 4))
    if frame is None:
        return None
    following = _parse_mpeg_header(read_at(file, at + frame.length, 4))
    if at + frame.length + 4 > size or (following is not None and following.kind == frame.kind):
        return frame
    return None


def _parse_adts_length(header: bytes) -> int | None:
    if len(header) < 7 or header[0] != 0xFF or header[1] & 0xF6 != 0xF0 or header[2] >> 2 & 15 > 12:
        return None
    length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    return length if length >= 7 else None


def _parse_mpeg_header(header: bytes) -> MpegFrame | None:
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    bitrate, rate_index, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    # The codes for version 1 and layer 0 are reserved, and code 3 is Layer I; bit rate code 0 is free format, and 15 is
    # forbidden.
    if version == 1 or layer not in (1, 2) or bitrate in (0, 15) or rate_index == 3:
        return None
    mpeg1, layer3, single = version == 3, layer == 1, header[3] >> 6 == 3
    kbps = (_MPEG1_LAYER3 if layer3 else _MPEG1_LAYER2) if mpeg1 else _MPEG2_KBPS
    rate = _MPEG1_RATES[rate_index] // {3: 1, 2: 2, 0: 4}[version]
    samples = 1152 if mpeg1 or not layer3 else 576
    length = samples // 8 * kbps[bitrate - 1] * 1000 // rate + padding
    side_info = (17 if single else 32) if mpeg1 else (9 if single else 17)
    return MpegFrame(rate, length, samples, 4 + side_info, (version, layer, rate_index))


def read_at(file: BinaryIO, at: int, length: int) -> bytes:
    """Return the bytes at an offset; fewer if the file ends there."""
    file.seek(at, os.SEEK_SET)
    return file.read(length)


def find_marks(file: BinaryIO, start: int, end: int, kinds: tuple[str, ...]) -> Iterator[int]:
    """Yield, in order, the offsets at which audio files of these kinds begin."""
    patterns: list[bytes] = []
    for kind in kinds:
        patterns += MARKS[kind]
    for at in range(start, end, _BLOCK_BYTES):
        block = read_at(file, at, min(_BLOCK_BYTES + _LONGEST_MARK, end - at))
        begins = []
        for pattern in patterns:
            for match in re.finditer(pattern, block, re.DOTALL):
                # A mark that begins in the next block is found when that block is read.
                if match.start() >= _BLOCK_BYTES:
                    break
                begins.append(at + match.start())
        yield from sorted(begins)


def name_container(file: BinaryIO, at: int, size: int) -> tuple[str | None, int]:
    """Recognise the container at an offset by its magic bytes; return its name, and the offset at which it begins after
    any ID3 tag.

    Args:
        file: an open, seekable file.
        at: the offset.
        size: the size of the file in bytes.
    """
    head = read_at(file, at, 64)
    for name, magic in _MAGIC.items():
        if magic.match(head):
            return name, at
    # FLAC, raw AAC and MP3 streams may follow an ID3 tag.
    start = skip_id3(file, at)
    if read_at(file, start, 4) == b"fLaC":
        return "flac", start
    if is_adts(file, start, size):
        return "aac", start
    return ("mp3" if read_mpeg_frame(file, start, size) is not None else None), start


def measure_rest(file: BinaryIO, at: int, end: int, container: str, path: object) -> int:
    """Return the number of bytes after the end of a container; 0 if they are tags or padding.

    Args:
        file: an open, seekable file.
        at: the offset at which the container ends.
        end: the offset up to which the file is examined.
        container: the name of the container.
        path: the file's path, used only in messages.

    Raises:
        BadAudio: another audio file begins there, or after tags, padding or text.
    """
    last, at = at, skip_tags(file, at, end)
    rest = read_at(file, at, min(_MOST_PADDING + 1, end - at))
    filling = len(rest) - len(rest.lstrip(_FILLING))
    marks = find_marks(file, at, min(at + filling + _LONGEST_MARK, end), tuple(MARKS))
    for begin in (at, at + max(0, rest[: filling + 3].find(b"ID3")), at + filling, *marks):
        other = name_container(file, begin, end)[0] if begin < end else None
        if container == other == "ogg":
            # FFmpeg finds the next page without help.
            return 0
        if other is not None:
            raise BadAudio(
                f"{str(path)!r} consists of two joined files, {container} up to byte {last} and then {other}: "
                "convert both to FLAC or WAV, join their audio, and use the joined file."
            )
    return 0 if len(rest) <= _MOST_PADDING and not rest.strip(b"\0") else end - at


AUDIO_ENDINGS = ("flac", "wav", "mp3", "ogg", "opus", "m4a")
"""File name endings of recordings in runs and submissions; they do not determine how a file is opened."""


_MAX_CHUNKS = 1_000_000
_MOST_HEADER_BYTES = 4096
_LARGEST_PART = 2**31
# Placeholder lengths in streams from SoX, Pocket TTS, eSpeak NG and FFmpeg; the stated lengths may differ slightly.
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
        file: an open, seekable file that begins with a WAV or AIFF header.
        size: the size of the file in bytes.
        name: `wav` or `aiff`.
        path: the file's path, used only in messages.

    Raises:
        BadAudio: a file of another kind is joined to this one, or too many files are joined.
    """
    walker = _Walker(file, size, name, path)
    begins = [0, *islice(find_marks(file, 1, size, (name,)), MOST_PARTS)]
    if len(begins) > MOST_PARTS:
        raise BadAudio(f"{str(path)!r} has more than {MOST_PARTS:,} parts: join their audio into one file.")
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
        # The lengths that audio chunks state, and the number of those bytes that would lie beyond the next header or
        # the end.
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
                # Audio data that was found earlier keeps its own description.
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
        # In a stream of events, an event begins with `data: {` or `data: [`.
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
        """Return whether a length is a placeholder: 0 although audio data follows, or a common placeholder or round
        number far beyond the end of the file.
        """
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
        """Add the bytes after the last chunk to the audio data if these bytes may be audio data."""
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
