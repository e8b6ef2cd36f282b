"""Recordings that need no model, and a cache of each test's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

RATE = 16_000


@pytest.fixture
def voice(tmp_path: Path, speech_like: Any) -> Path:
    """A recording of 6 s at 16 kHz, mono."""
    path = tmp_path / "voice.wav"
    soundfile.write(path, speech_like, RATE, subtype="FLOAT")
    return path


@pytest.fixture
def two_voices(tmp_path: Path, speech_like: Any) -> Path:
    """A folder of two recordings, one louder than the other, and a note that is none."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    soundfile.write(folder / "one.wav", speech_like, RATE, subtype="FLOAT")
    soundfile.write(folder / "two.wav", 0.5 * speech_like, RATE, subtype="FLOAT")
    (folder / "notes.txt").write_text("not a recording")
    return folder


@pytest.fixture
def silence(tmp_path: Path) -> Path:
    path = tmp_path / "silence.wav"
    soundfile.write(path, np.zeros(2 * RATE), RATE)
    return path
