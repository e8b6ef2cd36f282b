"""A recording's diarised transcript, from models whose answers are known."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput, CannotScore
from podeval.models import registry
from podeval.models.interfaces import SpeakerTurn, Transcript, Word
from podeval.recording.cache import Cache
from podeval.recording.recording import Recording
from podeval.recording.speaker_turns import transcribe_and_diarise
from podeval.text.dialogue_segments import Segment, Utterance

NOISE = np.random.default_rng(0).uniform(-0.1, 0.1, 160_000).astype(np.float32)
WORDS = (Word("Hello", 0.0, 0.4), Word("there.", 0.4, 1.0), Word("Hi.", 1.2, 1.6), Word("Bye.", 8.0, 8.5))
TURNS = (SpeakerTurn("S1", 0.0, 1.1), SpeakerTurn("S2", 1.1, 3.0))


def hears(monkeypatch: pytest.MonkeyPatch, words: tuple[Word, ...], turns: tuple[SpeakerTurn, ...]) -> None:
    def transcribe(samples: Any, language: str | None) -> Transcript:
        if language not in (None, "en"):
            raise ValueError(f"{language!r} is not a valid language code")
        return Transcript(" ".join(word.text for word in words), "en", words)

    model = SimpleNamespace(transcribe=transcribe, detect_language=lambda _: "en", diarize=lambda samples: turns)
    monkeypatch.setattr(registry, "load", lambda job, profile: model)


def test_segments_carry_their_speakers_and_what_nobody_says_is_counted(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    hears(monkeypatch, WORDS, TURNS)
    transcript = transcribe_and_diarise(Recording.from_samples(NOISE, 16_000, cache=cache))
    assert transcript.segments == (Segment("S1", 0.0, 1.0, "Hello there."), Segment("S2", 1.2, 1.6, "Hi."))
    assert transcript.nobody == (Utterance("Bye.", 8.0, 8.5),)
    assert transcript.language == "en"


@pytest.mark.parametrize(
    ("words", "turns", "samples", "sentence"),
    [
        ((), TURNS, NOISE, "no words were recognised in show.wav; check that it contains speech"),
        (WORDS, (), NOISE, "no speaker was found in show.wav"),
        (WORDS, TURNS, 0 * NOISE, "digital silence"),
    ],
)
def test_without_speech_it_says_so(
    cache: Cache,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[Word, ...],
    turns: tuple[SpeakerTurn, ...],
    samples: Any,
    sentence: str,
) -> None:
    hears(monkeypatch, words, turns)
    with pytest.raises(CannotScore, match=sentence):
        transcribe_and_diarise(Recording.from_samples(samples, 16_000, cache=cache, name="show.wav"))


def test_a_language_that_the_transcriber_does_not_know_is_refused(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    hears(monkeypatch, WORDS, TURNS)
    with pytest.raises(BadInput, match="does not support the language 'klingon'; give its code, such as en or zh"):
        transcribe_and_diarise(Recording.from_samples(NOISE, 16_000, cache=cache), "klingon")
