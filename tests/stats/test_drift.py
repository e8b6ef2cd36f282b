"""Drift: a slope with an interval that overlapping windows cannot make too sure."""

import numpy as np
import pytest

from podeval.stats.drift import drift


def windows(seconds: float) -> list[float]:
    return [2.0 * number for number in range(int((seconds - 3) / 2) + 1)]


def test_a_straight_line_is_found_exactly() -> None:
    starts = windows(600)
    found = drift(starts, [3 + 0.01 * start for start in starts], 3.0)
    assert found
    assert found.slope == pytest.approx(0.01)
    assert found.low == pytest.approx(0.01)
    assert found.blocks == 20


def test_it_equals_least_squares_of_scipy_where_windows_do_not_overlap() -> None:
    from scipy import stats

    y = np.random.default_rng(0).normal(size=12)
    found = drift([3.0 * i for i in range(12)], list(y), 3.0)
    line = stats.linregress(3.0 * np.arange(12), y)
    reach = stats.t.ppf(0.975, 10) * line.stderr
    assert found
    assert (found.slope, found.low, found.high) == pytest.approx((line.slope, line.slope - reach, line.slope + reach))


def test_the_interval_holds_no_trend_about_as_often_as_it_says() -> None:
    """Windows of 9 s every second over white noise share 8/9 of what they hear."""
    rng = np.random.default_rng(1)
    starts = [float(second) for second in range(300)]
    held = 0
    for _ in range(400):
        noise = rng.normal(size=308)
        values = np.convolve(noise, np.ones(9) / 9, mode="valid")
        found = drift(starts, list(values), 9.0)
        assert found
        held += found.low <= 0 <= found.high
    assert 0.90 <= held / 400 <= 0.985


def test_windows_without_a_value_are_left_out() -> None:
    starts = windows(120)
    values: list[float | None] = [0.5 * start for start in starts]
    values[3] = values[10] = None
    found = drift(starts, values, 3.0)
    assert found
    assert found.slope == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("starts", "values", "window"),
    [([], [], 3.0), ([0.0, 2.0], [1.0, 2.0], 3.0), ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], 3.0), ([0.0, 9.0], [1, None], 3)],
)
def test_too_little_to_tell_a_trend_gives_none(starts: list[float], values: list[float | None], window: float) -> None:
    assert drift(starts, values, window) is None
