"""A listener who comes back finds their session and what they answered; the operator finds the listener."""

from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.listening import Listening, session_results
from podeval.listening.designs import resolve_recordings
from podeval.listening.listener_pages import validate_answer
from podeval.listening.sessions import get_page, get_session

from .conftest import EVERY_KIND, answer, begin, design


@EVERY_KIND
def test_a_saved_answer_comes_back_as_it_can_be_sent_again_and_names_no_system(listening: Listening, kind: str) -> None:
    test = design(kind, minutes=60)
    listening.create(test)
    assert listening.resume(test.id, "prolific:1") is None
    begun = listening.start(test.id, "prolific:1")
    assert listening.answered(begun.session, 0) is None
    shown = listening.show(begun.session, 0)
    heard = dict.fromkeys(shown.stimuli, 0.75)
    listening.save(begun.session, 0, answer(kind, shown, 4), heard_shares=heard)
    back = listening.resume(test.id, "prolific:1")
    assert (back.session, back.saved) == (begun.session, (0,))
    again = listening.answered(back.session, 0)
    assert not any(name in repr(again) for name in (*test.systems, "'HQ'", "'LQ'"))
    assert set(again.heard.values()) == {0.75}
    with listening.database.reading() as session:
        page = get_page(get_session(session, begun.session), 0)
    first, second = (validate_answer(test, page, given) for given in (answer(kind, shown, 4), again.answer))
    assert {(g.question, g.value, g.words) for g in second} == {(g.question, g.value, g.words) for g in first}


def test_the_operator_sees_who_came_how_far_with_which_code(listening: Listening) -> None:
    test = design("mos", items=2)
    done = begin(listening, test)
    for number in range(2):
        listening.save(done.session, number, {"timbre": 3, "fidelity": 2})
    code = listening.finish(done.session)
    listening.start(test.id, "prolific:2")
    listener, _ = (came.listener for came in session_results.read_sessions(listening.database, test.id))
    listening.count_session(test.id, listener, False, "not on Prolific", "me")
    first, second = session_results.read_sessions(listening.database, test.id)
    assert (first.saved, first.pages, first.code, first.counted, first.reason) == (2, 2, code, False, "not on Prolific")
    assert (second.saved, second.code, second.finished_at) == (0, None, None)
    assert not session_results.read_overview(listening.database, test.id).closed
    listening.close(test.id)
    assert session_results.read_overview(listening.database, test.id).closed
    with pytest.raises(BadInput, match="no listening test"):
        session_results.read_sessions(listening.database, "other")


def test_consent_is_no_part_of_what_is_asked_and_paths_hold_from_everywhere(tmp_path: Any) -> None:
    plain = design()
    assert design(consent="You may stop at any time.").digest == plain.digest
    found = resolve_recordings(plain, tmp_path)
    assert found.items[0].stimuli["s0"].audio == str(tmp_path / "x.wav")
    with pytest.raises(BadInput, match="points outside the folder"):
        resolve_recordings(found, tmp_path)
