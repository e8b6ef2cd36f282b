"""Predictors of listeners' opinion and of PESQ on long recordings: which windows are rated, at which rate; refusals."""

from collections.abc import Sequence
from pathlib import Path
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

Vector = np.ndarray[Any, Any]


def tone(heights: Any, rate: int = RATE) -> Vector:
    """A tone of 1 kHz with these heights."""
    return np.asarray(heights * np.sin(2 * np.pi * 1000 * np.arange(len(heights)) / rate), np.float32)


def rate_window(window: Vector) -> float:
    """The mark that the models give: 3 more than the height of the tone."""
    return 3 + float(np.sqrt(2 * np.mean(np.square(window, dtype=np.float64))))


class Models(PlantedModels):
    """Every model at once: a mark is a window's level plus 3; speech and music are as set."""

    def __init__(self) -> None:
        self.windows: list[int] = []
        self.rates: list[int | None] = []
        self.separated = 0
        super().__init__()

    def score(self, windows: Sequence[Vector], rate: int | None = None) -> Vector:
        self.windows += [len(window) for window in windows]
        self.rates.append(rate)
        return np.array([rate_window(window) for window in windows], np.float32)

    def separate(self, samples: Vector) -> tuple[Vector, Vector]:
        self.separated += 1
        return super().separate(samples)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    every = Models()
    monkeypatch.setattr(registry, "load", lambda job, profile: every)
    return every


def measure(
    name: str, samples: Vector, cache: Cache, rate: int = RATE, profile: str = "reference", **parameters: Any
) -> Any:
    recording = Recording.from_samples(samples, rate, profile=profile, cache=cache)
    return catalogue.get(name)({"recording": recording}, parameters)


def test_fidelity_is_the_mean_over_windows_of_5_s_every_2_5_s_and_the_last_ends_with_the_recording(
    models: Models, cache: Cache
) -> None:
    sound = tone(np.linspace(0.1, 1, 11 * RATE))
    score = measure("sound_fidelity", sound, cache)
    expected = [rate_window(sound[start : start + 5 * RATE]) for start in (0, 40_000, 80_000, 96_000)]
    assert score.values["pesq_estimate"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert (score.notes, models.windows) == ({"windows": 4, "windows_left_out": 0}, [5 * RATE] * 4)
    assert (score.timeline.starts, score.timeline.window) == ([0, 2.5, 5, 6], 5)
    assert score.timeline.values["pesq_estimate"] == pytest.approx(expected, abs=1e-4)


def test_the_paper_gives_the_model_the_whole_file_silence_and_all(models: Models, cache: Cache) -> None:
    models.spoken = (Span(0, 4),)
    sound = np.concatenate([tone(np.full(4 * RATE, 0.5)), np.full(9 * RATE, 1e-3, np.float32)])
    score = measure("sound_fidelity", sound, cache, variant="lfs")
    assert models.windows == [13 * RATE]
    assert score.values["pesq_estimate"] == pytest.approx(rate_window(sound), abs=1e-3)
    assert (list(score.timeline.starts), score.timeline.window) == ([0.0], 13)


def test_music_without_speech_is_unscored(models: Models, cache: Cache) -> None:
    models.tunes, models.spoken = (Span(0, 9),), ()
    unscored = measure("sound_fidelity", np.full(10 * RATE, 0.5), cache)
    assert unscored == Unscored("the recording contains no speech, only 9.0 s of music", "system")


@pytest.mark.parametrize("name", ["utmos22", "nisqa_tts"])
def test_windows_of_10_s_are_averaged_and_the_last_ends_with_the_recording(
    name: str, models: Models, cache: Cache
) -> None:
    sound = tone(np.linspace(0.1, 1, 24 * RATE))
    score = measure(name, sound, cache)
    starts = (0, 10 * RATE, 14 * RATE)
    expected = [rate_window(sound[start : start + 10 * RATE]) for start in starts]
    assert models.windows == [10 * RATE] * 3
    assert score.values[name] == pytest.approx(np.mean(expected), abs=1e-5)
    assert (score.timeline.starts, score.timeline.window) == ([0, 10, 14], 10)
    assert score.timeline.values[name] == pytest.approx(expected, abs=1e-4)
    assert score.notes == {"windows": 3, "windows_left_out": 0}


def test_a_recording_of_whole_windows_has_none_twice_and_a_short_one_is_rated_whole(
    models: Models, cache: Cache
) -> None:
    assert measure("utmos22", np.full(20 * RATE, 0.5), cache).notes["windows"] == 2
    models.windows.clear()
    score = measure("utmos22", np.full(4 * RATE, 0.5), cache)
    assert models.windows == [4 * RATE]
    assert (score.timeline.starts, score.timeline.window) == ([0], 4)


def test_pauses_are_left_out_and_counted_and_where_all_is_pause_the_fullest_is_heard(
    models: Models, cache: Cache
) -> None:
    sound = tone(np.full(30 * RATE, 0.5))
    models.spoken = (Span(0, 8), Span(19, 21), Span(23, 30))
    score = measure("utmos22", sound, cache)
    assert (score.timeline.starts, score.notes["windows_left_out"]) == ([0, 20], 1)
    models.spoken = (Span(0.5, 3.5), Span(13, 14), Span(29, 29.5))
    assert measure("utmos22", 0.9 * sound, cache).notes == {"windows": 1, "windows_left_out": 2}


def test_what_is_kept_is_of_the_windows_that_were_rated(models: Models, cache: Cache) -> None:
    sound = tone(np.linspace(0.1, 1, 20 * RATE))
    values = []
    for spans in ((Span(0, 9), Span(19.5, 20)), (Span(0, 0.5), Span(11, 20))):
        # As another model of speech would have it; only its own answer is forgotten.
        recording = Recording.from_samples(sound, RATE, profile="reference", cache=cache)
        recording.speech = lambda spans=spans: spans  # type: ignore[method-assign,misc]
        values.append(catalogue.get("utmos22")({"recording": recording}).values["utmos22"])
    assert values[1] - values[0] == pytest.approx(0.44, abs=0.02)


@pytest.mark.parametrize(("rate", "asked"), [(16_000, 16_000), (22_050, 22_050), (96_000, 48_000)])
def test_nisqa_has_the_rate_of_the_recording_and_utmos_its_own(
    rate: int, asked: int, models: Models, cache: Cache
) -> None:
    sound = np.full(2 * rate, 0.5)
    measure("nisqa_tts", sound, cache, rate)
    measure("utmos22", sound, cache, rate)
    assert models.rates == [asked, None]
    assert models.windows == [2 * asked, 2 * RATE]


def test_the_recording_is_rated_as_it_is_and_its_stem_beside_it_where_there_is_music(
    models: Models, cache: Cache
) -> None:
    sound = tone(np.full(10 * RATE, 0.5))
    plain = measure("utmos22", sound, cache)
    assert plain.values == {"utmos22": pytest.approx(3.5, abs=1e-3), "utmos22_stem": plain.values["utmos22"]}
    models.tunes = (Span(0, 9),)
    mix = measure("utmos22", 0.98 * sound, cache)
    assert mix.values == {"utmos22": pytest.approx(3.49, abs=1e-3), "utmos22_stem": pytest.approx(3.245, abs=1e-3)}
    assert mix.notes["stem"]["music_seconds"] == 9
    assert "scored" not in mix.notes


@pytest.mark.parametrize("tunes", [(), (Span(0, 9),)])
def test_a_column_of_stems_has_one_for_every_recording_music_or_not(
    tunes: tuple[Span, ...], models: Models, cache: Cache
) -> None:
    models.tunes = tunes
    stem = measure("utmos22", tone(np.full(10 * RATE, 0.5)), cache, source="stem")
    assert stem.values == {"utmos22": pytest.approx(3.25, abs=1e-3), "utmos22_stem": stem.values["utmos22"]}
    assert stem.notes["scored"] == "speech stem"


@pytest.mark.parametrize("name", ["utmos22", "nisqa_tts"])
@pytest.mark.parametrize("offset", [0.02, -0.3])
def test_a_constant_offset_is_not_heard_also_where_parts_have_their_own(
    name: str, offset: float, models: Models, cache: Cache
) -> None:
    sound = tone(np.full(24 * RATE, 0.3))
    parts = np.repeat(np.float32([offset, 0, -offset / 2]), 8 * RATE)
    for shifted in (sound + np.float32(offset), sound + parts):
        assert measure(name, shifted, cache).values[name] == pytest.approx(3.3, abs=2e-3)


@pytest.mark.parametrize("around", [2.0, 30.0])
def test_silence_at_the_ends_is_not_heard(around: float, models: Models, cache: Cache) -> None:
    silence = np.zeros(round(around * RATE), np.float32)
    models.spoken = (Span(around, around + 12),)
    score = measure("utmos22", np.concatenate([silence, tone(np.full(12 * RATE, 0.3)), silence]), cache)
    assert score.values["utmos22"] == pytest.approx(3.3, abs=0.02)
    assert score.timeline.starts == [around, around + 2]


@pytest.mark.parametrize("name", ["utmos22", "nisqa_tts", "sound_fidelity"])
@pytest.mark.parametrize(
    ("samples", "rate", "reason"),
    [
        (np.zeros(5 * RATE), RATE, "digital silence"),
        (np.full(5 * RATE, np.nan), RATE, "not numbers"),
        (np.full(RATE // 4, 0.5), RATE, "0.25 s; at least "),
        (np.stack([np.full(5 * RATE, 0.5), np.full(5 * RATE, -0.5)], axis=1), RATE, "cancel each other"),
        (np.full(8000 * 5, 0.5), 8000, "8000 Hz, below the 16000 Hz"),
    ],
)
def test_what_cannot_be_rated_says_why(
    name: str, samples: Vector, rate: int, reason: str, models: Models, cache: Cache
) -> None:
    unscored = measure(name, samples, cache, rate)
    assert unscored.cause == "system"
    assert reason in unscored.reason


def test_noise_without_speech_is_unscored(models: Models, cache: Cache) -> None:
    models.spoken = ()
    assert measure("utmos22", np.full(10 * RATE, 0.5), cache) == Unscored("the recording contains no speech", "system")
    assert not models.windows


@pytest.mark.parametrize("name", ["utmos22", "nisqa_tts", "sound_fidelity"])
def test_the_embedded_profile_says_which_has_the_model_and_separates_nothing(
    name: str, models: Models, cache: Cache
) -> None:
    models.tunes = (Span(0, 2),)
    unscored = measure(name, np.full(2 * RATE, 0.5), cache, profile="embedded")
    assert unscored.cause == "ours"
    assert "--profile reference has " in unscored.reason
    assert models.separated == 0


# With the models


@pytest.mark.models
@pytest.mark.parametrize(
    ("name", "key", "off"),
    [
        ("dnsmos", "ovrl", 0.06),
        pytest.param("distillmos", "distillmos", 0.06, marks=pytest.mark.long),
        pytest.param("integrity", "plcmos", 0.1, marks=pytest.mark.long),
    ],
)
def test_silence_and_offset_around_and_under_speech_move_no_rating(
    name: str, key: str, off: float, shared_data: Path, tmp_path: Path
) -> None:
    """A reader of LibriTTS-R; until October 2026 30 s of silence at the ends took 1.0 off DNSMOS, an offset 0.7."""
    if missing := registry.get_card("speech_quality", "embedded").missing():
        pytest.skip(missing)
    whole = Recording.open(shared_data / "samples" / "dialogue_kokoro.flac")
    rate, speech = whole.rate, whole.samples[: 10 * whole.rate, 0]
    quiet = np.random.default_rng(2).normal(0, 10 ** (-70 / 20), 30 * rate).astype(np.float32)
    zeros = np.zeros(5 * rate, np.float32)

    def rate_speech(samples: Vector) -> float:
        recording = Recording.from_samples(samples, rate, cache=Cache(tmp_path))
        value = catalogue.get(name)({"recording": recording}).values[key]
        assert value is not None
        return float(value)

    plain = rate_speech(speech)
    half = len(speech) // 2
    for changed in (
        np.concatenate([zeros, speech, zeros]),
        np.concatenate([quiet, speech, quiet]),
        speech + np.float32(0.05),
        np.concatenate([speech[:half], speech[half:] - np.float32(0.1)]),
    ):
        assert rate_speech(changed) == pytest.approx(plain, abs=off)


@pytest.mark.long
@pytest.mark.models
def test_a_louder_bed_of_music_never_wins(shared_data: Path, tmp_path: Path) -> None:
    if missing := registry.get_card("speech_quality", "embedded").missing():
        pytest.skip(missing)
    whole = Recording.open(shared_data / "samples" / "dialogue_kokoro.flac")
    rate, speech = whole.rate, whole.samples[: 10 * whole.rate, 0]
    time = np.arange(len(speech)) / rate
    chord = sum(np.sin(2 * np.pi * pitch * n * time) / n for pitch in (220, 277.2, 329.6) for n in (1, 2, 3))
    bed = (chord * np.abs(np.sin(np.pi * time)) / np.sqrt(np.mean(np.square(chord)))).astype(np.float32)
    values = []
    for level in (-30, -20, -10, 0):
        mixed = speech + np.float32(10 ** (level / 20) * float(np.sqrt(np.mean(np.square(speech))))) * bed
        recording = Recording.from_samples(mixed, rate, cache=Cache(tmp_path))
        values.append(catalogue.get("dnsmos")({"recording": recording}).values["ovrl"])
    assert values == sorted(values, reverse=True)
