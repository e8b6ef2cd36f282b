"""Sound fidelity: which windows are estimated, which are pauses, on which track; refusals."""

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

RATE = 16_000
WINDOW = 5 * RATE

Vector = np.ndarray[Any, Any]


def tone(heights: Any) -> Vector:
    """A tone of 1 kHz with these heights."""
    return np.asarray(heights * np.sin(2 * np.pi * 1000 * np.arange(len(heights)) / RATE), np.float32)


def estimate(window: Vector) -> float:
    """The estimate that the model gives: 2 more than the height of the tone."""
    return 2 + float(np.sqrt(2 * np.mean(np.square(window, dtype=np.float64))))


class Models(PlantedModels):
    """Every model at once: an estimate is a window's level plus 2; speech and music are as set."""

    def __init__(self) -> None:
        self.heard: list[Vector] = []
        super().__init__()
        self.silent = False
        self.pause: tuple[Span, ...] = ()
        self.separated = 0

    def score(self, windows: Sequence[Vector]) -> Vector:
        self.heard += [np.array(window) for window in windows]
        return np.array([estimate(window) for window in windows], np.float32)

    def speech(self, samples: Vector) -> tuple[Span, ...]:
        whole = Span(0, len(samples) / RATE)
        return (
            ((Span(0, self.pause[0].start), Span(self.pause[0].end, whole.end)) if self.pause else (whole,))
            if not self.silent
            else ()
        )

    def separate(self, samples: Vector) -> tuple[Vector, Vector]:
        self.separated += 1
        return super().separate(samples)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    found = Models()
    monkeypatch.setattr(registry, "load", found.load)
    return found


def measure(samples: Vector, cache: Cache, rate: int = RATE, profile: str = "reference", **parameters: Any) -> Any:
    recording = Recording.from_samples(samples, rate, profile=profile, cache=cache)
    return catalogue.get("sound_fidelity")({"recording": recording}, parameters)


def test_windows_of_5_s_every_2_5_s_are_averaged_and_the_last_ends_with_the_recording(
    models: Models, cache: Cache
) -> None:
    sound = tone(np.linspace(0.1, 1, 11 * RATE))
    found = measure(sound, cache)
    starts = (0, 40_000, 80_000, 96_000)
    for window, start in zip(models.heard, starts, strict=True):
        np.testing.assert_array_equal(window, sound[start : start + WINDOW])
    expected = [estimate(sound[start : start + WINDOW]) for start in starts]
    assert found.values["pesq_estimate"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert found.notes == {"windows": 4, "windows_left_out": 0}
    assert found.timeline.starts == [0, 2.5, 5, 6]
    assert found.timeline.window == 5
    assert found.timeline.values["pesq_estimate"] == pytest.approx(expected, abs=1e-4)


def test_music_without_speech_is_unscored(models: Models, cache: Cache) -> None:
    models.tunes, models.silent = (Span(0, 9),), True
    found = measure(np.full(10 * RATE, 0.5), cache)
    assert isinstance(found, Unscored)
    assert found.cause == "system"
    assert "no speech" in found.reason
    assert "9.0 s of music" in found.reason


@pytest.mark.parametrize(
    ("samples", "rate", "reason"),
    [
        (np.zeros(WINDOW), RATE, "digital silence"),
        (np.full(WINDOW, np.nan), RATE, "not numbers"),
        (np.full(RATE // 2, 0.5), RATE, "0.50 s; at least 1 s"),
        (np.stack([np.full(WINDOW, 0.5), np.full(WINDOW, -0.5)], axis=1), RATE, "cancel each other"),
        (np.full(8000 * 5, 0.5), 8000, "8000 Hz, below the 16000 Hz"),
    ],
)
def test_what_cannot_be_scored_says_why(samples: Vector, rate: int, reason: str, models: Models, cache: Cache) -> None:
    found = measure(samples, cache, rate)
    assert isinstance(found, Unscored)
    assert found.cause == "system"
    assert reason in found.reason


def test_a_profile_without_the_model_says_which_has_it_and_separates_nothing(models: Models, cache: Cache) -> None:
    models.tunes = (Span(0, 9),)
    found = measure(np.full(10 * RATE, 0.5), cache, profile="embedded")
    assert found.cause == "ours"
    assert found.reason.endswith("--profile reference has SQUIM objective (DNS 2020)")
    assert models.separated == 0
