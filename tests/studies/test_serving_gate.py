"""The gate keeps its promise on the printed figures of vLLM-Omni's builds, where a threshold set by hand does not."""

import numpy as np
import pytest

from studies import serving_gate as study


@pytest.mark.parametrize("build", study.BUILDS)
def test_drawn_clips_have_the_printed_mean_and_median(build: study.Build) -> None:
    values = study.draw_clips(np.random.default_rng(0), [build], 0.5, clips=200_000)[0]
    assert values.mean() == pytest.approx(build.mean, abs=0.005)
    assert np.median(values) == pytest.approx(build.median, abs=0.02)


@pytest.mark.parametrize("comparisons", [60, pytest.param(400, marks=pytest.mark.long)])
def test_equal_builds_fail_one_time_in_twenty_at_most(comparisons: int) -> None:
    for own in study.OWN_SHARES:
        equal = study.compare_builds(study.MAIN, study.MAIN, own, comparisons)
        # Three standard errors above 5 %.
        assert equal.one_look <= equal.each_clip <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / comparisons)
        assert equal.threshold > 0.95, "it is red whatever changed"


def test_a_build_that_is_much_worse_is_caught_and_clips_that_break_are_too() -> None:
    worse = study.Build(0, 0.6, 0.35)
    assert study.compare_builds(study.MAIN, worse, 0.5, 20).one_look == 1
    assert study.share_caught(0.1, 0.75, 20) > 0.8
    assert study.share_caught(0.0, 0.5, 20) <= 0.15
