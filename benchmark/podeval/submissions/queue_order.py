"""In which order submissions are worked on: priority first, then every owner in turn, then first come."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class QueuedSubmission:
    """A submission in the queue; `number` rises with time."""

    id: str
    owner: str
    priority: int
    number: int


def sort_by_turn(waiting: Iterable[QueuedSubmission], running: Mapping[str, int]) -> list[QueuedSubmission]:
    """The submissions in the order in which they will be claimed.

    An owner's second submission waits for everybody's first: who has more running or ahead comes later.

    Args:
        waiting: what can be claimed.
        running: how many each owner has under way.
    """
    turns: Counter[str] = Counter(running)
    rounds: dict[str, int] = {}
    by_age = sorted(waiting, key=lambda each: (-each.priority, each.number))
    for each in by_age:
        rounds[each.id] = turns[each.owner]
        turns[each.owner] += 1
    return sorted(by_age, key=lambda each: (-each.priority, rounds[each.id], each.number))


def estimate(position: int, durations: Sequence[float], workers: int) -> float | None:
    """Seconds until a submission is done, by how long others took; None where nobody has been done yet.

    Args:
        position: in the queue, from 1.
        durations: seconds that earlier submissions took, of work alone.
        workers: how many work at the same time.
    """
    if not durations:
        return None
    rounds = -(-position // max(1, workers))
    return rounds * sum(durations) / len(durations)
