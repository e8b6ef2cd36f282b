from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.speech import Speech
from podeval.text.script import Script

AWKWARD = "\x00😀 “quoted” \ud800 [laughs] " + "x" * 90 + " 12345678901234567890 𝐁𝐨𝐥𝐝 *stars*"


@pytest.fixture(scope="session")
def dialogue() -> Script:
    return Script.parse(
        [
            {"speaker": "Ann", "text": "Welcome to the show. Why is the ocean salty?"},
            {"speaker": "Ben", "text": "Rivers carry minerals from the rocks into the sea."},
            {"speaker": "Ben", "text": "😀…"},
            {"speaker": "Ann", "text": "And the water leaves again as rain. The salt stays."},
        ]
    )


@pytest.fixture(scope="session")
def awkward() -> Script:
    return Script.parse(
        [{"speaker": "Ann", "text": ""}, {"speaker": "Ben", "text": AWKWARD}, {"speaker": "Ann", "text": "\t\n"}]
    )


@pytest.fixture(scope="session")
def espeak() -> EspeakNg:
    system = EspeakNg()
    if reason := system.available():
        pytest.skip(reason)
    return system


@pytest.fixture(scope="session")
def espeak_speech(espeak: EspeakNg, dialogue: Script) -> Speech:
    return espeak.speak(dialogue)


@contextmanager
def sockets_that_refuse() -> Iterator[None]:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no network here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socket.socket.connect", refuse)
        patch.setattr("socket.getaddrinfo", refuse)
        yield


@pytest.fixture(scope="session")
def loaded_neural() -> HibariPiper:
    system = HibariPiper()
    if reason := system.available():
        pytest.skip(reason)
    return system


@pytest.fixture
def neural(loaded_neural: HibariPiper) -> Iterator[HibariPiper]:
    """The neural baseline on a machine whose sockets refuse; for one test, so that no other test inherits that."""
    with sockets_that_refuse():
        yield loaded_neural


@pytest.fixture(scope="session")
def neural_speech(loaded_neural: HibariPiper, dialogue: Script) -> Speech:
    with sockets_that_refuse():
        return loaded_neural.speak(dialogue, seed=1)


@pytest.fixture(scope="session")
def assert_turns_hold_the_speech() -> Callable[[Speech], None]:
    """Turns in order and inside the audio, loud where they say, silent between them."""

    def check(speech: Speech) -> None:
        end = 0.0
        for turn in speech.turns:
            assert end <= turn.start < turn.end <= speech.duration + 1e-6
            assert not np.any(speech.samples[_frame(speech, end) : _frame(speech, turn.start)])
            said = speech.samples[_frame(speech, turn.start) : _frame(speech, turn.end)]
            assert 20 * np.log10(np.sqrt(np.mean(said**2))) > -32
            end = turn.end
        assert not np.any(speech.samples[_frame(speech, end) :])

    return check


def _frame(speech: Speech, seconds: float) -> int:
    return round(seconds * speech.rate)
