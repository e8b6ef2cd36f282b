import json
import subprocess
import sys
from pathlib import Path

import pytest

from podeval.errors import BadInput, ModelMissing
from podeval.systems import registry
from podeval.text.script import Script


def test_every_system_is_found_by_its_own_name() -> None:
    rhythm, faults = ("drawn_gaps", "uneven_pace"), ("content_faults", "signal_faults")
    controls = ("silence", "repeated_sentence", "shuffled_voices", *rhythm, *faults)
    assert ("hibari_piper", "espeak_ng", "kokoro", "pico", "piper", *controls) == registry.NAMES
    assert tuple(system.name for system in registry.list_systems()) == registry.NAMES


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_system_states_what_it_is(name: str) -> None:
    system = registry.get(name)
    assert json.loads(json.dumps(system.generation))["system"] == name
    assert system.kind == ("model" if name in ("hibari_piper", "espeak_ng", "kokoro", "pico", "piper") else "control")


def test_an_unknown_name_suggests_the_closest() -> None:
    with pytest.raises(BadInput, match="did you mean espeak_ng"):
        registry.get("espeak-ng")


@pytest.mark.parametrize(("name", "voices"), [("hibari_piper", 2), ("pico", 2), ("kokoro", 5)])
def test_more_speakers_than_voices_and_another_language_are_refused(name: str, voices: int) -> None:
    reader = registry.get(name)
    turns = [{"speaker": str(number), "text": "Hello."} for number in range(voices + 1)]
    with pytest.raises(BadInput, match=f"{name} has {voices} voices, but the script needs {voices + 1}"):
        reader.lines(Script.parse(turns))
    with pytest.raises(BadInput, match=f"{name} reads en, but the script is in zh"):
        reader.lines(Script.parse("海水为什么是咸的？河流带来盐分。"))


@pytest.mark.parametrize(
    ("name", "file"), [("kokoro", r"kokoro-v1\.0\.int8\.onnx"), ("piper", r"en_US-kristin-medium\.onnx")]
)
def test_without_its_weights_a_system_names_the_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str
) -> None:
    monkeypatch.setenv("PODEVAL_MODELS", str(tmp_path))
    reader = registry.get(name)
    assert reader.available().endswith(f"are not installed; run `podeval models install --profile {name}`")
    with pytest.raises(ModelMissing, match=file):
        reader.speak(Script.parse([{"speaker": "Ann", "text": "Why is the sea salty?"}]))


def test_importing_the_systems_loads_no_engine() -> None:
    heavy = "{'onnxruntime', 'piper', 'hibari', 'torch', 'espeakng_loader', 'py_nanotts'}"
    code = f"import sys, podeval.systems.registry; sys.exit(' '.join({heavy} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
