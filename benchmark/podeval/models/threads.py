"""The number of CPU cores that models may use, and work spread over them in order."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar

from podeval.errors import BadInput

S = TypeVar("S")
T = TypeVar("T")

_shared: ContextVar["SharedThreads | None"] = ContextVar("shared", default=None)

_torch_lock = Lock()
_torch_users: list[int] = []
"""The number of torch's threads before the first of those who have it use one."""


class SharedThreads:
    """The process's threads, for pieces of work side by side: an equal part for each that is not waiting for another.

    Args:
        at_work: how many pieces are at work besides those inside `work`.
    """

    def __init__(self, at_work: int = 0) -> None:
        self._at_work = at_work
        self._lock = Lock()

    def count_at_work(self) -> int:
        """Return how many pieces of work are at work now, at least 1."""
        return max(1, self._at_work)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Inside, one more piece is at work, and `limit_threads` is its part."""
        with self._changed_by(1), share_threads(self):
            yield

    @contextmanager
    def _changed_by(self, more: int) -> Iterator[None]:
        with self._lock:
            self._at_work += more
        try:
            yield
        finally:
            with self._lock:
                self._at_work -= more


@contextmanager
def share_threads(shared: SharedThreads) -> Iterator[None]:
    """Inside, `limit_threads` is a part of the process's threads, as other work runs beside it."""
    token = _shared.set(shared)
    try:
        yield
    finally:
        _shared.reset(token)


@contextmanager
def leave_threads() -> Iterator[None]:
    """Inside, the work at hand waits for what runs beside it, which may use its part of the threads."""
    shared = _shared.get()
    with shared._changed_by(-1) if shared else nullcontext():
        yield


@contextmanager
def hold(lock: Any) -> Iterator[None]:
    """Hold a lock; while another has it, the threads of the work at hand are for what runs beside it."""
    if not lock.acquire(blocking=False):
        wait_for(lock)
    try:
        yield
    finally:
        lock.release()


def wait_for(lock: Any) -> float:
    """Acquire a lock that another has, leaving the threads of the work at hand to what runs beside it.

    Returns:
        Seconds that it took.
    """
    began = time.monotonic()
    with leave_threads():
        lock.acquire()
    return time.monotonic() - began


def limit_threads(otherwise: int | None = None) -> int:
    """Return how many threads the work at hand may use: its share of those that the process has.

    Args:
        otherwise: the value of `count_threads` otherwise.

    Raises:
        BadInput: as `count_threads`.
    """
    shared = _shared.get()
    return max(1, count_threads(otherwise) // (shared.count_at_work() if shared else 1))


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
    """Yield results in order, with as much work in progress as `limit_threads` says at the time, so memory is bounded.

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
            while len(waiting) >= _count_ahead(most):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _count_ahead(most: int) -> int:
    """Return how much work may be in progress: where it may use all threads, another is ready when the first ends."""
    limit = limit_threads()
    return limit + 1 if limit == most else limit
