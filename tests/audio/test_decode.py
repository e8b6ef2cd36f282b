"""Decoding real encodings: right rate, channels, duration and samples."""

import hashlib
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from scipy.signal import correlate

from podeval.audio.decode import DecodeLimits, decode, hash_file
from podeval.errors import BadAudio, PodevalError

Samples = NDArray[np.float32]
SHARED = Path(__file__).parents[2] / "../shared/data"


def tones(rate: int, channels: int, seconds: float = 1.0) -> Samples:
    """A different amplitude-modulated tone in every channel."""
    time = np.arange(round(rate * seconds)) / rate
    carriers = [np.sin(2 * np.pi * (200 + 90 * channel) * time) for channel in range(channels)]
    return np.asarray(np.stack(carriers, 1) * (0.3 + 0.2 * np.sin(9 * time))[:, None], dtype=np.float32)


def encode(
    path: Path, muxer: str, codec: str, samples: Samples, rate: int, layout: str, options: dict[str, str] | None = None
) -> Path:
    """Encode with FFmpeg's libraries."""
    with av.open(str(path), "w", format=muxer) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout, options=options or {})
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def best_correlation(source: Samples, decoded: Samples, most_lag: int = 3000) -> float:
    """The correlation at the best of the delays that an encoder may add, over what both have."""
    products = correlate(decoded.astype(np.float64), source.astype(np.float64), method="fft")
    lag = int(products[len(source) - 1 : len(source) + most_lag].argmax())
    size = min(len(source), len(decoded) - lag)
    return float(np.corrcoef(source[:size], decoded[lag : lag + size])[0, 1])


@pytest.mark.parametrize(
    ("subtype", "step"),
    [("PCM_16", 2**-15), ("PCM_24", 2**-23), ("PCM_32", 2**-23), ("FLOAT", 0.0), ("DOUBLE", 0.0), ("PCM_U8", 2**-7)],
)
def test_wav_gives_back_the_samples_at_their_precision(tmp_path: Path, subtype: str, step: float) -> None:
    source = tones(44_100, 2)
    soundfile.write(tmp_path / "a.wav", source, 44_100, subtype=subtype)
    decoded = decode(tmp_path / "a.wav")
    assert (decoded.rate, decoded.layout, decoded.container) == (44_100, "stereo", "wav")
    assert decoded.codec == subtype.lower()
    assert decoded.note is None
    assert decoded.samples.dtype == np.float32
    assert decoded.samples.shape == source.shape
    assert np.abs(decoded.samples - source).max() <= step


@pytest.mark.parametrize("rate", [8_000, 11_025, 48_000, 192_000])
@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.aiff"])
def test_any_rate_and_seven_channels_are_kept(tmp_path: Path, rate: int, name: str) -> None:
    source = tones(rate, 7, 0.3)
    soundfile.write(tmp_path / name, source, rate)
    decoded = decode(tmp_path / name)
    assert (decoded.rate, decoded.channels, decoded.frames) == (rate, 7, len(source))
    np.testing.assert_allclose(decoded.samples, source, atol=2**-15)


@pytest.mark.parametrize(
    ("name", "muxer", "codec", "rate", "container", "decoder"),
    [
        ("a.m4a", "ipod", "aac", 44_100, "mp4", "aac"),
        ("a.mp4", "mp4", "alac", 44_100, "mp4", "alac"),
        ("a.mov", "mov", "pcm_s16le", 22_050, "mp4", "pcm_s16le"),
        ("a.aac", "adts", "aac", 24_000, "aac", "aac"),
        ("a.opus", "ogg", "libopus", 48_000, "ogg", "opus"),
        ("a.webm", "webm", "libopus", 48_000, "matroska", "opus"),
        ("a.mka", "matroska", "flac", 96_000, "matroska", "flac"),
        ("a.mp3", "mp3", "libmp3lame", 16_000, "mp3", "mp3"),
        ("b.mp3", "mp3", "libmp3lame", 44_100, "mp3", "mp3"),
    ],
)
def test_every_container_of_ffmpeg_keeps_rate_channels_duration_and_sound(
    tmp_path: Path, name: str, muxer: str, codec: str, rate: int, container: str, decoder: str
) -> None:
    source = tones(rate, 2, 1.5)
    decoded = decode(encode(tmp_path / name, muxer, codec, source, rate, "stereo"))
    assert (decoded.container, decoded.codec) == (container, decoder)
    assert (decoded.rate, decoded.channels, decoded.layout) == (rate, 2, "stereo")
    # AAC has frames of 1,024 samples and pads the last; raw ADTS keeps the encoder's delay as well.
    assert 0 <= decoded.frames - len(source) <= {"aac": 2 * 1024 + 1}.get(decoder, 0)
    for channel in range(2):
        assert best_correlation(source[:, channel], decoded.samples[:, channel]) > 0.99


@pytest.mark.parametrize("rate", [8_000, 22_050, 32_000, 48_000])
@pytest.mark.parametrize(("name", "subtype"), [("a.ogg", "VORBIS"), ("a.mp3", "MPEG_LAYER_III")])
def test_encodings_by_libsndfile_keep_duration_and_sound(tmp_path: Path, name: str, subtype: str, rate: int) -> None:
    source = tones(rate, 1, 1.37)
    soundfile.write(tmp_path / name, source, rate, subtype=subtype)
    decoded = decode(tmp_path / name)
    assert (decoded.rate, decoded.layout, decoded.frames) == (rate, "mono", len(source))
    assert best_correlation(source[:, 0], decoded.samples[:, 0], most_lag=1) > 0.99


def test_surround_opus_comes_in_the_order_of_wav(tmp_path: Path) -> None:
    source = tones(48_000, 6)
    # The LFE of a coder passes low frequencies only.
    source[:, 3] = 0.3 * np.sin(2 * np.pi * 40 * np.arange(48_000) / 48_000)
    decoded = decode(encode(tmp_path / "a.opus", "ogg", "libopus", source, 48_000, "5.1", {"mapping_family": "1"}))
    assert decoded.layout == "5.1"
    for channel in range(6):
        assert best_correlation(source[:, channel], decoded.samples[:, channel]) > 0.95


@pytest.mark.parametrize(
    ("name", "muxer", "codec", "layout", "channels"),
    [
        ("a.opus", "ogg", "libopus", "7.1", 8),
        ("a.m4a", "mp4", "aac", "7.1", 8),
        ("a.mp4", "mp4", "alac", "7.1(wide)", 8),
        ("a.mka", "matroska", "aac", "hexadecagonal", 16),
    ],
)
def test_many_channels_in_ffmpegs_containers_do_not_crash_it(
    tmp_path: Path, name: str, muxer: str, codec: str, layout: str, channels: int
) -> None:
    # PyAV 18.1 ends the whole process with a segmentation fault where such a frame is made an array as it is.
    source = tones(48_000, channels)
    options = {"mapping_family": "1"} if codec == "libopus" else {}
    decoded = decode(encode(tmp_path / name, muxer, codec, source, 48_000, layout, options))
    assert decoded.channels == channels
    level = np.sqrt(np.mean(decoded.samples**2, axis=0) / np.mean(source**2, axis=0))
    # The LFE of 7.1, its fourth channel, is low-passed.
    assert np.delete(level, 3) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("layout", "channels"), [("5.1", 6), ("quad", 4), ("7.1", 8)])
def test_the_channel_mask_of_an_extensible_wav_names_the_layout(tmp_path: Path, layout: str, channels: int) -> None:
    path = encode(tmp_path / "a.wav", "wav", "pcm_f32le", tones(8_000, channels), 8_000, layout)
    assert decode(path).layout == layout


def test_float_samples_beyond_full_scale_nan_and_infinity_stay_as_they_are(tmp_path: Path) -> None:
    source = np.array([[0.0, 1.5], [-7.25, np.nan], [np.inf, -np.inf]], dtype=np.float32)
    soundfile.write(tmp_path / "a.wav", source, 16_000, subtype="FLOAT")
    np.testing.assert_array_equal(decode(tmp_path / "a.wav").samples, source)


def test_digital_silence_is_readable(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.flac", np.zeros((4_000, 1), np.float32), 8_000)
    assert not decode(tmp_path / "a.flac").samples.any()


def test_a_variable_bit_rate_mp3_without_a_length_header_is_read_to_its_end(tmp_path: Path) -> None:
    # libsndfile 1.2.2 guesses the length from the first frames of such a file and drops the rest.
    rate = 44_100
    loud_then_silent = np.zeros((rate * 12, 1), np.float32)
    loud_then_silent[: rate * 8, 0] = 0.3 * np.random.default_rng(0).standard_normal(rate * 8)
    with av.open(str(tmp_path / "a.mp3"), "w", format="mp3", options={"write_xing": "0"}) as container:
        stream = container.add_stream("libmp3lame", rate=rate, layout="mono", options={"flags": "+qscale"})
        frame = av.AudioFrame.from_ndarray(loud_then_silent.T.copy(), format="fltp", layout="mono")
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    decoded = decode(tmp_path / "a.mp3")
    assert decoded.seconds == pytest.approx(12.0, abs=0.1)
    assert decoded.note is not None
    assert "length is not stated" in decoded.note


def test_joined_mp3_files_are_read_to_the_last_and_noted(tmp_path: Path) -> None:
    once = encode(tmp_path / "a.mp3", "mp3", "libmp3lame", tones(44_100, 2), 44_100, "stereo").read_bytes()
    (tmp_path / "b.mp3").write_bytes(once + once)
    decoded = decode(tmp_path / "b.mp3")
    assert decoded.seconds == pytest.approx(2.0, abs=0.1)
    assert decoded.note == "2.06 s of audio, although the header states 1.00 s"


def test_an_mp3_that_was_cut_without_encoding_it_again_is_whole(tmp_path: Path) -> None:
    once = encode(tmp_path / "a.mp3", "mp3", "libmp3lame", tones(44_100, 2, 2.0), 44_100, "stereo")
    with av.open(str(once)) as source, av.open(str(tmp_path / "b.mp3"), "w", format="mp3") as target:
        stream = target.add_stream_from_template(source.streams.audio[0])
        packets = [packet for packet in source.demux(audio=0) if packet.dts is not None]
        for packet in packets[20:60]:
            packet.stream = stream
            target.mux(packet)
    decoded = decode(tmp_path / "b.mp3")
    assert decoded.seconds == pytest.approx(40 * 1152 / 44_100, abs=0.05)
    assert decoded.note is None


def test_packets_that_cannot_be_decoded_are_noted_with_their_seconds(tmp_path: Path) -> None:
    once = encode(tmp_path / "a.mp3", "mp3", "libmp3lame", tones(44_100, 2, 4.0), 44_100, "stereo").read_bytes()
    (tmp_path / "b.mp3").write_bytes(once + b"<html>error</html>" * 1_000)
    decoded = decode(tmp_path / "b.mp3")
    assert decoded.note is not None
    left_out = re.search(r"1 of \d+ packets, about (\S+) s, could not be decoded and were left out", decoded.note)
    assert left_out is not None
    assert float(left_out[1]) == pytest.approx(18_000 / len(once) * 4.0, rel=0.3)


def test_the_first_of_several_audio_streams_is_used_and_noted(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.mka"), "w", format="matroska") as container:
        streams = [container.add_stream("flac", rate=16_000, layout="mono") for _ in range(2)]
        for stream, level in zip(streams, (0.25, -0.5), strict=True):
            samples = np.full((1, 16_000), level * 2**15, np.int16)
            frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            frame.sample_rate, frame.pts = 16_000, 0
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    decoded = decode(tmp_path / "a.mka")
    assert decoded.note == "the first of 2 audio streams is used"
    assert set(decoded.samples.flat) == {0.25}


@pytest.mark.parametrize("name", ["a.webm", "a.m4a"])
def test_a_stream_with_a_gap_in_its_time_is_refused(tmp_path: Path, name: str) -> None:
    codec, muxer = {"a.webm": ("libopus", "webm"), "a.m4a": ("aac", "ipod")}[name]
    with av.open(str(tmp_path / name), "w", format=muxer) as container:
        stream = container.add_stream(codec, rate=48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(tones(48_000, 1, 2.0).T.copy(), format="fltp", layout="mono")
        frame.sample_rate, frame.pts = 48_000, 0
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            if not 0.5 < (packet.pts or 0) * packet.time_base < 1.0:
                container.mux(packet)
    with pytest.raises(BadAudio, match=r"only 1\.\d+ of about 2\.0\d s could be read"):
        decode(tmp_path / name)


def test_flac_of_unstated_length_is_read_to_its_end(tmp_path: Path) -> None:
    source = tones(44_100, 2, 3.0)
    soundfile.write(tmp_path / "a.flac", source, 44_100)
    stream = bytearray((tmp_path / "a.flac").read_bytes())
    stream[21] &= 0xF0
    stream[22:26] = bytes(4)
    (tmp_path / "a.flac").write_bytes(stream)
    np.testing.assert_allclose(decode(tmp_path / "a.flac").samples, source, atol=2**-15)


def test_an_id3_tag_with_padding_before_mp3_and_flac_is_skipped(tmp_path: Path) -> None:
    tag = b"ID3\x04\x00\x00\x00\x00\x02\x10" + b"\x00" * 272
    for name in ("a.mp3", "a.flac"):
        soundfile.write(tmp_path / name, tones(16_000, 1), 16_000)
        plain = decode(tmp_path / name)
        (tmp_path / name).write_bytes(tag + (tmp_path / name).read_bytes())
        np.testing.assert_array_equal(decode(tmp_path / name).samples, plain.samples)


@pytest.mark.parametrize(
    "name", ["-leading dash.wav", 'it\'s "quoted".wav', "🎙️ épisode.wav", "a.raw", "no extension", "a.txt", "a.mp3"]
)
def test_the_name_of_a_file_does_not_matter(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    soundfile.write(tmp_path / "source.wav", tones(8_000, 1), 8_000)
    (tmp_path / "source.wav").rename(name)
    (tmp_path / "link").symlink_to(tmp_path / name)
    assert decode(Path(name)).container == "wav"
    assert decode(tmp_path / "link").frames == 8_000


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg"])
def test_a_recording_over_the_memory_limit_is_held_in_a_file_and_equal(tmp_path: Path, name: str) -> None:
    soundfile.write(tmp_path / name, tones(16_000, 2, 20.0), 16_000)
    small = decode(tmp_path / name, limits=DecodeLimits(memory_bytes=100_000))
    assert isinstance(small.samples, np.memmap)
    whole = decode(tmp_path / name)
    assert not isinstance(whole.samples, np.memmap)
    np.testing.assert_array_equal(small.samples, whole.samples)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (DecodeLimits(seconds=0.5), "longer than"),
        (DecodeLimits(total_bytes=1000), "decodes to more than"),
        (DecodeLimits(channels=1), "has 2 channels, outside the range of 1 to 1"),
        (DecodeLimits(max_rate=8_000), "sampling rate of 16000 Hz"),
        (DecodeLimits(min_rate=22_050), "sampling rate of 16000 Hz"),
    ],
)
@pytest.mark.parametrize("name", ["a.flac", "a.ogg"])
def test_what_decodes_beyond_a_limit_is_refused(tmp_path: Path, name: str, limits: DecodeLimits, message: str) -> None:
    soundfile.write(tmp_path / name, tones(16_000, 2), 16_000)
    with pytest.raises(BadAudio, match=message):
        decode(tmp_path / name, limits=limits)


def test_a_full_disk_is_told_apart_from_bad_audio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podeval.audio.samples.FREE_BYTES", 2**70)
    soundfile.write(tmp_path / "a.wav", tones(16_000, 1), 16_000)
    with pytest.raises(PodevalError, match="set TMPDIR") as caught:
        decode(tmp_path / "a.wav", limits=DecodeLimits(memory_bytes=1000))
    assert not isinstance(caught.value, BadAudio)


def test_content_hash_is_the_sha256_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 100_000)
    assert hash_file(tmp_path / "a") == hashlib.sha256(b"abc" * 100_000).hexdigest()


@pytest.mark.parametrize("reader", [decode, hash_file])
def test_a_missing_file_is_refused_by_name(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    with pytest.raises(BadAudio, match=r"gone\.wav' does not exist"):
        reader(tmp_path / "gone.wav")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data folder is not beside the repository")
def test_real_recordings_decode_as_libsndfile_reads_them() -> None:
    paths = sorted(SHARED.glob("samples/*.flac")) + sorted(SHARED.glob("samples/*.wav"))
    assert paths
    for path in paths:
        expected, rate = soundfile.read(path, dtype="float32", always_2d=True)
        decoded = decode(path)
        assert decoded.rate == rate
        assert decoded.note is None
        np.testing.assert_array_equal(decoded.samples, expected)
