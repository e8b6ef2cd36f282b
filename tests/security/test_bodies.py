"""Whatever a server sends, reading it ends: in bytes, also after decompression, and in seconds."""

import gzip
import itertools
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podeval.datasets.feeds import FEED_BYTES, BadFeed, ask_apple, parse_feed
from podeval.datasets.http import Web
from podeval.errors import BadInput, PodevalError
from podeval.models.chat import ChatBusy, ChatRefused, Sampling
from podeval.models.chat_endpoint import EndpointChat
from podeval.models.downloading import TooLarge, download
from podeval.systems.servers.connection import ServerBroke, ServerBusy, ServerConnection, ServerResponse
from podeval.systems.servers.kinds import KINDS, open_kind
from podeval.systems.speech import SpeechFailed
from tests.fakes.bounded_memory import bounded_memory

MB = 2**20
BOMB = b"\x00" * 200 * MB


@contextmanager
def send(parts: Callable[[], Iterable[bytes]], pause: float = 0.0) -> Iterator[str]:
    """Serve the same bytes to whoever connects, as long as they are read; yields the address of the server."""

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            for part in parts():
                connection.sendall(part)
                if over.wait(pause):
                    return
            # Closed with a part of the request unread, the connection would be reset before the answer is read.
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            while connection.recv(65536):
                pass

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    over = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        listening.shutdown(socket.SHUT_RDWR)


def endless(status: str, *headers: str, begin: bytes = b"") -> Callable[[], Iterable[bytes]]:
    head = "\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode()
    return lambda: itertools.chain([head, begin], itertools.repeat(b"x" * MB))


def drip(content: bytes) -> Callable[[], Iterable[bytes]]:
    """Content byte by byte, and then its last byte for ever."""
    return lambda: itertools.chain((content[n : n + 1] for n in range(len(content))), itertools.repeat(content[-1:]))


@contextmanager
def memory_below(most: float) -> Iterator[None]:
    """Require that a block takes no more than so many megabytes of Python's memory at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] / MB < most
    finally:
        tracemalloc.stop()


def ask_speech(url: str, seconds: float = 0.1, **more: Any) -> ServerResponse:
    connection = ServerConnection(url, **{"timeout": 10.0, "tries": 1, **more})
    return connection.post("audio/speech", {"input": "x"}, lambda response: response, seconds)[1]


def ask_judge(url: str, timeout: float = 10.0) -> object:
    return EndpointChat("m", url).chat([{"role": "user", "content": "x"}], Sampling(), None, timeout)


def fetch(url: str, tmp_path: Path, **more: Any) -> Path:
    return download(f"{url}/x", tmp_path / "x", **{"tries": 1, "most_bytes": 4 * MB, **more})


def test_a_refusal_without_end_is_read_to_64_kilobytes() -> None:
    with send(endless("400 Bad Request")) as url:
        with memory_below(8), pytest.raises(SpeechFailed):
            ask_speech(url)
        with memory_below(8), pytest.raises(ChatRefused):
            ask_judge(url)
    elsewhere = endless("307 Temporary Redirect", "Location: http://127.0.0.1:1/v1")
    with send(elsewhere) as url, memory_below(8), pytest.raises(ChatBusy):
        ask_judge(url)


def test_what_a_server_says_of_itself_has_an_end() -> None:
    with send(endless("200 OK")) as url, memory_below(8):
        connection = ServerConnection(url)
        connection.require()
        assert connection.get("audio/voices") is None


def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("podeval.systems.servers.connection.MOST_BYTES", 4 * MB)
    with send(endless("200 OK")) as url:
        with memory_below(16), pytest.raises(SpeechFailed):
            ask_speech(url)
        with memory_below(120), pytest.raises(ChatBusy):
            ask_judge(url)
        with memory_below(8), pytest.raises(TooLarge):
            fetch(url, tmp_path)


@cache
def pack(coding: str) -> bytes:
    """200 MB in a coding, or a short body in one that is not decompressed."""
    return {"gzip": gzip.compress, "deflate": zlib.compress}.get(coding, lambda *_: b"x" * 10_000)(BOMB, 1)


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_body_that_grows_when_it_is_decompressed_has_an_end(
    monkeypatch: pytest.MonkeyPatch, status: str, coding: str
) -> None:
    monkeypatch.setattr("podeval.systems.servers.connection.MOST_BYTES", 4 * MB)
    length = len(pack(coding))
    head = f"HTTP/1.1 {status}\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n".encode()
    with send(lambda: [head, pack(coding)]) as url:
        with memory_below(16), pytest.raises(PodevalError):
            ask_speech(url)
        with memory_below(120), pytest.raises((ChatBusy, ChatRefused)):
            ask_judge(url)


EMPTY_LISTS = b'{"choices": [' + b"[]," * 5_000_000 + b"0]}"
"""They take twenty times the bytes of the JSON that they are read from."""
FORMS = {"application/json": EMPTY_LISTS, "text/event-stream": b"data: " + EMPTY_LISTS + b"\n\n"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_of_millions_of_values_takes_no_memory(kind: str, form: str) -> None:
    answer = ServerResponse(FORMS[form], {"content-type": form}, ((0.0, len(FORMS[form])),), 0.1, 1)
    server = open_kind(kind, ServerConnection("http://127.0.0.1:9"), "m")
    request = server.write_turn("Hello.", "a", 0)
    with bounded_memory(200 * MB), pytest.raises((SpeechFailed, ServerBroke)):
        server.read(answer, request, "Hello.")


@pytest.mark.parametrize("form", FORMS)
def test_a_judges_answer_of_millions_of_values_takes_no_memory(form: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {form}\r\nContent-Length: {len(FORMS[form])}\r\n\r\n".encode()
    with send(lambda: [head, FORMS[form]]) as url, bounded_memory(200 * MB), pytest.raises(ChatBusy, match="values"):
        ask_judge(url)


def test_a_directorys_answer_of_millions_of_values_takes_no_memory() -> None:
    with bounded_memory(200 * MB), pytest.raises(BadFeed, match="values"):
        ask_apple("lookup", {}, "a show", lambda address, most: EMPTY_LISTS)


def test_a_compressed_answer_is_read() -> None:
    body = gzip.compress(b'{"choices": [{"message": {"content": "yes"}}]}' + b" " * 100_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with send(lambda: [head, body]) as url:
        assert ask_judge(url).text == "yes"  # type: ignore[attr-defined]
        assert ask_speech(url).body.startswith(b'{"choices"')
    # A connection that ends early is seen in its compression alone, where no length is stated.
    with send(lambda: [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", body[:-20]]) as url:
        with pytest.raises(SpeechFailed, match="ends before its gzip data is complete"):
            ask_speech(url)
        with pytest.raises(ChatBusy):
            ask_judge(url)


DRIPS = {
    "a body": b"HTTP/1.1 200 OK\r\n\r\nx",
    "a refusal": b"HTTP/1.1 400 Bad Request\r\n\r\nx",
    "a head": b"HTTP/1.1 200 OK\r\nX: x",
    "the size of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x",
}


@pytest.mark.parametrize("content", DRIPS.values(), ids=DRIPS)
def test_an_answer_that_drips_ends(content: bytes, tmp_path: Path) -> None:
    """A byte comes before every timeout, and never the last."""
    with send(drip(content), pause=0.01) as url:
        begin = time.monotonic()
        with pytest.raises((ServerBusy, SpeechFailed)):
            ask_speech(url, timeout=1.0)
        with pytest.raises((ChatBusy, ChatRefused)):
            ask_judge(url, timeout=1.0)
        with pytest.raises(BadInput):
            fetch(url, tmp_path, timeout=0.5)
        with pytest.raises(BadInput):
            Web(allow_private=True, pause=0, tries=1, timeout=0.5).read(f"{url}/feed", MB)
        assert time.monotonic() - begin < 40
    for thread in threading.enumerate():
        if thread.name == "podeval-judge-call":
            thread.join(10)
            assert not thread.is_alive()


def test_a_proxy_that_drips_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with send(drip(DRIPS["a head"]), pause=0.01) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        with pytest.raises(ServerBusy, match=r"did not finish its answer within 1\.5 s"):
            ask_speech("http://speech.example/v1", seconds=0.05, timeout=1.0)


def test_an_answer_in_a_million_pieces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podeval.systems.servers.connection.MOST_PIECES", 100)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with send(lambda: [head, b"1\r\nx\r\n" * 200 + b"0\r\n\r\n"]) as url, pytest.raises(SpeechFailed, match="pieces"):
        ask_speech(url)


def test_a_download_is_waited_for_as_long_as_it_arrives(tmp_path: Path) -> None:
    """Twice the timeout is for waiting; what arrives is paid for by its bytes."""
    with send(lambda: [b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 20_000] * 6], pause=0.3) as url:
        assert fetch(url, tmp_path, timeout=0.5).stat().st_size == 120_000


RSS = b'<rss version="2.0"><channel>'
SHAPES = {
    "nested": RSS + b"<a>" * 3_000_000,
    "flat": RSS + b"<a/>" * 300_000 + b"</channel></rss>",
    "an item of elements": RSS + b"<item>" + b"<a/>" * 300_000 + b"</item></channel></rss>",
    "items": RSS + b"<item/>" * 150_000 + b"</channel></rss>",
    "names": RSS + b"".join(b"<a%x/>" % n for n in range(100_000)) + b"</channel></rss>",
    "attributes": RSS + b"<a " + b" ".join(b'a%x=""' % n for n in range(200_000)) + b"/></channel></rss>",
    "not closed": RSS + b"<item>" * 200_000,
    "not closed, attributes": RSS + b"</x><a " + b" ".join(b'a%x=""' % n for n in range(200_000)) + b"/>",
    "large": RSS + b" " * FEED_BYTES,
}


@pytest.mark.every(3)
@pytest.mark.parametrize("content", SHAPES.values(), ids=SHAPES)
def test_a_feed_takes_memory_by_what_is_kept_of_it(content: bytes) -> None:
    with memory_below(20), suppress(BadFeed):
        parse_feed(content)


@pytest.mark.parametrize("coding", ["utf-7", "gb2312", "shift_jis", "utf-32", "idna", "hex", "none", "\\", "x" * 999])
def test_an_encoding_that_is_not_read_is_a_bad_feed(coding: str) -> None:
    with pytest.raises(BadFeed):
        parse_feed(f'<?xml version="1.0" encoding="{coding}"?><rss/>'.encode())


@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252", "koi8-r"])
def test_a_feed_is_read_in_the_encoding_that_it_states(coding: str) -> None:
    title = "Ж" if coding == "koi8-r" else "é"
    text = f'<?xml version="1.0" encoding="{coding}"?><rss><channel><item><title>{title}</title></item></channel></rss>'
    assert parse_feed(text.encode(coding))[0].title == title
