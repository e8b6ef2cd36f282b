"""Controls with planted faults: what is planted is there, and what is not, is as the reader says it."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from podeval import benchmarks
from podeval.audio import faults
from podeval.errors import BadInput
from podeval.recording import Recording
from podeval.systems.controls import CLIPPED, HOLE, ContentFaults, SignalFaults
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.speech import Speech
from podeval.text.script import Script
from tests.fakes.scoring import score

SCRIPT = Script.parse(
    [
        {"speaker": "Ann", "text": "The harbour was quiet that morning. Nobody had seen the ferry leave the old pier."},
        {"speaker": "Ben", "text": "Then somebody must have rowed across the bay before the sun was up."},
        {"speaker": "Ann", "text": "My brother keeps a wooden boat behind the house. It has not been used for years."},
        {"speaker": "Ben", "text": "Your brother has not been in town for seven weeks as far as we know."},
    ]
)


def test_one_sentence_is_missing_one_is_there_twice_and_one_turn_has_the_other_voice(
    espeak: EspeakNg, monkeypatch: pytest.MonkeyPatch, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    said = []
    read = espeak.read
    monkeypatch.setattr(
        espeak, "read", lambda script, lines, seed: said.extend(lines) or read(script, lines, seed=seed)
    )
    speech = ContentFaults(espeak).speak(SCRIPT, seed=3)
    assert_turns_hold_the_speech(speech)
    planted = speech.details["planted"]
    texts = [line.text for line in said]
    assert planted["omitted"] not in texts
    twice = texts.index(planted["repeated"])
    assert texts[twice + 1] == planted["repeated"].rstrip(".") + "!", "the same words, another sound"
    wrong = {line.turn for line in said if line.voice != line.turn % 2}
    assert wrong == {planted["wrong_voice"]}
    assert len(said) == 6, "six sentences less one and more one"


def test_places_depend_on_the_seed_alone(espeak: EspeakNg) -> None:
    for system in (ContentFaults(espeak), SignalFaults(espeak)):
        first, again, other = (system.speak(SCRIPT, seed=seed) for seed in (1, 1, 2))
        assert first.samples.tobytes() == again.samples.tobytes()
        assert first.details["planted"] != other.details["planted"]
        assert json.loads(json.dumps(system.generation))["planted"]


def test_the_signal_has_its_three_faults_where_they_are_said_to_be(espeak: EspeakNg) -> None:
    clean, faulty = espeak.speak(SCRIPT), SignalFaults(espeak).speak(SCRIPT)
    planted = faulty.details["planted"]
    looks = {"hole": faults.find_holes, "click": faults.find_clicks, "clipped": faults.find_clipped}
    for kind, find in looks.items():
        # eSpeak's own stops are digital silence, too.
        before = {span.start for span in find(clean.samples[:, 0], clean.rate)}
        new = [span for span in find(faulty.samples[:, 0], faulty.rate) if span.start not in before]
        assert [abs(span.start - planted[kind]) < 0.1 for span in new] == [True], kind
    differ = np.flatnonzero(clean.samples[:, 0] != faulty.samples[:, 0]) / clean.rate
    lengths = {"hole": HOLE, "click": 0.001, "clipped": CLIPPED}
    assert all(any(planted[k] - 0.001 <= t <= planted[k] + lengths[k] + 0.001 for k in looks) for t in differ)


def test_scripts_without_room_for_faults_are_refused(espeak: EspeakNg) -> None:
    with pytest.raises(BadInput, match="two speakers"):
        ContentFaults(espeak).speak(Script.parse("One sentence alone. And a second."))
    short = Script.parse([{"speaker": who, "text": "Good morning."} for who in "AB"])
    with pytest.raises(BadInput, match="needs a longer script"):
        ContentFaults(espeak).speak(short)


@pytest.mark.long
@pytest.mark.models
def test_what_listens_for_faults_falls_and_what_does_not_stays(neural: HibariPiper) -> None:
    """The clean reading beside both controls, by the embedded profile's models."""
    script = benchmarks.get("real_pod").items("demo")[0].script
    assert script
    values: dict[str, dict[str, float | None]] = {}
    for system in (neural, ContentFaults(neural), SignalFaults(neural)):
        speech = system.speak(script)
        recording = Recording.from_samples(speech.samples, speech.rate)
        values[system.name] = {}
        for name in ("content_errors", "speaker_attribution", "integrity"):
            values[system.name] |= score(name, {"recording": recording, "script": script}).values
    clean, content, signal = (values[name] for name in ("hibari_piper", "content_faults", "signal_faults"))
    assert clean["errors_per_1000"] == clean["faults_per_hour"] == clean["swapped_turns"] == 0
    assert content["swapped_turns"] == 1
    assert 0 not in (content["omitted"], content["repeated"])
    assert content["faults_per_hour"] == 0
    assert 0 not in (signal["holes"], signal["clicks"], signal["clipped"])
    assert signal["swapped_turns"] == 0
