from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from podeval.benchmarks.item import read_scripts
from podeval.benchmarks.real_pod import SCRIPTS
from podeval.cli.demo import RHYTHM_SYSTEMS, RHYTHM_TOPIC
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.dialogue.turn_taking import FEWEST_EVENTS
from podeval.models import registry as models
from podeval.recording import Recording
from podeval.stats.turn_taking import count_people, follow_the_floor, jensen_shannon_distance
from podeval.systems import registry
from podeval.systems.controls import DrawnGaps, RepeatedSentence, ShuffledVoices, Silence, UnevenPace
from podeval.systems.dialogue_reader import estimate_seconds
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.speech import SpeakingSystem, Speech
from podeval.text.script import Script
from tests.fakes.scoring import score


@pytest.fixture
def long_dialogue(dialogue: Script) -> Script:
    return Script(dialogue.turns * 3)


def test_silence_lasts_as_long_as_the_words_and_says_nothing(dialogue: Script) -> None:
    speech = Silence().speak(dialogue)
    assert speech.duration == pytest.approx(estimate_seconds(dialogue.text), abs=1e-3)
    assert not speech.samples.any()
    assert speech.turns == ()


def test_one_sentence_is_repeated_to_the_length_of_the_script(
    espeak: EspeakNg, long_dialogue: Script, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    speech = RepeatedSentence(espeak).speak(long_dialogue)
    assert_turns_hold_the_speech(speech)
    assert {(turn.speaker, turn.text) for turn in speech.turns} == {("Ann", "Welcome to the show.")}
    assert len(speech.turns) == speech.details["repetitions"] > 5
    assert speech.duration == pytest.approx(estimate_seconds(long_dialogue.text), rel=0.1)
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


def conversation(turns: int) -> Script:
    """As many turns of two people, of some two seconds each."""
    lines = ("Rivers carry salt from the rocks to the sea.", "And the sea keeps it, when the water leaves.")
    return Script.parse([{"speaker": "AB"[turn % 2], "text": lines[turn % 2]} for turn in range(turns)])


def distance_from_people(speech: Speech) -> float:
    """The distance that `turn_taking` would give if it heard turns as they are spoken."""
    floor = follow_the_floor((turn.speaker, turn.start, turn.end) for turn in speech.turns)
    return jensen_shannon_distance(floor.counts, count_people("broadcast"))


def test_gaps_are_drawn_from_peoples_and_all_else_stays(espeak: EspeakNg) -> None:
    script = conversation(30)
    plain, drawn, again = (system.speak(script) for system in (espeak, DrawnGaps(espeak), DrawnGaps(espeak)))
    other_seed = DrawnGaps(espeak).speak(script, seed=1)
    starts = [turn.start - before.end for before, turn in pairwise(drawn.turns)]
    assert starts == pytest.approx(drawn.details["offsets"], abs=1e-3)
    assert min(starts) < 0 < max(starts)
    assert len({round(turn.start - before.end, 3) for before, turn in pairwise(plain.turns)}) == 1
    assert [turn.text for turn in drawn.turns] == [turn.text for turn in plain.turns]
    for one, other in zip(plain.turns, drawn.turns, strict=True):
        assert other.end - other.start == pytest.approx(one.end - one.start, abs=1e-3)
    assert np.abs(drawn.samples).max() <= np.abs(plain.samples).max() + 1e-6
    assert drawn.samples.tobytes() == again.samples.tobytes() != other_seed.samples.tobytes()
    assert distance_from_people(drawn) < distance_from_people(plain) - 0.25


def test_one_turn_has_no_gap_to_draw(espeak: EspeakNg) -> None:
    speech = DrawnGaps(espeak).speak(Script.parse("One sentence."))
    assert (len(speech.turns), speech.details["offsets"]) == (1, [])


def test_the_pace_goes_up_and_down_within_a_minute_and_turn_taking_stays(
    espeak: EspeakNg, assert_turns_hold_the_speech: Callable[[Speech], None]
) -> None:
    script = conversation(40)
    plain, uneven = espeak.speak(script), UnevenPace(espeak).speak(script)
    assert_turns_hold_the_speech(uneven)
    ratios = [
        (one.end - one.start) / (other.end - other.start) for one, other in zip(plain.turns, uneven.turns, strict=True)
    ]
    assert max(ratios) > 1.25
    assert min(ratios) < 0.8
    assert np.mean(ratios) == pytest.approx(1, abs=0.1)
    assert distance_from_people(uneven) == pytest.approx(distance_from_people(plain), abs=0.01)


def test_the_demo_shows_a_control_of_rhythm_on_a_script_that_has_turns_enough() -> None:
    script = read_scripts(SCRIPTS)[RHYTHM_TOPIC].script
    changes = sum(one.speaker != other.speaker for one, other in pairwise(script.turns))
    # Short turns are heard as backchannels, so that some are lost: half of the changes are still enough.
    assert changes >= 2 * FEWEST_EVENTS
    reader, control = (registry.get(name) for name in RHYTHM_SYSTEMS)
    assert len(script.speakers) <= len(reader.voices)
    assert (reader.kind, control.kind) == ("model", "control")


ELSEWHERE = {"wer": ("wer", 0.05), "dnsmos": ("ovrl", 0.1), "sptd": ("sptd", 0.1), "integrity": ("faults_per_hour", 0)}
"""What neither may move, and by how much it may differ by chance."""


def measure(system: SpeakingSystem, script: Script) -> dict[str, float]:
    """The keys that the controls of rhythm are looked at by."""
    speech = system.speak(script)
    recording = Recording.from_samples(speech.samples, speech.rate)
    values: dict[str, float] = {}
    for name in ("turn_taking", "pace", *ELSEWHERE):
        inputs = {"recording": recording} | ({"reference_text": script.text} if name == "wer" else {})
        found = score(name, inputs).values
        values |= {f"{name}.{key}": value for key, value in found.items() if value is not None}
    return values


@pytest.mark.long
@pytest.mark.models
@pytest.mark.timeout(900)
def test_controls_of_rhythm_move_what_they_must_and_nothing_else(loaded_neural: HibariPiper) -> None:
    for metric in ("turn_taking", "pace", *ELSEWHERE):
        for job in catalogue.get(metric).needs:
            if missing := models.get_card(job, "embedded").missing():
                pytest.skip(missing)
    script = read_scripts(SCRIPTS)["Sports_27"].script
    plain = measure(loaded_neural, script)
    drawn, uneven = (measure(control(loaded_neural), script) for control in (DrawnGaps, UnevenPace))
    # The reader's pauses are equal: people's are drawn, and the distance falls; nobody talks steadily on a wave.
    assert drawn["turn_taking.human_distance"] < plain["turn_taking.human_distance"] - 0.25
    assert uneven["pace.rate_cv"] > 2 * plain["pace.rate_cv"]
    assert uneven["turn_taking.human_distance"] == pytest.approx(plain["turn_taking.human_distance"], abs=0.1)
    assert drawn["pace.rate_cv"] == pytest.approx(plain["pace.rate_cv"], abs=0.02)
    for name, (key, most) in ELSEWHERE.items():
        for control in (drawn, uneven):
            assert control[f"{name}.{key}"] == pytest.approx(plain[f"{name}.{key}"], abs=most), name


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
    with pytest.raises(BadInput, match="2 voices, but the script needs 3"):
        ShuffledVoices(HibariPiper()).speak(three)


def test_a_control_passes_on_what_its_reader_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EspeakNg, "available", lambda self: "install X")
    assert (
        RepeatedSentence(EspeakNg()).available() == "repeated_sentence needs espeak_ng, which is not ready: install X"
    )
