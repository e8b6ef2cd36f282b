"""Limit the rate of a sender's requests, using the monotonic times of the latest requests, and the number of requests
that run at the same time.

`limits` parses rates. Its in-memory storage scans everyone's requests up to a hundred times per second, never forgets a
name, and uses the time of day, so setting the clock back by an hour would lock people out for an hour.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from limits import RateLimitItem

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

_SWEEP = 60.0
"""Number of seconds between two clean-ups, which remove names without recent requests."""
MOST_NAMES = 20_000
"""Maximum number of names whose requests are remembered; all of an attacker's networks would not fit into memory."""


class RateLimit:
    """A moving window for each name, which any number of threads may use.

    If there are too many names, those with the oldest requests are forgotten.

    Args:
        clock: function that returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[Hashable, tuple[deque[float], float]] = {}
        self._swept = clock()

    def wait(self, rate: RateLimitItem, *who: Hashable) -> float:
        """Count a request and return 0, or return the number of seconds to wait until a request will be accepted,
        without counting this request.

        Args:
            rate: maximum number of requests per period.
            who: the person or address whose requests are counted together.
        """
        length, now = float(rate.get_expiry()), self._clock()
        with self._lock:
            if now - self._swept > _SWEEP:
                self._swept = now
                self._seen = {name: kept for name, kept in self._seen.items() if kept[0][-1] > now - kept[1]}
            moments, _ = self._seen.pop(who, (deque[float](), length))
            self._seen[who] = (moments, length)
            if len(self._seen) > MOST_NAMES:
                del self._seen[next(iter(self._seen))]
            while moments and moments[0] <= now - length:
                moments.popleft()
            if len(moments) >= rate.amount:
                return moments[0] + length - now
            moments.append(now)
            return 0.0


class ThreadPool:
    """A few threads for frequent, quick requests; further requests wait for a free thread.

    Python threads take turns. With forty threads, the default for pages, the thread that receives requests and sends
    responses waits for its turn as often as each of the others, so a busy second causes a minute of late responses.
    Slow pages have their own threads, and requests here do not wait for them.

    Args:
        threads: number of threads.
    """

    def __init__(self, threads: int) -> None:
        self._limiter = CapacityLimiter(threads)

    def __call__(self, work: Callable[Given, Answer]) -> Callable[Given, Awaitable[Answer]]:
        """Return a function that does the same work in one of the threads."""

        @functools.wraps(work)
        async def run_in_thread(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
            return await to_thread.run_sync(functools.partial(work, *args, **kwargs), limiter=self._limiter)

        return run_in_thread


class Full(Exception):
    """More requests are waiting than can be handled soon."""


class WaitingRoom:
    """Limits on waiting and running requests, in total and per sender, used only by the server's thread.

    Args:
        most: maximum number of requests from all senders.
        most_each: maximum number of requests from one sender.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._inside: Counter[str] = Counter()

    @contextmanager
    def enter(self, who: str) -> Iterator[None]:
        """Hold a place for the duration of the block.

        Raises:
            Full: there is no place for this sender.
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

    def count(self, who: str) -> int:
        """Return the number of places that a sender holds."""
        return self._inside[who]
