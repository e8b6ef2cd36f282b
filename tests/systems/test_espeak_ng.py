import subprocess
import time
from collections.abc import Callable
from importlib import util
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput, ModelMissing
from podeval.systems import engines, espeak_ng
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.speech import Speech, SpeechFailed
from podeval.text.script import Script


def median_pitch(speech: Speech, number: int) -> float:
    """F0 in Hz of one turn, by autocorrelation of its voiced 40 ms frames."""
    turn = speech.turns[number]
    sound = speech.samples[round(turn.start * speech.rate) : round(turn.end * speech.rate), 0]
    frames = [sound[i : i + 882] for i in range(0, len(sound) - 882, 441)]
    found = []
    for frame in frames:
        correlation = np.correlate(frame, frame, "full")[881:]
        lag = 60 + int(np.argmax(correlation[60:320]))
        if correlation[lag] > 0.6 * correlation[0] > 0.01:
            found.append(speech.rate / lag)
    return float(np.median(found))


def test_it_speaks_each_turn_where_it_says(
    espeak_speech: Speech, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    assert_turns_hold_the_speech(espeak_speech)
    assert [turn.speaker for turn in espeak_speech.turns] == ["Ann", "Ben", "Ann"]
    assert espeak_speech.details["unspoken_turns"] == [2]
    assert espeak_speech.samples.dtype == np.float32
    assert espeak_speech.samples.shape[1] == 1
    assert 6 < espeak_speech.duration < 16  # 28 words
    assert 0 < espeak_speech.wall_seconds < espeak_speech.duration


def test_the_second_speaker_is_higher_than_the_first(espeak_speech: Speech) -> None:
    assert median_pitch(espeak_speech, 1) > 1.4 * median_pitch(espeak_speech, 0)


def test_a_seed_gives_the_same_bytes_at_any_time(espeak: EspeakNg, espeak_speech: Speech, dialogue: Script) -> None:
    time.sleep(1.1)  # left alone, espeak seeds the breath of its second voice with the second of the day
    assert espeak.speak(dialogue).samples.tobytes() == espeak_speech.samples.tobytes()
    assert espeak.speak(dialogue, seed=1).samples.tobytes() != espeak_speech.samples.tobytes()


def test_six_speakers_sound_different_and_a_seventh_is_refused(espeak: EspeakNg) -> None:
    turns = [{"speaker": str(n), "text": "The same words."} for n in range(7)]
    speech = espeak.speak(Script.parse(turns[:6]))
    sounds = {speech.samples[round(t.start * speech.rate) :][:8000].tobytes() for t in speech.turns}
    assert len(sounds) == 6
    with pytest.raises(BadInput, match=r"has 6 voices, but the script needs 7"):
        espeak.speak(Script.parse(turns))


def test_chinese_is_read_by_mandarin_voices(espeak: EspeakNg) -> None:
    speech = espeak.speak(
        Script.parse([{"speaker": "甲", "text": "海水为什么是咸的？"}, {"speaker": "乙", "text": "因为河流。"}])
    )
    assert list(speech.details["voices"].values()) == ["sit/cmn:50", "sit/cmn+f3:60"]
    assert 1.5 < speech.duration < 8


def test_awkward_text_is_spoken(espeak: EspeakNg, awkward: Script) -> None:
    speech = espeak.speak(awkward)
    assert [turn.speaker for turn in speech.turns] == ["Ben"]
    assert speech.turns[0].text == awkward.turns[1].text


def test_a_script_without_words_is_refused(espeak: EspeakNg) -> None:
    with pytest.raises(BadInput, match="nothing in the script can be spoken"):
        espeak.speak(Script.parse("😀 …"))


def test_negative_seeds_are_refused(espeak: EspeakNg, dialogue: Script) -> None:
    with pytest.raises(BadInput, match="seed -1"):
        espeak.speak(dialogue, seed=-1)


def test_without_its_package_it_names_the_command(monkeypatch: pytest.MonkeyPatch, dialogue: Script) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert "pip install 'podeval[baselines]'" in str(EspeakNg().available())
    with pytest.raises(ModelMissing, match="espeakng-loader"):
        EspeakNg().speak(dialogue)


def test_a_crash_of_the_library_is_an_error_with_its_signal(
    espeak: EspeakNg, dialogue: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = ["import ctypes; ctypes.string_at(0)"]
    run: Callable[..., Any] = subprocess.run
    monkeypatch.setattr(engines.subprocess, "run", lambda command, **k: run([command[0], "-c", *crashing], **k))
    with pytest.raises(SpeechFailed, match="ended with signal 11"):
        espeak.speak(dialogue)


def test_an_unknown_voice_is_an_error_and_not_another_voice(
    espeak: EspeakNg, dialogue: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A voice that a version of espeak-ng lacks: the table of voices is changed for it.
    monkeypatch.setitem(espeak_ng._VOICES, "en", (("gmw/nobody", 50),) * 2)
    with pytest.raises(SpeechFailed, match="no voice 'gmw/nobody'"):
        espeak.speak(dialogue)
