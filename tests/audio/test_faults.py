"""Faults that need no model: each is found where it is planted, and none where nothing is planted."""

from typing import Any

import numpy as np
import pytest

from podeval.audio import faults
from podeval.audio.loops import find_loops

RATE = 16_000
Samples = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture
def talk(speech_like: Samples) -> Samples:
    """Syllables for 6 s, of which no two sound the same."""
    return speech_like


def test_undamaged_sound_has_no_faults(talk: Samples) -> None:
    for find in (faults.find_holes, faults.find_clicks, faults.find_clipped, faults.find_cut_end):
        assert find(talk, RATE) == [], find.__name__
    noise = np.random.default_rng(1).normal(0, 0.1, 10 * RATE).astype(np.float32)
    assert faults.find_clicks(noise, RATE) == []
    assert find_loops(noise, RATE) == []


@pytest.mark.parametrize("seconds", [0.03, 0.2])
def test_a_hole_is_found_to_a_millisecond(talk: Samples, seconds: float) -> None:
    damaged = talk.copy()
    start = round(0.85 * RATE)
    damaged[start : start + round(seconds * RATE)] = 0
    (hole,) = faults.find_holes(damaged, RATE)
    assert (hole.start, hole.duration) == pytest.approx((0.85, seconds), abs=0.001)


def test_pauses_of_digital_silence_that_sound_fades_into_are_no_holes(talk: Samples) -> None:
    faded = talk[: 2 * RATE] * np.linspace(1, 0, 2 * RATE, dtype=np.float32) ** 3
    silence = np.zeros(RATE, np.float32)
    assert faults.find_holes(np.concatenate([silence, faded, silence, faded[::-1], silence]), RATE) == []


@pytest.mark.parametrize("height", [0.4, -0.8])
def test_a_click_is_found_at_its_sample(talk: Samples, height: float) -> None:
    damaged = talk.copy()
    damaged[31_000] += height
    (click,) = faults.find_clicks(damaged, RATE)
    assert click.start <= 31_000 / RATE <= click.end + 1 / RATE
    assert click.end - click.start < 0.004


@pytest.mark.parametrize("share", [0.4, 0.7])
def test_a_clipped_run_is_found_at_whatever_level_it_was_clipped(talk: Samples, share: float) -> None:
    damaged = talk.copy()
    part = slice(round(2.1 * RATE), round(2.6 * RATE))
    limit = share * float(np.abs(damaged[part]).max())
    damaged[part] = damaged[part].clip(-limit, limit)
    (run,) = faults.find_clipped(damaged, RATE)
    assert run.start == pytest.approx(2.1, abs=0.05)
    assert 2.2 < run.end < 2.6, "where the syllable fades, nothing is clipped"


def test_speech_that_becomes_louder_for_good_jumps_once(talk: Samples) -> None:
    samples = np.concatenate([talk, 4 * talk])
    (jump,) = faults.find_level_jumps(samples, RATE, [faults.Span(0.0, 12.0)])
    assert jump.start == pytest.approx(6.0, abs=0.7)
    assert faults.find_level_jumps(np.concatenate([talk, talk]), RATE, [faults.Span(0.0, 12.0)]) == []


def test_an_end_in_the_middle_of_a_syllable_is_cut_off(talk: Samples) -> None:
    loudest = int(np.abs(talk).argmax())
    (end,) = faults.find_cut_end(talk[:loudest], RATE)
    assert end.end == pytest.approx(loudest / RATE)


def test_a_stretch_that_is_heard_again_is_a_loop_with_its_lag() -> None:
    chance = np.random.default_rng(4)
    parts = [np.convolve(chance.normal(0, 0.1, 1600), chance.normal(0, 1, 12), "same") for _ in range(80)]
    sound = np.concatenate(parts).astype(np.float32)
    at = 3 * RATE
    looped = np.concatenate([sound[:at], sound[at - 2 * RATE : at], sound[at:]])
    ((loop, lag),) = find_loops(looped, RATE)
    assert lag == pytest.approx(2.0)
    assert (loop.start, loop.end) == pytest.approx((3.0, 5.0), abs=0.15)


def test_silence_has_no_faults_and_no_level() -> None:
    silence = np.zeros(RATE, np.float32)
    assert faults.measure_level(silence, RATE) == 0.0
    for find in (faults.find_holes, faults.find_clicks, faults.find_clipped, faults.find_cut_end):
        assert find(silence, RATE) == []
    assert find_loops(silence, RATE) == []
