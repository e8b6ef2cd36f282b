import json
import subprocess
import sys

import pytest

from podeval.errors import BadInput
from podeval.systems import registry


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
    with pytest.raises(BadInput, match="did you mean 'espeak_ng'"):
        registry.get("espeak-ng")


def test_importing_the_systems_loads_no_engine() -> None:
    heavy = "{'onnxruntime', 'piper', 'hibari', 'torch', 'espeakng_loader', 'py_nanotts'}"
    code = f"import sys, podeval.systems.registry; sys.exit(' '.join({heavy} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
