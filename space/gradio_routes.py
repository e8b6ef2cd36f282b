"""The parts of Gradio that the site exposes: only its page at the address of each tab, its events, and uploads.

Three protections are in front of Gradio, because Gradio checks only apps that it launches itself, not mounted apps: its
routes are an allow-list, a request can name only files received from the same visitor, and a file is sent only to the
visitor who uploaded it. The fourth protection is Gradio's own check, which `gradio_app.mount` turns on.

There is an app for each language. The first language's app is at the root, with the interface for programs; the others
handle the events of their own pages below their prefix.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import gradio_addresses
import httpx
import orjson
from auth import read_public_address
from gradio_addresses import (
    API,
    COOKIE,
    KEEP_SECONDS,
    LARGEST_ARCHIVE,
    PREFIXES,
    TABS,
    TABS_ID,
    UNUSED_SECONDS,
    IssuedFiles,
    Refused,
    check_files,
    is_for_events,
    make_holder,
)
from gradio_events import (
    NAME,
    STREAMS,
    EventSent,
    VisitorPlaces,
    answer_call,
    check_names,
    describe_invalid,
    parse_event,
    replay_body,
)
from markupsafe import Markup
from pages.board import compress, describe_view
from pydantic import ValidationError
from request_guard import (
    GRADIO_FILE,
    GRADIO_PAGE,
    SecurityHeaders,
    find_origin,
    read_trusted_proxies,
    refuse,
    write_header_value,
)
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Message, Receive, Scope, Send
from tabs.score import PARTS_ID
from website import Site, find_recordings_sender

from podeval.metrics.description import VISITOR_INPUTS

_READS = re.compile(
    rf"/config/?|/theme\.css|/manifest\.json|/robots\.txt"
    rf"|/(assets|static|svelte)/[^\\]*"
    rf"|{API}/(info/?|openapi\.json|app_id/?|startup-events|theme\.css|upload_progress|user/?|login_check/?)"
    rf"|{API}/(heartbeat/{NAME}|queue/data|queue/status|call/{NAME}/{NAME}|file=.+)"
)
"""Addresses that may be read."""
_TAKES = re.compile(rf"{API}/(upload|queue/join|cancel|reset/?|(run|call)/{NAME}/?)")
"""Addresses that accept data."""
_FILE = f"{API}/file="
_PAGES = {"/": TABS[0], **{f"/{name}": name for name in TABS}, "/queue": "submit"}
"""Addresses of tabs."""

MOST_NAMED = 10
_NOWHERE = "http://podeval.invalid"
"""Placeholder for the site's address in Gradio's page; if no address is configured, it stays until a browser fills it
in.
"""
PAGE_RATE = "300/minute"
_CONFIG, _CONFIG_END = "window.gradio_config = ", ";</script>"
_ROOT = "<script>gradio_config.root = new URL(gradio_config.root, location.origin).href.replace(/\\/$/, '')</script>"
"""Gradio's client needs a complete address, which the reader's browser knows best."""


class GradioGate:
    """The gate in front of the Gradio apps, which cannot be reached in any other way.

    Args:
        apps: the Gradio apps, such as `LanguageApps` of `gradio_app`.
        issued: the files that visitors may name.
        site: the site whose header surrounds the page of a tab.
        secure: whether the site is reached over HTTPS, possibly within a page of the Hub.
    """

    def __init__(self, apps: Any, issued: IssuedFiles, site: Site, secure: bool = False) -> None:
        self.apps, self._issued, self._site, self._secure = apps, issued, site, secure
        self._places = VisitorPlaces(apps.list_made, site.how.mode == "local")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        path, reads = scope["path"], scope["method"] in ("GET", "HEAD")
        if reads and path in _PAGES:
            await self._page(_PAGES[path], scope, receive, send)
            return
        language = next((code for code, prefix in PREFIXES.items() if prefix and path.startswith(f"{prefix}/")), "en")
        part = path.removeprefix(PREFIXES[language])
        if not is_for_events(path) and not (reads and _READS.fullmatch(part)):
            raise HTTPException(404)
        if not (reads and _READS.fullmatch(part)) and not (scope["method"] == "POST" and _TAKES.fullmatch(part)):
            sentence = "this address cannot be read here" if reads else "nothing can be sent to this address"
            await refuse(403, sentence)(scope, receive, send)
            return
        try:
            await self._answer(language, part, scope, receive, send)
        except Refused as refused:
            await refuse(refused.status_code, refused.detail)(scope, receive, send)

    async def _answer(self, language: str, part: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request if it is on the allow-list and the files that it names belong to its sender."""
        app = await self.apps.start(language)
        scope, send = place(scope, PREFIXES[language], read_public_address()), _without_cors(send)
        cookie = _cookie(scope)
        address = find_origin(HTTPConnection(scope))
        # Visitors whose browser does not keep our cookie are identified by their network address.
        holders = (cookie, f"address {address}") if cookie else (f"address {address}",)
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20)
        names = [query.get(key, [""])[-1] for key in ("session_hash", "upload_id")]
        check_names(*names)
        if part.startswith(_FILE):
            # A visitor without a cookie may have the file measured, but nobody else at the address can read that file.
            if not self._issued.may_name((cookie,), part.removeprefix(_FILE)):
                raise Refused(403, "this file is not public")
            await app(scope, receive, SecurityHeaders(send, GRADIO_FILE))
        elif part == f"{API}/upload":
            archive = int(Headers(scope=scope).get("content-length", 0)) > gradio_addresses.LARGEST_UPLOAD
            sender = find_recordings_sender(self._site, HTTPConnection(scope)) or address
            seconds = KEEP_SECONDS if archive else UNUSED_SECONDS

            def issue(path: str) -> None:
                for holder in (cookie,) if cookie else (cookie_set, *holders):
                    self._issued.issue(holder, path, sender, seconds)
                # Unused files are removed even if the visitor does not return.
                asyncio.get_running_loop().call_later(seconds + 1, self._issued.sweep)

            cookie_set = make_holder()
            await app(scope, receive, _issuing(send if cookie else self._add_cookie(send, cookie_set), issue))
        elif scope["method"] == "POST":
            with self._places.enter(address):
                await self._call(app, part.removeprefix(f"{API}/"), scope, receive, send, holders)
        elif stream := STREAMS.fullmatch(part.removeprefix(f"{API}/")):
            waiting = app.get_blocks()._queue.event_ids_to_events.get(stream["event"])
            session = names[0] or stream["name"] or getattr(waiting, "session_hash", "")
            await self._places.stream(app, scope, receive, send, session)
        else:
            self._places.check_reading(part, address)
            if part.startswith(f"{API}/info"):
                # Without this, Gradio would keep the address that the first request names and send it to everyone.
                scope["query_string"] += b"&page="
            await app(scope, receive, send)

    async def _page(self, tab: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with Gradio's page in its frame, in the reader's language, with the tab at the address in front."""
        request = Request(scope, receive)
        language = self._site.language(request)
        prefix, app = PREFIXES[language], await self.apps.start(language)
        transport, where = httpx.ASGITransport(app, root_path=prefix), read_public_address() or _NOWHERE
        # No parameter of the address is meant for Gradio; for `?page=`, Gradio would show one of its own pages or fail.
        async with httpx.AsyncClient(transport=transport, base_url=where, trust_env=False) as client:
            front = await client.get(f"{prefix}/")
        if front.status_code != 200:
            await refuse(503, "the page cannot be shown at present; try again in a minute")(scope, receive, send)
            return
        # Without a configured address, the page refers to itself by path alone, not by the host of the request.
        page = front.text.replace(_NOWHERE, "")
        answer = await run_in_threadpool(dress, self._site, request, page, tab)
        if not _cookie(scope):
            send = self._add_cookie(send)
        await answer(scope, receive, send)

    async def _call(
        self, app: Any, part: str, scope: Scope, receive: Receive, send: Send, holders: tuple[str, ...]
    ) -> None:
        """Pass on an event whose files were issued to its sender.

        Gradio gets rewritten JSON, so it cannot read anything that has not been checked.
        """
        if Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # A form on another site cannot send this content type without a preflight request.
            raise Refused(415, "send JSON, as application/json")
        paths: list[str] = []

        def may_name(path: str) -> bool:
            paths.append(path)
            return self._issued.may_name(holders, path)

        try:
            body = parse_event(await Request(scope, receive).body())
            body = check_files(body, may_name)
            event = EventSent.model_validate(body)
            # Pages do not send unpaired surrogates or numbers that are not finite, which may break a database.
            sent = event.model_dump(exclude_unset=True)
            written = json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()
        except ValidationError as error:
            raise Refused(400, describe_invalid(error)) from None
        except (ValueError, RecursionError, ClientDisconnect):
            raise Refused(400, "send JSON") from None
        kept = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"content-type")]
        headers = [*kept, (b"content-type", b"application/json"), (b"content-length", str(len(written)).encode())]
        address = find_origin(HTTPConnection(scope))
        with self._places.work(address):
            if part.startswith(("run/", "call/", "queue/")):
                self._places.check_event(app.get_blocks(), part, event, address)
                # Files that wait to be measured are kept until they are measured.
                for path in [] if part.startswith("run/") else paths[:MOST_NAMED]:
                    self._issued.keep(path)
            await answer_call(app, {**scope, "headers": headers}, replay_body(written, receive), send)

    def _add_cookie(self, send: Send, holder: str = "") -> Send:
        # Within a page of the Hub, a browser keeps only partitioned cookies.
        where = "; SameSite=None; Secure; Partitioned" if self._secure else "; SameSite=Lax"

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.append("Set-Cookie", f"{COOKIE}={holder or make_holder()}; Path=/; HttpOnly{where}")
            await send(message)

        return send_with_cookie


def place(scope: Scope, prefix: str, address: str) -> Scope:
    """Return a request as Gradio may see it: at our public address, and without forwarding headers that strangers sent.

    Args:
        scope: the request.
        prefix: prefix of the app's addresses.
        address: the address of the site; empty for the address that the request names.
    """
    headers = scope["headers"]
    if address or not read_trusted_proxies():
        # The sender's address is used if our proxy provides it, as in `find_origin`.
        kept = b"x-forwarded-for" if read_trusted_proxies() else b""
        hops = (b"forwarded", b"via", b"x-gradio-server", b"x-forwarded-")
        headers = [pair for pair in headers if pair[0] == kept or not pair[0].startswith(hops)]
    placed = {**scope, "root_path": prefix, "headers": headers}
    if address:
        public = urlsplit(address)
        placed["scheme"] = public.scheme
        placed["headers"] = [*(pair for pair in headers if pair[0] != b"host"), (b"host", public.netloc.encode())]
    return placed


def _without_cors(send: Send) -> Send:
    """Pass on Gradio's response, but without the headers that permit pages of other hosts to read it."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if not pair[0].lower().startswith(b"access-control-")]
            message = {**message, "headers": headers}
        await send(message)

    return send_on


def _issuing(send: Send, issue: Callable[[str], None]) -> Send:
    """Pass on Gradio's response to an upload, and issue the paths in it."""
    accepted, answer = False, b""

    async def send_answer(message: Message) -> None:
        nonlocal accepted, answer
        if message["type"] == "http.response.start":
            accepted = message["status"] == 200
        elif message["type"] == "http.response.body" and accepted:
            answer += message.get("body", b"")
            if not message.get("more_body", False):
                for path in json.loads(answer):
                    issue(path)
        await send(message)

    return send_answer


def _cookie(scope: Scope) -> str:
    """Return the visitor's name from the cookie; empty without a cookie."""
    name = HTTPConnection(scope).cookies.get(COOKIE, "")
    return name if len(name) == len(make_holder()) else ""


def dress(site: Site, request: Request, page: str, tab: str) -> Response:
    """Return the page as it is sent.

    Args:
        site: the site with the header.
        request: the reader's request.
        page: the page that Gradio wrote.
        tab: the tab in front.

    Raises:
        StoreUnusable: the database does not report which activities are frozen.
        RuntimeError: this release of Gradio writes its page differently.
    """
    site.limit(request, PAGE_RATE, "tabs")
    head, header, footer = site.frame(request)
    language = site.language(request)
    largest = LARGEST_ARCHIVE if find_recordings_sender(site, request) else gradio_addresses.LARGEST_UPLOAD
    texts = site.texts[language]
    too_large = {name: texts[name]["too_large_here"].format(largest // 2**20) for name in ("score", "submit")}
    settings = {"title": site.title(request), "max_file_size": largest, "too_large": too_large}
    page = _select(page, tab, request.query_params.get("metric", ""), settings)
    page = _replace(page, 'lang="en"', f'lang="{language}"')
    page = _replace(page, "</head>", f"{head}</head>")
    page = _replace(page, "</gradio-app>", f"</gradio-app>{footer}")
    start = page.index(">", page.index("<body")) + 1
    early = _render_early(site, request) if tab == TABS[0] else ""
    answer = HTMLResponse(f"{page[:start]}{header}{early}{page[start:]}")
    answer.headers["Content-Security-Policy"] = write_header_value(GRADIO_PAGE)
    # The Score tab can record sound if the visitor allows it.
    answer.headers["Permissions-Policy"] = "camera=(), microphone=(self), geolocation=()"
    answer.headers["Vary"] = "accept-encoding, accept-language, cookie"
    site.keep_language(request, answer)
    return compress(request, answer)


def _render_early(site: Site, request: Request) -> str:
    """Return the leaderboard's JSON and the element in which its script draws it before Gradio is ready."""
    content, _ = describe_view(site, request)
    written = orjson.dumps(content).decode().replace("<", "\\u003c").replace("&", "\\u0026")
    return site.render_text(request, "board_early.html", board=Markup(written))


def _select(page: str, tab: str, metric: str, settings: dict[str, Any]) -> str:
    """Return the page with its own settings, a tab in front and, in the Score tab, a metric if the metric is
    offered.
    """
    start = page.index(_CONFIG) + len(_CONFIG)
    end = page.index(_CONFIG_END, start)
    config: dict[str, Any] = json.loads(page[start:end])
    components = {part["props"].get("elem_id"): part["props"] for part in config["components"]}
    components[TABS_ID]["selected"] = tab
    config |= settings
    for part in VISITOR_INPUTS:
        offered = components.get(f"score-{part}-metrics", {"choices": []})
        if metric in [name for _, name in offered["choices"]]:
            offered["value"] = [metric]
            components[PARTS_ID]["selected"] = part
    # The settings are written in Gradio's own form, in which nothing can end the script.
    written = json.dumps(config).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    end += len(_CONFIG_END)
    return page[:start] + written + _CONFIG_END + _ROOT + page[end:]


def _replace(page: str, part: str, by: str) -> str:
    if part not in page:
        raise RuntimeError(f"this release of gradio writes its page without {part!r}, where podeval puts its header")
    return page.replace(part, by, 1)
