"""Few threads for what is asked often and answered soon.

Threads of Python take turns. With forty of them, which is what a page is given otherwise, the one that hears what is
asked and sends what is answered waits its turn as often as each of the others, so that a busy second becomes a minute
of late answers. Slow pages keep the threads they had, and nothing here waits for them.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class ThreadPool:
    """So many threads; more work than that waits.

    Args:
        threads: at once.
    """

    def __init__(self, threads: int) -> None:
        self._limiter = CapacityLimiter(threads)

    def __call__(self, work: Callable[Given, Answer]) -> Callable[Given, Awaitable[Answer]]:
        """The same work, done in one of the threads."""

        @functools.wraps(work)
        async def run_in_thread(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
            return await to_thread.run_sync(functools.partial(work, *args, **kwargs), limiter=self._limiter)

        return run_in_thread


class Full(Exception):
    """More is waiting than can be done soon."""


class WaitingRoom:
    """How much may wait or be at work at once, of all and of each; used by one thread, that of the server.

    Args:
        most: the most threads of all senders.
        most_each: the most threads of one sender.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._inside: Counter[str] = Counter()

    @contextmanager
    def enter(self, who: str) -> Iterator[None]:
        """A place in it while this lasts.

        Raises:
            Full: there is none for this sender.
        """
        if self._inside.total() >= self._most or self._inside[who] >= self._most_each:
            raise Full
        self._inside[who] += 1
        try:
            yield
        finally:
            self._inside[who] -= 1
            if not self._inside[who]:
                del self._inside[who]
