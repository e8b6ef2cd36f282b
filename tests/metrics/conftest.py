"""What tests of metrics share."""

import sys
from functools import partial
from pathlib import Path

import pytest

from podeval.recording import speaker_turns
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


@pytest.fixture(autouse=True)
def _turns_of_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A double says who speaks when by its own `turns`, as it has no words with times."""
    of_words = speaker_turns.align_turns
    monkeypatch.setattr(
        speaker_turns,
        "align_turns",
        lambda recording, *asked: getattr(recording, "turns", partial(of_words, recording))(*asked),
    )
