from collections.abc import Callable

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.systems.controls import RepeatedSentence, ShuffledVoices, Silence
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.speech import Speech
from podeval.systems.text_cleaning import seconds_to_say
from podeval.text.script import Script


@pytest.fixture
def long_dialogue(dialogue: Script) -> Script:
    return Script(dialogue.turns * 3)


def test_silence_lasts_as_long_as_the_words_and_says_nothing(dialogue: Script) -> None:
    speech = Silence().speak(dialogue)
    assert speech.duration == pytest.approx(seconds_to_say(dialogue.text), abs=1e-3)
    assert not speech.samples.any()
    assert speech.turns == ()


def test_one_sentence_is_repeated_to_the_length_of_the_script(
    espeak: EspeakNg, long_dialogue: Script, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    speech = RepeatedSentence(espeak).speak(long_dialogue)
    assert_turns_hold_the_speech(speech)
    assert {(turn.speaker, turn.text) for turn in speech.turns} == {("Ann", "Welcome to the show.")}
    assert len(speech.turns) == speech.details["repetitions"] > 5
    assert speech.duration == pytest.approx(seconds_to_say(long_dialogue.text), rel=0.1)
    first, last = (
        speech.samples[round(t.start * speech.rate) : round(t.end * speech.rate)]
        for t in (speech.turns[0], speech.turns[-1])
    )
    assert np.array_equal(first, last)


def test_half_of_the_sentences_are_in_the_wrong_voice_and_turns_stay_the_scripts(
    espeak: EspeakNg, dialogue: Script, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    speech = ShuffledVoices(espeak).speak(dialogue)
    assert_turns_hold_the_speech(speech)
    assert [turn.speaker for turn in speech.turns] == ["Ann", "Ben", "Ann"]
    assert speech.details["sentences"] == 5
    assert len(speech.details["swapped_sentences"]) == 2


def test_shuffling_depends_on_the_seed_alone(espeak: EspeakNg, long_dialogue: Script) -> None:
    system = ShuffledVoices(espeak)
    first, again, other = (system.speak(long_dialogue, seed=seed) for seed in (1, 1, 2))
    assert first.samples.tobytes() == again.samples.tobytes()
    assert first.samples.tobytes() != other.samples.tobytes()
    assert first.details["swapped_sentences"] != other.details["swapped_sentences"]


def test_a_single_speaker_is_interrupted_by_a_second_voice(espeak: EspeakNg) -> None:
    speech = ShuffledVoices(espeak).speak(Script.parse("One sentence. Another one. A third. And a fourth."))
    assert set(speech.details["voices"]) == {"0", "1"}


@pytest.mark.long
@pytest.mark.models
def test_the_neural_voices_can_be_shuffled(neural: HibariPiper) -> None:
    speech = ShuffledVoices(neural).speak(Script.parse("Good morning. How are you?"))
    assert speech.details["voices"] == {"0": "hibari-heart", "1": "piper-joe"}
    assert len(speech.details["swapped_sentences"]) == 1


def test_shuffling_refuses_more_speakers_than_voices() -> None:
    three = Script.parse([{"speaker": name, "text": "Hello."} for name in "ABC"])
    if reason := HibariPiper().available():
        pytest.skip(reason)
    with pytest.raises(BadInput, match="2 voices, the script asks for 3"):
        ShuffledVoices(HibariPiper()).speak(three)


def test_a_control_passes_on_what_its_reader_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EspeakNg, "available", lambda self: "install X")
    assert RepeatedSentence(EspeakNg()).available() == "repeated_sentence speaks through espeak_ng: install X"
