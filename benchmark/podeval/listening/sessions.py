"""A listener's session in the store: its progress, its answers, and the free places in the assignment."""

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.listening import screening
from podeval.listening.designs import Design
from podeval.listening.listener_pages import Page, find_stimulus
from podeval.listening.session_results import ATTENTION, HEADPHONES
from podeval.stats.questionnaire_scores import ABOUT
from podeval.store.tables import Flag, ListeningAnswer, ListeningRating, ListeningSession
from podeval.texts import write_sentence


@dataclass(frozen=True)
class SessionProgress:
    """The progress of a listener: the session's name, the number of saved pages, and, once the session is finished, the
    code.

    In a finished session, `return_to` is the address of the listener's panel, to which they return after
    `return_seconds`.
    """

    session: str
    pages: int
    saved: tuple[int, ...]
    completion_code: str | None
    return_to: str | None = None
    return_seconds: int = 0

    @property
    def next_page(self) -> int | None:
        """Number of the first page without a saved answer, counted from 0; None if all answers are saved."""
        return next((number for number in range(self.pages) if number not in self.saved), None)


@dataclass(frozen=True)
class AnsweredPage:
    """A listener's answer to a page, in the form that `validate_answer` accepts, and the share of each stimulus that
    was heard, by letter.
    """

    answer: Mapping[str, Any]
    heard: Mapping[str, float]


@dataclass(frozen=True)
class Shown:
    """A page as its listener sees it; `stimuli` maps each letter to a text or to the name of the sound.

    A page of the kind `headphones` contains the headphone check that `check` names.
    """

    kind: str
    number: int
    of: int
    page: str
    title: str
    introduction: str
    prompt: str
    reference: str | None
    prompt_audio: str | None
    stimuli: Mapping[str, Mapping[str, Any]]
    questions: tuple[Mapping[str, Any], ...]
    heard: float
    check: str = ""


@dataclass(frozen=True)
class StimulusSource:
    """The sound that a letter represents: a file, padded to `seconds` if given, or a sound of the headphone check.

    `blind` means that no picture of the sound may be shown, because it would reveal the answer.
    """

    audio: Path | None
    seconds: float | None = None
    check: tuple[str, int, int] | None = None
    blind: bool = False


def find_source(design: Design, row: ListeningSession, page: Page, letter: str) -> StimulusSource:
    """Return the sound that a letter of a page, `reference` or `prompt` represents.

    Raises:
        BadInput: the sound does not exist, or the stimulus is text.
    """
    if page.id == screening.PAGE and design.headphone_check:
        trial = page.stimuli.index(page.stimulus(letter))
        return StimulusSource(None, check=(design.headphone_check.kind, row.seed, trial), blind=True)
    item = design.item(page.item)
    stimulus = {"reference": item.reference, "prompt": item.prompt_audio}.get(letter)
    stimulus = stimulus or find_stimulus(design, page.item, page.stimulus(letter))
    if stimulus.audio is None:
        raise BadInput(write_sentence("stimulus-is-text", side=letter, page=page.id))
    if letter in page.letters and design.kind == "abx":
        return StimulusSource(Path(stimulus.audio), find_longest(design, page) or None, blind=True)
    return StimulusSource(Path(stimulus.audio))


def find_longest(design: Design, page: Page) -> float:
    """Return the length in seconds of a page's longest stimulus, considering only lengths that the design states."""
    return max(find_stimulus(design, page.item, name).duration for name in page.stimuli)


def show_check(page: Page, number: int, of: int, kind: str) -> Shown:
    """Return the page of the headphone check."""
    stimuli = {letter: {"audio": letter, "seconds": screening.SECONDS} for letter in page.letters}
    asked_trials = tuple({"name": name, "text": name} for name in page.stimuli)
    return Shown(
        kind=screening.PAGE,
        number=number,
        of=of,
        page=page.id,
        title="",
        introduction="",
        prompt="",
        reference=None,
        prompt_audio=None,
        stimuli=stimuli,
        questions=asked_trials,
        heard=0.0,
        check=kind,
    )


def show_demographics(design: Design, page: Page, number: int, of: int) -> Shown:
    """Return the page of questions about the listener."""
    return Shown(
        kind="questionnaire",
        number=number,
        of=of,
        page=page.id,
        title="",
        introduction=design.introduction,
        prompt="",
        reference=None,
        prompt_audio=None,
        stimuli={},
        questions=tuple(asdict(question.asked) for question in design.demographics),
        heard=0.0,
    )


def read_answered_page(session: Session, row: ListeningSession, page: Page, kind: str) -> AnsweredPage | None:
    """Return the saved answer to a page, without the names of systems; None if no answer is saved."""
    about = {"session": row.id, "page": page.id}
    ratings = session.scalars(select(ListeningRating).filter_by(**about).order_by(ListeningRating.number)).all()
    if not ratings:
        return None
    # Translate systems to letters, because only the database may name systems.
    reasons = {a.question: a.reason for a in session.scalars(select(ListeningAnswer).filter_by(**about))}
    letter = dict(zip(page.stimuli, page.letters, strict=True))
    shares = {letter[r.stimulus]: r.heard for r in ratings if r.heard is not None}
    # Restore the form in which the page sent the answer.
    answer: dict[str, Any]
    kind = {screening.PAGE: screening.PAGE, ABOUT: "questionnaire"}.get(page.id, kind)
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
        case screening.PAGE:
            answer = {r.stimulus: r.value for r in ratings}
        case "abx":
            right_side = 1 if page.stimuli[1] == page.stimuli[2] else -1
            answer = {"abx": right_side if ratings[0].value else -right_side}
            shares = dict.fromkeys(page.letters, ratings[0].heard) if ratings[0].heard is not None else {}
        case _:
            answer = {r.scale: r.value for r in ratings}
    return AnsweredPage(answer, shares)


def get_session(session: Session, session_id: str) -> ListeningSession:
    """Return a session by its id.

    Raises:
        BadInput: the session does not exist.
    """
    row = session.get(ListeningSession, session_id) if len(session_id) <= 64 else None
    if row is None:
        raise BadInput(write_sentence("no-such-session"))
    return row


def find_session(session: Session, test: str, listener: str) -> ListeningSession | None:
    """Return a listener's session of a test; None if the listener has not started the test."""
    return session.scalar(select(ListeningSession).filter_by(test=test, listener=listener))


def get_page(row: ListeningSession, number: int) -> Page:
    """Return one page of a session, counted from 0.

    Raises:
        BadInput: the page does not exist.
    """
    if not 0 <= number < len(row.pages):
        raise BadInput(write_sentence("no-such-page", page=number + 1, count=len(row.pages)))
    return Page.of(row.pages[number])


def read_progress(session: Session, row: ListeningSession, design: Design) -> SessionProgress:
    """Return the progress of a session."""
    saved = set(session.scalars(select(ListeningRating.page).where(ListeningRating.session == row.id).distinct()))
    numbers = tuple(number for number, page in enumerate(row.pages) if page["id"] in saved)
    if row.completion_code is None:
        return SessionProgress(row.id, len(row.pages), numbers, None)
    completion = design.completion or screening.Completion()
    code = completion.code_for(row.completion_code, screened_out=len(numbers) < len(row.pages))
    return SessionProgress(row.id, len(row.pages), numbers, code, completion.address_for(code), completion.seconds)


def end_session(row: ListeningSession, now: datetime) -> None:
    """End a session, and assign an individual code to it."""
    row.completion_code = secrets.token_hex(5).upper()
    row.finished_at = now


def record_check(
    session: Session, row: ListeningSession, check: screening.HeadphoneCheck, answer: Mapping[str, Any], now: datetime
) -> None:
    """Record the answers to the headphone check, and apply the consequence if the listener failed the check; only the
    first answers count.

    Raises:
        BadInput: the data is not a valid answer to the check.
    """
    answers = screening.read_answer(answer)
    if session.scalar(select(ListeningRating.number).filter_by(session=row.id, page=screening.PAGE).limit(1)):
        return
    for name, value in zip(screening.TRIAL_NAMES, answers, strict=True):
        session.add(
            ListeningRating(
                session=row.id,
                page=screening.PAGE,
                item="",
                stimulus=name,
                scale=HEADPHONES,
                value=value,
                saved_at=now,
            )
        )
    right = screening.count_right(dict(zip(screening.TRIAL_NAMES, answers, strict=True)), row.seed)
    if right >= screening.NEEDED:
        return
    failure = f"headphone check: {right} of {screening.TRIALS} right, but {screening.NEEDED} are needed"
    if check.failed != "flag":
        row.standing, row.standing_reason, row.standing_by = "excluded", failure, "rules"
    if check.failed == "end":
        end_session(row, now)
    _add_signal(session, row.id, HEADPHONES, failure, now)


def find_free_place(session: Session, design: Design) -> int:
    """Return the next free place; once all planned places are taken, return a place with the same pages as an
    unfinished session.
    """
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
    return next(slot for slot in count(least + design.listeners, design.listeners) if slot not in used)


def validate_played(design: Design, page: Page, shares: Mapping[str, float]) -> dict[str, float]:
    """Return the heard share of each stimulus by system.

    Raises:
        BadInput: a share is below the required share, or is not valid.
    """
    by_stimulus: dict[str, float] = {}
    for letter, name in zip(page.letters, page.stimuli, strict=True):
        share = shares.get(letter)
        good = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
        if share is not None and not good:
            raise BadInput(write_sentence("share-heard-form", page=page.id, side=letter))
        if design.heard and (share is None or share < design.heard) and design.kind != "text_preference":
            raise BadInput(
                write_sentence("listen-to-share-first", page=page.id, side=letter, share=f"{design.heard:.0%}")
            )
        if share is not None:
            # Two letters of an ABX page are the same stimulus; the smaller of their heard shares is used.
            by_stimulus[name] = min(float(share), by_stimulus.get(name, 1.0))
    return by_stimulus


def flag_attention(session: Session, session_id: str, page: Page, missed: list[str], now: datetime) -> None:
    """Record the failed attention checks of a page, replacing the checks that an earlier answer to the page failed."""
    about = f"page {page.id}: "
    earlier = (Flag.session == session_id, Flag.rule == ATTENTION, Flag.detail.startswith(about, autoescape=True))
    session.execute(delete(Flag).where(*earlier))
    for failure in missed:
        _add_signal(session, session_id, ATTENTION, about + failure, now)


def _add_signal(session: Session, session_id: str, rule: str, detail: str, now: datetime) -> None:
    session.add(
        Flag(
            id=secrets.token_hex(16),
            session=session_id,
            kind="signal",
            rule=rule,
            points=1.0,
            detail=detail,
            made_by="rules",
            made_at=now,
        )
    )
