"""The container of an audio file, and the parts of the file that are decoded one after another.

A file has several parts if audio files were joined, or if its sound is in several chunks.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Literal

from podeval.audio.formats.mpeg import is_adts, read_at, read_mpeg_frame, skip_id3, skip_tags
from podeval.errors import BadAudio

if TYPE_CHECKING:
    from av.container import InputContainer

Reader = Literal["soundfile", "av"]

# Files that may be joined in one: 33 minutes of a stream that has a header every 20 ms.
MOST_PARTS = 100_000
# Seconds that a file may lack of its stated length: it is read, and the shortfall is noted.
NOTED_SHORTFALL = 0.05

# Patterns by which the beginning of an audio file is known within other bytes; each begins with fixed ones.
MARKS = {
    # Not the header that FLAC keeps of the file that it was made from.
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


@dataclass(frozen=True)
class Part:
    """Bytes that a decoder can open as a file.

    Attributes:
        start: the offset of its first byte in the file.
        end: the offset after its last byte.
        head: the header that precedes these bytes for the decoder, with the right lengths.
    """

    start: int
    end: int
    head: bytes = b""

    @property
    def nbytes(self) -> int:
        """Number of bytes in the file."""
        return self.end - self.start


@dataclass(frozen=True)
class Container:
    """The format of a file: how to open it, and what it states about itself.

    Attributes:
        name: wav, flac, ogg, mp3, aac, aiff, mp4 (also M4A and MOV) or matroska (also WebM).
        reader: the library that decodes it.
        parts: the stretches of the file that contain its sound, in order.
        joined: the number of files of this format that were joined.
        stated_bytes: where the file should end according to its own structure; None if it does not say.
        stated_seconds: how long the audio should be according to its header; None if it does not say.
        tolerance: by how many seconds complete audio may fall short of the stated length (encoder delay and padding).
        layout: the channel layout by FFmpeg's name, if the header names one.
        surplus: the bytes of sound in the parts that come after the ends which the headers state.
        lacking: the bytes that headers state and that are missing before the next header.
        unread: the bytes outside the parts that are neither metadata nor padding.
        note: what a reader of a score should know about the file.
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
        """Number of bytes of the parts."""
        return sum(part.nbytes for part in self.parts)

    def estimate_missing(self, seconds: float, size: int) -> float:
        """Estimate how many seconds are missing at the end of a file that was cut off.

        Args:
            seconds: the length of the sound that is there.
            size: the size of the file in bytes.
        """
        return seconds * max(0, (self.stated_bytes or 0) - size) / max(1, self.nbytes)


class PartReader:
    """A part as a file of its own, without a name; impossible seeks of a damaged header are ignored."""

    def __init__(self, file: BinaryIO, part: Part) -> None:
        self._file, self._part, self._at = file, part, 0
        self._size = len(part.head) + part.nbytes

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer at the end only."""
        size = max(0, min(size if size >= 0 else self._size, self._size - self._at))
        content = self._part.head[self._at : self._at + size]
        if len(content) < size:
            at = self._part.start + self._at + len(content) - len(self._part.head)
            content += read_at(self._file, at, size - len(content))
        self._at += len(content)
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset, unless there can be none, and return the offset."""
        at = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence] + offset
        self._at = at if 0 <= at < 2**62 else self._at
        return self._at

    def tell(self) -> int:
        """Return the offset of the next byte to read."""
        return self._at


def open_with_ffmpeg(file: PartReader, container: Container, **options: str) -> "InputContainer":
    """Open a part with PyAV, which is kept from opening other files.

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


def find_marks(file: BinaryIO, start: int, end: int, kinds: tuple[str, ...]) -> Iterator[int]:
    """Yield the offsets at which audio files of these kinds begin, in order."""
    patterns = [re.compile(pattern, re.DOTALL) for kind in kinds for pattern in MARKS[kind]]
    for at in range(start, end, _BLOCK_BYTES):
        block = read_at(file, at, min(_BLOCK_BYTES + _LONGEST_MARK, end - at))
        offsets = (match.start() for pattern in patterns for match in pattern.finditer(block))
        yield from sorted(at + offset for offset in offsets if offset < _BLOCK_BYTES)


def name_container(file: BinaryIO, at: int, size: int) -> tuple[str | None, int]:
    """Return the container that begins at an offset by its magic bytes, and where it begins after an ID3 tag.

    Args:
        file: an open, seekable file.
        at: the offset.
        size: the size of the file in bytes.
    """
    head = read_at(file, at, 64)
    for name, magic in _MAGIC.items():
        if magic.match(head):
            return name, at
    # Streams that may follow an ID3 tag: FLAC, raw AAC, MP3.
    start = skip_id3(file, at)
    if read_at(file, start, 4) == b"fLaC":
        return "flac", start
    if is_adts(file, start, size):
        return "aac", start
    return ("mp3" if read_mpeg_frame(file, start, size) is not None else None), start


def measure_rest(file: BinaryIO, at: int, end: int, container: str, path: object) -> int:
    """Return the number of bytes after the end of a container, 0 if they are tags or padding.

    Args:
        file: an open, seekable file.
        at: the offset at which the container ends.
        end: the offset up to which the file is looked at.
        container: the name of the container.
        path: used in messages only.

    Raises:
        BadAudio: another audio file begins there, or behind tags, padding or text.
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
