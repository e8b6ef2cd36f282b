"""`podeval serve`, up to the point where it would wait for visitors."""

import importlib.util
import runpy
from pathlib import Path
from typing import Any

import pytest


def test_a_new_or_empty_folder_is_told(podeval: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("gradio is not installed")
    monkeypatch.setattr(runpy, "run_path", lambda *_, **__: {"serve": lambda *_: None})
    runs = tmp_path / "typo"
    serve = ("serve", "--runs", runs, "--port", "0")
    said = podeval(*serve, code=0)
    shown = "so the board shows only the papers' figures; choose another folder with --runs"
    assert f"{runs} is a new folder, {shown}" in said.err
    assert f"There are no runs in {runs}, {shown}" in podeval(*serve).err
