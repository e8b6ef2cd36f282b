"""Pairs on their own common items: what a third system lacks changes nothing, and what one lacks itself costs it."""

import numpy as np
import pytest
from scipy import stats

from podeval.stats.intervals import paired_bootstrap_ranks
from podeval.stats.pair_comparisons import ENOUGH_SHARED, compare_columns, compare_pairs

Scores = dict[str, dict[str, float]]


def board(*means: float, items: int = 40, noise: float = 0.1) -> Scores:
    random = np.random.default_rng(7)
    difficulty = random.normal(size=items)
    return {
        f"s{number}": {f"i{i:02}": float(mean + difficulty[i] + noise * random.normal()) for i in range(items)}
        for number, mean in enumerate(means)
    }


def without(scores: Scores, system: str, *items: int) -> Scores:
    lacking = {f"i{item:02}" for item in items}
    return scores | {system: {item: value for item, value in scores[system].items() if item not in lacking}}


def test_what_a_third_system_lacks_changes_no_verdict_between_two() -> None:
    scores = board(1.0, 1.08, 1.0, 1.0)
    two = compare_pairs({name: scores[name] for name in ("s0", "s1")}, True)
    assert two.ranges == {"s0": (2, 2), "s1": (1, 1)}
    few = without(without(scores, "s2", *range(39)), "s3", *range(1, 40))
    verdicts = compare_pairs(few, True)
    assert verdicts.ranges == two.ranges, "the two that share too little with any are in nobody's way"
    assert verdicts.clusters == {"s0": 40, "s1": 40}


def test_a_pair_that_is_not_comparable_widens_both_ranges() -> None:
    """s0 and s2 share 32 of 36: s1 has all and is comparable with both."""
    apart = board(1.0, 2.0, 3.0)
    assert compare_pairs(apart, True).ranges == {"s0": (3, 3), "s1": (2, 2), "s2": (1, 1)}
    lacking = without(without(apart, "s0", 0, 1, 2, 3), "s2", 4, 5, 6, 7)
    verdicts = compare_pairs(lacking, True)
    assert 32 < ENOUGH_SHARED * 36 <= 36
    assert verdicts.ranges == {"s0": (2, 3), "s1": (2, 2), "s2": (1, 2)}
    assert verdicts.clusters == {"s0": 36, "s1": 36, "s2": 36}


def test_a_gap_counts_as_an_item_on_which_the_system_is_behind() -> None:
    """Ahead by 0.93 on average of twenty items, with a standard deviation of 1.22; one item of 21 is missing.

    Student's t of the twenty is 3.33 (p 0.0035); with -1.22 for the missing one it is 2.91 (p 0.0087).
    """
    differences = np.array([0.2, 0.9, 1.9, 3.1, -1.2, 1.5, 0.4, 2.0, 1.1, -0.6] * 2)
    spread = float(differences.std())
    plain = {f"i{item}": 0.0 for item in range(21)}
    ahead = {f"i{item}": float(value) for item, value in enumerate(differences)}
    assert paired_bootstrap_ranks({"plain": plain, "ahead": ahead}, True)["ahead"] == (1, 1)
    filled = stats.ttest_1samp([*differences, -spread], 0).pvalue
    assert stats.ttest_1samp(differences, 0).pvalue < filled < 0.05
    # At a level between the two p-values the gap decides.
    level = 1 - (stats.ttest_1samp(differences, 0).pvalue + filled) / 2
    assert paired_bootstrap_ranks({"plain": plain, "ahead": ahead}, True, level=level)["ahead"] == (1, 2)
    whole = {item: value for item, value in plain.items() if item in ahead}
    assert paired_bootstrap_ranks({"plain": whole, "ahead": ahead}, True, level=level)["ahead"] == (1, 1)


def test_a_gap_costs_its_own_system_and_gives_the_other_nothing() -> None:
    scores = board(1.0, 1.06)
    ahead = {"s0": (2, 2), "s1": (1, 1)}
    assert paired_bootstrap_ranks(scores, True) == ahead
    assert paired_bootstrap_ranks(without(scores, "s0", 3, 11), True) == ahead
    assert paired_bootstrap_ranks(without(scores, "s1", 3, 11), True) == {"s0": (1, 2), "s1": (1, 2)}


def test_gaps_count_by_cluster() -> None:
    """Ten items of one topic are one cluster: without them a system shares 9 of 10 topics, without two topics 8."""
    scores = board(1.0, 3.0, items=40)
    clusters = {f"i{i:02}": f"topic {0 if i < 10 else 1 + i % 9}" for i in range(40)}
    assert compare_pairs(without(scores, "s0", *range(10)), True, clusters).shared.tolist() == [[9, 9], [9, 10]]
    assert set(compare_pairs(without(scores, "s0", *range(10)), True, clusters).ranges) == {"s0", "s1"}
    two = without(scores, "s0", *range(10), *(i for i in range(10, 40) if i % 9 == 0))
    assert compare_pairs(two, True, clusters).ranges == {}


@pytest.mark.parametrize("order", [1, -1])
def test_verdicts_with_gaps_depend_on_no_order(order: int) -> None:
    scores = without(without(board(1.0, 1.05, 1.1), "s1", 5), "s2", 6, 7)
    turned = {name: dict(list(scores[name].items())[::order]) for name in list(scores)[::order]}
    assert compare_pairs(turned, True).ranges == compare_pairs(scores, True).ranges


def test_two_that_lack_the_same_push_nobody_out_and_widen_no_range() -> None:
    scores = board(1.0, 2.0, 5.0, 4.0)
    lacking = without(without(scores, "s2", *range(10)), "s3", *range(10))
    assert compare_pairs(lacking, True).ranges == {"s0": (2, 2), "s1": (1, 1)}


def test_columns_that_are_corrected_together_separate_no_pair_that_all_their_pairs_do_not_allow() -> None:
    """Ahead by 0.5 of ten items, p 0.013: enough for one pair and for three, too much for five (0.05 / 5)."""
    differences = [0.5 + 0.5 * sign * size for size in (0.2, 0.6, 0.9, 1.2, 1.5) for sign in (1, -1)]
    assert 0.01 < stats.ttest_1samp(differences, 0).pvalue < 0.05 / 3
    scores = {"a": {f"i{n}": d for n, d in enumerate(differences)}, "b": {f"i{n}": 0.0 for n in range(10)}}
    column = (scores, True, None)
    for count, rank in ((1, (1, 1)), (3, (1, 1)), (5, (1, 2))):
        assert [verdicts.ranges["a"] for verdicts in compare_columns([column] * count)] == [rank] * count
    apart = board(1.0, 2.0)
    found = compare_columns([(apart, False, None), *[column] * 5])
    assert (found[0].ranges["s0"], found[1].ranges["a"]) == ((1, 1), (1, 2)), "each column has its own direction"


def test_equal_systems_have_a_false_place_in_one_column_in_twenty_and_corrected_in_one_view_in_twenty() -> None:
    """Sixty views of twelve columns of five equal systems: by column most nearly half of the views have one."""
    random, by_column, false_columns, by_view = np.random.default_rng(3), 0, 0, 0
    for _ in range(60):
        columns = [
            ({f"s{s}": {f"i{i}": float(v) for i, v in enumerate(row)} for s, row in enumerate(table)}, True, None)
            for table in random.normal(size=(12, 5, 20))
        ]
        single = [any(r != (1, 5) for r in compare_pairs(*column).ranges.values()) for column in columns]
        false_columns, by_column = false_columns + sum(single), by_column + any(single)
        by_view += any(r != (1, 5) for one in compare_columns(columns) for r in one.ranges.values())
    assert 0.02 < false_columns / 720 < 0.07
    assert by_column > 15
    assert by_view <= 6
