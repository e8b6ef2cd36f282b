"""A script whose two speakers have reference voices, and the classes of the real packages, alone."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.systems.speech import Ask, Reference
from podeval.text.script import Turn
from tests.fakes.loopback_kinds import FIRST, SECOND, WORDS


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Two speakers with reference voices that nobody confuses, for servers that want a key."""
    monkeypatch.setenv("PODEVAL_SERVER_KEY", "s3cret")
    voices = {}
    for number, (speaker, words) in enumerate(WORDS.items()):
        tone = (0.2 * np.sin(np.arange(48_000) / (9 + 7 * number))).astype(np.float32)
        soundfile.write(tmp_path / f"{speaker}.flac", tone, 24_000)
        voices[speaker] = Reference(audio=str(tmp_path / f"{speaker}.flac"), text=words)
    script = (Turn("Ann", FIRST), Turn("Ben", SECOND), Turn("Ann", FIRST))
    return Ask(id="one", script=script, voices=voices)


REFERENCES = {
    "openai": ("openai", ["types/audio/speech_model.py", "types/audio/speech_create_params.py"], "SpeechCreateParams"),
    "vllm_omni": ("vllm_omni", ["entrypoints/openai/protocol/audio.py"], "OpenAICreateSpeechRequest"),
    "sglang_omni": ("sglang_omni", ["client/types.py", "serve/protocol.py"], "CreateSpeechRequest"),
    "gemini": ("google", ["genai/_common.py", "genai/types.py"], "GenerateContentResponse"),
}
"""The package, the modules that are loaded of it, and the class of its requests (of Gemini, that of its answers)."""


@pytest.fixture
def load_reference(reference_packages: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Load modules of a package without what its `__init__` files import; returns the class of its requests."""

    def load(name: str) -> Any:
        package, files, kind = REFERENCES[name]
        if not (reference_packages / package).is_dir():
            pytest.skip(f"no {package} among the reference packages; `make reference-packages` gets it")
        module = ModuleType(package)
        for file in files:
            path = Path(package, file)
            for parent in list(path.parents)[:-1]:
                stub = ModuleType(".".join(parent.parts))
                stub.__path__ = [str(reference_packages / parent)]
                monkeypatch.setitem(sys.modules, stub.__name__, sys.modules.get(stub.__name__, stub))
            dotted = ".".join(path.with_suffix("").parts)
            spec = importlib.util.spec_from_file_location(dotted, reference_packages / path)
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, dotted, module)
            spec.loader.exec_module(module)
        return getattr(module, kind)

    return load
