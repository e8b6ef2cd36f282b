"""The one published script behind PodEval's Table 6 is recomputed."""

import pytest

from podeval.validation.papers import recompute


def test_the_published_script_of_the_arts_category_is_set_next_to_the_printed_row() -> None:
    """Values: an own loop over the tokens of Arts_19 for Distinct-2 and MATTR, in the project's review of 2026-11."""
    figures = [one for one in recompute() if one.material.endswith("Arts_19")]
    values = {one.figure: (one.printed, one.recomputed) for one in figures}
    assert values == {
        "mooncast: Distinct-2, Arts": (0.9252, pytest.approx(0.915184, abs=1e-6)),
        "mooncast: MATTR, Arts": (0.637, pytest.approx(0.637555, abs=1e-6)),
        "mooncast: Info-Dens, Arts": (6.2335, pytest.approx(6.191811, abs=1e-6)),
    }
    assert not any(one.follows for one in figures), "one script of three is another figure"
