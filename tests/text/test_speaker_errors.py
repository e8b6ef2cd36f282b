"""cpWER and tcpWER: equal to meeteval's on dialogues of chance, and by hand on small ones."""

import json
from pathlib import Path

import pytest

from podeval.text.comparison.alignment import HeardWord
from podeval.text.comparison.word_errors import count_cp_errors, count_tcp_errors
from tests.text import meeteval_cases as cases


def count(dialogues: list[tuple[cases.Talk, cases.Talk, float]]) -> list[list[int]]:
    counted = []
    for *talks, collar in dialogues:
        plain = [{who: [word.text for word in said] for who, said in talk.items()} for talk in talks]
        cp = count_cp_errors(*plain)
        counted.append([cp.errors, cp.length, count_tcp_errors(*talks, collar).errors])
    return counted


def test_both_rates_are_meetevals_on_240_dialogues_of_two_to_six_speakers() -> None:
    """`meeteval` 0.4.3 with kaldialign 0.9, counts written by meeteval_cases.py; half English, half Chinese."""
    assert count(cases.make_cases()) == json.loads(cases.COUNTS.read_text(encoding="utf-8"))


@pytest.mark.long
@pytest.mark.models
def test_both_rates_are_meetevals_on_real_meetings(shared_data: Path) -> None:
    """Three excerpts of AMI, transcribed and diarised twice; counts by meeteval, words not kept."""
    expected = json.loads(cases.COUNTS_OF_MEETINGS.read_text(encoding="utf-8"))
    assert count(cases.make_meetings(shared_data / "samples")) == expected


def test_words_of_a_voice_too_many_and_of_a_speaker_too_few_are_errors() -> None:
    reference = {"Ann": ["good", "morning"], "Ben": ["hello"]}
    one = count_cp_errors(reference, {"x": ["good", "morning", "hello"]})
    assert (one.errors, one.rate) == (2, 2 / 3)
    three = count_cp_errors(reference, {"x": ["hello"], "y": ["good", "morning"], "z": ["who"]})
    assert three.errors == 1


def test_a_word_at_another_time_is_another_word() -> None:
    reference = {"Ann": [HeardWord("now", 0.0, 0.5)]}
    late = {"x": [HeardWord("now", 7.0, 7.5)]}
    assert count_tcp_errors(reference, late, collar=5.0).errors == 2
    assert count_tcp_errors(reference, late, collar=8.0).errors == 0


def test_a_reference_without_words_has_no_rate() -> None:
    assert count_cp_errors({}, {"x": ["word"]}).rate is None
