"""Files that are not what they seem: nothing but BadAudio, and no other file is ever read."""

import contextlib
import os
import socket
import struct
import wave
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from podeval.audio.decode import NOISE, DecodeLimits, decode
from podeval.audio.duration import read_container_and_seconds
from podeval.errors import BadAudio
from tests.fakes.bounded_memory import bounded_memory
from tests.fakes.stated_counts import write_all

RATE = 16_000
CANARY_LEVEL = 0.75
ENCODINGS = ["wav", "float.wav", "rf64.wav", "aiff", "flac", "ogg", "mp3", "opus", "webm", "m4a", "mov", "aac"]


def write_canary(path: Path) -> Path:
    soundfile.write(path, np.full((RATE, 1), CANARY_LEVEL, np.float32), RATE)
    return path


@pytest.fixture(scope="module")
def encodings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """One second of noise in every format."""
    folder = tmp_path_factory.mktemp("encodings")
    noise = (0.2 * np.random.default_rng(1).standard_normal((RATE, 1))).astype(np.float32)
    written = {}
    for name in ENCODINGS[:7]:
        forms = {"rf64.wav": ("RF64", "PCM_16"), "float.wav": ("WAV", "FLOAT")}
        form, subtype = forms.get(name, (name.upper(), None))
        soundfile.write(folder / name, noise, RATE, format=form, subtype=subtype)
    for name, muxer, codec in [
        ("opus", "ogg", "libopus"),
        ("webm", "webm", "libopus"),
        ("m4a", "ipod", "aac"),
        ("mov", "mov", "pcm_s16le"),
        ("aac", "adts", "aac"),
    ]:
        with av.open(str(folder / name), "w", format=muxer) as container:
            stream = container.add_stream(codec, rate=RATE, layout="mono")
            frame = av.AudioFrame.from_ndarray(noise.T.copy(), format="fltp", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = RATE, 0, Fraction(1, RATE)
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    for name in ENCODINGS:
        written[name] = (folder / name).read_bytes()
    return written


@pytest.mark.parametrize(
    ("script", "demuxer"),
    [
        ("ffconcat version 1.0\nfile canary.wav\n", "concat"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\ncanary.wav\n#EXT-X-ENDLIST\n", "hls"),
    ],
)
@pytest.mark.parametrize("name", ["a.wav", "a.m4a", "a.mp3", "a.m3u8", "a.ffconcat"])
def test_a_playlist_is_refused_and_the_file_it_names_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, demuxer: str, name: str
) -> None:
    write_canary(tmp_path / "canary.wav")
    (tmp_path / name).write_text(script)
    monkeypatch.chdir(tmp_path)
    opened = _opened_files(monkeypatch)
    with pytest.raises(BadAudio, match="is a playlist, which podeval refuses to follow"):
        decode(tmp_path / name)
    assert opened == [str(tmp_path / name)]
    if demuxer == "concat":
        # The attack works on a decoder that probes: the test is not blind.
        with av.open(str(tmp_path / name), format=demuxer) as container:
            assert max(np.abs(frame.to_ndarray()).max() for frame in container.decode(audio=0)) > 24_000


def _opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []
    genuine = os.open

    def recording_open(path: object, flags: int, *args: int, **kwargs: int) -> int:
        opened.append(str(path))
        return genuine(path, flags, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", recording_open)
    return opened


@pytest.mark.parametrize(
    "prefix", [b"RIFF\x24\x00\x00\x00WAVE", b"OggS\x00", b"\x1aE\xdf\xa3", b"\x00\x00\x00\x08ftyp"]
)
def test_a_playlist_behind_audio_magic_is_not_followed(tmp_path: Path, prefix: bytes) -> None:
    canary = write_canary(tmp_path / "canary.wav")
    (tmp_path / "a.wav").write_bytes(prefix + f"\nffconcat version 1.0\nfile {canary}\n".encode())
    with pytest.raises(BadAudio):
        decode(tmp_path / "a.wav")


def test_a_movie_whose_media_lies_in_another_file_is_refused(tmp_path: Path, encodings: dict[str, bytes]) -> None:
    movie = encodings["mov"]
    media, index = movie.index(b"mdat") + 4, movie.index(b"moov") - 4
    canary = tmp_path / "canary.mov"
    level = int(CANARY_LEVEL * 2**15)
    canary.write_bytes(movie[:media] + struct.pack("<h", level) * ((index - media) // 2) + movie[index:])
    emptied = movie[:media] + bytes(index - media) + movie[index:]
    (tmp_path / "a.mov").write_bytes(_with_data_reference(emptied, _alias(str(canary))))
    with pytest.raises(BadAudio, match="no readable audio"):
        decode(tmp_path / "a.mov")
    # The attack works where a decoder is told to follow references: the test is not blind.
    follow = {"enable_drefs": "1", "use_absolute_path": "1"}
    with av.open(str(tmp_path / "a.mov"), format="mov", options=follow) as container:
        assert {int(np.abs(frame.to_ndarray()).max()) for frame in container.decode(audio=0)} == {level}


def test_a_movie_with_an_external_url_is_not_followed(tmp_path: Path, encodings: dict[str, bytes]) -> None:
    canary = write_canary(tmp_path / "canary.wav")
    location = f"file://{canary}\0".encode()
    reference = struct.pack(">I4sI", 12 + len(location), b"url ", 0) + location
    (tmp_path / "a.mov").write_bytes(_with_data_reference(encodings["mov"], reference))
    with contextlib.suppress(BadAudio):
        assert np.abs(decode(tmp_path / "a.mov").samples[100:] - CANARY_LEVEL).max() > 0.5


def _with_data_reference(boxes: bytes, reference: bytes) -> bytes:
    """An MP4 with its data references replaced by one (ISO/IEC 14496-12, 8.7.2)."""
    patched, at = b"", 0
    while at < len(boxes):
        length, kind = struct.unpack(">I4s", boxes[at : at + 8])
        body = boxes[at + 8 : at + length]
        at += length
        if kind in (b"moov", b"trak", b"mdia", b"minf", b"dinf"):
            body = _with_data_reference(body, reference)
        elif kind == b"dref":
            body = struct.pack(">II", 0, 1) + reference
        patched += struct.pack(">I4s", 8 + len(body), kind) + body
    return patched


def _alias(target: str) -> bytes:
    """A QuickTime 'alis' data reference: a fixed record of 150 bytes, then tagged absolute paths (2 and 18)."""
    path = target.encode()
    name = os.path.basename(path)[:63]
    record = bytes(4) + struct.pack(">HHH", 0, 2, 0) + b"\x04disk".ljust(28, b"\0") + bytes(4) + b"H+" + bytes(6)
    record += bytes([len(name)]) + name.ljust(63, b"\0") + bytes(16) + struct.pack(">hh", 1, 1) + bytes(16)
    for tag in (2, 18):
        padded = path + b"\0" * (len(path) % 2)
        record += struct.pack(">HH", tag, len(padded)) + padded
    record += struct.pack(">HH", 0xFFFF, 0)
    return struct.pack(">I4sI", 12 + len(record), b"alis", 0) + record


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (b"Hello, this is no audio.\n" * 9, "is a text file, not audio"),
        ("\ufeffGrüße".encode(), "is a text file, not audio"),
        ("#EXTM3U\nx.wav".encode("utf-16"), "is a playlist"),
        (b'<?xml version="1.0"?>\n<smil><body/></smil>', "is a playlist"),
        (b"https://example.org/a.mp3\n", "is a playlist"),
        (b"[playlist]\nFile1=a.mp3\n", "is a playlist"),
        (b"WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n", "is a subtitle file"),
        (b"1\r\n00:00:00,000 --> 00:00:01,000\r\nHello\r\n", "is a subtitle file"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "is an HTML page"),
        (b'{"error": "not found"}', "is JSON"),
        (b"PK\x03\x04" + bytes(60), "is a ZIP archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "run git lfs pull"),
        (b"caff\x00\x01", "is a CAF file"),
        (b"RIFX\x00\x10\x00\x00WAVEfmt ", "is a big-endian WAV file"),
        (b"HTTP/1.1 200 OK\r\n\r\nRIFF\x00\x10\x00\x00WAVEfmt ", "has 19 bytes before its wav header: remove"),
        (b"UklGRiQAAABXQVZFZm10IBAAAAABAAEAwF0AAIC7AAACABAAZGF0YQ==", "is audio encoded as base64 text: decode it"),
        (b'data: {"type": "speech.audio.delta"}\n\n', "is a stream of server-sent events"),
        (b"RIFF\x00\x10\x00\x00AVI LIST", "is a RIFF file of type 'AVI '"),
        (b"ID3\x04\x00\x00\x00\x00\x00\x04abcdRIFF\x00\x10\x00\x00WAVE", "no MP3, AAC or FLAC audio after it"),
        (b"\xff\xfb", "is not in a format that podeval supports"),
        (bytes(range(256)) * 4, "is not in a format that podeval supports"),
    ],
)
def test_what_is_no_audio_is_refused_with_what_it_looks_like(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(BadAudio, match=message):
        decode(tmp_path / "a.wav")


def test_directories_pipes_sockets_and_devices_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(tmp_path / "socket.wav"))
        for path in (tmp_path / "pipe.wav", tmp_path / "socket.wav", Path("/dev/zero")):
            with pytest.raises(BadAudio, match="is a pipe, socket or device"):
                decode(path)
    with pytest.raises(BadAudio, match="is a directory"):
        decode(tmp_path)


def test_paths_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    for path in (tmp_path / "loop", tmp_path / "dangling", tmp_path / ("x" * 5000), Path("a\0b.wav")):
        with pytest.raises(BadAudio):
            decode(path)


def test_a_file_one_may_not_read_is_refused(tmp_path: Path) -> None:
    path = write_canary(tmp_path / "a.wav")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        # Root reads everything: be somebody else for a moment.
        os.seteuid(65_534)
    try:
        with pytest.raises(BadAudio, match="the current user may not read"):
            decode(path)
    finally:
        if user == 0:
            os.seteuid(0)


@pytest.mark.parametrize("name", ["wav", "aiff", "flac", "ogg", "mp3"])
def test_a_header_without_audio_is_refused(tmp_path: Path, name: str) -> None:
    soundfile.write(tmp_path / f"a.{name}", np.zeros((0, 1), np.float32), RATE)
    with pytest.raises(BadAudio):
        decode(tmp_path / f"a.{name}")


def test_a_video_without_sound_is_refused(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 32
        stream.pix_fmt = "yuv420p"
        container.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        container.mux(stream.encode(None))
    with pytest.raises(BadAudio, match="contains video but no audio"):
        decode(tmp_path / "a.mp4")


@pytest.mark.parametrize("share", [0.3, 0.6, 0.94])
@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "aac"])
def test_a_truncated_file_is_refused(tmp_path: Path, encodings: dict[str, bytes], name: str, share: float) -> None:
    content = encodings[name]
    (tmp_path / "a").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(BadAudio, match=r"cut off|no readable audio"):
        decode(tmp_path / "a")


def test_a_truncated_file_says_how_much_of_it_was_readable(tmp_path: Path, encodings: dict[str, bytes]) -> None:
    content = encodings["wav"]
    (tmp_path / "a").write_bytes(content[: 44 + RATE])
    with pytest.raises(BadAudio, match=r"only 0\.50 of about 1\.00 s could be read: export or download"):
        decode(tmp_path / "a")


def test_50_ms_missing_are_noted_and_more_are_refused(tmp_path: Path, encodings: dict[str, bytes]) -> None:
    frames = RATE // 20
    for missing, noted in ((1, "0.001"), (frames - 1, "0.050")):
        (tmp_path / "a").write_bytes(encodings["wav"][: -2 * missing])
        assert str(decode(tmp_path / "a").note).startswith(f"{noted} s less audio than the header states")
    (tmp_path / "a").write_bytes(encodings["wav"][: -2 * (frames + 1)])
    with pytest.raises(BadAudio, match="cut off"):
        decode(tmp_path / "a")


def test_a_page_of_ogg_that_breaks_off_is_missing_as_a_whole(tmp_path: Path) -> None:
    """Its decoder drops the whole page, here of about a second, for the last ten of its bytes."""
    noise = np.random.default_rng(1).standard_normal(3 * RATE) / 10
    soundfile.write(tmp_path / "a.ogg", noise, RATE, format="OGG", subtype="VORBIS")
    (tmp_path / "b.ogg").write_bytes((tmp_path / "a.ogg").read_bytes()[:-10])
    with pytest.raises(BadAudio, match=r"cut off or damaged: only [12]"):
        decode(tmp_path / "b.ogg")


def test_damage_that_ends_a_stream_of_matroska_early_is_no_short_recording(
    tmp_path: Path, encodings: dict[str, bytes]
) -> None:
    content = encodings["webm"]
    (tmp_path / "a").write_bytes(content)
    assert decode(tmp_path / "a").note is None
    third, hole = len(content) // 3, len(content) // 10
    (tmp_path / "a").write_bytes(content[:third] + bytes(hole) + content[third + hole :])
    with pytest.raises(BadAudio, match="cut off or damaged"):
        decode(tmp_path / "a")


@pytest.mark.parametrize("kind", ["<i2", ">i2", "shifted", "mp3"])
def test_samples_of_another_kind_than_the_header_states_are_noted(tmp_path: Path, kind: str) -> None:
    tone = np.sin(np.arange(RATE) * 0.05) / 2
    samples = (tone * 2**15).astype(kind if kind[1:] == "i2" else "<i2").tobytes()
    if kind == "mp3":
        soundfile.write(tmp_path / "a.mp3", tone, RATE)
        samples = (tmp_path / "a.mp3").read_bytes()
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples[1:] if kind == "shifted" else samples)
    assert (NOISE in str(decode(tmp_path / "a.wav").note)) is (kind != "<i2")


def test_raw_aac_states_no_length_and_a_cut_end_is_noted(tmp_path: Path, encodings: dict[str, bytes]) -> None:
    content = encodings["aac"]
    (tmp_path / "a").write_bytes(content[: len(content) * 6 // 10])
    decoded = decode(tmp_path / "a")
    assert 0.5 < decoded.seconds < 0.8
    assert decoded.note is not None
    assert "not stated" in decoded.note


def test_a_flac_of_a_day_of_silence_is_stopped_at_the_limit(tmp_path: Path) -> None:
    with soundfile.SoundFile(tmp_path / "a.flac", "w", RATE, 1, "PCM_16") as sound:
        for _ in range(60):
            sound.write(np.zeros(RATE * 10, np.int16))
    assert (tmp_path / "a.flac").stat().st_size < 60_000
    with pytest.raises(BadAudio, match="longer than"):
        decode(tmp_path / "a.flac", limits=DecodeLimits(seconds=300.0))


@pytest.mark.parametrize("name", ENCODINGS)
def test_damage_anywhere_gives_bad_audio_or_a_bounded_result(
    tmp_path: Path, encodings: dict[str, bytes], name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    content, path = encodings[name], tmp_path / "a"
    random = np.random.default_rng(ENCODINGS.index(name))
    for trial in range(24):
        damaged = bytearray(content)
        if trial % 4 == 0:
            damaged = damaged[: int(random.integers(1, len(content)))]
        elif trial % 4 == 1:
            for at in random.integers(0, min(len(content), 300), 4):
                damaged[at] = random.integers(256)
        else:
            start = int(random.integers(len(content)))
            span = len(damaged[start : start + 300])
            damaged[start : start + span] = random.bytes(span)
        path.write_bytes(damaged)
        try:
            decoded = decode(path, limits=DecodeLimits(seconds=3600.0, total_bytes=2**28))
        except BadAudio:
            continue
        assert decoded.samples.dtype == np.float32
        assert decoded.samples.shape == (decoded.frames, decoded.channels)
        assert 0 < decoded.seconds <= 3600
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", write_all())
def test_what_an_index_states_is_compared_with_the_file_before_it_is_built(name: str, tmp_path: Path) -> None:
    """Each has some kilobytes, and states millions of samples, for each of which FFmpeg would take 36 bytes."""
    path = tmp_path / "song.m4a"
    path.write_bytes(write_all()[name])
    reason = "its index states|more than 8 tracks|compressed index|is cut off"
    for read in (read_container_and_seconds, decode):
        with bounded_memory(48 * 2**20), pytest.raises(BadAudio, match=reason):
            read(path)
