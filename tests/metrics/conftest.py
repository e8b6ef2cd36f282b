"""What tests of metrics share."""

import sys
from pathlib import Path

import pytest

from podeval.recording.cache import Cache


def _import_evaluate() -> None:
    """Import `evaluate` without transformers, of which no metric uses a part and which takes 4 s of processor time."""
    if "transformers" in sys.modules:
        return
    sys.modules["transformers"] = None  # type: ignore[assignment]
    try:
        import evaluate  # noqa: F401
    except ImportError:
        pass
    finally:
        del sys.modules["transformers"]


_import_evaluate()


@pytest.fixture(scope="module", autouse=True)
def _in_one_thread(one_thread: None) -> None:
    """Every module of this folder."""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")
