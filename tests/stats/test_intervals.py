"""Intervals cover what they promise; ranks overlap where the data cannot tell systems apart."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from podeval.errors import BadInput
from podeval.stats import pair_comparisons
from podeval.stats.intervals import Interval, mean_ci, paired_bootstrap_ranks, paired_difference
from podeval.stats.pair_comparisons import compare_draws

numbers = st.integers(-10_000, 10_000).map(lambda number: number / 16)
samples = st.lists(numbers, min_size=2, max_size=30)


def width(interval: Interval) -> float:
    return interval.high - interval.low


def test_an_interval_of_independent_values_is_students() -> None:
    values = np.random.default_rng(1).normal(3, 2, 17)
    expected = stats.t.interval(0.95, 16, loc=values.mean(), scale=stats.sem(values))
    interval = mean_ci(list(values))
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-12)
    assert (interval.n, interval.clusters) == (17, 17)


def test_a_clustered_interval_matches_the_formula_worked_by_hand() -> None:
    # Values 1 2 | 3 | 6: mean 3; without a cluster the mean is 4.5, 3 or 2: 1.5, 0 and 1 away, so that the jackknife's
    # variance is 2/3 * 3.25; t(0.975, 2) = 4.30265.
    interval = mean_ci([1, 2, 3, 6], ["a", "a", "b", "c"])
    assert interval.mean == 3
    assert interval.high == pytest.approx(3 + 4.302652729911275 * math.sqrt(2 / 3 * 3.25))
    assert (interval.n, interval.clusters) == (4, 3)


def test_one_value_or_one_cluster_has_a_mean_but_no_interval() -> None:
    assert mean_ci([4.0]) == Interval(4.0, None, None, 1, 1)
    assert mean_ci([4.0, 6.0], ["a", "a"]) == Interval(5.0, None, None, 2, 1)


@pytest.mark.parametrize(
    ("values", "clusters", "level", "message"),
    [
        ([], None, 0.95, "at least one value"),
        ([1.0, math.nan], None, 0.95, "NaN or infinity"),
        ([1.0, 2.0], ["a"], 0.95, "2 values came with 1 clusters"),
        ([1.0, 2.0], None, 95.0, "between 0 and 1"),
    ],
)
def test_what_cannot_be_averaged_is_refused(
    values: list[float], clusters: list[str] | None, level: float, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        mean_ci(values, clusters, level)


@pytest.mark.parametrize(
    ("values", "clusters", "step", "reach"),
    [
        ([3.2] * 6, None, None, 0.1 * 0.3903),
        ([3.0] * 6, None, None, 0.3903),
        ([3.0, 1.0, 3.0, 1.0], list("aabb"), None, 0.6576),
        ([2.71828] * 6, None, None, 0.001 * 0.3903),
        ([3.5] * 12, list("aabbccddeeff"), 0.25, 0.25 * 0.3903),
    ],
    ids=["tenths", "whole marks", "clusters that agree", "continuous", "stated, twelve marks of six people"],
)
def test_equal_values_are_as_uncertain_as_the_step_they_are_measured_in(
    values: list[float], clusters: list[str] | None, step: float | None, reach: float
) -> None:
    """Of six equal draws up to 1.96² / (6 + 1.96²) = 39.03 % may differ, of two 65.76 %, each by a step at least."""
    found = mean_ci(values, clusters, bounds=(1, 5), step=step)
    assert (found.mean - found.low, found.high - found.mean) == pytest.approx((reach, reach), abs=1e-4 * reach + 1e-5)
    assert mean_ci([0.0] * 6, bounds=(0, None)).high == pytest.approx(0.3903, abs=1e-4), "an error rate of six items"
    assert mean_ci([0.0] * 6, bounds=(0, None)).low == 0


@given(samples, numbers, st.integers(1, 5))
def test_an_interval_moves_and_scales_with_its_values(values: list[float], shift: float, scale: int) -> None:
    labels = [index % 3 for index in range(len(values))]
    plain = mean_ci(values, labels)
    moved = mean_ci([scale * value + shift for value in values], labels)
    assert moved.mean == pytest.approx(scale * plain.mean + shift, abs=1e-6)
    pulls = [sum(value - plain.mean for value in values[start::3]) for start in range(3)]
    if max(map(abs, pulls)) < 1e-9:  # the clusters agree, and a step is a step wherever they are
        assert width(plain) > 0
        return
    assert width(moved) == pytest.approx(scale * width(plain), abs=1e-6)


def scores_of(*means: float, items: int = 40, noise: float = 0.1, seed: int = 5) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=items)
    return {
        f"system{number}": {f"item{i}": float(m + difficulty[i] + noise * rng.normal()) for i in range(items)}
        for number, m in enumerate(means)
    }


def test_systems_with_equal_scores_share_all_ranks() -> None:
    scores = {name: {f"item{i}": float(i) for i in range(8)} for name in "abc"}
    assert paired_bootstrap_ranks(scores, higher_is_better=True) == dict.fromkeys("abc", (1, 3))


def test_clearly_different_systems_have_one_rank_each() -> None:
    scores = scores_of(1.0, 3.0, 2.0)
    ranks = {"system0": (3, 3), "system1": (1, 1), "system2": (2, 2)}
    assert paired_bootstrap_ranks(scores, higher_is_better=True) == ranks
    reverse = {"system0": (1, 1), "system1": (3, 3), "system2": (2, 2)}
    assert paired_bootstrap_ranks(scores, higher_is_better=False) == reverse


def test_a_pair_that_cannot_be_told_apart_shares_ranks_below_a_clear_winner() -> None:
    ranks = paired_bootstrap_ranks(scores_of(1.0, 1.001, 3.0), higher_is_better=True)
    assert ranks == {"system0": (2, 3), "system1": (2, 3), "system2": (1, 1)}


def test_pairing_sees_a_difference_smaller_than_the_spread_of_items() -> None:
    scores = scores_of(1.0, 1.2)
    assert width(mean_ci(list(scores["system0"].values()))) > 0.4
    assert paired_bootstrap_ranks(scores, higher_is_better=True)["system1"] == (1, 1)


def test_a_difference_in_one_cluster_only_is_no_difference() -> None:
    items = [f"item{i}" for i in range(12)]
    lucky = set(items[:6])
    scores = {"plain": dict.fromkeys(items, 1.0), "lucky": {item: 1.0 + (item in lucky) for item in items}}
    clusters = {item: "one" if item in lucky else item for item in items}
    assert paired_bootstrap_ranks(scores, True)["lucky"] == (1, 1)
    assert paired_bootstrap_ranks(scores, True, clusters)["lucky"] == (1, 2)


def test_only_items_that_all_systems_share_count() -> None:
    scores = scores_of(1.0, 3.0)
    scores["system0"]["bonus"] = 1e9
    assert paired_bootstrap_ranks(scores, higher_is_better=True)["system0"] == (2, 2)


def test_ranks_depend_on_the_seed_and_nothing_else() -> None:
    scores = scores_of(1.0, 1.03, 1.06, noise=0.2)
    reordered = {name: dict(reversed(scores[name].items())) for name in reversed(scores)}
    assert paired_bootstrap_ranks(scores, True) == paired_bootstrap_ranks(reordered, True)


def test_counting_draws_says_what_their_quantile_says() -> None:
    random = np.random.default_rng(3)
    # Rounded, so that many draws are exactly zero apart; the last system is the first one over again.
    drawn = np.round(np.cumsum(random.normal(0, 0.02, 40))[None, :] + random.normal(0, 0.15, (501, 40)), 2)
    drawn = np.concatenate([drawn, drawn[:, :1]], axis=1)
    unclear_pairs = 0
    for index in range(41):
        others = np.delete(np.arange(41), index)
        quantiles = np.quantile(drawn[:, [index]] - drawn[:, others], 0.021, axis=0)
        above, unclear = compare_draws(drawn, index, others, 0.021)
        assert not (above & unclear).any()
        assert (quantiles[above] > 1e-12).all()
        assert (quantiles[~above & ~unclear] <= 1e-12).all()
        unclear_pairs += int(unclear.sum())
    assert 0 < unclear_pairs < 0.1 * 41 * 40


def test_with_one_cluster_everyone_may_be_anywhere() -> None:
    scores = {"a": {"x": 1.0}, "b": {"x": 2.0}}
    assert paired_bootstrap_ranks(scores, higher_is_better=True) == {"a": (1, 2), "b": (1, 2)}


@given(st.lists(st.lists(numbers, min_size=5, max_size=5), min_size=1, max_size=6), st.booleans())
def test_ranks_are_possible_ranges(rows: list[list[float]], higher: bool) -> None:
    scores = {f"s{i}": {f"i{j}": value for j, value in enumerate(row)} for i, row in enumerate(rows)}
    ranks = paired_bootstrap_ranks(scores, higher, rounds=100)
    assert all(1 <= best <= worst <= len(rows) for best, worst in ranks.values())
    leader = (max if higher else min)(scores, key=lambda system: sum(scores[system].values()))
    assert ranks[leader][0] == 1


@pytest.mark.parametrize(
    ("scores", "clusters", "message"),
    [
        ({}, None, "no system to rank"),
        ({"a": {"x": 1.0}, "b": {"y": 1.0}}, None, "no item was scored for all 2 systems"),
        ({"a": {"x": 1.0, "y": math.inf}}, None, "NaN or infinity"),
        ({"a": {"x": 1.0, "y": 2.0}}, {"x": "one"}, "1 items have no cluster, such as 'y'"),
    ],
)
def test_what_cannot_be_ranked_is_refused(
    scores: dict[str, dict[str, float]], clusters: dict[str, str] | None, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        paired_bootstrap_ranks(scores, True, clusters)


def test_weights_make_the_mean_a_ratio_of_sums_with_its_jackknifed_interval() -> None:
    values, weights = [80.0, 50.0, 100.0, 60.0], [5.0, 8.0, 5.0, 10.0]
    found = mean_ci(values, weights=weights)
    # 400 + 400 + 500 + 600 = 1900 by 28
    assert found.mean == pytest.approx(1900 / 28)
    # The ratio without each value in turn; its jackknife variance; t with 3 degrees is 3.182446.
    without = [1500 / 23, 1500 / 20, 1400 / 23, 1300 / 18]
    spread = 3 / 4 * sum((ratio - 1900 / 28) ** 2 for ratio in without)
    assert found.mean - found.low == pytest.approx(3.182446 * spread**0.5, rel=1e-6)
    even = mean_ci(values, ["a", "a", "b", "c"], weights=[2.0] * 4)
    assert even == mean_ci(values, ["a", "a", "b", "c"])
    for wrong in ([1.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, float("nan")]):
        with pytest.raises(BadInput, match="4 positive weights"):
            mean_ci(values, weights=wrong)


def test_a_difference_is_over_common_items_and_its_interval_is_students_where_clusters_are_few() -> None:
    # Differences 1 (both items of p) and 3 (q), mean 5/3; without p it is 3, without q 1: 4/3 and 2/3 away, so that the
    # jackknife's variance is 1/2 * 20/9, and t(0.975, 1) is 12.7062. The widened percentiles, 1 and 3, lie within.
    a = {"p1": 2.0, "p2": 5.0, "q": 4.0, "only a": 99.0}
    b = {"p1": 1.0, "p2": 4.0, "q": 1.0, "only b": -99.0}
    found = paired_difference(a, b, {"p1": "p", "p2": "p", "q": "q"})
    half = 12.706204736432095 * math.sqrt(10 / 9)
    assert (found.mean, found.low, found.high) == pytest.approx((5 / 3, 5 / 3 - half, 5 / 3 + half))
    assert (found.n, found.clusters) == (3, 2)
    turned = paired_difference(b, a, {"p1": "p", "p2": "p", "q": "q"})
    assert (turned.mean, turned.low, turned.high) == pytest.approx((-5 / 3, -5 / 3 - half, -5 / 3 + half))


def test_a_weighted_difference_is_one_of_weighted_means() -> None:
    # a: (1*1 + 3*2)/4 = 1.75, b: (2*1 + 2*3)/4 = 2.
    weights = ({"x": 1.0, "y": 3.0}, {"x": 2.0, "y": 2.0})
    assert paired_difference({"x": 1.0, "y": 2.0}, {"x": 1.0, "y": 3.0}, weights=weights).mean == -0.25
    with pytest.raises(BadInput, match="positive"):
        paired_difference({"x": 1.0}, {"x": 1.0}, weights=({"x": 0.0}, {"x": 1.0}))


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=12))
def test_an_interval_excludes_zero_exactly_where_one_system_beats_the_other(pairs: list[tuple[float, float]]) -> None:
    a = {f"i{number}": pair[0] for number, pair in enumerate(pairs)}
    b = {f"i{number}": pair[1] for number, pair in enumerate(pairs)}
    found = paired_difference(a, b)
    # Without an interval, where two or three items differ by exactly the same, nobody beats anybody.
    ranks = paired_bootstrap_ranks({"a": a, "b": b}, higher_is_better=True)
    assert (ranks["a"] == (1, 1)) == (found.low is not None and found.low > 0)
    assert (ranks["b"] == (1, 1)) == (found.high is not None and found.high < 0)
    same = paired_difference(a, a)
    assert same.mean == 0
    assert same.low < 0 < same.high, "equal as far as the values tell"


def test_one_cluster_gives_a_difference_without_an_interval_and_no_common_item_none() -> None:
    assert paired_difference({"x": 2.0}, {"x": 1.0}) == Interval(1.0, None, None, 1, 1)
    with pytest.raises(BadInput, match="no item"):
        paired_difference({"x": 2.0}, {"y": 1.0})


def test_many_clusters_are_drawn_in_blocks_of_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dense matrix of 100,000 clusters by as many items would take 75 GB; blocks give what one call gives."""
    values = np.random.default_rng(3).normal(size=(3, 40))
    scores = {f"s{i}": {f"i{j}": float(v) + 0.4 * i for j, v in enumerate(row)} for i, row in enumerate(values)}
    whole = paired_bootstrap_ranks(scores, True)
    difference = paired_difference(scores["s0"], scores["s2"])
    monkeypatch.setattr(pair_comparisons, "_DRAWN_AT_ONCE", 999)
    assert paired_bootstrap_ranks(scores, True) == whole
    assert paired_difference(scores["s0"], scores["s2"]) == difference
    # Nothing outside tells how much memory the draws take.
    assert pair_comparisons.draw_clusters(40, 2000, 0)._blocks[0].dtype == np.uint16


def test_two_items_and_a_small_gap_are_no_place() -> None:
    assert paired_bootstrap_ranks({"a": {"1": 3.001, "2": 3.501}, "b": {"1": 3.0, "2": 3.5}}, True)["a"] == (1, 2)
    assert paired_difference({"1": 3.001, "2": 3.501}, {"1": 3.0, "2": 3.5}).low is None


def test_values_of_yes_and_no_have_wilsons_interval() -> None:
    """Six of six: 0.6097 to 1, by Wilson's formula 6 / (6 + 1.96²); of five yes and one no 0.4365 to 0.9699."""
    every = mean_ci([100.0] * 6, bounds=(0, 100))
    assert (every.mean, every.low, every.high) == pytest.approx((100, 100 * 6 / (6 + 1.959964**2), 100))
    most = mean_ci([1.0] * 5 + [0.0], bounds=(0, 1))
    assert (most.low, most.high) == pytest.approx((0.43650, 0.96995), abs=1e-4)
    # Twelve turns of three dialogues that all pass are three draws, not twelve.
    together = mean_ci([1.0] * 12, list("aaaabbbbcccc"), bounds=(0, 1))
    assert together.low == pytest.approx(3 / (3 + 1.959964**2))


@given(samples, st.integers(1, 5))
def test_an_interval_stays_inside_the_bounds_of_its_key(values: list[float], groups: int) -> None:
    low, high = min(values), max(values) + 1
    interval = mean_ci(values, [index % groups for index in range(len(values))], bounds=(low, high))
    if groups > 1:
        assert low <= interval.low <= interval.mean <= interval.high <= high


def test_values_crowded_against_a_bound_have_an_interval_that_reaches_further_on_the_side_of_their_tail() -> None:
    values = [0.0, 0.02, 0.03, 0.05, 0.08, 0.61]
    rate, plain = mean_ci(values, bounds=(0, None)), mean_ci(values)
    assert rate.low == 0.0
    assert plain.low < 0
    assert rate.high > plain.high + 0.1
    far = mean_ci([value + 100 for value in values], bounds=(0, None))
    assert far == mean_ci([value + 100 for value in values]), "no bound is near"
