"""Decisions of an operator about listening tests: whose sessions count."""

from podeval.errors import BadInput
from podeval.listening import session_results
from podeval.listening.service import Listening
from podeval.sentences import write_sentence
from podeval.store.operator_settings import validate_reason


def count_session(listening: Listening, test: str, listener: str, counted: bool, reason: str, by: str) -> None:
    """Exclude a listener from a test's results, or include them again; the decision is noted on the trail.

    Args:
        listening: the service that has the sessions.
        test: id of the test.
        listener: pseudonym.
        counted: whether the session counts from now on.
        reason: the reason, a sentence.
        by: name of the operator.

    Raises:
        BadInput: there is no such test or listener, or no reason is given.
    """
    rows = session_results.read_sessions(listening.database, test)
    session = next((row.session for row in rows if row.listener == listener), None)
    if session is None:
        raise BadInput(write_sentence("listener-unknown", listener=listener, test=test))
    listening.set_standing(session, counted=counted, reason=validate_reason(reason), by=by)
