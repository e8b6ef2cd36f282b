"""An OpenAI-compatible server on loopback that answers as a test's script says, faults included.

`ScriptedServer(script)`: `script(call)` gets each request and returns an `Answer`; `call` holds the request's number,
path, headers and body. What was asked is kept in `calls`.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.fakes.loopback_server import LoopbackServer, QuietHandler


@dataclass(frozen=True)
class Call:
    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def question(self) -> str:
        """The first user message's text."""
        return self._user_text(0)

    @property
    def user_text(self) -> str:
        """The last user message's text."""
        return self._user_text(-1)

    def _user_text(self, place: int) -> str:
        content = [m for m in self.body["messages"] if m["role"] == "user"][place]["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@dataclass(frozen=True)
class Answer:
    """What is sent back: `text` in a chat completion, or `body` as it is; `cut` sends half of it and hangs up."""

    text: str | None = None
    status: int = 200
    body: str | bytes | None = None
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: bool = False
    drip: float = 0.0
    message: dict[str, Any] | None = None
    finish: str = "stop"
    usage: dict[str, int] | None = None


Script = Callable[[Call], Answer]


class ScriptedServer(LoopbackServer):
    """`url` is the base URL that a judge is named with."""

    base = "/v1"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.calls: list[Call] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        super().__init__(_handler(self))

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        super().__exit__()

    def take(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        with self._lock:
            call = Call(len(self.calls), path, headers, body)
            self.calls.append(call)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            answer = self.script(call)
            self._closing.wait(answer.wait)
            return answer
        finally:
            with self._lock:
                self._at_once -= 1


def completion(answer: Answer) -> bytes:
    if answer.body is not None:
        return answer.body.encode() if isinstance(answer.body, str) else answer.body
    message = answer.message or {"role": "assistant", "content": answer.text}
    usage = answer.usage or {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice], "usage": usage}
    ).encode()


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = server.take(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(sent))
            data = completion(answer)
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if answer.cut:
                    self.wfile.write(data[: len(data) // 2])
                    self.close_connection = True
                elif answer.drip:
                    for place in range(len(data)):
                        self.wfile.write(data[place : place + 1])
                        time.sleep(answer.drip)
                else:
                    self.wfile.write(data)
            except OSError:
                self.close_connection = True

    return Handler
