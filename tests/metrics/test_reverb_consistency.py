"""Reverb consistency against SRMR window by window, in changing rooms, and where it has no value.

The signals are whispered syllables; where speech is comes from the test, as no model is needed for that.
"""

from typing import Any

import numpy as np
import pytest
from scipy import signal

from podeval.audio.srmr import compute_srmr_windows
from podeval.audio.windows import Span
from podeval.metrics.score import Score, Unscored
from podeval.recording import Recording
from tests.fakes import scoring
from tests.fakes.sounds import whispered

RATE = 16_000

Signal = np.ndarray[Any, np.dtype[np.float64]]


class Heard(Recording):
    """A recording of which the test says where speech is."""

    spoken: tuple[Span, ...] = ()

    def speech(self) -> tuple[Span, ...]:
        return self.spoken


def heard(samples: Signal, *spoken: tuple[float, float], rate: int = RATE) -> Heard:
    recording = Heard.from_samples(np.asarray(samples, dtype=np.float32), rate)
    assert isinstance(recording, Heard)
    recording.spoken = tuple(Span(*span) for span in spoken)
    return recording


def in_a_room(dry: Signal, t60: float) -> Signal:
    """The signal in a room whose noise-like response decays by 60 dB in `t60` seconds."""
    time = np.arange(int(t60 * RATE)) / RATE
    response = np.random.default_rng(1).normal(size=len(time)) * 10 ** (-3 * time / t60)
    return np.asarray(signal.fftconvolve(dry, response / np.linalg.norm(response))[: len(dry)])


def score(recording: Recording, **parameters: Any) -> Score:
    return scoring.score("reverb_consistency", {"recording": recording}, **parameters)


def unscored(recording: Recording) -> Unscored:
    return scoring.unscored("reverb_consistency", {"recording": recording})


@pytest.mark.parametrize(("mode", "norm"), [("fast", False), ("fast", True), ("slow", False), ("slow", True)])
def test_it_is_the_population_deviation_of_srmr_over_windows_of_3_s_every_2_s(mode: str, norm: bool) -> None:
    samples = whispered(8)
    found = score(heard(samples, (0, 8)), mode=mode, norm=norm)
    windows = [np.asarray(samples[2 * n * RATE : (2 * n + 3) * RATE], dtype=np.float32) for n in range(3)]
    expected = [compute_srmr_windows(window, RATE, 3, 2, mode == "fast", norm)[1][0] for window in windows]
    assert found.values["reverb_consistency"] == pytest.approx(np.std(expected), rel=1e-4)
    assert found.values["srmr"] == pytest.approx(np.mean(expected), rel=1e-5)
    normalised = [compute_srmr_windows(window, RATE, 3, 2, mode == "fast", True)[1][0] for window in windows]
    assert found.values["reverb_consistency_norm"] == pytest.approx(np.std(normalised), rel=1e-4)
    assert found.notes == {"windows": 3, "windows_left_out": 0}
    assert (found.timeline.starts, found.timeline.window) == ([0, 2, 4], 3)
    assert found.timeline.values["srmr"] == pytest.approx(expected, abs=1e-3)


def test_a_hall_over_everything_lowers_the_paper_s_spread_and_not_the_one_that_ranks() -> None:
    """What a system could win by: reverberating all of it."""
    dry = whispered(20)
    dry[::3] *= np.float32(0.7)
    wet = in_a_room(dry, 2.0)
    before, after = (score(heard(samples, (0, 20))).values for samples in (dry, wet))
    assert after["reverb_consistency"] < 0.1 * before["reverb_consistency"]  # type: ignore[operator]
    assert after["reverb_consistency_cv"] > 0.6 * before["reverb_consistency_cv"]  # type: ignore[operator]
    assert after["reverb_consistency_cv"] == pytest.approx(after["reverb_consistency"] / after["srmr"])  # type: ignore[operator]


def test_windows_of_which_more_than_60_percent_is_not_speech_are_left_out_and_counted() -> None:
    # Speech of the windows from 0, 2, 4, 6, 8 and 10 s: 3, 1.2, 0, 1.19, 3 and 3 s, of which 1.2 s is needed.
    found = score(heard(whispered(13), (0, 3.2), (7.81, 13)))
    assert found.timeline.starts == [0, 2, 8, 10]
    assert found.notes == {"windows": 4, "windows_left_out": 2}


def test_digital_silence_counts_as_left_out() -> None:
    samples = whispered(15)
    samples[5 * RATE : 10 * RATE] = 0
    found = score(heard(samples, (0, 15)))
    assert found.timeline.starts == [0, 2, 4, 8, 10, 12]
    assert found.notes == {"windows": 6, "windows_left_out": 1}


@pytest.mark.parametrize("norm", [False, True])
def test_a_room_that_changes_half_way_spreads_srmr_and_one_that_stays_does_not(norm: bool) -> None:
    dry = whispered(20)
    wet = in_a_room(dry, 0.8)
    changing = np.concatenate([dry[: 10 * RATE], wet[10 * RATE :]])
    stays = max(score(heard(samples, (0, 20)), norm=norm).values["reverb_consistency"] or 0 for samples in (dry, wet))
    moves = score(heard(changing, (0, 20)), norm=norm)
    assert (moves.values["reverb_consistency"] or 0) > 2.5 * stays
    assert moves.timeline.drift["srmr"]["slope"] < 0


def test_gain_and_a_second_equal_channel_change_nothing() -> None:
    samples = whispered(8)
    plain = score(heard(samples, (0, 8))).values
    for other in (0.01 * samples, np.stack([samples, samples], axis=1)):
        assert score(heard(other, (0, 8))).values == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize(
    ("recording", "reason"),
    [
        pytest.param(heard(np.zeros(8 * RATE), (0, 8)), "digital silence", id="silence"),
        pytest.param(heard(np.full(8 * RATE, np.nan), (0, 8)), "not numbers", id="nan"),
        pytest.param(heard(whispered(4), (0, 4)), "lasts 4.00 s; at least 5 s", id="too short"),
        pytest.param(heard(whispered(8)), "no speech", id="music only"),
        pytest.param(heard(whispered(8), (0, 0.5)), "no window", id="too little speech"),
        pytest.param(heard(whispered(8), (0, 2.5)), "only one window", id="speech in one window"),
        pytest.param(heard(whispered(8), (0, 8), rate=8000), "8000 Hz", id="8 kHz"),
    ],
)
def test_what_has_no_spread_says_why(recording: Recording, reason: str) -> None:
    found = unscored(recording)
    assert found.cause == "system"
    assert reason in found.reason


@pytest.mark.parametrize("music", [False, True])
def test_reverberation_under_music_is_in_no_rank(music: bool) -> None:
    recording = heard(whispered(12), (0, 12))
    stem = heard(whispered(12), (0, 12))
    stem.notes = {"scored": "speech stem", "music_seconds": 9.0}
    recording.speech_track = lambda source="auto": stem if music else recording  # type: ignore[method-assign]
    assert set(score(recording).unranked) == ({"reverb_consistency_cv"} if music else set())
