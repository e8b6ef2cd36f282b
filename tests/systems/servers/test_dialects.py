"""Servers as they are: the sound that arrives is the sound that was sent, in the dialect of each and in every form."""

import base64
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.models.http_errors import HttpError, RefusedFields, leave_out
from podeval.systems.servers.connection import RequestRefused, ServerBusy, ServerConnection, ServerRefused
from podeval.systems.servers.sound_reading import ServedSound, read_sound
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.speech import Ask, SpeechFailed
from podeval.text.script import Turn
from tests.fakes.loopback_speech import (
    RATE,
    Plan,
    Reply,
    SpeechServer,
    encode_deltas,
    open_wav,
    refuse,
    send_events,
    speak_openai,
    speak_sglang_omni,
    speak_vllm_omni,
    voice_of,
)

TEXTS = [f"Words of {'one ' * number}" for number in range(1, 9)]
DRAMA3 = frozenset({"model", "input", "voice", "response_format", "speed", "stream", "stream_format"})
DIALECTS: dict[str, Plan] = {
    "openai": speak_openai,
    "vllm_omni": speak_vllm_omni,
    "sglang_omni": speak_sglang_omni,
    "sglang_omni, drama3": partial(speak_sglang_omni, supported=DRAMA3),
}
DONE = ("speech.audio.done", {"type": "speech.audio.done"})


def hear(plan: Plan, text: str, stream: bool = True) -> tuple[ServedSound, SpeechServer]:
    """What is read of the answer to one request."""
    form = {"response_format": "wav", **({"stream": True, "stream_format": "audio"} if stream else {})}
    body = {"model": "tts", "input": text, "voice": "a", **form, "seed": 3}
    with SpeechServer(plan) as server:
        connection = ServerConnection(server.url, sleep=lambda seconds: None, tries=1)
        sound, _ = connection.post("audio/speech", body, lambda response: read_sound(response, text))
    return sound, server


def assert_same(sound: ServedSound, text: str, rate: int = RATE) -> None:
    assert sound.rate == rate
    assert np.array_equal(np.rint(sound.samples * 2**15), voice_of(text, rate))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", TEXTS[:2], ids=["even", "odd"])
def test_the_sound_that_arrives_is_the_sound_that_was_sent(dialect: str, stream: bool, text: str) -> None:
    sound, server = hear(DIALECTS[dialect], text, stream)
    assert_same(sound, text)
    sent = server.requests[-1]
    if stream:
        assert sent["stream_format"] == "audio"
        assert sound.playback.chunks > 1
    assert {"model", "input", "voice", "response_format"} <= sent.keys()


@pytest.mark.every(3)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("form", ["wav", "pcm"])
@pytest.mark.parametrize("text", TEXTS)
def test_events_that_come_anyway_are_read(dialect: str, form: str, text: str) -> None:
    """A server that knows no `stream_format`, as vLLM-Omni of June 2026 and SGLang-Omni before 0.1."""

    def plan(request: dict[str, Any]) -> Reply:
        return DIALECTS[dialect](
            {"input": request["input"], "stream_format": "sse"}
            | {"response_format": "pcm" if "sglang" in dialect else form}
        )

    sound, _ = hear(plan, text)
    assert_same(sound, text)


def test_a_stream_in_another_rate_has_that_rate() -> None:
    """Samples without a header have none in vLLM-Omni's streams: at 44.1 kHz they were played at 24."""
    sound, server = hear(partial(speak_vllm_omni, rate=44_100), TEXTS[0])
    assert_same(sound, TEXTS[0], 44_100)
    assert server.requests[0]["response_format"] == "wav"


def test_a_rate_that_is_stated_nowhere_is_noted() -> None:
    samples = voice_of(TEXTS[0]).tobytes()
    sound, _ = hear(lambda request: Reply(((0.0, samples),), kind="audio/pcm"), TEXTS[0])
    assert_same(sound, TEXTS[0])
    assert sound.notes == ("the server sent samples without their rate, so 24000 Hz is assumed",)


@pytest.mark.parametrize(
    "name", ["X-Sample-Rate", "X-Audio-Sample-Rate", "X-SampleRate", "Sample-Rate", "X-Audio-Rate", "X-SR"]
)
def test_a_header_that_states_the_rate_counts_whatever_its_name(name: str) -> None:
    reply = label("audio/pcm", voice_of(TEXTS[0], 16_000).tobytes())
    sound, _ = hear(lambda request: replace(reply, headers={name: "16000", "X-RateLimit-Limit": "48000"}), TEXTS[0])
    assert_same(sound, TEXTS[0], 16_000)


@pytest.mark.parametrize("rate", ["16000", '"16000"', "(int)16000"])
def test_a_label_states_the_rate_with_quotes_or_a_type_too(rate: str) -> None:
    body = voice_of(TEXTS[0], 16_000).tobytes()
    sound, _ = hear(lambda request: label(f"audio/pcm; rate={rate}; channels=1", body), TEXTS[0])
    assert_same(sound, TEXTS[0], 16_000)


def test_an_event_that_states_two_channels_counts() -> None:
    body = np.repeat(voice_of(TEXTS[0]), 2).astype("<i2").tobytes()
    sound, _ = hear(lambda request: send_events([*encode_deltas(body, channels=2), DONE]), TEXTS[0])
    assert_same(sound, TEXTS[0])


def test_what_is_no_sound_in_an_event_is_no_sound() -> None:
    status = ("status", {"type": "status", "data": "queued00"})
    samples = voice_of(TEXTS[0]).tobytes()
    sound, _ = hear(lambda request: send_events([status, *encode_deltas(samples), DONE]), TEXTS[0])
    assert_same(sound, TEXTS[0])


def test_a_size_that_a_stream_cannot_know_is_noted() -> None:
    for size in (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"):
        body = open_wav(voice_of(TEXTS[0]).tobytes(), size=size)
        sound, _ = hear(lambda request, body=body: Reply(((0.0, body),)), TEXTS[0])
        assert_same(sound, TEXTS[0])
        assert "the length is not stated" in sound.notes[0]


def forms(text: str) -> dict[str, bytes]:
    """Server-sent events in the forms that the standard allows and servers send."""
    samples = voice_of(text).tobytes()
    deltas = [data for _, data in encode_deltas(samples)]
    lines = [json.dumps(data) for data in deltas]
    done = json.dumps(DONE[1])
    first, rest = samples[:3001], samples[3001:]
    b64 = [base64.b64encode(part).decode() for part in (first, rest)]
    whole = [base64.b64encode(open_wav(part)).decode() for part in (samples[:3000], samples[3000:])]
    kind = "speech.audio.delta"
    return {
        "CRLF": "".join(f"event: {kind}\r\ndata: {line}\r\n\r\n" for line in lines).encode()
        + f"data: {done}\r\n\r\n".encode(),
        "CR": "".join(f"data: {line}\r\r" for line in [*lines, done]).encode(),
        "an empty event": b"data:\n\n" + "".join(f"data: {line}\n\n" for line in [*lines, done]).encode(),
        "comments": ": ping\n\n".join(f"data: {line}\n\n: keep-alive\n\n" for line in [*lines, done]).encode(),
        "a byte order mark": b"\xef\xbb\xbf" + "".join(f"data: {line}\n\n" for line in [*lines, done]).encode(),
        "no space after the colon": "".join(f"data:{line}\n\n" for line in [*lines, done]).encode(),
        "ids and retries": "".join(
            f"id: {n}\nretry: 100\ndata: {line}\n\n" for n, line in enumerate([*lines, done])
        ).encode(),
        "data of many lines": "".join(
            "".join(f"data: {row}\n" for row in json.dumps(data, indent=1).splitlines()) + "\n"
            for data in [*deltas, DONE[1]]
        ).encode(),
        "base64 of many lines": "".join(
            f'data: {{\ndata: "audio": "{part[:76]}\ndata: {part[76:]}"}}\n\n' for part in b64
        ).encode()
        + b"data: [DONE]\n\n",
        "[DONE] alone": "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(),
        "no empty line at the end": "".join(f"data: {line}\n\n" for line in lines).encode() + b"data: [DONE]",
        "names of events only": "".join(
            f"event: {kind}\ndata: {json.dumps({'audio': part})}\n\n" for part in b64
        ).encode()
        + b"event: speech.audio.done\ndata: {}\n\n",
        "base64 under delta": "".join(f"data: {json.dumps({'type': kind, 'delta': part})}\n\n" for part in b64).encode()
        + b"data: [DONE]\n\n",
        "data URIs": "".join(
            f"data: {json.dumps({'type': kind, 'audio': 'data:audio/pcm;base64,' + part})}\n\n" for part in b64
        ).encode()
        + b"data: [DONE]\n\n",
        "a WAV in each": "".join(f"data: {json.dumps({'type': kind, 'audio': part})}\n\n" for part in whole).encode()
        + b"data: [DONE]\n\n",
        "the alphabet for addresses": "".join(
            f"data: {json.dumps({'type': kind, 'audio': base64.urlsafe_b64encode(part).decode()})}\n\n"
            for part in (samples[:3000], samples[3000:])
        ).encode()
        + b"data: [DONE]\n\n",
        "base64 without padding": "".join(
            f"data: {json.dumps({'type': kind, 'audio': part.rstrip('=')})}\n\n" for part in b64
        ).encode()
        + b"data: [DONE]\n\n",
        "base64 under another name": "".join(
            f"data: {json.dumps({'choices': [{'delta': {'audio': {'data': part}}}]})}\n\n" for part in b64
        ).encode()
        + b"data: [DONE]\n\n",
        "a flag on the last one": f"data: {json.dumps({'audio': b64[0], 'is_final': False})}\n\n".encode()
        + f"data: {json.dumps({'audio': b64[1], 'is_final': True})}\n\n".encode(),
        "words between, which end first": "".join(
            f"data: {json.dumps({'type': 'response.output_audio.delta', 'delta': part})}\n\n"
            f"data: {json.dumps({'type': f'response.output_audio_transcript.{last}', 'delta': 'Hell'})}\n\n"
            for part, last in zip(b64, ("done", "delta"), strict=True)
        ).encode()
        + b'data: {"type": "response.output_audio.done"}\n\n',
        "sound after a first end": "".join(f"data: {line}\n\ndata: {done}\n\n" for line in lines).encode(),
        "an end that repeats all": "".join(f"data: {line}\n\n" for line in lines).encode()
        + f"data: {json.dumps({**DONE[1], 'audio': base64.b64encode(open_wav(samples)).decode()})}\n\n".encode(),
        "a comment before all": b": hello\n\n" + "".join(f"data: {line}\n\n" for line in [*lines, done]).encode(),
        "other events between": "".join(
            f"data: {line}\n\ndata: {json.dumps({'type': 'speech.audio.metadata', 'words': 3})}\n\n" for line in lines
        ).encode()
        + f"data: {done}\n\n".encode(),
    }


@pytest.mark.every(3)
@pytest.mark.parametrize("form", forms(TEXTS[0]))
@pytest.mark.parametrize("pieces", [1, 13, 997])
def test_events_are_read_in_every_form_however_they_are_cut(form: str, pieces: int) -> None:
    body = forms(TEXTS[1])[form]
    size = len(body) // pieces + 1
    chunks = tuple((0.0, body[at : at + size]) for at in range(0, len(body), size))
    sound, _ = hear(lambda request: Reply(chunks, kind="text/event-stream"), TEXTS[1])
    assert_same(sound, TEXTS[1])


@pytest.mark.parametrize(
    "stated",
    [
        {"sample_rate": 16_000, "channels": 1},
        {"sampling_rate": 16_000.0},
        {"sampleRateHz": "16000"},
        {"sampleRateHertz": 16_000},
        {"format": {"type": "audio/pcm", "rate": 16_000}},
    ],
)
def test_an_event_that_states_the_rate_counts(stated: dict[str, Any]) -> None:
    body = voice_of(TEXTS[0], 16_000).tobytes()
    info = ("speech.audio.info", {"type": "speech.audio.info", **stated})
    sound, _ = hear(lambda request: send_events([info, *encode_deltas(body), DONE]), TEXTS[0])
    assert_same(sound, TEXTS[0], 16_000)
    assert sound.notes == ()


def test_first_audio_is_the_first_sample_and_neither_a_header_nor_an_event_without_sound() -> None:
    samples = voice_of(TEXTS[0]).tobytes()
    header = open_wav(b"")
    sound, _ = hear(lambda request: Reply(((0.0, header[:20]), (0.05, header[20:]), (0.2, samples))), TEXTS[0])
    assert sound.playback.time_to_first_audio >= 0.2
    empty = json.dumps({"type": "speech.audio.delta", "audio": base64.b64encode(header).decode()})
    delta = json.dumps({"type": "speech.audio.delta", "audio": base64.b64encode(samples).decode()})
    chunks = (
        (0.0, b": hello\n\n"),
        (0.05, f"data: {empty}\n\n".encode()),
        (0.1, f"data: {delta[:90]}".encode()),
        (0.2, f"{delta[90:]}\n\ndata: [DONE]\n\n".encode()),
    )
    sound, _ = hear(lambda request: Reply(chunks, kind="text/event-stream"), TEXTS[0])
    assert_same(sound, TEXTS[0])
    assert sound.playback.time_to_first_audio >= 0.2


FAULTS: dict[str, tuple[Reply, type[Exception], str]] = {
    "vLLM-Omni's error event": (
        send_events(
            [
                *encode_deltas(voice_of("x").tobytes()),
                (
                    "speech.audio.error",
                    {"type": "speech.audio.error", "error": {"message": "engine died", "code": 500}},
                ),
            ]
        ),
        SpeechFailed,
        "answered 500: engine died",
    ),
    "SGLang-Omni's error event": (
        send_events([("error", {"type": "error", "error": {"message": "queue is full", "code": 503}})], named=False),
        ServerBusy,
        "answered 503: queue is full",
    ),
    "an error event in words": (
        send_events([("error", {"message": "no GPU"})]),
        SpeechFailed,
        "answered with an error: no GPU",
    ),
    "events that end early": (send_events(encode_deltas(voice_of("x").tobytes())), SpeechFailed, "is complete"),
    "an event that is cut off": (
        Reply(((0.0, b'data: {"type": "speech.audio.delta", "audio": "AAAA'),), kind="text/event-stream"),
        SpeechFailed,
        "cannot be read",
    ),
    "base64 that is none": (
        send_events([("speech.audio.delta", {"type": "speech.audio.delta", "audio": "!!!!"}), DONE]),
        SpeechFailed,
        "cannot be read",
    ),
    "an event with an error's detail": (
        send_events([*encode_deltas(voice_of("x").tobytes()), ("message", {"detail": "CUDA out of memory"}), DONE]),
        SpeechFailed,
        "CUDA out of memory",
    ),
    "a speech that ends at the longest": (
        send_events(
            [*encode_deltas(voice_of("x").tobytes()), ("message", {"choices": [{"finish_reason": "length"}]}), DONE]
        ),
        SpeechFailed,
        r"before it was complete \(length\)",
    ),
    "events without sound": (send_events([DONE]), SpeechFailed, "events without audio"),
}


@pytest.mark.parametrize(("reply", "error", "words"), FAULTS.values(), ids=FAULTS)
def test_a_stream_of_events_that_fails_is_no_sound(reply: Reply, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        hear(lambda request: reply, TEXTS[0])


def label(kind: str, body: bytes | None = None) -> Reply:
    data = voice_of(TEXTS[0]).tobytes() if body is None else body
    return Reply(((0.0, data),), kind=kind, length=len(data))


@pytest.mark.parametrize(
    "kind", ["application/octet-stream", "binary/octet-stream", "", "AUDIO/PCM; Rate=24000", "audio/L16"]
)
def test_samples_whose_label_says_little_are_read_if_they_are_like_samples(kind: str) -> None:
    sound, _ = hear(lambda request: label(kind), TEXTS[0])
    assert_same(sound, TEXTS[0])


@pytest.mark.parametrize("kind", ["application/octet-stream", "audio/mpeg", "audio/pcm", "", "audio/x-wav"])
def test_a_wav_is_one_whatever_its_label(kind: str) -> None:
    """LiteLLM's proxy calls every sound audio/mpeg."""
    sound, _ = hear(lambda request: label(kind, open_wav(voice_of(TEXTS[0]).tobytes())), TEXTS[0])
    assert_same(sound, TEXTS[0])


def test_big_endian_samples_are_told_from_little_endian_ones() -> None:
    """RFC 3551 has the first byte first; Gemini and others send the last one first under the same label."""
    body = voice_of(TEXTS[0]).astype(">i2").tobytes()
    for kind in ("audio/L16;rate=24000;channels=1", "audio/pcm"):
        sound, _ = hear(lambda request, kind=kind: label(kind, body), TEXTS[0])
        assert_same(sound, TEXTS[0])


def test_floats_that_are_called_samples_are_read_as_floats() -> None:
    body = (voice_of(TEXTS[0]) / np.float32(2**15)).astype("<f4").tobytes()
    sound, _ = hear(lambda request: label("audio/pcm;rate=24000", body), TEXTS[0])
    assert_same(sound, TEXTS[0])
    assert sound.notes == ("the server sent 32-bit floats, which its label does not state",)


def test_noise_is_read_in_the_usual_order() -> None:
    noise = np.random.default_rng(3).integers(-9_000, 9_000, 4_000).astype("<i2")
    sound, _ = hear(lambda request: label("audio/L16;rate=24000", noise.tobytes()), TEXTS[0])
    assert np.array_equal(np.rint(sound.samples * 2**15), noise)
    assert sound.notes == ("the server's samples are as random as noise; is the format right?",)


def test_an_mp3_that_is_called_samples_is_decoded() -> None:
    content = io.BytesIO()
    soundfile.write(content, np.sin(np.arange(2 * RATE) * 0.05) / 2, RATE, format="MP3")
    sound, _ = hear(lambda request: label("audio/pcm;rate=24000", content.getvalue()), TEXTS[0])
    assert len(sound.samples) == pytest.approx(2 * RATE, rel=0.05)


@pytest.mark.parametrize("kind", ["audio/pcm;rate=24000", "audio/wav"])
def test_an_error_behind_the_sound_is_an_error(kind: str) -> None:
    """The sound of a sentence that failed after its first part would be taken for all of it."""
    samples = voice_of(TEXTS[0]).tobytes()
    body = (open_wav(samples) if "wav" in kind else samples) + b'{"error": {"message": "CUDA failed", "code": 500 }}'
    with pytest.raises(SpeechFailed, match="answered 500: CUDA failed"):
        hear(lambda request: label(kind, body), TEXTS[0])


def test_samples_of_two_channels_are_mixed() -> None:
    samples = voice_of(TEXTS[0])
    body = np.repeat(samples, 2).astype("<i2").tobytes()
    for kind, headers in (("audio/pcm;channels=2", {}), ("audio/pcm", {"X-Channels": "2"})):
        sound, _ = hear(lambda request, k=kind, h=headers: replace(label(k, body), headers=h), TEXTS[0])
        assert_same(sound, TEXTS[0])


NO_SOUND: dict[str, tuple[Reply, str]] = {
    "a page": (label("text/html", b"<html>log in</html>"), "sent text/html instead of audio"),
    "plain text": (label("text/plain; charset=utf-8", b"ok"), "sent text/plain instead of audio"),
    "samples called text": (label("text/plain"), "sent text/plain instead of audio"),
    "JSON with base64": (label("application/json", b'{"audioContent": "AAAA"}'), "sent application/json instead"),
    "text called PCM": (label("audio/pcm", b"internal server error!" * 9), "sent audio/pcm instead of audio"),
    "Chinese text called PCM": (label("audio/pcm", "内部错误".encode() * 9), "sent audio/pcm instead of audio"),
    "JSON called WAV": (label("audio/wav", b'{"error": "no voice"}'), "answered with an error: no voice"),
    "an image": (label("image/png", b"\x89PNG\r\n\x1a\n" + bytes(99)), "sent image/png instead of audio"),
    "noise of bytes": (
        label("application/octet-stream", np.random.default_rng(1).bytes(9_000)),
        "cannot be decoded",
    ),
    "samples of 32 bits by their type": (label("audio/pcm;encoding=pcm_f32le"), "16 bits"),
    "samples of µ-law": (label("audio/PCMU;rate=8000"), "16 bits"),
    "samples of 24 bits": (replace(label("audio/pcm"), headers={"X-Bit-Depth": "24"}), "24 bits"),
}


@pytest.mark.parametrize(("reply", "words"), NO_SOUND.values(), ids=NO_SOUND)
def test_what_is_no_sound_is_refused_by_name(reply: Reply, words: str) -> None:
    with pytest.raises(SpeechFailed, match=words):
        hear(lambda request: reply, TEXTS[0])


def speak(plan: Plan, **options: Any) -> tuple[Any, SpeechServer]:
    ask = Ask(id="one", script=(Turn(speaker="Ann", text=TEXTS[0]), Turn(speaker="Ben", text=TEXTS[1])))
    with SpeechServer(plan) as server:
        connection = ServerConnection(server.url, sleep=lambda seconds: None, tries=2)
        (speech,) = SpeechEndpoint(connection, "tts", ("a", "b"), **options).make([ask], 3)
    return speech, server


def test_a_refused_field_is_left_out_once_and_noted() -> None:
    speech, server = speak(speak_openai, stream=True)
    assert [len(request.keys() & {"seed", "stream"}) for request in server.requests] == [2, 1, 0, 0]
    assert {request["stream_format"] for request in server.requests} == {"audio"}
    assert speech.details["refused_fields"] == {name: f"Unknown parameter: '{name}'." for name in ("seed", "stream")}


def test_a_server_that_cannot_stream_is_asked_for_the_whole() -> None:
    def plan(request: dict[str, Any]) -> Reply:
        return refuse("Streaming is not supported") if "stream" in request else speak_vllm_omni(request)

    speech, _ = speak(plan, stream=True)
    assert speech.details["refused_fields"] == {"stream": "Streaming is not supported"}


@pytest.mark.parametrize(
    "reply",
    [
        refuse("Voice 'a' not found. Available voices: af_heart, am_adam"),
        refuse("Invalid speaker 'a'. Supported: vivian, ryan"),
        refuse("Invalid value: 'a'.", "voice"),
        refuse("The model `tts` does not exist", None, 404),
    ],
)
def test_a_voice_or_model_that_the_server_does_not_have_ends_the_run(reply: Reply) -> None:
    with pytest.raises(ServerRefused, match="--model"):
        speak(lambda request: reply)


REFUSALS = {
    "by its parameter": lambda form: refuse("it is not supported", "response_format"),
    "by its value": lambda form: refuse(f"{form} is not supported when streaming"),
    "by the word": lambda form: refuse("Unsupported output format, use mp3"),
    "in camel case": lambda form: refuse("Field 'responseFormat' must be mp3"),
    "by status 406": lambda form: refuse("", status=406),
    "by status 415": lambda form: refuse("", status=415),
}


@pytest.mark.parametrize("way", REFUSALS)
def test_a_format_that_is_refused_in_every_form_is_not_the_systems_fault(way: str) -> None:
    with pytest.raises(RequestRefused, match="answered 4"):
        speak(lambda request: REFUSALS[way](request["response_format"]))


@pytest.mark.parametrize("way", list(REFUSALS)[:4])
def test_a_format_that_is_refused_is_replaced(way: str) -> None:
    def plan(request: dict[str, Any]) -> Reply:
        is_wav = request["response_format"] == "wav"
        return REFUSALS[way]("wav") if is_wav else label("audio/pcm;rate=24000")

    speech, _ = speak(plan)
    assert list(speech.details["refused_fields"]) == ["response_format"]


@pytest.mark.parametrize(
    "error",
    [
        {"errors": [{"instancePath": "/seed", "message": "must NOT have additional properties"}]},
        {"title": "Bad Request", "invalid-params": [{"name": "seed", "reason": "not allowed"}]},
        {"error": "参数seed不支持"},
    ],
)
def test_a_refused_field_is_found_however_it_is_named(error: dict[str, Any]) -> None:
    body = json.dumps(error).encode()

    def plan(request: dict[str, Any]) -> Reply:
        refused = Reply(((0.0, body),), kind="application/json", status=400, length=len(body))
        return refused if "seed" in request else label("audio/pcm;rate=24000")

    speech, _ = speak(plan)
    assert list(speech.details["refused_fields"]) == ["seed"]


# The classes of the real packages, alone.


def list_requests(dialect: str) -> Iterator[dict[str, Any]]:
    """The requests that a server of a dialect took."""
    for stream in (True, False):
        _, server = speak(DIALECTS[dialect], stream=stream)
        for request in server.requests[-2:]:
            yield {name: value for name, value in request.items() if name not in ("number", "path")}


@pytest.mark.filterwarnings("ignore:Support for class-based")
@pytest.mark.parametrize("dialect", ["openai", "vllm_omni", "sglang_omni"])
def test_the_real_packages_take_our_requests(load_reference: Callable[[str], Any], dialect: str) -> None:
    from pydantic import ConfigDict, TypeAdapter, create_model

    requested = load_reference(dialect)
    if dialect == "openai":
        # A dictionary with declared keys; another key is refused.
        requested.__pydantic_config__ = ConfigDict(extra="forbid")
        take = TypeAdapter(requested).validate_python
    else:
        take = create_model("Strict", __base__=requested, __config__=None).model_validate
        known = {*requested.model_fields, "speaker"}
    for request in list_requests(dialect):
        take(request)
        if dialect != "openai":
            assert request.keys() <= known, "a field that the class does not know is dropped silently"
        with pytest.raises(ValueError, match="input"):
            take({name: value for name, value in request.items() if name != "input"})


@pytest.mark.filterwarnings("ignore:Support for class-based")
def test_vllm_omni_streams_sound_and_no_events_to_us(load_reference: Callable[[str], Any]) -> None:
    requested = load_reference("vllm_omni")
    for request in list_requests("vllm_omni"):
        parsed = requested.model_validate(request)
        assert not parsed.is_sse_stream()
        assert parsed.is_raw_audio_stream() == ("stream" in request)
    without = {"input": "x", "stream": True, "response_format": "wav"}
    assert requested.model_validate(without).is_sse_stream(), "what is sent without `stream_format`"
    usage = sys.modules[requested.__module__].SpeechTokenUsage.model_fields  # type: ignore[attr-defined]
    assert usage.keys() >= {"input_tokens", "output_tokens", "total_tokens"}, "what `speech.audio.done` has here"


def test_sglang_omni_streams_sound_and_no_events_to_us(load_reference: Callable[[str], Any]) -> None:
    requested = load_reference("sglang_omni")
    for request in list_requests("sglang_omni"):
        parsed = requested.model_validate(request)
        assert parsed.stream_format == "audio"
        assert parsed.response_format == ("pcm" if parsed.stream else "wav")
        assert (parsed.seed, parsed.voice in ("a", "b")) == (3, True)


def test_refused_fields_of_a_server_are_learnt_by_name_only() -> None:
    refused = RefusedFields({"seed": (leave_out,)})
    body = {"input": "x", "seed": 1}
    assert not refused.learn(HttpError(400, "the input is empty"), body, body)
    assert not refused.learn(HttpError(500, "seed"), body, body)
    assert refused.learn(HttpError(500, "speak() got an unexpected keyword argument 'seed'"), body, body)
    assert refused.fit(body) == {"input": "x"}


def test_a_run_that_was_streamed_before_events_were_read_is_not_continued() -> None:
    endpoint = SpeechEndpoint(ServerConnection("http://127.0.0.1:9/v1"), "tts", ("a", "b"), stream=True)
    whole = SpeechEndpoint(ServerConnection("http://127.0.0.1:9/v1"), "tts", ("a", "b"))
    assert endpoint.generation["stream_format"] == "audio"
    assert "stream_format" not in whole.generation
