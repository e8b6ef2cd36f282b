"""The length of a script is counted, and a model's thoughts are no part of it."""

import pytest

from podeval.text.reasoning import strip_reasoning
from podeval.text.script_format import count_length


def test_length_counts_words_and_characters_not_punctuation_or_labels() -> None:
    assert count_length("It's 3.5 well-known, isn't it? — yes!") == 6
    assert count_length("我用 Python 写了100行，很快。") == 9


@pytest.mark.parametrize(
    ("answer", "script"),
    [
        ("<think>Host 1: draft</think>\nHost 1: Hi.", "Host 1: Hi."),
        ("<think>a</think><answer>Host 1: Hi.</answer>", "Host 1: Hi."),
        ("thoughts without a beginning</think>Host 1: Hi.", "Host 1: Hi."),
        ("Host 1: Hi.", "Host 1: Hi."),
    ],
)
def test_only_the_script_of_an_answer_is_kept(answer: str, script: str) -> None:
    assert strip_reasoning(answer) == script
