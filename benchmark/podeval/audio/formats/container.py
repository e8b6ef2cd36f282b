"""Recognises the container of a file by its own bytes, from a list of allowed formats, and reads its stated length.

Neither a file's name nor a decoder's probing decides how it is opened. Playlists, subtitles and scripts, which
could make a decoder read other files, are therefore never taken for audio.
Sources: Microsoft RIFF and EBU Tech 3306 (RF64), Apple AIFF-C, RFC 9639 (FLAC), RFC 3533 (Ogg), RFC 9559
(Matroska), ISO/IEC 14496-12 (MP4), ISO/IEC 11172-3 and 13818-3 (MPEG audio), 13818-7 (ADTS), id3.org (ID3v2).
"""

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Literal

from podeval.errors import BadAudio, find_address

Reader = Literal["soundfile", "av"]

AUDIO_ENDINGS = ("flac", "wav", "mp3", "ogg", "opus", "m4a")
"""File name endings of recordings in runs and submissions; they do not determine how a file is opened."""

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
_FLAC_LAYOUTS = ("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1")
_MP4_BOXES = frozenset(b"ftyp styp moov moof mdat free skip wide mfra sidx ssix uuid meta udta pnot prft emsg".split())
_MAX_CHUNKS = 100_000


@dataclass(frozen=True)
class Container:
    """The format of a file: how to open it, and what it states about itself.

    Attributes:
        name: wav, flac, ogg, mp3, aac, aiff, mp4 (also M4A and MOV) or matroska (also WebM).
        reader: the library that decodes it.
        demuxer: its name in FFmpeg's libraries.
        stated_bytes: where the file should end according to its own structure; None if it does not say.
        stated_seconds: how long the audio should be according to its header; None if it does not say.
        tolerance: by how many seconds complete audio may fall short of the stated length (encoder delay and padding).
        layout: the channel layout by FFmpeg's name, if the header names one.
        note: what a reader of a score should know about the file.
    """

    name: str
    reader: Reader
    demuxer: str
    stated_bytes: int | None = None
    stated_seconds: float | None = None
    tolerance: float = 0.0
    layout: str | None = None
    note: str | None = None


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading without ever blocking on a pipe or touching a device.

    Raises:
        BadAudio: the path is missing, a directory, a pipe or device, unreadable, or empty.
    """
    name = repr(str(path))
    try:
        _refuse_irregular(name, os.stat(path).st_mode)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags), "rb")
    except FileNotFoundError:
        if address := find_address(path):
            raise BadAudio(f"{address} is an address, and addresses are not fetched: download it first.") from None
        raise BadAudio(f"{name} does not exist: check the path.") from None
    except PermissionError:
        raise BadAudio(f"{name} may not be read by this user: change its permissions.") from None
    except (OSError, ValueError) as error:
        raise BadAudio(f"{name} cannot be opened ({error}): check the path.") from error
    try:
        # Check the opened file again: the path may have been replaced in between.
        status = os.fstat(file.fileno())
        _refuse_irregular(name, status.st_mode)
        if status.st_size == 0:
            raise BadAudio(f"{name} is empty (0 bytes): export or download it again.")
    except BadAudio:
        file.close()
        raise
    return file


def identify(file: BinaryIO, path: Path) -> Container:
    """Recognise the container by its magic bytes and read the length it states.

    Args:
        file: an open, seekable file.
        path: used in messages only.

    Raises:
        BadAudio: podeval does not read this container; the message says what the file looks like.
    """
    size = file.seek(0, os.SEEK_END)
    head = _read_at(file, 0, 64)
    # Containers with magic bytes at the start of the file.
    if head[:4] in (b"RIFF", b"RF64", b"BW64") and head[8:12] == b"WAVE":
        return _read_wav(file, size)
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return _read_aiff(file, size)
    if head[:4] == b"OggS":
        return _read_ogg(file, size)
    if head[:4] == b"\x1aE\xdf\xa3":
        return Container("matroska", "av", "matroska", stated_bytes=_find_matroska_end(file, size))
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide"):
        return Container("mp4", "av", "mov", stated_bytes=_find_mp4_end(file, size))
    # Streams that may follow an ID3 tag: FLAC, raw AAC, MP3.
    from podeval.audio.formats.mpeg import is_adts, read_mpeg_frame, skip_id3

    start = skip_id3(file)
    if _read_at(file, start, 4) == b"fLaC":
        return _read_flac(_read_at(file, start, 42))
    if is_adts(file, start, size):
        return Container("aac", "av", "aac", note="the length is not stated in the file")
    if read_mpeg_frame(file, start, size) is not None:
        return _read_mp3(file, start, size)
    from podeval.audio.formats.describe import describe_refused

    raise BadAudio(f"{str(path)!r} {describe_refused(_read_at(file, 0, 4096))}.")


def _refuse_irregular(name: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
    raise BadAudio(f"{name} is {kind}, not an audio file: give the path of a file.")


def _read_wav(file: BinaryIO, size: int) -> Container:
    order: Literal["<", ">"] = "<"
    layout: str | None = None
    long_size: int | None = None
    for tag, start, length in _read_chunks(file, size, order):
        if tag == b"ds64":
            long_size = int(struct.unpack("<Q", _read_at(file, start + 8, 8).ljust(8, b"\0"))[0])
        elif tag == b"fmt ":
            layout = _read_wav_layout(_read_at(file, start, min(length, 40)))
        elif tag == b"data":
            if long_size is not None and length == 0xFFFFFFFF:
                return Container("wav", "soundfile", "wav", stated_bytes=start + long_size, layout=layout)
            if _is_placeholder(length):
                note = "the length is not stated in the file (written as a stream)"
                return Container("wav", "soundfile", "wav", layout=layout, note=note)
            return Container("wav", "soundfile", "wav", stated_bytes=start + length, layout=layout)
    return Container("wav", "soundfile", "wav", layout=layout)


def _read_wav_layout(fmt: bytes) -> str | None:
    extensible = len(fmt) >= 24 and fmt[:2] == b"\xfe\xff"
    return _WAV_LAYOUTS.get(int.from_bytes(fmt[20:24], "little")) if extensible else None


def _is_placeholder(length: int) -> bool:
    """Return whether a WAV length is a stream writer's placeholder: the top of a signed or unsigned 32-bit range."""
    return any(top - 0x1000 <= length <= top for top in (0x7FFFFFFF, 0xFFFFFFFF))


def _read_aiff(file: BinaryIO, size: int) -> Container:
    for tag, start, length in _read_chunks(file, size, ">"):
        if tag == b"SSND":
            return Container("aiff", "soundfile", "aiff", stated_bytes=start + length)
    return Container("aiff", "soundfile", "aiff")


def _read_chunks(file: BinaryIO, size: int, order: Literal["<", ">"]) -> Iterator[tuple[bytes, int, int]]:
    """Yield the chunks of a RIFF or IFF file: tag, offset of the content, stated length."""
    at = 12
    for _ in range(_MAX_CHUNKS):
        header = _read_at(file, at, 8)
        if len(header) < 8:
            return
        tag, length = struct.unpack(f"{order}4sI", header)
        yield tag, at + 8, length
        at += 8 + length + length % 2
        if at >= size:
            return


def _read_flac(head: bytes) -> Container:
    """Read STREAMINFO, the first metadata block: 20 bits of rate, 3 of channels, 5 of depth, 36 of frames."""
    facts = int.from_bytes(head[18:26].ljust(8, b"\0"), "big")
    rate, channels, frames = facts >> 44, (facts >> 41 & 7) + 1, facts & (1 << 36) - 1
    layout = _FLAC_LAYOUTS[channels - 1]
    if frames == 0 or rate == 0:
        # libsndfile fails at the end of a FLAC stream that does not state its length.
        return Container("flac", "av", "flac", layout=layout, note="the length is not stated in the file")
    return Container("flac", "soundfile", "flac", stated_seconds=frames / rate, layout=layout)


def _read_mp3(file: BinaryIO, start: int, size: int) -> Container:
    from podeval.audio.formats.mpeg import read_stated_seconds

    # Not libsndfile: without a Xing header it guesses the length from the first frame and stops there.
    stated = read_stated_seconds(file, start, size)
    if stated is None:
        return Container("mp3", "av", "mp3", note="the length is not stated in the file")
    return Container("mp3", "av", "mp3", stated_seconds=stated[0], tolerance=stated[1])


def _read_ogg(file: BinaryIO, size: int) -> Container:
    from podeval.audio.formats.ogg import walk_pages

    pages = walk_pages(file, size)
    note = None
    if not pages.regular:
        note = f"the stream breaks off or is damaged at byte {pages.end} of {size}"
    elif not pages.ended:
        note = "the stream is not marked as ended: its end may be missing"
    # FFmpeg mistakes the end of a Vorbis stream by some hundred samples; libsndfile drops all but the first of
    # chained streams, keeps Vorbis' own order of more than two channels, and gives Opus another rate.
    reader: Reader = "soundfile" if pages.plain_vorbis else "av"
    return Container("ogg", reader, "ogg", stated_bytes=pages.end, note=note)


def _find_mp4_end(file: BinaryIO, size: int) -> int | None:
    at = 0
    for _ in range(_MAX_CHUNKS):
        header = _read_at(file, at, 16)
        if len(header) < 8 or header[4:8] not in _MP4_BOXES:
            break
        length = int.from_bytes(header[:4], "big")
        if length == 1:
            length = int.from_bytes(header[8:16], "big")
        if length < 8:
            break
        at += length
        if at >= size:
            break
    return at or None


def _find_matroska_end(file: BinaryIO, size: int) -> int | None:
    """Return the offset at which the first Segment element or an overlong head ends.

    None for a live stream, which states no size.
    """
    length, start = _read_ebml_size(file, 4)
    if length is not None and start + length > size:
        # Do not seek there: the size may be stated as 2^56 bytes, beyond any file.
        return start + length
    if length is None or _read_at(file, start + length, 4) != b"\x18\x53\x80\x67":
        return None
    segment, start = _read_ebml_size(file, start + length + 4)
    return None if segment is None else start + segment


def _read_ebml_size(file: BinaryIO, at: int) -> tuple[int | None, int]:
    """Read a variable-length size and the offset behind it; the size is None if unknown (all bits set) or broken."""
    head = _read_at(file, at, 8)
    width = 9 - head[0].bit_length() if head and head[0] else 0
    if not width or len(head) < width:
        return None, at
    value = int.from_bytes(head[:width], "big") & (1 << 7 * width) - 1
    return (None if value == (1 << 7 * width) - 1 else value), at + width


def _read_at(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at)
    return file.read(length)
