"""Downloads against a server on loopback that behaves as servers do."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.models import weights
from podeval.models.downloading import download
from podeval.models.weights import WeightFile, Weights
from tests.fakes.podcast_server import Page, PodcastServer

CONTENT = bytes(range(256)) * 8000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[PodcastServer]:
    """A server of one file; its faults are what goes wrong, request by request."""
    with PodcastServer() as server:
        server.pages["/show.mp3"] = Page(CONTENT)
        yield server


def get(server: PodcastServer, tmp_path: Path, **options: Any) -> bytes:
    # Only who hangs is left soon: the others may be as slow as the machine is busy.
    timeout = 1.0 if "hang" in server.pages["/show.mp3"].faults else 30.0
    return download(
        f"{server.url}/show.mp3", tmp_path / "shows" / "show.mp3", wait=0.01, timeout=timeout, **options
    ).read_bytes()


def left_over(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "shows").glob("*"))


def test_a_file_arrives_whole_and_alone(server: PodcastServer, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    assert get(server, tmp_path, sha256=DIGEST, watch=lambda done, total: seen.append((done, total))) == CONTENT
    assert left_over(tmp_path) == ["show.mp3"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_what_is_there_is_not_fetched_again(server: PodcastServer, tmp_path: Path) -> None:
    get(server, tmp_path, sha256=DIGEST)
    get(server, tmp_path, sha256=DIGEST)
    assert len(server.asked) == 1


@pytest.mark.parametrize("trouble", [["503", "503"], ["429", "429"], ["cut", "cut"], ["hang"]], ids="-".join)
def test_trouble_that_passes_is_waited_for(server: PodcastServer, tmp_path: Path, trouble: list[str]) -> None:
    server.pages["/show.mp3"].faults = [*trouble]
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT
    assert len(server.asked) == len(trouble) + 1


def test_a_broken_download_goes_on_where_it_stopped(server: PodcastServer, tmp_path: Path) -> None:
    server.pages["/show.mp3"].faults = ["cut"]
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT
    assert server.asked[1][1]["Range"] == f"bytes={len(CONTENT) // 2}-"


def test_a_file_that_changed_meanwhile_is_fetched_anew(server: PodcastServer, tmp_path: Path) -> None:
    server.pages["/show.mp3"].faults = ["cut"]
    with pytest.raises(BadInput):
        get(server, tmp_path, tries=1)
    server.pages["/show.mp3"] = Page(CONTENT[::-1], tag='"two"')
    assert get(server, tmp_path) == CONTENT[::-1]


def test_a_server_without_ranges_starts_again(server: PodcastServer, tmp_path: Path) -> None:
    server.pages["/show.mp3"].faults = ["cut", "no ranges"]
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT


def test_redirects_and_unstated_lengths_are_followed(server: PodcastServer, tmp_path: Path) -> None:
    server.pages["/show.mp3"] = Page(status=302, location="/elsewhere.mp3")
    server.pages["/elsewhere.mp3"] = Page(CONTENT, faults=["no length"])
    assert get(server, tmp_path, sha256=DIGEST) == CONTENT
    assert server.paths() == ["/show.mp3", "/elsewhere.mp3"]


@pytest.mark.parametrize(
    ("script", "options", "sentence"),
    [
        (["404"], {}, "answers HTTP 404 .* check the address"),
        (["500"] * 4, {}, r"could not be fetched after 4 attempts \(HTTP 500\); try again later"),
        ([], {"sha256": "0" * 64}, "is not the expected file: its SHA-256 is"),
        ([], {"most_bytes": 1000}, "more than the limit of 0 MB"),
        (["no length"], {"most_bytes": 1000}, "is larger than the limit of 0 MB"),
    ],
)
def test_what_cannot_be_had_is_a_sentence(
    server: PodcastServer, tmp_path: Path, script: list[str], options: dict[str, Any], sentence: str
) -> None:
    server.pages["/show.mp3"].faults = script
    with pytest.raises(BadInput, match=sentence):
        get(server, tmp_path, **options)
    assert "show.mp3" not in left_over(tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/show.mp3", "show.mp3"])
def test_only_the_web_is_asked(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must begin with https://"):
        download(url, tmp_path / "show.mp3")


def test_weights_from_an_address_are_the_pinned_file_or_nothing(
    server: PodcastServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, said = f"{server.url}/show.mp3", []
    file = WeightFile("model.pth", (), DIGEST, url, len(CONTENT))
    pinned = Weights("fake", "reference", "MIT", "here", (), (file,))
    monkeypatch.setattr(weights, "lock", lambda: {"fake": pinned})
    monkeypatch.setenv("PODEVAL_MODELS", str(tmp_path / "models"))
    for other, why in ((CONTENT[::-1], "is not the expected file"), (CONTENT * 40, "more than the limit of 2 MB")):
        server.pages["/show.mp3"] = Page(other)
        assert re.search(why, weights.install(["fake"], print)["fake"])
        assert list((tmp_path / "models").rglob("*")) == []
    server.pages["/show.mp3"] = Page(CONTENT)
    assert weights.install(["fake"], said.append) == {}
    assert (weights.locate_weights("fake") / "model.pth").read_bytes() == CONTENT
    assert weights.install(["fake"], said.append) == {}
    assert said[::2] == [f"fake: downloading {url}", "fake: already installed"]
    assert len(server.asked) == 3
