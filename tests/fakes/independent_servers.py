"""Two speech servers that podeval's authors did not write, as processes on loopback that speak in Piper's voice joe.

`piper`: the HTTP server of piper-tts 1.8.0, with an API of its own (`POST /synthesize`). `local_tts`: local-tts-studio
1.0.0, which speaks OpenAI's API (`POST /v1/audio/speech`) and asks for a key. What they need besides podeval's own
environment lies in the folder of tests/reference-packages.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podeval.errors import ModelMissing
from podeval.models import weights

VOICE = "en_US-joe-medium"
SERVER_KEY = "key-of-the-studio"
NEEDS = {"piper": ("flask", "blinker"), "local_tts": ("local_tts",)}
"""Packages in the folder of reference packages, by server."""
FUNCTION = """
import io, os
import httpx, numpy as np, soundfile

def speak(turns, voices, language):
    sounds = []
    for turn in turns:
        asked = {"text": turn.text, "voice": "en_US-joe-medium"}
        answer = httpx.post(os.environ["PIPER_URL"] + "/synthesize", json=asked, timeout=120).raise_for_status()
        samples, rate = soundfile.read(io.BytesIO(answer.content))
        sounds += [samples, np.zeros(rate // 4)]
    return np.concatenate(sounds), rate
"""
"""A file for `--python` that asks Piper's server, whose API it knows; podeval knows nothing of it."""


def require(server: str, packages: Path) -> None:
    """Skip the test where the server, its voice or podeval's knowledge of it is missing."""
    if missing := [name for name in NEEDS[server] if not (packages / name).is_dir()]:
        pytest.skip(f"no {' or '.join(missing)} among the reference packages; `make reference-packages` gets them")
    try:
        weights.locate_weights("piper-joe")
    except ModelMissing as absent:
        pytest.skip(str(absent))


@contextmanager
def serve(server: str, packages: Path, home: Path) -> Iterator[str]:
    """Run a server for as long as the block runs, and yield its address.

    Args:
        server: `piper` or `local_tts`.
        packages: folder of the reference packages.
        home: folder for what it writes.
    """
    voice = weights.locate_weights("piper-joe") / f"{VOICE}.onnx"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = ["--host", "127.0.0.1", "--port", str(port)]
    command = {"piper": ["piper.http_server", "-m", str(voice)], "local_tts": ["local_tts.cli"]}[server]
    home.mkdir(parents=True, exist_ok=True)
    chosen = {"voices_dir": str(voice.parent), "api_default_voice": VOICE, "device": "cpu"}
    settings = {**chosen, "api_key_enabled": True, "api_key": SERVER_KEY}
    (home / "settings.json").write_text(json.dumps(settings))
    environment = {"PYTHONPATH": str(packages), "LOCAL_TTS_DATA_DIR": str(home), "OMP_NUM_THREADS": "1"}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, *place], env=os.environ | environment, cwd=home, stdout=log, stderr=log
        )
        try:
            _wait_for(port, process, home / "log")
            yield f"http://127.0.0.1:{port}" + ("/v1" if server == "local_tts" else "")
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
