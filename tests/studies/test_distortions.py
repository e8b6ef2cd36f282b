"""Every distortion does what its name says, by the amount it was asked for; measured, not read off the code."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal

from podeval.audio import loudness
from podeval.errors import BadInput, CannotScore

RATE = 16_000
Samples = NDArray[np.float32]


def integrated(samples: Samples) -> float:
    return loudness.measure(samples.reshape(len(samples), -1), RATE).integrated


def rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))


@pytest.fixture(scope="module")
def music() -> Samples:
    """3 s of three tones that swell, at 16 kHz."""
    time = np.arange(3 * RATE) / RATE
    tones = sum(np.sin(2 * np.pi * hz * time) for hz in (220, 277, 330))
    return np.asarray(0.05 * tones * (1 + 0.5 * np.sin(2 * np.pi * time)), np.float32)


DISTORTIONS: dict[str, Callable[[ModuleType, Samples], Samples]] = {
    "gaussian_noise": lambda by, s: by.gaussian_noise(s, 10, seed=1),
    "tanh_distortion": lambda by, s: by.tanh_distortion(s, 0.1),
    "clip": lambda by, s: by.clip(s, 0.05),
    "mu_law": lambda by, s: by.mu_law(s, 6),
    "low_pass": lambda by, s: by.low_pass(s, RATE, 2000),
    "gain": lambda by, s: by.gain(s, -6),
    "speed": lambda by, s: by.speed(s, RATE, 1.0),
    "reverberate": lambda by, s: by.reverberate(s, RATE, 0.5, seed=1),
    "change_room": lambda by, s: by.change_room(s, RATE, 3.0, 0.5, seed=1),
    "join": lambda by, s: by.join(s[: len(s) // 2 + 160], s[len(s) // 2 - 160 :], RATE),
    "mix_music": lambda by, s: by.mix_music(s, s[::-1].copy(), RATE, 5),
}


@pytest.mark.parametrize("name", DISTORTIONS)
def test_type_axes_and_length_are_kept_the_input_untouched_and_the_seed_decides(
    name: str, distortions: ModuleType, speech_like: Samples
) -> None:
    for given in (speech_like, np.stack([speech_like, 0.5 * speech_like], axis=1)):
        before = given.copy()
        made = DISTORTIONS[name](distortions, given)
        assert made.dtype == np.float32
        assert made.shape == given.shape
        assert np.array_equal(given, before)
        assert np.array_equal(made, DISTORTIONS[name](distortions, given))


@pytest.mark.parametrize("snr_db", [30, 10, -5])
def test_noise_lies_by_the_ratio_below_the_signal_and_is_white(
    distortions: ModuleType, snr_db: float, speech_like: Samples
) -> None:
    noise = distortions.gaussian_noise(speech_like, snr_db, seed=3) - speech_like
    assert 20 * np.log10(rms(speech_like) / rms(noise)) == pytest.approx(snr_db, abs=0.1)
    _, power = signal.welch(noise, RATE, nperseg=512)
    assert 10 * np.log10(power[5:120].mean() / power[120:250].mean()) == pytest.approx(0, abs=0.5)


def test_noise_of_two_channels_is_not_the_same_and_another_seed_is_other_noise(
    distortions: ModuleType, speech_like: Samples
) -> None:
    stereo = np.stack([speech_like, speech_like], axis=1)
    noise = distortions.gaussian_noise(stereo, 0, seed=3) - stereo
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.02
    assert not np.array_equal(noise, distortions.gaussian_noise(stereo, 0, seed=4) - stereo)


@pytest.mark.parametrize("name", ["tanh_distortion", "clip"])
def test_saturation_keeps_the_level_and_grows_with_the_amount(
    name: str, distortions: ModuleType, speech_like: Samples
) -> None:
    correlations = []
    for amount in (0.01, 0.1, 0.4):
        made = getattr(distortions, name)(speech_like, amount)
        assert rms(made) == pytest.approx(rms(speech_like), rel=1e-4)
        correlations.append(np.corrcoef(made, speech_like)[0, 1])
        assert np.abs(made).max() < np.abs(speech_like).max()
    assert correlations == sorted(correlations, reverse=True)
    assert correlations[-1] < 0.97


def test_clipping_cuts_off_the_share_that_was_asked_for_and_leaves_the_shape_of_the_rest(
    distortions: ModuleType, speech_like: Samples
) -> None:
    made = distortions.clip(speech_like, 0.05)
    edge = np.abs(made).max()
    cut = np.abs(made) > edge * (1 - 1e-6)
    assert cut.mean() == pytest.approx(0.05, abs=1e-3)
    ratio = made[~cut] / speech_like[~cut]
    assert ratio.std() / ratio.mean() < 1e-4


@pytest.mark.parametrize("bits", [8, 4])
def test_mu_law_leaves_as_many_values_as_its_bits_have_codes_finer_near_zero(
    distortions: ModuleType, bits: int
) -> None:
    ramp = np.linspace(-1.2, 1.2, 200_001, dtype=np.float32)
    made = distortions.mu_law(ramp, bits)
    values = np.unique(made)
    assert len(values) == 2**bits
    assert (values.min(), values.max()) == (-1, 1)
    steps = np.diff(values[values > 0])
    assert np.all(np.diff(steps) > 0)
    assert np.abs(made - np.clip(ramp, -1, 1)).max() < 0.6 * steps.max()


def test_low_pass_is_three_db_down_at_its_cut_off_and_sixty_an_octave_above(distortions: ModuleType) -> None:
    impulse = np.zeros(RATE, np.float32)
    impulse[10] = 1
    spectrum = 20 * np.log10(np.abs(np.fft.rfft(distortions.low_pass(impulse, RATE, 2000))) + 1e-12)
    assert spectrum[2000] == pytest.approx(-3.01, abs=0.05)
    assert spectrum[1000] == pytest.approx(0, abs=0.05)
    assert spectrum[4000] < -60


def test_gain_is_exact_and_nothing_is_clipped(distortions: ModuleType, speech_like: Samples) -> None:
    made = distortions.gain(speech_like, 20)
    assert np.abs(made).max() > 1
    assert integrated(made) - integrated(speech_like) == pytest.approx(20, abs=1e-4)


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_speed_changes_length_and_pitch_by_the_factor(distortions: ModuleType, factor: float) -> None:
    tone = np.sin(2 * np.pi * 500 * np.arange(2 * RATE) / RATE).astype(np.float32)
    made = distortions.speed(tone, RATE, factor)
    assert len(made) == pytest.approx(len(tone) / factor, abs=1)
    heard = np.fft.rfftfreq(len(made), 1 / RATE)[np.argmax(np.abs(np.fft.rfft(made * np.hanning(len(made)))))]
    assert heard == pytest.approx(500 * factor, abs=1)


@pytest.mark.parametrize(("rt60", "ratio"), [(0.3, 0.0), (0.8, -6.0)])
def test_a_room_decays_by_sixty_db_in_its_time_after_a_direct_sound_and_a_gap(
    distortions: ModuleType, rt60: float, ratio: float
) -> None:
    response = distortions.room_response(RATE, rt60, seed=5, direct_to_reverberant_db=ratio)
    assert response[0] == 1
    assert not response[1 : round(distortions.PRE_DELAY * RATE)].any()
    tail = response[1:]
    assert -10 * np.log10(np.sum(tail**2)) == pytest.approx(ratio, abs=0.01)
    # Schroeder's backward integral, fitted from 5 to 35 dB below its beginning (T30, ISO 3382).
    decay = 10 * np.log10(np.cumsum(tail[::-1] ** 2)[::-1] / np.sum(tail**2))
    fitted = np.flatnonzero((decay < -5) & (decay > -35))
    slope = np.polyfit(fitted / RATE, decay[fitted], 1)[0]
    assert -60 / slope == pytest.approx(rt60, rel=0.08)


def test_reverberation_keeps_the_loudness_and_fills_the_pauses(distortions: ModuleType, speech_like: Samples) -> None:
    voice = speech_like.copy()
    voice[2 * RATE : 3 * RATE] = 0
    made = distortions.reverberate(voice, RATE, 0.5, seed=1)
    assert integrated(made) == pytest.approx(integrated(voice), abs=1e-3)
    assert rms(made[2 * RATE : 2 * RATE + 3200]) > 100 * rms(made[3 * RATE - 3200 : 3 * RATE])
    with pytest.raises(CannotScore):
        distortions.reverberate(np.zeros(RATE, np.float32), RATE, 0.5, seed=1)


def test_the_room_changes_where_it_was_asked_to_at_the_same_loudness(
    distortions: ModuleType, speech_like: Samples
) -> None:
    made = distortions.change_room(speech_like, RATE, 3.0, 0.6, seed=1)
    assert np.array_equal(made[: 3 * RATE], speech_like[: 3 * RATE])
    assert integrated(made[3 * RATE :]) == pytest.approx(integrated(speech_like[3 * RATE :]), abs=0.1)
    wet = distortions.reverberate(speech_like, RATE, 0.6, seed=1)
    assert np.corrcoef(made[4 * RATE :], wet[4 * RATE :])[0, 1] == pytest.approx(1, abs=1e-6)


def test_joined_signals_are_both_whole_but_for_the_crossfade_whose_power_is_even(distortions: ModuleType) -> None:
    first, second = (np.random.default_rng(seed).normal(0, 0.1, RATE).astype(np.float32) for seed in (1, 2))
    made = distortions.join(first, second, RATE, crossfade_s=0.5)
    assert len(made) == round(1.5 * RATE)
    assert np.array_equal(made[: RATE // 2], first[: RATE // 2])
    assert np.array_equal(made[RATE:], second[RATE // 2 :])
    assert rms(made[RATE // 2 : RATE]) == pytest.approx(0.1, rel=0.03)
    assert np.array_equal(distortions.join(first, second, RATE, crossfade_s=0), np.concatenate([first, second]))


@pytest.mark.parametrize("smr_db", [10, 0, -5])
def test_music_lies_by_the_ratio_below_the_speech_in_loudness(
    distortions: ModuleType, smr_db: float, speech_like: Samples, music: Samples
) -> None:
    under = distortions.mix_music(speech_like, music, RATE, smr_db) - speech_like
    assert len(music) < len(under)
    assert integrated(speech_like) - integrated(under) == pytest.approx(smr_db, abs=0.01)


def test_loudness_is_brought_to_a_figure_or_to_that_of_another_signal(
    distortions: ModuleType, speech_like: Samples, music: Samples
) -> None:
    assert integrated(distortions.match_loudness(speech_like, -23.0, RATE)) == pytest.approx(-23, abs=1e-3)
    assert integrated(distortions.match_loudness(music, speech_like, RATE)) == pytest.approx(
        integrated(speech_like), abs=1e-3
    )


@pytest.mark.parametrize(
    "refused",
    [
        lambda by, s: by.tanh_distortion(s, 0.0),
        lambda by, s: by.clip(s, 1.5),
        lambda by, s: by.mu_law(s, 1),
        lambda by, s: by.low_pass(s, RATE, 9000),
        lambda by, s: by.speed(s, RATE, 0.0),
        lambda by, s: by.reverberate(s, RATE, 0.0, seed=1),
        lambda by, s: by.change_room(s, RATE, 60.0, 0.5, seed=1),
        lambda by, s: by.join(s, np.stack([s, s], axis=1), RATE),
        lambda by, s: by.join(s, s[:10], RATE),
        lambda by, s: by.mix_music(s, s[:0], RATE, 0),
        lambda by, s: by.clip(np.where(np.arange(len(s)) < 10, s, 0).astype(np.float32), 0.5),
    ],
)
def test_amounts_that_mean_nothing_are_refused(
    refused: Callable[[ModuleType, Samples], Samples], distortions: ModuleType, speech_like: Samples
) -> None:
    with pytest.raises(BadInput):
        refused(distortions, speech_like)
