"""The session of one listener in the store: its progress, its answers, and free places of the assignment."""

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.listening.designs import Design
from podeval.listening.listener_pages import Page, letters
from podeval.listening.session_results import ATTENTION
from podeval.store.tables import Flag, ListeningAnswer, ListeningRating, ListeningSession


@dataclass(frozen=True)
class SessionProgress:
    """The progress of a listener: the session's name, the number of saved pages, the code once it is finished."""

    session: str
    pages: int
    saved: tuple[int, ...]
    completion_code: str | None

    @property
    def next_page(self) -> int | None:
        """Number of the first page that is not saved, from 0; None where all are."""
        return next((number for number in range(self.pages) if number not in self.saved), None)


@dataclass(frozen=True)
class AnsweredPage:
    """A listener's answer to a page, as `listener_pages.validate_answer` takes it, and what they heard by letter."""

    answer: Mapping[str, Any]
    heard: Mapping[str, float]


def read_answered_page(session: Session, row: ListeningSession, page: Page, kind: str) -> AnsweredPage | None:
    """Return what was saved for a page, without names of systems; None where nothing was."""
    about = {"session": row.id, "page": page.id}
    ratings = session.scalars(select(ListeningRating).filter_by(**about).order_by(ListeningRating.number)).all()
    if not ratings:
        return None
    # Translate systems to letters: only the tables name systems.
    reasons = {a.question: a.reason for a in session.scalars(select(ListeningAnswer).filter_by(**about))}
    letter = dict(zip(page.stimuli, letters(len(page.stimuli)), strict=True))
    shares = {letter[r.stimulus]: r.heard for r in ratings if r.heard is not None}
    # Restore the form in which the page sent the answer.
    answer: dict[str, Any]
    match kind:
        case "mushra":
            answer = {letter[r.stimulus]: r.value for r in ratings}
        case "questionnaire":
            marks = {r.scale: r.value for r in ratings}
            answer = {
                name: ({"mark": marks[name]} if name in marks else {}) | {"reason": reasons.get(name, "")}
                for name in dict.fromkeys((*marks, *reasons))
            }
        case "rubric":
            answer = {r.scale: r.value for r in ratings} | {"rationale": reasons.get("rationale", "")}
        case _:
            answer = {r.scale: r.value for r in ratings}
    return AnsweredPage(answer, shares)


def get_session(session: Session, session_id: str) -> ListeningSession:
    """Return a session by its id.

    Raises:
        BadInput: there is no such session.
    """
    row = session.get(ListeningSession, session_id) if len(session_id) <= 64 else None
    if row is None:
        raise BadInput("there is no such listening session; begin again from the link you were given")
    return row


def get_page(row: ListeningSession, number: int) -> Page:
    """Return one page of a session, counted from 0.

    Raises:
        BadInput: there is no such page.
    """
    if not 0 <= number < len(row.pages):
        raise BadInput(f"there is no page {number + 1}; this session has {len(row.pages)}")
    return Page.of(row.pages[number])


def read_progress(session: Session, row: ListeningSession) -> SessionProgress:
    """Return the progress of a session."""
    saved = set(session.scalars(select(ListeningRating.page).where(ListeningRating.session == row.id).distinct()))
    numbers = tuple(number for number, page in enumerate(row.pages) if page["id"] in saved)
    return SessionProgress(row.id, len(row.pages), numbers, row.completion_code)


def find_free_place(session: Session, design: Design) -> int:
    """Return the next place; once all planned places are taken, one with the pages of a place that nobody finished."""
    places = session.execute(
        select(ListeningSession.place, ListeningSession.finished_at, ListeningSession.standing).where(
            ListeningSession.test == design.id
        )
    ).all()
    used = {slot for slot, _, _ in places}
    free = next(number for number in range(len(used) + 1) if number not in used)
    if free < design.listeners:
        return free
    done = Counter(slot % design.listeners for slot, end, standing in places if end and standing == "counted")
    least = min(range(design.listeners), key=lambda slot: (done[slot], slot))
    rounds = 1
    while rounds * design.listeners + least in used:
        rounds += 1
    return rounds * design.listeners + least


def validate_played(design: Design, page: Page, shares: Mapping[str, float]) -> dict[str, float]:
    """Return the share heard of each stimulus, by system.

    Raises:
        BadInput: a share is below what the test asks for, or not a share.
    """
    by_stimulus: dict[str, float] = {}
    for letter, name in zip(letters(len(page.stimuli)), page.stimuli, strict=True):
        share = shares.get(letter)
        good = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
        if share is not None and not good:
            raise BadInput(f"page {page.id}: the share heard of {letter} is a number from 0 to 1")
        if design.heard and (share is None or share < design.heard) and design.kind != "text_preference":
            raise BadInput(f"page {page.id}: please listen to {letter} to at least {design.heard:.0%} first")
        if share is not None:
            by_stimulus[name] = float(share)
    return by_stimulus


def flag_attention(session: Session, session_id: str, page: Page, missed: list[str], now: datetime) -> None:
    """Record the attention checks that were failed on a page, in place of those of an earlier answer to it."""
    about = f"page {page.id}: "
    earlier = (Flag.session == session_id, Flag.rule == ATTENTION, Flag.detail.startswith(about, autoescape=True))
    session.execute(delete(Flag).where(*earlier))
    for failure in missed:
        session.add(
            Flag(
                id=secrets.token_hex(16),
                session=session_id,
                kind="signal",
                rule=ATTENTION,
                points=1.0,
                detail=about + failure,
                made_by="rules",
                made_at=now,
            )
        )
