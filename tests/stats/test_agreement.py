"""Agreement figures equal those of other implementations and hold the truth as often as they say."""

import math

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.stats import agreement
from podeval.stats.agreement import cohen_kappa, krippendorff_alpha, plcc, qwk

KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
"""The four-observer example of Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C."""


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_krippendorffs_own_example(level: str, expected: float) -> None:
    found = agreement.krippendorff_alpha(KRIPPENDORFF_2011, level)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert found.count == 11
    assert found.low < found.value < found.high


def test_kappas_equal_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(1)
    x = random.integers(1, 6, 200)
    y = np.clip(x + random.integers(-1, 2, 200), 1, 5)
    kappa = agreement.cohen_kappa(x.tolist(), y.tolist())
    weighted = agreement.qwk(x.tolist(), y.tolist())
    assert kappa.value == pytest.approx(metrics.cohen_kappa_score(x, y))
    assert weighted.value == pytest.approx(metrics.cohen_kappa_score(x, y, weights="quadratic"))


def test_cohens_kappa_of_a_table_counted_by_hand() -> None:
    """20 both yes, 5 and 10 apart, 15 both no: agreed 0.7, by chance 0.5, so kappa 0.4."""
    x = ["yes"] * 25 + ["no"] * 25
    y = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert agreement.cohen_kappa(x, y).value == pytest.approx(0.4)


@pytest.mark.long
def test_intervals_of_correlations_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(5)
    truth = 0.6
    held = {"plcc": 0, "srcc": 0, "krcc": 0}
    true = {
        "plcc": truth,
        "srcc": 6 / math.pi * math.asin(truth / 2),
        "krcc": 2 / math.pi * math.asin(truth),
    }
    rounds = 400
    for _ in range(rounds):
        x, y = random.multivariate_normal([0, 0], [[1, truth], [truth, 1]], size=40).T
        for name in held:
            found = getattr(agreement, name)(x.tolist(), y.tolist())
            held[name] += found.low <= true[name] <= found.high
    assert all(0.92 <= count / rounds <= 0.98 for count in held.values()), held


def test_clusters_widen_the_interval_of_a_correlation() -> None:
    random = np.random.default_rng(2)
    x = np.repeat(random.normal(size=12), 10)
    y = x + np.repeat(random.normal(size=12), 10)
    clusters = np.repeat(np.arange(12), 10).tolist()
    alone = agreement.srcc(x.tolist(), y.tolist())
    together = agreement.srcc(x.tolist(), y.tolist(), clusters)
    assert alone.value == together.value
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_a_constant_rater_has_no_correlation_and_no_kappa() -> None:
    assert agreement.srcc([3, 3, 3, 3], [1, 2, 3, 4]).value is None
    assert agreement.qwk([3, 3, 3], [3, 3, 3]).value is None
    assert agreement.cohen_kappa(["a", "a"], ["a", "a"]).value is None
    assert agreement.krippendorff_alpha([[2, 2], [2, 2]]).value is None


def test_pairwise_accuracy_counts_ordered_pairs_and_half_for_undecided() -> None:
    """Truth orders 5 of the 6 pairs; 3 are judged alike, 1 the other way and 1 equal: 3.5 of 5."""
    found = agreement.pairwise_accuracy([1, 2, 2, 1.5], [1, 2, 3, 3])
    assert found.value == pytest.approx(3.5 / 5)


def test_pairwise_accuracy_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(9)
    truth = 0.5 + math.asin(0.6) / math.pi
    held = 0
    for _ in range(300):
        x, y = random.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=40).T
        found = agreement.pairwise_accuracy(x.tolist(), y.tolist())
        held += found.low <= truth <= found.high
    assert 0.92 <= held / 300 <= 0.985


def test_perfect_order_of_few_things_is_no_certainty() -> None:
    found = agreement.pairwise_accuracy([1, 2, 3, 4], [10, 20, 30, 40])
    assert found.value == 1
    assert found.low < 0.5


def test_mae_is_in_the_unit_of_the_scores() -> None:
    found = agreement.mae([1, 2, 3], [2, 2, 5])
    assert found.value == pytest.approx(1.0)
    assert found.low == 0.0


def test_each_rater_is_correlated_with_the_mean_of_the_others() -> None:
    ratings = [[1, 2, 3, 4, 5], [1, 2, 3, 5, 4], [5, 4, 3, 2, None]]
    found = agreement.leave_one_out(ratings)
    assert found[0]["SRCC"].value == pytest.approx(8 / 80**0.5), "ranks 1 to 5 with 2, 2, 2, 4, 5"
    assert found[2]["SRCC"].value == pytest.approx(-1.0)
    assert found[2]["SRCC"].count == 4
    # The others' means are 3, 3, 3, 3.5, 4: apart by 2, 1, 0, 0.5, 1.
    assert found[0]["MAE"].value == pytest.approx(0.9)
    # 1 - the mean of squares over the squares expected by chance (2 + 0.16 + 0.3 squared).
    assert found[0]["QWK"].value == pytest.approx(1 - (4 + 1 + 0 + 0.25 + 1) / 5 / (2 + 0.16 + 0.09))


def test_a_rater_who_shares_nothing_with_the_others_has_no_figures() -> None:
    found = agreement.leave_one_out([[1, None], [None, 2]])
    assert {name: (figure.value, figure.count) for name, figure in found[0].items()} == dict.fromkeys(
        ("SRCC", "PLCC", "KRCC", "QWK", "MAE"), (None, 0)
    )


def test_unequal_lists_and_gaps_are_refused() -> None:
    with pytest.raises(BadInput, match="two judgements of each"):
        agreement.srcc([1, 2, 3], [1, 2])
    with pytest.raises(BadInput, match="NaN"):
        agreement.mae([1, math.nan], [1, 2])
    with pytest.raises(BadInput, match="level of measurement"):
        agreement.krippendorff_alpha([[1, 2], [1, 2]], "fuzzy")  # type: ignore[arg-type]


def test_few_things_have_no_interval_of_kappa_or_alpha() -> None:
    x, y = [1, 2, 3, 1, 2, 3], [1, 2, 3, 1, 2, 2]
    for few in (cohen_kappa(x, y), qwk(x, y), krippendorff_alpha([x, y])):
        assert few.value is not None
        assert (few.low, few.high) == (None, None)
    many = cohen_kappa(x * 2, y * 2)
    assert many.low < (many.value or 0) < (many.high or 0) <= 1


def test_the_interval_of_kappa_of_twenty_things_holds_the_truth_about_as_often_as_it_says() -> None:
    """True kappa 0.6: agreement by design in 60 %, by chance else."""
    random, held = np.random.default_rng(5), 0
    for _ in range(300):
        first = random.integers(0, 3, 20)
        second = np.where(random.random(20) < 0.6, first, random.integers(0, 3, 20))
        found = cohen_kappa(first.tolist(), second.tolist())
        held += found.low is not None and found.low <= 0.6 <= (found.high or 0)
    assert 0.88 <= held / 300 <= 0.98


def test_a_correlation_by_clusters_holds_the_truth_about_as_often_as_it_says() -> None:
    """Six clusters of five values that share half of their variance; the correlation is 0.5 in and between them."""
    random, held = np.random.default_rng(6), 0
    for _ in range(300):
        shared, own = random.normal(size=(2, 6)), random.normal(size=(2, 6, 5))
        x = shared[0][:, None] + own[0]
        y = 0.5 * x + np.sqrt(0.75) * (shared[1][:, None] + own[1])
        found = plcc(x.ravel().tolist(), y.ravel().tolist(), [n for n in range(6) for _ in range(5)])
        held += found.low is not None and found.low <= 0.5 <= (found.high or 0)
    assert 0.88 <= held / 300 <= 0.98
