"""Endurance: planted drifts have their sign and size, steady series none, and short recordings a sentence."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from podeval import benchmarks
from podeval.audio.samples import resample
from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.score import Score, Unscored, describe_notes
from podeval.metrics.speech.endurance import TOLERANCES, compare_with_beginning, remove_speakers, sum_up
from podeval.models import registry
from podeval.models.interfaces import SpeakerTurn, Transcript, Word
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.stats.drift import find_departure
from tests.fakes.planted_models import PlantedModels

RATE = 16_000
MINUTES = 6
SENTENCE, PAUSE = 4.0, 0.5
PER_10_MIN = 10 / MINUTES
"""Factor from the change over the recording to that over ten minutes."""


class Spoken(PlantedModels):
    """All models in one: sentences whose rate, voice and quality change evenly from beginning to end.

    Args:
        faster: change of the speaking rate, 0.1 for a tenth.
        turned: angle by which the voice's embedding turns, radians.
        worse: points of MOS that are lost.
        language: the language that is heard.
    """

    def __init__(self, *, faster: float = 0.0, turned: float = 0.0, worse: float = 0.0, language: str = "en") -> None:
        starts = np.arange(0, 60 * MINUTES - SENTENCE, SENTENCE + PAUSE)
        super().__init__(spoken=tuple(Span(float(start), float(start) + SENTENCE) for start in starts))
        self.faster, self.turned, self.worse, self.language = faster, turned, worse, language

    def transcribe(self, samples: NDArray[np.float32], language: str | None) -> Transcript:
        shares = (np.arange(len(self.spoken)) + 0.5) / len(self.spoken)
        ends = np.cumsum(10 * (1 + self.faster * shares)).astype(int)
        words = []
        for span, count in zip(self.spoken, np.diff(ends, prepend=0), strict=True):
            edges = np.linspace(span.start, span.end, count + 1)
            words += [Word("table", float(start), float(end)) for start, end in pairwise(edges)]
        return Transcript("", self.language, tuple(words))

    def embed(self, clips: Any) -> NDArray[np.float32]:
        angles = self.turned * np.arange(len(clips)) / len(clips)
        noise = np.random.default_rng(1).normal(scale=0.1, size=(len(clips), 16))
        noise[:, 0] += np.cos(angles)
        noise[:, 1] += np.sin(angles)
        return noise.astype(np.float32)

    def score(self, samples: NDArray[np.float32], windows: str) -> NDArray[np.float64]:
        starts = np.arange(0, len(samples) / RATE - 9.01, 1.0)
        quality = 3.3 - self.worse * starts / (60 * MINUTES)
        quality += np.random.default_rng(2).normal(scale=0.1, size=len(starts))
        return np.stack([starts, *[quality] * 4], axis=1)


def measured(spoken: Spoken, cache: Path, *, fade: float = 0.0, minutes: float = MINUTES, **options: Any) -> Any:
    """Measure noise in the place of sentences, louder by `fade` dB at the end than at the beginning."""
    rng, time = np.random.default_rng(0), np.arange(int(60 * minutes * RATE)) / RATE
    samples = np.where(time % (SENTENCE + PAUSE) < SENTENCE, 0.05, 0.001) * rng.normal(size=len(time))
    recording = Recording.from_samples(samples * 10 ** (fade * time / time[-1] / 20), RATE, cache=Cache(cache))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(registry, "load", spoken.load)
        return catalogue.get("endurance")({"recording": recording}, options)


def test_planted_drifts_have_their_sign_and_size(tmp_path: Path) -> None:
    """Over the recording the level falls by 6 dB, speech is 10 % faster, the voice turns away, and 0.5 MOS are lost."""
    planted = {"level": -6.0, "rate": 100 * np.log(1.1), "quality": -0.5, "timbre": 1 - np.cos(0.8)}
    spoken = Spoken(faster=0.1, worse=0.5, turned=0.8)
    score = measured(spoken, tmp_path, fade=planted["level"], speakers=1)
    assert isinstance(score, Score)
    for name, change in planted.items():
        slope, (low, high) = score.values[f"{name}_slope"], score.notes["slope_intervals"][name]
        assert slope == pytest.approx(change * PER_10_MIN, rel=0.2), name
        assert low * high > 0, name
        assert low < slope < high, name
    assert score.values["errors_slope"] is score.values["attribution_slope"] is None
    assert set(score.timeline.values) == set(planted)
    assert score.timeline.starts == [60.0 * minute for minute in range(MINUTES)]
    # From the middle of the first two minutes on, 3 LU of 6 in six minutes are passed in the middle of the fifth.
    assert score.notes["left_after"]["level"] == 4
    assert score.values["lasts"] == min(score.notes["left_after"].values())
    assert score.values["lasting_share"] == pytest.approx(score.values["lasts"] / MINUTES)
    assert not score.notes["censored"]
    assert any("level after 4 min" in sentence for sentence in describe_notes(score))


def test_a_steady_recording_lasts_at_least_as_long_as_it_is(tmp_path: Path) -> None:
    score = measured(Spoken(), tmp_path)
    assert score.notes["left_after"] == {}
    assert score.notes["censored"] == ["lasts"]
    assert (score.values["lasts"], score.values["lasting_share"]) == (pytest.approx(MINUTES), 1)
    for name in ("level", "rate", "quality"):
        assert abs(score.values[f"{name}_slope"]) < 0.05 * TOLERANCES[name][0] * PER_10_MIN, name
    assert score.values["timbre_slope"] is None
    assert "timbre" not in score.timeline.values
    assert any("`lasts` is at least the length" in sentence for sentence in describe_notes(score))


@pytest.mark.models
@pytest.mark.long
def test_noise_that_grows_for_five_minutes_has_the_slope_of_its_minutes_alone(tmp_path: Path) -> None:
    """A minute of people's clips five times, in noise that grows from 45 to 15 dB below the speech.

    What its quality should lose is measured apart: the same minute in the noise of each minute's middle.
    """
    readers = sorted((Path(benchmarks.__file__).parent / "data" / "readers").glob("*.flac"))
    clips = [Recording.open(path) for path in readers]
    joined = np.concatenate([resample(clip.samples[:, 0], clip.rate, RATE) for clip in clips])
    assert len(joined) >= 60 * RATE
    speech = np.tile(joined[: 60 * RATE], 5)
    noise = np.random.default_rng(6).normal(scale=np.sqrt(np.mean(speech**2)), size=len(speech))

    def measure(name: str, samples: NDArray[np.float64]) -> Any:
        recording = Recording.from_samples(samples.astype(np.float32), RATE, cache=Cache(tmp_path))
        return catalogue.get(name)({"recording": recording}, {"source": "mix"})

    below = np.linspace(45, 15, len(speech))
    growing = measure("endurance", speech + noise * 10 ** (-below / 20))
    middles = below.reshape(5, -1).mean(axis=1)
    minutes = [(speech + noise * 10 ** (-middle / 20))[: 60 * RATE] for middle in middles]
    alone = [measure("dnsmos", minute).values["ovrl"] for minute in minutes]
    expected = 10 * np.polyfit(range(5), alone, 1)[0]
    low, high = growing.notes["slope_intervals"]["quality"]
    assert expected < -1
    assert growing.values["quality_slope"] == pytest.approx(expected, rel=0.15)
    assert low < expected < high < 0
    steady = measure("endurance", speech + noise * 10 ** (-45 / 20))
    low, high = steady.notes["slope_intervals"]["quality"]
    assert low <= 0 <= high
    assert steady.notes["censored"] == ["lasts"]


@pytest.mark.long
def test_a_language_whose_syllables_are_not_counted_has_no_rate(tmp_path: Path) -> None:
    score = measured(Spoken(language="de"), tmp_path)
    assert score.values["rate_slope"] is None
    assert "rate" not in score.timeline.values


def test_a_short_recording_is_unscored_with_a_sentence(tmp_path: Path) -> None:
    score = measured(Spoken(), tmp_path, minutes=4.9)
    assert isinstance(score, Unscored)
    assert (score.reason, score.cause) == ("the recording lasts 294.00 s; at least 300 s are needed", "system")


def steady(minutes: int, memory: float, rng: np.random.Generator) -> list[float]:
    """A series that goes nowhere, whose neighbours correlate by `memory`."""
    values = [rng.normal()]
    while len(values) < minutes:
        values.append(memory * values[-1] + np.sqrt(1 - memory**2) * rng.normal())
    return values


@pytest.mark.parametrize(("minutes", "memory", "last"), [(10, 0.0, 51), (10, 0.3, 51), (10, 0.6, 36), (30, 0.3, 51)])
def test_steady_series_have_slopes_whose_interval_contains_zero(minutes: int, memory: float, last: int) -> None:
    """Six values of 60 recordings each; every value varies as much as its tolerance in two thirds of all minutes.

    That much variation with so long a memory as 0.6 looks like a departure in one recording of three.
    """
    rng, slopes, lasting = np.random.default_rng(3), [], 0
    for _ in range(60):
        courses = {
            name: [tolerance * value for value in steady(minutes, memory, rng)]
            for name, (tolerance, _) in TOLERANCES.items()
        }
        score = sum_up(courses, 60.0 * minutes, {})
        slopes += list(score.notes["slope_intervals"].values())
        lasting += bool(score.notes["censored"])
    assert len(slopes) == 360
    assert sum(low <= 0 <= high for low, high in slopes) >= 0.95 * 360
    assert lasting >= last


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "minutes", [5, 6, 10, *(pytest.param(longer, marks=pytest.mark.long) for longer in (20, 60, 180))]
)
def test_minutes_that_remember_the_last_have_slopes_whose_interval_contains_zero(minutes: int) -> None:
    """2,004 steady values whose neighbours correlate by 0.8; with all correlations equally probable, 88 % had it."""
    rng, inside = np.random.default_rng(minutes), 0
    for _ in range(334):
        courses = {name: steady(minutes, 0.8, rng) for name in TOLERANCES}
        slopes = sum_up(courses, 60.0 * minutes, {}).notes["slope_intervals"].values()
        assert len(slopes) == 6
        inside += sum(low <= 0 <= high for low, high in slopes)
    assert inside >= 0.95 * 334 * 6


def test_a_leap_near_the_end_is_found_and_one_minute_is_not() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(scale=0.02, size=10)
    swapped = noise + np.where(np.arange(10) >= 8, 0.5, 0.0)
    assert find_departure(list(swapped), 0.15, 1, 2) == 8
    assert find_departure(list(swapped), 0.15, -1, 2) is None
    assert find_departure(list(swapped), 0.6, 0, 2) is None
    once = noise + np.where(np.arange(10) == 5, 0.5, 0.0)
    assert find_departure(list(once), 0.15, 1, 2) is None
    gap: list[float | None] = [*swapped]
    gap[5] = None
    assert find_departure(gap, 0.15, 0, 2) == 8
    assert find_departure([0.0, 0.0, 9.0], 1.0, 0, 2) is None


def test_words_and_speakers_that_go_wrong_end_what_lasts() -> None:
    errors = [0.0, 8.0, 20.0, 33.0, 38.0, 52.0, 60.0, 66.0, 82.0, 88.0]
    score = sum_up({"level": [-20.0] * 10, "errors": errors, "attribution": [1.0] * 10}, 605.0, {})
    assert score.notes["left_after"] == {"errors": 6}
    assert score.values["errors_slope"] == pytest.approx(10 * np.polyfit(range(10), errors, 1)[0])
    low, high = score.notes["slope_intervals"]["errors"]
    assert 0 < low < high
    assert score.values["attribution_slope"] == 0


def test_too_few_minutes_with_a_value_have_no_slope_and_say_so() -> None:
    score = sum_up({"level": [None, None, None, -20.0, -20.0]}, 300.0, {})
    assert score.values["level_slope"] is None
    assert score.notes["level_slope_unscored"]["cause"] == "system"


def test_a_change_of_speaker_is_not_a_drift() -> None:
    """One speaker is 8 LU louder, and speaks ever more."""
    clips = [(Span(10.0 * n, 10.0 * n + 10),) for n in range(60)]
    turns = []
    for n in range(60):
        share = 2 + 6 * n / 60
        turns += [SpeakerTurn("A", 10.0 * n, 10.0 * n + share), SpeakerTurn("B", 10.0 * n + share, 10.0 * n + 10)]
    values = np.array([-20 - 8 * (2 + 6 * n / 60) / 10 for n in range(60)])
    assert np.ptp(values) > 4
    assert np.ptp(remove_speakers(values, clips, turns)) < 1e-9
    assert np.isnan(remove_speakers(values, [*clips[:-1], (Span(900, 910),)], turns)[-1])
    assert np.array_equal(remove_speakers(values, clips, turns[:1]), values)


def test_the_distance_from_the_beginning_is_that_of_windows_that_share_nothing() -> None:
    rng = np.random.default_rng(5)
    embeddings = (np.eye(16)[0] + rng.normal(scale=0.2, size=(150, 16))).astype(np.float32)
    starts = [2.0 * n for n in range(150)]
    distances = compare_with_beginning(embeddings, starts)
    assert distances[:60].mean() == pytest.approx(distances[60:].mean(), abs=0.02)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    mean = unit[:60].sum(axis=0)
    assert distances[100] == pytest.approx(1 - unit[100] @ mean / np.linalg.norm(mean), abs=1e-6)
