"""A file's length without decoding is the length it decodes to."""

from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from podeval.audio.decode import decode
from podeval.audio.duration import read_container_and_seconds
from podeval.errors import BadAudio

KINDS = {
    "mp3": ("mp3", "mp3", {}),
    "mp3 without a header": ("mp3", "mp3", {"write_xing": "0"}),
    "m4a": ("mp4", "aac", {}),
    "aac": ("adts", "aac", {}),
    "opus": ("ogg", "libopus", {}),
    "webm": ("webm", "libopus", {}),
    "flac": ("flac", "flac", {}),
    "wav": ("wav", "pcm_s16le", {}),
}


def write(path: Path, form: str, codec: str, options: dict[str, str]) -> Path:
    """3 s of a tone at 48 kHz."""
    with av.open(str(path), "w", format=form, options=options) as container:
        stream = container.add_stream(codec, rate=48_000, layout="mono")
        tone = (3_000 * np.sin(np.arange(144_000) / 20)).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(tone[None], format="s16", layout="mono")
        frame.sample_rate = 48_000
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_length_that_is_decoded(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "tone", *KINDS[kind])
    name, seconds = read_container_and_seconds(path)
    decoded = decode(path)
    assert name == decoded.container
    # Packets hold whole frames, of up to 1152 samples, and an encoder's delay of about as much again.
    assert seconds == pytest.approx(decoded.seconds, abs=0.05)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"<html>no</html>", "is"),
        (b"", "is empty"),
        (b"\x1aE\xdf\xa3" + bytes(400), "matroska"),
        (b"\0\0\0\x18ftypM4A " + bytes(200), "mp4"),
    ],
)
def test_what_is_no_audio_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.mp3").write_bytes(content)
    with pytest.raises(BadAudio, match=sentence):
        read_container_and_seconds(tmp_path / "a.mp3")


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(8_000), 8_000)
    (tmp_path / "b.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:9_000])
    with pytest.raises(BadAudio, match="cut off: 9000 of at least 16044 bytes"):
        read_container_and_seconds(tmp_path / "b.wav")
