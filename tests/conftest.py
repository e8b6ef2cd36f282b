"""What tests of several rooms share: real files where they are, generated audio, processes without network."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY / "../shared/data"

NO_NETWORK = """
import socket

def _refuse_all_but_loopback(connect):
    def guarded(self, address, *rest):
        if self.family != socket.AF_UNIX and address[0] != "127.0.0.1":
            raise OSError(f"no network in this test, {address} was asked for")
        return connect(self, address, *rest)
    return guarded

socket.socket.connect = _refuse_all_but_loopback(socket.socket.connect)
socket.socket.connect_ex = _refuse_all_but_loopback(socket.socket.connect_ex)
"""

RunPython = Callable[..., str]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real files and golden values beside the repository; absent in a public checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"no real files at {SHARED.resolve()}")
    return SHARED


@pytest.fixture(scope="session")
def speech_like() -> np.ndarray[Any, np.dtype[np.float32]]:
    """6 s at 16 kHz of syllables that swell and fade: a voice's spectrum and rhythm, no words; shape (frames,)."""
    rate = 16_000
    time = np.arange(6 * rate) / rate
    pitch = 120 + 15 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = sum(np.sin(k * phase) / k for k in range(1, 25))
    envelope = np.clip(np.sin(2 * np.pi * 1.5 * time), 0, 1)
    noise = np.random.default_rng(0).normal(0, 1e-3, time.size)
    return np.asarray(0.2 * voice * envelope + noise, dtype=np.float32)


@pytest.fixture(scope="session")
def run_python(tmp_path_factory: pytest.TempPathFactory) -> RunPython:
    """Run a program in a fresh process that reaches loopback only, and give its standard output."""
    guard = tmp_path_factory.mktemp("no-network")
    (guard / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")

    def run(program: str, *, cwd: Path | None = None, **environment: str) -> str:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        paths = [str(guard), str(REPOSITORY / "benchmark")]
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            cwd=cwd or guard,
            env=kept
            | {
                "PYTHONPATH": os.pathsep.join(paths),
                "HF_UPDATE_DOWNLOAD_COUNTS": "0",
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "GRADIO_ANALYTICS_ENABLED": "False",
                "OMP_NUM_THREADS": "1",
            }
            | environment,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def offline_modules(tmp_path_factory: pytest.TempPathFactory, run_python: RunPython) -> dict[str, str]:
    """The environment of a machine without network on which `podeval metrics install` was run."""
    home = tmp_path_factory.mktemp("hf-home")
    environment = {"HF_HOME": str(home), "HF_MODULES_CACHE": str(home / "modules"), "HF_EVALUATE_OFFLINE": "1"}
    run_python(
        "import sys; sys.argv = ['podeval', 'metrics', 'install']; from podeval.cli import main; main()", **environment
    )
    return environment


@pytest.fixture
def loopback_hub() -> Iterator[Any]:
    """A Hub on loopback with the metric Spaces of this checkout."""
    spec = importlib.util.spec_from_file_location("loopback_hub", Path(__file__).parent / "loopback_hub.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.LoopbackHub(REPOSITORY / "hf_metrics") as hub:
        yield hub
