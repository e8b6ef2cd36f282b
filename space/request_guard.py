"""Check every request before a page sees it, and give every response its security headers.

Every change is requested by POSTing JSON to a page that accepts input. The header `X-Podeval` is required, and pages of
other sites cannot send it, because they would need a preflight request, which is refused. See docs/security.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import gradio_addresses
from auth import is_loopback
from limits import parse
from rate_limit import Full, RateLimit, WaitingRoom
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podeval.cli.output import REQUEST

FRAME = f"frame-ancestors 'self'{' https://huggingface.co' if os.environ.get('SPACE_ID') else ''}"
"""The Hub shows a Space within its own page."""

STRICT = (
    "default-src 'self'; img-src 'self' data:; media-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'"
)

GRADIO_PAGE = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self' data:; connect-src 'self' blob: data:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'"
)
"""Gradio's page contains inline code and style."""

GRADIO_FILE = "default-src 'none'; sandbox"
"""Policy for a visitor's file, which is never a page of this site."""


EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
"""Headers of every response that does not set them itself."""


def write_header_value(policy: str) -> str:
    """Return a policy as a header value, with the sites that may show the response within their pages."""
    return f"{policy}; {FRAME}"


class SecurityHeaders:
    """Adds the security headers to every response."""

    def __init__(self, send: Send, policy: str) -> None:
        self._send = send
        self._policy = policy
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send a message, adding the security headers to the first message of a response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in (EVERYWHERE | {"Content-Security-Policy": write_header_value(self._policy)}).items():
                headers.setdefault(name, value)
            if headers.get("content-type", "").startswith("text/html"):
                # A page is meant for a single session and must not be stored by caches in between.
                headers.setdefault("Cache-Control", "private, no-cache")
        await self._send(message)


class RequestCounts:
    """The statuses and durations of this process's responses, used only by the server's thread.

    Attributes:
        answers: number of responses by the first digit of the status.
        within: number of responses whose head was sent within a given number of seconds, by that number of seconds.
        seconds: total seconds of all responses.
    """

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter({"5xx": 0})
        self.within = dict.fromkeys((0.05, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf), 0)
        self.seconds = 0.0

    def add(self, status: int, seconds: float) -> None:
        """Count a response."""
        self.answers[f"{status // 100}xx"] += 1
        self.seconds += seconds
        for bound in self.within:
            self.within[bound] += seconds <= bound

    def watch(self, send: Send) -> Send:
        """Send a message, and count the response that it begins."""
        began = time.perf_counter()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.add(message["status"], time.perf_counter() - began)
            await send(message)

        return send_counted


LONGEST_PATH = 200
"""Maximum number of characters of a request's method and path in the log."""

LARGEST_BODY = 256 * 1024
BODY_SECONDS = 20.0
"""Maximum number of seconds from the head of a request to the last byte of its body."""

_PROGRAMS = "/mcp"
"""Read-only addresses, for programs that are not browsers, including everything below them."""

_FORWARDED = ("forwarded", "via", "x-real-ip")
_FORWARDED_BEGIN = ("x-forwarded-", "cf-")


class Guard:
    """ASGI middleware that refuses requests that pages must not see.

    Args:
        app: the application behind the guard.
        accepting: prefixes of the paths that accept input.
        local: whether every visitor counts as the only user of this machine, without proof.
        measures: whether visitors may upload recordings to measure.
        hosts: additional names under which a local site is reached.
        files: uploaded files, with a share for each sender.
        senders: function that returns the sender if they may upload recordings for a submission, otherwise an empty
            string.
        counts: the counts of responses.
    """

    def __init__(
        self,
        app: ASGIApp,
        accepting: tuple[str, ...] = (),
        local: bool = False,
        measures: bool = False,
        hosts: Iterable[str] = (),
        senders: Callable[[HTTPConnection], str] = lambda request: "",
        counts: RequestCounts | None = None,
        files: gradio_addresses.IssuedFiles | None = None,
    ) -> None:
        self._app = app
        self._accepting = accepting
        self._local = local
        self._measures = measures
        self._pace = RateLimit()
        self._hosts = frozenset(hosts)
        self._senders = senders
        self._counts = counts or RequestCounts()
        self._files = files or gradio_addresses.IssuedFiles()
        self._archives = WaitingRoom(most=2, most_each=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on with a limited body."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                # This site does not use WebSockets.
                await send({"type": "websocket.close", "code": 1000})
                return
            await self._app(scope, receive, send)
            return
        path, headers = scope["path"], Headers(scope=scope)
        # Each request is handled in a separate context, so this value ends with the request.
        REQUEST.set(f"{scope['method']} {path}"[:LONGEST_PATH])
        uploads = scope["method"] == "POST" and path.startswith(gradio_addresses.UPLOADS)
        sender = self._senders(HTTPConnection(scope)) if uploads else ""
        most, seconds = (gradio_addresses.LARGEST_ARCHIVE, gradio_addresses.ARCHIVE_SECONDS) if sender else _terms(path)
        dressed = SecurityHeaders(self._counts.watch(send), STRICT)
        refused = self._refusal(scope, path, headers, most, sender)
        archive = bool(sender) and _length(headers) > gradio_addresses.LARGEST_UPLOAD
        if refused is None and archive and self._pace.wait(parse(gradio_addresses.ARCHIVE_RATE), "archives", sender):
            refused = refuse(429, "you have uploaded recordings too often; try again in an hour")
        if refused is not None:
            await refused(scope, receive, dressed)
            return
        with contextlib.ExitStack() as held:
            if archive:
                try:
                    held.enter_context(self._archives.enter(sender))
                except Full:
                    await refuse(503, "other recordings are being uploaded; try again in a minute")(
                        scope, receive, dressed
                    )
                    return
            if uploads:
                owner = sender or find_origin(HTTPConnection(scope))
                expected = self._files.expect(owner, max(0, _length(headers)), lambda: dressed.status == 200)
                held.enter_context(expected)
            body = BodyLimit(receive, most, seconds) if scope["method"] == "POST" else receive
            try:
                await self._app(scope, body, dressed)
            except Exception:
                # The component in front of this one sends the response.
                self._counts.add(500, 0.0)
                raise

    def _refusal(self, scope: Scope, path: str, headers: Headers, most: int, sender: str) -> Response | None:
        """Return the refusal of a request; None if the request is allowed. The first failing check decides."""
        if self._local and (why := self._not_local(scope, headers)):
            return refuse(421, why)
        public, host = urlsplit(os.environ.get("PODEVAL_URL", "")).hostname, _host(headers.get("host", ""))
        if not self._local and public and host not in (public, *self._hosts) and path != "/health":
            return refuse(421, f"the address of this board is {os.environ['PODEVAL_URL']}")
        method, program = scope["method"], _is_program(path)
        if program and _is_foreign_origin(headers):
            return refuse(403, "pages of other sites cannot read anything here")
        if method not in ("GET", "HEAD", "POST") and not (method == "DELETE" and program):
            return refuse(405, f"{method} is not supported here")
        return self._refused_post(scope, path, headers, most, sender) if method == "POST" else None

    def _refused_post(self, scope: Scope, path: str, headers: Headers, most: int, sender: str) -> Response | None:
        """Return the refusal of input: the page accepts no input, another site sent it, or its body is not limited."""
        if path.startswith(gradio_addresses.UPLOADS) and (no_upload := self._no_upload(scope, headers, sender)):
            return no_upload
        by_page = not _is_program(path) and not gradio_addresses.is_for_events(path)
        if by_page and not path.startswith(self._accepting):
            return refuse(403, "nothing can be sent to this address")
        if path.startswith("/sign-out"):
            # A form without a script cannot set a header.
            is_ours = headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
            return None if is_ours else RedirectResponse("/", status_code=303)
        if headers.get("sec-fetch-site") == "cross-site" or (by_page and headers.get("x-podeval") != "1"):
            return refuse(403, "this request did not come from a page of podeval")
        # The request must state the length of its body in advance.
        is_bounded = "transfer-encoding" not in headers and 0 <= _length(headers) <= most
        return None if is_bounded else refuse(413, f"send at most {most // 1024} kB, and state the length")

    def _no_upload(self, scope: Scope, headers: Headers, sender: str) -> Response | None:
        address = find_origin(HTTPConnection(scope))
        if not self._measures and not sender:
            return refuse(403, "this board does not measure for visitors")
        if self._pace.wait(parse(gradio_addresses.UPLOAD_RATE), address):
            return refuse(429, "you have uploaded too much in a short time; try again in a minute")
        why = self._files.explain_full(sender or address, max(0, _length(headers)), submits=bool(sender))
        return refuse(503, why) if why else None

    def _not_local(self, scope: Scope, headers: Headers) -> str:
        """Explain why a request is not from this machine's user: it came through a foreign name or a proxy."""
        host = _host(headers.get("host", ""))
        if host in self._hosts:
            return ""
        forwarded = any(name in _FORWARDED or name.startswith(_FORWARDED_BEGIN) for name in headers)
        # Programs may also state an origin; the refusal about pages of other sites would not apply to programs.
        page = not _is_program(scope["path"])
        if forwarded or (page and _from_a_page_elsewhere(headers)):
            return f"this board is behind a proxy and would treat everybody as its operator; {_SIGN_IN}"
        client = scope.get("client")
        # A page of another site whose name was pointed at this machine (DNS rebinding) still sends that site's name.
        if client and _is_address(client[0]) and not is_loopback(host):
            return f"this board is not known as {host[:80]!r}; open it as localhost, or {_SIGN_IN}"
        return ""


class BodyLimit:
    """Receives a body within limits on size and time."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive = receive
        self._left = most
        self._seconds = seconds
        self._end: float | None = None
        self._whole = False

    async def __call__(self) -> Message:
        """Receive a part of the body, as long as the body is within the limits."""
        if self._whole:
            return await self._receive()
        clock = asyncio.get_running_loop().time
        self._end = clock() + self._seconds if self._end is None else self._end
        try:
            message = await asyncio.wait_for(self._receive(), self._end - clock())
        except TimeoutError:
            message = {"type": "http.disconnect"}
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._left < 0:
                message = {"type": "http.disconnect"}
        self._whole = self._whole or message["type"] == "http.disconnect"
        return message


_SIGN_IN = "have people sign in (docs/operating.md), or list this address in PODEVAL_HOSTS if only you use the board"


def read_own_hosts() -> frozenset[str]:
    """Read `PODEVAL_HOSTS`: the names under which the only user of this machine reaches it through a forwarder."""
    return frozenset(name.strip().casefold() for name in os.environ.get("PODEVAL_HOSTS", "").split(",") if name.strip())


def read_trusted_proxies() -> str:
    """Read the number of our proxies in front of the site; empty if visitors reach it directly."""
    return os.environ.get("PODEVAL_TRUSTED_PROXY") or os.environ.get("SPACE_ID") or ""


def find_origin(request: HTTPConnection) -> str:
    """Return the network address of the sender of a request; a trusted proxy's statement is used."""
    proxies = read_trusted_proxies()
    forwarded = read_forwarded_for(request.headers, proxies) if proxies else ""
    return find_address_block(forwarded or (request.client.host if request.client else ""))


def find_address_block(address: str) -> str:
    """Return the identity of a sender: an address, or the 64 bits of an IPv6 address that belong to one customer."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def read_forwarded_for(headers: Any, hops: str) -> str:
    """Return the address that the proxy saw, from a chain of addresses, the beginning of which may be invented by the
    sender.

    Args:
        headers: the headers of the request; every line with this name counts, in order.
        hops: number of our own proxies in front of the site; any text that is not a number counts as one.
    """
    chain = [part.strip() for line in headers.getlist("x-forwarded-for") for part in line.split(",")]
    number = int(hops) if hops.isascii() and hops.isdigit() and 0 < int(hops) < 10 else 1
    return chain[-number] if len(chain) >= number else ""


def _terms(path: str) -> tuple[int, float]:
    """Return the limits of a path: the maximum number of bytes of a request, and its maximum time in seconds."""
    if gradio_addresses.is_for_events(path):
        uploads = path.startswith(gradio_addresses.UPLOADS)
        most = gradio_addresses.LARGEST_UPLOAD if uploads else gradio_addresses.LARGEST_CALL
        return most, gradio_addresses.UPLOAD_SECONDS
    return LARGEST_BODY, BODY_SECONDS


def _is_program(path: str) -> bool:
    return path == _PROGRAMS or path.startswith(f"{_PROGRAMS}/")


def _is_foreign_origin(headers: Headers) -> bool:
    """Return whether a browser reports that a page of another host sent a request."""
    origin = headers.get("origin", "")
    return origin != "" and _host(urlsplit(origin).netloc) != _host(headers["host"])


def _length(headers: Headers) -> int:
    """Return the stated length of a request's body; -1 if it is not stated."""
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 11 else -1


def refuse(status: int, sentence: str) -> Response:
    """Return a refusal in one sentence, for pages, programs and Gradio's clients, which show `detail`."""
    return JSONResponse({"error": sentence, "detail": sentence}, status)


def _host(header: str) -> str:
    """Return the name in a `Host` header, without its port."""
    try:
        return (urlsplit(f"//{header}").hostname or "").casefold()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _from_a_page_elsewhere(headers: Headers) -> bool:
    """Return whether one of our pages was opened under a name other than this machine's, through a proxy that adds no
    header.

    Requests that come from a link on another site are excluded. Browsers mark them with the header `Sec-Fetch-Site`,
    which they also send to the addresses of this machine.
    """
    if headers.get("sec-fetch-site") in ("cross-site", "none"):
        return False
    pages = (headers.get("origin"), headers.get("referer"))
    return any(page and not is_loopback(_host(urlsplit(page).netloc)) for page in pages)
