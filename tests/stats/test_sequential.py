"""Evidence that may be looked at after each pair: exact under symmetry, and strong where all pairs agree."""

from itertools import product

import numpy as np
import pytest

from podeval.stats.sequential import (
    count_needed,
    evidence_of_increase,
    least_permutation_p,
    permutation_p,
    sequential_interval,
)
from studies import regression_gate as study


def test_who_bets_on_equal_systems_keeps_their_capital_on_average() -> None:
    # Over all signs of differences of given sizes, which are equally likely where systems are equal.
    sizes = np.array([0.3, 0.0, 2.0, 0.01, 1.0, 0.7])
    signs = np.array(list(product([-1, 1], repeat=len(sizes))))
    capitals = np.array([evidence_of_increase(row * sizes) for row in signs])
    assert capitals.mean(axis=0) == pytest.approx(np.ones(len(sizes)))


def test_equal_pairs_are_no_evidence_and_six_that_agree_are() -> None:
    assert evidence_of_increase([0, 0, 0]).tolist() == [1, 1, 1]
    assert evidence_of_increase([1, 1, 1, 1])[-1] < 20
    assert evidence_of_increase([1, 2, 1, 3, 1])[-1] > 20
    assert evidence_of_increase([0.1, 0.5, 1.1, 0.8, 2.0, 1.5])[-1] > 40
    assert evidence_of_increase([-1, -2, -1, -3, -1, -1])[-1] < 0.15, "small stakes lose little in six pairs"


def test_a_lost_output_counts_as_the_greatest_difference() -> None:
    lost = evidence_of_increase([0.1, 0.2, np.inf, 0.1])
    assert np.isfinite(lost).all()
    assert lost[-1] == pytest.approx(evidence_of_increase([0.1, 0.2, 0.4, 0.1])[-1])
    assert evidence_of_increase([np.inf] * 6)[-1] > 40


def test_the_scale_of_values_does_not_matter_and_the_margin_does() -> None:
    values = np.array([0.3, 0.1, 0.2, 0.4, 0.25, 0.3])
    assert evidence_of_increase(values * 1000) == pytest.approx(evidence_of_increase(values))
    assert evidence_of_increase(values, 0.05)[-1] > 40 > evidence_of_increase(values, 0.25)[-1]


@pytest.mark.long
def test_the_interval_holds_the_centre_however_many_values_there_are() -> None:
    missed = 0
    for rows in np.random.default_rng(0).standard_t(3, (40, 60)):
        looks = [sequential_interval(rows[:count] + 5) for count in (6, 12, 30, 60)]
        missed += any(look is None or not look[0] <= 5 <= look[1] for look in looks)
    assert missed <= 3, "of forty, each looked at four times"
    wide, narrow = sequential_interval(rows[:12]), sequential_interval(rows)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    assert sequential_interval([1, 2, 3, 4, 5]) is None, "five pairs are no evidence at 2.5 % on either side"


def test_how_many_more_would_decide_is_about_right() -> None:
    generator = np.random.default_rng(3)
    values = generator.normal(0.5, 1, 400)
    count = count_needed(values[:40], 20)
    reached = int(np.argmax(evidence_of_increase(values) >= 20)) + 1
    assert 40 < count < 6 * reached
    assert count_needed(-values[:40], 20) is None


def test_repeats_are_compared_by_all_their_rearrangements() -> None:
    assert permutation_p([1, 2, 3], [4, 5, 6]) == pytest.approx(1 / 20)
    assert permutation_p([4, 5, 6], [1, 2, 3]) == 1
    assert permutation_p([1, 1, 1], [1, 1, 1]) == 1
    assert permutation_p([1, 2, 3], [4, 5, 6], margin=3) > 0.4
    assert least_permutation_p(5, 5) == pytest.approx(1 / 252)
    many = permutation_p(np.arange(12), np.arange(12) + 100.0)
    assert many == pytest.approx(1 / 20_001), "drawn, with the one at hand among them"


@pytest.mark.every(2)
@pytest.mark.parametrize("values", ["like WER", "like DNSMOS"])
@pytest.mark.parametrize(
    ("items", "seeds", "comparisons"),
    [
        (6, 1, 400),
        (6, 5, 100),
        *(pytest.param(*case, 1000, marks=pytest.mark.long) for case in ((6, 1), (6, 5), (20, 1), (51, 1), (51, 3))),
    ],
)
def test_at_most_five_percent_of_equal_systems_fail_however_often_one_looks(
    values: str, items: int, seeds: int, comparisons: int, capsys: pytest.CaptureFixture[str]
) -> None:
    once, often, any_way = study.share_failed(study.DRAWS[values], items, seeds, 0.0, comparisons)
    step = {"like WER": 0.05, "like DNSMOS": 0.1}[values]
    caught = study.share_failed(study.DRAWS[values], items, seeds, step, 50)
    with capsys.disabled():
        print(
            f"\n{values}, {items} items, {seeds} seeds: {once:.1%} once, {often:.1%} often, {any_way:.1%} any way",
            end="",
        )
        print(f"; worse by {step}: caught {caught[0]:.0%} once, {caught[2]:.0%} any way", end="")
    assert once <= often <= any_way <= 0.05
    assert caught[2] > 0.6
