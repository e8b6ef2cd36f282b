import base64
import io

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput, CannotScore
from podeval.judges.prompt import AudioClip, AudioLimits

RATE = 16_000


def tone(peak: float = 0.5, seconds: float = 1.0) -> AudioClip:
    time = np.arange(int(seconds * RATE)) / RATE
    return AudioClip((peak * np.sin(2 * np.pi * 440 * time)).astype(np.float32), RATE)


def heard(clip: AudioClip, limits: AudioLimits) -> tuple[np.ndarray, int]:
    part = clip.part(limits)
    assert part["type"] == "input_audio"
    assert part["input_audio"]["format"] == limits.format
    return soundfile.read(io.BytesIO(base64.b64decode(part["input_audio"]["data"])))  # type: ignore[no-any-return]


@pytest.mark.parametrize(("kind", "error"), [("wav", 1e-4), ("flac", 1e-4), ("mp3", 0.05)])
def test_a_clip_is_heard_as_it_is_in_every_format(kind: str, error: float) -> None:
    clip = tone()
    samples, rate = heard(clip, AudioLimits(format=kind))
    assert rate == RATE
    assert abs(len(samples) - RATE) < 2500
    # An encoder of MP3 delays and fades in: compare what is loudest.
    assert np.abs(samples).max() == pytest.approx(0.5, abs=max(error, 0.03 if kind == "mp3" else 0))
    if kind != "mp3":
        np.testing.assert_allclose(samples, clip.samples, atol=error)


def test_audio_beyond_full_scale_is_turned_down_and_not_clipped() -> None:
    clip = tone(peak=2.0)
    samples, _ = heard(clip, AudioLimits())
    np.testing.assert_allclose(samples, clip.samples / 2.0, atol=1e-4)


def test_a_clip_longer_than_the_judge_takes_is_refused_with_the_limit() -> None:
    with pytest.raises(BadInput, match=r"lasts 2 s, .* limit for this judge is 1 s"):
        tone(seconds=2).part(AudioLimits(seconds=1))


def test_a_clip_larger_than_the_judge_takes_is_refused_with_the_limit() -> None:
    with pytest.raises(BadInput, match=r"is 0\.0 MB as wav, .* flac or mp3"):
        tone().part(AudioLimits(bytes=1000))


def test_a_rate_that_a_format_does_not_know_is_refused_with_others() -> None:
    with pytest.raises(BadInput, match=r"96000 Hz cannot be written as mp3 .* wav or flac"):
        AudioClip(np.zeros(1000, np.float32), 96_000).part(AudioLimits(format="mp3"))


@pytest.mark.parametrize("samples", [[], [0.0, np.nan], [np.inf]])
def test_what_is_no_sound_is_refused(samples: list[float]) -> None:
    with pytest.raises(CannotScore):
        AudioClip(np.array(samples, np.float32), RATE)


def test_two_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="mono"):
        AudioClip(np.zeros((10, 2), np.float32), RATE)


def test_the_digest_is_of_samples_and_rate() -> None:
    one = AudioClip(np.ones(10, np.float32), 8_000)
    assert one.sha256 == AudioClip(np.ones(10, np.float32), 8_000).sha256
    assert one.sha256 != AudioClip(np.ones(10, np.float32), 16_000).sha256
    assert one.sha256 != AudioClip(np.zeros(10, np.float32), 8_000).sha256
