"""Servers on loopback for as long as a test needs them: of a handler of requests, and of a whole application."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Answer:
    """What goes back over HTTP."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, data: Any, status: int = 200) -> "Answer":
        return cls(status, json.dumps(data).encode(), {"Content-Type": "application/json"})

    @classmethod
    def error(cls, code: str, status: int = 404) -> "Answer":
        return cls(status, json.dumps({"error": code}).encode(), {"X-Error-Code": code, "X-Error-Message": code})

    @classmethod
    def content(cls, content: bytes, asked: str | None, **headers: str) -> "Answer":
        """A file, or the bytes of it that a header `Range` asks for."""
        if not asked:
            return cls(200, content, headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        end = min(int(last), len(content) - 1) if last else len(content) - 1
        about = {"Content-Range": f"bytes {first}-{end}/{len(content)}"}
        return cls(206, content[int(first) : end + 1], headers | about)


class QuietHandler:
    """A part of handlers: it keeps connections open and prints nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer waits 40 ms for the client to acknowledge its head

    def log_message(self, format: str, *args: object) -> None:
        """See above."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 64
    """Connections that wait to be accepted: with the default of 5, a sixth at the same moment waits for a second."""


class LoopbackServer:
    """A context manager that answers in a thread; `url` is its address."""

    base = ""
    """Path that every address begins with."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{self.base}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serve_app(app: Any) -> Iterator[str]:
    """Yield the address of an application, or of a configuration of uvicorn, while it is served."""
    import uvicorn

    if not isinstance(app, uvicorn.Config):
        # Gradio's clients keep a heartbeat open, which no server need wait for.
        app = uvicorn.Config(app, log_level="warning", proxy_headers=False, timeout_graceful_shutdown=1)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the application did not start"
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)
