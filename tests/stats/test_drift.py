"""Drift: a slope with an interval that overlapping windows cannot make too sure."""

import numpy as np
import pytest
from scipy import stats

from podeval.stats.drift import drift


def windows(seconds: float) -> list[float]:
    return [2.0 * number for number in range(int((seconds - 3) / 2) + 1)]


def test_a_straight_line_is_found_exactly() -> None:
    starts = windows(600)
    found = drift(starts, [3 + 0.01 * start for start in starts], 3.0)
    assert found.slope == pytest.approx(0.01)
    # Values are known to a hundredth: a standard error of 0.01 / sqrt(12) over twenty blocks of half a minute.
    assert found.slope - found.low == pytest.approx(8.1e-6, rel=0.1)
    assert found.blocks == 20


def test_the_slope_is_that_of_scipy_and_the_interval_no_narrower() -> None:
    y = np.random.default_rng(0).normal(size=12)
    found = drift([3.0 * i for i in range(12)], list(y), 3.0)
    line = stats.linregress(3.0 * np.arange(12), y)
    reach = stats.t.ppf(0.975, 10) * line.stderr
    assert found.slope == pytest.approx(line.slope)
    assert found.low <= line.slope - reach + 1e-12
    assert found.high >= line.slope + reach - 1e-12


def test_windows_that_overlap_do_not_narrow_the_interval() -> None:
    """Windows of 9 s every second over white noise share 8/9 of what they hear."""
    rng = np.random.default_rng(1)
    starts = [float(second) for second in range(300)]
    held = 0
    for _ in range(400):
        noise = rng.normal(size=308)
        values = np.convolve(noise, np.ones(9) / 9, mode="valid")
        found = drift(starts, list(values), 9.0)
        held += found.low <= 0 <= found.high
    assert held >= 0.95 * 400


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("blocks", "memory", "most"),
    [(6, 0.3, 2.5), (10, 0.0, 3.2), (10, 0.6, 3.2), (20, 0.6, 4), (6, 0.8, 2.5), (10, 0.8, 3)],
)
def test_values_that_remember_a_minute_seldom_seem_to_drift(blocks: int, memory: float, most: float) -> None:
    """At most 5 %, and 1.5 % more by chance; 32 % of 20 independent blocks would at 0.6 without a correction."""
    rng, drifting, wider = np.random.default_rng(2), 0, []
    starts = [30.0 * block for block in range(blocks)]
    for _ in range(400):
        values = [rng.normal()]
        while len(values) < blocks:
            values.append(memory * values[-1] + np.sqrt(1 - memory**2) * rng.normal())
        found = drift(starts, values, 30.0)
        drifting += not found.low <= 0 <= found.high
        line = stats.linregress(starts, values)
        wider.append((found.high - found.slope) / (stats.t.ppf(0.975, blocks - 2) * line.stderr))
    assert drifting <= 0.065 * 400
    # An interval that is never left would be of no use: beside that of independent blocks it is no wider than this.
    assert min(wider) >= 1
    assert np.median(wider) < most


@pytest.mark.parametrize(("minutes", "change", "share"), [(10, 10, 0.9), (20, 6, 0.8), (60, 4, 0.9)])
def test_a_drift_across_the_spread_of_the_minutes_is_found(minutes: int, change: float, share: float) -> None:
    """A change by so many standard deviations of the minutes over the recording."""
    rng = np.random.default_rng(3)
    starts = [60.0 * minute for minute in range(minutes)]
    trend = np.linspace(0, change, minutes)
    found = [drift(starts, list(trend + rng.normal(size=minutes)), 60.0) for _ in range(200)]
    assert np.mean([each.slope for each in found]) == pytest.approx(change / starts[-1], rel=0.03)
    assert np.mean([each.low > 0 for each in found]) > share


def test_windows_without_a_value_are_left_out() -> None:
    starts = windows(120)
    values: list[float | None] = [0.5 * start for start in starts]
    values[3] = values[10] = None
    found = drift(starts, values, 3.0)
    assert found.slope == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("starts", "values", "window"),
    [([], [], 3.0), ([0.0, 2.0], [1.0, 2.0], 3.0), ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], 3.0), ([0.0, 9.0], [1, None], 3)],
)
def test_too_little_to_tell_a_trend_gives_none(starts: list[float], values: list[float | None], window: float) -> None:
    assert drift(starts, values, window) is None
