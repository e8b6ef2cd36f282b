"""An operator's decisions about submissions: requeue, cancel, withdraw, take down.

Each decision has a reason and an author, and is recorded in the trail, in the transaction that carries it out; the
board changes immediately. A takedown also deletes the submission's content (audio and words). This content is deleted
immediately from the board, superseded runs, the arena, the tables, this machine's cache and judges' records. At its
next check, every worker deletes the content from its disk and its cache, and from the place where its jobs ran
(`worker`, `hub_generation`). The next push deletes the content from the Hub's record (`hub_record`). When a backup is
restored, the content is deleted according to the decisions in the replaced database and in the file next to the backup.
Figures, history and votes stay, as does the decision with its reason. The content is recognised by its digests
(`takedown`) and is never accepted again. Copies that people made cannot be deleted.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.errors import BadInput, PodevalError
from podeval.files import append_line, read_lines
from podeval.runs.run_folder import BACKUPS, REPLACED
from podeval.store.database import Database
from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction, note, validate_reason
from podeval.store.submission_tables import HubJob, SubmissionRow
from podeval.store.tables import ArenaOutput
from podeval.submissions import service
from podeval.submissions.benchmark_entries import list_run_folders
from podeval.submissions.job_budget import EMPTIED
from podeval.submissions.public_view import delete_log
from podeval.submissions.queue import Also, Clock, Queue
from podeval.submissions.states import OPEN
from podeval.submissions.takedown import (
    REASON,
    SpokenContent,
    delete_content,
    delete_tables,
    empty_quotes,
    find_played,
    is_run_of,
    keep_marks,
    list_boards,
    list_runs,
    read_taken_down_marks,
)

Tell = Callable[[str], None]
"""Function that receives a sentence about each copy outside the board that a person must delete."""

_LOG = logging.getLogger("podeval.submissions")

IN_HISTORY = service.OPERATOR.name
"""Author of decisions in a submission's public history; only the trail contains the person's name."""


class SubmissionModeration:
    """An operator's decisions about submissions; any number of threads may use the object.

    Args:
        queue: queue of submissions.
        board: folder of runs.
        rebuild: function that rebuilds the board's tables.
        retired: function that is called after recordings have been deleted, so that this process stops playing them.
        clock: function that returns the time in UTC.
    """

    def __init__(
        self,
        queue: Queue,
        board: Path,
        rebuild: Callable[[Path], None],
        retired: Callable[[], None] = lambda: None,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._queue, self._board = queue, board
        self._rebuild, self._retired, self._clock = rebuild, retired, clock

    def requeue(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Queue a failed or cancelled submission again; its finished items are kept.

        Raises:
            BadInput: the submission is in another state, or never passed the gate.
        """
        reason, also = self._note("submission requeued", id, reason, by)
        return self._queue.retry(id, IN_HISTORY, reason=reason, also=also)

    def cancel(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Stop an unpublished submission.

        Raises:
            BadInput: there is nothing to stop.
        """
        reason, also = self._note("submission cancelled", id, reason, by)
        return self._queue.cancel(id, IN_HISTORY, reason=reason, also=also)

    def withdraw(self, id: str, reason: str, by: str) -> SubmissionRow:
        """Take a published submission off the board; its history stays, and its runs are kept as superseded.

        Raises:
            BadInput: the submission is not published.
        """
        reason, also = self._note("submission withdrawn", id, reason, by)
        service.withdraw(self._queue, id, IN_HISTORY, self._board, reason=reason, also=also)
        self.settle()
        return self._queue.get(id)

    def take_down(self, id: str, reason: str, by: str, tell: Tell = _LOG.warning) -> SubmissionRow:
        """Take a submission off the board and permanently delete its content; figures and history stay.

        Raises:
            BadInput: there is no such submission.
        """
        take_down(self._queue, id, by, self._board, validate_reason(reason), self._clock(), tell)
        self._retired()
        self.settle()
        return self._queue.get(id)

    def settle(self) -> None:
        """Take withdrawn submissions off the board, including those whose withdrawal was interrupted."""
        service.settle(self._queue, self._board)
        self._rebuild(self._board)

    def _note(self, action: str, subject: str, reason: str, by: str) -> tuple[str, Also]:
        """Return the reason, and a function that records a decision in the transaction that carries it out."""
        now, reason = self._clock(), validate_reason(reason)
        return reason, lambda session: note(session, action, subject, reason, by, now)


@dataclass(frozen=True)
class TakenDown:
    """A decision to take a submission down; the marks identify its content."""

    submission: str
    reason: str
    by: str
    at: datetime
    marks: frozenset[str] = frozenset()


def take_down(
    queue: Queue, id: str, by: str, board: Path, reason: str, now: datetime, tell: Tell = _LOG.warning
) -> None:
    """Take down a submission in any state; if the process is killed, the same call finishes the work.

    The trail contains the name of the person who decides; the public history does not.

    Raises:
        BadInput: there is no such submission.
    """
    queue.get(id)
    marks = {mark for mark, other in read_taken_down_marks(queue.database).items() if other == id}
    for sentence in _list_out_of_reach(queue, id, board):
        tell(sentence)
    _carry_out(queue, TakenDown(id, reason, by, now, frozenset(marks)), board, tell)


def _carry_out(queue: Queue, decision: TakenDown, board: Path, tell: Tell = _LOG.warning) -> None:
    """Carry out a decision, which may come from a board that is being replaced by a restore."""
    try:
        row = queue.get(decision.submission)
    except BadInput:
        # The submission is newer than the backup, but its content is still recognised.
        queue.database.write(lambda session: _keep_takedown(session, decision))
        return
    content = SpokenContent(set(decision.marks))
    for run in (run for folder in list_boards(board) for run in list_runs(row, folder)):
        if is_run_of(run, row):
            content.add(run)
    played = find_played(queue.database, content, board)
    decision = replace(decision, marks=frozenset(content.marks))
    _decide(queue, row, decision, content, board)
    _note_beside_backups(decision, board, tell)
    for path in sorted(played):
        if not path.resolve().is_relative_to(board.resolve()):
            tell(f"{path}, which the arena or a listening test played, is a copy that podeval did not make: delete it")
    empty_quotes(queue.database, content, board, played)
    delete_content(row, content, board)


def list_takedowns(database: Database) -> list[TakenDown]:
    """List the decisions of a database with all digests of each submission's content."""
    marks: dict[str, set[str]] = {}
    for mark, submission in read_taken_down_marks(database).items():
        marks.setdefault(submission, set()).add(mark)
    query = select(OperatorAction).where(OperatorAction.action == TAKEN_DOWN).order_by(OperatorAction.number)
    return [
        TakenDown(row.subject, row.reason, row.made_by, row.made_at, frozenset(marks.get(row.subject, ())))
        for row in database.list_rows(query)
    ]


def _keep_takedown(session: Session, decision: TakenDown) -> None:
    """Store a decision with its digests; storing it again changes nothing."""
    same = (OperatorAction.action == TAKEN_DOWN, OperatorAction.subject == decision.submission)
    if session.scalar(select(OperatorAction.id).where(*same, OperatorAction.made_at == decision.at).limit(1)) is None:
        note(session, TAKEN_DOWN, decision.submission, decision.reason, decision.by, decision.at)
    keep_marks(session, decision.submission, decision.marks, decision.by, decision.at)


def _decide(queue: Queue, row: SubmissionRow, decision: TakenDown, content: SpokenContent, board: Path) -> None:
    """Store the decision, end the submission, and retire its outputs in the arena."""
    reason = f"{REASON}: {decision.reason}"
    places = tuple(f"{run.path.resolve()}/" for _, run in list_run_folders(row, board))

    def also(session: Session) -> None:
        delete_log(session, row.id)
        _keep_takedown(session, decision)
        for output in session.scalars(select(ArenaOutput).where(ArenaOutput.audio != "")):
            # Copies of the outputs elsewhere are also retired; votes on them stay.
            if output.sha256 in content.contents or str(Path(output.audio).resolve()).startswith(places):
                output.active, output.audio = False, ""

    if row.state == "published":
        service.withdraw(queue, row.id, IN_HISTORY, board, reason=reason, also=also)
    elif row.state in OPEN:
        queue.cancel(row.id, IN_HISTORY, reason=reason, also=also)
    else:
        queue.database.write(also)


def _list_out_of_reach(queue: Queue, id: str, board: Path) -> Iterator[str]:
    """Yield sentences about copies that a takedown does not reach: replaced databases, and the Hub."""
    file = Path(str(queue.database.url.database)).name
    for path in sorted(board.glob(f"{REPLACED}*/{file}")) if queue.database.is_sqlite else ():
        yield f"{path} is a replaced database that still contains the texts: delete it"
    left = select(HubJob.namespace).where(HubJob.submission == id, HubJob.stage != EMPTIED)
    for namespace in sorted(set(queue.database.list_rows(left))):
        yield (
            f"jobs of {namespace} left {id}/ on the Hub, in the bucket and in the dataset of requests: the next "
            "`podeval worker --executor hf-jobs` deletes both"
        )


def repeat_takedowns(copy: Database, runs: Path, replaced: list[TakenDown], backup: Path) -> list[str]:
    """Delete taken-down content from a restored database and runs before they are put in place.

    Args:
        copy: the restored database.
        runs: the unpacked runs.
        replaced: decisions from the replaced database.
        backup: the backup; decisions made after the backup are read from the file next to it.

    Returns:
        The ids of the taken-down submissions.

    Raises:
        BadInput: the file next to the backup is damaged.
    """
    decisions = [*list_takedowns(copy), *_read_beside(backup), *replaced]
    for decision in dict.fromkeys(decisions):
        _carry_out(Queue(copy), decision, runs)
    if decisions:
        delete_tables(runs)
    return list(dict.fromkeys(decision.submission for decision in decisions))


def _note_beside_backups(decision: TakenDown, board: Path, tell: Tell) -> None:
    """Note a decision next to each existing backup of a board, for a restore on another machine."""
    line = asdict(decision) | {"at": decision.at.isoformat(), "marks": sorted(decision.marks)}
    for path in sorted({Path(noted["path"]) for noted in read_lines(board / BACKUPS)}):
        try:
            # The name of an incomplete backup does not match this pattern.
            if path.is_file() or any(path.parent.glob(f".{path.name}.*.partial")):
                append_line(_locate_beside(path), line)
        except (PodevalError, OSError) as error:
            tell(f"{path} is a backup, and the takedown cannot be noted next to it ({error}): delete it")


def _read_beside(backup: Path) -> list[TakenDown]:
    """Read the decisions in the file next to a backup."""
    path = _locate_beside(backup)
    try:
        return [
            TakenDown(**line | {"at": datetime.fromisoformat(line["at"]), "marks": frozenset(line["marks"])})
            for line in read_lines(path)
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise BadInput(f"{path}, which lists what was taken down since the backup, is damaged ({error})") from None


def _locate_beside(backup: Path) -> Path:
    return backup.with_name(f"{backup.name}.taken-down.jsonl")
