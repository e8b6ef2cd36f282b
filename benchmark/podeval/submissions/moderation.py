"""An operator's decisions about submissions: queued again, cancelled, withdrawn, or taken down.

Only taken-down content is deleted; the board follows at once. Each decision has a reason and a name, and is noted on
the trail in the transaction that carries it out.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.orm import Session

from podeval.store import operator_settings
from podeval.store.operator_settings import validate_reason
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions import service, takedown
from podeval.submissions.queue import Queue

Clock = Callable[[], datetime]

_LOG = logging.getLogger("podeval.submissions")

IN_HISTORY = service.OPERATOR.name
"""Author of decisions in a submission's public history; the trail has the name."""


class SubmissionModeration:
    """An operator's decisions about submissions; may be used by any number of threads.

    Args:
        queue: queue of submissions.
        board: folder of runs.
        rebuild: builds the board's tables again.
        retired: called after recordings were deleted, so that this process stops playing them.
        clock: returns the time in UTC.
    """

    def __init__(
        self,
        queue: Queue,
        board: Path,
        rebuild: Callable[[Path], None],
        retired: Callable[[], None] = lambda: None,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._queue = queue
        self._board = board
        self._rebuild = rebuild
        self._retired = retired
        self._clock = clock

    def requeue(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Queue a failed or cancelled submission again; its finished items are kept.

        Raises:
            BadInput: it is in another state, or never passed the gate.
        """
        reason = validate_reason(reason)
        return self._queue.retry(id, IN_HISTORY, reason=reason, also=self._note("submission requeued", id, reason, by))

    def cancel(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Stop a submission that is not published.

        Raises:
            BadInput: there is nothing to stop.
        """
        reason = validate_reason(reason)
        note = self._note("submission cancelled", id, reason, by)
        return self._queue.cancel(id, IN_HISTORY, reason=reason, also=note)

    def withdraw(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Take a published submission off the board; its history stays, its runs are kept aside.

        Raises:
            BadInput: it is not published.
        """
        reason = validate_reason(reason)
        note = self._note("submission withdrawn", id, reason, by)
        service.withdraw(self._queue, id, IN_HISTORY, self._board, reason=reason, also=note)
        self.settle()
        return self._queue.get(id)

    def take_down(self, id: str, reason: str, by: str, tell: Callable[[str], None] = _LOG.warning) -> SubmissionRow:
        """Take a submission off the board and delete its content, for good; figures and history stay.

        `tell` is called with a sentence for each copy elsewhere that was cleared or needs a person's attention.

        Raises:
            BadInput: there is no such submission.
        """
        takedown.take_down(self._queue, id, by, self._board, validate_reason(reason), self._clock(), tell)
        self._retired()
        self.settle()
        return self._queue.get(id)

    def settle(self) -> None:
        """Take withdrawn submissions off the board, also where an earlier decision was killed in between."""
        service.settle(self._queue, self._board)
        self._rebuild(self._board)

    def _note(self, action: str, subject: str, reason: str, by: str) -> Callable[[Session], None]:
        """Return a function that notes a decision on the trail, for the transaction that carries it out."""
        now = self._clock()
        return lambda session: operator_settings.note(session, action, subject, reason, by, now)
