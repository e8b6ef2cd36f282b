"""The parts of Ogg, Matroska, FLAC, MP3 and AAC files, and a description of files that podeval does not read.

Playlists, subtitles and scripts, which could make a decoder read other files, are never accepted as audio. Sources:
RFC 9639 (FLAC), RFC 3533 (Ogg), RFC 9559 (Matroska), ISO/IEC 11172-3 and 13818-3 (MPEG audio), 13818-7 (ADTS), and
Xing's VBR header.
"""

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from podeval.audio.container import (
    MARKS,
    MOST_PARTS,
    Container,
    ImpossibleCounts,
    PartReader,
    Reader,
    cut,
    find_marks,
    measure_rest,
    read_at,
    read_mpeg_frame,
)
from podeval.audio.mp4 import read_mp4
from podeval.errors import BadAudio

if TYPE_CHECKING:
    from av.container import InputContainer

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "is a ZIP archive: unpack it and give the audio files in it"),
    (b"\x1f\x8b", "is a gzip archive: unpack it first"),
    (b"%PDF", "is a PDF document, not audio"),
    (b"\x89PNG", "is an image, not audio"),
    (b"\xff\xd8\xff", "is an image, not audio"),
    (b"GIF8", "is an image, not audio"),
    (b"\x93NUMPY", "is a NumPy array: write it as WAV with its sampling rate"),
    (b"PAR1", "is a Parquet file: extract the audio files in it"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the audio itself: run git lfs pull"),
    (b"NIST_1A", "is a NIST SPHERE file, which podeval does not support: convert it to FLAC"),
    (b".snd", "is an AU file, which podeval does not support: convert it to FLAC"),
    (b"caff", "is a CAF file, which podeval does not support: convert it to FLAC"),
    (b"#!AMR", "is an AMR file, which podeval does not support: convert it to FLAC"),
    (b"wvpk", "is a WavPack file, which podeval does not support: convert it to FLAC"),
    (b"MAC ", "is a Monkey's Audio file, which podeval does not support: convert it to FLAC"),
    (b"RIFX", "is a big-endian WAV file (RIFX), which podeval does not support: convert it to WAV or FLAC"),
    (b"riff.\x91\xcf\x11", "is a Wave64 file, which podeval does not support: convert it to WAV or FLAC"),
    (b"Creative Voice", "is a VOC file, which podeval does not support: convert it to FLAC"),
    (b"\x0bw", "is an AC-3 file, which podeval does not support: convert it to FLAC"),
    (b"FLV", "is a Flash video, which podeval does not support: convert it to FLAC"),
    (b"TTA1", "is a True Audio file, which podeval does not support: convert it to FLAC"),
    (b"7z\xbc\xaf", "is a 7z archive: unpack it first"),
    (b"Rar!", "is a RAR archive: unpack it first"),
    (b"BZh", "is a bzip2 archive: unpack it first"),
    (b"\xfd7zXZ", "is an xz archive: unpack it first"),
    (b"0&\xb2u\x8ef\xcf\x11", "is a Windows Media file, which podeval does not support: convert it to FLAC"),
)
_TEXTS: tuple[tuple[bytes, str], ...] = (
    (rb"<!doctype html|<html", "is an HTML page, not audio: the download probably failed"),
    (
        rb"ffconcat|#extm3u|\[(?:playlist|reference)\]|https?://|file:|rtsp:|.{,511}?<(?:asx|smil|playlist|mpd|wpl)",
        "is a playlist, which podeval refuses to follow: give the audio file itself",
    ),
    (rb"webvtt|\[script info\]|.{,123}? --> ", "is a subtitle file, not audio"),
    (
        rb"(?:data:audio/[^,]{1,80},)?(?:uklgr|suqz|t2dnu|zkxhq|rk9stq|gkxfo|//[tsuv])[a-z0-9+/]{40}",
        "is audio encoded as base64 text: decode it first",
    ),
    (rb"event:|data:", "is a stream of server-sent events, not audio: decode the audio in them first"),
    (rb"[{\[]", "is JSON, not audio"),
    (rb"<", "is XML, not audio"),
    (rb"", "is a text file, not audio"),
)
"""Patterns for the beginning of a text in lower case, each with a description of the text."""


def describe_refused(head: bytes) -> str:
    """Describe the fault that a file's first bytes reveal, in words that follow the file's name in a sentence."""
    # First look for files that can be recognised by their first bytes.
    for magic, verdict in _MAGIC:
        if head.startswith(magic):
            return verdict
    if head[:4] == b"RIFF":
        return f"is a RIFF file of type {head[8:12].decode('ascii', 'replace')!r}, not WAV: convert it to WAV or FLAC"
    if head[:3] == b"ID3":
        return "has an ID3 tag, but no MP3, AAC or FLAC audio after it: export it again"
    for kind, patterns in MARKS.items():
        for mark in re.finditer(b"|".join(patterns), head, re.DOTALL):
            return f"has {mark.start()} bytes before its {kind} header: remove them"
    text = _decode_text(head)
    if text is None:
        kinds = "WAV, FLAC, Ogg, MP3, AAC, AIFF, MP4/M4A or Matroska/WebM"
        return f"is not in a format that podeval supports ({kinds}): convert it to FLAC"
    return next(verdict for pattern, verdict in _TEXTS if re.match(pattern, text, re.DOTALL))


def _decode_text(head: bytes) -> bytes | None:
    """Return the first bytes, in lower case, if they are UTF-8 or UTF-16 text, otherwise None."""
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    # The last character may be incomplete, because only the beginning of the file is read.
    for end in range(len(head), max(len(head) - 4, 0), -1):
        try:
            text = head[:end].decode(encoding)
        except UnicodeDecodeError:
            continue
        plain = all(character.isprintable() or character in "\t\r\n\f" for character in text.lstrip("\ufeff"))
        return text.lstrip("\ufeff \t\r\n").lower().encode() if plain else None
    return None


# Ogg pages: Vorbis I specification 4.2.2 (identification header), RFC 7845 (Opus).
_MAX_PAGES = 2_000_000


@dataclass(frozen=True)
class OggPages:
    """The facts stated in the page headers of a whole file.

    Attributes:
        end: position at which the last page should end according to its header.
        last: position at which the last page begins; decoders skip this page if it is truncated.
        streams: number of logical streams, multiplexed or chained.
        first_packet: the beginning of the first packet, which names the codec.
        ended: whether the last page is marked as the end of its stream.
        regular: whether pages follow one another up to the end of the file.
        links: the offsets at which chained streams begin, the first of which is 0.
    """

    end: int
    last: int
    streams: int
    first_packet: bytes
    ended: bool
    regular: bool
    links: tuple[int, ...]

    @property
    def plain_vorbis(self) -> bool:
        """Whether the file is Vorbis with one or two channels, in streams that follow one another."""
        vorbis = self.first_packet[:7] == b"\x01vorbis" and self.first_packet[11:12] in (b"\x01", b"\x02")
        return vorbis and self.streams == len(self.links) and self.regular


def walk_pages(file: BinaryIO, size: int) -> OggPages:
    """Read all page headers in order, up to the end of the file or the first bytes that are not a page."""
    at, last, streams, flags, first_packet, links = 0, 0, 0, 0, b"", [0]
    for _ in range(_MAX_PAGES):
        header = read_at(file, at, 27 + 255 + 16)
        if header[:4] != b"OggS"[: len(header)]:
            return OggPages(at, at, streams, first_packet, ended=bool(flags & 4), regular=False, links=tuple(links))
        if len(header) < 27:
            return OggPages(at + 27, at, streams, first_packet, ended=False, regular=True, links=tuple(links))
        if header[5] & 2 and at and not flags & 2:
            links.append(at)
        flags, segments = header[5], header[26]
        streams += flags >> 1 & 1
        first_packet = first_packet or header[27 + segments : 27 + segments + 16]
        last, at = at, at + 27 + segments + sum(header[27 : 27 + segments])
        if at >= size:
            break
    return OggPages(at, last, streams, first_packet, ended=bool(flags & 4), regular=at >= size, links=tuple(links))


_FLAC_LAYOUTS = ("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1")
_LONGEST = 24 * 3600.0
_UNSTATED = "the length is not stated in the file"


def find_parts(file: BinaryIO, name: str, start: int, size: int, path: object) -> Container:
    """Find all the audio data of a file that is neither WAV nor AIFF.

    Args:
        file: an open, seekable file.
        name: name of the file's container.
        start: the offset at which the container begins.
        size: the size of the file in bytes.
        path: the file's path, used only in messages.

    Raises:
        BadAudio: the file's index is inconsistent, or a file of another kind was appended to the file.
    """
    readers = {"ogg": _read_ogg, "matroska": _read_matroska, "mp4": read_mp4, "flac": _read_flac, "mp3": _read_mp3}
    try:
        container = readers.get(name, _read_aac)(file, start, size)
    except ImpossibleCounts as error:
        raise BadAudio(f"{str(path)!r} {error}.") from None
    # The end of this file may be followed by another file.
    end = container.stated_bytes
    rest = measure_rest(file, end, size, name, path) if end is not None else 0
    return container if name == "ogg" else replace(container, unread=rest)


def _find_foreign(file: BinaryIO, start: int, size: int, name: str) -> int | None:
    """Return the offset of a file of another kind in a stream without its own end marker."""
    return next(find_marks(file, start, size, tuple(kind for kind in MARKS if kind != name)), None)


def _read_aac(file: BinaryIO, start: int, size: int) -> Container:
    end = _find_foreign(file, start, size, "aac")
    return Container("aac", "av", cut([0], size), stated_bytes=end, note=_UNSTATED)


def _read_flac(file: BinaryIO, start: int, size: int) -> Container:
    """Read STREAMINFO, the first metadata block: 20 bits of rate, 3 of channels, 5 of depth, 36 of frames."""
    begins = [start, *islice(find_marks(file, start + 4, size, ("flac",)), MOST_PARTS)]
    facts = [int.from_bytes(read_at(file, begin + 18, 8).ljust(8, b"\0"), "big") for begin in begins]
    seconds = [(fact & (1 << 36) - 1) / max(1, fact >> 44) for fact in facts]
    stated = all(0 < one <= _LONGEST for one in seconds)
    return Container(
        "flac",
        # libsndfile fails at the end of a FLAC stream that does not state its length.
        "soundfile" if stated else "av",
        cut([0, *begins[1:]], size),
        joined=len(begins),
        stated_bytes=_find_foreign(file, start, size, "flac"),
        stated_seconds=sum(seconds) if stated else None,
        layout=_FLAC_LAYOUTS[facts[0] >> 41 & 7],
        note=None if stated else _UNSTATED,
    )


def _read_mp3(file: BinaryIO, start: int, size: int) -> Container:
    # Do not use libsndfile: without a Xing header it guesses the length from the first frame and stops there.
    seconds, tolerance = read_stated_seconds(file, start, size) or (None, 0.0)
    end = _find_foreign(file, start, size, "mp3")
    return Container("mp3", "av", cut([0], size), 1, end, seconds, tolerance, note=None if seconds else _UNSTATED)


def _read_ogg(file: BinaryIO, start: int, size: int) -> Container:
    pages = walk_pages(file, size)
    note = None
    if not pages.regular:
        note = f"the stream ends early or is damaged at byte {pages.end} of {size}"
    elif not pages.ended:
        note = "the stream has no end marker, so its end may be missing"
    parts = cut(list(pages.links), pages.last if pages.end > size else size)
    # FFmpeg misplaces the end of a Vorbis stream by a few hundred samples; libsndfile keeps the Vorbis channel order
    # for more than two channels, and decodes Opus at another rate.
    reader: Reader = "soundfile" if pages.plain_vorbis else "av"
    return Container("ogg", reader, parts, len(parts), pages.end, note=note)


def _read_matroska(file: BinaryIO, start: int, size: int) -> Container:
    cuts = [0, *islice(find_marks(file, 1, size, ("matroska",)), MOST_PARTS)]
    end = _find_matroska_end(file, cuts[-1], size)
    return Container("matroska", "av", cut(cuts, size), len(cuts), end, note=None if end else _UNSTATED)


def _find_matroska_end(file: BinaryIO, at: int, size: int) -> int | None:
    """Return the offset at which the first Segment element after `at` ends, or at which an overlong header would end.

    Return None for a live stream, which does not state its size.
    """
    length, start = _read_ebml_size(file, at + 4)
    if length is not None and start + length > size:
        # Do not seek there: the stated size may be 2^56 bytes, larger than any file.
        return start + length
    if length is None or read_at(file, start + length, 4) != b"\x18\x53\x80\x67":
        return None
    segment, start = _read_ebml_size(file, start + length + 4)
    return None if segment is None else start + segment


def _read_ebml_size(file: BinaryIO, at: int) -> tuple[int | None, int]:
    """Read a variable-length size and the offset after it; the size is None if unknown (all bits set) or broken."""
    head = read_at(file, at, 8)
    width = 9 - head[0].bit_length() if head and head[0] else 0
    if not width or len(head) < width:
        return None, at
    value = int.from_bytes(head[:width], "big") & (1 << 7 * width) - 1
    return (None if value == (1 << 7 * width) - 1 else value), at + width


_DECODER_DELAY = 529


def open_with_ffmpeg(file: PartReader, container: Container, **options: str) -> "InputContainer":
    """Open a part with PyAV, which is prevented from opening other files.

    Args:
        file: the part.
        container: the format of its file.
        options: further options for FFmpeg's demuxer.
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


def read_stated_seconds(file: BinaryIO, at: int, size: int) -> tuple[float, float] | None:
    """Read the duration in the first frame's Xing (or Info) header, and the shortfall that a complete file may have.

    Return None if there is no such header. If the header also states the encoder's delay and padding (LAME, FFmpeg),
    the duration is that of the encoder's input.
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
        # The decoder's own delay is taken from the padding; if the file was cut and has less padding, the delay is
        # lost.
        samples -= (gaps >> 12) + max(gaps & 0xFFF, _DECODER_DELAY)
        slack = 0.5 * frame.samples
    return (samples / frame.rate, slack / frame.rate) if samples > 0 else None
