"""A tidy table has a row for each mark, and webMUSHRA's layout takes ABX and MOS as well."""

import csv
import io
from collections.abc import Callable

import pytest

from podeval.errors import BadInput
from podeval.listening import Listening, session_results
from podeval.listening.session_results import TIDY_COLUMNS, tabulate_marks_of_test
from podeval.listening.webmushra import tabulate
from tests.fakes.databases import SERVER_LONG

from .conftest import KINDS, design


@SERVER_LONG
@pytest.mark.parametrize("kind", KINDS)
def test_every_mark_is_a_row_and_pairs_name_both(kind: str, listening: Listening, heard: Callable[..., str]) -> None:
    test = design(kind, items=2)
    listening.create(test)
    heard(test, "one")
    heard(test, "two")
    listening.start(test.id, "never finished")
    left_out = session_results.read_sessions(listening.database, test.id)[1].listener
    listening.count_session(test.id, left_out, False, "not at home", "me")
    rows = tabulate_marks_of_test(listening.database, test.id)
    assert all(tuple(row) == TIDY_COLUMNS for row in rows)
    counted = [row for row in rows if row["counted"]]
    marks = session_results.read_session_marks(listening.database, test.id)
    assert [(row["listener"], row["stimulus"], row["mark"]) for row in counted] == [
        (mark.rater, mark.stimulus, mark.value) for mark in marks
    ]
    assert len({row["listener"] for row in rows}) == 2
    assert {row["page"] for row in rows} == set(range(1, len({(row["item"], row["page"]) for row in counted}) + 1))
    paired = kind in ("preference", "text_preference", "abx")
    assert all((row["compared_with"] in test.systems) == paired for row in rows)
    assert all(row["compared_with"] != row["stimulus"] for row in rows)
    reasons = {row["reason"] for row in rows}
    assert ("it rambles" in reasons) == (kind == "rubric")
    assert ("as for quality" in reasons) == (kind == "questionnaire")


@SERVER_LONG
def test_abx_is_webmushras_paired_comparison_and_mos_its_single_stimulus(
    listening: Listening, heard: Callable[..., str]
) -> None:
    tables = {}
    for kind in ("abx", "mos"):
        test = design(kind, items=4, systems=2)
        listening.create(test)
        heard(test, "one")
        rows = tabulate_marks_of_test(listening.database, test.id)
        tables[kind] = list(csv.DictReader(io.StringIO(tabulate(test.id, kind, rows))))
    answers = {row["choice_answer"] for row in tables["abx"]}
    assert answers == {"correct", "incorrect"}, "X is B on half of the pages, and the listener says so on all"
    assert {frozenset((row["choice_reference"], row["choice_non_reference"])) for row in tables["abx"]} == {
        frozenset(("s0", "s1"))
    }
    assert [row["choice_time"] for row in tables["abx"]] == ["20000"] * 4
    assert {row["trial_id"] for row in tables["mos"]} == {
        f"trial_i{n}_{s}" for n in range(4) for s in ("timbre", "fidelity")
    }
    assert {row["stimuli_rating"] for row in tables["mos"]} == {"3"}
    with pytest.raises(BadInput, match="no table for a rubric test"):
        tabulate("x", "rubric", [])
