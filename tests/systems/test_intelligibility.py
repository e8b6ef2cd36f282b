"""Listening by proxy: whisper-base has to understand what was said."""

from typing import Any

import numpy as np
import pytest

from podeval.audio.samples import mix_to_mono, resample
from podeval.errors import ModelMissing
from podeval.models import weights
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.speech import Speech
from podeval.text.comparison.word_errors import count_word_errors
from podeval.text.script import Script

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def whisper() -> Any:
    faster_whisper = pytest.importorskip("faster_whisper")
    try:
        folder = weights.locate_weights("whisper-base")
    except ModelMissing as absent:
        pytest.skip(str(absent))
    return faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)


def heard(speech: Speech, whisper: Any) -> str:
    samples = np.asarray(resample(mix_to_mono(speech.samples), speech.rate, 16000))
    segments, _ = whisper.transcribe(samples, language="en", beam_size=1)
    return " ".join(segment.text for segment in segments)


@pytest.mark.long
def test_the_neural_voices_are_understood(neural_speech: Speech, dialogue: Script, whisper: Any) -> None:
    errors = count_word_errors(dialogue.text, heard(neural_speech, whisper), "en")
    assert errors.wer <= 0.1, errors


@pytest.mark.long
def test_most_of_what_espeak_says_is_understood(espeak: EspeakNg, whisper: Any) -> None:
    script = Script.parse(
        [
            {"speaker": "Ann", "text": "Today we are talking about the history of coffee and where it comes from."},
            {
                "speaker": "Ben",
                "text": "It is a simple question, but the answer is longer than most people think.",
            },
            {"speaker": "Ann", "text": "Then tell us about the first people who made a drink out of it."},
            {"speaker": "Ben", "text": "They lived in the mountains, and they wanted to stay awake during the night."},
        ]
    )
    errors = count_word_errors(script.text, heard(espeak.speak(script), whisper), "en")
    assert errors.wer <= 0.3, errors
