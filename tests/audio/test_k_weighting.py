"""K-weighting in matrix products against scipy going from sample to sample.

Tolerance 1e-8 of full scale, 160 dB down: at 192 kHz the filter's poles are so near 1 that the rounding of both grows
to 4e-9; at 44.1 kHz they agree within 1e-10.
"""

import time

import numpy as np
import pytest
from scipy.signal import sosfilt

from podeval.audio.loudness import KWeighting, design_k_weighting, filter_sections


@pytest.mark.parametrize("rate", [8000, 22_050, 44_100, 44_101, 48_000, 192_000])
@pytest.mark.parametrize("lengths", [(8000, 8000, 3210), (1, 49, 50, 51, 399, 400, 7999), (3200, 3199)])
def test_blocks_of_any_length_give_what_going_from_sample_to_sample_gives(rate: int, lengths: tuple[int, ...]) -> None:
    signal = np.random.default_rng(0).normal(0, 0.3, (sum(lengths), 3)) + 0.5
    whole = sosfilt(design_k_weighting(rate), signal, axis=0)
    weighting = KWeighting(rate, 3, 8000)
    blocks = np.split(signal.astype(np.float64), np.cumsum(lengths)[:-1])
    found = np.concatenate([weighting.push(block).T.copy() for block in blocks])
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-8)


def test_the_coefficients_at_48_khz_are_those_of_the_standard() -> None:
    """ITU-R BS.1770-4, tables 1 and 2."""
    shelf, high_pass = design_k_weighting(48_000)
    assert shelf == pytest.approx([1.53512486, -2.69169619, 1.19839281, 1, -1.69065929, 0.73248077], abs=1e-8)
    assert high_pass == pytest.approx([1, -2, 1, 1, -1.99004745, 0.99007225], abs=1e-8)


def test_silence_after_sound_is_not_slower_than_sound() -> None:
    weighting = KWeighting(48_000, 2, 48_000)
    sound = np.random.default_rng(1).normal(0, 0.1, (48_000, 2)).astype(np.float32)

    def seconds(block: np.ndarray) -> float:
        start = time.process_time()
        for _ in range(20):
            weighting.push(block)
        return time.process_time() - start

    seconds(sound)
    # The quickest of three, as others use the processor's caches too.
    assert min(seconds(np.zeros_like(sound)) for _ in range(3)) < 3 * max(seconds(sound) for _ in range(3))


@pytest.mark.parametrize("rate", [8000, 44_100, 192_000])
def test_sections_filter_as_scipy_does_bit_for_bit(rate: int) -> None:
    draws = np.random.default_rng(rate)
    rows, states = draws.normal(0, 0.3, (3, 77)), draws.normal(0, 0.3, (2, 3, 2))
    filtered, after = filter_sections(design_k_weighting(rate), rows, states)
    expected, left = sosfilt(design_k_weighting(rate), rows, zi=states)
    assert np.array_equal(filtered, expected)
    assert np.array_equal(after, left)
