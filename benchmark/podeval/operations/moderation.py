"""An operator's decisions about the board as a whole, and what an operator reads: the trail and the flags.

Decisions about votes, listeners and submissions are made in the services that have them. Each decision has a reason and
a name, and is noted on the trail in the transaction that carries it out.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.operations.flagged import FlaggedSession, FlaggedVote, read_flagged_sessions, read_flagged_votes
from podeval.store import operator_settings
from podeval.store.database import Database
from podeval.store.operator_settings import OperatorAction, validate_reason

Clock = Callable[[], datetime]


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
            return read_flagged_votes(session, newest)

    def flagged_sessions(self, newest: int = 100) -> list[FlaggedSession]:
        """Return the listening sessions with a signal or a decision, the newest flag first."""
        with self._database.reading() as session:
            return read_flagged_sessions(session, newest)

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
