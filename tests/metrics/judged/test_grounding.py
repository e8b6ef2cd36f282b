"""A podcast judged by its topic and its sources: parts, claims, and evidence that has to be there."""

from types import SimpleNamespace
from typing import Any

import pytest

from podeval.errors import CannotScore
from podeval.metrics.judged.grounding import ASK_CLAIMS, ASK_TOPIC, PART_WORDS, Claims, OnTopic, SourcedClaim, grounding
from podeval.metrics.score import Score
from podeval.models.interfaces import Transcript, Word
from podeval.text.podcast_request import PodcastRequest

SOURCE = "Adults are advised to sleep at least seven hours. The heart beats more slowly in sleep."
SAID = "Adults need at least seven hours of sleep. The heart beats faster at night. Cats sleep all day long."


def recorded(text: str) -> Any:
    words = tuple(Word(word, number, number + 0.5) for number, word in enumerate(text.split()))
    track = SimpleNamespace(transcript=lambda: Transcript(text, "en", words), notes={})
    return SimpleNamespace(require_sound=lambda: None, speech_track=lambda: track)


def hold(text: str, request: PodcastRequest, *answers: Any) -> tuple[Any, Any]:
    """Hold the conversation; returns the requests and the score."""
    conversation: Any = grounding.function(recorded(text), request)
    requests = next(conversation)
    with pytest.raises(StopIteration) as end:
        conversation.send([SimpleNamespace(value=value, record_id=str(n)) for n, value in enumerate(answers)])
    return requests, end.value.value


def claim(quote: str, verdict: Any, source: str = "") -> SourcedClaim:
    return SourcedClaim(quote=quote, verdict=verdict, source_quote=source)


def test_claims_count_by_what_the_sources_say_of_them() -> None:
    claims = Claims(
        claims=[
            claim("at least seven hours of sleep", "supported", "at least seven hours"),
            claim("The heart beats faster at night", "contradicted", "The heart beats more slowly"),
            claim("Cats sleep all day long", "not_found"),
            claim("Adults need at least seven hours", "supported", "sleep at least seven hours"),
        ]
    )
    request = PodcastRequest("Sleep", sources=(SOURCE,))
    requests, score = hold(SAID, request, OnTopic(about="sleep", score=0.5), claims)
    assert [one.prompt for one in requests] == [ASK_TOPIC, ASK_CLAIMS]
    assert requests[1].inputs == {"sources": SOURCE, "part": SAID}
    assert score.values == {"on_topic": 50, "grounded": 50, "contradicted": 25}
    requests[1].check(claims)
    with pytest.raises(ValueError, match="not in the part: “Dogs never sleep at all”"):
        requests[1].check(Claims(claims=[claim("Dogs never sleep at all", "not_found")]))
    wrong = claim("Cats sleep all day long", "supported", "sleep is overrated by all")
    with pytest.raises(ValueError, match="not in the sources: “sleep is overrated by all”"):
        requests[1].check(Claims(claims=[wrong]))


def test_a_verdict_needs_its_passage() -> None:
    with pytest.raises(ValueError, match="needs the passage of the sources"):
        claim("Cats sleep all day long", "supported")


def test_without_sources_only_the_topic_is_judged_and_a_podcast_without_claims_has_no_share() -> None:
    for sources in ((), (" ", "\n")):
        requests, score = hold(SAID, PodcastRequest("Sleep", sources=sources), OnTopic(about="sleep", score=1))
        assert len(requests) == 1
        assert score.values == {"on_topic": 100, "grounded": None, "contradicted": None}
    _, score = hold(SAID, PodcastRequest("Sleep", sources=(SOURCE,)), OnTopic(about="s", score=1), Claims(claims=[]))
    assert score.values["grounded"] is None


def test_a_long_podcast_is_judged_in_parts_that_hold_every_word_once() -> None:
    words = [f"w{number}" for number in range(2 * PART_WORDS + 5)]
    answers = [OnTopic(about="x", score=score) for score in (1, 0, 0.5)]
    requests, score = hold(" ".join(words), PodcastRequest("Sleep"), *answers)
    assert " ".join(one.inputs["part"] for one in requests).split() == words
    assert isinstance(score, Score)
    assert score.values["on_topic"] == pytest.approx(50, abs=0.1)


def test_silence_is_unscored() -> None:
    with pytest.raises(CannotScore, match="no words are heard"):
        next(grounding.function(recorded(""), PodcastRequest("Sleep")))  # type: ignore[arg-type]
