"""An operator's decisions about the board as a whole, and an operator's reading: the trail and the flags.

Decisions about votes, listeners and submissions are made in their services. Each decision has a reason and
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
from podeval.store.tables import ArenaOutput, ArenaSystem, Battle, Flag, ListeningSession, Vote

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class FlaggedVote:
    """A vote flagged by a rule or a person.

    Attributes:
        vote: the vote.
        dimension: the dimension of the vote.
        a: title of the system on side A.
        b: title of the system on side B.
        signals: observations of rules.
        others: number of other counted votes of the voter.
    """

    vote: Vote
    dimension: str
    a: str
    b: str
    signals: list[Flag]
    others: int


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
            sentence: public explanation with the reason, and perhaps the end.
            by: name of the operator.

        Raises:
            BadInput: `what` is not freezable, or there is no sentence.
        """
        sentence = operator_settings.validate_reason(sentence)
        self._set_frozen(what, sentence, "frozen", sentence, by)

    def thaw(self, what: str, reason: str, by: str) -> None:
        """Take votes, or submissions, again.

        Raises:
            BadInput: `what` is not freezable, or there is no reason.
        """
        self._set_frozen(what, "", "thawed", operator_settings.validate_reason(reason), by)

    def flagged_votes(self, newest: int = 100) -> list[FlaggedVote]:
        """Return the votes with a signal or a decision, the newest flag first."""
        with self._database.reading() as session:
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
                select(Vote.voter, func.count())
                .where(Vote.voter.in_(voters), Vote.standing == "counted")
                .group_by(Vote.voter)
            )
            counts = {voter: count for voter, count in session.execute(counting)}
            return [
                FlaggedVote(*row, signals, counts.get(row[0].voter, 0) - (row[0].standing == "counted"))
                for id, signals in flags.items()
                if (row := rows.get(id)) is not None
            ]

    def flagged_sessions(self, newest: int = 100) -> list[tuple[ListeningSession, list[Flag]]]:
        """Return the listening sessions with a signal or a decision, with the signals, the newest flag first."""
        with self._database.reading() as session:
            flags = _read_signals(session, Flag.session, newest)
            rows = session.scalars(select(ListeningSession).where(ListeningSession.id.in_(flags)))
            by_id = {row.id: row for row in rows}
        return [(by_id[id], signals) for id, signals in flags.items() if id in by_id]

    def trail(self, newest: int = 100) -> list[operator_settings.OperatorAction]:
        """Return the newest decisions, newest first."""
        return self._database.read(lambda session: operator_settings.read_trail(session, newest=newest))

    def _set_frozen(self, what: str, sentence: str, action: str, reason: str, by: str) -> None:
        if what not in operator_settings.FREEZABLE:
            raise BadInput(f"{what!r} cannot be frozen; {' and '.join(operator_settings.FREEZABLE)} can")
        now = self._clock()

        def work(session: Session) -> None:
            operator_settings.freeze(session, what, sentence, by, now)
            operator_settings.note(session, action, what, reason, by, now)

        self._database.write(work)
        self._changed()


def _read_signals(session: Session, about: InstrumentedAttribute[str | None], newest: int) -> dict[str, list[Flag]]:
    """Read the signals of rules by their vote or session, with the newest flag first."""
    last = func.max(Flag.number)
    query = select(about).where(about.is_not(None)).group_by(about).order_by(last.desc()).limit(newest)
    by_subject: dict[str, list[Flag]] = {str(id): [] for id in session.scalars(query)}
    signals = select(about, Flag).where(about.in_(by_subject), Flag.kind == "signal").order_by(Flag.number)
    for id, flag in session.execute(signals):
        by_subject[str(id)].append(flag)
    return by_subject
