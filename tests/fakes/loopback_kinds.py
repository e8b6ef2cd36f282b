"""Speech servers of every kind on loopback: what they answer, and a system that is opened on one of them."""

import base64
import json
from typing import Any

from podeval.systems.servers.connection import ServerConnection
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.speech import Ask, Speech
from tests.fakes.loopback_speech import Plan, Reply, SpeechServer, pcm, wav

FIRST, SECOND = "Hello there.", "Good day to you."
WORDS = {"Ann": "These are words of Ann.", "Ben": "Here are other words."}
VOICES = {"elevenlabs": ("id_a", "id_b"), "gemini": ("Kore", "Puck"), "piper": ("joe", "vctk#p225")}
PIPER = {"joe": {"speaker_id_map": {}}, "vctk": {"speaker_id_map": {"p225": 0, "p226": 1}}}


def answer(request: dict[str, Any]) -> Reply:
    """The sound of a second, in the form of the server whose path it is."""
    path = request["path"]
    if "GenerateContent" in path or "generateContent" in path:
        parts = [{"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": encode(pcm(1.0))}}]
        body = json.dumps({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}).encode()
        is_stream = "alt=sse" in path
        return whole(b"data: " + body + b"\r\n\r\n" if is_stream else body, "text/event-stream" if is_stream else "")
    if "output_format=pcm" in path:
        return whole(pcm(1.0), "audio/mpeg")
    if request.get("response_format") == "pcm":
        return whole(pcm(1.0), "audio/pcm;rate=24000")
    return whole(wav(1.0), "text/html; charset=utf-8" if path.endswith("/synthesize") else "audio/wav")


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def whole(data: bytes, kind: str = "application/json", status: int = 200, **headers: str) -> Reply:
    return Reply(((0.0, data),), status, kind, headers, length=len(data))


def speak(
    kind: str, ask: Ask, plan: Plan = answer, model: str = "tts", facts: dict[str, Any] | None = None, **options: Any
) -> tuple[Speech, SpeechServer]:
    """Have a script spoken by a server of a kind, opened by the options of the command."""
    if not options.get("clone"):
        options.setdefault("voice", VOICES.get(kind, ("a", "b")))
    with SpeechServer(plan, facts={"/v1/voices": PIPER, **(facts or {})}) as server:
        connection = ServerConnection(server.url, sleep=lambda seconds: None, tries=2)
        system = SpeechEndpoint.open(connection, model, server_kind=kind, **options)
        (speech,) = system.make([ask], 3)
    return speech, server


def bodies(server: SpeechServer) -> list[dict[str, Any]]:
    return [{name: one[name] for name in one.keys() - {"number", "path"}} for one in server.requests]
