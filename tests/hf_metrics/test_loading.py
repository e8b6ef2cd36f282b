"""`evaluate.load` as a user's process does it: without network after an installation, and from a Hub."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.files import locate_hub_source
from podeval.measuring.space_files import install
from podeval.metrics import catalogue

# Without transformers, which `evaluate` imports where it can: 5 s for what takes no part in loading a module.
LOAD_ALL = """
import json, socket, sys
sys.modules["transformers"] = None
import evaluate
del sys.modules["transformers"]
try:
    socket.create_connection(("192.0.2.1", 80), timeout=1)
except OSError as refusal:
    assert "no network in this test" in str(refusal), refusal
found = {}
for name in NAMES:
    loaded = evaluate.load(f"podeval/{name}")
    found[name] = [type(loaded).__name__, loaded.name, list(loaded.features)]
found["values"] = {
    "mattr": evaluate.load("podeval/mattr").compute(predictions=["a b a b"])["mattr"],
    "loudness": evaluate.load("podeval/loudness").compute(predictions=["episode.wav"])["scored"],
}
print(json.dumps(found))
"""


def program(names: tuple[str, ...]) -> str:
    return LOAD_ALL.replace("NAMES", repr(names))


def elsewhere(tmp_path: Path, samples: np.ndarray[Any, Any]) -> Path:
    """A working directory with nothing of the project in it but an episode."""
    soundfile.write(tmp_path / "episode.wav", samples, 16_000)
    return tmp_path


def expected(names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: [
            name.title().replace("_", ""),
            name,
            ["predictions", *(["references"] if catalogue.get(name).reference else [])],
        ]
        for name in names
    }
    return found | {"values": {"mattr": 0.5, "loudness": 1}}


def test_every_module_loads_without_network_after_the_installation(
    offline_modules: dict[str, str], run_python: Any, tmp_path: Path, speech_like: np.ndarray[Any, Any]
) -> None:
    output = run_python(program(catalogue.NAMES), cwd=elsewhere(tmp_path, speech_like), **offline_modules)
    assert json.loads(output.splitlines()[-1]) == expected(catalogue.NAMES)


@pytest.mark.long
def test_the_same_scripts_load_from_a_hub(
    loopback_hub: Any, run_python: Any, tmp_path: Path, speech_like: np.ndarray[Any, Any]
) -> None:
    names = ("mattr", "loudness", "sptd")
    environment = {"HF_ENDPOINT": loopback_hub.url, "HF_HOME": str(tmp_path / "hf")}
    output = run_python(program(names), cwd=elsewhere(tmp_path, speech_like), **environment)
    assert json.loads(output.splitlines()[-1]) == expected(names)
    asked = {(path, status) for method, path, status in loopback_hub.requests if "/sptd/" in path}
    assert asked == {
        ("/spaces/podeval/sptd/resolve/v0.4.6/sptd.py", 404),
        ("/spaces/podeval/sptd/resolve/main/sptd.py", 200),
    }
    assert {method for method, _, _ in loopback_hub.requests} == {"HEAD", "GET"}


def test_installing_again_is_harmless_and_leaves_one_copy(installed_here: dict[str, Path]) -> None:
    assert install() == installed_here
    assert tuple(installed_here) == catalogue.NAMES
    for name, path in installed_here.items():
        assert path.read_bytes() == (locate_hub_source("hf_metrics") / name / f"{name}.py").read_bytes()
        assert [folder for folder in path.parents[1].iterdir() if len(folder.name) == 64] == [path.parent]
