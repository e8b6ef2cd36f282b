import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podeval.errors import BadInput, CannotScore
from podeval.text.comparison.alignment import Alignment, locate_speaker_turns, split_words
from podeval.text.script import Script, Turn

Word = tuple[str, float, float]

TURNS = (
    ("A", 0.0, 4.0, "Welcome back to the show, today we ask why the ocean is salty."),
    ("B", 4.5, 9.5, "Rivers wash minerals from the rocks, and vents on the floor add almost as much."),
    ("A", 10.0, 11.0, "Did it work?"),
    ("B", 11.5, 16.5, "Not quite: he forgot that salt leaves the water through spray, sediments, and clay."),
    ("A", 17.0, 21.0, "Thank you for joining us, and see you all next week."),
)
SCRIPT = Script(tuple(Turn(speaker, text) for speaker, _, _, text in TURNS))


def spread(text: str, start: float, end: float) -> list[Word]:
    """Word times of a text spoken evenly."""
    words = text.split()
    total = sum(len(word) + 1 for word in words)
    timed, at = [], start
    for word in words:
        until = at + (end - start) * (len(word) + 1) / total
        timed.append((word, at, until))
        at = until
    return timed


HEARD = [word for _, start, end, text in TURNS for word in spread(text, start, end)]


def worst(result: Alignment, truth: list[tuple[float, float]]) -> float:
    return max(
        max(abs(turn.start - truth[turn.index][0]), abs(turn.end - truth[turn.index][1])) for turn in result.turns
    )


TRUTH = [(start, end) for _, start, end, _ in TURNS]


def test_perfectly_heard_turns_have_their_times() -> None:
    result = locate_speaker_turns(SCRIPT, HEARD)
    assert [turn.speaker for turn in result.turns] == ["A", "B", "A", "B", "A"]
    assert (result.coverage, result.missing, result.trusted) == (1.0, (), True)
    assert worst(result, TRUTH) < 1e-9


@pytest.mark.parametrize(
    ("first", "second", "heard"),
    [
        ("How old is he?", "25.", "How old is he? Twenty five."),
        ("How old is he?", "Twenty-five.", "How old is he? 25."),
        ("When was that?", "1984.", "When was that? Nineteen eighty four."),
        ("When is that?", "In 2024!", "When is that? in twenty twenty-four"),
        ("How many?", "1,500", "How many? One thousand five hundred."),
        ("How far?", "3.5 miles.", "How far? Three point five miles."),
        ("他多大？", "25。", "他 多 大 二 十 五"),
        ("他多大？", "二十五。", "他 多 大 25"),
        ("哪一年？", "2024年。", "哪 一 年 二 零 二 四 年"),
    ],
)
def test_a_number_is_heard_however_it_is_written(first: str, second: str, heard: str) -> None:
    script = Script((Turn("A", first), Turn("B", second)))
    result = locate_speaker_turns(script, spread(heard, 0, 4))
    assert (result.missing, result.coverage) == ((), 1.0)
    assert 0 < result.turns[1].start < result.turns[1].end == pytest.approx(4, abs=0.2)


def test_case_punctuation_and_apostrophes_do_not_count() -> None:
    script = Script((Turn("A", "It’s state-of-the-art."), Turn("B", "Really!")))
    result = locate_speaker_turns(script, [(" it's", 0.0, 0.4), (" state-of-the-art", 0.4, 1.4), (" REALLY", 2.0, 2.5)])
    assert [(turn.start, turn.end, turn.matched) for turn in result.turns] == [(0.0, 1.4, 1.0), (2.0, 2.5, 1.0)]


def test_a_skipped_turn_is_left_out_and_counted() -> None:
    heard = [word for word in HEARD if not 4.5 <= word[1] < 9.5]
    result = locate_speaker_turns(SCRIPT, heard)
    assert result.missing == (1,)
    assert [turn.index for turn in result.turns] == [0, 2, 3, 4]
    assert worst(result, TRUTH) < 1e-9
    assert result.coverage == pytest.approx(1 - len(split_words(TURNS[1][3])) / len(split_words(SCRIPT.text)))


def test_a_hallucination_between_turns_does_not_stretch_them() -> None:
    generator = random.Random(3)
    vocabulary = [word for word, _, _ in HEARD]
    for gap, (start, _) in enumerate(TRUTH[1:], start=1):
        babble = [(generator.choice(vocabulary), start + 0.3 * at, start + 0.3 * at + 0.3) for at in range(30)]
        later = [(text, at + 10 * (at >= start), end + 10 * (at >= start)) for text, at, end in HEARD]
        truth = [(at + 10 * (turn >= gap), end + 10 * (turn >= gap)) for turn, (at, end) in enumerate(TRUTH)]
        result = locate_speaker_turns(SCRIPT, later + babble)
        assert result.missing == ()
        assert worst(result, truth) < 0.3, f"babble before turn {gap}"


def test_a_sentence_said_twice_stays_with_its_speaker() -> None:
    again = [(text, start + 5.5, end + 5.5) for text, start, end in HEARD if 4.5 <= start < 9.5]
    later = [(text, start + 6 * (start >= 10), end + 6 * (start >= 10)) for text, start, end in HEARD]
    result = locate_speaker_turns(SCRIPT, later + again)
    first, second, third = result.turns[:3]
    assert first.end == pytest.approx(4.0)
    assert (second.matched, third.start) == (1.0, pytest.approx(16.0))
    assert second.start >= 4.5 - 1e-9
    assert second.end <= 15 + 1e-9


def test_unheard_words_at_an_edge_are_given_their_length_but_not_more_than_the_pause() -> None:
    script = Script((Turn("A", "one two three four"), Turn("B", "five six seven eight")))
    heard = [("one", 0.0, 0.3), ("two", 0.3, 0.6), ("three", 0.6, 1.1), ("six", 3.0, 3.3), ("seven", 3.3, 3.8)]
    first, second = locate_speaker_turns(script, heard, duration=10.0).turns
    assert (first.end, second.start, second.end) == (pytest.approx(1.5), pytest.approx(2.6), pytest.approx(4.3))
    # 0.1 s a letter; with a pause of 0.2 s both sides share it, and the audio's end is not passed.
    close = [(text, start - 1.7 * (start > 2), end - 1.7 * (start > 2)) for text, start, end in heard]
    first, second = locate_speaker_turns(script, close, duration=2.2).turns
    assert (first.end, second.start, second.end) == (pytest.approx(1.2), pytest.approx(1.2), pytest.approx(2.2))


def test_overlapping_word_times_meet_halfway() -> None:
    script = Script((Turn("A", "hello there"), Turn("B", "good morning")))
    heard = [("hello", 0.0, 0.5), ("there", 0.5, 1.2), ("good", 1.0, 1.4), ("morning", 1.4, 2.0)]
    first, second = locate_speaker_turns(script, heard).turns
    assert first.end == second.start == pytest.approx(1.1)


def test_a_word_longer_than_the_turn_after_it_leaves_that_turn_no_negative_time() -> None:
    script = Script((Turn("A", "one two"), Turn("B", "three"), Turn("A", "four five")))
    heard = [("one", 0.0, 1.0), ("two", 4.9, 10.0), ("three", 5.0, 6.0), ("four", 7.0, 8.0), ("five", 8.0, 9.0)]
    times = [(turn.start, turn.end) for turn in locate_speaker_turns(script, heard).turns]
    assert times == [(0.0, 7.5), (7.5, 7.5), (7.5, 9.0)]


def test_chinese_is_aligned_by_characters_across_variants() -> None:
    script = Script((Turn("甲", "我們今天聊聊海水。"), Turn("乙", "好啊，AI 怎麼說？")))
    heard = [
        ("我们", 0.0, 0.4), ("今天", 0.4, 0.8), ("聊聊", 0.8, 1.2), ("海", 1.2, 1.4), ("税", 1.4, 1.6),
        ("好啊", 2.0, 2.4), ("ai", 2.4, 2.8), ("怎么", 2.8, 3.2), ("说", 3.2, 3.4),
    ]  # fmt: skip
    result = locate_speaker_turns(script, heard)
    assert [(turn.start, turn.end) for turn in result.turns] == [(0.0, 1.6), (2.0, 3.4)]
    assert result.turns[0].matched == pytest.approx(7 / 8)
    assert result.coverage == pytest.approx(13 / 14)


def test_other_words_and_silence_are_not_trusted() -> None:
    other = locate_speaker_turns(SCRIPT, spread("completely different things are being said here " * 9, 0, 21))
    assert not other.trusted
    silence = locate_speaker_turns(SCRIPT, [])
    assert (silence.turns, silence.missing, silence.coverage) == ((), (0, 1, 2, 3, 4), 0.0)


def test_what_cannot_be_aligned_is_refused() -> None:
    with pytest.raises(CannotScore, match="no words to align"):
        locate_speaker_turns(Script((Turn("A", "..."),)), HEARD)
    with pytest.raises(BadInput, match="'hello' has times"):
        locate_speaker_turns(SCRIPT, [("hello", 1.0, float("nan"))])
    with pytest.raises(BadInput, match="end before it starts"):
        locate_speaker_turns(SCRIPT, [("hello", 1.0, 0.5)])


@given(
    words=st.lists(
        st.tuples(
            st.sampled_from(["the", "salt", "work", "it", "did", "you", "and", "?", "joining us"]),
            st.floats(0, 30),
            st.floats(0, 3),
        ),
        max_size=60,
    )
)
@example(
    words=[("did", 6.375, 0.0625), ("did", 16.625, 2.4375), ("and", 12.4375, 0.875), ("joining us", 7.5625, 2.875)]
)
@settings(deadline=None, max_examples=40)
def test_turns_are_ordered_and_do_not_overlap_whatever_was_heard(words: list[tuple[str, float, float]]) -> None:
    result = locate_speaker_turns(SCRIPT, [(text, start, start + length) for text, start, length in words])
    times = [time for turn in result.turns for time in (turn.start, turn.end)]
    assert times == sorted(times)
    assert sorted([turn.index for turn in result.turns] + list(result.missing)) == list(range(5))
    assert all(0 < turn.matched <= 1 for turn in result.turns)
    assert 0 <= result.coverage <= 1


def noisy(words: list[Word], rate: float, seed: int) -> list[Word]:
    """A transcriber's errors: equally many deletions, substitutions and insertions."""
    generator = random.Random(seed)
    vocabulary = [word for word, _, _ in words]
    heard: list[Word] = []
    for text, start, end in words:
        kind = generator.random() / rate
        if kind < 1 / 3:
            continue
        heard.append((generator.choice(vocabulary) if kind < 2 / 3 else text, start, end))
        if 2 / 3 <= kind < 1:
            heard.append((generator.choice(vocabulary), end, end))
    return heard


def test_a_real_dialogues_turns_are_found_through_word_errors(shared: Path) -> None:
    samples = shared / "data/samples"
    script = Script.parse((samples / "dialogue_script.json").read_text(encoding="utf-8"))
    turns = json.loads((samples / "dialogue_kokoro.json").read_text(encoding="utf-8"))
    truth = [(turn["start"], turn["end"]) for turn in turns]
    words = [word for turn in turns for word in spread(turn["text"], turn["start"], turn["end"])]

    perfect = locate_speaker_turns(script, words)
    assert perfect.coverage == 1
    assert worst(perfect, truth) < 0.3

    off = found = 0
    for seed in range(40):
        result = locate_speaker_turns(script, noisy(words, 0.1, seed), duration=truth[-1][1])
        assert result.missing == ()
        assert result.coverage > 0.85
        assert worst(result, truth) < 1.5
        found += len(result.turns)
        off += sum(
            max(abs(turn.start - truth[turn.index][0]), abs(turn.end - truth[turn.index][1])) > 0.3
            for turn in result.turns
        )
    # An error exactly at a boundary can hide up to a word; nothing else may.
    assert off / found < 0.02


def test_two_hours_are_aligned_in_seconds() -> None:
    script = Script(SCRIPT.turns * 300)
    heard = [(text, start + 21.5 * at, end + 21.5 * at) for at in range(300) for text, start, end in HEARD]
    begun = time.process_time()
    result = locate_speaker_turns(script, heard)
    assert time.process_time() - begun < 10
    assert (len(heard), result.coverage) == (16_800, 1.0)
