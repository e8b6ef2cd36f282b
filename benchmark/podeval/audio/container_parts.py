"""The container of an audio file, and the parts of the file that are decoded one after another.

A file has several parts if audio files were joined, or if its audio data is in several chunks. Streams of MPEG audio
have no container; they are recognised by ID3 tags, ADTS frames, Layer II and III frames and the Xing header. Sources:
ISO/IEC 11172-3 and 13818-3 (frame header), 13818-7 (ADTS), id3.org (ID3v2.4), and Xing's VBR header.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Literal

from podeval.errors import BadAudio

if TYPE_CHECKING:
    from av.container import InputContainer

Reader = Literal["soundfile", "av"]


class ImpossibleCounts(ValueError):
    """An index states more samples than the file has bytes; the message is the end of a sentence."""


# Maximum number of joined files; a stream with a header every 20 ms reaches it after 33 minutes.
MOST_PARTS = 100_000
# Maximum number of seconds by which a readable file may be shorter than stated; the shortfall is noted.
NOTED_SHORTFALL = 0.05

# Patterns that identify the beginning of an audio file within other bytes; each begins with fixed bytes.
MARKS = {
    # The header of the original file that FLAC keeps is excluded.
    "wav": (rb"RIFF(?<!riffRIFF).{4}WAVE", rb"RF64.{4}WAVE", rb"BW64.{4}WAVE"),
    "aiff": (rb"FORM(?<!aiffFORM).{4}AIF[FC]",),
    "flac": (rb"fLaC[\x00\x80]\x00\x00\x22",),
    "ogg": (rb"OggS\x00\x02",),
    "matroska": (rb"\x1aE\xdf\xa3.{1,64}?B\x82.(?:webm|matroska)",),
    "mp4": (rb"\x00\x00\x00.ftyp(?:M4A|M4V|iso|mp4|qt  |dash|avc1|MSNV|3gp)",),
}

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
_DECODER_DELAY = 529


@dataclass(frozen=True)
class Part:
    """Bytes that a decoder can open as a file.

    Attributes:
        start: the offset of its first byte in the file.
        end: the offset after its last byte.
        head: the header that precedes these bytes for the decoder, with the correct lengths.
    """

    start: int
    end: int
    head: bytes = b""


@dataclass(frozen=True)
class Container:
    """The format of a file: how to open it, and what it states about itself.

    Attributes:
        name: wav, flac, ogg, mp3, aac, aiff, mp4 (also M4A and MOV) or matroska (also WebM).
        reader: the library that decodes it.
        parts: the regions of the file that contain its audio data, in order.
        joined: the number of files of this format that were joined.
        stated_bytes: position at which the file should end according to its own structure; None if not stated.
        stated_seconds: length of the audio according to its header; None if not stated.
        tolerance: seconds by which complete audio may be shorter than stated (encoder delay and padding).
        layout: FFmpeg's name of the channel layout, if the header names one.
        surplus: the number of bytes of audio data after the ends stated in headers.
        lacking: the number of bytes that headers state but that are missing before the next header.
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


def open_with_ffmpeg(file: PartReader, container: Container, **options: str) -> "InputContainer":
    """Open a part with PyAV, which is prevented from opening other files.

    Args:
        file: the part.
        container: the format of its file.
        options: further options of FFmpeg's demuxer.
    """
    import av

    if container.name == "mp4":
        options |= {"enable_drefs": "0", "use_absolute_path": "0"}
    return av.open(
        file,
        mode="r",
        format="mov" if container.name == "mp4" else container.name,
        container_options=options | {"protocol_whitelist": "none"},
        metadata_errors="replace",
        io_open=_refuse_to_open,
    )


def _refuse_to_open(url: str, flags: int, options: dict[str, str]) -> BinaryIO:
    raise PermissionError(f"an audio file tried to open {url!r}")


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
    """Return the offset after any tags at `start` (ID3v2 and 1, APE, Lyrics3), each skipped by its length."""
    at, before = start, -1
    while before < at < end:
        before, at = at, skip_id3(file, at)
        head = read_at(file, at, 32)
        if head[:3] == b"TAG":
            at += 128
        elif head[:8] == b"APETAGEX" and len(head) == 32:
            # The length excludes the header; a footer without a header belongs to a tag that was skipped.
            at += 32 + (int.from_bytes(head[12:16], "little") if head[23] & 0x20 else 0)
        elif head[:11] == b"LYRICSBEGIN":
            text = read_at(file, at, _MOST_PADDING)
            at += max(text.find(b"LYRICS200"), text.find(b"LYRICSEND"), 2) + 9
    return min(at, end)


def is_adts(file: BinaryIO, at: int, size: int) -> bool:
    """Return whether `at` is the start of two consecutive ADTS frames (raw AAC), or of one that ends the file."""
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


def read_stated_seconds(file: BinaryIO, at: int, size: int) -> tuple[float, float] | None:
    """Read the duration in the first frame's Xing (or Info) header, and the shortfall that a complete file may have.

    Return None without such a header. If it also states the encoder's delay and padding (LAME, FFmpeg), the duration is
    that of the encoder's input.
    """
    frame = read_mpeg_frame(file, at, size)
    if frame is None:
        return None
    xing = read_at(file, at + frame.side_info_end, 160)
    if xing[:4] not in (b"Xing", b"Info") or len(xing) < 12 or not xing[7] & 1:
        return None
    samples = int.from_bytes(xing[8:12], "big") * frame.samples
    # After the flags: frames (4), bytes (4), table (100) and quality (4), each only if its flag is set.
    encoder = 8 + sum(length for bit, length in enumerate((4, 4, 100, 4)) if xing[7] >> bit & 1)
    slack = 2.0 * frame.samples
    if xing[encoder : encoder + 4] in (b"LAME", b"Lavf", b"Lavc"):
        gaps = int.from_bytes(xing[encoder + 21 : encoder + 24], "big")
        # The decoder's own delay is part of the padding, or is lost if the file was cut and has less padding.
        samples -= (gaps >> 12) + max(gaps & 0xFFF, _DECODER_DELAY)
        slack = 0.5 * frame.samples
    return (samples / frame.rate, slack / frame.rate) if samples > 0 else None


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
    # Version 1 and layer 0 are reserved, and layer 3 is Layer I; bit rate 0 is free format, and 15 is forbidden.
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
    """Yield the offsets at which audio files of these kinds begin, in order."""
    patterns: list[bytes] = []
    for kind in kinds:
        patterns += MARKS[kind]
    for at in range(start, end, _BLOCK_BYTES):
        block = read_at(file, at, min(_BLOCK_BYTES + _LONGEST_MARK, end - at))
        begins = []
        for pattern in patterns:
            for match in re.finditer(pattern, block, re.DOTALL):
                # This mark begins in the next block, which finds it again.
                if match.start() >= _BLOCK_BYTES:
                    break
                begins.append(at + match.start())
        yield from sorted(begins)


def name_container(file: BinaryIO, at: int, size: int) -> tuple[str | None, int]:
    """Recognise the container at an offset by its magic bytes; return its name, and where it begins after any ID3 tag.

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
        path: used in messages only.

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
            # FFmpeg finds the next page by itself.
            return 0
        if other is not None:
            raise BadAudio(
                f"{str(path)!r} is two files joined, {container} up to byte {last} and then {other}: "
                "convert both to FLAC or WAV, join their sound, and give that file."
            )
    return 0 if len(rest) <= _MOST_PADDING and not rest.strip(b"\0") else end - at
