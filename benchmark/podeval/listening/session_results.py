"""The data from a listening test: the marks and answers of finished, counted sessions, and the progress of the test."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.listening.designs import PAIRED, Design, read_design
from podeval.listening.screening import Completion, count_right
from podeval.stats.mushra_scores import Mark
from podeval.stats.questionnaire_scores import ABOUT, ClipFacts, QuestionnaireAnswer
from podeval.store.database import Database
from podeval.store.tables import Flag, ListeningAnswer, ListeningRating, ListeningSession, ListeningTest
from podeval.texts import write_sentence

Answered = TypeVar("Answered", ListeningRating, ListeningAnswer)

ATTENTION = "attention"
"""The name of the rule that flags a failed attention check."""

HEADPHONES = "headphones"
"""The name of the rule that flags a failed headphone check, and of the scale of the answers to the check."""

TIDY_COLUMNS = (
    "test", "kind", "listener", "page", "item", "stimulus", "compared_with", "scale", "mark", "reason", "heard",
    "seconds", "saved_at", "counted", "headphones",
)  # fmt: skip
"""Columns of `tabulate_marks_of_test`: `page` counts from 1 in the listener's order; `seconds` is the time spent on the
page; `headphones` is the number of correct answers to the headphone check."""


@dataclass(frozen=True)
class Overview:
    """The progress of a test: the number of sessions in each state."""

    design: Design
    finished: int
    unfinished: int
    excluded: int
    closed: bool


@dataclass(frozen=True)
class Came:
    """One listener in a test, as seen by the operator; `code` is the completion code that was shown to the listener.

    `headphones` is the number of correct answers to the headphone check, or None if the check was not answered.
    """

    listener: str
    session: str
    pages: int
    saved: int
    started_at: datetime
    finished_at: datetime | None
    code: str | None
    counted: bool
    reason: str
    headphones: int | None = None


def get_design(session: Session, test: str) -> Design:
    """Return the design of a test.

    Raises:
        BadInput: the test does not exist.
    """
    row = session.get(ListeningTest, test)
    if row is None:
        raise BadInput(write_sentence("listening-test-unknown", test=f"{test!r}"))
    return read_design(row.design)


def read_overview(database: Database, test: str) -> Overview:
    """Return the progress of a test.

    Raises:
        BadInput: the test does not exist.
    """
    with database.reading() as session:
        design = get_design(session, test)
        closed = session.get_one(ListeningTest, test).closed_at is not None
        rows = session.execute(
            select(ListeningSession.standing, ListeningSession.finished_at).where(ListeningSession.test == test)
        ).all()
    states = Counter("unfinished" if end is None else standing for standing, end in rows)
    return Overview(design, states["counted"], states["unfinished"], states["excluded"], closed)


def read_sessions(database: Database, test: str) -> list[Came]:
    """Return all listeners who started a test, in the order of their places.

    Raises:
        BadInput: the test does not exist.
    """
    with database.reading() as session:
        completion = get_design(session, test).completion or Completion()
        heard_right = _count_headphones(session, test)
        counts = (
            select(ListeningRating.session, func.count(ListeningRating.page.distinct()).label("saved"))
            .group_by(ListeningRating.session)
            .subquery()
        )
        query = (
            select(ListeningSession, func.coalesce(counts.c.saved, 0))
            .outerjoin(counts, counts.c.session == ListeningSession.id)
            .where(ListeningSession.test == test)
            .order_by(ListeningSession.place)
        )
        return [
            Came(
                listener=row.listener,
                session=row.id,
                pages=len(row.pages),
                saved=saved,
                started_at=row.started_at,
                finished_at=row.finished_at,
                code=row.completion_code and completion.code_for(row.completion_code, saved < len(row.pages)),
                counted=row.standing == "counted",
                reason=row.standing_reason,
                headphones=heard_right.get(row.id),
            )
            for row, saved in session.execute(query)
        ]


def _count_headphones(session: Session, test: str) -> dict[str, int]:
    """Return the number of correct answers to the headphone check, by session."""
    rows = session.execute(
        select(ListeningSession.id, ListeningSession.seed, ListeningRating.stimulus, ListeningRating.value)
        .join(ListeningRating, ListeningRating.session == ListeningSession.id)
        .where(ListeningSession.test == test, ListeningRating.scale == HEADPHONES, ListeningRating.item == "")
    )
    answers_by_session: dict[tuple[str, int], dict[str, float]] = {}
    for name, seed, trial, value in rows:
        answers_by_session.setdefault((name, seed), {})[trial] = value
    return {name: count_right(trials, seed) for (name, seed), trials in answers_by_session.items()}


def read_session_marks(database: Database, test: str) -> list[Mark]:
    """Return all numeric answers from finished, counted sessions; the comment on a criterion is the rationale given on
    its page.

    For the mark of a pair, `page` names both sides, `<item>: <A> | <B>`; the stimulus of an ABX mark is X.

    Raises:
        BadInput: the test does not exist.
    """
    with database.reading() as session:
        design = get_design(session, test)
        rows = _read_counted(session, test, ListeningRating, ListeningRating.item != "")
        others = {(a.session, a.page): a.reason for _, a in _read_counted(session, test, ListeningAnswer)}
        explained = design.kind == "rubric"

        def name_page(rating: ListeningRating) -> str:
            if design.kind not in PAIRED:
                return rating.item
            other = others[rating.session, rating.page]
            return f"{rating.item}: {other if design.kind == 'abx' else f'{rating.stimulus} | {other}'}"

        return [
            Mark(
                rater=listener,
                page=name_page(r),
                stimulus=r.stimulus,
                value=r.value,
                scale=r.scale,
                seconds=r.seconds,
                comment=others[r.session, r.page] if explained else "",
            )
            for listener, r in rows
        ]


def read_session_answers(
    database: Database, test: str
) -> tuple[list[QuestionnaireAnswer], dict[tuple[str, str], ClipFacts]]:
    """Return the answers of the finished, counted sessions of a questionnaire, and the facts about its clips.

    Raises:
        BadInput: the test does not exist or is not a questionnaire.
    """
    with database.reading() as session:
        design = get_design(session, test)
        if design.kind != "questionnaire":
            raise BadInput(write_sentence("only-questionnaires", test=test, kind=design.kind))
        rated = [question.name for question in design.questionnaire if not question.optional]
        rows = _read_counted(
            session, test, ListeningRating, ListeningRating.scale.in_(rated), ListeningRating.item != ""
        )
        in_words = _read_counted(session, test, ListeningAnswer, ListeningAnswer.item != "")
        reasons = {(a.session, a.page, a.question): a.reason for _, a in in_words}
        page_answers = [
            QuestionnaireAnswer(
                who, r.item, r.stimulus, r.scale, int(r.value), reasons.get((r.session, r.page, r.scale), "")
            )
            for who, r in rows
        ]
        # Find the user's own questions in this test that are answered without a mark.
        unmarked = {question.name for question in design.questions} - set(rated)
        page_answers += [
            QuestionnaireAnswer(who, a.item, a.stimulus, a.question, None, a.reason)
            for who, a in in_words
            if a.question in unmarked
        ]
    clips = {
        (item.id, system): ClipFacts(stimulus.speakers, stimulus.music)
        for item in design.items
        for system, stimulus in item.stimuli.items()
    }
    return page_answers, clips


def count_demographics(database: Database, test: str) -> dict[str, Counter[str]]:
    """Count the answers of listeners in finished, counted sessions to questions about themselves, by question and
    label.

    Raises:
        BadInput: the test does not exist.
    """
    with database.reading() as session:
        design = get_design(session, test)
        rows = _read_counted(session, test, ListeningRating, ListeningRating.page == ABOUT)
        labels = {question.name: question.labels for question in design.demographics}
        counts = {name: Counter(dict.fromkeys(of_question, 0)) for name, of_question in labels.items() if of_question}
        for _, row in rows:
            counts[row.scale][labels[row.scale][int(row.value) - 1]] += 1
    return counts


def list_failed_attention(database: Database, test: str) -> list[tuple[str, str]]:
    """Return the failed attention checks as pairs of listener and failure.

    Raises:
        BadInput: the test does not exist.
    """
    with database.reading() as session:
        get_design(session, test)
        query = (
            select(ListeningSession.listener, Flag.detail)
            .join(ListeningSession, Flag.session == ListeningSession.id)
            .where(ListeningSession.test == test, Flag.rule == ATTENTION)
            .order_by(Flag.number)
        )
        return [(listener, detail) for listener, detail in session.execute(query)]


def _read_counted(session: Session, test: str, table: type[Answered], *only: Any) -> list[tuple[str, Answered]]:
    """Return the rows of the finished, counted sessions with their listeners, in the order of places and answers."""
    query = (
        select(ListeningSession.listener, table)
        .join(ListeningSession)
        .where(ListeningSession.test == test, ListeningSession.finished_at.is_not(None), *only)
        .where(ListeningSession.standing == "counted")
        .order_by(ListeningSession.place, table.number)
    )
    return [(listener, row) for listener, row in session.execute(query)]


def read_marks_by_test(database: Database) -> dict[str, list[Mark]]:
    """Return the marks from finished sessions of every listening test that rates individual outputs, by test."""
    single = select(ListeningTest.id).where(ListeningTest.kind.not_in(PAIRED)).order_by(ListeningTest.id)
    return {test: read_session_marks(database, test) for test in database.list_rows(single)}


def tabulate_marks_of_test(database: Database, test: str) -> list[dict[str, Any]]:
    """Return the marks of a test as one tidy table for R and pandas, in the order of listeners and pages.

    Excluded sessions are included and marked in `counted`; unfinished sessions are not included.

    The mark of a preference compares `stimulus` with `compared_with`, and is positive if `compared_with` is better. The
    mark of an ABX page is 1 for a correct answer; `stimulus` is X, and `compared_with` is the other stimulus.

    Raises:
        BadInput: the test does not exist.
    """
    headphones = {came.session: came.headphones for came in read_sessions(database, test)}
    with database.reading() as session:
        kind = get_design(session, test).kind
        every = select(ListeningAnswer).join(ListeningSession).where(ListeningSession.test == test)
        reasons = {(answer.session, answer.page, answer.question): answer.reason for answer in session.scalars(every)}
        query = (
            select(ListeningSession, ListeningRating)
            .join(ListeningRating, ListeningRating.session == ListeningSession.id)
            .where(ListeningSession.test == test, ListeningSession.finished_at.is_not(None), ListeningRating.item != "")
            .order_by(ListeningSession.place, ListeningRating.number)
        )
        rows = []
        for row, rating in session.execute(query):
            number, page = next((n, page) for n, page in enumerate(row.pages, 1) if page["id"] == rating.page)
            # Use the reason for the mark or, if there is none, the reason for all marks on its page.
            names = [(row.id, rating.page, name) for name in (rating.scale, "rationale")]
            reason = next((reasons[name] for name in names if name in reasons), "")
            other = next((name for name in page["stimuli"] if name != rating.stimulus), "")
            rows.append({
                "test": test,
                "kind": kind,
                "listener": row.listener,
                "page": number,
                "item": rating.item,
                "stimulus": rating.stimulus,
                "compared_with": other if kind in PAIRED else "",
                "scale": rating.scale,
                "mark": rating.value,
                "reason": "" if kind in PAIRED else reason,
                "heard": rating.heard,
                "seconds": rating.seconds,
                "saved_at": rating.saved_at,
                "counted": row.standing == "counted",
                "headphones": headphones[row.id],
            })  # fmt: skip
        return rows
