"""At the end a listener gets a code and goes back to the panel that the design names, and nowhere else."""

from collections.abc import Callable
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.listening import Listening, session_results
from podeval.listening.screening import Completion
from tests.fakes.databases import SERVER_LONG

from .conftest import begin, design

PROLIFIC = {"code": "C1A2B3C4", "screened_out": "C9Z8Y7X6", "panel": "prolific"}
OTHER = {"address": "https://panel.example/end?token={code}&ok=1", "hosts": ["panel.example"], "seconds": 20}


def test_prolific_has_one_address_and_another_panel_is_named_with_its_host() -> None:
    assert Completion(panel="prolific", code="C1").address_for("C1") == (
        "https://app.prolific.com/submissions/complete?cc=C1"
    )
    other = Completion.model_validate(OTHER)
    assert other.address_for(other.code_for("OWN", screened_out=False)) == "https://panel.example/end?token=OWN&ok=1"
    assert Completion().address_for("C1") is None


@pytest.mark.parametrize(
    "completion",
    [
        {"panel": "prolific"},
        {"panel": "prolific", "code": "C1&cc=C2"},
        {"panel": "prolific", "code": "C1\n"},
        {"panel": "prolific", "code": "C1", "address": OTHER["address"], "hosts": OTHER["hosts"]},
        {"panel": "somewhere", "code": "C1"},
        {**OTHER, "hosts": []},
        {**OTHER, "hosts": ["https://panel.example"]},
        {**OTHER, "address": "http://panel.example/end?token={code}"},
        {**OTHER, "address": "https://panel.example@evil.example/?token={code}"},
        {**OTHER, "address": "https://panel.example:8443/?token={code}"},
        {**OTHER, "address": "https://panel.example.evil.example/?token={code}"},
        {**OTHER, "address": "https://{code}.example/"},
        {**OTHER, "address": "https://panel.example/end"},
        {**OTHER, "address": "https://panel.example/{code}/{pid}"},
        {**OTHER, "address": "https://panel.example\\@evil.example/?token={code}"},
        {**OTHER, "address": "javascript:alert('{code}')"},
        {**OTHER, "seconds": 0},
    ],
)
def test_what_could_lead_elsewhere_is_refused(completion: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="completion"):
        design(completion=completion)


@SERVER_LONG
def test_the_way_back_is_open_only_after_the_whole_test_is_saved(
    listening: Listening, heard: Callable[..., str]
) -> None:
    test = design("text_preference", items=2, completion=PROLIFIC)
    begun = begin(listening, test)
    for number in range(begun.pages):
        assert begun.return_to is None
        begun = listening.save(begun.session, number, {"preference": 1})
    assert (begun.completion_code, begun.return_to) == (None, None), "saved, and not yet sent"
    assert listening.finish(begun.session) == "C1A2B3C4"
    done = listening.resume(test.id, "prolific:1")
    assert done.return_to == "https://app.prolific.com/submissions/complete?cc=C1A2B3C4"
    assert done.return_seconds == 10
    heard(test, "prolific:2")
    assert [came.code for came in session_results.read_sessions(listening.database, test.id)] == ["C1A2B3C4"] * 2


@SERVER_LONG
def test_a_wrong_code_is_mended_by_adding_the_design_again(listening: Listening) -> None:
    for code in ("WRONG", "RIGHT"):
        listening.create(design("text_preference", completion={**PROLIFIC, "code": code}))
    completion = listening.design("a_text_preference").completion
    assert completion.code == "RIGHT"
    listening.create(design("text_preference"))
    assert listening.design("a_text_preference").completion is None


def test_who_is_turned_away_needs_a_code_of_their_own_to_go_back_with() -> None:
    check = {"failed": "end"}
    design("mos", headphone_check=check, completion=PROLIFIC)
    with pytest.raises(BadInput, match="screened_out"):
        design("mos", headphone_check=check, completion={"code": "C1", "panel": "prolific"})
