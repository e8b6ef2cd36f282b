"""Listening by proxy: whisper-base has to understand what was said."""

from typing import Any

import numpy as np
import pytest

from podeval.audio.resample import mono, resample
from podeval.errors import ModelMissing
from podeval.models import weights
from podeval.systems.speech import Speech
from podeval.text.script import Script
from podeval.text.word_errors import word_errors

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def whisper() -> Any:
    faster_whisper = pytest.importorskip("faster_whisper")
    try:
        folder = weights.folder("whisper-base")
    except ModelMissing as absent:
        pytest.skip(str(absent))
    return faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)


@pytest.mark.parametrize(("speech", "ceiling"), [("neural_speech", 0.1), ("espeak_speech", 0.25)])
def test_the_words_are_understood(
    speech: str, ceiling: float, whisper: Any, dialogue: Script, request: pytest.FixtureRequest
) -> None:
    spoken: Speech = request.getfixturevalue(speech)
    samples = np.asarray(resample(mono(spoken.samples), spoken.rate, 16000))
    segments, _ = whisper.transcribe(samples, language="en", beam_size=1)
    heard = " ".join(segment.text for segment in segments)
    errors = word_errors(dialogue.text, heard, "en")
    assert errors.wer is not None
    assert errors.wer <= ceiling, heard
