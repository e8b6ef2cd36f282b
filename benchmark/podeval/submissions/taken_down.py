"""Takedown decisions that must outlive a restore: in a database, and in a file beside each backup."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.store.database import Database
from podeval.store.files import append_line, read_lines
from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction, note
from podeval.submissions.content_marks import keep_marks, read_taken_down_marks

ENDING = ".taken-down.jsonl"
"""Ending of the file beside a backup, after the backup's own name."""


@dataclass(frozen=True)
class TakenDown:
    """One decision to take a submission down.

    Attributes:
        submission: its id.
        reason: shown with it.
        by: who decided.
        at: time of the decision, ISO 8601.
        marks: digests by which its content is recognised.
        contents: SHA-256 of its recordings' files, where they are known.
    """

    submission: str
    reason: str
    by: str
    at: str
    marks: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()


def keep_takedown(session: Session, decision: TakenDown) -> None:
    """Store a decision with its digests; storing it again changes nothing. The session must be a writing one."""
    now = datetime.fromisoformat(decision.at)
    same = (OperatorAction.action == TAKEN_DOWN, OperatorAction.subject == decision.submission)
    if session.scalar(select(OperatorAction.id).where(*same, OperatorAction.made_at == now).limit(1)) is None:
        note(session, TAKEN_DOWN, decision.submission, decision.reason, decision.by, now)
    keep_marks(session, decision.submission, decision.marks, decision.by, now)


def list_takedowns(database: Database) -> list[TakenDown]:
    """List the decisions of a database, the newest of each submission."""
    marks: dict[str, list[str]] = {}
    for mark, submission in read_taken_down_marks(database).items():
        marks.setdefault(submission, []).append(mark)
    query = select(OperatorAction).where(OperatorAction.action == TAKEN_DOWN).order_by(OperatorAction.number)
    with database.reading() as session:
        return list(
            {
                row.subject: TakenDown(
                    row.subject, row.reason, row.made_by, row.made_at.isoformat(), tuple(marks.get(row.subject, ()))
                )
                for row in session.scalars(query)
            }.values()
        )


def write_beside(backup: Path, decision: TakenDown) -> None:
    """Write a decision beside a backup that was made before it.

    Raises:
        BadInput: the folder cannot be written to.
        DiskFull: there is no space.
    """
    if decision not in read_beside(backup):
        append_line(_file_beside(backup), asdict(decision))


def read_beside(backup: Path) -> list[TakenDown]:
    """Read the decisions that were written beside a backup.

    Raises:
        BadInput: the file is damaged; the message names the line.
    """
    file = _file_beside(backup)
    try:
        lines = read_lines(file)
        return [
            TakenDown(**{**line, "marks": tuple(line["marks"]), "contents": tuple(line["contents"])}) for line in lines
        ]
    except (TypeError, KeyError) as error:
        raise BadInput(f"{file} is damaged ({error}); it says what was taken down since {backup} was made") from None


def merge_takedowns(*parts: Iterable[TakenDown]) -> list[TakenDown]:
    """Merge decisions into one for each submission, with all digests of its content."""
    kept: dict[str, TakenDown] = {}
    for each in (decision for part in parts for decision in part):
        other = kept.get(each.submission, each)
        marks, contents = {*each.marks, *other.marks}, {*each.contents, *other.contents}
        kept[each.submission] = TakenDown(
            each.submission, each.reason, each.by, each.at, tuple(sorted(marks)), tuple(sorted(contents))
        )
    return list(kept.values())


def _file_beside(backup: Path) -> Path:
    return backup.with_name(backup.name + ENDING)
