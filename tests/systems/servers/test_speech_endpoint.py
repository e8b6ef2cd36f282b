"""Speech of a server on loopback: what is measured is what was planned, and what a server says wrongly is noticed."""

import inspect
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput
from podeval.systems.servers import SERVERS, find_server
from podeval.systems.servers.connection import ServerBusy, ServerConnection, ServerRefused
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.servers.streaming import RequestPace
from podeval.systems.speech import Ask, SpeechFailed
from podeval.text.script import Turn
from tests.fakes.bounded_memory import bounded_memory
from tests.fakes.loopback_speech import Plan, Reply, SpeechServer, pcm, wav
from tests.fakes.stated_counts import write_all

ASK = Ask(id="one", script=(Turn(speaker="Ann", text="Hello there."), Turn(speaker="Ben", text="Good day.")))
BOTH = {"connection", "model"}
ALONE = Ask(id="alone", script=(Turn(speaker="Ann", text="Hello there."),))


def speak(plan: Plan, ask: Ask = ALONE, pauses: list[float] | None = None, **options: Any) -> tuple[Any, SpeechServer]:
    """Have a script spoken by a server that follows a plan; pauses between tries are kept in `pauses`."""
    connection_options = {name: options.pop(name) for name in ("timeout", "tries", "pace") if name in options}
    with SpeechServer(plan) as server:
        sleep = (pauses if pauses is not None else []).append
        connection = ServerConnection(server.url, sleep=sleep, **connection_options)
        (speech,) = SpeechEndpoint(connection, "tts", ("a", "b"), **options).make([ask], 3)
    return speech, server


def whole(data: bytes, **more: Any) -> Reply:
    return Reply(((0.0, data),), length=len(data), **more)


def in_turn(*replies: Reply) -> Plan:
    return lambda request: replies[min(request["number"], len(replies) - 1)]


def test_each_turn_is_asked_for_in_its_speakers_voice() -> None:
    speech, server = speak(lambda request: whole(wav(0.5)), ASK)
    assert [(r["path"], r["model"], r["input"], r["voice"], r["seed"]) for r in server.requests] == [
        ("/v1/audio/speech", "tts", "Hello there.", "a", 3),
        ("/v1/audio/speech", "tts", "Good day.", "b", 3),
    ]
    assert [turn.speaker for turn in speech.turns] == ["Ann", "Ben"]
    assert speech.duration == pytest.approx(0.5 + 0.28 + 0.5, abs=0.05)
    assert speech.wall_seconds > 0


def test_what_a_server_answers_is_read_by_no_ffmpeg_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    import av

    monkeypatch.setattr(av, "open", lambda *_, **__: pytest.fail("FFmpeg reads it in this process"))
    spoken = io.BytesIO()
    soundfile.write(spoken, 0.1 * np.sin(np.arange(24_000) * 0.1), 24_000, format="MP3")
    speech, _ = speak(lambda request: whole(spoken.getvalue(), kind="audio/mpeg"))
    assert speech.duration == pytest.approx(1.0, abs=0.1)
    hostile = whole(write_all()["samples of one size"], kind="audio/mp4")
    with bounded_memory(128 * 2**20), pytest.raises(SpeechFailed, match="its index states 10,000,000"):
        speak(lambda request: hostile, tries=1)


def test_voices_of_the_command_line_belong_to_speakers_in_order_or_by_name() -> None:
    with SpeechServer(lambda request: whole(wav(0.2))) as server:
        SpeechEndpoint.open(ServerConnection(server.url), "tts", voice=("a", "Ann=onyx")).make([ASK], 3)
        assert [r["voice"] for r in server.requests] == ["onyx", "a"]
        with pytest.raises(BadInput, match="does not list its voices; name a voice for each speaker"):
            SpeechEndpoint.open(ServerConnection(server.url), "tts")


def test_a_script_with_more_speakers_than_voices_is_refused_in_words() -> None:
    three = Ask(id="three", script=tuple(Turn(speaker=name, text="Hi.") for name in ("A", "B", "C")))
    with pytest.raises(BadInput, match=r"speakers A, B, C, but 2 voices are named .* --voice"):
        speak(lambda request: whole(wav(0.2)), three)


def plan_stream(*arrivals: tuple[float, float]) -> Plan:
    """A stream of so many seconds of sound each at its time."""
    return lambda request: Reply(tuple((at, pcm(seconds)) for at, seconds in arrivals), kind="audio/pcm;rate=24000")


@pytest.mark.parametrize(
    ("arrivals", "underrun"),
    [
        (((0.15, 0.30), (0.25, 0.30), (0.35, 0.30)), 0.0),
        (((0.05, 0.10), (0.30, 0.10), (0.45, 0.20)), 0.15),
        (((0.25, 0.05), (0.50, 0.40)), 0.20),
    ],
)
def test_what_is_measured_of_a_stream_is_what_was_planned(
    arrivals: Sequence[tuple[float, float]], underrun: float
) -> None:
    # Another program may hold the processor for a moment, so the best of some tries counts; and what was planned counts
    # as the server kept to it.
    errors = []
    for _ in range(60):
        speech, server = speak(plan_stream(*arrivals), stream=True)
        kept = [(at, seconds) for at, (_, seconds) in zip(server.departures, arrivals, strict=True)]
        stalls = [max(0.0, at) for at in _plan_stalls(kept)]
        sound = sum(seconds for _, seconds in kept)
        planned = {
            "time_to_first_audio": kept[0][0],
            "underrun": max(stalls),
            "chunk_cadence": float(np.median(np.diff([at for at, _ in kept]))),
            "continuous_playback": sound / (sound + sum(stalls)),
            "wall_seconds": kept[-1][0],
        }
        measured = {**speech.details["playback"], "wall_seconds": speech.wall_seconds}
        errors.append(max(abs(measured[name] - value) for name, value in planned.items()))
        if errors[-1] < 0.02 and abs(max(stalls) - underrun) < 0.05:
            break
    assert errors[-1] < 0.02, errors
    assert server.requests[0]["stream"] is True
    assert server.requests[0]["stream_format"] == "audio"


def _plan_stalls(arrivals: Sequence[tuple[float, float]]) -> list[float]:
    until, stalls = arrivals[0][0], []
    for at, seconds in arrivals:
        stalls.append(at - until)
        until = max(until, at) + seconds
    return stalls


def test_a_server_that_asks_for_patience_gets_it() -> None:
    pauses: list[float] = []
    busy = Reply(((0.0, b"{}"),), status=429, headers={"Retry-After": "7"}, length=2)
    broken = Reply(((0.0, b"oh"),), status=500, length=2)
    speech, server = speak(in_turn(busy, broken, whole(wav(0.3))), pauses=pauses)
    assert len(server.requests) == 3
    assert pauses[0] == 7
    assert speech.details["requests"] == 3
    assert speech.wall_seconds < 7, "pauses are no work of the system"


def test_a_server_that_stays_busy_leaves_the_item_for_later() -> None:
    busy = Reply(((0.0, b'{"error": {"message": "too many"}}'),), status=503, length=34)
    with pytest.raises(ServerBusy, match=r"answered 503: too many"):
        speak(in_turn(busy), tries=2)
    patient = Reply(((0.0, b"{}"),), status=429, headers={"Retry-After": "3600"}, length=2)
    pauses: list[float] = []
    with pytest.raises(ServerBusy, match="429"):
        speak(in_turn(patient), pauses=pauses)
    assert pauses == [], "an hour is not waited for"


@pytest.mark.parametrize("length", [None, 40_000])
def test_a_body_that_ends_early_is_asked_for_again(length: int | None) -> None:
    cut = Reply(((0.0, wav(0.5)[:9_000]),), length=length, hang_up=True)
    speech, server = speak(in_turn(cut, whole(wav(0.5))))
    assert len(server.requests) == 2
    assert speech.duration == pytest.approx(0.5, abs=0.05)
    with pytest.raises(SpeechFailed, match="was lost"):
        speak(in_turn(cut), tries=2)


def test_a_wav_that_announces_more_than_comes_is_no_whole_answer() -> None:
    short = wav(0.5)[:12_000]
    with pytest.raises(SpeechFailed, match=r"cut off or damaged: only 0.25 of about 0.50 s"):
        speak(in_turn(whole(short)), tries=2)


def test_where_a_header_lies_about_the_rate_the_sound_counts() -> None:
    speech, _ = speak(in_turn(whole(wav(0.5, rate=16_000), headers={"X-Sample-Rate": "48000"})))
    assert (speech.rate, speech.duration) == (16_000, pytest.approx(0.5, abs=0.05))
    assert speech.details["headers_wrong"] == ["a header says 48000 Hz, but the audio has 16000 Hz"]


def test_turns_of_two_rates_are_joined_at_the_first() -> None:
    speech, _ = speak(in_turn(whole(wav(0.5, rate=24_000)), whole(wav(0.5, rate=16_000))), ASK)
    assert speech.rate == 24_000
    assert speech.details["rates"] == [16_000, 24_000]
    assert speech.duration == pytest.approx(1.28, abs=0.05)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (whole(b'{"error": "no"}', kind="application/json"), "answered with an error: no"),
        (whole(b"", kind="audio/wav"), "instead of audio"),
        (whole(b"RIFF" + b"\0" * 60), "is no audio file|cannot be decoded"),
        (whole(b"\0" * 4_801, kind="audio/pcm"), "the last 16-bit sample is incomplete"),
        (whole(wav(0.1, rate=1_000)), "sampling rate of 1000 Hz"),
        (whole(pcm(0.1), kind="audio/pcm;rate=500000"), "500000 Hz"),
        (whole(np.zeros(4_800, "<i2").tobytes(), kind="audio/pcm"), "only silence"),
        (whole(b"nothing that is sound" * 50, kind="audio/mpeg"), "sent audio/mpeg instead of audio"),
        (whole(b"\xff\xfb\x90" + bytes(50), kind="audio/mpeg"), "cannot be decoded"),
    ],
)
def test_what_is_no_sound_is_the_systems_failure(reply: Reply, reason: str) -> None:
    with pytest.raises(SpeechFailed, match=reason):
        speak(in_turn(reply), tries=1)


def test_a_key_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_SERVER_KEY", "s3cret")
    _, server = speak(in_turn(whole(wav(0.2))))
    assert server.keys == ["Bearer s3cret"]
    refusal = b'{"error": {"message": "s3cret is no key"}}'
    with pytest.raises(ServerRefused, match=r"401: \[key\] is no key; set PODEVAL_SERVER_KEY"):
        speak(in_turn(whole(refusal, status=401)))
    with pytest.raises(BadInput, match="PODEVAL_SERVER_KEY in the environment instead"):
        ServerConnection("http://me:s3cret@localhost/v1")


def test_a_request_that_the_server_does_not_take_fails_the_item_alone() -> None:
    with pytest.raises(SpeechFailed, match="422"):
        speak(in_turn(whole(b"too long", status=422)))
    with pytest.raises(ServerRefused, match=r"404; .*--model"):
        speak(in_turn(whole(b"", status=404)))


def test_what_the_server_charges_is_kept() -> None:
    speech, _ = speak(lambda request: whole(wav(0.2), headers={"X-Litellm-Response-Cost": "0.0125"}), ASK)
    assert speech.details["cost"] == 0.025


def test_a_system_behind_a_server_says_which_options_it_takes() -> None:
    for api in SERVERS:
        assert set(find_server(api).options) == set(inspect.signature(find_server(api).open).parameters) - BOTH
    with pytest.raises(BadInput, match=r"no API 'sppech'; did you mean speech\? choose from speech, chat"):
        find_server("sppech")


def test_nobody_at_the_address_is_told_before_anything_is_written() -> None:
    with SpeechServer(in_turn(whole(wav(0.1)))) as server:
        address = server.url
    with pytest.raises(BadInput, match="no server answers at"):
        ServerConnection(address).require()


def test_requests_keep_their_pace() -> None:
    now, pauses = [100.0], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    pace = RequestPace(30, clock=lambda: now[0], sleep=sleep)
    for passing in (0.0, 0.5, 5.0, 0.0):
        now[0] += passing
        pace.wait()
    assert pauses == [pytest.approx(1.5), pytest.approx(2.0)]
