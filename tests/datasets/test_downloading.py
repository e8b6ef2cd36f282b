"""Downloads against a server on loopback that behaves as servers do."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from podeval.datasets.downloading import download
from podeval.errors import BadInput

CONTENT = bytes(range(256)) * 8000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `content`; `script` says, request by request, what goes wrong."""

    content = CONTENT
    tag = '"v1"'

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[str] = []
        self.over = threading.Event()
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/show.mp3"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append((self.path, asked))
        trouble = self.server.script.pop(0) if self.server.script else ""
        if trouble.isdecimal():
            self.send_response(int(trouble))
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if trouble == "redirect":
            self.send_response(302)
            self.send_header("Location", "/elsewhere.mp3")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = self.server.content
        begin = 0
        if asked and self.headers.get("If-Range") == self.server.tag and trouble != "no ranges":
            begin = int(asked.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if begin else 200)
        self.send_header("ETag", self.server.tag)
        if trouble != "no length":
            self.send_header("Content-Length", str(len(content) - begin))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        body = content[begin:]
        if trouble == "hang":
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.server.over.wait(60)
        elif trouble == "cut":
            self.wfile.write(body[: len(body) // 2])
        else:
            self.wfile.write(body)
        if trouble in ("cut", "hang", "no length"):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()


def get(server: Server, tmp_path: Path, **options: Any) -> bytes:
    # Only who hangs is left soon: the others may be as slow as the machine is busy.
    timeout = 1.0 if "hang" in server.script else 30.0
    return download(server.url, tmp_path / "shows" / "show.mp3", wait=0.01, timeout=timeout, **options).read_bytes()


def left_over(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "shows").glob("*"))


def test_a_file_arrives_whole_and_alone(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    assert get(server, tmp_path, sha256=DIGEST, watch=lambda done, total: seen.append((done, total))) == CONTENT
    assert left_over(tmp_path) == ["show.mp3"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_what_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    get(server, tmp_path, sha256=DIGEST)
    get(server, tmp_path, sha256=DIGEST)
    assert len(server.asked) == 1


@pytest.mark.parametrize("trouble", [["503", "503"], ["429", "429"], ["cut", "cut"], ["hang"]], ids="-".join)
def test_trouble_that_passes_is_waited_for(server: Server, tmp_path: Path, trouble: list[str]) -> None:
    server.script = [*trouble]
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT
    assert len(server.asked) == len(trouble) + 1


def test_a_broken_download_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.script = ["cut"]
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT
    assert server.asked[1][1] == f"bytes={len(CONTENT) // 2}-"


def test_a_later_call_goes_on_too(server: Server, tmp_path: Path) -> None:
    server.script = ["cut"]
    with pytest.raises(BadInput, match="after 1 attempts"):
        get(server, tmp_path, tries=1)
    assert get(server, tmp_path) == CONTENT
    assert server.asked[1][1] == f"bytes={len(CONTENT) // 2}-"


def test_a_file_that_changed_meanwhile_is_fetched_anew(server: Server, tmp_path: Path) -> None:
    server.script = ["cut"]
    with pytest.raises(BadInput):
        get(server, tmp_path, tries=1)
    server.content, server.tag = CONTENT[::-1], '"v2"'
    assert get(server, tmp_path) == CONTENT[::-1]


def test_a_server_without_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    server.script = ["cut", "no ranges"]
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT


def test_redirects_and_unstated_lengths_are_followed(server: Server, tmp_path: Path) -> None:
    server.script = ["redirect", "no length"]
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT
    assert [path for path, _ in server.asked] == ["/show.mp3", "/elsewhere.mp3"]


@pytest.mark.parametrize(
    ("script", "options", "sentence"),
    [
        (["404"], {}, "answers HTTP 404 .* check the address"),
        (["500"] * 4, {}, r"could not be fetched after 4 attempts \(HTTP 500\); try again later"),
        ([], {"sha256": "0" * 64}, "is not the expected file: its SHA-256 is"),
        ([], {"most_bytes": 1000}, "more than the 0 MB that are fetched"),
        (["no length"], {"most_bytes": 1000}, "has more than the 0 MB that are fetched"),
    ],
)
def test_what_cannot_be_had_is_a_sentence(
    server: Server, tmp_path: Path, script: list[str], options: dict[str, Any], sentence: str
) -> None:
    server.script = script
    with pytest.raises(BadInput, match=sentence):
        get(server, tmp_path, **options)
    assert "show.mp3" not in left_over(tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/show.mp3", "show.mp3"])
def test_only_the_web_is_asked(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must begin with https://"):
        download(url, tmp_path / "show.mp3")
