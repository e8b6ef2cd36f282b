"""What a worker says while it works on a submission: a line when it begins, for each item, and for each run."""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from podeval.runs.run_folder import Output
from podeval.store.database import Database
from podeval.store.submission_tables import SubmissionLogLine, SubmissionRow

MOST_LINES, LONGEST = 5_000, 500
"""Lines that are kept of a submission, and characters of one."""


class SubmissionLog:
    """The log of the submissions of a database.

    Args:
        database: of the queue.
        clock: returns the time in UTC.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    def note(self, submission: SubmissionRow, text: str, item: str = "") -> None:
        """Write a line; nothing is written where there are too many already.

        Args:
            submission: that is worked on.
            text: a sentence without its end.
            item: that it is about; the line takes the place of an earlier one about the same item.
        """
        now = self._clock()

        def write(session: Session) -> None:
            of_this = SubmissionLogLine.submission == submission.id
            if item:
                same = select(SubmissionLogLine).where(of_this, SubmissionLogLine.item == item)
                earlier = session.scalars(same).first()
                if earlier is not None and earlier.text == text[:LONGEST]:
                    return
                session.execute(delete(SubmissionLogLine).where(of_this, SubmissionLogLine.item == item))
            last = session.scalar(select(func.max(SubmissionLogLine.number)).where(of_this)) or 0
            if last < MOST_LINES:
                line = SubmissionLogLine(submission=submission.id, number=last + 1, attempt=submission.attempt)
                line.item, line.text, line.at = item[:200], text[:LONGEST], now
                session.add(line)

        self._database.write(write)

    def note_output(self, submission: SubmissionRow, item: str, output: Output | None) -> None:
        """Write that an item is there, or why it is not.

        Args:
            submission: that is worked on.
            item: `<benchmark>/<split>/<item>`.
            output: of the item.
        """
        if output is None:
            return
        if output.failed:
            self.note(submission, f"failed: {output.failed}", item)
            return
        length = f"{output.duration:.1f} s of audio" if output.duration else "made"
        spent = f", made in {output.wall_seconds:.1f} s" if output.wall_seconds else ""
        self.note(submission, f"{length}{spent}", item)

    def lines(self, id: str) -> list[SubmissionLogLine]:
        """List the lines of a submission, in order."""
        query = select(SubmissionLogLine).where(SubmissionLogLine.submission == id).order_by(SubmissionLogLine.number)
        with self._database.reading() as session:
            rows = list(session.scalars(query))
            session.expunge_all()
        return rows


def delete_log(session: Session, id: str) -> None:
    """Delete the log of a submission, which may quote what it said."""
    session.execute(delete(SubmissionLogLine).where(SubmissionLogLine.submission == id))
