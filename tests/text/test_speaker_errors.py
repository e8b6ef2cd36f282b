"""cpWER: equal to meeteval's on random dialogues, and by hand on small ones."""

import json
from pathlib import Path

import pytest

from podeval.text.comparison.word_errors import count_cp_errors
from tests.text import meeteval_cases as cases


def count(dialogues: list[tuple[cases.Talk, cases.Talk, float]]) -> list[list[int]]:
    counted = []
    for *talks, _ in dialogues:
        plain = [{who: [word.text for word in said] for who, said in talk.items()} for talk in talks]
        cp = count_cp_errors(*plain)
        counted.append([cp.errors, cp.length])
    return counted


def read_counts(path: Path) -> list[list[int]]:
    """Read errors and words of the reference; the third number is of tcpWER, which no metric computes."""
    return [counts[:2] for counts in json.loads(path.read_text(encoding="utf-8"))]


def test_cpwer_is_meetevals_on_240_dialogues_of_two_to_six_speakers() -> None:
    """`meeteval` 0.4.3 with kaldialign 0.9, counts written by meeteval_cases.py; half English, half Chinese."""
    assert count(cases.make_cases()) == read_counts(cases.COUNTS)


@pytest.mark.long
@pytest.mark.models
def test_cpwer_is_meetevals_on_real_meetings(shared_data: Path) -> None:
    """Three excerpts of AMI, transcribed and diarised twice; counts by meeteval, words not kept."""
    assert count(cases.make_meetings(shared_data / "samples")) == read_counts(cases.COUNTS_OF_MEETINGS)


def test_words_of_a_voice_too_many_and_of_a_speaker_too_few_are_errors() -> None:
    reference = {"Ann": ["good", "morning"], "Ben": ["hello"]}
    one = count_cp_errors(reference, {"x": ["good", "morning", "hello"]})
    assert (one.errors, one.rate) == (2, 2 / 3)
    three = count_cp_errors(reference, {"x": ["hello"], "y": ["good", "morning"], "z": ["who"]})
    assert three.errors == 1


def test_a_reference_without_words_has_no_rate() -> None:
    assert count_cp_errors({}, {"x": ["word"]}).rate is None
