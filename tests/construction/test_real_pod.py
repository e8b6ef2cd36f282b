"""Real-Pod constructed: topics suggested and kept, episodes found on a loopback directory and chosen, items built."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datasets")

from podeval.datasets import catalogue
from podeval.datasets.build import build, read_stored_rows, verify
from podeval.datasets.feeds import EpisodeLink
from podeval.errors import BadInput
from tests.fakes.podcast_server import Page, PodcastServer


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[PodcastServer]:
    from podeval.construction import steps
    from podeval.datasets import fetch_episodes

    with PodcastServer() as server:
        monkeypatch.setenv("PODEVAL_ITUNES", server.url)
        monkeypatch.setattr(steps, "make_web", lambda: fetch_episodes.make_web(pause=0.0, tries=1))
        yield server


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
    tmp_path: Path, model: Any, podeval: Any, directory: PodcastServer, edit: Any
) -> None:
    into = tmp_path / "mine"
    model.answers.append(lambda question: topics_of(question.partition("podcasts: ")[2].partition(".")[0]))
    chosen = ("--set", "categories=Arts,News", "--judge", model.name)
    done = podeval("real_pod", "topics", "--into", into, *chosen)
    assert "suggested: 10 topics in 2 categories" in done.output
    with pytest.raises(BadInput, match="no candidates"):
        raise podeval("real_pod", "finish", "--into", into, code=None).exception
    no = {"keep": "no"}
    edit(
        into / "topics.csv",
        {f"{c}_{n}": no for c in ("Arts", "News") for n in range(2, 6)}
        | {"Arts_1": {"keep": "yes", "topic (edit)": "why we paint"}, "News_1": {"keep": "yes"}},
    )
    directory.searches = {
        "paint": [episode(1, "On painting"), episode(2, "Colours"), {"trackId": 3}],
        "news matter 1": [episode(2, "Colours"), episode(4, "The press", contentAdvisoryRating="Explicit")],
    }
    done = podeval("real_pod", "search", "--into", into, "--set", "country=gb", "--set", "most=4")
    assert "searched: 2 topics; there are 3 candidates for 2 of them" in done.output
    assert directory.paths()[0] == ("/search?term=why+we+paint&media=podcast&entity=podcastEpisode&country=gb&limit=4")
    asked = len(directory.asked)
    podeval("real_pod", "search", "--into", into, "--set", "country=gb")
    assert len(directory.asked) == asked

    edit(into / "candidates.csv", {name: {"keep": "yes"} for name in ("Arts_1/1", "Arts_1/2", "News_1/2")})
    done = podeval("real_pod", "finish", "--into", into, code=1)
    assert "Arts_1 is waiting: 2 episodes are marked `yes` in candidates.csv; keep only one of them" in done.output
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
    tmp_path: Path, model: Any, podeval: Any, directory: PodcastServer
) -> None:
    model.answers.append(lambda question: topics_of("Arts"))
    podeval("real_pod", "topics", "--into", tmp_path, "--set", "categories=Arts", "--judge", model.name)
    directory.pages["/search"] = Page(status=404)
    done = podeval("real_pod", "search", "--into", tmp_path, "--accept-all", code=1)
    assert "Arts_1 is waiting: the search failed" in done.output
    directory.pages.clear()
    directory.searches = {"arts matter": [episode(9, "Arts")]}
    done = podeval("real_pod", "search", "--into", tmp_path, "--accept-all", code=1)
    # The one episode is a candidate for the first topic only.
    assert "1 candidates for 1 of them" in done.output
    assert "Arts_2 is waiting: no episode was found" in done.output
    done = podeval("real_pod", "finish", "--into", tmp_path, "--accept-all", code=1)
    assert "finished: 1 items" in done.output


def test_topics_that_are_the_same_are_asked_for_again(tmp_path: Path, model: Any, podeval: Any) -> None:
    answers = iter([{"suggestions": ["one"] * 5}, topics_of("Arts")])
    model.answers.append(lambda question: next(answers))
    podeval("real_pod", "topics", "--into", tmp_path, "--set", "categories=Arts", "--judge", model.name)
    assert len(model.asked) == 2
