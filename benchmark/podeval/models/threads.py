"""The number of CPU cores that models may use, and work spread over them in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TypeVar

from podeval.errors import BadInput

S = TypeVar("S")
T = TypeVar("T")

_sharers: ContextVar[Callable[[], int]] = ContextVar("sharers", default=lambda: 1)

_torch_lock = Lock()
_torch_users: list[int] = []
"""The number of torch's threads before the first of those who have it use one."""


def limit_threads(otherwise: int | None = None) -> int:
    """Return how many threads the work at hand may use: its share of those that the process has.

    Args:
        otherwise: of `count_threads`.

    Raises:
        BadInput: as `count_threads`.
    """
    return max(1, count_threads(otherwise) // _sharers.get()())


@contextmanager
def share_threads(sharers: Callable[[], int]) -> Iterator[None]:
    """Inside, `limit_threads` is a part of the process's threads, as other work runs beside it.

    Args:
        sharers: says how many pieces of work run side by side at the moment, this one included.
    """
    token = _sharers.set(sharers)
    try:
        yield
    finally:
        _sharers.reset(token)


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


def run_ahead(pool: ThreadPoolExecutor, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """Yield results in order, with only as much work in progress as keeps the workers busy, so memory stays bounded."""
    waiting: deque[Future[T]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > limit_threads():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
