"""Clips and the three-minute summary, frame by frame; PodEval's tool (pydub) as reference where it is installed."""

import io
import warnings
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.audio.excerpts import cut, encode_pcm16_wav, join_minutes, locate_minutes, make_separator
from podeval.audio.samples import mix_to_mono, resample
from podeval.errors import BadInput, CannotScore

RATE = 8_000
MINUTE = 60 * RATE
TONE = round(0.3 * RATE)
Samples = np.ndarray[Any, np.dtype[np.float32]]


def noise(frames: int, channels: int = 1) -> Samples:
    """Noise in steps of 16 bits."""
    steps = np.random.default_rng(5).integers(-20_000, 20_000, (frames, channels))
    return np.asarray(steps / 2**15, dtype=np.float32)


def test_the_summary_is_first_middle_and_last_minute_with_tones_between() -> None:
    samples = noise(200 * RATE, 2)
    made = join_minutes(samples, RATE)
    assert made.shape == (3 * MINUTE + 2 * TONE, 2)
    assert made.dtype == np.float32
    first, rest = made[:MINUTE], made[MINUTE:]
    tone, middle, second, last = np.split(rest, np.cumsum([TONE, MINUTE, TONE]))
    plain = MINUTE - 2 * RATE
    gains = np.linspace(1, 0, 2 * RATE, endpoint=False)[:, np.newaxis]
    # (200 - 60) // 2 = 70
    for excerpt, start in ((first, 0), (middle, 70 * RATE)):
        np.testing.assert_array_equal(excerpt[:plain], samples[start : start + plain])
        np.testing.assert_allclose(excerpt[plain:], samples[start + plain : start + MINUTE] * gains, atol=1e-7)
    np.testing.assert_array_equal(last, samples[-MINUTE:])
    for heard in (tone, second):
        np.testing.assert_array_equal(heard, np.stack([make_separator(RATE)] * 2, axis=1))


def test_the_recording_is_left_as_it_is() -> None:
    samples = noise(181 * RATE)
    before = samples.copy()
    join_minutes(samples, RATE)
    np.testing.assert_array_equal(samples, before)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_the_separator_is_a_kilohertz_ten_decibels_below_full_scale(rate: int) -> None:
    tone = make_separator(rate)
    assert len(tone) == round(0.3 * rate)
    assert 20 * np.log10(np.sqrt(np.mean(tone**2))) == pytest.approx(-13.01, abs=0.02)
    assert np.argmax(np.abs(np.fft.rfft(tone))) == 300  # of 1/0.3 Hz each
    assert tone[0] == 0


@pytest.mark.parametrize(("seconds", "starts"), [(179.999, None), (180, (0, 60.0, 120)), (245.3, (0, 92.65, 185.3))])
def test_the_middle_minute_lies_in_the_middle(seconds: float, starts: tuple[float, ...] | None) -> None:
    found = locate_minutes(round(seconds * RATE), RATE)
    assert found == (starts and tuple(round(start * RATE) for start in starts))


def test_below_three_minutes_the_summary_is_the_recording() -> None:
    samples = noise(3 * MINUTE - 1, 2)
    np.testing.assert_array_equal(join_minutes(samples, RATE), samples)


def test_only_the_excerpts_are_read() -> None:
    class Watched(np.ndarray[Any, Any]):
        read = 0

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            Watched.read += len(found)
            return np.asarray(found)

    watched = np.broadcast_to(np.float32(0.5), (3 * 3600 * RATE, 1)).view(Watched)
    assert len(join_minutes(watched, RATE)) == 3 * MINUTE + 2 * TONE
    assert Watched.read == 3 * MINUTE
    cut(watched, RATE, 9_000.0, 9_020.0)
    assert Watched.read < 3 * MINUTE + 21 * RATE


def test_a_clip_of_16_khz_is_a_slice() -> None:
    samples = noise(10 * 16_000, 1)
    np.testing.assert_array_equal(cut(samples, 16_000, 2.345, 7.89), samples[37_520:126_240, 0])


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 47_999, 48_000])
@pytest.mark.parametrize(("start", "end"), [(0.0, 1.5), (2.345, 3.89), (4.2, 9.0)])
def test_a_clip_equals_that_stretch_of_the_whole_resampled(rate: int, start: float, end: float) -> None:
    samples = noise(5 * rate, 2)
    whole = resample(mix_to_mono(samples), rate, 16_000)
    clip = cut(samples, rate, start, end)
    assert len(clip) == round(min(end, 5) * 16_000) - round(start * 16_000)
    np.testing.assert_allclose(clip, whole[round(start * 16_000) : round(end * 16_000)], atol=2e-6)


@pytest.mark.parametrize(("start", "end"), [(1.0, 1.0), (2.0, 1.0), (5.0, 6.0), (-1.0, 1.0)])
def test_a_clip_that_is_not_in_the_recording_is_refused(start: float, end: float) -> None:
    with pytest.raises(
        BadInput, match=r"cannot be cut from a recording of 5.00 s; check that these times belong to this"
    ):
        cut(noise(5 * RATE), RATE, start, end)


def test_a_written_wav_holds_the_same_16_bits() -> None:
    samples = noise(1000, 2)
    found, rate = soundfile.read(io.BytesIO(encode_pcm16_wav(samples, RATE)), dtype="int16")
    assert rate == RATE
    np.testing.assert_array_equal(found, samples * 2**15)
    beyond = np.array([1.5, 1.0, -1.5, 0.6 / 2**15, -0.6 / 2**15, 0.4 / 2**15], np.float32)
    found, _ = soundfile.read(io.BytesIO(encode_pcm16_wav(beyond, RATE)), dtype="int16")
    assert found.tolist() == [32767, 32767, -32768, 1, -1, 0]
    with pytest.raises(CannotScore, match="samples that are not numbers"):
        encode_pcm16_wav(np.array([np.nan], np.float32), RATE)


def test_the_summary_is_that_of_podeval_s_tool() -> None:
    """Reference: the same operations in pydub, which PodEval uses; its fades go in steps of 1 ms, so up to 1/2000."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pydub = pytest.importorskip("pydub")
        tones = pytest.importorskip("pydub.generators")
    rate = 16_000
    samples = noise(round(200.4567 * rate), 1)
    audio = pydub.AudioSegment(
        (samples * 2**15).astype(np.int16).tobytes(), frame_rate=rate, sample_width=2, channels=1
    )
    tone = tones.Sine(1000).to_audio_segment(duration=300).set_frame_rate(rate) - 10
    start = (len(audio) - 60_000) // 2
    parts = [audio[:60_000].fade_out(2000), tone, audio[start : start + 60_000].fade_out(2000), tone, audio[-60_000:]]
    expected = np.concatenate([part.get_array_of_samples() for part in parts]).astype(np.int64)
    found, _ = soundfile.read(io.BytesIO(encode_pcm16_wav(join_minutes(samples, rate), rate)), dtype="int16")
    assert len(found) == len(expected)
    difference = np.abs(found - expected)
    first, middle, last = slice(0, 60 * rate), slice(60 * rate + 4_800, 120 * rate + 4_800), slice(-60 * rate, None)
    assert difference[first][: 58 * rate].max() == difference[middle][: 58 * rate].max() == 0
    assert difference[first].max() <= 20_000 / 2000 + 1
    assert difference[middle].max() <= 20_000 / 2000 + 1
    # pydub counts in milliseconds: its last minute begins up to half of one off, and ends in as much silence.
    off = len(audio) * rate // 1000 - len(samples)
    assert 0 < off <= rate // 2000
    np.testing.assert_array_equal(found[last][off:], expected[last][:-off])
    powers = [np.mean(np.square(part[60 * rate : 60 * rate + 4_800], dtype=np.float64)) for part in (found, expected)]
    assert 10 * np.log10(powers[0] / powers[1]) == pytest.approx(0, abs=0.1)
