"""A server on loopback that sends sound as a test plans: when each chunk leaves, what its headers say, how it ends.

`SpeechServer(plan)`: `plan(request)` gets the body of each request with its `number` and `path` and returns a `Reply`.
"""

import base64
import io
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import numpy as np
import soundfile


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


class SpeechServer:
    """A context manager; `url` is the base URL, `requests` what was asked for."""

    def __init__(self, plan: Plan, voices: tuple[str, ...] = ()) -> None:
        self.plan, self.voices = plan, voices
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.departures: list[float] = []
        """When the chunks of the last reply left, in seconds after its request came: the plan, as it was kept."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "SpeechServer":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, path: str, key: str | None, body: dict[str, Any]) -> Reply:
        with self._lock:
            request = {**body, "number": len(self.requests), "path": path}
            self.requests.append(request)
            self.keys.append(key)
        return self.plan(request)


def _handler(server: SpeechServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = json.dumps({"voices": server.voices}).encode()
            known = server.voices and self.path.endswith("/audio/voices")
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            begin = time.perf_counter()
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = server.take(self.path, self.headers.get("Authorization"), sent)
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
            for at, data in reply.chunks:
                self._wait_until(begin + at)
                server.departures.append(time.perf_counter() - begin)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if reply.length is None else data)
                self.wfile.flush()
            if reply.hang_up:
                self.close_connection = True
                return
            if reply.length is None:
                self.wfile.write(b"0\r\n\r\n")

        def _wait_until(self, moment: float) -> None:
            rest = moment - time.perf_counter()
            if rest > 0:
                threading.Event().wait(rest)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
