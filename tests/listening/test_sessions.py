"""A listener's way: pages one by one, kept at once, taken up again, ended with a code; what is wrong is refused."""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from podeval.errors import BadInput
from podeval.listening import Listening, session_results
from podeval.store.database import Database
from podeval.store.pseudonyms import erase
from podeval.store.tables import ListeningRating, ListeningSession
from tests.fakes.databases import SERVER_LONG

from .conftest import EVERY_KIND, SECRET, answer, begin, design


@EVERY_KIND
def test_every_kind_of_test_goes_from_start_to_code(listening: Listening, heard: Callable[..., str], kind: str) -> None:
    test = design(kind, minutes=60)
    listening.create(test)
    session = heard(test, "prolific:1")
    overview = session_results.read_overview(listening.database, test.id)
    assert (overview.finished, overview.unfinished) == (1, 0)
    marks = session_results.read_session_marks(listening.database, test.id)
    assert marks
    assert {mark.seconds for mark in marks} == {20.0}
    assert listening.finish(session) == listening.progress(session).completion_code
    if kind == "questionnaire":
        answers, clips = session_results.read_session_answers(listening.database, test.id)
        assert len(answers) == 8 * 3 * 4, "eight marks about three systems of four items"
        assert answers[1].reason.startswith("as for")
        assert clips["i0", "s0"].speakers == 2
    if kind == "preference":
        assert all("|" in mark.page for mark in marks)


def test_a_saved_page_is_there_after_a_restart_and_the_session_goes_on(database_place: str) -> None:
    test = design()
    with Database(database_place) as database:
        first = Listening(database, secret=SECRET)
        first.create(test)
        begun = first.start(test.id, "prolific:1")
        first.save(begun.session, 0, answer("mushra", first.show(begun.session, 0), 70))
    with Database(database_place) as database:
        second = Listening(database, secret=SECRET)
        again = second.start(test.id, "prolific:1")
        assert again.session == begun.session
        assert (again.saved, again.next_page) == ((0,), 1)
        with pytest.raises(BadInput, match="pages 2, 3, 4 of 4"):
            second.finish(again.session)
        assert session_results.read_session_marks(database, test.id) == [], "an unfinished session is in no result"
        assert session_results.read_overview(database, test.id).unfinished == 1


def test_a_page_answered_anew_replaces_the_answer_until_the_end(
    listening: Listening, heard: Callable[..., str]
) -> None:
    test = design("mos", items=2)
    begun = begin(listening, test)
    for value in (1, 5, 5):
        listening.save(begun.session, 0, {"timbre": value, "fidelity": 2})
    listening.save(begun.session, 1, {"timbre": 4, "fidelity": 4})
    listening.finish(begun.session)
    marks = session_results.read_session_marks(listening.database, test.id)
    assert Counter(mark.value for mark in marks) == {5: 1, 2: 1, 4: 2}
    with pytest.raises(BadInput, match="finished"):
        listening.save(begun.session, 0, {"timbre": 1, "fidelity": 1})


@SERVER_LONG
def test_nothing_that_leaves_tells_which_system_it_is(listening: Listening) -> None:
    test = design()
    begun = begin(listening, test)
    shown = listening.show(begun.session, 0)
    said = json.dumps([shown.stimuli, shown.questions, shown.title, shown.prompt])
    assert not any(name in said for name in (*test.systems, "HQ", "LQ", ".wav"))
    for letter in ("A", "reference"):
        audio = listening.source(begun.session, 0, letter).audio
        assert audio.name == "x.wav"
    with pytest.raises(BadInput, match="no recording"):
        listening.source(begun.session, 0, "../../etc/passwd")


def test_a_person_is_a_pseudonym_and_can_be_forgotten(listening: Listening, heard: Callable[..., str]) -> None:
    test = design("mos", items=2)
    listening.create(test)
    heard(test, "prolific:secret-person")
    mark = session_results.read_session_marks(listening.database, test.id)[0]
    assert "secret" not in mark.rater
    with listening.database.writing() as session:
        erase(session, mark.rater)
    assert session_results.read_session_marks(listening.database, test.id) == []
    with listening.database.reading() as session:
        assert session.scalars(select(ListeningRating)).all() == []


@SERVER_LONG
def test_answers_out_of_range_are_refused_and_leave_nothing(listening: Listening) -> None:
    test = design("mos")
    begun = begin(listening, test)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"timbre": 6, "fidelity": 1}, "from 1 to 5"),
        ({"timbre": -1, "fidelity": 1}, "from 1 to 5"),
        ({"timbre": 2.5, "fidelity": 1}, "whole number"),
        ({"timbre": float("inf"), "fidelity": 1}, "from 1 to 5"),
        ({"timbre": 10**400, "fidelity": 1}, "from 1 to 5"),
        ({"timbre": 1}, "still asks for fidelity"),
        ({"timbre": 1, "fidelity": 1, "charm'; drop table": 1}, "does not ask for"),
    ]
    for given, sentence in cases:
        with pytest.raises(BadInput, match=sentence):
            listening.save(begun.session, 0, given)
    with listening.database.reading() as session:
        assert session.scalars(select(ListeningRating)).all() == []


@SERVER_LONG
def test_foreign_sessions_pages_and_tests_are_refused(listening: Listening) -> None:
    test = design("mos")
    begun = begin(listening, test)
    for number in (-1, 4, 10**9):
        with pytest.raises(BadInput, match="there is no page"):
            listening.save(begun.session, number, {"timbre": 1, "fidelity": 1})
    for session in ("", "x" * 10_000, begun.session + "x"):
        with pytest.raises(BadInput, match="no such listening session"):
            listening.progress(session)
    with pytest.raises(BadInput, match="no listening test"):
        listening.start("nope", "prolific:1")
    with pytest.raises(BadInput, match="a different design"):
        listening.create(design("mos", title="other"))
    assert listening.create(test) == test.id


@SERVER_LONG
def test_what_was_not_heard_far_enough_is_not_rated(listening: Listening) -> None:
    test = design("mos", heard=0.9)
    begun = begin(listening, test)
    good = {"timbre": 3, "fidelity": 3}
    for heard in (None, {"A": 0.5}, {"A": 0.89}):
        with pytest.raises(BadInput, match="listen to at least 90% of A"):
            listening.save(begun.session, 0, good, heard_shares=heard)
    with pytest.raises(BadInput, match="number from 0 to 1"):
        listening.save(begun.session, 0, good, heard_shares={"A": 7})
    assert listening.save(begun.session, 0, good, heard_shares={"A": 0.9}).saved == (0,)


def test_listeners_that_come_together_get_places_of_their_own(database_place: str) -> None:
    test = design("mos", items=3, systems=3, listeners=6)
    with Database(database_place) as database:
        service = Listening(database, secret=SECRET)
        service.create(test)
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(service.start, [test.id] * 6, [f"prolific:{n}" for n in range(6)]))
        with database.reading() as session:
            known = [(one.place, one.pages) for one in session.scalars(select(ListeningSession))]
    assert sorted(place for place, _ in known) == list(range(6))
    met = Counter((page["item"], page["stimuli"][0]) for _, pages in known for page in pages)
    assert set(met.values()) == {2}


def test_a_place_that_nobody_finished_is_given_again(listening: Listening, heard: Callable[..., str]) -> None:
    test = design("mos", items=3, listeners=3)
    listening.create(test)
    heard(test, "prolific:1")
    gone = listening.start(test.id, "prolific:2")
    heard(test, "prolific:3")
    heard(test, "prolific:4")
    with listening.database.reading() as session:
        pages = {
            name: session.scalars(select(ListeningSession).order_by(ListeningSession.place)).all()[n].pages
            for n, name in enumerate(("first", "gone", "third", "fourth"))
        }
        assert session.get_one(ListeningSession, gone.session).pages == pages["gone"]
    assert pages["fourth"] == pages["gone"], "the same items in the same systems"
    marks = Counter(
        (mark.page, mark.stimulus) for mark in session_results.read_session_marks(listening.database, test.id)
    )
    assert len(marks) == 9
    assert len(set(marks.values())) == 1, "each system of each item by one listener who finished"


@SERVER_LONG
def test_missed_attention_checks_are_noted_once_and_not_told(listening: Listening) -> None:
    test = design("questionnaire", items=1, systems=2)
    begun = begin(listening, test)
    wrong = answer("questionnaire", None) | {"speakers": {"mark": 4}}
    listening.save(begun.session, 0, wrong)
    listening.save(begun.session, 0, wrong)
    assert len(session_results.list_failed_attention(listening.database, test.id)) == 1
    listening.save(begun.session, 0, answer("questionnaire", None))
    assert session_results.list_failed_attention(listening.database, test.id) == []


def test_an_excluded_session_is_kept_with_its_reason_and_can_be_taken_back(
    listening: Listening, heard: Callable[..., str]
) -> None:
    test = design("mos", items=2)
    listening.create(test)
    heard(test, "prolific:1")
    (came,) = session_results.read_sessions(listening.database, test.id)
    listening.count_session(test.id, came.listener, False, "background radio", "operator")
    assert session_results.read_session_marks(listening.database, test.id) == []
    assert session_results.read_overview(listening.database, test.id).excluded == 1
    with pytest.raises(BadInput, match="give a reason"):
        listening.count_session(test.id, came.listener, True, " ", "operator")
    listening.count_session(test.id, came.listener, True, "it was the test's own", "operator")
    assert len(session_results.read_session_marks(listening.database, test.id)) == 4


@SERVER_LONG
def test_a_closed_test_lets_finish_and_lets_nobody_in(listening: Listening) -> None:
    test = design("mos", items=1)
    begun = begin(listening, test)
    listening.close(test.id)
    with pytest.raises(BadInput, match="is closed"):
        listening.start(test.id, "prolific:2")
    listening.save(begun.session, 0, {"timbre": 3, "fidelity": 3})
    assert listening.finish(listening.start(test.id, "prolific:1").session)
