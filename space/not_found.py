"""Answer an address that does not exist with a page in the reader's language; programs get JSON as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podeval.errors import CodedSentence

if TYPE_CHECKING:
    from website import Site

SENTENCE = CodedSentence("there is nothing at this address; please check the link", code="nothing-here")


class Lost:
    """Puts a page in the place of an empty or technical 404.

    Args:
        app: what is behind it.
        site: the site of the page.
    """

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        replaced = False

        async def hold_back(message: Message) -> None:
            nonlocal replaced
            if message["type"] == "http.response.start" and message["status"] == 404:
                kind = dict(message["headers"]).get(b"content-type", b"")
                # A page of ours already says what is not there.
                replaced = "text/html" in request.headers.get("accept", "") and not kind.startswith(b"text/html")
            if not replaced:
                await send(message)

        await self._app(scope, receive, hold_back)
        if replaced:
            page = self._site.refused(request, "unknown", SENTENCE)
            page.status_code = 404
            await page(scope, receive, send)
