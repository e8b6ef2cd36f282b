"""Weights and real recordings for tests that need them; a test without its material is skipped and says so."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import ModelMissing
from podeval.models import downloading, registry, weights


@pytest.fixture(scope="session")
def weights_folder() -> Callable[[str], Path]:
    """The folder of installed weights by their name in the lock."""

    def folder(name: str) -> Path:
        try:
            return weights.locate_weights(name)
        except ModelMissing as missing:
            pytest.skip(str(missing))

    return folder


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, Path], Any]]:
    """Install a file as if the address of these weights held it, and load the reference profile's model for a job."""
    monkeypatch.setenv("PODEVAL_MODELS", str(tmp_path / "models"))

    def install_and_load(name: str, job: str, path: Path) -> Any:
        content, pinned = path.read_bytes(), weights.lock()[name]
        file = replace(pinned.files[0], size=len(content), sha256=hashlib.sha256(content).hexdigest())
        monkeypatch.setattr(weights, "lock", lambda: {name: replace(pinned, files=(file,))})
        monkeypatch.setattr(downloading, "download", lambda url, to, **_: to.write_bytes(content))
        assert registry.install("reference", [job], print) == {}
        return registry.load(job, "reference")

    registry.build_model.cache_clear()
    yield install_and_load
    registry.build_model.cache_clear()
