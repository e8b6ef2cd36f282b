"""What tests of metrics share."""

from functools import partial
from pathlib import Path

import pytest

from podeval.recording import speaker_turns
from podeval.recording.cache import Cache


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
