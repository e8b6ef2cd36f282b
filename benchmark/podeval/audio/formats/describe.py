"""Describes what a refused file looks like, so that its owner understands what is wrong with it."""

import re

from podeval.audio.formats.parts import MARKS

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
    (b"NIST_1A", "is a NIST SPHERE file, which podeval does not read: convert it to FLAC"),
    (b".snd", "is an AU file, which podeval does not read: convert it to FLAC"),
    (b"caff", "is a CAF file, which podeval does not read: convert it to FLAC"),
    (b"#!AMR", "is an AMR file, which podeval does not read: convert it to FLAC"),
    (b"wvpk", "is a WavPack file, which podeval does not read: convert it to FLAC"),
    (b"MAC ", "is a Monkey's Audio file, which podeval does not read: convert it to FLAC"),
    (b"RIFX", "is a big-endian WAV file (RIFX), which podeval does not read: convert it to WAV or FLAC"),
    (b"riff.\x91\xcf\x11", "is a Wave64 file, which podeval does not read: convert it to WAV or FLAC"),
    (b"Creative Voice", "is a VOC file, which podeval does not read: convert it to FLAC"),
    (b"\x0bw", "is an AC-3 file, which podeval does not read: convert it to FLAC"),
    (b"FLV", "is a Flash video, which podeval does not read: convert it to FLAC"),
    (b"TTA1", "is a True Audio file, which podeval does not read: convert it to FLAC"),
    (b"7z\xbc\xaf", "is a 7z archive: unpack it first"),
    (b"Rar!", "is a RAR archive: unpack it first"),
    (b"BZh", "is a bzip2 archive: unpack it first"),
    (b"\xfd7zXZ", "is an xz archive: unpack it first"),
    (b"0&\xb2u\x8ef\xcf\x11", "is a Windows Media file, which podeval does not read: convert it to FLAC"),
)
_BASE64 = re.compile(rb"(?:data:audio/[^,]{1,80},)?(?:UklGR|SUQz|T2dnU|ZkxhQ|Rk9STQ|GkXfo|//[tsuv])[A-Za-z0-9+/]{40}")
_PLAYLISTS = (b"ffconcat", b"#extm3u", b"[playlist]", b"[reference]", b"http://", b"https://", b"file:", b"rtsp:")
_XML_PLAYLISTS = (b"<asx", b"<smil", b"<playlist", b"<mpd", b"<wpl")
_SUBTITLES = (b"webvtt", b"[script info]")


def describe_refused(head: bytes) -> str:
    """Return the rest of a sentence that begins with the file's name and says what is wrong, given its first bytes."""
    # Files that are known by their first bytes.
    for magic, verdict in _MAGIC:
        if head.startswith(magic):
            return verdict
    if head[:4] == b"RIFF":
        return f"is a RIFF file of type {head[8:12].decode('ascii', 'replace')!r}, not WAV: convert it to WAV or FLAC"
    if head[:3] == b"ID3":
        return "has an ID3 tag, but no MP3, AAC or FLAC audio behind it: export it again"
    for kind, patterns in MARKS.items():
        for mark in re.finditer(b"|".join(patterns), head, re.DOTALL):
            return f"has {mark.start()} bytes before its {kind} header: remove what precedes it"
    text = _decode_text(head)
    if text is None:
        kinds = "WAV, FLAC, Ogg, MP3, AAC, AIFF, MP4/M4A or Matroska/WebM"
        return f"is not in a format podeval reads ({kinds}): convert it to FLAC"
    # Text files.
    if text.startswith((b"<!doctype html", b"<html")):
        return "is an HTML page, not audio: the download probably failed"
    if text.startswith(_PLAYLISTS) or any(mark in text[:512] for mark in _XML_PLAYLISTS):
        return "is a playlist, which podeval refuses to follow: give the audio file itself"
    if text.startswith(_SUBTITLES) or b" --> " in text[:128]:
        return "is a subtitle file, not audio"
    if _BASE64.match(head):
        return "is audio written as base64 text: decode it first"
    if text.startswith((b"event:", b"data:")):
        return "is a stream of server-sent events, not audio: decode the audio in them first"
    if text.startswith((b"{", b"[")):
        return "is JSON, not audio"
    return "is XML, not audio" if text.startswith(b"<") else "is a text file, not audio"


def _decode_text(head: bytes) -> bytes | None:
    """Return the first bytes in lower case if they are text in UTF-8 or UTF-16, otherwise None."""
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    # The cut may have split the last character.
    for end in range(len(head), max(len(head) - 4, 0), -1):
        try:
            text = head[:end].decode(encoding)
        except UnicodeDecodeError:
            continue
        plain = all(character.isprintable() or character in "\t\r\n\f" for character in text.lstrip("\ufeff"))
        return text.lstrip("\ufeff \t\r\n").lower().encode() if plain else None
    return None
