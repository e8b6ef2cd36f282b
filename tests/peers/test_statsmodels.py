"""Our intervals and corrections against those of statsmodels, which is not installed with podeval."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from podeval.stats.agreement import cohen_kappa
from podeval.stats.bias import wilson
from podeval.stats.intervals import mean_ci
from podeval.stats.pair_comparisons import holm


@pytest.fixture(scope="module", autouse=True)
def statsmodels(reference_packages: Path) -> Iterator[None]:
    if not (reference_packages / "statsmodels").is_dir():
        pytest.skip("statsmodels is not among the reference packages; `make reference-packages` gets it")
    # At the end of the path: nothing that podeval uses comes from there.
    sys.path.append(str(reference_packages))
    yield
    sys.path.remove(str(reference_packages))


def test_wilsons_interval() -> None:
    from statsmodels.stats.proportion import proportion_confint

    for successes, n in ((0, 7), (1, 7), (8, 10), (50, 60), (999, 1000), (12, 12)):
        ours = wilson(successes, n)
        expected = proportion_confint(successes, n, alpha=0.05, method="wilson")
        assert (ours.low, ours.high) == pytest.approx(expected, abs=1e-12)


def test_holms_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    from statsmodels.stats.multitest import multipletests

    # It collects garbage in every call, which takes a second each in a process with many tests behind it.
    monkeypatch.setattr(gc, "collect", lambda: 0)
    random = np.random.default_rng(0)
    for size in (1, 2, 5, 40):
        for _ in range(50):
            p = random.beta(0.3, 3, size)
            assert holm(p).tolist() == multipletests(p, alpha=0.05, method="holm")[0].tolist()


def test_the_interval_of_a_mean() -> None:
    from statsmodels.stats.weightstats import DescrStatsW

    values = np.random.default_rng(1).normal(3, 2, 30)
    ours = mean_ci(values.tolist())
    assert (ours.low, ours.high) == pytest.approx(DescrStatsW(values).tconfint_mean(), abs=1e-9)


def test_the_interval_of_a_mean_in_clusters() -> None:
    """With clusters of one size, leaving out one of G moves the mean as CR1 has it, times G / (G - 1)."""
    import statsmodels.api as sm

    random = np.random.default_rng(2)
    clusters = np.repeat(np.arange(12), 5)
    values = random.normal(0, 1, 60) + random.normal(0, 1, 12)[clusters]
    ours = mean_ci(values.tolist(), clusters.tolist())
    fit = sm.OLS(values, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}, use_t=True
    )
    wider = fit.bse[0] * np.sqrt(12 / 11)
    half = wider * (fit.conf_int()[0][1] - fit.params[0]) / fit.bse[0]
    assert (ours.low, ours.high) == pytest.approx((fit.params[0] - half, fit.params[0] + half), rel=1e-6)


def test_cohens_kappa() -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    random = np.random.default_rng(3)
    first = random.integers(0, 4, 200)
    second = np.where(random.random(200) < 0.6, first, random.integers(0, 4, 200))
    table = np.zeros((4, 4))
    np.add.at(table, (first, second), 1)
    assert cohen_kappa(first.tolist(), second.tolist()).value == pytest.approx(cohens_kappa(table).kappa)
