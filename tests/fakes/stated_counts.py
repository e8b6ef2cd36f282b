"""MP4 files of some kilobytes whose index states millions of samples, of which FFmpeg would build an entry each."""

import struct
import zlib

MILLIONS = 10_000_000


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", len(body) + 8) + kind + body


def full(kind: bytes, *numbers: int, version: int = 0, flags: int = 0) -> bytes:
    return box(kind, struct.pack(f">I{len(numbers)}I", version << 24 | flags, *numbers))


def track(*, stts: tuple[int, ...], stsz: tuple[int, ...], edits: int = 0, **more: tuple[int, ...]) -> bytes:
    """A track of 8-bit sound whose samples are all in one chunk; what else is in its table, by name."""
    entry = b"\0" * 6 + struct.pack(">H", 1) + b"\0" * 8 + struct.pack(">HHHHI", 1, 16, 0, 0, 8000 << 16)
    stsd = full(b"stsd", 1)[:8] + struct.pack(">II", 0, 1) + box(b"ulaw", entry)
    stsd = struct.pack(">I", len(stsd)) + stsd[4:]
    tables = {"stsc": (1, 1, stsz[1], 1), "stco": (1, 36), **more}
    table = box(
        b"stbl", stsd, full(b"stts", *stts), full(b"stsz", *stsz), *(full(n.encode(), *v) for n, v in tables.items())
    )
    media = box(
        b"mdia",
        full(b"mdhd", 0, 0, 8000, 160_000, 0),
        full(b"hdlr", 0, int.from_bytes(b"soun", "big"), 0, 0, 0, 0),
        box(b"minf", full(b"smhd", 0), table),
    )
    listed = box(b"edts", full(b"elst", edits, *(160_000, 0, 1 << 16) * edits)) if edits else b""
    return box(b"trak", full(b"tkhd", 0, 0, 1, 0, 160_000, *(0,) * 15), listed, media)


def movie(*parts: bytes, bytes_of_sound: int = 4096, before: bytes = b"") -> bytes:
    """A whole file."""
    head = full(b"mvhd", 0, 0, 8000, 160_000, *(0,) * 20)
    sound = box(b"mdat", b"\x55" * bytes_of_sound)
    return box(b"ftyp", b"isom", bytes(4), b"isom") + sound + before + box(b"moov", head, *parts)


def write_all(n: int = MILLIONS) -> dict[str, bytes]:
    """Every kind, by name."""
    honest = {"stts": (1, 4096, 2), "stsz": (1, 4096)}
    endless = track(stts=(1, n, 2), stsz=(1, n))
    packed = zlib.compress(box(b"moov", full(b"mvhd", 0, 0, 8000, 160_000, *(0,) * 20), endless))
    compressed = box(b"cmov", box(b"dcom", b"zlib"), box(b"cmvd", struct.pack(">I", n), packed))
    fragment = box(b"moof", box(b"traf", full(b"tfhd", 1), full(b"trun", n)))
    return {
        "samples of one size": movie(endless),
        "samples of three tracks": movie(*[track(stts=(1, 4096, 2), stsz=(1, 4096))] * 3),
        "tracks": movie(*[track(stts=(1, 1, 2), stsz=(1, 1))] * 9),
        "durations": movie(track(stts=(2, n, 1, n, 1), stsz=(1, 4096))),
        "offsets of times": movie(track(**honest, ctts=(1, n, 1))),
        "places of chunks": movie(track(**honest, stco=(n, 36))),
        "samples one knows by themselves": movie(track(**honest, stss=(n, 1))),
        "edits that show all": movie(*[track(stts=(1, 4000, 2), stsz=(1, 4000), edits=100)]),
        "names of keys": movie(track(**honest), box(b"meta", full(b"hdlr", 0, 0, 0, 0, 0, 0), full(b"keys", n))),
        "groups": movie(track(**honest, sgpd=(0, n))),
        "samples of a fragment": movie(track(stts=(0,), stsz=(0, 0)), before=fragment),
        "a list beyond the file": movie(track(**honest)) + struct.pack(">I", 2**31 - 1) + b"uuid" + bytes(16),
        "a compressed index": movie(
            box(b"cmov", box(b"dcom", b"zlib"), box(b"cmvd", struct.pack(">I", n), compressed))
        ),
        "behind a box of no name": movie(endless, before=box(b"\1\2\3\4")),
        "in what is free": movie(track(**honest))[:4124] + box(b"free", box(b"moov", endless)),
        "in the second of two files": movie(track(**honest)) + movie(endless),
    }


def write_others(n: int, sounds: dict[str, bytes]) -> dict[str, bytes]:
    """The same in other containers, by changing an honest file of each."""
    little, big = struct.pack("<I", n), struct.pack(">I", n)
    wav, aiff, flac, ogg, mp3 = (sounds[name] for name in ("WAV", "AIFF", "FLAC", "OGG", "MP3"))
    cues = b"cue " + struct.pack("<I", 28) + little + bytes(24)
    listed = b"LIST" + struct.pack("<I", n) + b"adtl"
    marks = b"MARK" + struct.pack(">IH", 2 + 8, 65_535) + bytes(8)
    remarks = b"COMT" + struct.pack(">IH", 2 + 8, 65_535) + bytes(8)
    seeks = b"\x03\xff\xff\xff" + bytes(18)
    remark = ogg.index(b"\x03vorbis") + 7
    vendor = int.from_bytes(ogg[remark : remark + 4], "little")
    ebml = b"\x1a\x45\xdf\xa3\x87\x42\x82\x84webm" + b"\x18\x53\x80\x67\x01" + b"\xff" * 7
    cluster = b"\x1f\x43\xb6\x75\x01" + b"\xff" * 7 + b"\xa3\x08" + big[1:] + b"\x81\0\0\x80"
    cue_list = b"\x1c\x53\xbb\x6b\x08" + big[1:] + b"\xbb\x08" + big[1:]
    private = b"\x16\x54\xae\x6b\x40\x40\xae\x40\x3d\x63\xa2\x08" + big[1:]
    xing = mp3.find(b"Info") if b"Info" in mp3 else mp3.find(b"Xing")
    return {
        "cues of WAV": wav[:36] + cues + wav[36:],
        "a list of WAV": wav[:36] + listed + wav[36:],
        "marks of AIFF": aiff[:12] + marks + aiff[12:],
        "remarks of AIFF": aiff[:12] + remarks + aiff[12:],
        "a table of FLAC": flac[:42] + seeks + flac[42:],
        "remarks of Ogg": ogg[: remark + 4 + vendor] + little + ogg[remark + 8 + vendor :],
        "a cluster of Matroska": ebml + cluster,
        "cues of Matroska": ebml + cue_list,
        "a codec of Matroska": ebml + private,
        "frames of MP3": mp3[: xing + 8] + big + mp3[xing + 12 :] if xing > 0 else mp3,
        "a tag of MP3": b"ID3\x03\0\0\x7f\x7f\x7f\x7fTXXX" + big + bytes(3) + mp3,
    }
