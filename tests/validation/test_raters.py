"""Analyses of raters: each finds what is planted in the votes, and little else."""

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import rate
from podeval.validation import raters


def votes(seed: int, tilt: float = 0.0, count: int = 2000) -> Battles:
    """Five systems, the last the best; `tilt` favours the first."""
    random = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, 5) + tilt * np.array([2, 0, 0, 0, 0])
    a = random.integers(0, 5, count)
    b = (a + random.integers(1, 5, count)) % 5
    wins = random.random(count) < 1 / (1 + np.exp(strength[b] - strength[a]))
    names = [f"s{n}" for n in range(5)]
    return Battles.of(
        [names[n] for n in a],
        [names[n] for n in b],
        np.where(wins, "a", "b").tolist(),
        [f"v{n % 50}" for n in range(count)],
    )


def test_pseudo_agreement_is_high_only_where_both_are_sure() -> None:
    assert raters.compute_pseudo_agreement(0.9, 0.9) == pytest.approx(0.82)
    assert raters.compute_pseudo_agreement(0.5, 1.0) == 0.5
    assert raters.compute_pseudo_agreement(1, 0) == 0
    with pytest.raises(BadInput, match="shares"):
        raters.compute_pseudo_agreement(1.2, 0.5)
    found = raters.compute_pseudo_agreements(votes(0), votes(1))
    assert found["s0", "s4"] > 0.65 > found["s2", "s3"]
    assert len(found) == 10


def test_a_rater_is_held_against_the_same_raters_rubric() -> None:
    """Ten decided tasks, nine alike: sides do not enter, ties and what was not judged twice are left out."""
    totals = {("r", f"t{n}", name): float(value) for n in range(12) for name, value in (("x", 5), ("y", 3))}
    totals |= {("r", f"t{n}", "x"): 1.0 for n in range(5)} | {("r", "t11", "y"): 5.0}
    battles = [("r", f"t{n}", "x", "y", "b" if n < 5 else "a") for n in range(9)]
    battles += [("r", "t9", "y", "x", "a"), ("r", "t11", "x", "y", "a"), ("r", "none", "x", "y", "a")]
    kappa, agreed = raters.compare_arena_with_rubric(battles, totals)
    assert (agreed.value, agreed.count) == (0.9, 10)
    assert kappa.value == pytest.approx(0.8, abs=0.01)


def test_fewer_rubric_items_rank_worse_but_still_alike() -> None:
    random = np.random.default_rng(3)
    scores = {f"s{n}": (random.random(60) < 0.2 + 0.12 * n).astype(float).tolist() for n in range(6)}
    found = raters.rank_without_items(scores, shares=(0.9, 0.5, 0.1), draws=500)
    assert [exclusion.kept for exclusion in found] == [54, 30, 6]
    assert found[0].mean > found[1].mean > found[2].mean > 0.5
    outside = raters.rank_without_items(scores, {f"s{n}": -n for n in range(6)}, shares=(0.9,), draws=100)
    assert outside[0].mean < -0.8
    with pytest.raises(BadInput, match="reference ranking lacks"):
        raters.rank_without_items(scores, {"s0": 1.0})
    with pytest.raises(BadInput, match="three systems"):
        raters.rank_without_items({"x": [1, 2], "y": [1, 2]})


def test_elo_goes_with_the_win_rate_and_only_large_gaps_are_told_apart() -> None:
    battles = votes(5)
    assert raters.correlate_elo_with_win_rate(battles).value > 0.85
    found = raters.compute_separability(rate(battles.only(np.arange(len(battles)) < 300)))
    wide = [part.told_apart.value for part in found if part.told_apart.count]
    assert wide[-1] == 1.0
    assert sum(part.told_apart.count for part in found) == 10


def test_two_groups_of_raters_differ_where_one_favours_a_system() -> None:
    alike = raters.compare_groups(rate(votes(6)), rate(votes(7)))
    assert alike.agreement.value == pytest.approx(1.0)
    assert alike.differing == ()
    apart = raters.compare_groups(rate(votes(6)), rate(votes(7, tilt=1.0)))
    assert "s0" in apart.differing


def test_a_group_that_also_saw_a_weak_system_rates_the_common_ones_alike() -> None:
    """The ratings of each group are about its own mean, which a weak system moves by some 100 points."""
    with_weak = votes(8, count=3000)
    without = votes(9, count=3000)
    seen = (without.first != 0) & (without.second != 0)
    found = raters.compare_groups(rate(with_weak), rate(without.only(seen)))
    assert [gap.system for gap in found.gaps] == ["s1", "s2", "s3", "s4"]
    assert abs(sum(gap.one for gap in found.gaps)) < 1e-6
    assert found.differing == ()
    assert all(gap.low is not None and gap.high is not None and gap.low < 0 < gap.high for gap in found.gaps)
    with pytest.raises(BadInput, match="fewer than two"):
        raters.compare_groups(rate(votes(6)), rate(Battles.of(["x"], ["y"], ["a"])))


@pytest.mark.long
def test_groups_of_one_taste_differ_at_most_once_in_twenty_times() -> None:
    apart = sum(
        bool(raters.compare_groups(rate(votes(100 + n, count=400)), rate(votes(300 + n, count=400))).differing)
        for n in range(100)
    )
    assert apart <= 12
