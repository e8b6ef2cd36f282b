"""Recognises MPEG audio streams: ID3 tags, ADTS frames, Layer II and III frames, the Xing header.

Sources: ISO/IEC 11172-3 and 13818-3 (frame header), 13818-7 (ADTS), id3.org (ID3v2.4), and Xing's VBR header.
"""

import os
from dataclasses import dataclass
from typing import BinaryIO

_MPEG1_RATES = (44_100, 48_000, 32_000)
_MPEG1_LAYER3 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG1_LAYER2 = (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384)
_MPEG2_KBPS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MAX_TAGS = 16
_DECODER_DELAY = 529
_MAX_PADDING = 65_536


@dataclass(frozen=True)
class MpegFrame:
    """A Layer II or III frame header: Hz, bytes of the frame, samples per channel, bytes before a Xing header."""

    rate: int
    length: int
    samples: int
    side_info_end: int
    kind: tuple[int, int, int]


def skip_id3(file: BinaryIO, start: int = 0) -> int:
    """Return the offset of the audio behind any ID3v2 tags at `start` and their zero padding."""
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
        padding = read_at(file, at, _MAX_PADDING)
        at += len(padding) - len(padding.lstrip(b"\0"))
    return at


def skip_tags(file: BinaryIO, start: int, end: int) -> int:
    """Return the offset behind any tags at `start` (ID3v2 and 1, APE, Lyrics3), each skipped by its length."""
    at, before = start, -1
    while before < at < end:
        before, at = at, skip_id3(file, at)
        head = read_at(file, at, 32)
        if head[:3] == b"TAG":
            at += 128
        elif head[:8] == b"APETAGEX" and len(head) == 32:
            # The length counts all but the header; a footer without one is of a tag that was skipped.
            at += 32 + (int.from_bytes(head[12:16], "little") if head[23] & 0x20 else 0)
        elif head[:11] == b"LYRICSBEGIN":
            text = read_at(file, at, _MAX_PADDING)
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

    None unless another frame of its kind follows or the file ends before one could.
    """
    frame = _parse_mpeg_header(read_at(file, at, 4))
    if frame is None:
        return None
    following = _parse_mpeg_header(read_at(file, at + frame.length, 4))
    if at + frame.length + 4 > size or (following is not None and following.kind == frame.kind):
        return frame
    return None


def read_stated_seconds(file: BinaryIO, at: int, size: int) -> tuple[float, float] | None:
    """Read the seconds stated in the first frame's Xing (or Info) header, and the shortfall that is still complete.

    Returns None without such a header. If it also states the encoder's delay and padding (LAME, FFmpeg), the duration
    is that of the encoder's input.
    """
    frame = read_mpeg_frame(file, at, size)
    if frame is None:
        return None
    xing = read_at(file, at + frame.side_info_end, 160)
    if xing[:4] not in (b"Xing", b"Info") or len(xing) < 12 or not xing[7] & 1:
        return None
    samples = int.from_bytes(xing[8:12], "big") * frame.samples
    # Behind the flags: frames (4), bytes (4), table (100) and quality (4), each only where its flag is set.
    encoder = 8 + sum(length for bit, length in enumerate((4, 4, 100, 4)) if xing[7] >> bit & 1)
    slack = 2.0 * frame.samples
    if xing[encoder : encoder + 4] in (b"LAME", b"Lavf", b"Lavc"):
        gaps = int.from_bytes(xing[encoder + 21 : encoder + 24], "big")
        # The decoder's own delay is part of the padding, or lost with the end where a file was cut to less padding.
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
    # Version 1 and layer 0 are reserved, layer 3 is Layer I; bit rate 0 is free format, 15 forbidden.
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
