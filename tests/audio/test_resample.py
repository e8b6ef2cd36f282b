"""Mixing to mono and resampling in blocks."""

import numpy as np
import pytest
import soxr

from podeval.audio.samples import BLOCK_FRAMES, SampleBuffer, mix_to_mono, resample

NOISE = np.random.default_rng(0).standard_normal((2 * BLOCK_FRAMES + 4_321, 2)).astype(np.float32)


@pytest.mark.parametrize(("rate", "target"), [(44_100, 16_000), (16_000, 48_000), (48_000, 24_000), (47_999, 16_000)])
@pytest.mark.parametrize("samples", [NOISE, NOISE[:, 0], NOISE[:, :1], NOISE[:BLOCK_FRAMES], NOISE[:7]])
def test_blocks_give_what_the_one_shot_resampler_gives(samples: np.ndarray, rate: int, target: int) -> None:
    expected = soxr.resample(samples, rate, target, quality="HQ")
    resampled = resample(samples, rate, target)
    assert resampled.dtype == np.float32
    np.testing.assert_allclose(resampled, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("frames", "rate", "target", "expected"),
    [
        (44_100, 44_100, 16_000, 16_000),
        (3, 2_000, 1_000, 2),
        (7, 48_000, 16_000, 2),
        (100_003, 44_100, 16_000, 36_282),
        (1, 44_100, 16_000, 0),
        (0, 44_100, 16_000, 0),
    ],
)
def test_the_length_is_the_nearest_to_the_ratio(frames: int, rate: int, target: int, expected: int) -> None:
    assert len(resample(np.ones(frames, np.float32), rate, target)) == expected


def test_a_tone_keeps_its_frequency_phase_and_level() -> None:
    tone = np.sin(2 * np.pi * 1_000 * np.arange(96_000) / 48_000).astype(np.float32)
    expected = np.sin(2 * np.pi * 1_000 * np.arange(32_000) / 16_000)
    np.testing.assert_allclose(resample(tone, 48_000, 16_000)[500:-500], expected[500:-500], atol=1e-4)


def test_equal_rates_return_the_same_array() -> None:
    assert resample(NOISE, 16_000, 16_000) is NOISE


def test_a_large_result_is_held_in_a_file_and_equal() -> None:
    resampled = resample(NOISE, 16_000, 24_000, memory_bytes=50_000)
    assert isinstance(resampled, np.memmap)
    np.testing.assert_array_equal(resampled, resample(NOISE, 16_000, 24_000))
    # And a recording that lies in a file can itself be resampled and mixed.
    np.testing.assert_array_equal(resample(resampled, 24_000, 8_000), resample(np.array(resampled), 24_000, 8_000))
    assert isinstance(mix_to_mono(resampled, memory_bytes=50_000), np.memmap)


def test_mono_is_the_mean_over_the_channels() -> None:
    np.testing.assert_allclose(mix_to_mono(NOISE), (NOISE[:, 0] + NOISE[:, 1]) / 2, atol=1e-6)
    np.testing.assert_array_equal(mix_to_mono(NOISE[:, :1]), NOISE[:, 0])
    assert mix_to_mono(NOISE[:, 0]).shape == (len(NOISE),)


def test_mono_of_huge_samples_does_not_overflow_and_nan_stays() -> None:
    samples = np.array([[3e38, 3e38], [np.nan, 0.0]], dtype=np.float32)
    assert mix_to_mono(samples)[0] == np.float32(3e38)
    assert np.isnan(mix_to_mono(samples)[1])


@pytest.mark.parametrize("memory_bytes", [10, 10**9])
def test_a_buffer_keeps_the_order_of_its_blocks_and_owns_its_samples(memory_bytes: int) -> None:
    buffer = SampleBuffer(memory_bytes=memory_bytes)
    block = np.zeros(3, np.float32)
    for value in range(5):
        block[:] = value
        buffer.append(block)
    samples = buffer.finish()
    np.testing.assert_array_equal(samples, np.repeat(np.arange(5), 3))
    assert buffer.frames == 0
