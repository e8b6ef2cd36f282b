"""An operator's decisions about the arena: the votes that count, the compared systems and items, and the desired number
of votes.

Nothing is deleted; ratings change at once. Each decision has a reason and a name, and is noted on the trail in the
transaction that carries it out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.arena import vote_review
from podeval.arena.service import Arena
from podeval.errors import BadInput
from podeval.store import operator_settings
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Vote
from podeval.store.vote_counts import count_rated

Clock = Callable[[], datetime]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Pool:
    """The pool of the arena: systems and whether new battles may show them, dimensions and whether they are open.

    Attributes:
        systems: id, title, whether in the pool, and number of items with a recording.
        dimensions: dimensions by name, each with whether it is open and its counted votes.
        goal: desired number of counted votes on each dimension; None if not set.
    """

    systems: list[tuple[str, str, bool, int]]
    dimensions: dict[str, tuple[bool, int]]
    goal: int | None


class ArenaModeration:
    """An operator's decisions about an arena; may be used by any number of threads.

    Args:
        arena: the arena.
        clock: returns the time in UTC.
    """

    def __init__(self, arena: Arena, clock: Clock = lambda: datetime.now(UTC)) -> None:
        self._arena = arena
        self._database = arena.database
        self._clock = clock

    def count_vote(self, vote: str, counted: bool, reason: str, by: str) -> None:
        """Exclude a vote from the public rating, or include it again.

        Raises:
            BadInput: there is no such vote, or no reason or name is given.
        """
        self._arena.decide(vote, "counted" if counted else "excluded", operator_settings.validate_reason(reason), by)

    def count_voter(self, voter: str, counted: bool, reason: str, by: str) -> int:
        """Exclude all votes of a voter from the public rating, or include them again; return how many changed.

        Raises:
            BadInput: nobody with that pseudonym voted, or no reason or name is given.
        """
        standing, reason = "counted" if counted else "excluded", operator_settings.validate_reason(reason)
        now = self._clock()

        def change(session: Session) -> list[str]:
            votes = list(session.scalars(select(Vote).where(Vote.voter == voter)))
            if not votes:
                raise BadInput(f"there is no vote of {voter}")
            changing = [vote for vote in votes if vote.standing != standing]
            vote_review.decide(session, [(vote, standing, reason) for vote in changing], by, now)
            return [vote.id for vote in changing]

        changed = self._carry_out(f"voter {standing}", voter, reason, by, change)
        self._arena.publish_decisions(changed)
        return len(changed)

    def open_dimension(self, dimension: str, opened: bool, reason: str, by: str) -> None:
        """Open or close a dimension for new battles; its votes count either way.

        Raises:
            BadInput: it is not a dimension of any battle, or no reason is given.
        """

        def change(session: Session) -> None:
            if session.scalar(select(ArenaItem.id).where(ArenaItem.dimension == dimension).limit(1)) is None:
                raise BadInput(f"no dimension is called {dimension!r}; `podeval arena status` lists the existing ones")
            others = operator_settings.read_closed_dimensions(session) - {dimension}
            closed = sorted(others if opened else others | {dimension})
            operator_settings.keep_setting(session, operator_settings.CLOSED_DIMENSIONS, closed, by, self._clock())

        self._carry_out(f"dimension {'opened' if opened else 'closed'}", dimension, reason, by, change)

    def pool_system(self, system: str, active: bool, reason: str, by: str) -> None:
        """Add a system to the pool for new battles, or remove it; its votes count either way.

        Raises:
            BadInput: the arena does not have it, or no reason is given.
        """

        def change(session: Session) -> None:
            row = session.get(ArenaSystem, system)
            if row is None:
                raise BadInput(f"the arena has no system {system}")
            row.active = active

        self._carry_out(f"system {'into' if active else 'out of'} the pool", system, reason, by, change)

    def set_goal(self, votes: int | None, reason: str, by: str) -> None:
        """Set how many counted votes are wanted on each dimension; pages show it next to the present number.

        Raises:
            BadInput: the value is not a number of votes, or no reason is given.
        """
        if votes is not None and not 1 <= votes <= 10_000_000:
            raise BadInput(f"{votes} is not a valid target number of votes")

        keep = partial(operator_settings.keep_setting, name=operator_settings.VOTES_GOAL, value=votes, by=by)
        self._carry_out("votes goal", str(votes or "none"), reason, by, partial(keep, now=self._clock()))

    def _carry_out(self, action: str, subject: str, reason: str, by: str, change: Callable[[Session], Found]) -> Found:
        """Carry out a decision and note it on the trail, both or neither; it applies to the next battle."""
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
