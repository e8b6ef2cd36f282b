"""The true-peak meter, which leaves out what cannot hold a maximum, against interpolating everything."""

import numpy as np
import pytest

from podeval.audio.loudness import TruePeakMeter, get_oversampling


def everywhere(signal: np.ndarray, factor: int) -> float:
    """Peak of the samples and of every point between them, by the windowed sinc written out, in double precision."""
    reach, beta = 16, 5.0
    padded = np.pad(signal.astype(np.float64), ((reach * 4, reach * 4), (0, 0)))
    peak = np.abs(padded).max()
    for step in range(1, factor):
        taps = step / factor - np.arange(1 - reach, reach + 1)
        kernel = np.sinc(taps) * np.i0(beta * np.sqrt(1 - (taps / reach) ** 2))
        kernel /= kernel.sum()
        for channel in padded.T:
            peak = max(peak, np.abs(np.convolve(channel, kernel[::-1], "valid")).max())
    return float(peak)


@pytest.mark.parametrize("rate", [8000, 44_100, 96_000, 192_000])
@pytest.mark.parametrize("seed", range(4))
def test_leaving_out_quiet_stretches_changes_nothing(rate: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    signal = random.normal(0, 0.1, (20_000, 2)) * random.exponential(1, (20_000, 1)) ** 2
    meter = TruePeakMeter(rate, 2)
    for block in np.split(signal.astype(np.float32), np.sort(random.integers(0, 20_000, 9))):
        meter.push(block)
    assert meter.finish() == pytest.approx(everywhere(signal, get_oversampling(rate)), rel=1e-5)


def test_a_block_with_samples_that_are_not_numbers_says_so() -> None:
    meter = TruePeakMeter(48_000, 2)
    assert meter.push(np.full((100, 2), 0.25, dtype=np.float32)) == 0.25
    for value in (np.nan, np.inf, -np.inf):
        block = np.full((100, 2), 0.25, dtype=np.float32)
        block[50, 1] = value
        assert not np.isfinite(meter.push(block))
