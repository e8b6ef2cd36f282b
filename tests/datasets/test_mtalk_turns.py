"""Words and tags of a transcript."""

import pytest

from podeval.datasets.mtalk_turns import hash_prompt, split_tags


@pytest.mark.parametrize(
    ("transcript", "words", "tags"),
    [
        ("Hello there.", "Hello there.", []),
        ("(sigh) Hello", "Hello", ["sigh"]),
        ("Hello (sighs).", "Hello.", ["sighs"]),
        ("One ( loud ) two", "One two", ["loud"]),
        ("One(loud)two", "One two", ["loud"]),
        ("（叹气） Well（a man: yes）?", "Well?", ["叹气", "a man: yes"]),
        ("(rain) (thunder)", "", ["rain", "thunder"]),
        ("an open (bracket", "an open (bracket", []),
        ("", "", []),
    ],
)
def test_tags_are_split_off_the_words(transcript: str, words: str, tags: list[str]) -> None:
    assert split_tags(transcript) == (words, tags)


def test_a_prompt_is_known_however_its_white_space_is_set() -> None:
    assert hash_prompt("Judge  both\r\n\nmodels. ") == hash_prompt("Judge both models.")
    assert hash_prompt("Judge both models.") != hash_prompt("Judge both model.")
