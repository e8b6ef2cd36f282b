"""Shows of `spontaneous` and `zh_spontaneous`: how people talk in them, and how little they repeat."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from podeval import benchmarks
from podeval.benchmarks.item import SpokenScript, read_scripts
from podeval.text.script import Script

REAL_POD = benchmarks.get("real_pod")
PAIRS = {"spontaneous": "topics", "zh_spontaneous": "zh"}
LEAST_OF_A_LONG_TURN = {"spontaneous": 100, "zh_spontaneous": 150}
"""Words of a long turn in English, and characters in Chinese."""


def read_shows(split: str) -> list[SpokenScript]:
    pinned = REAL_POD.split(split).scripts
    assert pinned
    return list(read_scripts(pinned).values())


def count_units(text: str, split: str) -> int:
    return len(re.findall(r"[一-鿿]" if split.startswith("zh") else r"\S+", text))


def list_sentences(script: Script) -> Iterator[str]:
    """Yield the sentences of a script without case and punctuation."""
    for turn in script.turns:
        for sentence in re.split(r"[.!?…。！？—]+", turn.text.replace("[laughs]", "").lower()):
            if words := re.sub(r"[^\w']+", " ", sentence).strip():
                yield words


@pytest.mark.parametrize(("split", "written"), PAIRS.items())
def test_fewer_than_a_tenth_of_what_is_said_stands_in_the_written_scripts(split: str, written: str) -> None:
    turns, sentences = Counter[bool](), Counter[bool]()
    for show, item in zip(read_shows(split), REAL_POD.items(written), strict=True):
        assert item.script
        same_sentences = {*list_sentences(item.script)}
        same_turns = {" ".join(list_sentences(Script((turn,)))) for turn in item.script.turns}
        sentences.update(sentence in same_sentences for sentence in list_sentences(show.script))
        turns.update(" ".join(list_sentences(Script((turn,)))) in same_turns for turn in show.script.turns)
    # Of the scripts before, 42 % of the turns and 72 % of the sentences in English, 11 % and 38 % in Chinese.
    assert turns[True] < 0.1 * turns.total()
    assert sentences[True] < 0.1 * sentences.total()


@pytest.mark.parametrize("split", PAIRS)
def test_no_sentence_is_said_more_than_twice_in_all_shows(split: str) -> None:
    counts = Counter(sentence for show in read_shows(split) for sentence in list_sentences(show.script))
    least = 6 if split.startswith("zh") else 3
    repeated = {said: n for said, n in counts.items() if n > 2 and count_units(said, split) >= least}
    assert repeated == {}


@pytest.mark.parametrize("split", PAIRS)
def test_people_break_off_correct_themselves_and_answer_early(split: str) -> None:
    shows = read_shows(split)
    conversations = [show for show in shows if len(show.speakers) > 1]
    # Somebody begins a sentence again in every show, and a thought is left open in every show.
    assert [show.id for show in shows if not any(re.search("—+ ?[^—]", turn.text) for turn in show.turns)] == []
    assert [show.id for show in shows if not any("…" in turn.text for turn in show.turns)] == []
    # In every conversation somebody is cut off, and in most a question is answered before it has ended.
    assert [show.id for show in conversations if not any(turn.text.endswith("—") for turn in show.turns)] == []
    early = [show for show in conversations if any(turn.overlap for turn in show.turns)]
    assert len(early) > 0.9 * len(conversations)
    monologues = [show for show in shows if len(show.speakers) == 1]
    assert len(monologues) >= 0.05 * len(shows)
    assert all(show.speakers[0].role == "host" for show in monologues)


@pytest.mark.parametrize("split", PAIRS)
def test_a_guest_of_most_shows_talks_for_a_minute(split: str) -> None:
    shows = read_shows(split)
    longest = []
    for show in shows:
        guests = {speaker.name for speaker in show.speakers if speaker.role == "guest"}
        longest.append(max((count_units(turn.text, split) for turn in show.turns if turn.speaker in guests), default=0))
    assert sum(length >= LEAST_OF_A_LONG_TURN[split] for length in longest) >= len(shows) / 2


@pytest.mark.parametrize("split", PAIRS)
def test_shows_begin_and_end_in_more_than_one_way(split: str) -> None:
    shows = read_shows(split)
    assert len({show.turns[0].text for show in shows}) == len({show.turns[-1].text for show in shows}) == len(shows)
    welcomes = re.compile(
        r"welcome|hello|good (?:morning|afternoon|evening)|各位|大家好|欢迎|听众|朋友们", re.IGNORECASE
    )
    at_once = [bool(welcomes.search(show.turns[0].text)) for show in shows]
    # Some open with a welcome, and some in the middle of the talk.
    assert 0.15 * len(shows) < sum(at_once) < 0.7 * len(shows)


def test_english_shows_can_be_read_aloud() -> None:
    for show in read_shows("spontaneous"):
        for turn in show.turns:
            assert not re.search(r"[^A-Za-z ',.!?:;—…-]", turn.text.replace("[laughs]", "")), (show.id, turn.text)


def test_a_turn_over_words_that_do_not_end_the_last_one_is_refused() -> None:
    speakers = [{"name": "Ann", "role": "host"}, {"name": "Ben", "role": "guest"}]
    turns = [{"speaker": "Ann", "text": "Did you —"}, {"speaker": "Ben", "text": "No.", "overlap": "you —"}]
    assert SpokenScript.model_validate({"id": "a", "speakers": speakers, "turns": turns}).turns[1].overlap
    turns[1]["overlap"] = "Did"
    with pytest.raises(ValueError, match="a has a turn that overlaps 'Did', which is not the end of the previous turn"):
        SpokenScript.model_validate({"id": "a", "speakers": speakers, "turns": turns})
    with pytest.raises(ValueError, match="has a turn that overlaps 'x'"):
        SpokenScript.model_validate({"id": "a", "speakers": speakers, "turns": [turns[0] | {"overlap": "x"}, turns[1]]})
