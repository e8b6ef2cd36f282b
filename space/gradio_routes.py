"""What of Gradio is answered, at `/try`: its page, its events, uploads of recordings, nothing else that it offers.

Three walls stand before Gradio, which checks by itself only in apps that it launches and not in apps that are mounted:
its routes are an allow-list, a request names only files that were taken in from the same visitor, and a file is handed
out only to the visitor who sent it. The fourth is Gradio's own check, which `trying.mount` turns on.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from gradio_files import COOKIE, ForeignFile, IssuedFiles, check_files, new_holder
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TRY = "/try"
LARGEST_UPLOAD = 20 * 2**20
LARGEST_CALL = 2**20
UPLOAD_SECONDS = 180.0
"""From the head of an upload to its last byte."""
UPLOAD_RATE = "20/minute"
MOST_HELD = 2 * 2**30
"""Bytes of uploads that lie here at a time; they are deleted within the hour."""

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self' data:; connect-src 'self' blob: data:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'"
)
"""Gradio's page has code and style in it and cannot do without."""
FILE_POLICY = "default-src 'none'; sandbox"
"""What a visitor sent is never a page of this site."""

_API = "/gradio_api"
UPLOAD = f"{TRY}{_API}/upload"
_NAME = r"[\w.~-]{1,200}"
_READS = re.compile(
    rf"/?|/config/?|/theme\.css|/manifest\.json|/robots\.txt|/favicon\.ico|/pwa_icon(/\d+)?"
    rf"|/(assets|static|svelte)/[^\\]*"
    rf"|{_API}/(info/?|openapi\.json|app_id/?|startup-events|theme\.css|upload_progress|user/?|login_check/?)"
    rf"|{_API}/(heartbeat/{_NAME}|queue/data|queue/status|call/{_NAME}/{_NAME}|file=.+)"
)
"""What may be read."""
_TAKES = re.compile(rf"{_API}/(upload|queue/join|cancel|reset/?|(run|call)/{_NAME}/?)")
"""What may be sent to."""
_FILE = f"{_API}/file="
_PAGES = ("", "/", "/config", "/config/", f"{_API}/upload")
"""Whose answers give a visitor the cookie by which files are known as his."""


def measures(local: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether visitors may measure: as PODEVAL_TRY says, else where there is nobody but the operator."""
    setting = environment.get("PODEVAL_TRY", "")
    return local if setting == "" else setting == "1"


def concerns(path: str) -> bool:
    """Whether a request is for the Gradio app."""
    return path == TRY or path.startswith(f"{TRY}/")


def largest(path: str) -> int:
    """Bytes that a request may send."""
    return LARGEST_UPLOAD if path == UPLOAD else LARGEST_CALL


def policy(path: str) -> str:
    """The content policy of an answer of Gradio's."""
    return FILE_POLICY if path.startswith(f"{TRY}{_FILE}") else POLICY


def is_full() -> bool:
    """Whether as much was uploaded as may lie here."""
    import gradio.utils

    held = 0
    for folder, _, names in os.walk(gradio.utils.get_upload_folder()):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                held += os.lstat(os.path.join(folder, name)).st_size
    return held > MOST_HELD


class GradioGate:
    """Stands around a mounted Gradio app, so that nothing reaches it by another way.

    Args:
        app: Gradio's own.
        issued: the files that visitors may name.
        origin: gives the network address of who sent a request, for visitors whose browser keeps no cookie here.
        secure: whether the site is reached by HTTPS, perhaps within a page of the Hub.
    """

    def __init__(
        self, app: ASGIApp, issued: IssuedFiles, origin: Callable[[HTTPConnection], str], secure: bool = False
    ) -> None:
        self.app = app
        self._issued = issued
        self._origin = origin
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        part = scope["path"].removeprefix(scope.get("root_path", ""))
        reads = scope["method"] in ("GET", "HEAD")
        if not (reads and _READS.fullmatch(part)) and not (scope["method"] == "POST" and _TAKES.fullmatch(part)):
            sentence = "this is shut here" if reads else "the site takes nothing in here"
            await _refuse(403, sentence)(scope, receive, send)
            return
        cookie = _cookie(Headers(scope=scope))
        address = f"address {self._origin(HTTPConnection(scope))}"
        holders = (cookie, address) if cookie else (address,)
        if part.startswith(_FILE) and not self._issued.may_name(holders, part.removeprefix(_FILE)):
            await _refuse(403, "this file is not for readers")(scope, receive, send)
            return
        if part in _PAGES and not cookie:
            send = self._add_cookie(send)
        if part == f"{_API}/upload":
            await self.app(scope, receive, _Issuing(send, self._issued, holders[0]))
        elif reads:
            await self.app(scope, receive, send)
        else:
            await self._call(scope, receive, send, holders)

    async def _call(self, scope: Scope, receive: Receive, send: Send, holders: tuple[str, ...]) -> None:
        """Hand on an event whose files were issued to its sender.

        Gradio gets the JSON written anew, so that it cannot read another thing in it than was checked.
        """
        if Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # A form of another site can send anything but this without asking first.
            await _refuse(415, "send JSON, as application/json")(scope, receive, send)
            return
        try:
            body = json.loads(await _read_body(receive))
            body = check_files(body, lambda path: self._issued.may_name(holders, path))
            written = json.dumps(body).encode()
        except ForeignFile:
            await _refuse(403, "this names a file that was not uploaded here by you")(scope, receive, send)
            return
        except (ValueError, RecursionError):
            await _refuse(400, "send JSON")(scope, receive, send)
            return
        kept = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"content-type")]
        headers = [*kept, (b"content-type", b"application/json"), (b"content-length", str(len(written)).encode())]
        await self.app({**scope, "headers": headers}, _replay_body(written, receive), send)

    def _add_cookie(self, send: Send) -> Send:
        # Within a page of the Hub a browser keeps only cookies that say where they belong.
        where = "; SameSite=None; Secure; Partitioned" if self._secure else "; SameSite=Lax"

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.append("Set-Cookie", f"{COOKIE}={new_holder()}; Path={TRY}; HttpOnly{where}")
            await send(message)

        return send_with_cookie


class _Issuing:
    """Sends on what Gradio answers to an upload, and issues the paths in it to the visitor."""

    def __init__(self, send: Send, issued: IssuedFiles, holder: str) -> None:
        self._send = send
        self._issued = issued
        self._holder = holder
        self._taken = False
        self._answer = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._taken = message["status"] == 200
        elif message["type"] == "http.response.body" and self._taken:
            self._answer += message.get("body", b"")
            if not message.get("more_body", False):
                for path in json.loads(self._answer):
                    self._issued.issue(self._holder, path)
        await self._send(message)


def _cookie(headers: Headers) -> str:
    """The visitor's name by the cookie; empty without one."""
    with contextlib.suppress(CookieError):
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        if morsel is not None and len(morsel.value) == len(new_holder()):
            return morsel.value
    return ""


async def _read_body(receive: Receive) -> bytes:
    """The body of a request, which the site's gate has bounded."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ValueError("the request ended early")
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Receives a body that is there already, and then what follows it."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _refuse(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)
