"""What guards finished podcasts: speech, language, repetition, length; and that planted repetitions are found."""

from types import SimpleNamespace
from typing import Any

import pytest

from podeval import benchmarks
from podeval.audio.windows import Span
from podeval.errors import CannotScore
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.metrics.speech.podcast_checks import RUN, find_repetitions, podcast_checks
from podeval.models.interfaces import Transcript, Word
from podeval.recording import Recording
from podeval.systems.registry import PlantedPodcast
from podeval.systems.speech import Ask
from podeval.text.podcast_request import PodcastRequest

ITEMS = benchmarks.get("real_pod").items("topics")
TEXT = ITEMS[0].script.text  # type: ignore[union-attr]
ENGLISH = PodcastRequest("salt", language="en")


def recorded(text: str, seconds: float = 90.0, speech: float = 0.9) -> Any:
    """A recording of which only what the metric asks for is known."""
    spoken = text.split()
    step = seconds / max(1, len(spoken))
    words = tuple(Word(word, step * number, step * number + 0.3) for number, word in enumerate(spoken))
    track = SimpleNamespace(
        speech=lambda: (Span(0.0, speech * seconds),) if speech else (),
        transcript=lambda: Transcript(text, "en", words),
        notes={},
    )
    return SimpleNamespace(duration=seconds, require_sound=lambda: None, speech_track=lambda: track, rate=16_000)


def check(recording: Any, request: PodcastRequest = ENGLISH) -> Score:
    score = podcast_checks.function(recording, request)
    assert isinstance(score, Score)
    return score


def test_no_script_of_real_pod_is_taken_for_repetition() -> None:
    for item in ITEMS:
        assert item.script
        words = item.script.text.split()
        said_again = sum(each.end - each.start for each in find_repetitions(words))
        assert said_again <= 0.02 * len(words), item.id


def test_what_is_said_again_is_found_where_it_is_however_long_after() -> None:
    words = TEXT.split()
    again = [*words, *words[40:75], "goodbye"]
    (one,) = find_repetitions(again)
    assert (one.start, one.end, one.first) == (len(words), len(words) + 35, 40)
    assert not find_repetitions([*words, *words[40 : 40 + RUN - 1]])
    # A machine that is stuck says one word, or one sentence, on and on.
    (stuck,) = find_repetitions(["so"] * 60)
    assert stuck.end - stuck.start >= 60 - 2 * RUN
    looped = find_repetitions(words[:30] * 5)
    assert sum(each.end - each.start for each in looped) == 120


@pytest.mark.parametrize(
    ("recording", "request_", "reason"),
    [
        (recorded(TEXT, speech=0.3), ENGLISH, "only 30% of it is speech, but at least 50% should be"),
        (recorded(TEXT), PodcastRequest("盐", language="zh"), "its words are in English"),
        (recorded(f"{TEXT} {TEXT}"), ENGLISH, "50% of its words are repeated, but at most 20% may be"),
        (recorded(TEXT, seconds=20), ENGLISH, "it lasts 0.3 minutes, but at least 0.5 are needed"),
        (recorded(TEXT), PodcastRequest.parse("A podcast of 10 minutes on salt"), "at least 5 are needed"),
    ],
)
def test_each_check_fails_for_its_reason_alone(recording: Any, request_: PodcastRequest, reason: str) -> None:
    score = check(recording, request_)
    assert score.values["passed"] == 0
    (failed,) = score.notes["failed"]
    assert reason in failed


def test_a_whole_podcast_passes_and_a_trailer_of_it_may_come_first() -> None:
    words = TEXT.split()
    score = check(recorded(" ".join([*words[60:90], *words])))
    assert score.values["passed"] == 1
    (defect,) = score.notes["defects"]
    assert defect["kind"] == "said_again"
    assert defect["heard"].startswith("repeats what was said ")


def test_a_recording_without_words_is_unscored_by_the_system() -> None:
    for recording in (recorded("", speech=0.5), recorded(TEXT, speech=0)):
        with pytest.raises(CannotScore, match="no words are heard"):
            podcast_checks.function(recording, ENGLISH)


@pytest.mark.models
@pytest.mark.long
@pytest.mark.parametrize("music", [False, True])
def test_the_turn_that_the_demo_s_podcasts_say_again_is_found(music: bool) -> None:
    speech = PlantedPodcast(music=music).make_one(Ask(id="demo_Health_and_Fitness_18", topic="sleep"), 0)
    recording = Recording.from_samples(speech.samples, speech.rate)
    score = catalogue.get("podcast_checks")({"recording": recording, "request": ENGLISH})
    assert isinstance(score, Score)
    assert score.values["passed"] == 1, score.notes["failed"]
    heard = " ".join(defect["heard"] for defect in score.notes["defects"])
    assert "seven hours" in heard or "adults" in heard
    assert all(defect["start"] > speech.duration / 2 for defect in score.notes["defects"])
