"""What is wrong with a server is told in its own words, with whose fault it is; fields reach every request."""

import json
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.systems.servers.connection import ServerBusy, ServerConnection, ServerRefused
from podeval.systems.servers.kinds import KINDS, find_kind
from podeval.systems.servers.server_errors import read_fields
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.speech import Ask, SpeechFailed
from tests.fakes.loopback_kinds import PIPER, VOICES, answer, bodies, encode, speak, whole
from tests.fakes.loopback_speech import Reply, SpeechServer, pcm, wav

# What servers say when something is wrong, in the words of their packages and documentation.


def error(status: int, body: Any, **headers: str) -> Reply:
    return whole(json.dumps(body).encode(), "application/json", status, **headers)


def openai_error(status: int, message: str, param: str | None = None, code: Any = None) -> Reply:
    return error(status, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


def elevenlabs_error(status: int, code: str, message: str) -> Reply:
    return error(status, {"detail": {"status": code, "message": message}})


def google_error(code: int, status: str, message: str, **more: Any) -> Reply:
    return error(code, {"error": {"code": code, "message": message, "status": status, **more}})


def vllm_error(status: int, message: str) -> Reply:
    return error(status, {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}})


QUOTA = "You exceeded your current quota, please check your plan and billing details."
NO_SOUND = {"candidates": [{"finishReason": "OTHER", "index": 0}], "modelVersion": "gemini-3.8-flash-tts"}
CUT = {
    "candidates": [
        {"content": {"parts": [{"inlineData": {"data": encode(pcm(1.0))}}]}, "finishReason": "MAX_TOKENS", "index": 0}
    ]
}
BLOCKED = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
HTML = "<!doctype html><title>500 Internal Server Error</title><h1>Internal Server Error</h1>"
WRONG: dict[str, tuple[str, Reply, type[Exception], str]] = {
    "openai, wrong key": ("openai", openai_error(401, "Incorrect API key provided"), ServerRefused, "set PODEVAL_"),
    "openai, no quota": ("openai", openai_error(429, QUOTA, code="insufficient_quota"), ServerRefused, "used up"),
    "openai, rate limit": ("openai", openai_error(429, "Rate limit reached for tts-1"), ServerBusy, "Rate limit"),
    "openai, wrong model": ("openai", openai_error(404, "The model `x` does not exist"), ServerRefused, "--model"),
    "openai, long text": (
        "openai",
        error(400, {"error": {"message": "String should have at most 4096 characters", "param": "input"}}),
        SpeechFailed,
        "at most 4096 characters",
    ),
    "vllm-omni, unknown voice": (
        "vllm-omni",
        vllm_error(400, "Invalid voice 'a'. Supported: ryan, vivian"),
        ServerRefused,
        "Supported: ryan, vivian; check --model and --voice",
    ),
    "vllm-omni, needs a reference": (
        "vllm-omni",
        vllm_error(400, "Base task requires 'ref_audio' or 'speaker_embedding' for voice cloning"),
        ServerRefused,
        "add --clone",
    ),
    "vllm-omni, broken": ("vllm-omni", vllm_error(500, "EngineCore encountered an issue"), SpeechFailed, "EngineCore"),
    "sglang-omni, long text": (
        "sglang-omni",
        openai_error(400, "input must be at most 4096 characters", "input", 400),
        SpeechFailed,
        "at most 4096",
    ),
    "sglang-omni, full queue": ("sglang-omni", openai_error(503, "queue is full"), ServerBusy, "queue is full"),
    "sglang-omni, needs a reference": (
        "sglang-omni",
        openai_error(400, "exactly one speech reference is required", "ref_audio", 400),
        ServerRefused,
        "add --clone",
    ),
    "sglang-omni, one speaker only": (
        "sglang-omni",
        openai_error(400, "Drama 3: only speaker 0 is supported; got speaker tags [1]", code=400),
        ServerRefused,
        "add --dialogue turns",
    ),
    "elevenlabs, wrong key": (
        "elevenlabs",
        elevenlabs_error(401, "invalid_api_key", "Invalid API key"),
        ServerRefused,
        "Invalid API key; set PODEVAL_SERVER_KEY",
    ),
    "elevenlabs, no quota": (
        "elevenlabs",
        elevenlabs_error(401, "quota_exceeded", "This request exceeds your quota of 10000. You have 5 left"),
        ServerRefused,
        "used up",
    ),
    "elevenlabs, unknown voice": (
        "elevenlabs",
        elevenlabs_error(404, "voice_not_found", "A voice with the voice_id id_a was not found."),
        ServerRefused,
        "check --model and --voice",
    ),
    "elevenlabs, long text": (
        "elevenlabs",
        elevenlabs_error(400, "max_character_limit_exceeded", "This request's text has 627 characters and exceeds 333"),
        SpeechFailed,
        "627 characters",
    ),
    "elevenlabs, busy": (
        "elevenlabs",
        elevenlabs_error(429, "too_many_concurrent_requests", "Too many concurrent requests."),
        ServerBusy,
        "Too many concurrent",
    ),
    "gemini, wrong key": (
        "gemini",
        google_error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        ServerRefused,
        "set PODEVAL_SERVER_KEY",
    ),
    "gemini, unknown voice": (
        "gemini",
        google_error(400, "INVALID_ARGUMENT", "Voice name Korre is not supported. Allowed voice names are: achernar"),
        ServerRefused,
        "Allowed voice names are: achernar; check",
    ),
    "gemini, wrong model": (
        "gemini",
        google_error(404, "NOT_FOUND", "models/x is not found for API version v1beta"),
        ServerRefused,
        "--model",
    ),
    "gemini, rate limit": (
        "gemini",
        google_error(429, "RESOURCE_EXHAUSTED", QUOTA, details=[{"retryDelay": "0.1s"}]),
        ServerBusy,
        "429",
    ),
    "gemini, no sound": ("gemini", error(200, NO_SOUND), SpeechFailed, "no audio for .* .stated reason: OTHER"),
    "gemini, blocked": ("gemini", error(200, BLOCKED), SpeechFailed, "PROHIBITED_CONTENT"),
    "gemini, empty": ("gemini", whole(b""), SpeechFailed, "is not in Gemini's"),
    "openrouter, no credit": (
        "openrouter",
        error(402, {"error": {"code": 402, "message": "Insufficient credits. Add more using https://openrouter.ai"}}),
        ServerRefused,
        "used up",
    ),
    "openrouter, provider": (
        "openrouter",
        error(200, {"error": {"code": 502, "message": "Provider returned error", "metadata": {}}}),
        ServerBusy,
        "Provider returned error",
    ),
    "huggingface, wrong key": (
        "huggingface",
        error(401, {"error": "Invalid credentials in Authorization header"}),
        ServerRefused,
        "Invalid credentials .*; set PODEVAL_SERVER_KEY",
    ),
    "huggingface, loading": ("huggingface", error(503, {"error": "Model is loading"}), ServerBusy, "is loading"),
    "huggingface, gone": (
        "huggingface",
        error(404, {"error": "Model x does not exist"}),
        ServerRefused,
        "does not exist",
    ),
    **{
        f"openai, an error under status 200, {name}": ("openai", reply, fault, words)
        for name, reply, fault, words in (
            ("detail", error(200, {"detail": "voice 'x' not found"}), SpeechFailed, "answered with an error: voice"),
            ("status", error(200, {"status": "error", "message": "CUDA out of memory"}), SpeechFailed, "CUDA"),
            ("code", error(200, {"code": 401, "message": "Unauthorized"}), ServerRefused, "set PODEVAL_SERVER_KEY"),
            ("busy", error(200, {"statusCode": 503, "message": "queue is full"}), ServerBusy, "queue is full"),
            ("behind sound", whole(wav(1.0) + b'{"detail": "CUDA out of memory"}', "audio/wav"), SpeechFailed, "CUDA"),
        )
    },
    "gemini, a speech that is cut": ("gemini", error(200, CUT), SpeechFailed, r"before .* is complete \(MAX_TOKENS\)"),
    "piper, broken": ("piper", whole(HTML.encode(), "text/html", 500), SpeechFailed, "Internal Server Error"),
    **{
        f"{kind}, {name}": (kind, reply, SpeechFailed, words)
        for kind in KINDS
        for name, reply, words in (
            ("a page", whole(b"<html>log in</html>", "text/html"), "instead of audio|is not in Gemini's"),
            ("nothing", whole(b"", "audio/wav"), "instead of audio|is not in Gemini's"),
        )
    },
    **{
        f"{kind}, silence": (kind, whole(wav(0.0) + bytes(9_600)), SpeechFailed, "only silence|cannot be decoded|sent ")
        for kind in ("openai", "vllm-omni", "sglang-omni", "huggingface", "piper")
    },
}


@pytest.mark.every(3)
@pytest.mark.parametrize(("kind", "reply", "fault", "words"), WRONG.values(), ids=WRONG)
def test_what_a_server_says_of_its_trouble_is_told_with_whose_fault_it_is(
    kind: str, reply: Reply, fault: type[Exception], words: str, ask: Ask
) -> None:
    with pytest.raises(fault, match=words) as caught:
        speak(kind, ask, lambda request: reply, dialogue="turns")
    assert type(caught.value) is fault or fault is SpeechFailed
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_stays_half_open_ends(kind: str, ask: Ask) -> None:
    def hang(request: dict[str, Any]) -> Reply:
        reply = answer(request)
        ((_, body),) = reply.chunks
        return Reply(((0.0, body[: len(body) // 2]), (9.0, body[len(body) // 2 :])), kind=reply.kind)

    with SpeechServer(hang, facts={"/v1/voices": PIPER}) as server:
        connection = ServerConnection(server.url, sleep=lambda seconds: None, tries=1, timeout=0.3)
        voices = VOICES.get(kind, ("a", "b"))
        options: dict[str, Any] = {"stream": find_kind(kind).streams, "server_kind": kind, "dialogue": "turns"}
        system = SpeechEndpoint.open(connection, "tts", voice=voices, **options)
        with pytest.raises(ServerBusy, match=r"sent nothing for 0.3 s"):
            system.make([ask], 3)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "piper"])
def test_a_server_that_goes_away_leaves_the_item_for_later(kind: str, ask: Ask) -> None:
    with SpeechServer(answer) as server:
        address = server.url
    connection = ServerConnection(address, sleep=lambda seconds: None, tries=2)
    system = SpeechEndpoint.open(connection, "tts", voice=("a", "b"), server_kind=kind, dialogue="turns")
    with pytest.raises(ServerBusy, match=r"no server answers at|the connection to .* was lost"):
        system.make([ask], 3)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_reach_every_request(kind: str, ask: Ask) -> None:
    assignments = ('language="English"', "temperature=0.7", "seed=null", 'generationConfig={"top": {"k": 1}}')
    _, server = speak(kind, ask, field=assignments, dialogue="turns")
    for body in bodies(server):
        sent = {**body, **body.get("parameters", {})}
        assert (sent["language"], sent["temperature"]) == ("English", 0.7)
        assert "seed" not in sent
        assert sent["generationConfig"]["top"] == {"k": 1}
        assert ("speechConfig" in sent["generationConfig"]) == (kind == "gemini")


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("temperature", r"is not KEY=JSON \(.*write it as --field 'temperature=\"English\"'"),
        ("language=English", "is not KEY=JSON"),
        ("=1", "is not KEY=JSON"),
        ("top_p=NaN", "NaN is not valid JSON"),
        ('voice="x"', "--field voice is set by podeval"),
        ('ref_audio="x"', "is set by podeval"),
        ("[" * 100_000, "is not KEY=JSON"),
    ],
)
def test_a_field_that_is_none_is_refused_in_words(assignment: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_fields([assignment])
    with pytest.raises(BadInput, match="--field seed is given twice"):
        read_fields(["seed=1", "seed=2"])
