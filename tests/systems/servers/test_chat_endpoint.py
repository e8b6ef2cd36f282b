"""Scripts in words and answers in sound from a server on loopback."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
import soundfile

from podeval.systems.servers.chat_endpoint import ChatEndpoint
from podeval.systems.servers.connection import ServerBusy, ServerConnection, ServerRefused
from podeval.systems.speech import Ask, RecordedUserTurn, SpeechFailed
from tests.fakes.loopback_speech import Reply, SpeechServer, refuse, spoken_completion, tone, wav, written_completion

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
    assert (script.text, script.turns) == ("Host 1: Tea.\nHost 2: Yes.", None)
    assert script.details["tokens"] == 9
    assert script.details["cost"] == 0.5
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Write about tea."}]
    assert (server.requests[0]["path"], server.requests[0]["seed"]) == ("/v1/chat/completions", 5)


@pytest.mark.parametrize(
    "thoughts",
    ["[THINK]Host 1: Hm.[/THINK]", "<scratchpad>Host 1: Hm.</scratchpad>", "<|channel|>analysis<|message|>Host 1: Hm."],
)
def test_thoughts_in_other_words_are_no_script(thoughts: str) -> None:
    final = "<|channel|>final<|message|>" if "channel" in thoughts else ""
    answer = written_completion(f"{thoughts}{final}Host 1: [thinking] Tea.")
    script, _ = served(lambda request: json_reply(answer), WRITE)
    assert script.text == "Host 1: [thinking] Tea."


def test_thoughts_in_a_part_of_their_own_are_no_script() -> None:
    parts = [{"type": "thinking", "text": "Host 1: Hm."}, {"type": "text", "text": "Host 1: Tea."}]
    answer = json.dumps({"choices": [{"message": {"content": parts}}]}).encode()
    script, _ = served(lambda request: json_reply(answer), WRITE)
    assert script.text == "Host 1: Tea."


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
    assert [(answer.turn, answer.text) for answer in answers.answers] == [("t1", "answer 0"), ("t2", "answer 1")]
    assert [answer.speech.duration for answer in answers.answers] == [pytest.approx(0.4), pytest.approx(1.4)]
    last = server.requests[1]
    assert last["modalities"] == ["text", "audio"]
    assert last["audio"] == {"voice": "onyx", "format": "wav"}
    assert [message["role"] for message in last["messages"]] == ["user", "assistant", "user"]
    heard = last["messages"][0]["content"][0]["input_audio"]
    assert heard["format"] == "wav"
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(heard["data"])), dtype="int16")
    assert (samples.tolist(), rate) == (soundfile.read(io.BytesIO(wav(0.2)), dtype="int16")[0].tolist(), 24_000)


def test_an_answer_that_is_cut_is_not_whole(tmp_path: Path) -> None:
    (tmp_path / "t.wav").write_bytes(wav(0.2))
    ask = Ask(id="d", user=(RecordedUserTurn(id="t", audio=str(tmp_path / "t.wav")),))
    for reason, is_whole in (("stop", True), ("length", False)):
        body = spoken_completion(wav(0.4), "one").replace(b'"stop"', f'"{reason}"'.encode())
        answers, _ = served(lambda request, body=body: json_reply(body), ask)
        assert answers.details["whole"] is is_whole


@pytest.mark.parametrize("kind", ["ogg", "flac", "mp3", "wav"])
def test_a_persons_recording_is_sent_as_wav_of_16_bits_whatever_it_is(tmp_path: Path, kind: str) -> None:
    """OpenAI's endpoint takes wav and mp3 alone, and calls every other format an invalid value."""

    def plan(request: dict[str, Any]) -> Reply:
        sent = request["messages"][0]["content"][0]["input_audio"]
        if sent["format"] not in ("wav", "mp3") or not base64.b64decode(sent["data"]).startswith(b"RIFF"):
            param = "messages[0].content[0].input_audio.format"
            return refuse(f"Invalid value: '{sent['format']}'. Supported values are: 'wav' and 'mp3'.", param)
        return json_reply(spoken_completion(wav(0.4), "yes"))

    subtype = "FLOAT" if kind == "wav" else None
    soundfile.write(tmp_path / f"t1.{kind}", tone(0.5, 22_050), 22_050, subtype=subtype)
    answers, server = served(plan, Ask(id="d", user=(RecordedUserTurn(id="t1", audio=str(tmp_path / f"t1.{kind}")),)))
    assert answers.answers[0].speech.duration == pytest.approx(0.4)
    data = base64.b64decode(server.requests[0]["messages"][0]["content"][0]["input_audio"]["data"])
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        assert (file.samplerate, file.subtype, file.frames / file.samplerate) == (
            22_050,
            "PCM_16",
            pytest.approx(0.5, abs=0.06),
        )


GEMINI = json.dumps([{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.', "status": "X"}}])


def test_a_server_that_knows_no_seed_is_asked_without_and_that_is_noted() -> None:
    def plan(request: dict[str, Any]) -> Reply:
        if "seed" in request:
            return Reply(((0.0, GEMINI.encode()),), status=400, kind="application/json", length=len(GEMINI))
        return json_reply(written_completion("Host 1: Tea."))

    script, server = served(plan, WRITE)
    assert script.text == "Host 1: Tea."
    assert len(server.requests) == 2
    assert script.details["refused_fields"] == {"seed": 'Unknown name "seed": Cannot find field.'}


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (400, {"error": {"message": "the prompt is refused", "param": "messages"}}, SpeechFailed, "prompt is refused"),
        (400, {"error": {"message": "the audio is too long"}}, SpeechFailed, "audio is too long"),
        (400, {"error": {"message": "no such model", "param": "model"}}, ServerRefused, "check --model"),
        (422, {"detail": [{"loc": ["body", "audio", "voice"], "msg": "unknown"}]}, ServerRefused, "--voice"),
        (429, [{"error": {"code": 429, "message": "quota"}}], ServerBusy, "429: quota"),
        (429, None, ServerBusy, "429"),
        (503, "<html><title>Down</title></html>", ServerBusy, "Down"),
        (529, {"type": "error", "error": {"message": "Overloaded"}}, ServerBusy, "529: Overloaded"),
        (500, [], SpeechFailed, "answered 500"),
        (307, {}, ServerRefused, "307"),
        (200, {"error": {"code": 429, "message": "slow down"}}, ServerBusy, "429: slow down"),
        (200, {"error": {"message": "no GPU"}}, SpeechFailed, "answered with an error: no GPU"),
        (200, [{"error": "no GPU"}], SpeechFailed, "no GPU"),
        (200, [], SpeechFailed, "is not a chat completion"),
        (200, None, SpeechFailed, "is not a chat completion"),
        (200, {"choices": [{"message": [1]}]}, SpeechFailed, "no message|not a chat completion"),
        (204, "", SpeechFailed, "is not a chat completion"),
    ],
)
def test_an_answer_is_judged_by_its_status_whatever_its_body_is(
    status: int, body: Any, error: type[Exception], words: str
) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with pytest.raises(error, match=words):
        served(lambda request: Reply(((0.0, data),), status=status, length=len(data)), WRITE)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"<html>", "is not a chat completion"),
        (b'{"choices": []}', "is not a chat completion"),
        (written_completion("<think>only thoughts</think>"), "only thoughts, no words"),
        (written_completion("<think>Host 1: thoughts that never end"), "only thoughts, no words"),
    ],
)
def test_an_answer_without_words_is_the_systems_failure(answer: bytes, reason: str) -> None:
    with pytest.raises(SpeechFailed, match=reason):
        served(lambda request: json_reply(answer), WRITE)


@pytest.mark.parametrize("encode", [base64.urlsafe_b64encode, base64.encodebytes])
def test_the_sound_of_an_answer_is_read_in_each_form_of_base64(tmp_path: Path, encode: Any) -> None:
    (tmp_path / "t1.wav").write_bytes(wav(0.2))
    ask = Ask(id="d", user=(RecordedUserTurn(id="t1", audio=str(tmp_path / "t1.wav")),))
    message = {"audio": {"data": encode(wav(0.5)).decode(), "transcript": "hi"}}
    answers, _ = served(lambda request: json_reply(json.dumps({"choices": [{"message": message}]}).encode()), ask)
    assert answers.answers[0].speech.duration == pytest.approx(0.5)


def test_an_answer_without_sound_is_the_systems_failure(tmp_path: Path) -> None:
    (tmp_path / "t1.wav").write_bytes(wav(0.2))
    ask = Ask(id="d", user=(RecordedUserTurn(id="t1", audio=str(tmp_path / "t1.wav")),))
    with pytest.raises(SpeechFailed, match="answered turn t1 without audio: 'only words'"):
        served(lambda request: json_reply(written_completion("only words")), ask)
