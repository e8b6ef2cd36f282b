"""Higgs Audio v2 with tiny random weights, where torchaudio loads: in a process that sees its pure Python."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import ModelMissing
from podeval.systems.adapters import line_models

PROGRAM = """
import json, sys
from pathlib import Path
packages, tests, folder = {packages!r}, {tests!r}, Path({folder!r})
sys.path[:0] = [packages, tests]
import numpy as np, soundfile
from tests.fakes import tiny_higgs
from podeval.systems.adapters import generate, presets
from podeval.systems.adapters.adapter import Log
from podeval.systems.adapters.adapter import Job

presets.PRESETS["brief"] = presets.Preset("brief", "", "", temperature=1.0, max_new_tokens=30)
model = tiny_higgs.higgs(folder / "model")
draw = np.random.default_rng(0)
soundfile.write(folder / "ann.wav", 0.1 * draw.standard_normal(24_000), 24_000)
lines = [("Ann", "Salt."), ("Ben", "Water."), ("Ann", "Sea.")]
script = [{{"speaker": who, "text": text}} for who, text in lines]
voices = {{"Ann": {{"audio": "ann.wav", "text": "Hello"}}}}
asks = [{{"id": "own", "script": script}}, {{"id": "given", "script": script, "voices": voices}}]
asks.append({{"id": "wordless", "script": script, "voices": {{"Ann": {{"audio": "ann.wav"}}}}}})
(folder / "items.jsonl").write_text("\\n".join(map(json.dumps, asks)))
told = {{}}
for name in ("one", "two"):
    job = {{"adapter": "text-to-speech", "model_folder": str(model), "items_file": "items.jsonl", "out_folder": name}}
    (folder / "job.json").write_text(json.dumps({{**job, "device": "cpu", "preset": "brief"}}))
    assert generate.run(Job.read(folder / "job.json"), folder / "job.json") == 0
    for (item, _), made in Log(folder / name).finished().items():
        sound = soundfile.read(folder / name / made.audio)[0] if made.audio else np.zeros(0)
        about = [made.error, made.details.get("voices"), len(made.turns)]
        told[f"{{name}}/{{item}}"] = [*about, len(sound), float(sum(abs(sound)))]
print(json.dumps(told))
"""


@pytest.mark.long
def test_it_keeps_a_voice_by_the_line_before(
    run_with_torch: Callable[[str], str], reference_packages: Path, tmp_path: Path
) -> None:
    if not (reference_packages / "torchaudio").is_dir():
        pytest.skip("no torchaudio among the reference packages; `make reference-packages` gets it")
    program = PROGRAM.format(
        packages=str(reference_packages), tests=str(Path(__file__).parents[3]), folder=str(tmp_path)
    )
    made: dict[str, Any] = json.loads(run_with_torch(program).strip().splitlines()[-1])
    error, voices, turns, frames, _ = made["one/own"]
    assert (error, voices, turns) == (None, {"Ann": "own 0", "Ben": "own 1"}, 3)
    assert frames > 0
    assert made["one/given"][1] == {"Ann": "reference", "Ben": "own 0"}
    assert made["one/own"][3:] != made["one/given"][3:], "the voice decides how it sounds"
    assert made["one/own"] == made["two/own"], "the seed decides what is drawn"
    assert "needs the transcript of a reference voice" in made["one/wordless"][0]


def test_without_torchaudio_it_says_what_brings_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torchaudio", None)
    with pytest.raises(ModelMissing, match=r"needs torchaudio, .*`pip install 'podeval\[higgs\]'`"):
        line_models.HiggsAudio(None, None, "cpu")  # type: ignore[arg-type]
