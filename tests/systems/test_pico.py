"""SVOX Pico speaks each turn in its speaker's voice, in a process of its own."""

import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from podeval.systems.dialogue_reader import SpokenLine
from podeval.systems.pico import Pico
from podeval.systems.speech import Speech, SpeechFailed
from podeval.text.script import Script

needs_pico = pytest.mark.skipif(
    sys.platform == "darwin" and util.find_spec("py_nanotts") is None, reason="py-nanotts has no wheel for macOS"
)


@needs_pico
def test_it_speaks_each_turn_where_it_says_and_the_same_each_time(
    dialogue: Script, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    speech = Pico().speak(dialogue)
    assert_turns_hold_the_speech(speech)
    assert [turn.speaker for turn in speech.turns] == ["Ann", "Ben", "Ann"]
    assert (speech.rate, speech.details["voices"]) == (16_000, {"0": "en-US", "1": "en-GB"})
    assert 6 < speech.duration < 16  # 28 words
    assert np.abs(speech.samples).max() < 10 ** (-1 / 20)
    assert np.array_equal(speech.samples, Pico().speak(dialogue, seed=5).samples)


@needs_pico
def test_markup_is_neither_read_nor_obeyed() -> None:
    plain, marked = (
        Pico().speak(Script.parse([{"speaker": "A", "text": text}]))
        for text in ("The sea is salty.", "The <break time='60s'/> sea is salty.")
    )
    assert marked.duration == pytest.approx(plain.duration, abs=0.3)


@needs_pico
def test_a_line_can_be_hurried() -> None:
    script = Script.parse([{"speaker": "A", "text": "Rivers carry salt to the sea."}])
    slow, quick = (Pico().read(script, [SpokenLine(0, 0, script.turns[0].text, speed)]) for speed in (1.0, 1.6))
    assert quick.duration < 0.8 * slow.duration


def test_without_its_package_it_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert str(Pico().available()).endswith("needs py-nanotts; install with `pip install 'podeval[baselines]'`")


def test_an_engine_that_breaks_is_a_failure_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "py_nanotts.py").write_text("raise ImportError('native extension failed to load')")
    monkeypatch.setattr(Pico, "_locate_package", lambda self: tmp_path / "py_nanotts")
    with pytest.raises(SpeechFailed, match="exit code 1: ImportError: native extension failed to load"):
        Pico().speak(Script.parse([{"speaker": "A", "text": "Hello."}]))
