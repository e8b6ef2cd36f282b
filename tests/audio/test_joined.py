"""All of a file is heard: joined files, repeated headers, sound behind the stated end, placeholders of lengths."""

import contextlib
import io
import re
import shutil
import struct
import subprocess
import tempfile
import time
import wave
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from podeval.audio.container import MOST_PARTS, Part, PartReader, read_riff
from podeval.audio.decode import decode
from podeval.audio.duration import read_container_and_seconds
from podeval.errors import BadAudio

RATE = 24_000
Samples = NDArray[np.float32]

TONE = np.asarray(0.4 * np.sin(np.arange(2 * RATE) / 20), dtype=np.float32)
PCM = (TONE * 32_767).astype("<i2").tobytes()
LIST = b"LIST" + struct.pack("<I", 26) + b"INFOISFT" + struct.pack("<I", 14) + b"Lavf60.3.100\0\0"


def header(data: int, riff: int | None = None, *, rate: int = RATE, channels: int = 1, bits: int = 16) -> bytes:
    """A WAV header that states these sizes."""
    block = channels * bits // 8
    fmt = struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * block, block, bits)
    sizes = (data + 36 if riff is None else riff) & 0xFFFFFFFF, data & 0xFFFFFFFF
    return struct.pack("<4sI", b"RIFF", sizes[0]) + b"WAVEfmt " + fmt + struct.pack("<4sI", b"data", sizes[1])


def wav(pcm: bytes = PCM, tail: bytes = b"", *, rate: int = RATE, channels: int = 1, bits: int = 16) -> bytes:
    """A whole WAV file."""
    head = header(len(pcm), 36 + len(pcm) + len(tail), rate=rate, channels=channels, bits=bits)
    return head + pcm + tail


def chunk(tag: bytes, content: bytes) -> bytes:
    return tag + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def snd(form: str, subtype: str | None = None, rate: int = RATE, channels: int = 1) -> bytes:
    """Two seconds by libsndfile."""
    file = io.BytesIO()
    soundfile.write(file, np.stack([TONE] * channels, 1), rate, format=form, subtype=subtype)
    return file.getvalue()


def ffmpeg(muxer: str, codec: str, rate: int = RATE, **options: str) -> bytes:
    """Two seconds by FFmpeg's libraries."""
    with tempfile.TemporaryDirectory() as folder:
        with av.open(f"{folder}/a", "w", format=muxer, options=options) as container:
            stream = container.add_stream(codec, rate=rate, layout="mono")
            frame = av.AudioFrame.from_ndarray(TONE[None, : 2 * rate].copy(), format="fltp", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        return Path(folder, "a").read_bytes()


Read = Callable[[bytes], tuple[Samples, str]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Decodes bytes and returns their samples and the note; the length without decoding is the same."""

    def decoded(content: bytes) -> tuple[Samples, str]:
        (tmp_path / "a").write_bytes(content)
        found = decode(tmp_path / "a")
        assert read_container_and_seconds(tmp_path / "a")[1] == pytest.approx(found.seconds, abs=0.05)
        return found.samples[:, 0], found.note or ""

    return decoded


def each(pcm: bytes, size: int, data: int | None = None) -> bytes:
    """A stream that has a header in every chunk."""
    pieces = [pcm[at : at + size] for at in range(0, len(pcm), size)]
    return b"".join(header(len(piece) if data is None else data) + piece for piece in pieces)


def nested(*files: bytes) -> bytes:
    """WAV files that were written as the frames of another by Python's own writer."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        for content in files:
            writer.writeframes(content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "times", "joined"),
    [
        pytest.param(wav() * 2, 2, 2, id="two files"),
        pytest.param(wav(tail=LIST) * 3, 3, 3, id="three with tags"),
        pytest.param(wav() + snd("RF64"), 2, 2, id="RIFF and RF64"),
        pytest.param(snd("RF64") * 2, 2, 2, id="RF64 twice"),
        pytest.param(snd("WAVEX") * 2, 2, 2, id="extensible"),
        pytest.param(nested(wav(), wav(), wav()), 3, 3, id="files within a file"),
        pytest.param(each(PCM, 9600), 1, 10, id="a right header in each chunk"),
        pytest.param(each(PCM, 960), 1, 100, id="a right header every 20 ms"),
        pytest.param(each(PCM, 9600, 0xFFFFFFFF), 1, 10, id="0xFFFFFFFF in each chunk"),
        pytest.param(each(PCM, 9600, 0x7FFFFFFF), 1, 10, id="0x7FFFFFFF in each chunk"),
        pytest.param(each(PCM, 9600, 0), 1, 10, id="0 in each chunk"),
        pytest.param(each(PCM, 9600, 2_000_000_000), 1, 10, id="2e9 in each chunk"),
        pytest.param(each(PCM, 9600, len(PCM)), 1, 10, id="the length of all in each chunk"),
        pytest.param(each(PCM, 9600, 5_242_881), 1, 10, id="a limit in each chunk"),
        pytest.param(each(PCM, 9601), 1, 10, id="chunks that end within a sample"),
        pytest.param(each(PCM, 9601, 0xFFFFFFFF), 1, 10, id="chunks of unknown length that end within a sample"),
    ],
)
def test_joined_wav_files_and_repeated_headers_are_heard_without_the_headers(
    read: Read, content: bytes, times: int, joined: int
) -> None:
    samples, note = read(content)
    expected, _ = soundfile.read(io.BytesIO(wav()), dtype="float32")
    # libsndfile rounds what is cut to 16 bits here.
    np.testing.assert_allclose(samples, np.tile(expected, times), atol=2**-14)
    assert f"{joined} joined wav files, all of which are read" in note


@pytest.mark.parametrize(
    "subtypes", [("PCM_16", "PCM_24"), ("PCM_16", "FLOAT"), ("ULAW", "ALAW"), ("IMA_ADPCM",) * 2, ("MS_ADPCM",) * 2]
)
def test_joined_wav_files_of_different_precision_are_one_sound(read: Read, subtypes: tuple[str, str]) -> None:
    samples, _ = read(snd("WAV", subtypes[0]) + snd("WAV", subtypes[1]))
    alone = [soundfile.read(io.BytesIO(snd("WAV", subtype)), dtype="float32")[0] for subtype in subtypes]
    np.testing.assert_array_equal(samples, np.concatenate(alone))


@pytest.mark.parametrize("second", [wav(rate=16_000), wav(channels=2), wav() + wav(rate=16_000)])
def test_joined_wav_files_of_another_rate_are_refused_by_name(read: Read, second: bytes) -> None:
    with pytest.raises(
        BadAudio, match=r"consists of [23] joined wav files and changes from 24000 Hz, 1 channels to .* at [24]"
    ):
        read(wav() + second)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param(lambda: snd("FLAC") * 2, "flac", id="flac"),
        pytest.param(lambda: snd("FLAC", "PCM_16") + snd("FLAC", "PCM_24"), "flac", id="flac of two depths"),
        pytest.param(lambda: ffmpeg("flac", "flac") * 2, "flac", id="flac by ffmpeg"),
        pytest.param(lambda: snd("AIFF") * 2, "aiff", id="aiff"),
        pytest.param(lambda: snd("AIFF", "FLOAT") + snd("AIFF"), "aiff", id="aifc and aiff"),
        pytest.param(lambda: ffmpeg("mov", "pcm_s16le") * 2, "mp4", id="mov"),
        pytest.param(lambda: ffmpeg("ipod", "aac") * 2, "mp4", id="m4a"),
        pytest.param(lambda: ffmpeg("ipod", "aac", movflags="faststart") * 2, "mp4", id="m4a with its index first"),
        pytest.param(lambda: ffmpeg("mp4", "aac", movflags="frag_keyframe+empty_moov") * 2, "mp4", id="fragmented mp4"),
        pytest.param(lambda: snd("OGG", "VORBIS") * 2, "ogg", id="vorbis"),
        pytest.param(lambda: ffmpeg("matroska", "flac") * 2, "matroska", id="matroska"),
        pytest.param(lambda: ffmpeg("matroska", "flac", live="1") * 2, "matroska", id="live matroska"),
    ],
)
def test_joined_files_of_other_formats_are_read_to_the_last(
    read: Read, content: Callable[[], bytes], name: str
) -> None:
    samples, note = read(content())
    # AAC has frames of 1,024 samples and pads the last.
    assert len(samples) / RATE == pytest.approx(4.0, abs=0.1)
    assert np.abs(samples[-RATE:]).max() == pytest.approx(0.4, abs=0.05)
    assert f"2 joined {name} files, all of which are read" in note


@pytest.mark.parametrize(
    ("form", "name"), [("FLAC", "flac"), ("AIFF", "aiff"), ("OGG", "ogg"), ("matroska", "matroska"), ("ipod", "mp4")]
)
def test_joined_files_of_another_rate_are_refused_by_name(read: Read, form: str, name: str) -> None:
    codec = {"matroska": "flac", "ipod": "aac"}.get(form)
    files = [ffmpeg(form, codec, rate) if codec else snd(form, rate=rate) for rate in (RATE, 16_000)]
    with pytest.raises(BadAudio, match=rf"consists of 2 joined {name} files and changes from 24000 Hz.* to 16000 Hz"):
        read(b"".join(files))


WHOLE: dict[str, Callable[[], bytes]] = {
    "wav": lambda: wav(),
    "flac": lambda: snd("FLAC"),
    "aiff": lambda: snd("AIFF"),
    "ogg": lambda: snd("OGG", "VORBIS"),
    "mp4": lambda: ffmpeg("ipod", "aac"),
    "matroska": lambda: ffmpeg("matroska", "flac"),
    "mp3": lambda: ffmpeg("mp3", "libmp3lame"),
    "aac": lambda: ffmpeg("adts", "aac"),
}
NO_END = ("mp3", "aac", "flac")
"""Streams that have no end of their own, so that one behind another is found only where it begins plainly."""


PAIRS = [
    (first, second)
    for first in WHOLE
    for second in WHOLE
    if first != second and not (first in NO_END and second in NO_END)
]


@pytest.mark.every(3)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_files_of_two_kinds_that_are_joined_are_refused_by_name(read: Read, first: str, second: str) -> None:
    with pytest.raises(
        BadAudio,
        match=rf"consists of two joined files, {first} up to byte \d+ and then {second}: "
        rf"convert both",
    ):
        read(WHOLE[first]() + WHOLE[second]())


def test_segments_of_a_live_stream_that_repeat_its_beginning_are_one_sound(read: Read) -> None:
    options = {"movflags": "empty_moov+default_base_moof", "frag_duration": "500000"}
    content = ffmpeg("mp4", "aac", **options)
    at = content.index(b"moof") - 4
    begin, segments = content[:at], content[at:].split(b"moof")
    cut = content.index(b"moof", at + 8 + len(segments[1])) - 4
    samples, _ = read(begin + content[at:cut] + begin + content[cut:])
    alone, _ = read(content)
    # The decoder begins anew where the beginning is repeated.
    assert len(samples) == pytest.approx(len(alone), abs=2048)


@pytest.mark.parametrize("first", [PCM[:1920], PCM[: len(PCM) // 2]])
def test_samples_behind_a_header_that_was_never_updated_are_read_and_noted(read: Read, first: bytes) -> None:
    samples, note = read(header(len(first)) + PCM)
    assert len(samples) == 2 * RATE
    assert f"{(len(PCM) - len(first)) / 2 / RATE:.2f} s of audio after the stated end are read as well" in note


def test_channels_stay_in_place_behind_a_stated_end_within_a_frame(tmp_path: Path) -> None:
    stereo = np.stack([TONE, -TONE], 1)
    pcm = (stereo * 32_767).astype("<i2").tobytes()
    (tmp_path / "a.wav").write_bytes(header(len(pcm) // 2 + 2, channels=2) + pcm)
    np.testing.assert_allclose(decode(tmp_path / "a.wav").samples, stereo, atol=2**-14)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(header(len(PCM) // 2) + PCM[: len(PCM) // 2] + chunk(b"data", PCM[len(PCM) // 2 :]), id="two"),
        pytest.param(
            header(len(PCM) // 2) + PCM[: len(PCM) // 2] + LIST + chunk(b"data", PCM[len(PCM) // 2 :]),
            id="two with a list between them",
        ),
        pytest.param(header(0) + chunk(b"data", PCM), id="an empty one first"),
        pytest.param(
            header(len(PCM) // 2) + PCM[: len(PCM) // 2] + b"data\xff\xff\xff\xff" + PCM[len(PCM) // 2 :],
            id="open",
        ),
    ],
)
def test_every_data_chunk_is_heard(read: Read, content: bytes) -> None:
    samples, _ = read(content)
    np.testing.assert_array_equal(samples, read(wav())[0])


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "length",
    [
        0,
        10**8,
        10**9,
        1_234_567_890,
        2 * 10**9,
        2**30,
        2**31,
        0x7F000000,
        0x7FFFF000,
        0x7FFFFFFF,
        0xFFFFDFFF,
        0xFFFFFFDB,
        0xFFFFFFFF,
    ],
)
@pytest.mark.parametrize("riff", [None, 0, 8, 36, 36 + len(PCM), 0xFFFFFFFF])
def test_a_length_that_is_a_placeholder_counts_as_unknown(read: Read, length: int, riff: int | None) -> None:
    samples, note = read(header(length, riff) + PCM)
    assert len(samples) == 2 * RATE
    assert note == "the length is not stated in the file (written as a stream)"


@pytest.mark.parametrize("sizes", [bytes(16), b"\xff" * 16])
def test_an_rf64_whose_long_lengths_were_never_written_is_read(read: Read, sizes: bytes) -> None:
    content = bytearray(snd("RF64"))
    content[20:36] = sizes
    samples, note = read(bytes(content))
    assert len(samples) == 2 * RATE
    assert "not stated" in note


@pytest.mark.parametrize("seconds", [2, 60, 600])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.97])
def test_a_wav_that_is_cut_off_is_still_refused(read: Read, seconds: int, share: float) -> None:
    whole = wav(PCM * (seconds // 2))
    there = int(len(whole) * share)
    with pytest.raises(
        BadAudio, match=rf"cut off or damaged: only {(there - 44) / 2 / RATE:.2f} of about {seconds}\.00 s"
    ):
        read(whole[:there])


@pytest.mark.parametrize(
    "content", [wav() * 3, nested(wav(), wav(), wav()), snd("FLAC") * 3, ffmpeg("ipod", "aac") * 3]
)
def test_joined_files_whose_last_is_cut_off_are_refused(read: Read, content: bytes) -> None:
    with pytest.raises(BadAudio, match="cut off or damaged"):
        read(content[: int(len(content) * 0.93)])


@pytest.mark.parametrize(("more", "noted"), [(2, "0.001"), (8, "0.001"), (36, "0.001"), (44, "0.001"), (1920, "0.040")])
def test_a_shortfall_below_50_ms_is_noted(read: Read, more: int, noted: str) -> None:
    samples, note = read(header(len(PCM) + more) + PCM)
    assert len(samples) == 2 * RATE
    assert note == f"{noted} s less audio than the header states"


RANDOM = np.random.default_rng(1).bytes(9_000)


@pytest.mark.parametrize(
    "tail",
    [
        LIST,
        LIST + chunk(b"id3 ", bytes(77)) + chunk(b"cue ", bytes(28)),
        chunk(b"id3 ", RANDOM),
        chunk(b"bext", bytes(602)),
        chunk(b"smpl", bytes(60)),
        chunk(b"JUNK", bytes(5_000)),
        chunk(b"XtRa", RANDOM),
        chunk(b"id3 ", RANDOM)[:5_000],
        b"TAG" + bytes(125),
        b"APETAGEX" + RANDOM,
        bytes(4_096),
        b"\r\n",
        b"",
    ],
)
def test_metadata_and_padding_behind_the_sound_are_neither_heard_nor_noted(read: Read, tail: bytes) -> None:
    samples, note = read(wav(tail=tail))
    assert len(samples) == 2 * RATE
    assert note == ""


@pytest.mark.parametrize("tail", [LIST, LIST + chunk(b"id3 ", bytes(77)) + chunk(b"cue ", bytes(28))])
@pytest.mark.parametrize("length", [0, 0xFFFFFFFF])
def test_metadata_behind_sound_of_unknown_length_is_not_heard(read: Read, tail: bytes, length: int) -> None:
    samples, note = read((header(length) + PCM + tail) * 2)
    assert len(samples) == 4 * RATE
    assert "not stated" in note


@pytest.mark.parametrize(("first", "second"), [(wav()[: len(wav()) // 2], wav()), (snd("AIFF")[:48_000], snd("AIFF"))])
def test_what_a_joined_file_lacks_before_the_next_is_noted_with_its_seconds(
    read: Read, first: bytes, second: bytes
) -> None:
    samples, note = read(first + second)
    lacking = float(note.split("; ")[-1].split()[0])
    assert note.endswith("s less audio than the headers of the joined files state")
    assert len(samples) / RATE + lacking == pytest.approx(4.0, abs=0.01)


@pytest.mark.parametrize(
    "text",
    [b'{"usage": {"tokens": 123}}\n' * 400, b"\r\n--part--\r\n" + b" " * 9, b'data: {"type": "speech.audio.done"}\n\n'],
)
def test_text_behind_sound_of_unknown_length_is_not_heard(read: Read, text: bytes) -> None:
    samples, note = read(header(0xFFFFFFFF) + PCM + text)
    assert len(samples) == 2 * RATE
    assert ("were left out" in note) == (len(text) > 48)


ID3V1 = b"TAG" + bytes(125)
APE = (
    b"APETAGEX" + struct.pack("<IIII8x", 2000, 32, 0, 0xA0000000) + b"APETAGEX" + struct.pack("<IIII8x", 2000, 32, 0, 0)
)
LYRICS = b"LYRICSBEGININD0000200LYRICS200"


@pytest.mark.parametrize("between", [ID3V1, APE, LYRICS + ID3V1, bytes(100), b'{"done": true}\n'])
@pytest.mark.parametrize("first", ["wav", "mp4"])
@pytest.mark.parametrize("second", ["mp3", "mp4"])
def test_a_file_behind_tags_padding_or_text_is_refused_by_name(
    read: Read, first: str, second: str, between: bytes
) -> None:
    with pytest.raises(
        BadAudio,
        match=rf"consists of two joined files, {first} up to byte \d+ and then {second}: "
        rf"convert both",
    ):
        read(WHOLE[first]() + between + WHOLE[second]())


def test_an_mp3_with_a_tag_behind_a_flac_is_refused_by_name(read: Read) -> None:
    tag = b"ID3\x04\0\0\0\0\0\x0aTIT2\0\0\0\0\0\0"
    with pytest.raises(BadAudio, match=r"consists of two joined files, flac up to byte \d+ and then mp3: convert both"):
        read(WHOLE["flac"]() + tag + WHOLE["mp3"]())
    assert read(WHOLE["flac"]() + tag)[1] == ""


def test_a_live_stream_of_matroska_says_that_its_length_is_not_stated(read: Read) -> None:
    assert read(ffmpeg("matroska", "flac", live="1"))[1] == "the length is not stated in the file"
    assert read(ffmpeg("matroska", "flac"))[1] == ""


@pytest.mark.parametrize("pad", [b"", b"\0"])
def test_a_chunk_of_odd_length_may_lack_its_padding(read: Read, pad: bytes) -> None:
    odd = (TONE * 100 + 128).astype(np.uint8).tobytes()[:-1]
    for tail, times in ((LIST, 1), (wav(odd, bits=8), 2)):
        samples, _ = read(wav(odd, bits=8) + pad + tail)
        assert len(samples) == times * len(odd)


@pytest.mark.parametrize(
    ("content", "seconds"),
    [
        pytest.param(lambda: wav() + b'{"error": "upstream closed"}' * 400, "0.233", id="text behind a wav"),
        pytest.param(lambda: wav() + bytes(480_000), "10.000", id="ten seconds of zeros"),
        pytest.param(lambda: snd("WAV", "IMA_ADPCM") + RANDOM, "0.7", id="bytes behind adpcm"),
        pytest.param(lambda: ffmpeg("mov", "pcm_s16le") + RANDOM, "0.170", id="bytes behind a movie"),
    ],
)
def test_what_stays_unread_is_noted_with_its_seconds(read: Read, content: Callable[[], bytes], seconds: str) -> None:
    samples, note = read(content())
    assert len(samples) / RATE == pytest.approx(2.0, abs=0.05)
    assert f"about {seconds}" in note
    assert note.endswith("s after the end of the audio were left out")


@pytest.mark.parametrize("name", ["mp3", "aac", "flac"])
def test_tags_between_joined_files_are_neither_heard_nor_noted(tmp_path: Path, name: str) -> None:
    picture = b"APIC" + RANDOM.replace(b"\xff", b"\xfe") * 4
    tag = b"ID3\x04\0\0" + bytes(len(picture) >> shift & 0x7F for shift in (21, 14, 7, 0)) + picture
    (tmp_path / "a").write_bytes((tag + WHOLE[name]()) * 3)
    decoded = decode(tmp_path / "a")
    assert decoded.seconds == pytest.approx(6.0, abs=0.2)
    assert not re.search("were left out|could not be decoded", decoded.note or "")


@pytest.mark.skipif(shutil.which("flac") is None, reason="flac is not installed")
@pytest.mark.parametrize("form", ["WAV", "AIFF"])
def test_a_flac_that_keeps_the_header_of_its_source_is_one_file(read: Read, tmp_path: Path, form: str) -> None:
    source = tmp_path / f"source.{form.lower()}"
    source.write_bytes(snd(form) if form == "AIFF" else wav(tail=LIST))
    subprocess.run(["flac", "-s", "--keep-foreign-metadata", source], check=True)
    content = source.with_suffix(".flac").read_bytes()
    assert (b"RIFF" if form == "WAV" else b"FORM") in content
    for times in (1, 2):
        samples, note = read(content * times)
        assert len(samples) == times * 2 * RATE
        assert note == ("" if times == 1 else "2 joined flac files, all of which are read")


def test_frames_behind_the_stated_end_of_a_flac_are_noted_with_their_seconds(read: Read) -> None:
    content = io.BytesIO()
    soundfile.write(content, 0.2 * np.random.default_rng(0).standard_normal(4 * RATE), RATE, format="FLAC")
    flac = bytearray(content.getvalue())
    facts = int.from_bytes(flac[18:26], "big")
    flac[18:26] = (facts >> 36 << 36 | 2 * RATE).to_bytes(8, "big")
    samples, note = read(bytes(flac))
    assert len(samples) == 2 * RATE
    left_out = float(note.split()[1])
    assert left_out == pytest.approx(2.0, abs=0.2)


def test_an_mp3_that_is_longer_than_its_header_states_is_read_and_noted(tmp_path: Path) -> None:
    content = bytearray(ffmpeg("mp3", "libmp3lame"))
    at = max(content.find(b"Info"), content.find(b"Xing"))
    frames = int.from_bytes(content[at + 8 : at + 12], "big")
    content[at + 8 : at + 12] = (frames // 2).to_bytes(4, "big")
    (tmp_path / "a.mp3").write_bytes(content)
    decoded = decode(tmp_path / "a.mp3")
    assert decoded.seconds == pytest.approx(2.0, abs=0.05)
    assert decoded.note is not None
    assert "2.00 s of audio, although the header states 0.9" in decoded.note


@pytest.mark.parametrize("content", [header(0), header(0) + LIST, header(0xFFFFFFFF), header(0) * 3])
def test_a_wav_of_headers_alone_is_refused(read: Read, content: bytes) -> None:
    with pytest.raises(BadAudio, match="contains no readable audio"):
        read(content)


@pytest.mark.parametrize("kind", [b"raw ", b"NONE", b"twos"])
def test_samples_after_the_stated_end_of_an_aifc_are_read_and_noted(read: Read, kind: bytes) -> None:
    content = bytearray(snd("AIFF", "FLOAT"))
    samples, _ = read(bytes(content))
    at = content.index(b"fl32" if b"fl32" in content else b"FL32")
    assert at == content.index(b"COMM") + 26
    plain = np.frombuffer(PCM, "<i2").astype(">i2").tobytes()
    begin = content.index(b"SSND") + 16
    content[at : at + 4], content[at - 12 : at - 10] = kind, struct.pack(">H", 8 if kind == b"raw " else 16)
    content[begin - 12 : begin - 8] = struct.pack(">I", 8 + RATE)
    content[begin:] = plain
    samples, note = read(bytes(content))
    assert len(samples) == 2 * RATE * (2 if kind == b"raw " else 1)
    assert "s of audio after the stated end are read as well" in note


def test_aiff_of_unstated_length_is_read_and_noted(read: Read) -> None:
    for length in (0, 0x7F000008):
        content = bytearray(snd("AIFF"))
        at = content.index(b"SSND") + 4
        content[at : at + 4] = struct.pack(">I", length)
        samples, note = read(bytes(content))
        assert len(samples) == 2 * RATE
        assert "not stated" in note


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("espeak-ng", ("--stdout", "All of a file is heard.")),
        ("sox", ("-n", "-r", "24000", "-t", "wav", "-", "synth", "2", "sine", "300")),
        ("sox", ("-n", "-r", "24000", "-t", "aiff", "-", "synth", "2", "sine", "300")),
        ("ffmpeg", ("-v", "error", "-f", "lavfi", "-i", "sine=d=2", "-f", "wav", "-")),
        ("ffmpeg", ("-v", "error", "-f", "lavfi", "-i", "sine=d=2", "-f", "aiff", "-")),
        ("ffmpeg", ("-v", "error", "-f", "lavfi", "-i", "sine=d=2", "-f", "flac", "-")),
    ],
)
def test_what_programs_write_into_a_pipe_is_heard_once_and_twice(
    read: Read, program: str, arguments: tuple[str, ...]
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    content = subprocess.run(
        [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    ).stdout
    once, _ = read(content)
    twice, note = read(content * 2)
    np.testing.assert_array_equal(twice, np.concatenate([once, once]))
    assert "2 " in note


class _Large(io.BytesIO):
    """A file as large as one likes: a header, and behind it one value."""

    def __init__(self, head: bytes, size: int) -> None:
        super().__init__(head)
        self._size, self._at = size, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self._size)[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        head = self.getvalue()[self._at : self._at + (size or 0)]
        return head.ljust(max(0, min(size or 0, self._size - self._at)), b"\x81")


@pytest.mark.parametrize("stated", [0, 1_000, 0xFFFFFFFF])
def test_a_wav_of_more_than_4_gib_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch, stated: int) -> None:
    monkeypatch.setattr("podeval.audio.container.find_marks", lambda *_: iter(()))
    size = 44 + 5 * 2**30
    file = _Large(header(stated, channels=2), size)
    parts = read_riff(file, size, "wav", "a.wav").parts
    assert sum(soundfile.SoundFile(PartReader(file, part)).frames for part in parts) == 5 * 2**28


def test_a_part_is_a_file_of_its_own() -> None:
    reader = PartReader(io.BytesIO(b"0123456789"), Part(2, 6, b"ab"))
    assert reader.read() == b"ab2345"
    assert reader.read(1) == b""
    assert (reader.seek(-3, 2), reader.read(9), reader.tell()) == (3, b"345", 6)
    assert (reader.seek(1), reader.read(2)) == (1, b"b2")
    assert reader.seek(-9) == reader.tell() == 3


@pytest.mark.parametrize(
    "content",
    [
        header(2**31) * 90_000,
        pytest.param(wav(PCM[:2]) * 20_000, marks=pytest.mark.long),
        header(2) + (b"data" + bytes(4)) * 1_200_000,
        header(0)[:12] * 900_000,
        snd("FLAC")[:42] * 90_000,
        ffmpeg("matroska", "flac")[:40] * 90_000,
        (b"\0\0\0\x08ftyp\0\0\0\x08mdat") * 90_000,
        (b"OggS\0\x02" + bytes(21) + b"OggS\0\0" + bytes(21)) * 90_000,
    ],
    ids=["headers", "files", "empty chunks", "beginnings", "flac", "matroska", "mp4", "ogg"],
)
def test_a_file_of_nothing_but_headers_is_read_in_bounded_time(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    began = time.process_time()
    with contextlib.suppress(BadAudio):
        decode(tmp_path / "a.wav")
    assert time.process_time() - began < 20


def test_more_files_than_can_be_counted_are_refused_by_name(tmp_path: Path) -> None:
    for content in (wav(PCM[:2]), snd("FLAC")[:42]):
        (tmp_path / "a").write_bytes(content * (MOST_PARTS + 1))
        with pytest.raises(BadAudio, match=r"has more than 100,000 parts: join their audio into one file"):
            decode(tmp_path / "a")
