"""What of Gradio is answered: its page at the address of each tab, its events, uploads, nothing else that it offers.

Three walls stand before Gradio, which checks by itself only in apps that it launches and not in apps that are mounted:
its routes are an allow-list, a request names only files that were taken in from the same visitor, and a file is handed
out only to the visitor who sent it. The fourth is Gradio's own check, which `gradio_app.mount` turns on.

There is an app for each language. That of the first is at the root, with the interface for programs; the others answer
events of their own pages below their prefix.
"""

from __future__ import annotations

import contextlib
import json
import re
from http.cookies import CookieError, SimpleCookie
from typing import Any

from gradio_addresses import (
    API,
    COOKIE,
    LARGEST_ARCHIVE,
    LARGEST_UPLOAD,
    PREFIXES,
    TABS,
    TABS_ID,
    ForeignFile,
    IssuedFiles,
    check_files,
    is_for_events,
    make_holder,
)
from markupsafe import Markup
from pages.board import compress, render_view
from request_guard import GRADIO_FILE, GRADIO_PAGE, SecurityHeaders, find_origin, write_header_value
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tabs.score import PARTS_ID
from website import Site, find_recordings_sender

from podeval.metrics.description import VISITOR_INPUTS

_NAME = r"[\w.~-]{1,200}"
_READS = re.compile(
    rf"/config/?|/theme\.css|/manifest\.json|/robots\.txt|/pwa_icon(/\d+)?"
    rf"|/(assets|static|svelte)/[^\\]*"
    rf"|{API}/(info/?|openapi\.json|app_id/?|startup-events|theme\.css|upload_progress|user/?|login_check/?)"
    rf"|{API}/(heartbeat/{_NAME}|queue/data|queue/status|call/{_NAME}/{_NAME}|file=.+)"
)
"""What may be read."""
_TAKES = re.compile(rf"{API}/(upload|queue/join|cancel|reset/?|(run|call)/{_NAME}/?)")
"""What may be sent to."""
_FILE = f"{API}/file="
_PAGES = {"/": TABS[0], **{f"/{name}": name for name in TABS}}
"""Addresses of tabs."""


PAGE_RATE = "300/minute"
_CONFIG, _CONFIG_END = "window.gradio_config = ", ";</script>"


class GradioGate:
    """Stands before the Gradio apps, so that nothing reaches one by another way.

    Args:
        apps: Gradio's own, as `LanguageApps` of `gradio_app`.
        issued: the files that visitors may name.
        site: the site in whose header the page of a tab is put.
        secure: whether the site is reached by HTTPS, perhaps within a page of the Hub.
    """

    def __init__(self, apps: Any, issued: IssuedFiles, site: Site, secure: bool = False) -> None:
        self.apps, self._issued, self._site, self._secure = apps, issued, site, secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        path, reads = scope["path"], scope["method"] in ("GET", "HEAD")
        if reads and path in _PAGES:
            await self._page(_PAGES[path], scope, receive, send)
            return
        language = next((code for code, prefix in PREFIXES.items() if prefix and path.startswith(f"{prefix}/")), "en")
        part = path.removeprefix(PREFIXES[language])
        if not is_for_events(path) and not (reads and _READS.fullmatch(part)):
            raise HTTPException(404)
        if not (reads and _READS.fullmatch(part)) and not (scope["method"] == "POST" and _TAKES.fullmatch(part)):
            sentence = "this is shut here" if reads else "nothing can be sent to this address"
            await _refuse(403, sentence)(scope, receive, send)
            return
        await self._answer(language, part, scope, receive, send)

    async def _answer(self, language: str, part: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on that is on the list, as far as the files that it names are its sender's."""
        app = await self.apps.start(language)
        scope = {**scope, "root_path": PREFIXES[language]}
        cookie = _cookie(Headers(scope=scope))
        # The network address stands for visitors whose browser keeps no cookie here.
        address = f"address {find_origin(HTTPConnection(scope))}"
        holders = (cookie, address) if cookie else (address,)
        if part.startswith(_FILE):
            if not self._issued.may_name(holders, part.removeprefix(_FILE)):
                await _refuse(403, "this file is not for readers")(scope, receive, send)
                return
            await app(scope, receive, SecurityHeaders(send, GRADIO_FILE))
        elif part == f"{API}/upload":
            answer_with = send if cookie else self._add_cookie(send)
            await app(scope, receive, _issuing(answer_with, self._issued, holders[0]))
        elif scope["method"] == "POST":
            await self._call(app, scope, receive, send, holders)
        else:
            await app(scope, receive, send)

    async def _page(self, tab: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Gradio's page in its frame, in the reader's language, with the tab of the address in front."""
        request = Request(scope, receive)
        language = self._site.language(request)
        headers = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        prefix = PREFIXES[language]
        inner = {**scope, "method": "GET", "headers": headers, "path": f"{prefix}/", "root_path": prefix}
        # What is asked for is ours to read: of `?page=` Gradio would show a page of its own, or fail.
        inner |= {"raw_path": inner["path"].encode(), "query_string": b""}
        status, body = await _collect(await self.apps.start(language), inner, receive)
        if status != 200:
            await _refuse(503, "the page cannot be shown at present; try again in a minute")(scope, receive, send)
            return
        answer = await run_in_threadpool(dress, self._site, request, body.decode(), tab)
        if not _cookie(Headers(scope=scope)):
            send = self._add_cookie(send)
        await answer(scope, receive, send)

    async def _call(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, holders: tuple[str, ...]) -> None:
        """Hand on an event whose files were issued to its sender.

        Gradio gets the JSON written anew, so that it cannot read another thing in it than was checked.
        """
        if Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # A form of another site can send anything but this without asking first.
            await _refuse(415, "send JSON, as application/json")(scope, receive, send)
            return
        try:
            body = json.loads(await Request(scope, receive).body())
            body = check_files(body, lambda path: self._issued.may_name(holders, path))
            written = json.dumps(body).encode()
        except ForeignFile:
            await _refuse(403, "this names a file that was not uploaded here by you")(scope, receive, send)
            return
        except (ValueError, RecursionError, ClientDisconnect):
            await _refuse(400, "send JSON")(scope, receive, send)
            return
        kept = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"content-type")]
        headers = [*kept, (b"content-type", b"application/json"), (b"content-length", str(len(written)).encode())]
        await app({**scope, "headers": headers}, _replay_body(written, receive), send)

    def _add_cookie(self, send: Send) -> Send:
        # Within a page of the Hub a browser keeps only cookies that say where they belong.
        where = "; SameSite=None; Secure; Partitioned" if self._secure else "; SameSite=Lax"

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.append("Set-Cookie", f"{COOKIE}={make_holder()}; Path=/; HttpOnly{where}")
            await send(message)

        return send_with_cookie


def _issuing(send: Send, issued: IssuedFiles, holder: str) -> Send:
    """Sends on what Gradio answers to an upload, and issues the paths in it to the visitor."""
    accepted, answer = False, b""

    async def send_answer(message: Message) -> None:
        nonlocal accepted, answer
        if message["type"] == "http.response.start":
            accepted = message["status"] == 200
        elif message["type"] == "http.response.body" and accepted:
            answer += message.get("body", b"")
            if not message.get("more_body", False):
                for path in json.loads(answer):
                    issued.issue(holder, path)
        await send(message)

    return send_answer


def _cookie(headers: Headers) -> str:
    """The visitor's name by the cookie; empty without one."""
    with contextlib.suppress(CookieError):
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        if morsel is not None and len(morsel.value) == len(make_holder()):
            return morsel.value
    return ""


async def _collect(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[int, bytes]:
    """Status and body of an answer, kept back until it is whole."""
    status, body = 500, b""

    async def keep(message: Message) -> None:
        nonlocal status, body
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            body += message.get("body", b"")

    await app(scope, receive, keep)
    return status, body


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Receives a body that is there already, and then what follows it."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _refuse(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)


def dress(site: Site, request: Request, page: str, tab: str) -> Response:
    """The page as it is sent.

    Args:
        site: the site of the header.
        request: the request of a reader.
        page: as Gradio wrote it.
        tab: the tab in front.

    Raises:
        StoreUnusable: the database does not say what is frozen.
        RuntimeError: this release of Gradio writes its page in another way.
    """
    site.limit(request, PAGE_RATE, "tabs")
    head, header = site.frame(request)
    language = site.language(request)
    largest = LARGEST_ARCHIVE if find_recordings_sender(site, request) else LARGEST_UPLOAD
    texts = site.texts[language]
    too_large = {name: texts[name]["too_large_here"].format(largest // 2**20) for name in ("score", "submit")}
    page = _select(page, tab, request.query_params.get("metric", ""), largest, too_large)
    page = _replace(page, 'lang="en"', f'lang="{language}"')
    page = _replace(page, "</head>", f"{head}</head>")
    start = page.index(">", page.index("<body")) + 1
    early = _render_early(site, request) if tab == TABS[0] else ""
    answer = HTMLResponse(f"{page[:start]}{header}{early}{page[start:]}")
    answer.headers["Content-Security-Policy"] = write_header_value(GRADIO_PAGE)
    # The Score tab records, where its reader lets it.
    answer.headers["Permissions-Policy"] = "camera=(), microphone=(self), geolocation=()"
    answer.headers["Vary"] = "x-podeval-part, accept-encoding, accept-language, cookie"
    site.keep_language(request, answer)
    return compress(request, answer)


def _render_early(site: Site, request: Request) -> str:
    """The board as its first reader sees it until Gradio is there, which takes seconds; a script removes it."""
    view, whole = render_view(site, request)
    return site.render_text(request, "board_early.html", view=Markup(view)) if whole else ""


def _select(page: str, tab: str, metric: str, largest: int, too_large: dict[str, str]) -> str:
    """The page whose tabs begin with one, whose Score tab begins with a metric where it offers it, and whose reader may
    upload so many bytes, with what is said by tab of a file that has more.
    """
    start = page.index(_CONFIG) + len(_CONFIG)
    end = page.index(_CONFIG_END, start)
    config: dict[str, Any] = json.loads(page[start:end])
    components = {part["props"].get("elem_id"): part["props"] for part in config["components"]}
    components[TABS_ID]["selected"] = tab
    config["max_file_size"], config["too_large"] = largest, too_large
    for part in VISITOR_INPUTS:
        offered = components.get(f"score-{part}-metrics", {"choices": []})
        if metric in [name for _, name in offered["choices"]]:
            offered["value"] = [metric]
            components[PARTS_ID]["selected"] = part
    # As Gradio writes it: nothing in it ends the script.
    written = json.dumps(config).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return page[:start] + written + page[end:]


def _replace(page: str, part: str, by: str) -> str:
    if part not in page:
        raise RuntimeError(f"this release of gradio writes its page without {part!r}, where podeval puts its header")
    return page.replace(part, by, 1)
