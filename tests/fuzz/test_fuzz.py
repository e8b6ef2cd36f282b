"""A small share of what `studies/fuzz.py` does for hours, and every case once found."""

import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, _scratch, changed


@pytest.fixture(scope="module", autouse=True)
def _swept() -> object:
    import shutil

    yield
    shutil.rmtree(_scratch(), ignore_errors=True)
    # Others read from a folder of their own.
    _scratch.cache_clear()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_seeds_and_every_case_once_found_end_quietly_or_are_refused(name: str) -> None:
    for data in TARGETS[name].inputs(name):
        began = time.process_time()
        TARGETS[name].read_in_bounds(data)
        assert time.process_time() - began < 10


@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(
    max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)
@given(seed=st.integers(0, 2**32), picked=st.integers(0, 1_000), other=st.integers(0, 1_000))
def test_changed_inputs_end_quietly_or_are_refused(name: str, seed: int, picked: int, other: int) -> None:
    inputs = TARGETS[name].inputs(name)
    made = changed(TARGETS[name], inputs[picked % len(inputs)], inputs[other % len(inputs)], random.Random(seed))
    TARGETS[name].read_in_bounds(made)


@pytest.mark.space
def test_the_http_api_keeps_to_its_document(tmp_path: Path) -> None:
    pytest.importorskip("schemathesis", reason="schemathesis is not installed; pip install 'podeval[dev]'")
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    from tests.fuzz import http_api

    with http_api.site_in(tmp_path) as site:
        found = http_api.fuzz(site, examples=3, seconds=60, seed=1)
    assert found.asked > 20
    assert not found.failures
