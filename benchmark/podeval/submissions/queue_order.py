"""The order of the queue (by priority, then owners in turn, then first come), and estimates of waiting times."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.store.submission_tables import Lease, SubmissionRow
from podeval.submissions.quotas import OPEN
from podeval.submissions.states import LEASED

_LATEST = 20
"""Number of the latest published submissions from which waiting times are estimated."""


@dataclass(frozen=True)
class QueuedSubmission:
    """A submission in the queue; `number` rises with time."""

    id: str
    owner: str
    priority: int
    number: int


@dataclass(frozen=True)
class QueuePosition:
    """The position of a submission in the queue from 1, and the seconds until it is done, where that is known."""

    position: int
    seconds: float | None


def sort_by_turn(waiting: Iterable[QueuedSubmission], running: Mapping[str, int]) -> list[QueuedSubmission]:
    """Sort submissions into the order in which they will be claimed.

    An owner's second submission waits for everybody's first: an owner with more running or ahead comes later.

    Args:
        waiting: submissions that can be claimed.
        running: number of submissions each owner has under way.
    """
    turns: Counter[str] = Counter(running)
    rounds: dict[str, int] = {}
    by_age = sorted(waiting, key=lambda each: (-each.priority, each.number))
    for each in by_age:
        rounds[each.id] = turns[each.owner]
        turns[each.owner] += 1
    return sorted(by_age, key=lambda each: (-each.priority, rounds[each.id], each.number))


def estimate(position: int, durations: Sequence[float], workers: int) -> float | None:
    """Estimate the seconds until a submission is done, by how long others took; None if none is done yet.

    Args:
        position: position in the queue, from 1.
        durations: seconds of work that earlier submissions took.
        workers: how many work at the same time.
    """
    if not durations:
        return None
    rounds = -(-position // max(1, workers))
    return rounds * sum(durations) / len(durations)


def order_submissions(session: Session, rows: Iterable[SubmissionRow]) -> list[QueuedSubmission]:
    """Sort queued submissions into the order of claims, considering those being worked on."""
    running = Counter(session.scalars(select(SubmissionRow.owner).where(SubmissionRow.state.in_(LEASED))))
    return sort_by_turn((QueuedSubmission(row.id, row.owner, row.priority, row.number) for row in rows), running)


def list_positions(session: Session) -> dict[str, QueuePosition]:
    """List the position and estimate of every queued submission, in order."""
    order = order_submissions(session, session.scalars(select(SubmissionRow).where(SubmissionRow.state == "queued")))
    durations, workers = _measure_pace(session)
    return {
        each.id: QueuePosition(position, estimate(position, durations, workers))
        for position, each in enumerate(order, start=1)
    }


def read_last_position(session: Session) -> QueuePosition:
    """Return the last position that a submission would get now."""
    under_way = select(func.count()).select_from(SubmissionRow).where(SubmissionRow.state.in_(OPEN[:3]))
    position = (session.scalar(under_way) or 0) + 1
    return QueuePosition(position, estimate(position, *_measure_pace(session)))


def _measure_pace(session: Session) -> tuple[list[float], int]:
    """Return how many seconds the latest published submissions took, and how many workers there are."""
    done = select(SubmissionRow.worked_seconds).where(SubmissionRow.state == "published")
    durations = list(session.scalars(done.order_by(SubmissionRow.state_at.desc()).limit(_LATEST)))
    return durations, session.scalar(select(func.count()).select_from(Lease)) or 1
