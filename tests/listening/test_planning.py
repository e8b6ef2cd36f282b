"""A pilot says how many listeners are needed, and a test may be looked at after each of them."""

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.listening.planning import compute_listener_differences, count_listeners, judge_stopping, pair_differences
from podeval.stats.mushra_scores import Mark


def marks_of(differences: list[float]) -> list[Mark]:
    """Two pages a listener; the first system is marked so much higher, the pages differ by ten."""
    return [
        Mark(f"listener {number}", f"page {page}", system, 50 + 10 * page + (difference if system == "aria" else 0))
        for number, difference in enumerate(differences)
        for page in (0, 1)
        for system in ("aria", "basso")
    ]


def test_each_listener_is_one_difference_in_the_order_they_came() -> None:
    marks = [*marks_of([3.0, -1.0]), Mark("half", "page 0", "aria", 99.0)]
    assert compute_listener_differences(marks, "aria", "basso") == [3.0, -1.0]
    assert compute_listener_differences(marks, "basso", "aria") == [-3.0, 1.0]


def test_the_count_finds_the_difference_as_often_as_it_says() -> None:
    dice = np.random.default_rng(3)
    pilot = list(dice.normal(0, 10, 400))
    (need,) = count_listeners(marks_of(pilot), ["aria", "basso"], 5.0)
    # A paired t-test for half a standard deviation at 80 %: 34 by the tables; a pilot of 400 asks for little more.
    assert 30 <= need.listeners <= 40
    samples = dice.normal(5, need.spread, (4_000, need.listeners))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / np.sqrt(need.listeners))
    assert np.mean(t > 2.03) == pytest.approx(0.8, abs=0.03)


def test_pairs_are_planned_and_stopped_by_what_each_listener_prefers_or_tells_apart() -> None:
    sides = [("aria", "basso"), ("basso", "aria"), ("aria", "cello")]
    preferred = [
        Mark(f"listener {n}", f"i0: {a} | {b}", a, value, "preference")
        for n in range(12)
        for (a, b), value in zip(sides, (-1 - n % 2, 1 + n % 2, 2), strict=True)
    ]
    assert pair_differences(preferred, "aria", "basso") == [1.0, 2.0] * 6, "whichever side it was on"
    assert pair_differences(preferred, "basso", "aria") == [-1.0, -2.0] * 6
    verdicts = {(v.first, v.second): v for v in judge_stopping(preferred, ["aria", "basso", "cello"], pairs=True)}
    assert verdicts["aria", "basso"].better == "aria"
    assert verdicts["aria", "basso"].mean == 1.5
    assert (verdicts["basso", "cello"].listeners, verdicts["basso", "cello"].better) == (0, "")
    told = [
        Mark(f"listener {n}", f"i{trial}: aria | basso", "basso", float(trial < 7 + n % 2), "abx")
        for n in range(10)
        for trial in range(8)
    ]
    assert pair_differences(told, "aria", "basso") == [0.375, 0.5] * 5
    (apart,) = judge_stopping(told, ["aria", "basso"], pairs=True)
    assert apart.better == "aria"
    (need,) = count_listeners(told, ["aria", "basso"], 0.1, pairs=True)
    assert need.listeners < 15


def test_a_small_pilot_is_planned_with_more_caution() -> None:
    spread_by_size = {}
    for size in (4, 40):
        halves = list(10.0 * np.sign(np.arange(size) - size / 2 + 0.5))
        (need,) = count_listeners(marks_of(halves), ["aria", "basso"], 5.0)
        spread_by_size[size] = need.spread
    assert spread_by_size[4] > 1.3 * spread_by_size[40]


def test_systems_that_differ_are_told_apart_and_equal_ones_are_not() -> None:
    dice = np.random.default_rng(1)
    (apart,) = judge_stopping(marks_of(list(dice.normal(8, 6, 40))), ["aria", "basso"])
    assert apart.better == "aria"
    assert apart.interval[0] > 0
    (turned,) = judge_stopping(marks_of(list(dice.normal(-8, 6, 40))), ["aria", "basso"])
    assert turned.better == "basso"
    (few,) = judge_stopping(marks_of([5.0, 4.0]), ["aria", "basso"])
    assert (few.better, few.interval, few.listeners) == ("", None, 2)


def test_looking_after_every_listener_keeps_the_promise_for_equal_systems() -> None:
    dice = np.random.default_rng(9)
    wrong = 0
    for _ in range(12):
        values = list(dice.normal(0, 10, 30))
        looks = (judge_stopping(marks_of(values[:count]), ["aria", "basso"])[0].better for count in (8, 16, 30))
        wrong += any(looks)
    assert wrong <= 3, "more than three of twelve by chance once in five hundred times"


@pytest.mark.parametrize(
    ("differences", "difference", "sentence"),
    [([1.0, 2.0], 5.0, "2 listeners heard both"), ([1.0, 2.0, 3.0], 0.0, "must be above 0")],
)
def test_what_cannot_be_planned_is_a_sentence(differences: list[float], difference: float, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        count_listeners(marks_of(differences), ["aria", "basso"], difference)
