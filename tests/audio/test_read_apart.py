"""Files of strangers are read by FFmpeg in a process of their own, whose memory and time end."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile

from podeval import sandbox
from podeval.audio.decode import DecodeLimits, decode
from podeval.audio.duration import read_container_and_seconds
from podeval.errors import BadAudio
from podeval.sandbox import transcode
from podeval.sandbox.transcode import decode_apart, read_header_apart
from tests.fakes.sandbox_walls import WALLS, stand_up
from tests.fakes.stated_counts import write_all

LIMITS = DecodeLimits(seconds=60, total_bytes=2**26)


@pytest.fixture
def sounds(tmp_path: Path) -> dict[str, Path]:
    """A second of noise, as libsndfile reads it and as FFmpeg does."""
    noise = (0.2 * np.random.default_rng(1).standard_normal(16_000)).astype(np.float32)
    for name in ("wav", "flac", "mp3"):
        soundfile.write(tmp_path / f"a.{name}", noise, 16_000)
    with av.open(str(tmp_path / "a.m4a"), "w", format="ipod") as container:
        stream = container.add_stream("aac", rate=16_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(noise[None], format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 16_000, 0, Fraction(1, 16_000)
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return {name: tmp_path / f"a.{name}" for name in ("wav", "flac", "mp3", "m4a")}


def refuse(*_: object, **__: object) -> Any:
    raise AssertionError("a decoder reads it in this process")


def test_it_is_the_same_sound_and_this_process_asks_no_decoder(
    sounds: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_file = soundfile.SoundFile
    there = {name: (decode(path, limits=LIMITS), read_container_and_seconds(path)) for name, path in sounds.items()}
    monkeypatch.setattr(av, "open", refuse)
    for name, path in sounds.items():
        if name != "wav":  # whose header is written by podeval
            monkeypatch.setattr(soundfile, "SoundFile", refuse)
        decoded, header = there[name]
        apart = decode_apart(path, LIMITS)
        assert np.array_equal(apart.samples, decoded.samples)
        fields = ("rate", "layout", "container", "codec", "note")
        assert [getattr(apart, field) for field in fields] == [getattr(decoded, field) for field in fields]
        assert read_header_apart(path) == header
        monkeypatch.setattr(soundfile, "SoundFile", sound_file)


def test_a_refusal_is_the_one_that_reading_it_here_gives(tmp_path: Path, sounds: dict[str, Path]) -> None:
    (tmp_path / "cut.m4a").write_bytes(sounds["m4a"].read_bytes()[:-600])
    (tmp_path / "counts.m4a").write_bytes(write_all()["samples of one size"])
    (tmp_path / "text.m4a").write_text("hello")
    for name in ("cut", "counts", "text", "absent"):
        for here, apart in (
            (read_container_and_seconds, read_header_apart),
            (decode, lambda p: decode_apart(p, LIMITS)),
        ):
            with pytest.raises(BadAudio) as refusal:
                here(tmp_path / f"{name}.m4a")
            with pytest.raises(BadAudio) as refusal_apart:
                apart(tmp_path / f"{name}.m4a")
            assert str(refusal_apart.value) == str(refusal.value)


def test_only_a_wav_of_plain_samples_is_decoded_here(tmp_path: Path, sounds: dict[str, Path]) -> None:
    noise = soundfile.read(sounds["wav"], dtype="float32")[0]
    for subtype in ("PCM_16", "PCM_24", "FLOAT", "ULAW", "MS_ADPCM", "GSM610"):
        soundfile.write(tmp_path / f"{subtype}.wav", noise, 16_000, subtype=subtype)
    plain = {path.stem for path in tmp_path.glob("*.wav") if transcode.is_plain_wav(path)}
    assert plain == {"a", "PCM_16", "PCM_24", "FLOAT"}
    assert not transcode.is_plain_wav(sounds["flac"])


def test_memory_and_time_that_reading_takes_end(sounds: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcode, "HEADER_BYTES", 2**25)
    with pytest.raises(BadAudio, match=r"a\.m4a' cannot be read, because .*memory"):
        read_header_apart(sounds["m4a"])
    monkeypatch.undo()
    limits = transcode.sandbox.SandboxLimits
    monkeypatch.setattr(transcode.sandbox, "SandboxLimits", lambda _, *a, **k: limits(0.01, *a, **k))
    with pytest.raises(BadAudio, match=r"a\.m4a' cannot be read, because .*longer than 0\.01 s"):
        read_header_apart(sounds["m4a"])


@pytest.mark.parametrize("wall", WALLS)
def test_it_is_read_behind_a_wall_that_no_secret_passes(
    sounds: dict[str, Path], monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    stand_up(wall, monkeypatch)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    boxes: list[sandbox.SandboxSpec] = []
    run = sandbox.run
    monkeypatch.setattr(sandbox, "run", lambda box: (boxes.append(box), run(box))[1])
    read_header_apart(sounds["mp3"])
    (box,) = boxes
    assert box.own
    assert list(box.readable) == [sounds["mp3"]]
    assert "HF_TOKEN" not in box.environment
