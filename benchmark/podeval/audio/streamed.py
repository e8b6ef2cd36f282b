"""Files for browsers: FLAC of a given size, and Opus of a size that depends on nothing but the length."""

from pathlib import Path

import numpy as np

from podeval.errors import BadInput

OPUS_RATE = 48_000
BITS_PER_SECOND = 128_000
"""Of Opus, constant: at this rate listeners do not tell speech and music from the original."""

_BLOCK_HEADER = 4
_LARGEST_BLOCK = 2**24 - 1
_PADDING, _LAST = 1, 0x80


def pad_flac(content: bytes, size: int) -> bytes:
    """Return a FLAC file of exactly this size: the same sound, with a block of padding in its header.

    Args:
        content: a FLAC file.
        size: in bytes; larger than the file by 4 or more, and by less than 16 MiB.

    Raises:
        BadInput: it is not FLAC, or the size cannot be reached.
    """
    more = size - len(content) - _BLOCK_HEADER
    if content[:4] != b"fLaC" or not 0 <= more <= _LARGEST_BLOCK:
        raise BadInput(f"{len(content)} bytes cannot be padded to {size} as FLAC")
    # Find the last block of the header, behind which the padding goes.
    at = 4
    while not content[at] & _LAST:
        at += _BLOCK_HEADER + int.from_bytes(content[at + 1 : at + 4], "big")
    end = at + _BLOCK_HEADER + int.from_bytes(content[at + 1 : at + 4], "big")
    head = bytearray(content[:end])
    head[at] &= ~_LAST & 0xFF
    padding = bytes([_PADDING | _LAST]) + more.to_bytes(3, "big") + bytes(more)
    return bytes(head) + padding + content[end:]


def write_opus(source: Path, target: Path) -> None:
    """Write a FLAC file at 48 kHz as Ogg Opus at a constant bit rate, a second at a time.

    Args:
        source: with one or two channels.
        target: is overwritten.
    """
    import av
    import soundfile

    with soundfile.SoundFile(source) as sound, av.open(str(target), "w", format="ogg") as container:
        layout = "mono" if sound.channels == 1 else "stereo"
        options = {"vbr": "off", "application": "audio"}
        stream = container.add_stream("libopus", rate=OPUS_RATE, layout=layout, options=options)
        stream.bit_rate = BITS_PER_SECOND
        at = 0
        for block in sound.blocks(OPUS_RATE, dtype="float32", always_2d=True):
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block.reshape(1, -1)), "flt", layout)
            frame.sample_rate, frame.pts = OPUS_RATE, at
            at += len(block)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
