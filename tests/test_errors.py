"""Errors are sentences; some have a code, which goes wherever the sentence goes."""

import copy
import pickle

import pytest

from podeval.arena.refusal import CLOSED, ArenaRefused
from podeval.errors import BadInput, CodedSentence, require_known


def test_an_error_without_a_code_is_its_sentence() -> None:
    error = BadInput("there is no such file")
    assert (str(error), error.code, error.parameters) == ("there is no such file", "", {})
    assert str(BadInput()) == ""


def test_an_error_has_a_code_and_parameters_beside_its_sentence() -> None:
    error = BadInput("the test mos is closed", code="listening-test-closed", parameters={"test": "mos"})
    assert (str(error), error.code, error.parameters) == (
        "the test mos is closed",
        "listening-test-closed",
        {"test": "mos"},
    )
    assert (error.sentence, error.sentence.code) == (str(error), error.code)
    assert error.sentence.parameters == error.parameters


def test_a_coded_sentence_brings_its_code_into_an_error() -> None:
    why = CodedSentence("nothing is taken: we move", code="frozen", why="we move")
    error = ArenaRefused(CLOSED, why)
    assert (error.reason, error.code, error.parameters) == (CLOSED, "frozen", {"why": "we move"})


def test_a_code_survives_another_process() -> None:
    why = CodedSentence("nothing is taken: we move", code="frozen", why="we move")
    for again in (pickle.loads(pickle.dumps(why)), copy.deepcopy(why)):
        assert (again, again.code, again.parameters) == (why, why.code, why.parameters)
    error = pickle.loads(pickle.dumps(BadInput(why)))
    assert (str(error), error.code, error.parameters) == (str(why), why.code, why.parameters)


def test_an_unknown_name_is_answered_with_the_closest_one_and_all() -> None:
    require_known("language", ("en", "zh"), "zh", "en")
    with pytest.raises(BadInput, match=r"^there is no voice 'aloy'; did you mean alloy\? choose from alloy, onyx$"):
        require_known("voice", {"alloy": 1, "onyx": 2}, "onyx", "aloy")
    with pytest.raises(BadInput, match=r"^there is no voice 'x'; choose from alloy, onyx$"):
        require_known("voice", ["alloy", "onyx"], "x")
