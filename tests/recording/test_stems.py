import numpy as np
import pytest

from podeval.audio.samples import resample
from podeval.errors import CannotScore
from podeval.models import registry
from podeval.models.interfaces import Samples
from podeval.recording.recording import Recording

RATE = 44_100


class HalfAndHalf:
    """A separator whose stems are known, and that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[Samples] = []

    def separate(self, samples: Samples) -> tuple[Samples, Samples]:
        self.given.append(samples)
        return samples * np.float32(0.25), samples * np.float32(0.75)


@pytest.fixture
def separator(monkeypatch: pytest.MonkeyPatch) -> HalfAndHalf:
    model = HalfAndHalf()
    models = {("separator", "embedded"): model}
    monkeypatch.setattr(registry, "load", lambda job, profile: models[job, profile])
    return model


def noise(seconds: float, rate: int, channels: int) -> Samples:
    draws = np.random.default_rng(3).uniform(-0.5, 0.5, (round(seconds * rate), channels))
    return np.asarray(draws, dtype=np.float32)


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_recording_is_separated_at_44_khz_with_its_channels(separator: HalfAndHalf, rate: int, channels: int) -> None:
    samples = noise(0.5, rate, channels)
    stems = Recording.from_samples(samples, rate).stems()
    assert stems.rate == RATE
    assert stems.speech.shape == stems.accompaniment.shape == (RATE // 2, channels)
    np.testing.assert_array_equal(separator.given[0], resample(samples, rate, RATE))
    np.testing.assert_allclose(stems.speech + stems.accompaniment, separator.given[0], atol=1e-6)


def test_a_recording_is_separated_once_and_only_when_asked(separator: HalfAndHalf) -> None:
    recording = Recording.from_samples(noise(0.2, RATE, 1), RATE)
    assert not separator.given
    assert recording.stems() is recording.stems()
    assert len(separator.given) == 1


@pytest.fixture
def installed() -> None:
    if reason := registry.get_card("separator", "embedded").missing():
        pytest.skip(reason)


@pytest.mark.long
@pytest.mark.models
@pytest.mark.usefixtures("installed")
def test_the_stems_of_a_profile_add_up_to_the_recording() -> None:
    samples = noise(1.0, RATE, 2)
    stems = Recording.from_samples(samples, RATE).stems()
    np.testing.assert_allclose(stems.speech + stems.accompaniment, samples, atol=1e-5)


def test_a_recording_of_six_channels_says_to_mix_it_down() -> None:
    with pytest.raises(CannotScore, match="mix down to stereo"):
        Recording.from_samples(noise(0.2, RATE, 6), RATE).stems()
