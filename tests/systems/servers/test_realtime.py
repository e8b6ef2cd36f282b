"""Live conversations with a server on loopback: delays that it plants are found, and what goes wrong is said."""

import asyncio
import base64
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from aiohttp import web

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item, keep_metrics
from podeval.errors import BadInput, PodevalError
from podeval.runs.own_system import OwnSystem, describe_turn_taking, run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import Output, RunFolder
from podeval.runs.submission_draft import draft_submission
from podeval.systems.servers import live_conversation
from podeval.systems.servers.connection import (
    RequestRefused,
    ServerBroke,
    ServerBusy,
    ServerConnection,
    ServerRefused,
)
from podeval.systems.servers.realtime import RealtimeEndpoint
from podeval.systems.servers.server_errors import read_fields
from podeval.systems.speech import Ask, RecordedUserTurn, SpeechFailed, SpokenAnswers
from tests.fakes.bounded_memory import bounded_memory
from tests.fakes.loopback_realtime import RATE, PlannedAnswer, RealtimeServer, tone
from tests.fakes.realtime_packages import PackageLoader, load_openai_types, serve_sglang_omni, serve_vllm_omni

NEAR = 0.02
"""Seconds within which planted times are found; the server's own stamps say when it kept its plan."""


def record_turns(folder: Path, *seconds: float, rate: int = RATE) -> Ask:
    turns = []
    for number, length in enumerate(seconds):
        file = folder / f"t{number}.wav"
        soundfile.write(file, np.frombuffer(tone(length, rate), "<i2"), rate, subtype="PCM_16")
        turns.append(RecordedUserTurn(id=f"t{number}", audio=str(file)))
    return Ask(id="d", user=tuple(turns))


def converse(
    server: RealtimeServer, ask: Ask, tries: int = 1, timeout: float = 10.0, model: str = "m", **options: Any
) -> SpokenAnswers:
    connection = ServerConnection(server.url, tries=tries, timeout=timeout, sleep=lambda seconds: None)
    return RealtimeEndpoint(connection, model, **options).make_one(ask, 0)


def list_events(server: RealtimeServer, kind: str) -> list[dict[str, Any]]:
    return [event for event in server.events if event["type"] == kind]


def test_fields_reach_the_session_and_the_protocol(tmp_path: Path) -> None:
    fields = ("temperature=0.5", 'audio={"output": {"speed": 1.1}}', "type=null")
    with RealtimeServer(lambda number: PlannedAnswer()) as server:
        system = RealtimeEndpoint.open(ServerConnection(server.url), "m", ("marin",), field=fields)
        system.make_one(record_turns(tmp_path, 0.3), 0)
    (update,) = list_events(server, "session.update")
    assert (update["session"]["temperature"], "type" in update["session"]) == (0.5, False)
    assert update["session"]["audio"]["output"].items() >= {"speed": 1.1, "voice": "marin"}.items()
    assert system.generation["extra"] == read_fields(fields)


def test_planted_reply_delays_are_found(tmp_path: Path) -> None:
    delays = (0.15, 0.5, 0.3, 0.4, 0.25)
    ask = record_turns(tmp_path, 0.3, 0.31, 0.42, 0.3, 0.35)
    with RealtimeServer(lambda number: PlannedAnswer(delay=delays[number])) as server:
        answers = converse(server, ask)
    stamped = server.takers[0].stamps.delays
    assert all(actual >= planned for actual, planned in zip(stamped, delays, strict=True))
    timing = answers.details["turn_taking"]
    measured = [reply["reply_delay"] for reply in timing["replies"]]
    errors = [abs(found - actual) for found, actual in zip(measured, stamped, strict=True)]
    assert np.median(errors) < NEAR, (measured, stamped)
    assert abs(timing["reply_delay"] - np.median(stamped)) < NEAR
    assert timing["interruptions"] == []
    assert timing["overlap_share"] == 0
    assert [answer.text for answer in answers.answers] == ["Yes."] * 5
    assert [answer.speech.duration for answer in answers.answers] == [pytest.approx(0.5, abs=NEAR)] * 5


def test_planted_stops_are_found_when_the_person_interrupts(tmp_path: Path) -> None:
    ask = record_turns(tmp_path, 0.4, 0.6, 0.6, 0.6)
    with RealtimeServer(lambda number: PlannedAnswer(seconds=2.0, notices=(0.15, 0.3, 0.2, 0.2)[number])) as server:
        answers = converse(server, ask, interrupt_after=0.4)
    stamps = server.takers[0].stamps
    timing = answers.details["turn_taking"]
    stops = [at - begun for at, begun in zip(stamps.noticed, stamps.begun, strict=True)][1:]
    errors = [abs(found["stopping_time"] - stop) for found, stop in zip(timing["interruptions"], stops, strict=True)]
    assert np.median(errors) < NEAR, (timing, stops)
    assert [found["stopped"] for found in timing["interruptions"]] == [True] * 3
    assert timing["overlap_share"] > 0.1
    heard = [answer.speech.duration for answer in answers.answers]
    assert heard[:3] == [pytest.approx(0.4 + stop, abs=4 * NEAR) for stop in stops]
    assert heard[3] == pytest.approx(2.0, abs=NEAR)
    truncated = list_events(server, "conversation.item.truncate")
    assert [event["audio_end_ms"] / 1000 for event in truncated] == [
        pytest.approx(each, abs=NEAR) for each in heard[:3]
    ]
    answered = [each["item_id"] for each in server.answers if each["type"] == "response.output_audio.done"]
    assert [event["item_id"] for event in truncated] == answered[:3]


def test_a_system_that_talks_on_did_not_stop(tmp_path: Path) -> None:
    with RealtimeServer(lambda number: PlannedAnswer(seconds=1.5, notices=None)) as server:
        answers = converse(server, record_turns(tmp_path, 0.3, 0.3), interrupt_after=0.3)
    (interruption,) = answers.details["turn_taking"]["interruptions"]
    assert not interruption["stopped"]
    assert interruption["stopping_time"] == pytest.approx(1.2, abs=3 * NEAR)
    assert answers.details["turn_taking"]["stopping_time"] is None
    assert not list_events(server, "conversation.item.truncate")


def test_a_conversation_is_held_where_an_event_loop_runs_already(tmp_path: Path) -> None:
    """A notebook's own, for example, or the one of a browser under test."""

    async def cell(server: RealtimeServer) -> SpokenAnswers:
        return converse(server, record_turns(tmp_path, 0.3))

    with RealtimeServer(lambda number: PlannedAnswer()) as server, ThreadPoolExecutor(1) as notebook:
        answers = notebook.submit(asyncio.run, cell(server)).result()
    assert len(answers.answers) == 1


def test_a_backchannel_is_no_answer(tmp_path: Path) -> None:
    """A short response while the person speaks, and the answer after it."""

    async def handler(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "session.created", "session": {"audio": {}}})
        async for message in socket:
            server.events.append(json.loads(message.data))
            if len(server.events) == 1:
                await socket.send_json({"type": "session.updated", "session": {}})
            for name, at, seconds in (("mm-hm", 40, 0.2), ("answer", 140, 1.2)):
                if len(server.events) == at:
                    delta = base64.b64encode(tone(seconds)).decode()
                    await socket.send_json({"type": "response.output_audio.delta", "response_id": name, "delta": delta})
                    await socket.send_json({"type": "response.done", "response": {"id": name, "status": "completed"}})
        return socket

    with RealtimeServer(handler=handler) as server:
        answers = converse(server, record_turns(tmp_path, 1.0))
    timing = answers.details["turn_taking"]
    assert timing["events"]["backchannel"] == 1
    assert timing["backchannels_per_minute"] == pytest.approx(60 / 2.6, rel=0.1)
    assert timing["overlap_share"] == pytest.approx(0.2 / 2.2, rel=0.1)
    assert timing["reply_delay"] == pytest.approx(0.39, abs=5 * NEAR)
    assert answers.answers[0].speech.duration == pytest.approx(1.2, abs=NEAR)


def test_both_channels_are_kept_with_their_times(tmp_path: Path) -> None:
    ask = record_turns(tmp_path, 0.3, 0.4, rate=44_100)
    with RealtimeServer() as server:
        answers = converse(server, ask)
    assert answers.conversation is not None
    person, system = answers.conversation.samples.T
    for turn, answer, seconds in zip(answers.details["times"], answers.answers, (0.3, 0.4), strict=True):
        first, end = (round(turn[name] * RATE) for name in ("start", "end"))
        assert end - first == seconds * RATE
        assert np.sqrt(np.mean(person[first:end] ** 2)) == pytest.approx(9_000 / 32_768 / np.sqrt(2), rel=0.02)
        assert not np.any(system[first:end])
        first = round(turn["answer_start"] * RATE)
        heard = system[first : first + len(answer.speech.samples) - 1]
        # A tone of 300 Hz: the two begin within a sample of each other.
        assert np.abs(heard[1:] - answer.speech.samples[1 : len(heard)]).max() < 0.05
    sent = b"".join(base64.b64decode(event["audio"]) for event in list_events(server, "input_audio_buffer.append"))
    samples = np.frombuffer(sent, "<i2") / 32_768
    first, end = (round(answers.details["times"][1][name] * RATE) for name in ("start", "end"))
    # What was sent is what was recorded, at its time.
    assert np.abs(samples[first : end - 20] - person[first : end - 20]).max() < 1e-3


def test_a_faster_conversation_is_not_timed(tmp_path: Path) -> None:
    with RealtimeServer(lambda number: PlannedAnswer(delay=0.1)) as server:
        answers = converse(server, record_turns(tmp_path, 1.0, 1.0), pace=8.0)
    assert not answers.details.keys() & {"turn_taking", "playback"}
    assert answers.answers[1].speech.duration == pytest.approx(0.5)
    endpoint = RealtimeEndpoint(ServerConnection(server.url), "m", pace=8.0)
    assert endpoint.generation["pace"] == 8.0
    assert endpoint.generation != RealtimeEndpoint(ServerConnection(server.url), "m").generation


# What goes wrong, in the server's words.


def error_event(message: str, **about: Any) -> dict[str, Any]:
    return {"type": "error", "event_id": "e", "error": {"message": message, "type": "invalid_request_error", **about}}


def answer_event(data: Any, **more: Any) -> dict[str, Any]:
    return {"type": "response.output_audio.delta", "response_id": "r", "item_id": "i", "delta": data, **more}


def done_event(status: str = "completed", **details: Any) -> dict[str, Any]:
    return {"type": "response.done", "response": {"id": "r", "status": status, "status_details": details}}


WORDS = {"type": "response.output_text.delta", "response_id": "r", "delta": "Only words."}
SOUND = base64.b64encode(tone(0.1)).decode()
WRONG = {
    "key": ((error_event("Incorrect API key", code="invalid_api_key"),), ServerRefused, "PODEVAL_SERVER_KEY"),
    "model": ((error_event("no model m", code="model_not_found"),), ServerRefused, "no model m.*--model"),
    "voice": (
        (error_event("Invalid value: 'x'", param="session.audio.output.voice"),),
        ServerRefused,
        "Invalid value: 'x'.*--voice",
    ),
    "pace": ((error_event("Rate limit reached", code="rate_limit_exceeded"),), ServerBusy, "Rate limit reached"),
    "expired": ((error_event("60 minutes are over", code="session_expired"),), ServerBusy, "60 minutes"),
    "theirs": ((error_event("out of memory", type="server_error"),), ServerBroke, "out of memory"),
    "ours": ((error_event("unknown field", param="session.tempo"),), SpeechFailed, "unknown field"),
    "vllm": (({"type": "error", "error": "CUDA error", "code": "processing_error"},), ServerBroke, "CUDA error"),
    "bare": (({"type": "error"},), ServerBroke, "answered 500"),
    "failed": (
        (done_event("failed", error={"type": "server_error", "message": "the GPU is lost"}),),
        ServerBroke,
        "the GPU is lost",
    ),
    "no quota": (
        (done_event("failed", error={"code": "insufficient_quota", "message": "pay first"}),),
        ServerBusy,
        "pay first",
    ),
    "no reason": ((done_event("failed", reason="x"),), ServerBroke, "answered 500: x"),
    "text": ((WORDS, done_event()), SpeechFailed, "turn t0 without audio: 'Only words.'"),
    "silence": ((answer_event(base64.b64encode(bytes(9_600)).decode()), done_event()), SpeechFailed, "with silence"),
    "no base64": ((answer_event("?"),), ServerBroke, "not 16-bit samples in base64"),
    "half a sample": ((answer_event(base64.b64encode(bytes(9)).decode()),), ServerBroke, "not 16-bit samples"),
    "no sound": ((answer_event(None),), ServerBroke, "not 16-bit samples in base64"),
    "a file": ((answer_event(base64.b64encode(b"RIFF" + bytes(40)).decode()),), SpeechFailed, "audio files"),
    "no JSON": (({"raw": "Internal Server Error"},), ServerBroke, "not an event: 'Internal Server Error'"),
    "a list": (({"raw": "[1]"},), ServerBroke, "not an event"),
    "no type": (({"raw": '{"type": 3}'},), ServerBroke, "not an event"),
    "deep": (({"raw": "[" * 100_000},), ServerBroke, "not an event"),
    "too large": (({"raw": "x" * (2**24 + 1)},), SpeechFailed, "more than 16 MiB"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_said_in_the_servers_words(tmp_path: Path, name: str) -> None:
    events, kind, words = WRONG[name]
    with (
        RealtimeServer(lambda number: PlannedAnswer(delay=0.05, instead=events)) as server,
        pytest.raises(PodevalError, match=words) as caught,
    ):
        converse(server, record_turns(tmp_path, 0.1))
    assert type(caught.value) is kind


def test_events_with_odd_values_are_taken_as_far_as_they_go(tmp_path: Path) -> None:
    events = (
        {"type": "rate_limits.updated", "rate_limits": []},
        {"type": "response.created", "response": None, "response_id": "r"},
        answer_event(SOUND, content_index="x", sample_rate_hz=True),
        answer_event(SOUND, content_index=None, sample_rate_hz=0),
        answer_event(""),
        {"type": "response.done", "response_id": "r", "response": {"status": "completed", "usage": "much"}},
    )
    with RealtimeServer(lambda number: PlannedAnswer(instead=events)) as server:
        answers = converse(server, record_turns(tmp_path, 0.1))
    assert answers.answers[0].speech.duration == pytest.approx(0.2, abs=1e-3)
    assert answers.answers[0].text is None


def test_an_answer_that_is_cut_short_by_the_server_is_noted(tmp_path: Path) -> None:
    events = (answer_event(SOUND), done_event("incomplete", reason="content_filter"))
    with RealtimeServer(lambda number: PlannedAnswer(instead=events)) as server:
        answers = converse(server, record_turns(tmp_path, 0.1))
    assert "the server ended an answer early: content_filter" in answers.details["notes"]


def test_an_error_about_what_was_played_is_noted_and_costs_nothing(tmp_path: Path) -> None:
    async def handler(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "session.created", "session": {"audio": {}}})
        async for message in socket:
            event = json.loads(message.data)
            server.events.append(event)
            if event["type"] == "session.update":
                await socket.send_json({"type": "session.updated", "session": {}})
            elif event["type"] == "conversation.item.truncate":
                await socket.send_json(error_event("Audio is shorter", event_id=event["event_id"]))
            elif len(server.events) == 20:
                await socket.send_json(answer_event(base64.b64encode(tone(10.0)).decode()))
            # While the person still speaks, so that the conversation goes on; the turn has 300 events.
            elif len(server.events) == 200:
                await socket.send_json({"type": "input_audio_buffer.speech_started"})
            elif len(server.events) == 340:
                await socket.send_json({**answer_event(SOUND), "response_id": "r2"})
                await socket.send_json({"type": "response.done", "response": {"id": "r2", "status": "completed"}})
        return socket

    with RealtimeServer(handler=handler) as server:
        answers = converse(server, record_turns(tmp_path, 3.0))
    assert "Audio is shorter" in answers.details["notes"]
    assert answers.answers[0].speech.duration < 8.0


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, {"error": {"message": "Incorrect API key provided: sk-1"}}, ServerRefused, "Incorrect.*PODEVAL_SERVER"),
        (403, {}, ServerRefused, "answered 403"),
        (404, {"detail": "Not Found"}, ServerRefused, "Not Found.*address"),
        (429, {"error": {"message": "slow down"}}, ServerBusy, "slow down"),
        (503, {"error": {"message": "connection capacity exhausted"}}, ServerBusy, "capacity exhausted"),
        (500, {"error": {"message": "it broke"}}, ServerBroke, "it broke"),
        (307, {}, ServerRefused, "http://127.0.0.1:9/other"),
        (200, {"hello": 1}, ServerRefused, "address"),
    ],
)
def test_a_server_that_opens_no_websocket_is_quoted(
    tmp_path: Path, status: int, body: Any, kind: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_SERVER_KEY", "sk-secret")

    async def handler(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
        headers = {"Location": "http://127.0.0.1:9/other"} if status == 307 else {}
        return (
            web.json_response(body, status=status, headers=headers)
            if body
            else web.Response(status=status, headers=headers)
        )

    with RealtimeServer(handler=handler) as server, pytest.raises(PodevalError, match=words) as caught:
        converse(server, record_turns(tmp_path, 0.1))
    assert type(caught.value) is kind
    assert "sk-secret" not in str(caught.value)
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer sk-secret"]
    assert server.requests[0].query["model"] == "m"


def test_nobody_there_is_said(tmp_path: Path) -> None:
    endpoint = RealtimeEndpoint(ServerConnection("http://127.0.0.1:9/v1", tries=1), "m")
    with pytest.raises(ServerBusy, match=r"no server answers at http://127\.0\.0\.1:9/v1"):
        endpoint.make([record_turns(tmp_path, 0.1)], 0)


async def keep_quiet(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
    """Say nothing, or nothing after the session is open; a `deaf` one answers no pings either."""
    model = request.query["model"]
    socket = web.WebSocketResponse(autoping=model != "deaf")
    await socket.prepare(request)
    if model != "mute":
        await socket.send_json({"type": "session.created", "session": {"audio": {}}})
        await socket.receive()
        await socket.send_json({"type": "session.updated", "session": {}})
    async for _ in socket:
        pass
    return socket


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    with RealtimeServer(handler=keep_quiet) as server:
        with pytest.raises(ServerBusy, match=r"sent nothing for 1 s"):
            converse(server, record_turns(tmp_path, 0.1), timeout=1.0, model="mute")
        with pytest.raises(SpeechFailed, match=r"sent nothing for 1 s after turn t0"):
            converse(server, record_turns(tmp_path, 0.1), timeout=1.0, model="patient")
        # Half-open: it takes what comes, and answers no ping.
        with pytest.raises(ServerBroke, match="before its end"):
            converse(server, record_turns(tmp_path, 8.0), timeout=1.0, model="deaf")


def test_a_conversation_that_broke_is_held_anew(tmp_path: Path) -> None:
    conversations = itertools.count()

    def plan(number: int) -> PlannedAnswer:
        return PlannedAnswer(delay=0.05, hang_up=1011 if number == 1 and next(conversations) < 1 else 0)

    with RealtimeServer(plan) as server:
        answers = converse(server, record_turns(tmp_path, 0.1, 0.1), tries=2)
    assert answers.details["requests"] == len(server.requests) == 2
    with RealtimeServer(lambda number: PlannedAnswer(hang_up=1011)) as server:
        with pytest.raises(ServerBroke, match=r"before its end: the model crashed \(code 1011\)"):
            converse(server, record_turns(tmp_path, 0.1), tries=2)
        assert len(server.requests) == 2


def test_an_answer_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_conversation, "LONGEST_ANSWER", 1.0)
    with (
        RealtimeServer(lambda number: PlannedAnswer(seconds=20.0)) as server,
        pytest.raises(SpeechFailed, match="longer than 1 s, or does not end"),
    ):
        converse(server, record_turns(tmp_path, 0.1))
    monkeypatch.setattr(live_conversation, "LONGEST_ANSWER", 300.0)
    limits = {"MOST_MESSAGES": (5, "5 messages"), "MOST_IN_ALL": (2**15, "0 MiB"), "MOST_RESPONSES": (0, "0 resp")}
    for name, (most, sentence) in limits.items():
        with RealtimeServer(lambda number: PlannedAnswer(seconds=0.9)) as server, monkeypatch.context() as bounds:
            bounds.setattr(live_conversation, name, most)
            with pytest.raises(SpeechFailed, match=f"more than .*{sentence}"):
                converse(server, record_turns(tmp_path, 0.1, 0.1))


def test_an_event_of_millions_of_values_takes_no_memory(tmp_path: Path) -> None:
    """Three million empty lists in 12 MB, which is less than a message may have."""
    event = {"raw": '{"type": "response.created", "values": [' + "[]," * 3_000_000 + "0]}"}
    with (
        RealtimeServer(lambda number: PlannedAnswer(instead=(event,))) as server,
        bounded_memory(200 * 2**20),
        pytest.raises(ServerBroke, match="not an event"),
    ):
        converse(server, record_turns(tmp_path, 0.1), tries=1)


def test_a_machine_that_is_too_slow_is_not_the_systems_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_conversation, "MOST_LATE", -1.0)
    with RealtimeServer() as server, pytest.raises(ServerBusy, match="overloaded"):
        converse(server, record_turns(tmp_path, 0.1))


def test_only_recorded_turns_are_said(tmp_path: Path) -> None:
    with RealtimeServer() as server:
        with pytest.raises(BadInput, match="no turns of a person to answer"):
            converse(server, Ask(id="w", prompt="Write."))
        with pytest.raises(BadInput, match="turn t of d has no recording"):
            converse(server, Ask(id="d", user=(RecordedUserTurn(id="t"),)))
        (tmp_path / "t.wav").write_bytes(b"no sound")
        with pytest.raises(BadInput):
            converse(server, Ask(id="d", user=(RecordedUserTurn(id="t", audio=str(tmp_path / "t.wav")),)))
    assert not server.requests


# Runs.


def test_a_run_keeps_conversations_and_goes_on_where_it_was(tmp_path: Path) -> None:
    mtalk = benchmarks.get("mtalk_bench")
    request = RunRequest(
        keep_metrics(mtalk, ["content_density"], "respond"), mtalk.first_split.name, "respond", tmp_path
    )
    conversations = itertools.count()

    def plan(number: int) -> PlannedAnswer:
        return PlannedAnswer(delay=0.05, notices=None, hang_up=1011 if next(conversations) in (2, 3) else 0)

    def run(**options: Any) -> RunFolder:
        connection = ServerConnection(server.url, tries=1, timeout=5.0)
        run_own_system(OwnSystem(RealtimeEndpoint(connection, "m", pace=30.0, **options), "live", "Live"), request)
        return RunFolder(tmp_path, "mtalk_bench", mtalk.first_split.name, "live")

    with RealtimeServer(plan) as server:
        folder = run()
        outputs = [folder.output(item.id) for item in folder.items() or ()]
        failed = [output for output in outputs if output and output.failed]
        assert all("closed the conversation before its end" in str(output.failed) for output in failed), failed
        before, requests = len(failed), len(server.requests)
        assert before
        whole = next(output for output in outputs if output and output.answers)
        both, rate = soundfile.read(folder.outputs / str(whole.audio))
        assert both.shape[1] == 2
        assert len(both) / rate > sum(turn["end"] - turn["start"] for turn in whole.details["times"])
        draft = draft_submission(folder.path, tmp_path / "draft", "live")
        drafted = {path.name for path in (draft.document.parent / "outputs").rglob("*.flac")}
        assert drafted == {f"{turn['turn']}.flac" for o in outputs if o and o.answers for turn in o.details["times"]}
        run()
        assert len(server.requests) == requests, "what the system failed at is not tried again without --retry"
        with pytest.raises(BadInput, match="choose another"):
            run(interrupt_after=1.0)


def test_the_command_says_how_turns_were_taken(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "b", "s", "live")
    log = {
        "replies": [{"turn": "a", "reply_delay": 0.5}, {"turn": "b", "reply_delay": None}],
        "interruptions": [{"turn": "b", "stopping_time": 0.25, "stopped": True}],
        "overlap_share": 0.04,
    }
    folder.write_items([Item(id="i", topic="t", language="en", voices=1)])
    assert describe_turn_taking(folder) is None
    folder.write_output(Output(item="i", details={"turn_taking": log}))
    sentence = describe_turn_taking(folder)
    assert sentence == (
        "replies after 0.50 s (median of 1), stopped 1 of 1 times when interrupted, after 0.25 s (median); "
        "both sides speak at once in 4.0% of the time with speech"
    )
    quiet = {"replies": [{"turn": "a", "reply_delay": None}], "interruptions": [], "overlap_share": 0.0}
    folder.write_output(Output(item="i", details={"turn_taking": quiet}))
    assert (
        describe_turn_taking(folder) == "no replies to time; both sides speak at once in 0.0% of the time with speech"
    )


# The real packages.


@pytest.mark.parametrize(
    ("created", "dialect", "rate"),
    [
        ({"session": {"input_audio_format": "pcm16", "modalities": ["text"]}}, "beta", 24_000),
        ({"session": {"input_audio_format": "pcm16", "capabilities": {}}}, "sglang-omni cascade", 16_000),
        ({"id": "sess-1", "created": 1}, "vllm-omni turns", 16_000),
    ],
)
def test_older_dialects_are_spoken(tmp_path: Path, created: dict[str, Any], dialect: str, rate: int) -> None:
    """Flat sessions, and vLLM's connection that answers what is between two commits, read from their packages."""
    turn_by_turn = "session" not in created

    async def handler(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "session.created", **created})
        pieces, flat = 0, {"type": "response.audio.delta", "response_id": "r", "delta": SOUND}
        ends = {"type": "response.done", "response": {"id": "r", "status": "completed"}}
        async for message in socket:
            event = json.loads(message.data)
            server.events.append(event)
            if event["type"] == "session.update" and not turn_by_turn:
                await socket.send_json({"type": "session.updated", **created})
            elif event["type"] == "input_audio_buffer.append":
                pieces += len(base64.b64decode(event["audio"])) // 2
                if pieces == rate * 0.2 and not turn_by_turn:
                    await socket.send_json(
                        {"type": "response.audio_transcript.delta", "response_id": "r", "delta": "Yes."}
                    )
                    await socket.send_json(flat)
                    await socket.send_json(ends)
            elif event.get("final"):
                await socket.send_json({"type": "transcription.delta", "delta": "Yes."})
                about = {"audio": SOUND, "format": "pcm16", "sample_rate_hz": 24_000}
                await socket.send_json({"type": "response.output_audio.delta", **about})
                await socket.send_json({"type": "transcription.done", "text": "Yes."})
                await socket.send_json({"type": "response.output_audio.done", "has_audio": True})
        return socket

    turns = (0.1, 0.1) if turn_by_turn else (0.1,)
    with RealtimeServer(handler=handler) as server:
        answers = converse(server, record_turns(tmp_path, *turns))
        assert answers.details["dialect"] == dialect
        assert [answer.text for answer in answers.answers] == ["Yes."] * len(turns)
        assert answers.answers[0].speech.duration == pytest.approx(0.1)
        assert {len(base64.b64decode(e["audio"])) for e in list_events(server, "input_audio_buffer.append")} == {
            rate // 50
        }
        if turn_by_turn:
            commits = [event["final"] for event in list_events(server, "input_audio_buffer.commit")]
            assert commits == [False, True, False, True]
            assert len(list_events(server, "input_audio_buffer.append")) == 20, "no silence between the turns"
            assert server.events[0]["model"] == "m"
        else:
            assert server.events[0]["session"]["turn_detection"] == {"type": "server_vad"}
        if dialect != "beta":
            with pytest.raises(ServerRefused, match="accepts no voice"):
                converse(server, record_turns(tmp_path, 0.1), voice="marin")


@pytest.fixture
def loader(reference_packages: Path, monkeypatch: pytest.MonkeyPatch) -> PackageLoader:
    return PackageLoader(reference_packages, monkeypatch)


def require_delays(server: RealtimeServer, answers: SpokenAnswers) -> None:
    stamps, timing = server.takers[0].stamps, answers.details["turn_taking"]
    delays = [reply["reply_delay"] for reply in timing["replies"]]
    errors = [abs(found - actual) for found, actual in zip(delays, stamps.delays, strict=True)]
    # The package's own work on each event is between the two clocks.
    assert np.median(errors) < 3 * NEAR, (delays, stamps.delays)
    assert [each["stopped"] for each in timing["interruptions"]] == [True, True]
    assert [answer.text for answer in answers.answers] == ["Yes."] * 4


def plan_interrupted(number: int) -> PlannedAnswer:
    return PlannedAnswer(seconds=(1.5, 1.5, 0.2, 0.5)[number])


def test_openais_types_take_our_events_and_the_loopback_servers(loader: PackageLoader, tmp_path: Path) -> None:
    take_ours, take_theirs = load_openai_types(loader)
    with RealtimeServer(plan_interrupted) as server:
        answers = converse(server, record_turns(tmp_path, 0.4, 0.4, 0.4, 0.4), voice="marin", interrupt_after=0.3)
    require_delays(server, answers)
    assert answers.details["dialect"] == "openai"
    for event in server.events:
        take_ours(event)
        for name in event.keys() - {"event_id"}:
            with pytest.raises(ValueError):  # noqa: PT011, the error of any of the types
                take_ours({other: value for other, value in event.items() if other != name})
    assert {event["type"] for event in server.events} == {
        "session.update",
        "input_audio_buffer.append",
        "conversation.item.truncate",
    }
    (update,) = list_events(server, "session.update")
    assert update["session"]["audio"]["output"]["voice"] == "marin"
    kinds = {
        "input_audio_buffer.speech_started",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
    }
    for event in server.answers:
        if event["type"] in kinds:
            take_theirs(event)


def test_sglang_omnis_own_session_is_spoken_with(loader: PackageLoader, tmp_path: Path) -> None:
    with RealtimeServer(plan_interrupted, serve_sglang_omni(loader)) as server:
        answers = converse(server, record_turns(tmp_path, 0.4, 0.4, 0.4, 0.4), interrupt_after=0.3)
        require_delays(server, answers)
        assert answers.details["dialect"] == "sglang-omni"
        assert "notes" not in answers.details or "late" in answers.details["notes"][0]
        accepted = [event for event in server.answers if event["type"] == "sglang.input_audio.accepted"]
        # 16 kHz, as the session grants it.
        assert accepted[-1]["accepted_end_ms"] == pytest.approx(10 * len(accepted))
        with pytest.raises(ServerRefused, match="accepts no voice"):
            converse(server, record_turns(tmp_path, 0.1), voice="marin")
        audio = {"input": {"format": {"type": "audio/pcm", "rate": 24_000}}}
        with pytest.raises(RequestRefused, match="unsupported PCM format"):
            converse(server, record_turns(tmp_path, 0.1), fields={"audio": audio})


def test_a_full_duplex_model_of_sglang_omni_stops_by_falling_silent(loader: PackageLoader, tmp_path: Path) -> None:
    native = {"interaction": "native", "turn_control": (None,), "input_sample_rate_hz": 24_000}
    handler = serve_sglang_omni(loader, **native)
    with RealtimeServer(lambda number: PlannedAnswer(seconds=0.8, notices=None), handler) as server:
        answers = converse(server, record_turns(tmp_path, 0.3, 1.0, 0.7), interrupt_after=0.3)
    timing, stamps = answers.details["turn_taking"], server.takers[0].stamps
    errors = [
        abs(reply["reply_delay"] - actual) for reply, actual in zip(timing["replies"], stamps.delays, strict=True)
    ]
    assert np.median(errors) < 3 * NEAR
    assert [each["stopped"] for each in timing["interruptions"]] == [True, True]
    assert timing["interruptions"][0]["stopping_time"] == pytest.approx(0.5, abs=4 * NEAR)
    assert [answer.text for answer in answers.answers] == ["Yes."] * 3
    assert [answer.speech.duration for answer in answers.answers] == [pytest.approx(0.8, abs=0.15)] * 3


def test_vllm_omnis_own_transport_is_spoken_with(loader: PackageLoader, tmp_path: Path) -> None:
    with RealtimeServer(plan_interrupted, serve_vllm_omni(loader)) as server:
        answers = converse(server, record_turns(tmp_path, 0.4, 0.4, 0.4, 0.4), voice="ryan", interrupt_after=0.3)
    require_delays(server, answers)
    assert answers.details["dialect"] == "vllm-omni"
    commands = server.takers[0].commands  # type: ignore[attr-defined]
    patch = commands[0].patch
    assert patch["audio"]["input"] == {
        "format": {"type": "audio/pcm", "rate": 16_000},
        "turn_detection": {"type": "server_vad"},
    }
    assert (patch["audio"]["output"]["voice"], patch["extra_body"]) == ("ryan", {"auto_response": True})
    kinds = [type(command).__name__ for command in commands]
    assert kinds.count("TruncateItem") == 2
    played = [command for command in commands if type(command).__name__ == "AckPlayback"]
    assert [command.played_ms for command in played] == [pytest.approx(200, abs=1)]
    assert {command.sample_rate_hz for command in commands if type(command).__name__ == "AppendAudio"} == {16_000}
    assert not [event for event in server.answers if event["type"] == "error"]
