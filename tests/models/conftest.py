"""Weights and real recordings for tests that need them; a test without its material is skipped and says so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from podeval.errors import ModelMissing
from podeval.models import weights

SHARED_DATA = Path(__file__).parents[2] / "../shared/data"


@pytest.fixture(scope="module", autouse=True)
def _in_one_thread(one_thread: None) -> None:
    """Every module of this folder."""


@pytest.fixture(scope="session")
def weights_folder() -> Callable[[str], Path]:
    """The folder of installed weights by their name in the lock."""

    def folder(name: str) -> Path:
        try:
            return weights.locate_weights(name)
        except ModelMissing as missing:
            pytest.skip(str(missing))

    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files with values measured by the original code, kept beside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real files at {SHARED_DATA}")
    return SHARED_DATA
