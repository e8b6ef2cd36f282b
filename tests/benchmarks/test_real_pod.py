"""Real-Pod holds the paper's topics, and demo scripts that fit a minute."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from podeval import benchmarks

SHARED = Path(__file__).parents[2] / "../shared/data/podeval/real_pod/Podcast_51topics.json"
REAL_POD = benchmarks.get("real_pod")


def test_there_are_51_topics_three_in_each_of_17_categories() -> None:
    # PodEval, section 3: 17 categories x 3 topics.
    counts = Counter(item.category for item in REAL_POD.items("topics"))
    assert len(counts) == 17
    assert set(counts.values()) == {3}


def test_topics_carry_an_episode_and_no_script() -> None:
    topics = REAL_POD.items("topics")
    assert all(item.episode is not None and item.script is None for item in topics)
    assert len({item.episode.link for item in topics if item.episode}) == 51


def test_topics_are_those_the_authors_published() -> None:
    if not SHARED.exists():
        pytest.skip(f"the authors' file is not at {SHARED}")
    published = [
        (
            f"{row['category']}_{row['topic_id']}",
            row["category"],
            row["topic"],
            row["episode_title"],
            row["episode_link"],
        )
        for row in json.loads(SHARED.read_text(encoding="utf-8"))
    ]
    ours = [
        (item.id, item.category, item.topic, item.episode.title, item.episode.link)
        for item in REAL_POD.items("topics")
        if item.episode
    ]
    assert ours == published


def test_demo_scripts_come_from_six_categories_of_the_dataset() -> None:
    topics = {item.topic: item.category for item in REAL_POD.items("topics")}
    demo = REAL_POD.items("demo")
    assert len({item.category for item in demo}) == len(demo) == 6
    assert all(topics[item.topic] == item.category for item in demo)


@pytest.mark.parametrize("item", REAL_POD.items("demo"), ids=lambda item: item.id)
def test_a_demo_script_is_a_lively_dialogue_of_about_a_minute(item: benchmarks.benchmark.Item) -> None:
    assert item.script is not None
    assert 120 <= len(item.script.text.split()) <= 165
    assert 6 <= len(item.script.turns) <= 10
    speakers = [turn.speaker for turn in item.script.turns]
    assert all(one != next_one for one, next_one in pairwise(speakers))


@pytest.mark.parametrize("item", REAL_POD.items("demo"), ids=lambda item: item.id)
def test_a_demo_script_spells_out_what_voices_stumble_over(item: benchmarks.benchmark.Item) -> None:
    assert item.script is not None
    text = item.script.text
    assert text.isascii()
    assert not any(character.isdigit() or character in '()[]/%&$…"' for character in text)
