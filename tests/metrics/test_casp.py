"""CASP: which stretches count, what the model is given, and when there is nothing to score."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.score import Unscored
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache
from tests.fakes.planted_models import PlantedModels

RATE = 44_100
CLIP = 160_000

Vector = np.ndarray[Any, Any]


class Models(PlantedModels):
    """Every model at once: speech and music are where they are set, a stem has a set share, and clip n has 0.1 n."""

    def __init__(self) -> None:
        self.speech_clips: list[Vector] = []
        self.music_clips: list[Vector] = []
        super().__init__(spoken=(Span(0, 1000),), tunes=(Span(0, 1000),))
        self.share = 0.25
        self.asked: list[str] = []

    def load(self, job: str, profile: str) -> "Models":
        self.asked.append(job)
        return self

    def separate(self, samples: Vector) -> tuple[Vector, Vector]:
        return (1 - self.share) * samples, self.share * samples

    def harmony(self, speech: Sequence[Vector], music: Sequence[Vector]) -> Vector:
        self.speech_clips, self.music_clips = list(speech), list(music)
        return np.arange(len(speech), dtype=np.float32) / 10


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    found = Models()
    monkeypatch.setattr(registry, "load", found.load)
    return found


def sound(seconds: float, channels: int = 1) -> Vector:
    """A tone that rises in level."""
    time = np.arange(round(seconds * RATE)) / RATE
    tone = (0.1 + 0.2 * time / seconds) * np.sin(2 * np.pi * 440 * time)
    return np.repeat(tone.astype(np.float32)[:, np.newaxis], channels, axis=1)


def measure(samples: Vector, cache: Cache, profile: str = "reference", rate: int = RATE, **parameters: Any) -> Any:
    recording = Recording.from_samples(samples, rate, profile=profile, cache=cache)
    return catalogue.get("casp")({"recording": recording}, parameters)


def test_stretches_of_10_s_with_speech_and_music_are_averaged(models: Models, cache: Cache) -> None:
    # Of five stretches, the second has no music to speak of and the fourth hardly any speech.
    models.spoken = (Span(0, 30), Span(39.5, 50))
    models.tunes = (Span(0, 10.9), Span(20, 50))
    found = measure(sound(50), cache)
    assert found.values == {"casp": pytest.approx((0 + 0.2 + 0.4) / 3)}
    assert found.notes == {"windows": 3, "windows_left_out": 2}
    assert found.timeline.starts == [0, 20, 40]
    assert found.timeline.window == 10
    assert found.timeline.values == {"casp": [0, 0.2, 0.4]}


def test_the_podeval_variant_counts_every_stretch_and_halves_the_scale(models: Models, cache: Cache) -> None:
    models.spoken, models.tunes = (Span(0, 10),), ()
    found = measure(sound(50), cache, variant="podeval")
    assert found.values == {"casp": pytest.approx((0.2 + 1) / 2)}
    assert found.notes == {"windows": 5, "windows_left_out": 0}
    assert found.timeline.values["casp"] == pytest.approx([0.5, 0.55, 0.6, 0.65, 0.7])


def test_the_model_is_given_mono_stems_at_16_khz_with_a_peak_of_1_the_last_one_looped(
    models: Models, cache: Cache
) -> None:
    measure(sound(25, channels=2), cache)
    for clips in (models.speech_clips, models.music_clips):
        assert [clip.shape for clip in clips] == [(CLIP,)] * 3
        assert all(clip.dtype == np.float32 for clip in clips)
        assert max(np.abs(clip).max() for clip in clips) == pytest.approx(1, abs=1e-6)
        # The level of a stem is set once, so that the first stretch stays softer than the last.
        assert np.abs(clips[0]).max() < 0.7
        np.testing.assert_array_equal(clips[2][80_000:], clips[2][:80_000])


def test_without_music_there_is_nothing_to_score(models: Models, cache: Cache) -> None:
    models.tunes = ()
    assert measure(sound(25), cache) == Unscored(
        "no music is heard in the recording, so there is nothing to compare with its speech", "system"
    )
    assert models.asked[0] == "music_detector"
    # What the detector takes for music, and separation does not find.
    models.tunes, models.share = (Span(0, 25),), 1e-4
    found = measure(sound(20), cache)
    assert found == Unscored("no music: after separation, the sound without speech is below -60 LUFS", "system")
    models.share = 0.0
    assert measure(sound(21), cache, variant="podeval") == found


def test_music_alone_is_unscored_with_what_was_heard(models: Models, cache: Cache) -> None:
    models.spoken = ()
    found = measure(sound(25), cache)
    assert found.cause == "system"
    assert found.reason.endswith("within the same 10 s (0.0 s of speech, 30.0 s of music)")


@pytest.mark.parametrize(
    ("samples", "rate", "reason"),
    [
        (np.zeros(10 * RATE), RATE, "digital silence"),
        (np.full(10 * RATE, np.nan), RATE, "not numbers"),
        (sound(2), RATE, "2.00 s; at least 3 s"),
        (sound(10)[: 8000 * 5], 8000, "8000 Hz, below the 16000 Hz"),
    ],
)
def test_what_cannot_be_scored_says_why(samples: Vector, rate: int, reason: str, models: Models, cache: Cache) -> None:
    found = measure(samples, cache, rate=rate)
    assert found.cause == "system"
    assert reason in found.reason


def test_a_profile_without_the_model_says_which_has_it_and_separates_nothing(models: Models, cache: Cache) -> None:
    found = measure(sound(25), cache, profile="embedded")
    assert found.cause == "ours"
    assert found.reason.endswith("--profile reference has CASP (two BEATs encoders, podcasts)")
    assert models.asked == []
