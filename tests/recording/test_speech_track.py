"""What speech metrics listen to: the recording, or its speech stem once there is enough music to matter."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.errors import CannotScore, ModelMissing
from podeval.models import registry
from podeval.models.interfaces import Samples
from podeval.recording.cache import Cache
from podeval.recording.predicted_windows import choose_windows, cut_to_sound, cut_to_speech
from podeval.recording.recording import Recording

RATE = 16_000
SEPARATED = 44_100


class Models:
    """A detector with its answer given, a separator that halves, and voice activity wherever it is louder than that."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.found: tuple[Span, ...] = ()
        self.spoken = 5.0
        self.absent: set[str] = set()

    def load(self, job: str, profile: str) -> "Models":
        if job in self.absent:
            raise ModelMissing(f"the {job} is not installed; run `podeval models install --profile {profile}`")
        return self

    def music(self, samples: Samples) -> tuple[Span, ...]:
        self.asked["music"] += 1
        return self.found

    def separate(self, samples: Samples) -> tuple[Samples, Samples]:
        self.asked["separate"] += 1
        return samples * np.float32(0.5), samples * np.float32(0.5)

    def speech(self, samples: Samples) -> tuple[Span, ...]:
        self.asked["speech"] += 1
        return (Span(0.0, self.spoken),)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    made = Models()
    monkeypatch.setattr(registry, "load", made.load)
    return made


Make = Callable[..., Recording]


@pytest.fixture
def recording(tmp_path: Path) -> Make:
    """A minute of noise, or less, with a cache of this test's own."""

    def make(seconds: float = 60.0, rate: int = RATE, channels: int = 1, **options: Any) -> Recording:
        noise = np.random.default_rng(1).normal(0, 0.1, (round(seconds * rate), channels)).astype(np.float32)
        return Recording.from_samples(noise, rate, cache=Cache(tmp_path / "cache"), **options)

    return make


@pytest.mark.parametrize(
    ("seconds", "found", "scored"),
    [
        pytest.param(60, (), "mix", id="no music"),
        pytest.param(60, (Span(0, 2.9), Span(10, 12.9), Span(20, 22.9)), "mix", id="no stretch of 3 s"),
        pytest.param(60, (Span(0, 3.0),), "stem", id="3 s, which are a twentieth"),
        pytest.param(61, (Span(0, 3.0),), "mix", id="less than a twentieth"),
        pytest.param(200, (Span(0, 5.0), Span(7, 9), Span(190, 195.0)), "stem", id="a twentieth in two stretches"),
        pytest.param(200, (Span(0, 5.0), Span(7, 9), Span(190, 194.9)), "mix", id="less in two stretches"),
        pytest.param(4, (Span(0, 2.0),), "stem", id="half of a short recording"),
        pytest.param(4, (Span(0, 1.9),), "mix", id="less than half of it"),
    ],
)
def test_the_stem_is_scored_from_a_twentieth_of_lasting_music_on(
    recording: Make, models: Models, seconds: float, found: tuple[Span, ...], scored: str
) -> None:
    models.found = found
    whole = recording(seconds)
    track = whole.speech_track()
    assert (track is whole) == (scored == "mix")
    assert models.asked["separate"] == (scored == "stem")


def test_zeros_at_the_ends_do_not_dilute_music(recording: Make, models: Models, tmp_path: Path) -> None:
    models.found = (Span(10, 13.0),)
    samples = np.pad(recording(60).samples[:, 0], (10 * RATE, 30 * RATE))
    Recording.from_samples(samples, RATE, cache=Cache(tmp_path / "padded")).speech_track()
    assert models.asked["separate"] == 1


@pytest.mark.parametrize(("before", "after"), [(0, 0.1), (0.3, 0.3), (0, 1.0), (3.37, 60.0)])
@pytest.mark.parametrize("offset", [0.0, 0.25])
def test_predictors_hear_the_same_samples_whatever_is_appended(
    recording: Make, models: Models, tmp_path: Path, before: float, after: float, offset: float
) -> None:
    plain = recording(5.0, rate=48_000)
    padded = np.pad(plain.samples[:, 0], (round(before * 48_000), round(after * 48_000))) + np.float32(offset)
    changed = Recording.from_samples(padded, 48_000, cache=Cache(tmp_path / "padded"))
    heard = cut_to_speech(plain).samples, cut_to_sound(plain, 44_100)[0]
    models.speech = lambda samples: (Span(before + 0.01, before + 4.99),)  # type: ignore[method-assign]
    again = cut_to_speech(changed).samples, cut_to_sound(changed, 44_100)[0]
    for expected, found in zip(heard, again, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("speech", "heard"),
    [((Span(2, 5), Span(32, 35)), [0, 2, 30, 32]), ((Span(2, 5), Span(30, 36)), [30, 32]), ((), [0, 2, 4, 15, 30, 32])],
)
def test_windows_of_short_answers_are_heard_without_the_silence_between_them(
    recording: Make, models: Models, speech: tuple[Span, ...], heard: list[float]
) -> None:
    models.speech = lambda samples: speech  # type: ignore[method-assign]
    starts = [0, 2, 4, 15, 30, 32]
    assert [starts[number] for number in choose_windows(recording(45.0), starts, 9.01)] == heard


def test_no_model_hears_a_constant_offset(recording: Make) -> None:
    plain = recording(5.0, rate=48_000)
    shifted = Recording.from_samples(plain.samples + np.float32(0.25), 48_000)
    np.testing.assert_allclose(shifted.mono(), plain.mono(), atol=1e-3)
    assert shifted.mono(offset=True).mean() == pytest.approx(0.25, abs=0.01)


def test_the_mix_is_scored_where_it_is_asked_for_and_no_model_is(recording: Make, models: Models) -> None:
    models.absent = {"music_detector", "separator"}
    whole = recording()
    assert whole.speech_track("mix") is whole
    assert whole.notes == {}
    assert not models.asked


def test_the_stem_is_a_recording_of_its_own_that_says_what_it_is(recording: Make, models: Models) -> None:
    models.found = (Span(0, 30), Span(40, 41), Span(50, 54.56))
    whole = recording(channels=2, name="episode.wav")
    stem = whole.speech_track()
    assert (stem.rate, stem.channels, stem.duration) == (SEPARATED, 2, pytest.approx(60))
    assert stem.samples is whole.stems().speech
    assert (stem.name, stem.profile, stem.cache) == ("episode.wav", whole.profile, whole.cache)
    assert stem.notes == {"scored": "speech stem", "music_seconds": 34.56, "upsampled_from": RATE}
    studio = recording(rate=48_000).speech_track()
    assert studio.notes == {"scored": "speech stem", "music_seconds": 34.56}


def test_all_metrics_share_one_stem(recording: Make, models: Models) -> None:
    models.found = (Span(0, 30),)
    whole = recording(10)
    assert whole.speech_track() is whole.speech_track("auto") is whole.speech_stem()
    assert models.asked == {"music": 1, "separate": 1, "speech": 1}


def test_what_is_derived_from_a_stem_is_kept_on_disk_apart_from_the_mix_s(
    recording: Make, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.found = (Span(0, 30),)
    first, again = recording(10), recording(10)
    first.speech()
    assert first.speech_track().content == again.speech_track().content != first.content
    assert models.asked == {"music": 1, "separate": 2, "speech": 2}
    other = type("Card", (), {"identity": {"id": "another separator"}, "rate": SEPARATED})
    card = registry.get_card
    monkeypatch.setattr(registry, "get_card", lambda job, profile: other if job == "separator" else card(job, profile))
    assert recording(10).speech_track().content != again.speech_track().content


def test_music_without_speech_is_no_speech_to_score(recording: Make, models: Models) -> None:
    models.found, models.spoken = (Span(0, 60),), 0.4
    with pytest.raises(CannotScore, match="the recording contains no speech, only 60"):
        recording().speech_track()


def test_without_a_detector_nothing_is_taken_for_granted(recording: Make, models: Models) -> None:
    models.absent = {"music_detector"}
    with pytest.raises(ModelMissing, match="music_detector is not installed; run"):
        recording().speech_track()


def test_a_separator_is_needed_only_where_there_is_music(recording: Make, models: Models) -> None:
    models.absent = {"separator"}
    silent = recording(20)
    assert silent.speech_track() is silent
    models.found = (Span(0, 60),)
    with pytest.raises(ModelMissing, match="separator is not installed; run"):
        recording().speech_track()


def test_a_rate_below_the_detector_s_is_refused_in_the_usual_sentence_or_allowed(
    recording: Make, models: Models
) -> None:
    with pytest.raises(CannotScore, match="8000 Hz, below the 16000 Hz required"):
        recording(rate=8_000).speech_track()
    models.found = (Span(0, 60),)
    stem = recording(rate=8_000, allow_upsampling=True).speech_track()
    assert (stem.rate, stem.allow_upsampling) == (SEPARATED, True)


@pytest.mark.long
@pytest.mark.models
def test_speech_under_real_music_becomes_its_stem_and_clean_speech_stays(shared_data: Path, tmp_path: Path) -> None:
    for job in ("music_detector", "separator", "voice_activity"):
        if reason := registry.get_card(job, "embedded").missing():
            pytest.skip(reason)
    cache = Cache(tmp_path)
    mix = Recording.open(shared_data / "samples/speech_music_mix_0dB.flac", cache=cache)
    stem = mix.speech_track()
    assert stem.notes["music_seconds"] == pytest.approx(30, abs=2)
    assert np.mean(stem.mono().astype(float) ** 2) == pytest.approx(np.mean(mix.mono().astype(float) ** 2) / 2, rel=0.3)
    speech = Recording.open(shared_data / "samples/ami_trn00.flac", cache=cache)
    assert speech.speech_track() is speech
