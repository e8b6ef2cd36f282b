"""What an operator of a board can decide, each with a reason and a name, on the trail in the same transaction.

Nothing is deleted but what is taken down; ratings and the board follow at once.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.arena import Arena, review
from podeval.errors import BadInput
from podeval.listening import Listening, session_results
from podeval.operations.flagged import FlaggedSession, FlaggedVote, flagged_sessions, flagged_votes
from podeval.store import operator_settings
from podeval.store.operator_settings import OperatorAction
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Vote
from podeval.submissions import service, takedown
from podeval.submissions.queue import Queue

Clock = Callable[[], datetime]

_LOG = logging.getLogger("podeval.operations")

LONGEST_REASON = 1_000
IN_HISTORY = service.OPERATOR.name
"""Who decided, as everybody reads it in a submission's history; the trail has the name."""


@dataclass(frozen=True)
class Pool:
    """What the arena compares: systems with whether new battles may show them, dimensions with whether they are open.

    Attributes:
        systems: id, title, whether in the pool, and on how many items it can be heard.
        dimensions: by name, whether open, and its votes that count.
        goal: counted votes wanted on each dimension; None where none is set.
    """

    systems: list[tuple[str, str, bool, int]]
    dimensions: dict[str, tuple[bool, int]]
    goal: int | None


class Moderation:
    """An operator's decisions; may be used by any number of threads.

    Args:
        arena: whose votes, dimensions and pool.
        listening: whose sessions.
        queue: of submissions.
        board: folder of runs.
        rebuild: makes the board's tables anew.
        clock: the time in UTC.
    """

    def __init__(
        self,
        arena: Arena,
        listening: Listening,
        queue: Queue,
        board: Path,
        rebuild: Callable[[Path], None],
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._arena = arena
        self._listening = listening
        self._queue = queue
        self._board = board
        self._rebuild = rebuild
        self._clock = clock
        self._database = arena.database

    def count_vote(self, vote: str, counted: bool, reason: str, by: str) -> None:
        """Leave a vote out of the public rating, or let it count again.

        Raises:
            BadInput: there is no such vote, or no reason or name is given.
        """
        (self._arena.restore if counted else self._arena.exclude)(vote, _checked(reason), by)

    def count_voter(self, voter: str, counted: bool, reason: str, by: str) -> int:
        """Leave all votes of a voter out of the public rating, or let all count again; how many changed.

        Raises:
            BadInput: nobody of that pseudonym voted, or no reason or name is given.
        """
        now, standing, why = self._clock(), "counted" if counted else "excluded", _checked(reason)

        def work(session: Session) -> list[str]:
            votes = list(session.scalars(select(Vote).where(Vote.voter == voter)))
            if not votes:
                raise BadInput(f"there is no vote of {voter}")
            changing = [vote for vote in votes if vote.standing != standing]
            for vote in changing:
                review.decide(session, vote, standing, why, by, now)
            operator_settings.note(session, f"voter {standing}", voter, why, by, now)
            return [vote.id for vote in changing]

        changed = self._database.write(work)
        self._arena.decided(changed)
        return len(changed)

    def count_session(self, test: str, listener: str, counted: bool, reason: str, by: str) -> None:
        """Leave a listener out of a test's results, or take them back.

        Raises:
            BadInput: there is no such test or listener, or no reason is given.
        """
        found = [came.session for came in session_results.sessions(self._database, test) if came.listener == listener]
        if not found:
            raise BadInput(f"nobody of the name {listener} came to the test {test}")
        self._listening.set_standing(found[0], counted=counted, reason=_checked(reason), by=by)

    def requeue(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Queue a failed or cancelled submission again; its finished items are kept.

        Raises:
            BadInput: it is in another state, or never passed the gate.
        """
        why = _checked(reason)
        noted = self._noted("submission requeued", id, why, by)
        return self._queue.retry(id, IN_HISTORY, reason=why, also=noted)

    def cancel(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Stop a submission that is not published.

        Raises:
            BadInput: there is nothing to stop.
        """
        why = _checked(reason)
        noted = self._noted("submission cancelled", id, why, by)
        return self._queue.cancel(id, IN_HISTORY, reason=why, also=noted)

    def withdraw(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Take a published submission off the board; its history stays, its runs are kept aside.

        Raises:
            BadInput: it is not published.
        """
        why = _checked(reason)
        noted = self._noted("submission withdrawn", id, why, by)
        service.withdraw(self._queue, id, IN_HISTORY, self._board, reason=why, also=noted)
        self.settle()
        return self._queue.get(id)

    def take_down(self, id: str, reason: str, by: str, tell: Callable[[str], None] = _LOG.warning) -> SubmissionRow:
        """Take a submission off the board and delete what it said; figures and history stay, it is not taken again.

        `tell` is given a sentence for each copy elsewhere that was cleared, or that a person has to look after.

        Raises:
            BadInput: there is no such submission.
        """
        takedown.take_down(self._queue, id, by, self._board, _checked(reason), self._clock(), tell)
        self._arena.changed()
        self.settle()
        return self._queue.get(id)

    def settle(self) -> None:
        """Take off the board what is withdrawn, also where an earlier decision was killed in between."""
        service.settle(self._queue, self._board)
        self._rebuild(self._board)

    def freeze(self, what: str, sentence: str, by: str) -> None:
        """Take no votes, or no submissions, until `thaw`.

        Args:
            what: one of `store.moderation.FREEZABLE`.
            sentence: for everybody: why, and perhaps until when.
            by: who decides.

        Raises:
            BadInput: there is no such thing, or no sentence.
        """
        why, now = _checked(sentence), self._clock()
        _require_freezable(what)

        def work(session: Session) -> None:
            operator_settings.freeze(session, what, why, by, now)
            operator_settings.note(session, "frozen", what, why, by, now)

        self._database.write(work)
        self._arena.changed()

    def thaw(self, what: str, reason: str, by: str) -> None:
        """Take votes, or submissions, again.

        Raises:
            BadInput: there is no such thing, or no reason.
        """
        why, now = _checked(reason), self._clock()
        _require_freezable(what)

        def work(session: Session) -> None:
            operator_settings.freeze(session, what, "", by, now)
            operator_settings.note(session, "thawed", what, why, by, now)

        self._database.write(work)
        self._arena.changed()

    def frozen(self) -> dict[str, str]:
        """What is frozen, with its sentence."""
        with self._database.reading() as session:
            return operator_settings.frozen(session)

    def open_dimension(self, dimension: str, opened: bool, reason: str, by: str) -> None:
        """Make new battles on a dimension again, or none any more; its votes count either way.

        Raises:
            BadInput: nothing is judged on it, or no reason is given.
        """
        why, now = _checked(reason), self._clock()

        def work(session: Session) -> None:
            if session.scalar(select(ArenaItem.id).where(ArenaItem.dimension == dimension).limit(1)) is None:
                raise BadInput(f"nothing is judged on {dimension!r}; `podeval arena status` counts what is")
            others = operator_settings.closed_dimensions(session) - {dimension}
            operator_settings.set_closed_dimensions(session, others if opened else others | {dimension}, by, now)
            operator_settings.note(session, f"dimension {'opened' if opened else 'closed'}", dimension, why, by, now)

        self._database.write(work)
        self._arena.changed()

    def pool_system(self, system: str, shown: bool, reason: str, by: str) -> None:
        """Let new battles show a system, or no more; its votes count either way.

        Raises:
            BadInput: the arena does not know it, or no reason is given.
        """
        why, now = _checked(reason), self._clock()

        def work(session: Session) -> None:
            known = session.get(ArenaSystem, system)
            if known is None:
                raise BadInput(f"the arena knows no system {system}")
            known.active = shown
            operator_settings.note(session, f"system {'into' if shown else 'out of'} the pool", system, why, by, now)

        self._database.write(work)
        self._arena.changed()

    def set_goal(self, votes: int | None, reason: str, by: str) -> None:
        """How many counted votes are wanted on each dimension; shown beside how many there are.

        Raises:
            BadInput: it is no number of votes, or no reason is given.
        """
        why, now = _checked(reason), self._clock()
        if votes is not None and not 1 <= votes <= 10_000_000:
            raise BadInput(f"{votes} is no number of votes to wish for")

        def work(session: Session) -> None:
            operator_settings.set_votes_goal(session, votes, by, now)
            operator_settings.note(session, "votes goal", str(votes or "none"), why, by, now)

        self._database.write(work)

    def pool(self) -> Pool:
        """What the arena compares."""
        with self._database.reading() as session:
            heard = select(func.count()).where(
                ArenaOutput.system == ArenaSystem.id, ArenaOutput.active, ArenaOutput.audio != ""
            )
            systems = session.execute(select(ArenaSystem, heard.scalar_subquery()).order_by(ArenaSystem.title)).all()
            closed = operator_settings.closed_dimensions(session)
            counts = (
                select(Battle.dimension, func.count())
                .join(Vote, Vote.battle == Battle.id)
                .where(Battle.purpose == "rating", Vote.standing == "counted", Vote.outcome != "skip")
                .group_by(Battle.dimension)
            )
            votes = {dimension: count for dimension, count in session.execute(counts)}
            names = session.scalars(select(ArenaItem.dimension).distinct().order_by(ArenaItem.dimension))
            return Pool(
                [(known.id, known.title, known.active, items) for known, items in systems],
                {name: (name not in closed, votes.get(name, 0)) for name in names},
                operator_settings.votes_goal(session),
            )

    def flagged_votes(self, newest: int = 100) -> list[FlaggedVote]:
        """Votes with a signal or a decision, the newest flag first."""
        with self._database.reading() as session:
            return flagged_votes(session, newest)

    def flagged_sessions(self, newest: int = 100) -> list[FlaggedSession]:
        """Listening sessions with a signal or a decision, the newest flag first."""
        with self._database.reading() as session:
            return flagged_sessions(session, newest)

    def trail(self, newest: int = 100) -> list[OperatorAction]:
        """The newest decisions, newest first."""
        with self._database.reading() as session:
            return operator_settings.trail(session, newest=newest)

    def _noted(self, action: str, subject: str, reason: str, by: str) -> Callable[[Session], None]:
        now = self._clock()
        return lambda session: operator_settings.note(session, action, subject, reason, by, now)


def _require_freezable(what: str) -> None:
    if what not in operator_settings.FREEZABLE:
        raise BadInput(f"{what!r} cannot be frozen; {' and '.join(operator_settings.FREEZABLE)} can")


def _checked(reason: str) -> str:
    reason = " ".join(reason.split())
    if not reason:
        raise BadInput("say why; the reason is kept beside the decision")
    if len(reason) > LONGEST_REASON:
        raise BadInput(f"the reason is {len(reason)} characters long; {LONGEST_REASON} are enough")
    return reason
