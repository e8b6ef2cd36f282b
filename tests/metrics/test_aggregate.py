import math

import pytest

from podeval.metrics import catalogue
from podeval.metrics.aggregate import aggregate
from podeval.metrics.score import Result, Score, Unscored

LOUDNESS = catalogue.get("loudness")
MATTR = catalogue.get("mattr")


def scores(*values: float | None) -> list[Result]:
    return [Score(values={"mattr": value}) for value in values]


def test_the_mean_is_over_scored_items_and_the_rest_is_counted_with_its_reasons() -> None:
    silent, absent = Unscored("is silent", "system"), Unscored("no weights", "ours")
    found = aggregate(MATTR, [*scores(0.2, 0.6), silent, silent, absent])
    interval = found.intervals["mattr"]
    assert interval
    assert interval.mean == pytest.approx(0.4)
    assert (found.scored, found.unscored, found.unscored_system, found.unscored_ours) == (2, 3, 2, 1)
    assert found.reasons == {"is silent": 2, "no weights": 1}


def test_the_interval_is_clustered_by_group() -> None:
    alone = aggregate(MATTR, scores(0.1, 0.1, 0.5, 0.5)).intervals["mattr"]
    clustered = aggregate(MATTR, scores(0.29, 0.29, 0.31, 0.31), ["x", "x", "y", "y"]).intervals["mattr"]
    wide = aggregate(MATTR, scores(0.1, 0.1, 0.5, 0.5), ["x", "x", "y", "y"]).intervals["mattr"]
    assert alone
    assert wide
    assert clustered
    assert alone.low is not None
    assert alone.high is not None
    assert clustered.low is not None
    assert clustered.high is not None
    # Two clusters: residual sums of ±0.02, so the variance is 2/1 * (2 * 0.02²) / 4²; t with 1 degree of freedom.
    assert clustered.high - clustered.mean == pytest.approx(12.7062047 * math.sqrt(2 * 2 * 0.0004 / 16))
    # Twenty times as far apart it would reach from -2.24 to 2.84; no vocabulary is poorer than 0 or richer than 1.
    assert (wide.low, wide.high) == (0.0, 1.0)
    # Four items: s = 0.23094, standard error s / 2, and t with 3 degrees of freedom 3.18245.
    assert alone.high - alone.mean == pytest.approx(3.1824463 * 0.2309401 / 2, rel=1e-6)
    assert clustered.clusters == 2


def test_one_item_or_one_group_has_a_mean_but_no_interval() -> None:
    for results, groups in ((scores(0.3), None), (scores(0.2, 0.4), ["x", "x"])):
        interval = aggregate(MATTR, results, groups).intervals["mattr"]
        assert interval
        assert interval.mean == pytest.approx(0.3)
        assert interval.low is None


def test_a_key_without_meaning_for_an_item_is_left_out_of_that_key_only() -> None:
    results: list[Result] = [
        Score(values={"integrated": -16.0, "range": None}),
        Score(values={"integrated": -18.0, "range": 5.0}),
    ]
    found = aggregate(LOUDNESS, results)
    assert found.intervals["range"]
    assert found.intervals["range"].mean == 5.0
    assert found.intervals["range"].n == 1
    assert found.intervals["integrated"]
    assert found.intervals["integrated"].mean == -17.0
    assert found.scored == 2


def test_keys_are_those_of_the_scores_in_the_order_declared() -> None:
    results: list[Result] = [Score(values={"range": 5.0, "extra": 1.0, "integrated": -16.0})]
    assert list(aggregate(LOUDNESS, results).intervals) == ["integrated", "range", "extra"]


def test_without_any_score_the_declared_keys_stand_empty() -> None:
    found = aggregate(LOUDNESS, [Unscored("is silent", "system")])
    assert list(found.intervals) == [key.name for key in LOUDNESS.keys]
    assert set(found.intervals.values()) == {None}


@pytest.mark.parametrize(
    ("scored", "system", "ours", "rankable"),
    [(20, 0, 0, True), (19, 1, 0, True), (18, 1, 0, False), (99, 0, 1, False), (0, 0, 0, False), (0, 3, 0, False)],
)
def test_a_system_is_ranked_with_95_percent_scored_and_nothing_missing_by_our_fault(
    scored: int, system: int, ours: int, rankable: bool
) -> None:
    results = [
        *scores(*[0.5] * scored),
        *[Unscored("silent", "system")] * system,
        *[Unscored("no weights", "ours")] * ours,
    ]
    assert aggregate(MATTR, results).rankable is rankable
