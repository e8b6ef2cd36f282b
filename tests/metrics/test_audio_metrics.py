"""Loudness on real samples; sptd, timbre_consistency, wer and dnsmos on a stand-in for what models derive."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Clip, Span, place_windows
from podeval.errors import BadInput, CannotScore, ModelMissing
from podeval.metrics import catalogue
from podeval.metrics.score import UNRANKED, Score, Unscored, describe_notes
from podeval.models.interfaces import SpeakerTurn, Transcript
from podeval.recording import Recording
from podeval.recording.speech_track import SpeakerVoice
from podeval.text.comparison.accepted_readings import AcceptedReadings
from podeval.text.script import Script
from tests.fakes.scoring import score, unscored

Vector = np.ndarray[Any, np.dtype[np.float32]]

TWO_SPEAKERS = Script.parse([{"speaker": "Ann", "text": "hello there"}, {"speaker": "Ben", "text": "good evening"}])


@dataclass
class Derived:
    """What metrics ask of a `Recording`, with answers given beforehand."""

    found_turns: tuple[SpeakerTurn, ...] = ()
    vectors: dict[str, Vector] = field(default_factory=dict)
    spoken: tuple[Span, ...] = ()
    heard: str = ""
    duration: float = 30.0
    rate: int = 16_000
    cancelled: float = 0.0
    refusal: Exception | None = None
    asked: list[object] = field(default_factory=list)

    notes: dict[str, Any] = field(default_factory=dict)
    stem: "Derived | None" = None

    def through(self, rate: int) -> "Derived":
        return self

    def speech_track(self, source: str = "auto") -> "Derived":
        return self.stem if self.stem and source == "auto" else self

    def require_sound(self, shortest: float = 0.0) -> None:
        if self.refusal:
            raise self.refusal

    def turns(self, script: Script | None = None, language: str | None = None) -> tuple[SpeakerTurn, ...]:
        self.asked.append((script, language))
        return self.found_turns

    def diarization(self) -> tuple[SpeakerTurn, ...]:
        return self.turns()

    def voices(self, turns: Sequence[SpeakerTurn]) -> tuple[SpeakerVoice, ...]:
        return tuple(self.voice(name, turns) for name in dict.fromkeys(turn.speaker for turn in turns))

    def voice(self, name: str, turns: Sequence[SpeakerTurn]) -> SpeakerVoice:
        if name in self.vectors:
            return SpeakerVoice(name, ((Span(0, 3),),), self.vectors[name][np.newaxis], 5.0)
        spans = [Span(turn.start, min(turn.end, self.duration)) for turn in turns if turn.speaker == name]
        clips = tuple(place_windows(spans, 3, 2)) or (tuple(spans),)
        return SpeakerVoice(name, clips, np.stack([embedding(clip) for clip in clips]), 5.0)

    def speech(self) -> tuple[Span, ...]:
        return self.spoken

    def transcript(self, language: str | None = None) -> Transcript:
        self.asked.append(language)
        return Transcript(self.heard, language or "en", ())

    def mono(self, rate: int = 16_000) -> Vector:
        return np.full(int(self.duration * self.rate), 0.1, np.float32)

    def speech_quality(self, windows: str, gain: float = 0.0, *part: Any, **options: Any) -> Vector:
        self.asked.append(windows)
        return np.array([[0.0, 3.0, 4.0, 2.0, 2.5]], np.float32)


def embedding(clip: Clip) -> Vector:
    """Some vector of a clip's own."""
    seed = round(sum(1000 * span.start + span.end for span in clip))
    return (1 + np.random.default_rng(seed).normal(0, 0.4, 8)).astype(np.float32)


def cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a.astype(float), b.astype(float)) / (np.linalg.norm(a) * np.linalg.norm(b)))


def talking(*speakers: str) -> Derived:
    turns = tuple(SpeakerTurn(name, 3.0 * i, 3.0 * i + 3) for i, name in enumerate(speakers))
    vectors = {name: embedding((Span(i, i + 7.0),)) for i, name in enumerate(dict.fromkeys(speakers))}
    return Derived(found_turns=turns, vectors=vectors, spoken=(Span(0, 30),))


# the speech stem


@pytest.mark.parametrize("name", ["wer", "sptd", "timbre_consistency"])
def test_speech_metrics_listen_to_the_speech_stem_unless_the_mix_is_asked_for(name: str) -> None:
    turns = tuple(SpeakerTurn(speaker, 6.0 * i, 6.0 * i + 6) for i, speaker in enumerate(("Ann", "Ben")))
    said = {"scored": "speech stem", "music_seconds": 12.5}
    stem = Derived(turns, spoken=(Span(0, 30),), heard="hello there good evening", notes=dict(said))
    mix = Derived(turns, spoken=(Span(0, 30),), heard="hello tea", stem=stem)
    inputs = {"recording": mix, "reference_text": TWO_SPEAKERS.text}
    told = {"speakers": 2} if name == "timbre_consistency" else {}
    by_stem, by_mix = (score(name, inputs, source=source, **told) for source in ("auto", "mix"))
    assert score(name, inputs, **told) == by_stem
    assert by_stem.notes.items() >= said.items()
    assert "scored" not in by_mix.notes
    assert (len(stem.asked), len(mix.asked)) == (2, 1)
    if name == "wer":
        assert (by_stem.values["wer"], by_mix.values["wer"]) == (0.0, 0.75)


# loudness


def stereo_and_mono(samples: Vector, **options: Any) -> tuple[Score, Score]:
    mono = Recording.from_samples(samples, 16_000)
    stereo = Recording.from_samples(np.stack([samples, samples], axis=1), 16_000)
    return score("loudness", {"recording": mono}, **options), score("loudness", {"recording": stereo}, **options)


def test_a_mono_file_on_two_channels_is_3_lu_louder_by_the_standard(speech_like: Vector) -> None:
    mono, stereo = stereo_and_mono(speech_like)
    assert stereo.values["integrated"] == pytest.approx((mono.values["integrated"] or 0) + 10 * np.log10(2), abs=1e-6)
    assert stereo.values["true_peak"] == pytest.approx(mono.values["true_peak"], abs=1e-5)
    assert (mono.notes["channels"], stereo.notes["channels"]) == (1, 2)


def test_a_mono_file_on_two_channels_reads_the_same_in_the_podeval_variant(speech_like: Vector) -> None:
    mono, stereo = stereo_and_mono(speech_like, variant="podeval")
    for key, value in mono.values.items():
        assert stereo.values[key] == pytest.approx(value, abs=1e-6), key


def test_the_variants_place_the_lower_edge_of_the_loudness_score_differently(speech_like: Vector) -> None:
    level = score("loudness", {"recording": Recording.from_samples(speech_like, 16_000)}).values["integrated"]
    assert level
    at_17_5 = Recording.from_samples(speech_like * 10 ** ((-17.5 - level) / 20), 16_000)
    assert score("loudness", {"recording": at_17_5}).values["integrated_score"] == 1.0
    podeval = score("loudness", {"recording": at_17_5}, variant="podeval").values
    assert podeval["integrated"] == pytest.approx(-17.5, abs=0.1)
    assert podeval["integrated_score"] == pytest.approx(np.exp(-0.0858 * 0.5), abs=0.01)


def test_appended_silence_makes_no_minute_of_programme(speech_like: Vector) -> None:
    sound = np.concatenate([speech_like[: 10 * 16_000], np.zeros(120 * 16_000, np.float32)])
    found = score("loudness", {"recording": Recording.from_samples(sound, 16_000)})
    assert set(found.notes[UNRANKED]) == {"range", "range_score"}


def test_a_recording_below_3_s_has_loudness_but_no_range_and_says_why(speech_like: Vector) -> None:
    found = score("loudness", {"recording": Recording.from_samples(speech_like[:32_000], 16_000)})
    assert found.values["range"] is None
    assert found.values["range_score"] is None
    assert found.values["integrated"] is not None
    assert "3 s" in found.notes["range"]


def test_the_timeline_of_a_long_recording_has_at_most_600_points(speech_like: Vector) -> None:
    """118 s have 1151 windows of 3 s every 0.1 s."""
    long = Recording.from_samples(np.tile(speech_like[::2], 20)[: 118 * 8000], 8000)
    timeline = score("loudness", {"recording": long}).timeline
    assert 300 < len(timeline.starts) <= 600
    assert np.diff(timeline.starts[:3]) == pytest.approx([0.2, 0.2])


SILENCE, NAN, SHORT = np.zeros(16_000), np.full(16_000, np.nan), np.full(1600, 0.5)
HEARING = ("loudness", "dnsmos", "sptd", "timbre_consistency")


@pytest.mark.parametrize(
    ("name", "samples", "reason"),
    [
        *[pytest.param(name, SILENCE, "silence", id=f"{name}-silence") for name in HEARING],
        *[pytest.param(name, NAN, "not numbers", id=f"{name}-nan") for name in HEARING],
        *[pytest.param(name, SHORT, "0.10 s", id=f"{name}-short") for name in HEARING if name != "sptd"],
    ],
)
def test_what_no_metric_can_score_is_unscored_before_any_model_is_needed(
    name: str, samples: Vector, reason: str
) -> None:
    found = unscored(name, {"recording": Recording.from_samples(samples, 16_000)})
    assert found.cause == "system"
    assert reason in found.reason


# sptd


def test_sptd_is_one_minus_the_mean_cosine_over_all_pairs_of_voices() -> None:
    recording = talking("Ann", "Ben", "Ann", "Cem")
    vectors = list(recording.vectors.values())
    distances = [1 - cosine(vectors[i], vectors[j]) for i in range(3) for j in range(i + 1, 3)]
    found = score("sptd", {"recording": recording})
    assert found.values == {"sptd": pytest.approx(sum(distances) / 3, abs=1e-6), "speakers": 3}
    assert found.notes["seconds"] == {"Ann": 6.0, "Ben": 3.0, "Cem": 3.0}
    assert found.notes["speakers_found"] == 3
    assert "speakers_asked" not in found.notes


def test_the_podeval_variant_of_sptd_is_half() -> None:
    inputs = {"recording": talking("Ann", "Ben")}
    paper, podeval = score("sptd", inputs).values["sptd"], score("sptd", inputs, variant="podeval").values["sptd"]
    assert paper
    assert podeval == pytest.approx(paper / 2)


def test_equal_voices_have_no_distance_and_opposite_ones_2() -> None:
    recording = talking("Ann", "Ben")
    recording.vectors["Ben"] = 3 * recording.vectors["Ann"]
    assert score("sptd", {"recording": recording}).values["sptd"] == pytest.approx(0, abs=1e-6)
    recording.vectors["Ben"] = -recording.vectors["Ann"]
    assert score("sptd", {"recording": recording}).values["sptd"] == pytest.approx(2)


def test_one_voice_is_unscored_and_says_how_many_were_asked_for() -> None:
    assert unscored("sptd", {"recording": talking()}).reason.endswith("found no speaker")
    assert unscored("sptd", {"recording": talking("Ann")}).reason.endswith("found one speaker")
    found = unscored("sptd", {"recording": talking("Ann"), "script": TWO_SPEAKERS})
    assert found == Unscored("needs at least two speakers, found one speaker of 2", "system")
    asked = catalogue.get("sptd")({"recording": talking("Ann")}, {"speakers": "3"})
    assert asked == Unscored("needs at least two speakers, found one speaker of 3", "system")


def test_another_number_of_speakers_than_asked_for_is_unscored_by_the_system_s_cause() -> None:
    three, sptd = talking("Ann", "Ben", "Cem"), catalogue.get("sptd")
    of_two = Unscored("there should be 2 speakers, but 3 are heard", "system")
    assert sptd({"recording": three, "script": TWO_SPEAKERS}) == of_two
    assert sptd({"recording": three}, {"speakers": 4}) == Unscored(
        "there should be 4 speakers, but 3 are heard", "system"
    )


def test_of_more_voices_than_there_should_be_the_most_alike_are_one_and_none_is_divided() -> None:
    turns = [("Ann", 0, 8), ("Bea", 8, 20), ("Ben", 20, 26), ("Cem", 26, 26.4)]
    recording = Derived(tuple(SpeakerTurn(*turn) for turn in turns), spoken=(Span(0, 26),))
    ann, ben = np.eye(8, dtype=np.float32)[:2]
    # Ann and Bea are one woman, and what is called Cem holds no speech.
    recording.vectors = {"Ann": ann, "Bea": ann + 0.2 * ben, "Ben": ben}
    result = score("sptd", {"recording": recording}, speakers=2)
    assert result.values["speakers"] == 2
    assert set(result.notes["seconds"]) == {"Bea", "Ben"}
    assert (result.notes["voices_heard"], result.notes["speakers_asked"]) == (3, 2)
    assert describe_notes(result)[0].startswith("3 voices are heard and there should be 2")
    four = catalogue.get("sptd")({"recording": recording}, {"speakers": 4})
    assert four == Unscored("there should be 4 speakers, but 3 are heard", "system")
    assert describe_notes(score("sptd", {"recording": recording})) == []
    assert "voices_heard" not in score("sptd", {"recording": recording}, speakers=3).notes


@pytest.mark.parametrize("beside", [{}, {"script": TWO_SPEAKERS}])
def test_as_many_speakers_as_asked_for_are_scored_and_noted(beside: dict[str, Any]) -> None:
    inputs = {"recording": talking("Ann", "Ben"), **beside}
    asked = score("sptd", inputs, speakers=2)
    assert asked.values == score("sptd", inputs).values
    assert (asked.notes["speakers_found"], asked.notes["speakers_asked"]) == (2, 2)


def test_a_number_of_speakers_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadInput, match="speakers must be 2 or more, or 0"):
        score("sptd", {"recording": talking("Ann", "Ben")}, speakers=1)
    with pytest.raises(BadInput, match="speakers=3 was given, but the script has 2"):
        score("sptd", {"recording": talking("Ann", "Ben"), "script": TWO_SPEAKERS}, speakers=3)


def test_sptd_leaves_out_windows_of_mostly_silence_as_sim_does() -> None:
    turns = (SpeakerTurn("Ann", 0, 9), SpeakerTurn("Ben", 9, 12))
    recording = Derived(turns, spoken=(Span(0, 6.5), Span(9, 12)))
    result = score("sptd", {"recording": recording})
    ann = np.mean([embedding((Span(start, start + 3),)) for start in (0, 2, 4)], axis=0)
    assert result.values["sptd"] == pytest.approx(1 - cosine(ann, embedding((Span(9, 12),))), abs=1e-6)
    assert result.notes["windows_left_out"] == 1


def test_a_script_that_is_not_heard_leaves_the_recording_unscored() -> None:
    recording = talking("Ann", "Ben")

    def turns(script: Script | None, language: str | None = None) -> tuple[SpeakerTurn, ...]:
        raise CannotScore("less than half of the script's words were recognised, so it is unknown who speaks when")

    recording.turns = turns  # type: ignore[method-assign]
    for name in ("sptd", "timbre_consistency"):
        assert "half of the script" in unscored(name, {"recording": recording, "script": TWO_SPEAKERS}).reason


def test_a_voice_of_zeros_is_our_fault_and_no_score() -> None:
    recording = talking("Ann", "Ben")
    recording.vectors["Ben"] = np.zeros(8, np.float32)
    with np.errstate(invalid="ignore"):
        assert unscored("sptd", {"recording": recording}).cause == "ours"


def test_the_script_s_language_is_the_one_transcribed_so_that_wer_shares_the_transcript() -> None:
    for name in ("sptd", "timbre_consistency"):
        recording = talking("Ann", "Ben", "Ann", "Ben")
        catalogue.get(name)({"recording": recording, "script": TWO_SPEAKERS})
        assert recording.asked == [(TWO_SPEAKERS, "en")]


@pytest.mark.parametrize("name", ["sptd", "timbre_consistency"])
@pytest.mark.parametrize(
    ("words", "asked"), [("добрый вечер", [None]), ("bonsoir à tous", ["en", None]), ("hello there", ["en"])]
)
def test_a_script_in_another_language_is_heard_in_the_one_the_transcriber_decides_on(
    name: str, words: str, asked: list[str | None]
) -> None:
    script = Script.parse([{"speaker": who, "text": words} for who in ("Ann", "Ben")])
    recording = Derived(ALONE, spoken=(Span(0, 30),))
    recording.found_turns = tuple(SpeakerTurn(who, at, at + 6) for who, at in (("Ann", 0), ("Ben", 6), ("Ann", 12)))
    turns = recording.turns

    def heard(script: Script | None, language: str | None = None) -> tuple[SpeakerTurn, ...]:
        found = turns(script, language)
        if words.startswith("bonsoir") and language:
            raise CannotScore("less than half of the script's words were recognised")
        return found

    recording.turns = heard  # type: ignore[method-assign]
    notes = score(name, {"recording": recording, "script": script}).notes
    assert [entry[1] for entry in recording.asked if isinstance(entry, tuple)] == asked
    # The stand-in transcriber says "en" when it decides.
    assert notes["language"] == "en"
    assert notes["speakers_asked"] == 2


# timbre_consistency


def windows(*clips: Sequence[tuple[float, float]]) -> list[Vector]:
    return [embedding(tuple(Span(*span) for span in clip)) for clip in clips]


def mean_cosine(vectors: list[Vector]) -> float:
    pairs = [cosine(a, b) for a, b in combinations(vectors, 2)]
    return sum(pairs) / len(pairs)


ALONE = (SpeakerTurn("S1", 0.5, 10.5),)


def test_one_speaker_s_windows_of_3_s_every_2_s_are_compared_in_all_pairs() -> None:
    recording = Derived(ALONE, duration=11.0, spoken=(Span(0, 11),))
    expected = windows([(0, 3)], [(2, 5)], [(4, 7)], [(6, 9)], [(8, 11)])
    found = score("timbre_consistency", {"recording": recording}, speakers=1)
    assert found.values["timbre_consistency"] == pytest.approx(mean_cosine(expected), abs=1e-6)
    assert found.notes["windows"] == 5
    assert found.timeline.starts == [0, 2, 4, 6, 8]
    # A window's own value is its mean likeness to the others.
    own = np.mean([cosine(expected[2], other) for i, other in enumerate(expected) if i != 2])
    assert found.timeline.values["timbre_consistency"][2] == pytest.approx(own, abs=1e-4)


def test_windows_that_are_mostly_silence_are_left_out_unless_the_paper_s_way_is_asked_for() -> None:
    recording = Derived(ALONE, duration=11.0, spoken=(Span(0, 4), Span(7, 11)))
    kept = windows([(0, 3)], [(2, 5)], [(6, 9)], [(8, 11)])
    found = score("timbre_consistency", {"recording": recording}, speakers=1)
    assert found.values["timbre_consistency"] == pytest.approx(mean_cosine(kept), abs=1e-6)
    assert (found.notes["windows"], found.notes["windows_left_out"]) == (4, 1)
    lfs = score("timbre_consistency", {"recording": recording}, variant="lfs", speakers=1)
    assert (lfs.notes["windows"], lfs.notes["windows_left_out"]) == (5, 0)


def test_each_speaker_s_speech_is_joined_and_scored_on_its_own() -> None:
    recording = Derived(
        duration=11.0,
        spoken=(Span(0, 11),),
        found_turns=(
            SpeakerTurn("Ann", 0, 3),
            SpeakerTurn("Ben", 3, 6),
            SpeakerTurn("Ann", 6, 9),
            SpeakerTurn("Ben", 9, 12),
            SpeakerTurn("Cem", 10, 11),
        ),
    )
    ann = windows([(0, 3)], [(2, 3), (6, 8)])
    ben = windows([(3, 6)], [(5, 6), (9, 11)])
    found = score("timbre_consistency", {"recording": recording}, speakers=3)
    expected = (mean_cosine(ann) + mean_cosine(ben)) / 2
    assert found.values["timbre_consistency"] == pytest.approx(expected, abs=1e-6)
    assert found.notes["speakers"].keys() == {"Ann", "Ben"}
    assert found.notes["speakers_too_short"] == 1


def test_one_speaker_of_a_script_of_three_has_its_own_turns_and_the_notes_say_so() -> None:
    three = Script.parse([{"speaker": who, "text": "hello there"} for who in ("Ann", "Ben", "Cem")])
    recording = Derived((SpeakerTurn("Ann", 0, 6),), spoken=(Span(0, 30),))
    found = score("timbre_consistency", {"recording": recording, "script": three})
    assert (found.notes["speakers_found"], found.notes["speakers_asked"]) == (1, 3)
    assert found.notes["windows"] == 2
    one_of_two = catalogue.get("timbre_consistency")({"recording": recording}, {"speakers": 2})
    assert one_of_two == Unscored("there should be 2 speakers, but 1 are heard", "system")


@pytest.mark.parametrize("variant", ["default", "lfs"])
def test_where_nobody_speaks_there_is_no_voice_to_be_consistent(variant: str) -> None:
    inputs: dict[str, Any] = {"recording": Derived()}
    found = catalogue.get("timbre_consistency")(inputs, {"variant": variant, "speakers": 2})
    assert found == Unscored("no speaker is found in the recording; check that it contains speech", "system")
    inputs["script"] = Script.parse("one speaker only")
    found = catalogue.get("timbre_consistency")(inputs, {"variant": variant})
    assert found == Unscored("the recording contains no speech", "system")


def test_a_script_with_one_speaker_needs_no_alignment() -> None:
    recording = Derived(duration=11.0, spoken=(Span(0, 11),))
    monologue = Script.parse("one speaker only")
    found = score("timbre_consistency", {"recording": recording, "script": monologue})
    assert recording.asked == []
    assert found.notes["windows"] == 5


def test_a_recording_with_one_window_is_unscored() -> None:
    recording = Derived(ALONE, duration=4.0, spoken=(Span(0, 4),))
    alone = Script.parse("one speaker only")
    assert "two windows" in unscored("timbre_consistency", {"recording": recording, "script": alone}).reason


# wer


def test_wer_counts_errors_after_normalisation_and_beside_it_as_the_texts_stand() -> None:
    recording = Derived(heard="why is the sea so salty")
    found = score("wer", {"recording": recording, "reference_text": "Why is the sea salty?"})
    # One insertion for five words; raw, "Why" and "salty?" are errors too.
    assert found.values["wer"] == pytest.approx(1 / 5)
    assert found.values["wer_raw"] == pytest.approx(3 / 5)
    assert (found.notes["insertions"], found.notes["hits"], found.notes["unit"]) == (1, 5, "word")
    assert found.notes["transcript"] == recording.heard
    assert recording.asked == ["en"]


def test_chinese_has_character_errors_and_no_words() -> None:
    recording = Derived(heard="海水是咸得")
    found = score("wer", {"recording": recording, "reference_text": "海水是咸的。"})
    assert found.values["wer"] is None
    assert found.values["wer_raw"] is None
    assert found.values["cer"] == pytest.approx(1 / 5)
    assert found.values["cer_raw"] == pytest.approx(2 / 6)
    assert recording.asked == ["zh"]


@pytest.mark.parametrize(
    ("reference", "language"),
    [
        ("Добрый вечер, друзья!", "auto"),
        ("Bonsoir à tous, les amis!", "other"),
        ("Bonsoir à tous, les amis, ça va bien!", "auto"),
    ],
)
def test_a_text_in_another_language_is_heard_in_the_one_the_transcriber_decides_on(
    reference: str, language: str
) -> None:
    heard = " ".join(reference.lower().strip("!").replace(",", "").split()[:-1])
    recording = Derived(heard=heard)
    found = score("wer", {"recording": recording, "reference_text": reference}, language=language)
    # The last word is missing; case and punctuation do not count. The stand-in transcriber says "en" when it decides.
    assert found.values["wer"] == pytest.approx(1 / len(reference.split()))
    assert (found.notes["language"], found.notes["normaliser"]) == ("en", "basic")
    assert recording.asked == [None]


def test_a_text_too_short_for_its_language_is_compared_in_the_one_that_is_heard() -> None:
    recording = Derived(heard="Hello, twenty five")
    found = score("wer", {"recording": recording, "reference_text": "Hello. 25"})
    assert (found.values["wer"], found.notes["normaliser"], recording.asked) == (0.0, "whisper", [None])
    assert found.notes["text_language"] == "unknown"


def test_what_is_in_brackets_is_counted_as_dropped_and_french_in_english_is_noted() -> None:
    said = "Good evening and welcome to the show about the sea. We talk about the rivers and about the salt tonight. "
    french = "Nous parlons de la mer et du sel."
    text = f"{said * 2}{french} (secret words here)"
    found = score("wer", {"recording": Derived(heard=f"{said * 2}{french}"), "reference_text": text})
    letters, dropped = (sum(map(str.isalnum, each)) for each in (text, "secret words here"))
    assert (found.values["wer"], found.notes["language"]) == (0.0, "en")
    assert found.notes["dropped"] == pytest.approx(dropped / letters, abs=1e-4)
    assert list(found.notes["text_languages"]) == ["en", "fr"]


def test_japanese_is_neither_english_nor_chinese_and_counted_in_characters() -> None:
    recording = Derived(heard="東京都知事選挙結果発表は今日午後")
    found = score("wer", {"recording": recording, "reference_text": "東京都知事選挙結果発表は本日午後。"})
    assert found.values["wer"] is None
    assert found.values["cer"] == pytest.approx(1 / 16)
    assert found.notes["unit"] == "character"
    assert recording.asked == [None]


READINGS = [{"text": "It was $3.50.", "readings": [{"text": "$3.50", "accepted": ["three fifty"], "tags": ["money"]}]}]


@pytest.mark.parametrize(
    ("heard", "wer", "rate", "misread"), [("It was three fifty", 0, 0, 0), ("It was three fifteen", 1 / 3, 1, 1)]
)
def test_wer_counts_an_accepted_reading_as_right(heard: str, wer: float, rate: float, misread: int) -> None:
    inputs = {"recording": Derived(heard=heard), "reference_text": "It was $3.50."}
    found = score("wer", inputs | {"readings": AcceptedReadings.parse(READINGS)})
    assert found.values["wer"] == pytest.approx(wer)
    assert found.parts["tag"]["money"]["wer"] == (rate, 1)
    assert (len(found.notes["misread"]), found.notes["stretches"]) == (misread, 1)
    assert not score("wer", inputs).parts
    with pytest.raises(BadInput, match="a text other than"):
        score("wer", inputs | {"reference_text": "It was free.", "readings": AcceptedReadings.parse(READINGS)})


@pytest.mark.parametrize(("variant", "applied", "wer"), [("podeval", "none", 3 / 5), ("lfs", "lfs", 1 / 5)])
def test_the_variants_of_wer_are_those_of_the_papers(variant: str, applied: str, wer: float) -> None:
    inputs = {"recording": Derived(heard="why is the sea so salty"), "reference_text": "Why is the sea salty?"}
    found = score("wer", inputs, variant=variant)
    assert (found.values["wer"], found.notes["normaliser"]) == (pytest.approx(wer), applied)
    with pytest.raises(BadInput, match="has a normaliser of its own"):
        score("wer", inputs, variant=variant, normaliser="basic")


def test_a_recording_upsampled_for_a_model_says_so() -> None:
    inputs = {"recording": Derived(heard="hello", rate=8000), "reference_text": "hello"}
    assert score("wer", inputs).notes["upsampled_from"] == 8000
    inputs["recording"] = Derived(heard="hello", rate=48_000)
    assert "upsampled_from" not in score("wer", inputs).notes


def test_8_khz_is_unscored_unless_upsampling_was_allowed(speech_like: Vector) -> None:
    found = unscored("dnsmos", {"recording": Recording.from_samples(speech_like, 8000)})
    assert found.cause == "system"
    assert "8000 Hz" in found.reason
    # Loudness has no model and needs no 16 kHz.
    assert score("loudness", {"recording": Recording.from_samples(speech_like, 8000)}).values["integrated"]


def test_a_missing_model_is_unscored_by_our_cause_with_the_command_that_helps(speech_like: Vector) -> None:
    found = unscored("wer", {"recording": Recording.from_samples(speech_like, 16_000, profile="reference"),
                             "reference_text": "hello"})  # fmt: skip
    assert found.cause == "ours"
    assert found.reason.endswith("run `podeval models install --profile reference`")
    absent = ModelMissing("no weights; run `podeval models install --profile embedded`")
    assert unscored("sptd", {"recording": Derived(refusal=absent)}).reason == str(absent)
