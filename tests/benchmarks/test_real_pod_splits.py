"""Real-Pod's own splits: hard lines, long episodes, Chinese; what they hold, and what no system is shown of them."""

from collections import Counter

import pytest

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.benchmarks.item import read_scripts, read_voices
from podeval.benchmarks.real_pod_splits import TAG_BREAKDOWN, TAGS, VOICES
from podeval.runs.item_inputs import write_prompt

REAL_POD = benchmarks.get("real_pod")


def test_hard_lines_are_tagged_and_each_tag_has_several() -> None:
    items = REAL_POD.items("hard")
    counts = Counter(
        tag
        for item in items
        for line in item.lines
        for tag in (*line.tags, *(tag for reading in line.readings for tag in reading.tags))
    )
    assert len(items) == 40
    assert set(counts) == set(TAGS)
    assert min(counts.values()) >= 4
    assert all(line.tags or line.readings for item in items for line in item.lines)
    assert {item.voices for item in items} == {1, 2, 3}


def test_what_a_transcript_does_not_show_is_in_no_breakdown() -> None:
    assert set(TAGS) - set(TAG_BREAKDOWN.groups) == {"name", "homograph"}
    assert set(TAG_BREAKDOWN.groups) < set(TAGS)


@pytest.mark.every(4)
@pytest.mark.parametrize("item", REAL_POD.items("hard"), ids=lambda item: item.id)
def test_any_accepted_reading_of_a_hard_script_is_read_without_an_error(item: Item) -> None:
    readings = item.readings
    assert readings
    # Every stretch in its last form, then each of them in its second.
    for form in (-1, 1):
        spoken = " ".join(
            part if isinstance(part, str) else part.forms[form if len(part.forms) > 1 else 0]
            for line in readings.lines
            for part in [*line.parts(), " "]
        )
        nearest = readings.choose(spoken)
        assert (nearest.errors, nearest.misread) == (0, ())


@pytest.mark.parametrize(("split", "language"), [("long", "en"), ("long_zh", "zh")])
def test_long_episodes_are_of_three_lengths_and_two_to_four_speakers(split: str, language: str) -> None:
    items = REAL_POD.items(split)
    assert Counter(item.properties["minutes"] for item in items) == {"10": 4, "30": 2, "60": 1}
    assert {item.language for item in items} == {language}
    assert {item.voices for item in items} == {2, 3, 4}
    assert all(item.script and len(item.script.speakers) == item.voices for item in items)


def test_long_episodes_in_english_have_a_voice_for_each_speaker_and_both_same_sex_pairs() -> None:
    pairs = set()
    for item in REAL_POD.items("long"):
        voices = [voice.id for voice in item.reference_voices.values()]
        assert len(set(voices)) == item.voices
        assert all(6 <= voice.seconds <= 10 for voice in item.reference_voices.values())
        if item.voices == 2:
            pairs.add("".join(sorted(voice.gender[0] for voice in item.reference_voices.values())))
    assert {"ff", "mm", "fm"} <= pairs
    # No recordings of Chinese speakers are at hand whose licence lets them be passed on.
    assert not any(item.reference_voices for split in ("zh", "demo_zh", "long_zh") for item in REAL_POD.items(split))


def test_long_voices_are_of_the_speakers_sex_and_in_one_age_each() -> None:
    scripts = REAL_POD.split("long").scripts
    assert scripts
    ages: dict[str, set[str]] = {}
    for script in read_scripts(scripts).values():
        for speaker in script.speakers:
            assert read_voices(VOICES)[speaker.voice].gender == speaker.gender
            ages.setdefault(speaker.voice, set()).add(speaker.manner.partition(",")[0])
    assert {voice: shared for voice, shared in ages.items() if len(shared) > 1} == {
        "libritts_r_1923": {"forties", "forty-four"},
        "libritts_r_6954": {"early thirties", "twenty-nine"},
        "libritts_r_1341": {"fifties", "thirty-eight"},
    }


def test_seventeen_chinese_topics_have_a_script_and_a_show() -> None:
    items = REAL_POD.items("zh")
    assert len({item.category for item in items}) == len(items) == 17
    assert [item.id for item in REAL_POD.items("zh_spontaneous")] == [item.id for item in items]
    assert len(REAL_POD.items("demo_zh")) == 6
    assert write_prompt(items[0]).startswith("请为")


def test_an_entry_is_asked_for_the_topics_alone_as_before() -> None:
    entered = [split for split in REAL_POD.splits if split.open_to_entries and not (split.trial or split.sample)]
    assert [split.name for split in entered] == ["topics"]
