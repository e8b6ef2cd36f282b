"""A server on loopback that sends sound as a test plans: when each chunk leaves, what its headers say, how it ends.

`SpeechServer(plan)`: `plan(request)` gets the body of each request with its `number` and `path` and returns a `Reply`.
Plans that speak as real servers do, read from their packages: `speak_openai` (openai 3.57.0), `speak_vllm_omni`
(vllm-omni 0.30.0), `speak_sglang_omni` (sglang-omni 0.1.9).
"""

import base64
import contextlib
import io
import json
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import soundfile

from tests.fakes.loopback_server import LoopbackServer, QuietHandler


def tone(seconds: float, rate: int = 24_000, pitch: float = 220.0) -> np.ndarray[Any, Any]:
    return (0.3 * np.sin(2 * np.pi * pitch * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def pcm(seconds: float, rate: int = 24_000, pitch: float = 220.0) -> bytes:
    return bytes((tone(seconds, rate, pitch) * 32767).astype("<i2").tobytes())


def wav(seconds: float, rate: int = 24_000, pitch: float = 220.0) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, tone(seconds, rate, pitch), rate, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def spoken_completion(body: bytes, transcript: str, **more: Any) -> bytes:
    message = {
        "role": "assistant",
        "content": None,
        "audio": {"id": "a", "data": base64.b64encode(body).decode(), "transcript": transcript},
    }
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}).encode()


def written_completion(text: str, **more: Any) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}).encode()


@dataclass(frozen=True)
class Reply:
    """What is sent: each chunk at its time in seconds after the request came.

    `length` is a Content-Length (None: chunked); `hang_up` ends the connection without an end of the body.
    """

    chunks: tuple[tuple[float, bytes], ...] = ()
    status: int = 200
    kind: str = "audio/wav"
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    hang_up: bool = False


Plan = Callable[[dict[str, Any]], Reply]

RATE = 24_000
OPEN_SIZE = b"\xff\xff\xff\xff"
FieldsOfOpenAI = frozenset({"input", "model", "voice", "instructions", "response_format", "speed", "stream_format"})


def voice_of(text: str, rate: int = RATE) -> np.ndarray[Any, Any]:
    """16-bit samples that no other text has, of an odd or even number with the length of the text."""
    noise = np.random.default_rng(list(text.encode())).standard_normal(rate // 8 + len(text))
    envelope = np.convolve(noise, np.hanning(16) / 8, "same") * np.hanning(len(noise))
    return np.clip(9_000 * envelope, -32_768, 32_767).astype("<i2")


def open_wav(samples: bytes, rate: int = RATE, size: bytes = OPEN_SIZE) -> bytes:
    """A WAV whose sizes are not known when it is begun."""
    form = struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
    return b"RIFF" + size + b"WAVEfmt " + form + b"data" + size + samples


def cut(body: bytes, pieces: int = 7) -> tuple[tuple[float, bytes], ...]:
    """A body in pieces whose ends are no ends of anything in it."""
    size = len(body) // pieces + 1
    return tuple((0.002 * number, body[at : at + size]) for number, at in enumerate(range(0, len(body), size)))


def refuse(message: str, param: str | None = None, status: int = 400) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": status}
    body = json.dumps({"error": error}).encode()
    return Reply(((0.0, body),), status=status, kind="application/json", length=len(body))


def send_events(events: list[tuple[str, dict[str, Any]]], named: bool = True, newline: str = "\n") -> Reply:
    lines = [f"event: {name}{newline}" * named + f"data: {json.dumps(data)}{newline * 2}" for name, data in events]
    return Reply(cut("".join(lines).encode(), 11), kind="text/event-stream; charset=utf-8")


def encode_deltas(body: bytes, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    """The events of a speech, whose pieces end within samples."""
    deltas = [base64.b64encode(piece).decode() for _, piece in cut(body, 5)]
    return [("speech.audio.delta", {"type": "speech.audio.delta", "audio": delta, **more}) for delta in deltas]


def finish_whole(samples: bytes) -> Reply:
    body = open_wav(samples, size=struct.pack("<I", len(samples)))
    return Reply(((0.0, body),), length=len(body))


def speak_openai(request: dict[str, Any]) -> Reply:
    """It refuses fields that it does not know; a stream of WAV has open sizes, one of PCM no rate."""
    for name in request.keys() - FieldsOfOpenAI - {"number", "path"}:
        return refuse(f"Unknown parameter: '{name}'.", name)
    samples = voice_of(request["input"]).tobytes()
    if request.get("stream_format") == "sse":
        done = {"type": "speech.audio.done", "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}
        return send_events([*encode_deltas(samples), ("speech.audio.done", done)], named=False)
    if request.get("response_format") == "pcm":
        return Reply(cut(samples), kind="audio/pcm")
    return Reply(cut(open_wav(samples)), kind="audio/wav")


def speak_vllm_omni(request: dict[str, Any], rate: int = RATE) -> Reply:
    """A stream is one of events unless `stream_format` is `audio`; neither states the rate of PCM."""
    form = request.get("response_format", "wav")
    samples = voice_of(request["input"], rate).tobytes()
    body = open_wav(samples, rate) if form == "wav" else samples
    streams = request.get("stream") or request.get("stream_format")
    if streams and form not in ("pcm", "wav"):
        return refuse("Streaming requires response_format='pcm' or 'wav'.")
    if request.get("stream_format") == "audio":
        return Reply(cut(body), kind=f"audio/{form}")
    if streams:
        done = {"type": "speech.audio.done", "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}
        return send_events([*encode_deltas(body, response_format=form), ("speech.audio.done", done)])
    return finish_whole(samples)


def speak_sglang_omni(request: dict[str, Any], supported: frozenset[str] | None = None) -> Reply:
    """A stream is of PCM only, whose rate a header states; a model may declare the fields that it supports."""
    for name in sorted(request.keys() - (supported or request.keys()) - {"number", "path"}):
        return refuse(f"{name} is not supported by this model", name)
    streams = request.get("stream") or request.get("stream_format") == "sse"
    if streams and request.get("response_format", "wav") != "pcm":
        return refuse("stream=true requires response_format='pcm'", "response_format")
    samples = voice_of(request["input"]).tobytes()
    headers = {"X-Sample-Rate": str(RATE), "X-Channels": "1", "X-Bit-Depth": "16"}
    if not streams:
        return finish_whole(samples)
    if request.get("stream_format") == "sse":
        done = {"type": "speech.audio.done", "usage": None, "finish_reason": "stop"}
        events = send_events([*encode_deltas(samples), ("speech.audio.done", done)], named=False)
        return Reply(events.chunks, kind=events.kind, headers=headers)
    return Reply(cut(samples), kind="audio/pcm", headers=headers)


class SpeechServer(LoopbackServer):
    """`url` is the base URL, `requests` what was asked for."""

    base = "/v1"

    def __init__(self, plan: Plan, voices: tuple[str, ...] = (), facts: dict[str, Any] | None = None) -> None:
        self.plan = plan
        self.facts = {**(facts or {}), **({"/v1/audio/voices": {"voices": voices}} if voices else {})}
        """What is answered to GET, by path."""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self.departures: list[float] = []
        """When the chunks of the last reply left, in seconds after its request came: the plan, as it was kept."""
        self._lock = threading.Lock()
        super().__init__(_handler(self))

    def take(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Reply:
        with self._lock:
            request = {**body, "number": len(self.requests), "path": path}
            self.requests.append(request)
            self.keys.append(headers.get("Authorization"))
            self.headers.append(headers)
        return self.plan(request)


def _handler(server: SpeechServer) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_there = self.path in server.facts
            body = json.dumps(server.facts.get(self.path)).encode()
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            begin = time.perf_counter()
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            is_form = self.headers["Content-Type"].startswith("multipart/")
            body = {"form": sent} if is_form else json.loads(sent)
            reply = server.take(self.path, dict(self.headers.items()), body)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.length is None:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(reply.length))
            self.end_headers()
            server.departures = []
            with contextlib.suppress(ConnectionError):  # nobody waits for it any more
                for at, data in reply.chunks:
                    self._wait_until(begin + at)
                    server.departures.append(time.perf_counter() - begin)
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if reply.length is None else data)
                    self.wfile.flush()
                if reply.length is None and not reply.hang_up:
                    self.wfile.write(b"0\r\n\r\n")
            self.close_connection |= reply.hang_up

        def _wait_until(self, moment: float) -> None:
            rest = moment - time.perf_counter()
            if rest > 0:
                threading.Event().wait(rest)

    return Handler
