"""A sound lies under or in speech at the ratio that was stated, whatever the pauses and the levels."""

from typing import Any

import numpy as np
import pytest

from podeval.construction.mtalk_recordings import measure_active_power, put_in
from podeval.errors import CannotScore

RATE = 16_000


def db(ratio: float) -> float:
    return float(10 * np.log10(ratio))


@pytest.fixture(scope="module")
def noise() -> Any:
    return np.random.default_rng(0).normal(0, 0.3, RATE).astype(np.float32)


@pytest.mark.parametrize("snr", [-5.0, 0.0, 10.0, 25.0])
@pytest.mark.parametrize("level", [0.01, 1.0])
def test_the_ratio_is_as_stated(speech_like: Any, noise: Any, snr: float, level: float) -> None:
    speech = speech_like * np.float32(level)
    under = np.resize(noise, len(speech))
    added = (put_in(speech, under, RATE, snr, at=0.0) - speech).astype(np.float64)
    assert len(added) == len(speech)
    assert db(measure_active_power(speech, RATE) / np.mean(added**2)) == pytest.approx(snr, abs=0.05)


def test_pauses_do_not_count_as_speech(speech_like: Any, noise: Any) -> None:
    pause = np.zeros(4 * RATE, np.float32)
    padded = np.concatenate([pause, speech_like, pause])
    assert db(measure_active_power(padded, RATE) / measure_active_power(speech_like, RATE)) == pytest.approx(
        0, abs=0.05
    )
    # A tone has the power of its definition.
    tone = (0.5 * np.sin(2 * np.pi * 200 * np.arange(RATE) / RATE)).astype(np.float32)
    assert measure_active_power(np.concatenate([pause, tone]), RATE) == pytest.approx(0.125, rel=1e-3)


def test_an_event_sounds_once_where_it_is_put(speech_like: Any, noise: Any) -> None:
    added = put_in(speech_like, noise, RATE, 5.0, at=2.0) - speech_like
    heard = np.flatnonzero(np.abs(added) > 1e-6)
    assert 2.0 * RATE <= heard[0] <= 2.001 * RATE
    assert 2.99 * RATE <= heard[-1] <= 3.0 * RATE
    inside = added[2 * RATE : 3 * RATE].astype(np.float64)
    assert db(measure_active_power(speech_like, RATE) / np.mean(inside**2)) == pytest.approx(5.0, abs=0.05)


def test_an_event_is_cut_where_the_speech_ends(speech_like: Any, noise: Any) -> None:
    assert len(put_in(speech_like, noise, RATE, 5.0, at=5.8)) == len(speech_like)


@pytest.mark.parametrize(
    ("speech", "sound", "sentence"),
    [
        (np.zeros(100), np.ones(10), "the speech is silent"),
        (np.ones(100), np.zeros(10), "the sound is silent"),
    ],
)
def test_what_cannot_be_mixed_is_a_sentence(speech: Any, sound: Any, sentence: str) -> None:
    with pytest.raises(CannotScore, match=sentence):
        put_in(speech.astype(np.float32), sound.astype(np.float32), RATE, 10.0, 0.0)
