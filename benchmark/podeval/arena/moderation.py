"""Operators' decisions about the board and its arena, and their records: the audit trail, and the flags of votes.

Operators decide which votes count, which systems and items the arena compares, and how many votes are wanted. Nothing
is deleted, and ratings change immediately. Decisions about listening tests and submissions are handled by their own
services. Each decision has a reason and an author, and is recorded in the trail in the transaction that carries it out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from podeval.arena import vote_review
from podeval.arena.service import Arena
from podeval.errors import BadInput
from podeval.store import Database, operator_settings
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Flag, ListeningSession, Vote
from podeval.store.vote_counts import count_rated

Clock = Callable[[], datetime]
Found = TypeVar("Found")


@dataclass(frozen=True)
class FlaggedVote:
    """A vote that a rule or a person flagged.

    Attributes:
        vote: the vote.
        dimension: the dimension of the vote.
        a: title of the system on side A.
        b: title of the system on side B.
        signals: findings of the rules.
        others: number of the voter's other counted votes.
    """

    vote: Vote
    dimension: str
    a: str
    b: str
    signals: list[Flag]
    others: int


class BoardModeration:
    """Carries out an operator's decisions about a board, and keeps a trail of these decisions; thread-safe.

    Args:
        database: database of the board.
        changed: function that is called after a freeze or thaw, so that a service in this process reads the settings
            again.
        clock: function that returns the current time in UTC.
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
        """Stop accepting votes or submissions until `thaw` is called.

        Args:
            what: one of `operator_settings.FREEZABLE`.
            sentence: public explanation, with the reason and, if known, the expected end of the freeze.
            by: name of the operator.

        Raises:
            BadInput: `what` is not freezable, or the sentence is empty.
        """
        sentence = operator_settings.validate_reason(sentence)
        self._set_frozen(what, sentence, "frozen", sentence, by)

    def thaw(self, what: str, reason: str, by: str) -> None:
        """Accept votes or submissions again.

        Raises:
            BadInput: `what` is not freezable, or no reason is given.
        """
        self._set_frozen(what, "", "thawed", operator_settings.validate_reason(reason), by)

    def flagged_votes(self, newest: int = 100) -> list[FlaggedVote]:
        """Return the votes with a signal or a decision, most recently flagged first."""
        with self._database.reading() as session:
            flags = _read_signals(session, Flag.vote, newest)
            # Read the votes, with the systems that they compare.
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
            # Count each voter's other counted votes.
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
        """Return listening sessions with a signal or a decision, and their signals, most recently flagged first."""
        with self._database.reading() as session:
            flags = _read_signals(session, Flag.session, newest)
            rows = session.scalars(select(ListeningSession).where(ListeningSession.id.in_(flags)))
            by_id = {row.id: row for row in rows}
        return [(by_id[id], signals) for id, signals in flags.items() if id in by_id]

    def trail(self, newest: int = 100) -> list[operator_settings.OperatorAction]:
        """Return the latest decisions, newest first."""
        return self._database.read(lambda session: operator_settings.read_trail(session, newest=newest))

    def _set_frozen(self, what: str, sentence: str, action: str, reason: str, by: str) -> None:
        if what not in operator_settings.FREEZABLE:
            raise BadInput(f"{what!r} cannot be frozen; only {' and '.join(operator_settings.FREEZABLE)} can")
        now = self._clock()

        def work(session: Session) -> None:
            operator_settings.freeze(session, what, sentence, by, now)
            operator_settings.note(session, action, what, reason, by, now)

        self._database.write(work)
        self._changed()


@dataclass(frozen=True)
class Pool:
    """The pool of the arena: its systems, marked as available for new battles or not, and its dimensions, marked as
    open or closed.

    Attributes:
        systems: the id and title of each system, whether it is in the pool, and the number of items for which it has a
            recording.
        dimensions: whether each dimension is open, and its number of counted votes, by the dimension's name.
        goal: target number of counted votes for each dimension; None if not set.
    """

    systems: list[tuple[str, str, bool, int]]
    dimensions: dict[str, tuple[bool, int]]
    goal: int | None


class ArenaModeration:
    """Carries out an operator's decisions about an arena; thread-safe.

    Args:
        arena: the arena.
        clock: function that returns the current time in UTC.
    """

    def __init__(self, arena: Arena, clock: Clock = lambda: datetime.now(UTC)) -> None:
        self._arena = arena
        self._database = arena.database
        self._clock = clock

    def count_vote(self, vote: str, counted: bool, reason: str, by: str) -> None:
        """Exclude a vote from the public ranking, or include it again.

        Raises:
            BadInput: the vote does not exist, or no reason or name is given.
        """
        self._arena.decide(vote, "counted" if counted else "excluded", operator_settings.validate_reason(reason), by)

    def count_voter(self, voter: str, counted: bool, reason: str, by: str) -> int:
        """Exclude all votes of a voter from the public ranking, or include them again; return the number of changed
        votes.

        Raises:
            BadInput: no voter has that pseudonym, or no reason or name is given.
        """
        standing, reason = "counted" if counted else "excluded", operator_settings.validate_reason(reason)
        now = self._clock()

        def change(session: Session) -> list[str]:
            votes = list(session.scalars(select(Vote).where(Vote.voter == voter)))
            if not votes:
                raise BadInput(f"there are no votes by {voter}")
            changing = [vote for vote in votes if vote.standing != standing]
            vote_review.decide(session, [(vote, standing, reason) for vote in changing], by, now)
            return [vote.id for vote in changing]

        changed = self._carry_out(f"voter {standing}", voter, reason, by, change)
        self._arena.publish_decisions(changed)
        return len(changed)

    def open_dimension(self, dimension: str, opened: bool, reason: str, by: str) -> None:
        """Open or close a dimension for new battles; existing votes on it count in either case.

        Raises:
            BadInput: no item has this dimension, or no reason is given.
        """

        def change(session: Session) -> None:
            if session.scalar(select(ArenaItem.id).where(ArenaItem.dimension == dimension).limit(1)) is None:
                raise BadInput(f"no dimension is called {dimension!r}; `podeval arena status` lists the existing ones")
            others = operator_settings.read_closed_dimensions(session) - {dimension}
            closed = sorted(others if opened else others | {dimension})
            operator_settings.keep_setting(session, operator_settings.CLOSED_DIMENSIONS, closed, by, self._clock())

        self._carry_out(f"dimension {'opened' if opened else 'closed'}", dimension, reason, by, change)

    def pool_system(self, system: str, active: bool, reason: str, by: str) -> None:
        """Add a system to the pool for new battles, or remove it; existing votes on it count in either case.

        Raises:
            BadInput: the arena does not have this system, or no reason is given.
        """

        def change(session: Session) -> None:
            row = session.get(ArenaSystem, system)
            if row is None:
                raise BadInput(f"the arena has no system with the id {system!r}")
            row.active = active

        self._carry_out(f"system {'into' if active else 'out of'} the pool", system, reason, by, change)

    def set_goal(self, votes: int | None, reason: str, by: str) -> None:
        """Set the target number of counted votes for each dimension; pages show it next to the current number.

        Raises:
            BadInput: the value is not a valid number of votes, or no reason is given.
        """
        if votes is not None and not 1 <= votes <= 10_000_000:
            raise BadInput(f"{votes} is not a valid target number of votes")

        keep = partial(operator_settings.keep_setting, name=operator_settings.VOTES_GOAL, value=votes, by=by)
        self._carry_out("votes goal", str(votes or "none"), reason, by, partial(keep, now=self._clock()))

    def _carry_out(self, action: str, subject: str, reason: str, by: str, change: Callable[[Session], Found]) -> Found:
        """Carry out a decision, effective from the next battle on, and record it in the trail, in one transaction."""
        reason = operator_settings.validate_reason(reason)

        def work(session: Session) -> Found:
            done = change(session)
            operator_settings.note(session, action, subject, reason, by, self._clock())
            return done

        done = self._database.write(work)
        self._arena.changed()
        return done

    def pool(self) -> Pool:
        """Return the systems, items and dimensions that the arena compares."""
        with self._database.reading() as session:
            playable = select(func.count()).where(
                ArenaOutput.system == ArenaSystem.id, ArenaOutput.active, ArenaOutput.audio != ""
            )
            systems = session.execute(select(ArenaSystem, playable.scalar_subquery()).order_by(ArenaSystem.title)).all()
            closed = operator_settings.read_closed_dimensions(session)
            names = session.scalars(select(ArenaItem.dimension).distinct().order_by(ArenaItem.dimension))
            return Pool(
                [(system.id, system.title, system.active, items) for system, items in systems],
                {name: (name not in closed, count_rated(session, name)) for name in names},
                operator_settings.read_votes_goal(session),
            )


def _read_signals(session: Session, about: InstrumentedAttribute[str | None], newest: int) -> dict[str, list[Flag]]:
    """Read the rules' signals by vote or session, most recently flagged first."""
    last = func.max(Flag.number)
    query = select(about).where(about.is_not(None)).group_by(about).order_by(last.desc()).limit(newest)
    by_subject: dict[str, list[Flag]] = {str(id): [] for id in session.scalars(query)}
    signals = select(about, Flag).where(about.in_(by_subject), Flag.kind == "signal").order_by(Flag.number)
    for id, flag in session.execute(signals):
        by_subject[str(id)].append(flag)
    return by_subject
