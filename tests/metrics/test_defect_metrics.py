"""Speaker attribution, content errors, integrity and the list of all defects, on stand-ins for what models derive."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.defects import find_defects
from podeval.metrics.score import Score, describe_notes
from podeval.models import registry
from podeval.models.interfaces import Transcript, Word
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.recording.spoken_script import confirm_differences, hear_script
from podeval.text.comparison.content_differences import find_content_differences
from podeval.text.script import Script

RATE = 16_000
SCRIPT = Script.parse(
    [
        {"speaker": "Ann", "text": "The harbour was quiet that morning and nobody had seen the ferry leave."},
        {"speaker": "Ben", "text": "Then somebody must have rowed across the bay before the sun was up."},
        {"speaker": "Ann", "text": "My brother keeps a wooden boat behind the boathouse near the old pier."},
        {"speaker": "Ben", "text": "Your brother has not been in town for seven weeks as far as we know."},
    ]
)
VOICES = {"Ann": 0, "Ben": 1, "Cem": 2}


class Studio:
    """All models in one: who speaks is written into the samples, what is said is what the test says.

    The level of the samples is 0.1 for the first voice, 0.2 for the second and so on; an embedding tells the level.
    """

    def __init__(
        self,
        words: Sequence[tuple[str, str]],
        again: Mapping[str, str] | None = None,
        second: Mapping[str, str] | None = None,
    ) -> None:
        """Take the words with their voices, three a second; `again` are other words on a second hearing.

        `second` are those that another recogniser hears.
        """
        self.words, self.again, self.listened = list(words), again or {}, 0
        self.second = Studio(words, second) if second is not None else self

    def load(self, job: str, profile: str) -> "Studio":
        return self.second if job == "second_transcriber" else self

    def make(self, cache: Path) -> Recording:
        chance = np.random.default_rng(3).uniform(0.9, 1.0, len(self.words) * 5400).astype(np.float32)
        level = np.repeat([0.1 + 0.1 * VOICES[voice] for _, voice in self.words], 5400)
        samples = (chance * level * np.sin(np.arange(len(chance)))).astype(np.float32)
        fade = np.linspace(1, 0, 800, dtype=np.float32)
        samples[-800:] *= fade
        return Recording.from_samples(samples, RATE, cache=Cache(cache))

    def transcribe(self, samples: Any, language: str | None) -> Transcript:
        if len(samples) != len(self.words) * 5400:
            self.listened += 1
            return Transcript("", "en", tuple(self._hear_again(samples)))
        placed = [Word(text, at * 0.3375, at * 0.3375 + 0.3) for at, (text, _) in enumerate(self.words)]
        return Transcript(" ".join(text for text, _ in self.words), language or "en", tuple(placed))

    def detect_language(self, samples: Any) -> str:
        return "en"

    def _hear_again(self, samples: Any) -> list[Word]:
        """The same words at the same places of what is left of the recording, or others."""
        heard = []
        whole = self.make(Path("/nonexistent")).samples[:, 0]
        for at, (text, _) in enumerate(self.words):
            middle = whole[at * 5400 + 2000 : at * 5400 + 2400]
            places = np.flatnonzero(samples[:-400] == middle[0])
            place = next((p for p in places if np.array_equal(samples[p : p + 400], middle)), None)
            if place is not None and self.again.get(text, text):
                heard.append(Word(self.again.get(text, text), (place - 1000) / RATE, (place + 1000) / RATE))
        return heard

    def speech(self, samples: Any) -> tuple[Span, ...]:
        return (Span(0.0, len(samples) / RATE),)

    def music(self, samples: Any) -> tuple[Span, ...]:
        return ()

    def embed(self, clips: Sequence[Any]) -> Any:
        angles = [np.sqrt(np.mean(np.square(clip))) * 10 for clip in clips]
        return np.array([[np.cos(2 * a), np.sin(2 * a), 0.05] for a in angles], dtype=np.float32)

    def score(self, windows: Sequence[Any]) -> Any:
        return np.full(len(windows), 4.0, np.float32)


def said(script: Script = SCRIPT, voices: Mapping[int, str] | None = None) -> list[tuple[str, str]]:
    """The script's words, each turn by its speaker or by whom `voices` names for the turn."""
    return [
        (word, (voices or {}).get(number, turn.speaker))
        for number, turn in enumerate(script.turns)
        for word in turn.text.rstrip(".").split()
    ]


def measured(name: str, studio: Studio, monkeypatch: pytest.MonkeyPatch, cache: Path, **more: Any) -> Score:
    monkeypatch.setattr(registry, "load", studio.load)
    result = catalogue.get(name)({"recording": studio.make(cache), "script": SCRIPT, **more})
    assert isinstance(result, Score), result
    return result


@pytest.fixture
def words() -> Any:
    return said()


def test_two_voices_that_keep_to_the_script_are_all_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    score = measured("speaker_attribution", Studio(said()), monkeypatch, tmp_path)
    assert score.values == {
        "attribution_accuracy": 1.0, "cpwer": 0.0, "cpcer": 0.0, "cpsim": None, "swapped_turns": 0
    }  # fmt: skip
    assert (score.notes["voices"], score.notes["defects"]) == (2, [])


def test_names_are_those_that_fit_where_no_reference_says_who_is_who(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    swapped = Studio(said(voices={0: "Ben", 1: "Ann", 2: "Ben", 3: "Ann"}))
    score = measured("speaker_attribution", swapped, monkeypatch, tmp_path)
    assert score.values["attribution_accuracy"] == 1.0


def test_with_references_a_speaker_in_the_others_voice_is_wrong_throughout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Voices(dict[str, Any]):
        embeddings: Mapping[str, Any]

    monkeypatch.setattr(registry, "load", Studio(said()).load)
    vectors = Studio([]).embed([0.067 * np.ones(9), 0.134 * np.ones(9)])
    voices = Voices(Ann="", Ben="")
    voices.embeddings = dict(zip(("Ann", "Ben"), vectors, strict=True))
    right = measured("speaker_attribution", Studio(said()), monkeypatch, tmp_path, reference_voices=voices)
    assert right.values["attribution_accuracy"] == 1.0
    assert right.values["cpsim"] == pytest.approx(1.0, abs=0.01)
    crossed = Studio(said(voices={0: "Ben", 1: "Ann", 2: "Ben", 3: "Ann"}))
    wrong = measured("speaker_attribution", crossed, monkeypatch, tmp_path / "b", reference_voices=voices)
    assert wrong.values["attribution_accuracy"] == 0.0
    assert wrong.values["swapped_turns"] == 4


def test_a_turn_in_the_others_voice_is_listed_with_its_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = said(voices={2: "Ben"})
    score = measured("speaker_attribution", Studio(words), monkeypatch, tmp_path)
    counts = [len(turn.text.split()) for turn in SCRIPT.turns]
    assert score.values["attribution_accuracy"] == pytest.approx(1 - counts[2] / sum(counts), abs=0.02)
    assert score.values["swapped_turns"] == 1
    (defect,) = score.notes["defects"]
    start, end = (sum(counts[:turn]) * 0.3375 for turn in (2, 3))
    assert (defect["kind"], defect["severity"], defect["heard"]) == ("wrong_voice", "high", "in Ben's voice")
    assert (defect["start"], defect["end"]) == pytest.approx((start, end), abs=0.1)


def test_one_voice_for_all_is_right_for_one_speaker_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    score = measured("speaker_attribution", Studio(said(voices={1: "Ann", 3: "Ann"})), monkeypatch, tmp_path)
    assert score.notes["voices"] == 1
    assert score.values["attribution_accuracy"] == pytest.approx(0.5, abs=0.06)


def test_a_script_with_one_speaker_or_another_text_is_unscored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    studio = Studio(said())
    monkeypatch.setattr(registry, "load", studio.load)
    attribution = catalogue.get("speaker_attribution")
    alone = attribution({"recording": studio.make(tmp_path), "script": Script.parse("one speaker only")})
    assert "one speaker" in alone.reason
    other = Script.parse([{"speaker": who, "text": "entirely different words here"} for who in ("Ann", "Ben")])
    unheard = attribution({"recording": studio.make(tmp_path), "script": other})
    assert "less than half of the script's words" in unheard.reason


def test_content_that_is_as_written_has_no_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    score = measured("content_errors", Studio(said()), monkeypatch, tmp_path)
    values = dict(score.values)
    assert values.pop("entities_right") == values.pop("entities") == 1
    assert set(values.values()) == {0}


def test_a_turn_left_out_is_omitted_where_it_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counts = [len(turn.text.split()) for turn in SCRIPT.turns]
    words = said()
    score = measured("content_errors", Studio(words[: counts[0]] + words[sum(counts[:2]) :]), monkeypatch, tmp_path)
    per_1000 = 1000 * counts[1] / sum(counts)
    assert score.values["omitted"] == score.values["errors_per_1000"] == pytest.approx(per_1000)
    assert score.values["longest_run"] == counts[1]
    (defect,) = score.notes["defects"]
    assert defect["script"].startswith("then somebody must have rowed")
    assert defect["start"] == pytest.approx(counts[0] * 0.3375, abs=0.1)


def test_a_turn_said_twice_is_repeated_and_a_new_one_inserted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counts = [len(turn.text.split()) for turn in SCRIPT.turns]
    words = said()
    twice = words[: counts[0]] + words[: counts[0]] + words[counts[0] :]
    score = measured("content_errors", Studio(twice), monkeypatch, tmp_path)
    assert score.values["repeated"] == pytest.approx(1000 * counts[0] / sum(counts))
    new = [(word, "Ann") for word in ["please", "subscribe", "to", "our", "channel", "for", "more", "stories"]]
    score = measured("content_errors", Studio(words[:12] + new + words[12:]), monkeypatch, tmp_path / "b")
    assert score.values["inserted"] == pytest.approx(1000 * len(new) / sum(counts))


def test_what_a_second_hearing_hears_was_not_made_up_by_the_system(
    words: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The recogniser invents words in the first hearing which it does not hear in the second."""
    invented = [(word, "Ann") for word in ("thank", "you", "for", "watching")]
    studio = Studio(words[:12] + invented + words[12:], again=dict.fromkeys(("thank", "you", "for", "watching"), ""))
    score = measured("content_errors", studio, monkeypatch, tmp_path)
    assert (score.values["errors_per_1000"], score.notes["looked_at_again"], studio.listened) == (0, 1, 1)


def test_words_that_only_one_of_two_recognisers_misses_were_said(
    words: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first skips three words both times; the second hears them."""
    heard = [(word, voice) for word, voice in words if word not in ("nobody", "had", "seen")]
    gap = next(at for at, (word, _) in enumerate(heard) if word == "and")
    skipped = Studio(heard, second={"and": "and nobody had seen"})
    score = measured("content_errors", skipped, monkeypatch, tmp_path)
    assert score.values["omitted"] == 0
    really = measured("content_errors", Studio(heard, second={}), monkeypatch, tmp_path / "b")
    assert really.values["omitted"] == pytest.approx(1000 * 3 / len(words))
    assert really.notes["defects"][0]["start"] == pytest.approx((gap + 1) * 0.3375, abs=0.1)


def test_a_short_word_that_both_recognisers_miss_was_left_out_though_there_is_time_for_it(
    words: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without = [(word, voice) for word, voice in words if word not in ("keeps", "wooden")]
    at = next(at for at, (word, _) in enumerate(without) if word == "boat")
    heard = [*without[:at], ("boating", "Ann"), *without[at + 1 :]]
    score = measured("content_errors", Studio(heard, second={}), monkeypatch, tmp_path)
    assert [defect["script"] for defect in score.notes["defects"]] == ["keeps", "wooden"]
    alone = measured(
        "content_errors",
        Studio(heard, second={"a": "a wooden", "brother": "brother keeps"}),
        monkeypatch,
        tmp_path / "b",
    )
    assert alone.values["omitted"] == 0


@pytest.mark.parametrize(("gone", "counted"), [("and", 0), ("old", 1)])
def test_a_word_that_everybody_swallows_is_not_counted_alone(
    words: Any, gone: str, counted: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    heard = [(word, voice) for word, voice in words if word != gone]
    assert len(heard) == len(words) - 1
    score = measured("content_errors", Studio(heard, second={}), monkeypatch, tmp_path)
    assert score.values["omitted"] == pytest.approx(1000 * counted / len(words))


def test_added_words_of_which_the_second_recogniser_hears_nothing_were_not_said(
    words: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    invented = ["thank", "you", "for", "watching"]
    heard = words[:12] + [(word, "Ann") for word in invented] + words[12:]
    score = measured("content_errors", Studio(heard, second=dict.fromkeys(invented, "")), monkeypatch, tmp_path)
    assert score.values["errors_per_1000"] == 0
    both = measured("content_errors", Studio(heard, second={}), monkeypatch, tmp_path / "b")
    assert both.values["inserted"] == pytest.approx(1000 * 4 / len(words))


@pytest.mark.parametrize(("loops", "second", "kept"), [(False, "", 1), (True, "", 0), (True, "as the first", 1)])
def test_a_phrase_that_goes_round_was_said_if_both_recognisers_hear_it(
    words: Any, loops: bool, second: str, kept: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first hears three words six times, in the whole and alone, as it does if it gets stuck at the same place."""
    phrase = ["thank", "you", "everybody"]
    heard = words[:12] + [(word, "Ann") for word in 6 * phrase] + words[12:]
    studio = Studio(heard, second={} if second else dict.fromkeys(phrase, ""))
    monkeypatch.setattr(registry, "load", studio.load)
    recording = studio.make(tmp_path)
    alignment, transcript = hear_script(recording, SCRIPT)
    candidates = find_content_differences(alignment)
    assert [each.words for each in candidates] == [18]
    confirmed = confirm_differences(recording, alignment, candidates, transcript.language, loops=loops)
    assert len(confirmed) == kept


def test_integrity_counts_faults_by_the_hour_and_lists_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    studio = Studio(said())
    monkeypatch.setattr(registry, "load", studio.load)
    sound = studio.make(tmp_path).samples[:, 0].copy()
    sound[4 * RATE : 4 * RATE + 1600] = 0
    recording = Recording.from_samples(sound, RATE, cache=Cache(tmp_path))
    score = catalogue.get("integrity")({"recording": recording})
    an_hour = 3600 / recording.duration
    assert score.values["holes"] == score.values["faults_per_hour"] == pytest.approx(an_hour)
    assert score.values["plcmos"] == 4.0
    (defect,) = score.notes["defects"]
    assert (defect["kind"], defect["start"], defect["end"]) == ("hole", 4.0, 4.1)


@pytest.mark.parametrize("seconds", [0.0, 2.0, 30.0])
def test_silence_at_the_ends_dilutes_no_rate_and_is_noted_when_it_is_long(
    seconds: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    studio = Studio(said())
    monkeypatch.setattr(registry, "load", studio.load)
    sound = studio.make(tmp_path).samples[:, 0].copy()
    sound[4 * RATE : 4 * RATE + 1600] = 0
    silence = np.zeros(round(seconds * RATE), np.float32)
    recording = Recording.from_samples(np.concatenate([silence, sound, silence]), RATE, cache=Cache(tmp_path))
    score = catalogue.get("integrity")({"recording": recording})
    assert score.values["holes"] == pytest.approx(3600 * RATE / len(sound), rel=0.02)
    ends = f"{seconds:.1f} s of silence at the beginning and {seconds:.1f} s of silence at the end"
    assert recording.file_notes == ((ends,) if seconds else ())


@pytest.mark.parametrize("both", [False, True])
def test_faults_of_one_channel_are_found_once_and_named(
    both: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    studio = Studio(said())
    monkeypatch.setattr(registry, "load", studio.load)
    left = studio.make(tmp_path).samples[:, 0].copy()
    loud = left * np.float32(1.5 / np.abs(left).max())
    stereo = np.stack([loud, loud if both else left], axis=1)
    recording = Recording.from_samples(stereo + np.float32([0.4, 0]), RATE, cache=Cache(tmp_path))
    score = catalogue.get("integrity")({"recording": recording})
    kinds = [defect["kind"] for defect in score.notes["defects"]]
    assert kinds.count("offset") == 1
    assert "beyond_scale" in kinds
    assert "clipped" not in kinds


def test_the_list_has_what_every_metric_notes_by_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = said(voices={2: "Ben"})
    studio = Studio(words[:4] + words[9:])
    monkeypatch.setattr(registry, "load", studio.load)
    report = find_defects({"recording": studio.make(tmp_path), "script": SCRIPT})
    assert not report.unscored
    assert [defect.kind for defect in report.defects] == ["omitted", "wrong_voice"]
    assert report.defects[0].script == "that morning and nobody had"
    assert set(report.defects[0].to_json()) == {"kind", "start", "end", "script", "heard", "severity", "detail"}


class StudioWithMusic(Studio):
    """Music lies under the first seconds, the separator takes it away, and whole transcripts are counted."""

    def __init__(self, words: Sequence[tuple[str, str]], seconds: float) -> None:
        super().__init__(words)
        self.seconds, self.transcribed = seconds, 0

    def make(self, cache: Path) -> Recording:
        """Make a recording in which 2 s of noise are heard again directly after."""
        plain = super().make(cache).samples[:, 0].copy()
        noise = np.random.default_rng(4).normal(0, 1, (100, 320)) * np.random.default_rng(5).uniform(0, 1, (100, 1))
        plain[3 * RATE : 7 * RATE] = 0.1 * np.tile(noise.ravel(), 2)
        return Recording.from_samples(plain, RATE, cache=Cache(cache))

    def music(self, samples: Any) -> tuple[Span, ...]:
        return (Span(0.0, self.seconds),) if self.seconds else ()

    def separate(self, samples: Any) -> tuple[Any, Any]:
        return samples, np.zeros_like(samples)

    def transcribe(self, samples: Any, language: str | None) -> Transcript:
        self.transcribed += len(samples) == len(self.words) * 5400
        return super().transcribe(samples, language)


@pytest.mark.parametrize("music", [0.0, 5.0])
def test_no_sound_is_transcribed_twice_though_a_loop_is_looked_up_in_the_script(
    music: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    studio = StudioWithMusic(said(), music)
    monkeypatch.setattr(registry, "load", studio.load)
    inputs = {"recording": studio.make(tmp_path), "script": SCRIPT}
    assert isinstance(catalogue.get("wer")({"recording": inputs["recording"], "reference_text": SCRIPT.text}), Score)
    report = find_defects(inputs, {"integrity": {"music": "unasked"}})
    assert not report.unscored
    assert [defect.kind for defect in report.defects if defect.kind in ("loop", "music")] == (
        ["music", "loop"] if music else ["loop"]
    )
    assert "music" not in [defect.kind for defect in find_defects(inputs).defects]
    result = catalogue.get("integrity")(inputs)
    assert isinstance(result, Score)
    assert (result.values["unasked_music"], result.notes["music"]) == (None, [[0.0, music]] if music else [])
    assert ("there is music at 0:00–0:05" in describe_notes(result)) == bool(music)
    assert studio.transcribed == 1


def test_entities_are_counted_and_the_wrong_ones_are_told_with_their_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = [("six" if word == "seven" else word, voice) for word, voice in said()]
    score = measured("content_errors", Studio(words), monkeypatch, tmp_path)
    assert (score.values["entities"], score.values["entities_right"]) == (1, 0)
    (misread,) = score.notes["entities_misread"]
    assert (misread["kind"], misread["text"], misread["heard"]) == ("number", "seven", "six")
    at = [word for word, _ in words].index("six")
    assert misread["start"] == pytest.approx(at * 0.3375, abs=0.01)
    assert "transcribed differently: 0:16 seven (six)" in describe_notes(score)
    right = measured("content_errors", Studio(said()), monkeypatch, tmp_path / "right")
    assert (right.values["entities_right"], right.notes["entities_misread"]) == (1, [])
