"""What no script of ten hours comes near is refused in a sentence; what comes near is read."""

import random
from collections.abc import Callable

import pytest

from podeval.errors import BadInput
from podeval.text.comparison.normalise import normalise
from podeval.text.dialogue_segments import join_utterances
from podeval.text.language import read_tokens
from podeval.text.script import Script
from podeval.text.tokens import tokenise

WORDS = [
    line.split()
    for line in (
        "The show is about the sea and about everybody who has ever lived by it.",
        "Well, it's 3 p.m. already, so the boats should be back by now, shouldn't they?",
        "No one has been there since the summer!",
    )
]


def speech(words: int) -> str:
    """English as people speak it, of so many words."""
    draw, said = random.Random(1), []
    while len(said) < words:
        said += draw.choice(WORDS)
    return " ".join(said[:words])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a" * 600_001, "the script has 600,001 characters, but at most 600,000"),
        ("ab " * 100_001, "the text has 100,001 words, but at most 100,000"),
        ("a. " * 15_001, "the text has 15,001 sentences, but at most 15,000"),
        ("12 " * 40_001, "the text has 40,001 numbers, but at most 40,000"),
        ("a, " * 60_001, "the text has 60,001 punctuation marks, but at most 60,000"),
    ],
)
@pytest.mark.parametrize("read", [tokenise, normalise, read_tokens])
def test_an_english_text_longer_than_any_is_refused_in_a_sentence(
    read: Callable[[str], object], text: str, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        read(text)


def test_a_chinese_text_longer_than_any_is_refused_before_it_is_cut_into_words() -> None:
    with pytest.raises(BadInput, match="200,001 characters without spaces, but at most 200,000"):
        tokenise("海" * 200_001, "zh")
    assert len(tokenise("海。 " * 1_000 + " " * 200_000, "zh")) == 2_000


@pytest.mark.long
def test_ten_hours_of_speech_are_read() -> None:
    text = speech(90_000)
    assert len(text) > 400_000
    assert len(tokenise(text)) > 100_000
    assert len(normalise(text).split()) > 90_000
    assert Script.parse(text).turns[0].text == text


def test_more_words_than_anybody_hears_in_a_day_are_refused() -> None:
    with pytest.raises(BadInput, match="100,001 words, but at most 100,000"):
        join_utterances(("a", float(at), at + 0.5) for at in range(100_001))


def test_a_number_that_nobody_says_is_refused() -> None:
    with pytest.raises(BadInput, match="a number with thousands of digits"):
        normalise("1,1" * 5_000)
