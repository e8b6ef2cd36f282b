"""What a short command loads: torch takes longer to import than a clip takes to score."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

PROGRAM = """
import sys
from podeval.cli import main
try:
    main()
finally:
    print(len(sys.modules), *(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""
SPEECH = Path(__file__).parents[2] / "../shared/data/samples/dialogue_kokoro.flac"
HEAVY = ("torch", "transformers", "librosa", "numba", "pandas", "gradio", "onnxruntime", "datasets", "pyarrow")
HEAVY += ("scipy.signal", "scipy.stats", "scipy.sparse", "sqlalchemy", "httpx", "jinja2", "matplotlib", "sklearn")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds of speech at a level that no cache has seen before."""
    if not SPEECH.is_file():
        pytest.skip(f"no real files at {SPEECH.parent}")
    samples, rate = soundfile.read(SPEECH, dtype="float32", frames=10 * 24_000)
    path = tmp_path_factory.mktemp("start") / "clip.wav"
    soundfile.write(path, samples * (0.5 + 0.4 * np.random.default_rng(os.getpid()).random()), rate)
    return path


def run(*arguments: str) -> tuple[str, set[str], int]:
    """Run a command; return what it prints, which of the heavy packages it imported, and how many modules in all."""
    program = PROGRAM.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, *imported = done.stderr.splitlines()[-1].split()
    return done.stdout, set(imported), int(count)


@pytest.mark.long
@pytest.mark.models
def test_dnsmos_of_a_clip_needs_onnx_runtime_and_no_torch(clip: Path) -> None:
    # The first clip of all exports the networks, which takes torch.
    run("measure", "dnsmos", str(clip), "--json")
    samples, rate = soundfile.read(clip, dtype="float32")
    soundfile.write(clip, samples * 0.9, rate)
    printed, imported, _ = run("measure", "dnsmos", str(clip), "--json")
    assert 1 <= json.loads(printed)["ovrl"] <= 5
    assert imported == {"onnxruntime"}


def test_loudness_and_help_need_neither(clip: Path) -> None:
    """What makes them quick: 0.42 s for loudness and 0.12 s for --help on an idle machine, 24 November 2026."""
    _, imported, count = run("measure", "loudness", str(clip))
    assert imported == set()
    assert count < 750  # 645 then
    _, imported, count = run("--help")
    assert imported == set()
    assert count < 340  # 258 then, without numpy and pydantic
