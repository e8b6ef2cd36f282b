"""Real-Pod constructed: topics suggested and kept, episodes found on a loopback directory and chosen, items built."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("datasets")

from podeval.datasets import catalogue
from podeval.datasets.build import build
from podeval.datasets.feeds import EpisodeLink
from podeval.datasets.verify import read_stored_rows, verify
from podeval.errors import BadInput


class Directory(ThreadingHTTPServer):
    """Apple's search: `episodes` by word of the term; what else is asked gets an error."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.episodes: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[dict[str, str]] = []
        self.down = False


class _Handler(BaseHTTPRequestHandler):
    server: Directory

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.asked.append(query)
        results = [e for word, its in self.server.episodes.items() if word in query.get("term", "") for e in its]
        body = json.dumps({"resultCount": len(results), "results": results}).encode()
        self.send_response(404 if self.server.down or url.path != "/search" else 200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Directory]:
    from podeval.construction import steps
    from podeval.datasets import fetch_episodes

    server = Directory()
    monkeypatch.setenv("PODEVAL_ITUNES", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(steps, "make_web", lambda: fetch_episodes.make_web(pause=0.0, tries=1))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def episode(number: int, title: str, **more: Any) -> dict[str, Any]:
    """A result in the form of Apple's documentation."""
    plain = {"wrapperType": "podcastEpisode", "kind": "podcast-episode", "trackId": number, "collectionId": 7}
    facts = {
        "trackName": title,
        "collectionName": "A show",
        "trackTimeMillis": 1_830_000,
        "releaseDate": "2024-05-01T08",
    }
    return (
        plain
        | facts
        | {"releaseDate": "2024-05-01T08:00:00Z", "description": "Ann\nand Ben.", "contentAdvisoryRating": "Clean"}
        | more
    )


def topics_of(category: str) -> dict[str, Any]:
    return {"suggestions": [f"{category.lower()} matter {n}" for n in range(1, 6)]}


def test_from_categories_to_a_built_dataset(
    tmp_path: Path, model: Any, podeval: Any, directory: Directory, edit: Any
) -> None:
    into = tmp_path / "mine"
    model.answers.append(lambda question: topics_of(question.partition("podcasts: ")[2].partition(".")[0]))
    chosen = ("--set", "categories=Arts,News", "--judge", model.name)
    done = podeval("real_pod", "topics", "--into", into, *chosen)
    assert "suggested: 10 topics of 2 categories" in done.output
    with pytest.raises(BadInput, match="no candidates"):
        raise podeval("real_pod", "finish", "--into", into, code=None).exception
    no = {"keep": "no"}
    edit(
        into / "topics.csv",
        {f"{c}_{n}": no for c in ("Arts", "News") for n in range(2, 6)}
        | {"Arts_1": {"keep": "yes", "topic (edit)": "why we paint"}, "News_1": {"keep": "yes"}},
    )
    directory.episodes = {
        "paint": [episode(1, "On painting"), episode(2, "Colours"), {"trackId": 3}],
        "news matter 1": [episode(2, "Colours"), episode(4, "The press", contentAdvisoryRating="Explicit")],
    }
    done = podeval("real_pod", "search", "--into", into, "--set", "country=gb", "--set", "most=4")
    assert "searched: 2 topics, 3 candidates for 2 of them" in done.output
    assert directory.asked[0] == {
        "term": "why we paint", "media": "podcast", "entity": "podcastEpisode", "country": "gb", "limit": "4"
    }  # fmt: skip
    asked = len(directory.asked)
    podeval("real_pod", "search", "--into", into, "--set", "country=gb")
    assert len(directory.asked) == asked

    edit(into / "candidates.csv", {name: {"keep": "yes"} for name in ("Arts_1/1", "Arts_1/2", "News_1/2")})
    done = podeval("real_pod", "finish", "--into", into, code=1)
    assert "Arts_1 waits: 2 episodes have yes in candidates.csv; leave one" in done.output
    edit(into / "candidates.csv", {"Arts_1/1": {"keep": ""}})
    podeval("real_pod", "finish", "--into", into)
    build("real_pod", tmp_path / "built", source=str(into / "finished"), configs=("topics",), cache=tmp_path / "cache")
    assert list(verify(tmp_path / "built")) == []
    (file,) = (tmp_path / "built" / "topics").glob("*.parquet")
    found = [dict(row) for row in read_stored_rows(catalogue.get("real_pod"), "topics", [file])]
    assert [(row["id"], row["topic"], row["episode_title"]) for row in found] == [
        ("Arts_1", "why we paint", "Colours"),
        ("News_2", "news matter 1", "The press"),
    ]
    assert EpisodeLink.parse(found[0]["episode_link"]) == EpisodeLink("gb", 7, 2)
    candidates = (into / "candidates.csv").read_text(encoding="utf-8-sig")
    assert "30.5,2024-05-01,,Ann and Ben." in candidates


def test_a_search_that_fails_waits_and_is_done_again(
    tmp_path: Path, model: Any, podeval: Any, directory: Directory
) -> None:
    model.answers.append(lambda question: topics_of("Arts"))
    podeval("real_pod", "topics", "--into", tmp_path, "--set", "categories=Arts", "--judge", model.name)
    directory.down = True
    done = podeval("real_pod", "search", "--into", tmp_path, "--accept-all", code=1)
    assert "Arts_1 waits: the search failed" in done.output
    directory.down = False
    directory.episodes = {"arts matter": [episode(9, "Arts")]}
    done = podeval("real_pod", "search", "--into", tmp_path, "--accept-all", code=1)
    # The one episode is a candidate for the first topic only.
    assert "1 candidates for 1 of them" in done.output
    assert "Arts_2 waits: no episode was found" in done.output
    done = podeval("real_pod", "finish", "--into", tmp_path, "--accept-all", code=1)
    assert "finished: 1 items" in done.output


def test_topics_that_are_the_same_are_asked_for_again(tmp_path: Path, model: Any, podeval: Any) -> None:
    answers = iter([{"suggestions": ["one"] * 5}, topics_of("Arts")])
    model.answers.append(lambda question: next(answers))
    podeval("real_pod", "topics", "--into", tmp_path, "--set", "categories=Arts", "--judge", model.name)
    assert len(model.asked) == 2
