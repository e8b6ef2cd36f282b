"""The number of CPU cores that models may use, and work spread over them in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import TypeVar

from podeval.errors import BadInput

S = TypeVar("S")
T = TypeVar("T")

_torch_lock = Lock()
_torch_users: list[int] = []
"""The number of torch's threads before the first of those who have it use one."""


@contextmanager
def limit_torch_to_one_thread() -> Iterator[None]:
    """Inside, each operation of torch uses one thread.

    For small networks a second thread costs more than it brings: it waits, busily, between operations. Looking for
    music, finding overlaps and separating took two to three times the processor time in two threads, for the same bits.
    """
    import torch

    with _torch_lock:
        _torch_users.append(_torch_users[0] if _torch_users else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _torch_lock:
            torch.set_num_threads(_torch_users.pop())


def count_threads(otherwise: int | None = None) -> int:
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


def run_ahead(work: Callable[[S], T], items: Iterable[S], pool: ThreadPoolExecutor | None = None) -> Iterator[T]:
    """Yield results in order, with one more piece of work in progress than there are threads, so memory is bounded.

    Args:
        work: done in threads.
        items: taken up as there is room.
        pool: a pool of as many threads as the process has; one of its own otherwise.
    """
    most = count_threads()
    waiting: deque[Future[T]] = deque()
    with nullcontext(pool) if pool else ThreadPoolExecutor(most) as workers:
        for item in items:
            waiting.append(workers.submit(work, item))
            while len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
