"""Bootstrapped correlations equal scipy's on every draw; a planted control explains what it was planted to explain."""

from itertools import chain

import numpy as np
import pytest
from scipy import stats

from podeval.stats import clustered_correlations as clustered
from podeval.stats.pair_comparisons import expand_tail


def make_systems(count: int, each: int, seed: int = 0) -> tuple[list[float], list[float], list[int]]:
    random = np.random.default_rng(seed)
    quality = np.repeat(random.normal(size=count), each)
    x = (quality + random.normal(size=count * each)).round(1)
    y = (quality + random.normal(size=count * each)).round(1)
    return x.tolist(), y.tolist(), [number // each for number in range(count * each)]


def test_values_are_scipys_and_bounds_are_those_of_draws_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustered, "ROUNDS", 60)
    x, y, clusters = make_systems(9, 5)
    estimates = clustered.correlate_by_cluster(x, y, clusters)
    functions = (stats.spearmanr, stats.pearsonr, stats.kendalltau)
    assert [one.value for one in estimates] == pytest.approx([of(x, y).statistic for of in functions], abs=1e-12)
    # The same draws, each cluster as often as it was drawn.
    drawn = np.random.default_rng(0).multinomial(9, [1 / 9] * 9, size=60)
    rows = [list(chain.from_iterable([c * 5 + k for k in range(5)] * n for c, n in enumerate(draw))) for draw in drawn]
    for estimate, of in zip(estimates, functions, strict=True):
        figures = [of(np.array(x)[row], np.array(y)[row]).statistic for row in rows]
        tail = expand_tail(9, 0.95)
        assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(figures, (tail, 1 - tail))), abs=1e-9)


def test_blocks_of_rounds_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustered, "ROUNDS", 40)
    x, y, clusters = make_systems(6, 4)
    whole = clustered.correlate_by_cluster(x, y, clusters)
    monkeypatch.setattr(clustered, "_AT_ONCE", 100)
    assert clustered.correlate_by_cluster(x, y, clusters) == whole


def test_a_partial_correlation_is_that_of_the_residuals_of_ranks() -> None:
    x, y, clusters = make_systems(8, 6, seed=3)
    controls = [make_systems(8, 6, seed=seed)[0] for seed in (4, 5)]
    ranks = [stats.rankdata(values) for values in (x, y, *controls)]
    design = np.column_stack([np.ones(len(x)), *ranks[2:]])
    left = [values - design @ np.linalg.lstsq(design, values, rcond=None)[0] for values in ranks[:2]]
    estimate = clustered.correlate_partially(x, y, controls, clusters)
    assert estimate.value == pytest.approx(stats.pearsonr(*left).statistic, abs=1e-9)
    assert estimate.low is not None
    assert estimate.low < (estimate.value or 0)


def test_a_correlation_that_a_control_makes_vanishes_without_it_and_another_stays() -> None:
    random = np.random.default_rng(6)
    loudness, other = random.normal(size=200), random.normal(size=200)
    x, y = (loudness + 0.5 * random.normal(size=200) for _ in range(2))
    clusters = [number // 10 for number in range(200)]
    assert (clustered.correlate_by_cluster(x.tolist(), y.tolist(), clusters)[0].value or 0) > 0.7
    without = clustered.correlate_partially(x.tolist(), y.tolist(), [loudness.tolist()], clusters)
    assert without.low is not None
    assert without.low < 0 < (without.high or 0)
    assert (clustered.correlate_partially(x.tolist(), y.tolist(), [other.tolist()], clusters).value or 0) > 0.7


def test_what_is_not_defined_has_no_value_and_few_clusters_have_no_interval() -> None:
    constant = clustered.correlate_by_cluster([1.0] * 12, list(range(12)), [n // 2 for n in range(12)])
    assert [(one.value, one.low) for one in constant] == [(None, None)] * 3
    x, y, clusters = make_systems(4, 6)
    assert [one.low for one in clustered.correlate_by_cluster(x, y, clusters)] == [None] * 3
    assert clustered.correlate_partially(x, y, [x], clusters).value is None
    assert clustered.correlate_partially([1.0, 2.0], [2.0, 1.0], [[1.0, 3.0]], [0, 1]).value is None
