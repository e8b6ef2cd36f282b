"""Scripts in words and answers in sound from a server on loopback."""

import base64
from pathlib import Path
from typing import Any

import pytest
from loopback_speech import Reply, SpeechServer, spoken_completion, wav, written_completion

from podeval.systems.ask import Ask, RecordedUserTurn
from podeval.systems.servers.chat_endpoint import ChatEndpoint
from podeval.systems.servers.connection import ServerConnection
from podeval.systems.speech import SpeechFailed, SpokenAnswers, WrittenScript

WRITE = Ask(id="w", prompt="Write about tea.")


def served(plan: Any, ask: Ask, **options: Any) -> tuple[Any, SpeechServer]:
    with SpeechServer(plan) as server:
        connection = ServerConnection(server.url, sleep=lambda seconds: None, tries=2)
        (product,) = ChatEndpoint(connection, "chat", **options).make([ask], 5)
    return product, server


def json_reply(data: bytes) -> Reply:
    return Reply(((0.0, data),), kind="application/json", length=len(data))


def test_a_script_is_what_follows_the_thoughts() -> None:
    answer = written_completion(
        "<think>hm</think>Host 1: Tea.\nHost 2: Yes.", usage={"completion_tokens": 9, "cost": 0.5}
    )
    script, server = served(lambda request: json_reply(answer), WRITE)
    assert isinstance(script, WrittenScript)
    assert script.turns == [{"speaker": "1", "text": "Tea."}, {"speaker": "2", "text": "Yes."}]
    assert script.details["tokens"] == 9
    assert script.details["cost"] == 0.5
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Write about tea."}]
    assert (server.requests[0]["path"], server.requests[0]["seed"]) == ("/v1/chat/completions", 5)


def test_a_person_is_answered_turn_by_turn_in_sound(tmp_path: Path) -> None:
    (tmp_path / "t1.wav").write_bytes(wav(0.2))
    (tmp_path / "t2.wav").write_bytes(wav(0.3, pitch=300))
    turns = tuple(RecordedUserTurn(id=name, audio=str(tmp_path / f"{name}.wav")) for name in ("t1", "t2"))
    ask = Ask(id="d", user=turns)
    answers, server = served(
        lambda request: json_reply(spoken_completion(wav(0.4 + request["number"]), f"answer {request['number']}")),
        ask,
        voice="onyx",
    )
    assert isinstance(answers, SpokenAnswers)
    assert [(answer.turn, answer.text) for answer in answers.answers] == [("t1", "answer 0"), ("t2", "answer 1")]
    assert [answer.speech.duration for answer in answers.answers] == [pytest.approx(0.4), pytest.approx(1.4)]
    last = server.requests[1]
    assert last["modalities"] == ["text", "audio"]
    assert last["audio"] == {"voice": "onyx", "format": "wav"}
    assert [message["role"] for message in last["messages"]] == ["user", "assistant", "user"]
    heard = last["messages"][0]["content"][0]["input_audio"]
    assert (heard["format"], base64.b64decode(heard["data"])) == ("wav", wav(0.2))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"<html>", "is no chat completion"),
        (b'{"choices": []}', "is no chat completion"),
        (written_completion("<think>only thoughts</think>"), "holds no words"),
    ],
)
def test_an_answer_without_words_is_the_systems_failure(answer: bytes, reason: str) -> None:
    with pytest.raises(SpeechFailed, match=reason):
        served(lambda request: json_reply(answer), WRITE)


def test_an_answer_without_sound_is_the_systems_failure(tmp_path: Path) -> None:
    (tmp_path / "t1.wav").write_bytes(wav(0.2))
    ask = Ask(id="d", user=(RecordedUserTurn(id="t1", audio=str(tmp_path / "t1.wav")),))
    with pytest.raises(SpeechFailed, match="answered turn t1 without sound: 'only words'"):
        served(lambda request: json_reply(written_completion("only words")), ask)
