from collections.abc import Callable
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.speech import Speech
from podeval.text.characters import clean_text
from podeval.text.script import Script

models = pytest.mark.models


@models
def test_it_speaks_each_turn_where_it_says(
    neural_speech: Speech, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    assert_turns_hold_the_speech(neural_speech)
    assert [turn.speaker for turn in neural_speech.turns] == ["Ann", "Ben", "Ann"]
    assert neural_speech.rate == 24000
    assert 6 < neural_speech.duration < 16  # 28 words
    assert np.abs(neural_speech.samples).max() < 10 ** (-1 / 20)
    assert neural_speech.wall_seconds > 0
    assert neural_speech.load_seconds > 0


@models
def test_a_seed_gives_the_same_bytes_and_another_seed_other_noise(
    neural: HibariPiper, neural_speech: Speech, dialogue: Script
) -> None:
    assert neural.speak(dialogue, seed=1).samples.tobytes() == neural_speech.samples.tobytes()
    other = neural.speak(dialogue, seed=2)
    assert other.samples.tobytes() != neural_speech.samples.tobytes()
    assert other.duration == pytest.approx(neural_speech.duration, rel=0.2)


@models
def test_awkward_text_and_overlong_sentences_are_spoken(neural: HibariPiper) -> None:
    text = "x" * 90 + " \x00 12345678901234567890 [a](/b/) " + "word " * 80
    speech = neural.speak(Script.parse([{"speaker": "A", "text": text}]))
    assert len(neural.lines(Script.parse([{"speaker": "A", "text": text}]))) > 1
    assert [turn.text for turn in speech.turns] == [clean_text(text)]
    assert speech.duration > 15


def test_without_its_packages_it_names_them_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None if name in ("hibari", "piper") else object())
    sentence = str(HibariPiper().available())
    assert "hibari-tts and piper-tts" in sentence
    assert "pip install 'podeval[baselines]'" in sentence


def test_without_joe_it_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PODEVAL_MODELS", str(tmp_path))
    monkeypatch.setattr(util, "find_spec", lambda name: object())
    sentence = str(HibariPiper().available())
    assert "joe" in sentence
    assert "podeval models install --profile" in sentence


def test_threads_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "3")
    assert HibariPiper().threads == 3
    monkeypatch.setenv("PODEVAL_THREADS", "many")
    with pytest.raises(BadInput, match="PODEVAL_THREADS"):
        HibariPiper()
