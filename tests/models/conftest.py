"""Weights and real recordings for tests that need them; a test without its material is skipped and says so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from podeval.errors import ModelMissing
from podeval.models import weights


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
