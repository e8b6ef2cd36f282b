"""Rows with audio are read as a dataset's card says, in an environment without torchcodec."""

from pathlib import Path
from typing import Any

import pytest

from tests.datasets.test_real_pod import made


def test_rows_with_audio_are_read_as_the_card_says_without_torchcodec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code of the card runs as printed, but for where the dataset is; without the cast a row needs torchcodec."""
    folder = made(tmp_path, configs=["voices"])
    card = (folder / "README.md").read_text(encoding="utf-8")
    code = next(block for block in card.split("```python\n")[1:] if "cast_column" in block).partition("```")[0]
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf"))
    place: dict[str, Any] = {}
    exec(code.replace("podeval/real_pod", str(folder)), place)
    assert place["rate"] == 24_000
    assert len(place["samples"]) > 24_000
    assert place["rows"][0]["audio"]["bytes"]
