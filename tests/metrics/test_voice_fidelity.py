"""SIM, WSIM and timbre similarity on a stand-in for what models derive, against plain loops."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span, place_windows
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.models.interfaces import SpeakerTurn
from podeval.recording.speech_track import SpeakerVoice
from podeval.text.script import Script
from tests.fakes import scoring

Vector = np.ndarray[Any, np.dtype[np.float32]]
SCRIPT = Script.parse([{"speaker": "Ann", "text": "hello there"}, {"speaker": "Ben", "text": "good evening"}])


def vectors(seed: int, count: int) -> Vector:
    return np.random.default_rng(seed).normal(1.0, 0.6, (count, 8)).astype(np.float32)


def cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a.astype(float), b.astype(float)) / (np.linalg.norm(a) * np.linalg.norm(b)))


class Talk:
    """A recording in which each speaker in `voices` talks for so many seconds; 30 s in all."""

    duration, rate, notes = 30.0, 16_000, {"scored": "as it is"}

    def __init__(self, spoken: tuple[Span, ...] = (Span(0, 30),), **voices: tuple[float, Vector]) -> None:
        self.given, self.spoken = voices, spoken

    def through(self, rate: int) -> "Talk":
        return self

    def speech_track(self, source: str) -> "Talk":
        return self

    def require_sound(self, shortest: float = 0.0) -> None: ...

    def mono(self, rate: int) -> Vector:
        return np.zeros(rate * 30, np.float32)

    def speech(self) -> tuple[Span, ...]:
        return self.spoken

    def turns(self, script: Script | None = None, language: str | None = None) -> tuple[SpeakerTurn, ...]:
        return tuple(SpeakerTurn(name, 0.0, seconds) for name, (seconds, _) in self.given.items())

    def diarization(self) -> tuple[SpeakerTurn, ...]:
        return self.turns()

    def voices(self, turns: Sequence[SpeakerTurn]) -> tuple[SpeakerVoice, ...]:
        if [turn.speaker for turn in turns] == ["1"]:
            seconds, embeddings = next(iter(self.given.values()))
            return (
                SpeakerVoice("1", tuple(place_windows([Span(0, 30)], 3, 2))[: len(embeddings)], embeddings, seconds),
            )
        clips = place_windows([Span(0, 30)], 3, 2)
        return tuple(
            SpeakerVoice(name, tuple(clips[: len(e)]), e, seconds) for name, (seconds, e) in self.given.items()
        )


class Voice(np.ndarray[Any, np.dtype[np.float32]]):
    """A reference's embedding that also gives its samples: silence, which nobody plays back."""

    def mono(self, rate: int) -> Vector:
        return np.zeros(rate * 5, np.float32)


class References(Mapping[str, Vector]):
    def __init__(self, **embeddings: Vector) -> None:
        self.embeddings = embeddings

    def __getitem__(self, name: str) -> Vector:
        return self.embeddings[name].view(Voice)

    def __iter__(self) -> Iterator[str]:
        return iter(self.embeddings)

    def __len__(self) -> int:
        return len(self.embeddings)


def measured(name: str, talk: Talk, references: References, script: Script | None = SCRIPT, **chosen: Any) -> Score:
    inputs = {"recording": talk, "reference_voices": references} | ({"script": script} if script else {})
    return scoring.score(name, inputs, **chosen)


ANN, BEN = vectors(1, 5), vectors(2, 9)
TALK = Talk(Ann=(10.0, ANN), Ben=(20.0, BEN))
REFERENCES = References(Ann=vectors(3, 1)[0], Ben=vectors(4, 1)[0])
COSINES = {
    "Ann": cosine(ANN.mean(axis=0), REFERENCES["Ann"]),
    "Ben": cosine(BEN.mean(axis=0), REFERENCES["Ben"]),
}


def test_sim_is_the_mean_over_speakers_of_the_cosine_with_the_reference() -> None:
    found = measured("sim", TALK, REFERENCES)
    assert found.values["sim"] == pytest.approx(sum(COSINES.values()) / 2, abs=1e-6)
    assert found.notes["speakers"] == pytest.approx(COSINES, abs=1e-4)
    assert found.notes["scored"] == "as it is"


def test_the_podeval_variant_maps_the_cosine_to_0_and_1() -> None:
    found = measured("sim", TALK, REFERENCES, variant="podeval")
    assert found.values["sim"] == pytest.approx(sum((1 + c) / 2 for c in COSINES.values()) / 2, abs=1e-6)


@pytest.mark.parametrize("name", ["sim", "wsim", "timbre_similarity"])
def test_the_timeline_has_every_window_s_cosine_with_the_reference_of_its_speaker(name: str) -> None:
    found = measured(name, TALK, REFERENCES)
    expected = [(2.0 * i, cosine(window, REFERENCES["Ann"])) for i, window in enumerate(ANN)]
    expected += [(2.0 * i, cosine(window, REFERENCES["Ben"])) for i, window in enumerate(BEN)]
    assert list(found.timeline.starts) == sorted(start for start, _ in expected)
    assert found.timeline.values[name] == pytest.approx([value for _, value in sorted(expected)], abs=1e-4)
    assert (found.timeline.window, found.timeline.drift["per"]) == (3.0, "minute")
    if name != "timbre_similarity":
        halved = measured(name, TALK, REFERENCES, variant="podeval").timeline
        assert halved
        assert halved.values[name] == pytest.approx([(1 + value) / 2 for _, value in sorted(expected)], abs=1e-4)


def test_the_worst_window_is_the_least_alike_of_all() -> None:
    cosines = [cosine(window, REFERENCES[name]) for name, of in (("Ann", ANN), ("Ben", BEN)) for window in of]
    for name in ("sim", "timbre_similarity"):
        assert measured(name, TALK, REFERENCES).values["worst_window"] == pytest.approx(min(cosines), abs=1e-6)
    halved = measured("sim", TALK, REFERENCES, variant="podeval").values["worst_window"]
    assert halved == pytest.approx((1 + min(cosines)) / 2, abs=1e-6)


def test_wsim_weighs_each_speaker_by_its_seconds() -> None:
    found = measured("wsim", TALK, REFERENCES)
    assert found.values["wsim"] == pytest.approx((10 * COSINES["Ann"] + 20 * COSINES["Ben"]) / 30, abs=1e-6)


def test_without_a_script_references_go_to_the_speakers_they_fit_best_together() -> None:
    talk = Talk(S1=(10.0, BEN), S2=(20.0, ANN), S3=(1.0, vectors(9, 2)))
    references = References(Ann=ANN.mean(axis=0), Ben=BEN.mean(axis=0))
    found = measured("sim", talk, references, script=None)
    assert found.values["sim"] == pytest.approx(1.0, abs=1e-6)
    assert set(found.notes["speakers"]) == {"S1", "S2"}


def test_a_single_reference_is_for_a_recording_of_one_voice() -> None:
    reference = vectors(5, 1)[0]
    found = measured("sim", Talk(whoever=(12.0, ANN)), References(**{"": reference}), script=None)
    assert found.values["sim"] == pytest.approx(cosine(ANN.mean(axis=0), reference), abs=1e-6)


@pytest.mark.parametrize("name", ["sim", "wsim", "timbre_similarity"])
def test_a_single_reference_with_a_name_is_for_one_speaker_of_several(name: str) -> None:
    of_ben = References(Ben=BEN.mean(axis=0))
    for script, speaker in ((None, "S2"), (SCRIPT, "Ben")):
        talk = Talk(**{"Ann" if script else "S1": (10.0, ANN), speaker: (20.0, BEN)})
        found = measured(name, talk, of_ben, script=script)
        assert set(found.notes["speakers"]) == {speaker}
        assert found.notes["speakers_found"] == 2
        if name != "timbre_similarity":
            assert found.values[name] == pytest.approx(1.0, abs=1e-6)
    alone = measured(name, Talk(whoever=(20.0, BEN)), of_ben, script=Script.parse("one speaker only"))
    assert set(alone.notes["speakers"]) == {"1"}


def test_timbre_similarity_is_the_mean_over_windows_and_then_over_speakers() -> None:
    found = measured("timbre_similarity", TALK, REFERENCES)
    ann = np.mean([cosine(window, REFERENCES["Ann"]) for window in ANN])
    ben = np.mean([cosine(window, REFERENCES["Ben"]) for window in BEN])
    assert found.values["timbre_similarity"] == pytest.approx((ann + ben) / 2, abs=1e-6)
    assert len(found.timeline.starts) == 14


def test_windows_that_are_mostly_silence_are_left_out_unless_the_paper_s_way_is_asked_for() -> None:
    talk = Talk(spoken=(Span(0, 4),), Ann=(10.0, ANN))
    references = References(Ann=REFERENCES["Ann"])
    kept = measured("timbre_similarity", talk, references, script=None)
    whole = measured("timbre_similarity", talk, references, script=None, variant="lfs")
    assert kept.values["timbre_similarity"] == pytest.approx(np.mean([cosine(w, references["Ann"]) for w in ANN[:2]]))
    assert (kept.notes["windows_left_out"], whole.notes["windows_left_out"]) == (3, 0)
    assert whole.values["timbre_similarity"] == pytest.approx(np.mean([cosine(w, references["Ann"]) for w in ANN]))


@pytest.mark.parametrize("name", ["sim", "wsim"])
def test_windows_that_are_mostly_silence_say_nothing_of_a_voice(name: str) -> None:
    talk = Talk(spoken=(Span(0, 4),), whoever=(30.0, ANN))
    reference = REFERENCES["Ann"]
    found = measured(name, talk, References(**{"": reference}), script=None)
    assert found.values[name] == pytest.approx(cosine(ANN[:2].mean(axis=0), reference), abs=1e-6)
    assert (found.notes["windows"], found.notes["windows_left_out"]) == (2, 3)
    assert found.notes["seconds"] == {"1": 4.0}


def test_a_recording_whose_speech_is_thinly_spread_is_unscored() -> None:
    talk = Talk(spoken=tuple(Span(at, at + 0.5) for at in range(0, 30, 3)), whoever=(30.0, ANN))
    reason = unscored(talk, References(**{"": ANN[0]}), None)
    assert reason == "no window of 3 s of the recording has enough speech (at least 40 %)"


def unscored(talk: Talk, references: References, script: Script | None) -> str:
    inputs = {"recording": talk, "reference_voices": references} | ({"script": script} if script else {})
    result = scoring.unscored("sim", inputs)
    assert result.cause == "system"
    return result.reason


@pytest.mark.parametrize("name", ["sim", "wsim", "timbre_similarity"])
def test_the_notes_say_how_many_speakers_were_found_and_asked_for(name: str) -> None:
    three = Script.parse([{"speaker": who, "text": "hello there"} for who in ("Ann", "Ben", "Cem")])
    notes = measured(name, TALK, REFERENCES, script=three).notes
    assert (notes["speakers_found"], notes["speakers_asked"], notes["language"]) == (2, 3, "en")
    notes = measured(name, Talk(Ann=(10.0, ANN)), References(Ann=ANN[0]), script=three).notes
    assert (notes["speakers_found"], notes["speakers_asked"]) == (1, 3)


def test_a_speaker_that_is_not_heard_leaves_the_item_unscored() -> None:
    assert "no speech is heard from Ben" in unscored(Talk(Ann=(10.0, ANN)), REFERENCES, SCRIPT)


def test_fewer_speakers_than_references_leave_the_item_unscored() -> None:
    reason = unscored(Talk(S1=(10.0, ANN)), REFERENCES, None)
    assert "2 reference voices, but one speaker was found" in reason


def test_references_of_other_names_than_the_script_s_are_refused() -> None:
    with pytest.raises(BadInput, match=r"none of the reference voices \(Carl\) .* \(Ann, Ben\)"):
        catalogue.get("sim")({"recording": TALK, "reference_voices": References(Carl=ANN[0]), "script": SCRIPT})


def test_references_are_needed() -> None:
    with pytest.raises(BadInput, match="sim also needs a recording of the voice that each speaker should have"):
        catalogue.get("sim")({"recording": TALK})


def test_the_wrong_voice_for_half_of_the_time_is_seen_by_the_low_windows_where_the_mean_is_blunt() -> None:
    """Ten windows of Ann's voice, of which the second half is turned into another's."""
    own = REFERENCES["Ann"] + 0.02 * vectors(5, 10)
    other = np.concatenate([own[:5], 0.4 * own[5:] - 0.5 * vectors(6, 5)])
    right, wrong = (measured("sim", Talk(Ann=(20.0, e)), References(Ann=REFERENCES["Ann"])) for e in (own, other))
    lost = {key: right.values[key] - wrong.values[key] for key in ("sim", "low_windows", "worst_window")}  # type: ignore[operator]
    assert lost["low_windows"] > 2 * lost["sim"] > 0
    assert lost["worst_window"] > 2 * lost["sim"]
