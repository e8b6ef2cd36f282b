"""Real-Pod holds the paper's topics, a script with voices for each, and demo scripts that fit a minute."""

import json
from collections import Counter
from pathlib import Path

import pytest

from podeval import benchmarks
from podeval.benchmarks.item import ReferenceVoice, read_scripts, read_voices
from podeval.benchmarks.real_pod_splits import VOICES
from podeval.benchmarks.records import PinnedFile
from podeval.errors import PodevalError
from podeval.recording import Recording

SHARED = Path(__file__).parents[2] / "../shared/data/podeval/real_pod/Podcast_51topics.json"
REAL_POD = benchmarks.get("real_pod")


def test_there_are_51_topics_three_in_each_of_17_categories() -> None:
    # PodEval, section 3: 17 categories x 3 topics.
    counts = Counter(item.category for item in REAL_POD.items("topics"))
    assert len(counts) == 17
    assert set(counts.values()) == {3}


def test_topics_carry_an_episode_a_script_and_a_voice_for_each_speaker() -> None:
    topics = REAL_POD.items("topics")
    for item in topics:
        assert item.episode is not None
        assert item.script is not None
        assert tuple(item.reference_voices) == item.script.speakers
        assert len({voice.id for voice in item.reference_voices.values()}) == item.voices
    assert len({item.episode.link for item in topics if item.episode}) == 51


def test_the_spontaneous_split_has_shows_on_the_same_topics_in_the_same_voices() -> None:
    for item, spontaneous in zip(REAL_POD.items("topics"), REAL_POD.items("spontaneous"), strict=True):
        assert (spontaneous.id, spontaneous.topic) == (item.id, item.topic)
        assert spontaneous.reference_voices.items() <= item.reference_voices.items()
        assert spontaneous.voices == len(spontaneous.reference_voices)
    contents = {REAL_POD.split(name).content for name in ("demo", "topics", "spontaneous")}
    assert len(contents) == 3


def test_protocols_change_with_scripts_and_voices_that_are_pinned() -> None:
    split = REAL_POD.split("topics")
    other = PinnedFile(file="other", revision="sha256:" + "0" * 64)
    assert split.content not in (split.revision, split.model_copy(update={"scripts": other}).content)
    assert split.content != split.model_copy(update={"voices": other}).content


def test_scripts_other_than_the_pinned_ones_are_refused() -> None:
    split = REAL_POD.split("topics")
    other = PinnedFile(file=str(split.scripts and split.scripts.file), revision="sha256:" + "0" * 64)
    with pytest.raises(
        PodevalError, match=r"real_pod_scripts\.jsonl has the hash .*, but its benchmark pins sha256:000000000000"
    ):
        read_scripts(other)


@pytest.mark.parametrize("voice", read_voices(VOICES).values(), ids=lambda voice: voice.id)
def test_a_reference_voice_is_a_short_clean_recording(voice: ReferenceVoice) -> None:
    heard = Recording.open(voice.recording())
    assert heard.rate == 24_000
    assert heard.duration == pytest.approx(voice.seconds, abs=0.005)
    assert 6 <= heard.duration <= 10
    assert heard.defect is None


def test_a_recording_that_was_changed_is_refused() -> None:
    voice = next(iter(read_voices(VOICES).values())).model_copy(update={"sha256": "0" * 64})
    with pytest.raises(PodevalError, match="its manifest states 000000000000"):
        voice.recording()


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
def test_a_demo_script_spells_out_what_voices_stumble_over(item: benchmarks.benchmark.Item) -> None:
    assert item.script is not None
    text = item.script.text
    assert text.isascii()
    assert not any(character.isdigit() or character in '()[]/%&$…"' for character in text)
