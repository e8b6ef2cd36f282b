"""The marks of a listening test as one tidy table: a row for each mark, a column for each thing known of it.

It is what R, pandas and spreadsheets take as it is. Sessions that were left out are in it too and say so in `counted`;
unfinished ones are not.
"""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.listening.designs import PAIRED
from podeval.listening.session_results import get_design, read_sessions
from podeval.store.database import Database
from podeval.store.tables import ListeningAnswer, ListeningRating, ListeningSession

COLUMNS = (
    "test",
    "kind",
    "listener",
    "page",
    "item",
    "stimulus",
    "compared_with",
    "scale",
    "mark",
    "reason",
    "heard",
    "seconds",
    "saved_at",
    "counted",
    "headphones",
)
"""`page` counts from 1 in the listener's order; `seconds` are of the page; `headphones` are right answers."""


def tabulate_marks_of_test(database: Database, test: str) -> list[dict[str, Any]]:
    """Return the rows of a test's finished sessions, in the order of listeners and pages.

    The mark of a preference is of `stimulus` against `compared_with`, positive where the latter is better. The mark of
    an ABX page is 1 for a right answer; `stimulus` is what X was, and `compared_with` the other one.

    Raises:
        BadInput: there is no such test.
    """
    headphones = {came.session: came.headphones for came in read_sessions(database, test)}
    with database.reading() as session:
        kind = get_design(session, test).kind
        answers = _read_answers(session, test)
        rows = session.execute(
            select(ListeningSession, ListeningRating)
            .join(ListeningRating, ListeningRating.session == ListeningSession.id)
            .where(ListeningSession.test == test, ListeningSession.finished_at.is_not(None), ListeningRating.item != "")
            .order_by(ListeningSession.place, ListeningRating.number)
        ).all()
        return [
            {
                "test": test,
                "kind": kind,
                "listener": row.listener,
                "page": _find_page(row, rating.page),
                "item": rating.item,
                "stimulus": rating.stimulus,
                "compared_with": _find_other(row, rating) if kind in PAIRED else "",
                "scale": rating.scale,
                "mark": rating.value,
                "reason": "" if kind in PAIRED else _find_reason(answers, row.id, rating),
                "heard": rating.heard,
                "seconds": rating.seconds,
                "saved_at": rating.saved_at,
                "counted": row.standing == "counted",
                "headphones": headphones[row.id],
            }
            for row, rating in rows
        ]


def _read_answers(session: Session, test: str) -> dict[tuple[str, str, str], str]:
    rows = session.scalars(select(ListeningAnswer).join(ListeningSession).where(ListeningSession.test == test))
    return {(answer.session, answer.page, answer.question): answer.reason for answer in rows}


def _find_reason(answers: dict[tuple[str, str, str], str], session: str, rating: ListeningRating) -> str:
    """Return the reason of a mark, or of all marks of its page."""
    of_mark = answers.get((session, rating.page, rating.scale))
    return of_mark if of_mark is not None else answers.get((session, rating.page, "rationale"), "")


def _find_page(row: ListeningSession, page: str) -> int:
    return 1 + next(number for number, document in enumerate(row.pages) if document["id"] == page)


def _find_other(row: ListeningSession, rating: ListeningRating) -> str:
    """Return the system that the one of a mark was compared with."""
    page = next(document for document in row.pages if document["id"] == rating.page)
    return str(next(name for name in page["stimuli"] if name != rating.stimulus))
