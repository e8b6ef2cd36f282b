"""The documentation is found by the words that tell one passage from another."""

from pathlib import Path

import pytest

from podeval.leaderboard.documentation_search import LONGEST, Documentation


@pytest.fixture
def pages(tmp_path: Path) -> Documentation:
    (tmp_path / "voices.md").write_text(
        "# Voices\nThe system has a voice.\n\n"
        "## Cloning\nThe system clones a voice from a reference.\n```\n# no heading\n```\n"
    )
    (tmp_path / "queue.md").write_text("# Queue\nThe system waits. " + "The system waits for its turn.\n\n" * 200)
    return Documentation(tmp_path)


def test_rare_words_count_more_than_those_that_stand_everywhere(pages: Documentation) -> None:
    best = pages.search("the system clones")[0]
    assert (best.page, best.heading) == ("voices.md", "Cloning")
    assert "# no heading" in best.text, "a line of code begins no passage"
    assert pages.search("QUEUE waits")[0].page == "queue.md"
    assert pages.search("zebra") == []
    assert len(pages.search("system", most=2)) == 2


def test_long_passages_are_cut_between_paragraphs(pages: Documentation) -> None:
    found = [passage for passage in pages.search("waits turn", most=20) if passage.page == "queue.md"]
    assert len(found) > 1
    assert all(len(passage.text) <= LONGEST for passage in found)


def test_what_metrics_say_of_themselves_is_found_too(pages: Documentation) -> None:
    assert pages.search("timbre difference cosine SPTD")[0].page == "metric sptd"
