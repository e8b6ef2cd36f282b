"""Servers of podcasts on loopback: Apple's lookups and searches, a feed, and files that arrive as on a bad day."""

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape, quoteattr

from tests.fakes.loopback_server import LoopbackServer, QuietHandler


@dataclass
class Page:
    """What an address answers; `faults` come first, one a request: a status, cut, hang, no ranges, no length."""

    body: bytes = b""
    kind: str = "audio/mpeg"
    status: int = 200
    location: str = ""
    length: int | None = None
    delay: float = 0.0
    tag: str = '"one"'
    faults: list[str] = field(default_factory=list)


class PodcastServer(LoopbackServer):
    """Answers lookups by number, searches by a word of the term, everything else by `pages`; records what is asked."""

    def __init__(self) -> None:
        super().__init__(type("Handler", (_Handler,), {"owner": self}))
        self.pages: dict[str, Page] = {}
        self.lookups: dict[int, list[dict[str, Any]]] = {}
        self.searches: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[tuple[str, dict[str, str], float]] = []
        self.over = threading.Event()

    @property
    def port(self) -> int:
        return self._server.server_port

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]

    def feed(self, *items: tuple[str, str, str]) -> None:
        """Serve a feed of (title, guid, path)."""
        parts = [
            f"<item><title>{escape(title)}</title><guid>{guid}</guid><pubDate>Wed, 01 May 2024</pubDate>"
            f"<enclosure url={quoteattr(self.url + path)} length='0' type='audio/mpeg'/></item>"
            for title, guid, path in items
        ]
        text = f"<?xml version='1.0'?><rss version='2.0'><channel><title>Show</title>{''.join(parts)}</channel></rss>"
        self.pages["/feed"] = Page(text.encode(), "application/rss+xml")

    def answer(self, path: str, query: dict[str, list[str]]) -> Page:
        """What an address answers; whatever is not there is a page that says so."""
        if path in self.pages or path not in ("/lookup", "/search"):
            return self.pages.get(path) or Page(b"<html>not here</html>", "text/html", 404)
        assert query["entity"] == ["podcastEpisode"]
        if path == "/lookup":
            results = self.lookups.get(int(query["id"][0]), [])
        else:
            results = [one for word, its in self.searches.items() if word in query["term"][0] for one in its]
        return Page(json.dumps({"resultCount": len(results), "results": results}).encode(), "text/javascript")

    def __exit__(self, *why: object) -> None:
        self.over.set()
        super().__exit__(*why)


class _Handler(QuietHandler, BaseHTTPRequestHandler):
    owner: PodcastServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.owner.asked.append((self.path, dict(self.headers), time.monotonic()))
        page = self.owner.answer(url.path, parse_qs(url.query))
        fault = page.faults.pop(0) if page.faults else ""
        time.sleep(page.delay)
        if fault.isdecimal():
            page = Page(b"", "text/plain", int(fault))
        begin = 0
        asked = self.headers.get("Range")
        if asked and self.headers.get("If-Range") == page.tag and fault != "no ranges" and not fault.isdecimal():
            begin = int(asked.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if begin else page.status)
        length = "" if fault == "no length" else str(page.length or len(page.body) - begin)
        for name, value in (
            ("Content-Type", page.kind),
            ("Content-Length", length),
            ("ETag", page.tag),
            ("Location", page.location),
            ("Retry-After", "0" if fault != "429" else "1"),
        ):
            if value:
                self.send_header(name, value)
        self.end_headers()
        body = page.body[begin:]
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body[: len(body) // 2] if fault in ("cut", "hang") else body)
        if fault == "hang":
            self.owner.over.wait(60)
        self.close_connection = fault in ("cut", "hang", "no length") or page.length is not None
