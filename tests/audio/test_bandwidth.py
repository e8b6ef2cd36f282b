"""The bandwidth of a recording is where its sound ends, whatever the rate of its file."""

import numpy as np
import pytest
from scipy.signal import butter, sosfilt

from podeval.validation.output_values import measure_bandwidth


@pytest.mark.parametrize("rate", [16_000, 48_000])
@pytest.mark.parametrize("cut", [3_400, 7_000])
def test_it_is_that_of_a_filter_and_not_of_the_file(rate: int, cut: int) -> None:
    noise = np.random.default_rng(0).normal(size=rate * 2).astype(np.float32)
    filtered = sosfilt(butter(30, cut, fs=rate, output="sos"), noise).astype(np.float32)
    # A filter of order 30 is 60 dB down at 1.26 times its corner, or before the end of the file.
    assert cut < measure_bandwidth(filtered, rate) <= min(1.3 * cut, rate / 2)
    assert measure_bandwidth(filtered / 1000, rate) == measure_bandwidth(filtered, rate), "the level does not matter"


def test_white_noise_fills_its_file_and_silence_has_none() -> None:
    noise = np.random.default_rng(1).normal(size=20_000).astype(np.float32)
    assert measure_bandwidth(noise, 24_000) == pytest.approx(12_000, abs=30)
    assert measure_bandwidth(np.zeros(5_000, np.float32), 24_000) == 0.0
    assert measure_bandwidth(np.zeros(1, np.float32), 24_000) == 0.0
