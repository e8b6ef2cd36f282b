"""The states of a submission, the only function that changes a state and its history, and the queue's order and quotas.

The order is by priority, then by owners in turn, then by arrival; waiting times are estimated from earlier submissions.
Quotas and duplicates are checked in the transaction that stores a submission.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction
from podeval.store.submission_tables import Lease, SubmissionHistory, SubmissionRow
from podeval.submissions.rules import Policy, SubmissionRefused, select_refusals, write_refusal
from podeval.texts import write_sentence

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
"""The states that may follow each state."""

WAITS = "waits for the board's machine, through no fault of its own"
"""Beginning of a reason in the history if the operator must act."""

OURS = "the board's machine could not do it, through no fault of the submission"
"""Beginning of a reason in the history if an attempt failed through no fault of the submission."""

LEASED = ("running", "measured")
"""States in which a worker holds the submission."""

OPEN = ("received", "checked", "queued", "running", "measured")
"""States of a submission in progress."""

TAKEN_DOWN_IDS = select(OperatorAction.subject).where(OperatorAction.action == TAKEN_DOWN)
"""The query for the ids of the submissions that were taken down."""

KEPT = timedelta(days=7)
"""Time for which the files of a submission are kept for a retry or another spot check."""

_LATEST = 20
"""Number of the most recently published submissions that are used to estimate waiting times."""


@dataclass(frozen=True)
class QueuePosition:
    """The position of a submission in the queue, from 1, and the seconds until it is done, if known."""

    position: int
    seconds: float | None


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
    """Change a state and other columns, guarded by the previous state, and write a line of history.

    If `attempt_held` is given, the submission must still be at that attempt.

    Raises:
        BadInput: the submission is no longer in the expected state or at the expected attempt, or this state change is
            not allowed.
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
    """Read a submission within a session.

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
    """Record a state change in the history of a submission."""
    count = select(func.count()).select_from(SubmissionHistory).where(SubmissionHistory.submission == id)
    step = (session.scalar(count) or 0) + 1
    change = {"before": before, "after": after, "attempt": attempt, "made_by": by, "reason": reason, "at": now}
    session.add(SubmissionHistory(submission=id, step=step, **change))
    session.flush()


def is_waiting_for_operator(row: SubmissionRow) -> bool:
    """Return whether a submission is in the queue again because a worker's machine was at fault."""
    return row.state == "queued" and row.reason.startswith(WAITS)


def sort_by_turn(waiting: Iterable[SubmissionRow], running: Mapping[str, int]) -> list[SubmissionRow]:
    """Sort submissions into the order in which they will be claimed, considering each owner's unfinished submissions.

    An owner's second submission comes after everyone's first: the more submissions of an owner are running or further
    ahead, the later the owner's next submission comes.
    """
    turns: Counter[str] = Counter(running)
    rounds: dict[str, int] = {}
    by_age = sorted(waiting, key=lambda each: (-each.priority, each.number))
    for each in by_age:
        rounds[each.id] = turns[each.owner]
        turns[each.owner] += 1
    return sorted(by_age, key=lambda each: (-each.priority, rounds[each.id], each.number))


def estimate(position: int, durations: Sequence[float], workers: int) -> float | None:
    """Estimate the seconds until the submission at a position is done; None if there are no earlier durations."""
    if not durations:
        return None
    rounds = -(-position // max(1, workers))
    return rounds * sum(durations) / len(durations)


def order_submissions(session: Session, rows: Iterable[SubmissionRow]) -> list[SubmissionRow]:
    """Sort queued submissions into the order in which they will be claimed, considering those in progress."""
    running = Counter(session.scalars(select(SubmissionRow.owner).where(SubmissionRow.state.in_(LEASED))))
    return sort_by_turn(rows, running)


def list_positions(session: Session) -> dict[str, QueuePosition]:
    """List the position and the estimated time to completion of every queued submission, in order."""
    order = order_submissions(session, session.scalars(select(SubmissionRow).where(SubmissionRow.state == "queued")))
    durations, workers = _measure_pace(session)
    return {
        each.id: QueuePosition(position, estimate(position, durations, workers))
        for position, each in enumerate(order, start=1)
    }


def read_last_position(session: Session) -> QueuePosition:
    """Return the position that a new submission would get at the end of the queue."""
    under_way = select(func.count()).select_from(SubmissionRow).where(SubmissionRow.state.in_(OPEN[:3]))
    position = (session.scalar(under_way) or 0) + 1
    return QueuePosition(position, estimate(position, *_measure_pace(session)))


def _measure_pace(session: Session) -> tuple[list[float], int]:
    """Return the duration of the latest published submissions in seconds, and the number of workers."""
    done = select(SubmissionRow.worked_seconds).where(SubmissionRow.state == "published")
    durations = list(session.scalars(done.order_by(SubmissionRow.state_at.desc()).limit(_LATEST)))
    return durations, session.scalar(select(func.count()).select_from(Lease)) or 1


def refuse_duplicate(session: Session, mark: str, system: str, owner: str) -> None:
    """Refuse a submission that already exists or was taken down, and a system id that is in use or belongs to others.

    Raises:
        SubmissionRefused: the rule `duplicate` is broken.
    """
    query = select(SubmissionRow).where(SubmissionRow.state.in_((*OPEN, "published"))).limit(1)
    if (other := session.scalars(query.where(SubmissionRow.digest == mark)).first()) is not None:
        code = "same-folder-submitted" if other.document["source"].get("folder") else "same-submitted"
        raise SubmissionRefused(write_refusal("duplicate", code, state=other.state, id=other.id))
    gone = (
        select(OperatorAction.reason)
        .join(SubmissionRow, SubmissionRow.id == OperatorAction.subject)
        .where(OperatorAction.action == TAKEN_DOWN, SubmissionRow.digest == mark)
    )
    if (reason := session.scalars(gone.limit(1)).first()) is not None:
        raise SubmissionRefused(write_refusal("duplicate", "same-taken-down", why=reason))
    same_system = query.where(SubmissionRow.system == system)
    if (other := session.scalars(same_system.where(SubmissionRow.owner != owner)).first()) is not None:
        raise SubmissionRefused(write_refusal("duplicate", "id-of-another", system=system, owner=other.owner))
    if (other := session.scalars(same_system.where(SubmissionRow.state.in_(OPEN))).first()) is not None:
        raise SubmissionRefused(write_refusal("duplicate", "system-under-way", id=other.id, state=other.state))


def refuse_too_many(session: Session, owner: str, now: datetime, policy: Policy) -> None:
    """Refuse a submission that exceeds a quota.

    Raises:
        SubmissionRefused: the rule `quota` is broken.
    """
    count = select(func.count()).select_from(SubmissionRow)
    under_way = session.scalar(count.where(SubmissionRow.state.in_(OPEN))) or 0
    of_owner = count.where(SubmissionRow.owner == owner)
    busy = session.scalar(of_owner.where(SubmissionRow.state.in_(OPEN))) or 0
    recent = session.scalar(of_owner.where(SubmissionRow.submitted_at.between(now - timedelta(hours=24), now))) or 0
    refusals = select_refusals(
        (busy >= policy.open_per_owner, "quota", "too-many-under-way", {"owner": owner, "count": busy}),
        (recent >= policy.day_per_owner, "quota", "too-many-today", {"owner": owner, "count": recent}),
        (under_way >= policy.most_waiting, "quota", "queue-full", {"count": under_way}),
    )
    if refusals:
        raise SubmissionRefused(refusals[0])
