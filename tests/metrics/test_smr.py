"""SMR on stems that are known, against loudness measured by pyloudnorm; on a real mix; refusals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyloudnorm
import pytest
import soxr
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.audio.smr import find_speech_segments, score_ratio
from podeval.metrics.score import Score
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache
from tests.fakes import scoring

Samples = NDArray[np.float32]

RATE = 44_100
SECONDS = 30


class Known:
    """A separator that gives back the stems it was made with; activity and music are given too."""

    def __init__(self, speech: Samples, music: Samples) -> None:
        self.stems = (speech, music)
        self.spoken: Sequence[Span] = (Span(0, SECONDS),)
        self.played: Sequence[Span] = (Span(0, SECONDS),)

    def load(self, job: str, profile: str) -> "Known":
        return self

    def separate(self, samples: Samples) -> tuple[Samples, Samples]:
        return self.stems

    def speech(self, samples: Samples) -> tuple[Span, ...]:
        return tuple(self.spoken)

    def music(self, samples: Samples) -> tuple[Span, ...]:
        return tuple(self.played)


@pytest.fixture(scope="module")
def noise() -> tuple[Samples, Samples]:
    """As speech and as music: two channels apart, and one on two sides; the music is 10 dB lower from 20 s on."""
    draws = np.random.default_rng(7)
    speech, music = (draws.normal(0, level, (SECONDS * RATE, 2)).astype(np.float32) for level in (0.1, 0.05))
    music[:, 1] = 0.25 * music[:, 0]
    music[20 * RATE :] *= np.float32(10**-0.5)
    return speech, music


@pytest.fixture
def known(noise: tuple[Samples, Samples], monkeypatch: pytest.MonkeyPatch) -> Known:
    speech, music = noise
    made = Known(speech.copy(), music.copy())
    monkeypatch.setattr(registry, "load", made.load)
    return made


@pytest.fixture
def mix(known: Known, tmp_path: Path) -> Recording:
    return Recording.from_samples(known.stems[0] + known.stems[1], RATE, cache=Cache(tmp_path))


def measured(recording: Recording, **parameters: Any) -> Score:
    return scoring.score("smr", {"recording": recording}, **parameters)


def refused(recording: Recording, **parameters: Any) -> str:
    result = scoring.unscored("smr", {"recording": recording}, **parameters)
    assert result.cause == "system"
    return result.reason


def ratio(known: Known, start: float, end: float) -> float:
    """By pyloudnorm, on both channels."""
    meter = pyloudnorm.Meter(RATE)
    speech, music = (
        meter.integrated_loudness(stem[round(start * RATE) : round(end * RATE)].astype(float)) for stem in known.stems
    )
    return float(speech - music)


def test_smr_is_the_mean_difference_of_loudness_over_segments_of_speech(known: Known, mix: Recording) -> None:
    known.spoken = (Span(1, 9), Span(12, 18), Span(21, 29))
    found = measured(mix)
    expected = [ratio(known, span.start, span.end) for span in known.spoken]
    # Within the 0.01 LU that two K-weightings of noise differ by at 44.1 kHz.
    assert [segment[2] for segment in found.notes["segments"]] == pytest.approx(expected, abs=0.03)
    assert found.values["smr"] == pytest.approx(np.mean(expected), abs=0.03)
    assert (found.values["smr_min"], found.values["smr_max"]) == pytest.approx((min(expected), max(expected)), abs=0.03)
    assert expected[2] - expected[0] == pytest.approx(10, abs=0.1)
    assert found.values["smr_score"] == 1.0
    assert found.values["smr_reference"] == 1.0


def test_the_score_is_the_share_of_segments_in_which_speech_is_louder(known: Known, mix: Recording) -> None:
    known.stems[0][: 10 * RATE] *= np.float32(0.1)
    known.spoken = (Span(0, 9), Span(10, 14), Span(15, 19))
    found = measured(mix)
    assert found.values["smr_score"] == pytest.approx(2 / 3)
    assert found.values["smr_reference"] == pytest.approx(2 / 3)
    assert (found.values["smr_min"] or 0) < 0 < (found.values["smr_max"] or 0)


def test_short_pauses_are_closed_and_short_segments_left_out() -> None:
    heard = [Span(0, 1), Span(1.5, 3.2), Span(4, 6.9), Span(7.5, 9), Span(9.4, 11)]
    assert find_speech_segments(heard) == [Span(0, 3.2), Span(7.5, 11)]
    assert find_speech_segments([]) == []


def test_only_segments_with_music_under_half_of_them_count(known: Known, mix: Recording) -> None:
    known.spoken = (Span(0, 8), Span(10, 18), Span(20, 28))
    known.played = (Span(0, 4), Span(10, 13.9), Span(15, 16), Span(24.1, 28))
    found = measured(mix)
    assert [segment[0] for segment in found.notes["segments"]] == [0]
    assert found.notes["segments_without_music"] == 2
    assert found.notes["music_seconds"] == pytest.approx(4 + 3.9 + 3.9)
    assert len(measured(mix, variant="podeval").notes["segments"]) == 3


def test_an_accompaniment_below_60_lufs_is_none(known: Known, mix: Recording) -> None:
    known.spoken = (Span(0, 8), Span(10, 18))
    known.stems[1][: 9 * RATE] *= np.float32(1e-3)
    assert [segment[0] for segment in measured(mix).notes["segments"]] == [10]
    known.stems[1][:] = 0
    assert refused(Recording.from_samples(known.stems[0], RATE, cache=mix.cache)) == "no music is heard under speech"


def test_the_podeval_variant_measures_mono_stems_at_16_khz(known: Known, mix: Recording) -> None:
    """A mono mix takes more from channels that have nothing in common than from one on two sides."""
    known.spoken = (Span(1, 19),)
    standard, podeval = (measured(mix, variant=variant).values["smr"] for variant in ("standard", "podeval"))
    meter = pyloudnorm.Meter(16_000)
    levels = [
        meter.integrated_loudness(soxr.resample(stem.mean(axis=1), RATE, 16_000, quality="HQ")[16_000 : 19 * 16_000])
        for stem in known.stems
    ]
    assert podeval == pytest.approx(levels[0] - levels[1], abs=1e-3)
    assert (standard or 0) - (podeval or 0) > 1


def test_a_mono_recording_is_measured_as_one_channel(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mono = Known(known.stems[0][:, :1], known.stems[1][:, :1])
    monkeypatch.setattr(registry, "load", mono.load)
    recording = Recording.from_samples(mono.stems[0] + mono.stems[1], RATE, cache=Cache(tmp_path / "mono"))
    assert measured(recording).values["smr"] == pytest.approx(ratio(mono, 0, SECONDS), abs=0.03)


@pytest.mark.parametrize("variant", ["standard", "podeval"])
def test_a_rate_below_the_separator_s_is_refused_unless_allowed_and_then_noted(
    known: Known, mix: Recording, variant: str
) -> None:
    samples = soxr.resample(mix.samples, RATE, 24_000)
    reason = refused(Recording.from_samples(samples, 24_000, cache=mix.cache), variant=variant)
    assert reason.startswith("the recording's sampling rate is 24000 Hz, below the 44100 Hz required")
    allowed = Recording.from_samples(samples, 24_000, cache=mix.cache, allow_upsampling=True)
    assert measured(allowed, variant=variant).notes["upsampled_from"] == 24_000
    assert "upsampled_from" not in measured(mix, variant=variant).notes


@pytest.mark.parametrize("variant", ["standard", "podeval"])
@pytest.mark.parametrize(
    ("spoken", "played", "reason"),
    [
        pytest.param((Span(0, 30),), (), "no music is heard under speech", id="no music"),
        pytest.param((Span(0, 30),), (Span(3, 5.9),), "no music is heard under speech", id="no lasting music"),
        pytest.param((), (Span(0, 30),), "the recording contains no speech, only 30.0 s of music", id="no speech"),
        pytest.param(
            (Span(0, 2.9), Span(4, 6)),
            (Span(0, 30),),
            "no speech lasts 3 s without a pause of more than 0.5 s",
            id="short",
        ),
    ],
)
def test_what_has_no_speech_over_music_says_why(
    known: Known, mix: Recording, spoken: Any, played: Any, reason: str, variant: str
) -> None:
    known.spoken, known.played = spoken, played
    if variant == "podeval" and "no music" in reason:
        known.stems[1][:] = 0
    assert refused(mix, variant=variant) == reason


@pytest.mark.parametrize(
    ("lu", "score"),
    [(-0.1, 0), (0, np.exp(-3)), (4, np.exp(-0.6)), (5, 1), (30, 1), (40, np.exp(-1.155)), (-60, 0)],
)
def test_the_reference_score_is_1_from_5_to_30_lu(lu: float, score: float) -> None:
    assert score_ratio(lu) == pytest.approx(score)


@pytest.mark.long
@pytest.mark.models
def test_a_real_mix_at_0_db_is_near_it(shared_data: Path, tmp_path: Path) -> None:
    for job in catalogue.get("smr").needs:
        if reason := registry.get_card(job, "embedded").missing():
            pytest.skip(reason)
    mix = Recording.open(shared_data / "samples/speech_music_mix_0dB.flac", cache=Cache(tmp_path))
    found = measured(mix)
    assert found.values["smr"] == pytest.approx(0, abs=1.5)
    assert found.notes["music_seconds"] > 28
    assert measured(mix, variant="podeval").values["smr"] == pytest.approx(found.values["smr"], abs=1.5)


@pytest.mark.models
def test_speech_alone_has_no_smr_and_costs_no_separation(shared_data: Path, tmp_path: Path) -> None:
    if reason := registry.get_card("music_detector", "embedded").missing():
        pytest.skip(reason)
    speech = Recording.open(shared_data / "samples/ami_trn00.flac", cache=Cache(tmp_path))
    assert refused(speech) == "no music is heard under speech"
