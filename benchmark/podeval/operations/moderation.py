"""An operator's decisions about the board as a whole, and what an operator reads: the trail and the flags.

Decisions about votes, listeners and submissions are made in the services that have them. Each decision has a reason and
a name, and is noted on the trail in the transaction that carries it out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from podeval.errors import BadInput
from podeval.store import operator_settings
from podeval.store.database import Database
from podeval.store.operator_settings import OperatorAction, validate_reason
from podeval.store.tables import ArenaOutput, ArenaSystem, Battle, Flag, ListeningSession, Vote

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class Signal:
    """A rule's signal: what it saw."""

    rule: str
    points: float
    detail: str


@dataclass(frozen=True)
class FlaggedVote:
    """A vote flagged by a rule or a person."""

    id: str
    voter: str
    at: datetime
    outcome: str
    a: str
    """Title of the system on side A."""
    b: str
    dimension: str
    comment: str
    counted: bool
    reason: str
    by: str
    signals: tuple[Signal, ...]
    others: int
    """Number of other counted votes of the voter."""


@dataclass(frozen=True)
class FlaggedSession:
    """A listening session flagged by a rule or a person."""

    test: str
    listener: str
    at: datetime
    finished: bool
    counted: bool
    reason: str
    by: str
    signals: tuple[Signal, ...]


class BoardModeration:
    """An operator's decisions about a board, with their trail; may be used by any number of threads.

    Args:
        database: database of the board.
        changed: called after a freeze or thaw, so that a service of this process reads the settings again.
        clock: returns the time in UTC.
    """

    def __init__(
        self,
        database: Database,
        changed: Callable[[], None] = lambda: None,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._database = database
        self._changed = changed
        self._clock = clock

    def freeze(self, what: str, sentence: str, by: str) -> None:
        """Take no votes, or no submissions, until `thaw`.

        Args:
            what: one of `operator_settings.FREEZABLE`.
            sentence: public explanation: why, and perhaps until when.
            by: name of the operator.

        Raises:
            BadInput: `what` is not freezable, or there is no sentence.
        """
        sentence = validate_reason(sentence)
        self._set_frozen(what, sentence, "frozen", sentence, by)

    def thaw(self, what: str, reason: str, by: str) -> None:
        """Take votes, or submissions, again.

        Raises:
            BadInput: `what` is not freezable, or there is no reason.
        """
        self._set_frozen(what, "", "thawed", validate_reason(reason), by)

    def frozen(self) -> dict[str, str]:
        """Return what is frozen, each with its sentence."""
        with self._database.reading() as session:
            return operator_settings.read_frozen(session)

    def flagged_votes(self, newest: int = 100) -> list[FlaggedVote]:
        """Return the votes with a signal or a decision, the newest flag first."""
        with self._database.reading() as session:
            return _read_flagged_votes(session, newest)

    def flagged_sessions(self, newest: int = 100) -> list[FlaggedSession]:
        """Return the listening sessions with a signal or a decision, the newest flag first."""
        with self._database.reading() as session:
            return _read_flagged_sessions(session, newest)

    def trail(self, newest: int = 100) -> list[OperatorAction]:
        """Return the newest decisions, newest first."""
        with self._database.reading() as session:
            return operator_settings.read_trail(session, newest=newest)

    def _set_frozen(self, what: str, sentence: str, action: str, reason: str, by: str) -> None:
        if what not in operator_settings.FREEZABLE:
            raise BadInput(f"{what!r} cannot be frozen; {' and '.join(operator_settings.FREEZABLE)} can")
        now = self._clock()

        def work(session: Session) -> None:
            operator_settings.freeze(session, what, sentence, by, now)
            operator_settings.note(session, action, what, reason, by, now)

        self._database.write(work)
        self._changed()


def _read_flagged_votes(session: Session, newest: int) -> list[FlaggedVote]:
    """Read the votes with the newest flags, newest first."""
    flags = _read_signals(session, Flag.vote, newest)
    # Read the votes, with the systems that met.
    a, b, first, second = aliased(ArenaOutput), aliased(ArenaOutput), aliased(ArenaSystem), aliased(ArenaSystem)
    query = (
        select(Vote, Battle.dimension, first.title, second.title)
        .join(Battle, Vote.battle == Battle.id)
        .join(a, Battle.output_a == a.id)
        .join(b, Battle.output_b == b.id)
        .join(first, a.system == first.id)
        .join(second, b.system == second.id)
        .where(Vote.id.in_(flags))
    )
    rows = {row[0].id: row for row in session.execute(query)}
    voters = {vote.voter for vote, *_ in rows.values()}
    # Count the other counted votes of each voter.
    counting = (
        select(Vote.voter, func.count()).where(Vote.voter.in_(voters), Vote.standing == "counted").group_by(Vote.voter)
    )
    others = {voter: count for voter, count in session.execute(counting)}
    result = []
    for id, signals in flags.items():
        if id not in rows:
            continue
        vote, dimension, title_a, title_b = rows[id]
        counted = vote.standing == "counted"
        result.append(
            FlaggedVote(
                id=id,
                voter=vote.voter,
                at=vote.recorded_at,
                outcome=vote.outcome,
                a=title_a,
                b=title_b,
                dimension=dimension,
                comment=vote.comment,
                counted=counted,
                reason=vote.standing_reason,
                by=vote.standing_by,
                signals=signals,
                others=others.get(vote.voter, 0) - counted,
            )
        )
    return result


def _read_flagged_sessions(session: Session, newest: int) -> list[FlaggedSession]:
    """Read the listening sessions with the newest flags, newest first."""
    flags = _read_signals(session, Flag.session, newest)
    rows = session.scalars(select(ListeningSession).where(ListeningSession.id.in_(flags)))
    by_id = {row.id: row for row in rows}
    return [
        FlaggedSession(
            test=row.test,
            listener=row.listener,
            at=row.started_at,
            finished=row.finished_at is not None,
            counted=row.standing == "counted",
            reason=row.standing_reason,
            by=row.standing_by,
            signals=signals,
        )
        for id, signals in flags.items()
        if (row := by_id.get(id)) is not None
    ]


def _read_signals(
    session: Session, about: InstrumentedAttribute[str | None], newest: int
) -> dict[str, tuple[Signal, ...]]:
    """Read the signals of rules by the vote or session they are about; those with the newest flag first."""
    last = func.max(Flag.number)
    query = select(about).where(about.is_not(None)).group_by(about).order_by(last.desc()).limit(newest)
    by_subject: dict[str, list[Signal]] = {str(id): [] for id in session.scalars(query)}
    signals = select(about, Flag).where(about.in_(by_subject), Flag.kind == "signal").order_by(Flag.number)
    for id, flag in session.execute(signals):
        by_subject[str(id)].append(Signal(flag.rule, flag.points, flag.detail))
    return {id: tuple(seen) for id, seen in by_subject.items()}
