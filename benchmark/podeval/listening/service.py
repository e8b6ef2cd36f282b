"""Listening tests as a service: a listener starts, saves page by page, can return later, and finishes with a code.

A page is on disk before it is acknowledged. The service never reveals which system a letter represents. Unfinished
sessions are kept and counted separately, and are not part of any result.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.listening import screening
from podeval.listening.designs import Design
from podeval.listening.listener_pages import (
    find_attention_failures,
    find_stimulus,
    list_questions,
    make_pages,
    validate_answer,
)
from podeval.listening.session_results import get_design
from podeval.listening.sessions import (
    AnsweredPage,
    SessionProgress,
    Shown,
    StimulusSource,
    end_session,
    find_free_place,
    find_longest,
    find_session,
    find_source,
    flag_attention,
    get_page,
    get_session,
    read_answered_page,
    read_progress,
    record_check,
    show_check,
    show_demographics,
    validate_played,
)
from podeval.stats.questionnaire_scores import ABOUT
from podeval.store import Database, operator_settings
from podeval.store.pseudonyms import find_pseudonym, make_pseudonym, remember_name
from podeval.store.secret import Secret
from podeval.store.tables import Flag, ListeningAnswer, ListeningRating, ListeningSession, ListeningTest
from podeval.texts import write_sentence

Clock = Callable[[], datetime]

_LONGEST_PAGE = 24 * 3600.0


class Listening:
    """The service for listening tests; threads may share it, and several processes may use the same database.

    Args:
        database: database of the tests and sessions.
        secret: key for making pseudonyms; by default the database's key.
        clock: function that returns the current time in UTC.
    """

    def __init__(
        self, database: Database, *, secret: Secret | None = None, clock: Clock = lambda: datetime.now(UTC)
    ) -> None:
        self.database = database
        self._secret = secret or Secret.where_kept(database)
        self._clock = clock

    def create(self, design: Design) -> str:
        """Add a test and return its id; adding the same design again changes only how listeners return to their panel.

        Raises:
            BadInput: another design has this id; answers to different questions are never pooled.
        """

        def work(session: Session) -> str:
            row = session.get(ListeningTest, design.id)
            if row is not None:
                if row.digest != design.digest:
                    raise BadInput(
                        f"a test {design.id} with a different design exists; give the new test a different id"
                    )
                row.design = {**row.design, "completion": design.model_dump(mode="json")["completion"]}
                return row.id
            content = design.model_dump(mode="json")
            session.add(
                ListeningTest(
                    id=design.id,
                    name=design.title,
                    kind=design.kind,
                    design=content,
                    digest=design.digest,
                    created_at=self._clock(),
                )
            )
            return design.id

        return self.database.write(work)

    def design(self, test: str) -> Design:
        """Return the design of a test.

        Raises:
            BadInput: the test does not exist.
        """
        return self.database.read(lambda session: get_design(session, test))

    def tests(self) -> list[str]:
        """Return the ids of all tests, oldest first."""
        return self.database.list_rows(select(ListeningTest.id).order_by(ListeningTest.created_at))

    def close(self, test: str) -> None:
        """Close a test to new listeners; listeners who have started can finish.

        Raises:
            BadInput: the test does not exist.
        """

        def work(session: Session) -> None:
            get_design(session, test)
            row = session.get_one(ListeningTest, test)
            row.closed_at = row.closed_at or self._clock()

        self.database.write(work)

    def start(self, test: str, identity: str, *, origin: str = "", name: str = "") -> SessionProgress:
        """Start or resume a session; each person has one session per test.

        A new listener is given the place in the balanced assignment that has the fewest finished sessions.

        Args:
            test: id of the test.
            identity: the person's identity, such as `prolific:5f…`; only its keyed hash is stored.
            origin: the network address; only its keyed hash is stored.
            name: name of the account that the person signed in with, if any; only its keyed hash is stored.

        Raises:
            BadInput: the test does not exist, or the test is closed and this person has not started it.
        """
        now = self._clock()

        def work(session: Session) -> SessionProgress:
            # Find the person's session for this test.
            design = get_design(session, test)
            listener = make_pseudonym(session, self._secret, identity, now=now)
            remember_name(session, self._secret, identity, name, now=now)
            row = find_session(session, test, listener)
            # Start a session if there is none.
            if row is None:
                if session.get_one(ListeningTest, test).closed_at is not None:
                    raise BadInput(
                        f"the test {test} is closed; thank you for coming",
                        code="listening-test-closed",
                        parameters={"test": test},
                    )
                slot, seed = find_free_place(session, design), secrets.randbits(48)
                row = ListeningSession(
                    id=secrets.token_urlsafe(24),
                    test=test,
                    listener=listener,
                    place=slot,
                    pages=[asdict(page) for page in make_pages(design, slot % design.listeners, seed)],
                    seed=seed,
                    origin=self._secret.mark("origin", origin) if origin else "",
                    started_at=now,
                    seen_at=now,
                )
                session.add(row)
                session.flush()
            return read_progress(session, row, design)

        return self.database.write(work)

    def resume(self, test: str, identity: str) -> SessionProgress | None:
        """Return the progress of a person who has started a test; None for others. Nothing is written.

        Raises:
            BadInput: the test does not exist.
        """
        with self.database.reading() as session:
            design = get_design(session, test)
            listener = find_pseudonym(session, self._secret, identity)
            row = find_session(session, test, listener) if listener else None
            return read_progress(session, row, design) if row else None

    def answered(self, session_id: str, number: int) -> AnsweredPage | None:
        """Return a listener's saved answer to a page; None if nothing is saved yet.

        Raises:
            BadInput: the session or page does not exist.
        """
        with self.database.reading() as session:
            row = get_session(session, session_id)
            return read_answered_page(session, row, get_page(row, number), get_design(session, row.test).kind)

    def progress(self, session_id: str) -> SessionProgress:
        """Return the progress of a session.

        Raises:
            BadInput: the session does not exist.
        """
        with self.database.reading() as session:
            row = get_session(session, session_id)
            return read_progress(session, row, get_design(session, row.test))

    def show(self, session_id: str, number: int) -> Shown:
        """Return one page of a session as its listener sees it.

        Raises:
            BadInput: the session or page does not exist.
        """
        with self.database.reading() as session:
            row = get_session(session, session_id)
            design, page, count = get_design(session, row.test), get_page(row, number), len(row.pages)
        if page.id == screening.PAGE and design.headphone_check:
            return show_check(page, number, count, design.headphone_check.kind)
        if page.id == ABOUT:
            return show_demographics(design, page, number, count)
        item = design.item(page.item)
        sources = [find_stimulus(design, page.item, name) for name in page.stimuli]
        if design.kind == "abx":
            # All three sounds of an ABX page are played as copies of the same length.
            longest = find_longest(design, page) or None
            sources = [stimulus.model_copy(update={"seconds": longest}) for stimulus in sources]
        stimuli: dict[str, Mapping[str, Any]] = {
            letter: {"audio": letter, "seconds": stimulus.seconds} if stimulus.text is None else {"text": stimulus.text}
            for letter, stimulus in zip(page.letters, sources, strict=True)
        }
        return Shown(
            kind=design.kind,
            number=number,
            of=count,
            page=page.id,
            title=item.category or item.id,
            introduction=design.introduction,
            prompt=item.prompt,
            reference="reference" if item.reference else None,
            prompt_audio="prompt" if item.prompt_audio else None,
            stimuli=stimuli,
            questions=tuple(asdict(question) for question in list_questions(design, item)),
            heard=design.heard,
        )

    def source(self, session_id: str, number: int, letter: str) -> StimulusSource:
        """Return the sound that a letter of a page, `reference` or `prompt` represents.

        Raises:
            BadInput: the session, page or sound does not exist.
        """
        with self.database.reading() as session:
            row = get_session(session, session_id)
            return find_source(get_design(session, row.test), row, get_page(row, number), letter)

    def save(
        self,
        session_id: str,
        number: int,
        answer: Mapping[str, Any],
        *,
        heard_shares: Mapping[str, float] | None = None,
        seconds: float | None = None,
    ) -> SessionProgress:
        """Record a listener's answer to one page; until the session ends, a new answer replaces the old one.

        Args:
            session_id: the session.
            number: number of the page.
            answer: the answer, in a form that `podeval.listening.listener_pages.validate_answer` accepts.
            heard_shares: the share of each sound that was played, 0 to 1, by letter.
            seconds: time spent on the page.

        Raises:
            BadInput: nothing was recorded; the message gives the reason: an unknown session or page, a finished
                session, an answer that the page does not request, or too little listening.
        """
        now = self._clock()

        def work(session: Session) -> SessionProgress:
            # Check the answer, the heard shares, and the time.
            row = get_session(session, session_id)
            if row.finished_at is not None:
                raise BadInput(write_sentence("session-finished"))
            design, page = get_design(session, row.test), get_page(row, number)
            row.seen_at = now
            if page.id == screening.PAGE and design.headphone_check:
                record_check(session, row, design.headphone_check, answer, now)
                session.flush()
                return read_progress(session, row, design)
            answers = validate_answer(design, page, answer)
            shares = validate_played(design, page, heard_shares or {})
            took = None if seconds is None or not 0 <= seconds <= _LONGEST_PAGE else float(seconds)
            # Replace an earlier answer to this page.
            for table in (ListeningRating, ListeningAnswer):
                session.execute(delete(table).where(table.session == row.id, table.page == page.id))
            for part in answers:
                common = {"session": row.id, "page": page.id, "item": page.item, "seconds": took, "saved_at": now}
                common["stimulus"] = part.stimulus
                if part.value is not None:
                    scale, share = part.question, shares.get(part.stimulus)
                    session.add(ListeningRating(**common, scale=scale, value=part.value, heard=share))
                if part.words or part.value is None:
                    chosen = "" if part.value is None else f"{part.value:g}"
                    session.add(ListeningAnswer(**common, question=part.question, choice=chosen, reason=part.words))
            # Record failed attention checks, and the progress.
            flag_attention(session, row.id, page, find_attention_failures(design, page, answers), now)
            session.flush()
            return read_progress(session, row, design)

        return self.database.write(work)

    def finish(self, session_id: str) -> str:
        """End a session and return its completion code; further calls return the same code.

        Raises:
            BadInput: the session does not exist, or pages are not answered; the message names these pages.
        """

        def work(session: Session) -> str:
            row = get_session(session, session_id)
            design = get_design(session, row.test)
            if row.completion_code is None:
                stands = read_progress(session, row, design)
                missing = [str(n + 1) for n in range(stands.pages) if n not in stands.saved]
                if missing:
                    raise BadInput(
                        write_sentence("pages-not-answered", pages=", ".join(missing[:10]), count=stands.pages)
                    )
                end_session(row, self._clock())
            return str(read_progress(session, row, design).completion_code)

        return self.database.write(work)

    def count_session(self, test: str, listener: str, counted: bool, reason: str, by: str) -> None:
        """Exclude a listener from a test's results, or include them again; nothing is deleted.

        Raises:
            BadInput: the test or listener does not exist, or no reason is given.
        """
        if not reason.strip():
            raise BadInput(write_sentence("say-why"))
        reason, standing = operator_settings.validate_reason(reason), "counted" if counted else "excluded"

        def work(session: Session) -> None:
            get_design(session, test)
            row = find_session(session, test, listener)
            if row is None:
                raise BadInput(write_sentence("listener-unknown", listener=listener, test=test))
            now = self._clock()
            row.standing, row.standing_reason, row.standing_by = standing, reason, by
            # Do not record the id of the session, because anyone who has this id can act as the listener.
            operator_settings.note(session, f"session {standing}", f"{test}: {listener}", reason, by, now)
            decision = {"kind": standing, "detail": reason, "made_by": by, "made_at": now}
            session.add(Flag(id=secrets.token_hex(16), session=row.id, **decision))

        self.database.write(work)
