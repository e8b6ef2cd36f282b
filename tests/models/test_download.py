"""A file from an address is kept when it is the pinned one; every other outcome is a sentence and leaves nothing."""

import hashlib
import re
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from podeval.models import downloading, weights
from podeval.models.weights import WeightFile, Weights
from tests.fakes.loopback_server import LoopbackServer

CONTENT = bytes(range(256)) * 20_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Publisher(BaseHTTPRequestHandler):
    sent = 0

    def do_GET(self) -> None:
        if self.path == "/gone":
            self.send_error(404, "Not Found")
            return
        content = {"/file": CONTENT, "/short": CONTENT[:-1], "/other": CONTENT[::-1]}.get(self.path, CONTENT * 40)
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(CONTENT) if self.path == "/cut" else len(content)))
        self.end_headers()
        try:
            for start in range(0, len(content), 1 << 16):
                if self.path == "/cut" and start:
                    return
                self.wfile.write(content[start : start + (1 << 16)])
                Publisher.sent = start
        except ConnectionError:
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PODEVAL_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(downloading, "download", partial(downloading.download, wait=0.01))
    with LoopbackServer(Publisher) as server:
        yield server.url


def install(monkeypatch: pytest.MonkeyPatch, url: str, digest: str = DIGEST) -> tuple[dict[str, str], list[str]]:
    file = WeightFile("model.pth", (), digest, url, len(CONTENT))
    pinned = Weights("fake", "reference", "MIT", "here", (), (file,))
    monkeypatch.setattr(weights, "lock", lambda: {"fake": pinned})
    said: list[str] = []
    return weights.install(["fake"], said.append), said


def left(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path / "models")) for path in (tmp_path / "models").rglob("*"))


def test_the_pinned_file_is_put_in_place_and_not_asked_for_again(
    publisher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, said = install(monkeypatch, f"{publisher}/file")
    assert failed == {}
    assert said[0] == f"fake: downloading {publisher}/file"
    assert (weights.locate_weights("fake") / "model.pth").read_bytes() == CONTENT
    assert install(monkeypatch, f"{publisher}/gone") == ({}, ["fake: in place"])


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("{}/other", "is not the expected file"),
        ("{}/short", "is not the expected file|could not be fetched"),
        ("{}/cut", "is not the expected file|could not be fetched"),
        ("{}/endless", "more than the limit of 5 MB"),
        ("{}/gone", r"/gone answers HTTP 404 \(Not Found\); check the address$"),
        ("http://127.0.0.1:9/file", r"^http://127\.0\.0\.1:9/file could not be fetched after 4 attempts \("),
    ],
)
def test_what_is_not_the_pinned_file_is_a_sentence_and_no_more_than_its_size_is_taken(
    publisher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, why: str
) -> None:
    Publisher.sent = 0
    failed, _ = install(monkeypatch, address.format(publisher))
    assert re.search(why, failed["fake"])
    assert Publisher.sent < 39 * len(CONTENT)
    assert left(tmp_path) == []
