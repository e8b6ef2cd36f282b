"""The states of a submission: which may follow which, and the one function that changes a state and its history."""

from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.sentences import write_sentence
from podeval.store.submission_tables import SubmissionHistory, SubmissionRow

NEXT: dict[str, tuple[str, ...]] = {
    "": ("received",),
    "received": ("checked", "refused", "cancelled"),
    "checked": ("queued", "refused", "cancelled"),
    "queued": ("running", "refused", "cancelled"),
    "running": ("measured", "queued", "refused", "failed", "cancelled"),
    "measured": ("published", "queued", "failed", "cancelled"),
    "published": ("withdrawn",),
    "refused": (),
    "failed": ("queued",),
    "cancelled": ("queued",),
    "withdrawn": (),
}
"""States that may follow each state."""

WAITS = "waits for the board's machine, by no fault of its own"
"""Beginning of a reason in the history that asks for the operator's action."""

OURS = "the board's machine could not do it, by no fault of the submission"
"""Beginning of a reason in the history that an attempt failed through no fault of the submission."""

LEASED = ("running", "measured")
"""States in which a worker holds it."""


def change_state(
    session: Session,
    id: str,
    before: str,
    after: str,
    now: datetime,
    *,
    by: str,
    attempt_held: int | None = None,
    reason: str = "",
    **changes: Any,
) -> SubmissionRow:
    """Change a state, guarded by the state that it had, and write its line of history.

    Args:
        session: session of the transaction.
        id: id of the submission.
        before: the required present state.
        after: the new state.
        now: the time.
        by: who changes it.
        attempt_held: the required attempt; None for any.
        reason: shown with it.
        changes: further columns.

    Raises:
        BadInput: it is in another state or at another attempt by now, or there is no such change.
    """
    if after not in NEXT[before]:
        raise BadInput(write_sentence("no-such-change", before=before, after=after))
    guard = [SubmissionRow.id == id, SubmissionRow.state == before]
    guard += [SubmissionRow.attempt == attempt_held] if attempt_held is not None else []
    values = {"state": after, "state_at": now, "reason": reason, "rule": "", **changes}
    done = session.execute(
        update(SubmissionRow).where(*guard).values(values).execution_options(synchronize_session="fetch")
    )
    row = get_row(session, id)
    if done.rowcount != 1:  # type: ignore[attr-defined]
        raise BadInput(write_sentence("changed-meanwhile", id=id, state=row.state, before=before))
    session.refresh(row)
    note_step(session, id, before, after, row.attempt, by, reason, now)
    return row


def get_row(session: Session, id: str) -> SubmissionRow:
    """Return a submission within a session.

    Raises:
        BadInput: there is no such submission.
    """
    row = session.get(SubmissionRow, id)
    if row is None:
        raise BadInput(write_sentence("submission-unknown", id=id))
    return row


def note_step(
    session: Session, id: str, before: str, after: str, attempt: int, by: str, reason: str, now: datetime
) -> None:
    """Write a change of state into the history of a submission."""
    count = select(func.count()).select_from(SubmissionHistory).where(SubmissionHistory.submission == id)
    step = (session.scalar(count) or 0) + 1
    entry = SubmissionHistory(submission=id, step=step, before=before, after=after, attempt=attempt, made_by=by)
    entry.reason, entry.at = reason, now
    session.add(entry)
    session.flush()


def is_waiting_for_operator(row: SubmissionRow) -> bool:
    """Tell whether a submission is in the queue again because a worker's machine was at fault."""
    return row.state == "queued" and row.reason.startswith(WAITS)
