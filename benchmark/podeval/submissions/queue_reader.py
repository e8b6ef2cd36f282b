"""Read the queue: submissions, their histories, who works on what, and what is in which place."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.store.database import Database
from podeval.store.submission_tables import Lease, SubmissionHistory, SubmissionRow
from podeval.submissions.queue_order import QueuePosition, list_positions, read_last_position
from podeval.submissions.states import get_row

Row = TypeVar("Row")


class QueueReader:
    """What there is in the queue of a database; nothing is changed."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def get(self, id: str) -> SubmissionRow:
        """Return a submission.

        Raises:
            BadInput: there is no such submission.
        """
        return self._read(lambda session: [get_row(session, id)])[0]

    def all(self, *, owner: str | None = None, states: Sequence[str] = ()) -> list[SubmissionRow]:
        """List submissions, newest first."""
        query = select(SubmissionRow).order_by(SubmissionRow.number.desc())
        query = query.where(SubmissionRow.owner == owner) if owner else query
        query = query.where(SubmissionRow.state.in_(states)) if states else query
        return self._read(lambda session: list(session.scalars(query)))

    def history(self, id: str) -> list[SubmissionHistory]:
        """List every change of a submission's state, in order."""
        self.get(id)
        query = select(SubmissionHistory).where(SubmissionHistory.submission == id).order_by(SubmissionHistory.step)
        return self._read(lambda session: list(session.scalars(query)))

    def leases(self) -> list[Lease]:
        """List the leases: which worker works on which submission."""
        return self._read(lambda session: list(session.scalars(select(Lease).order_by(Lease.taken_at))))

    def standings(self) -> dict[str, QueuePosition]:
        """List the position and estimate of every queued submission, in order."""
        with self.database.reading() as session:
            return list_positions(session)

    def end(self) -> QueuePosition:
        """Return the last position that a submission would get now."""
        with self.database.reading() as session:
            return read_last_position(session)

    def _read(self, rows: Callable[[Session], list[Row]]) -> list[Row]:
        """Read rows that stay readable after the session has ended."""
        with self.database.reading() as session:
            result = rows(session)
            session.expunge_all()
        return result
