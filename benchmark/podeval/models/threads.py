"""The number of CPU cores that models may use, and work spread over them in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from podeval.errors import BadInput

S = TypeVar("S")
T = TypeVar("T")


def threads(otherwise: int | None = None) -> int:
    """Return `PODEVAL_THREADS`; without it `otherwise`, or the number of cores this process may run on.

    Raises:
        BadInput: the variable is not a whole number of at least 1.
    """
    chosen = os.environ.get("PODEVAL_THREADS")
    if not chosen:
        return otherwise or len(os.sched_getaffinity(0))
    if not chosen.isdecimal() or int(chosen) < 1:
        raise BadInput(f"PODEVAL_THREADS must be a whole number of at least 1, not {chosen!r}")
    return int(chosen)


def run_ahead(pool: ThreadPoolExecutor, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """Yield results in order, with only as much work in progress as keeps the workers busy, so memory stays bounded."""
    waiting: deque[Future[T]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > threads():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
