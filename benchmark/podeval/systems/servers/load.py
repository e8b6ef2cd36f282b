"""How many requests a server gets: the most a minute, and the number that is kept in flight.

All threads that ask one server share one `RequestPace`. A pause that the server asks of one of them is kept by all.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Lock
from typing import TypeVar

from podeval.errors import PodevalError

MOST_AT_ONCE = 64
"""Most requests that are kept in flight."""

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class SendingStopped(PodevalError):
    """The run is ending, so that no more requests are sent."""


class RequestPace:
    """Keeps requests apart, so that there are no more than so many a minute, whichever threads send them.

    Args:
        per_minute: 0 for no limit.
        clock: seconds.
        sleep: waits.
        at_once: number of requests that are kept in flight.
    """

    def __init__(
        self,
        per_minute: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        at_once: int = 1,
    ) -> None:
        self.at_once = at_once
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next, self._clock, self._sleep = 0.0, clock, sleep
        self._lock, self._stopped = Lock(), False

    def wait(self) -> None:
        """Wait until the next request may be sent.

        Raises:
            SendingStopped: none is sent any more.
        """
        with self._lock:
            while not self._stopped and (now := self._clock()) < self._next:
                self._sleep(self._next - now)
            if self._stopped:
                raise SendingStopped("the run was stopped before this request was sent; the same command resumes it")
            self._next = max(self._next, self._clock() + self._gap)

    def hold(self, seconds: float) -> None:
        """Send nothing for so many seconds from now; a single sender keeps pauses by itself."""
        if self.at_once > 1:
            self._next = max(self._next, self._clock() + seconds)

    def stop(self) -> None:
        """Send nothing more; what is in flight finishes."""
        self._stopped = True

    def ask_each(self, ask: Callable[[Part], Answer], parts: Sequence[Part]) -> list[Answer]:
        """Ask for each part of an item, and return the answers in order.

        One part is asked for after the other, or `at_once` at a time, those of other items among them. What `ask`
        raises is raised, of several parts that of the first; the item's parts that were not asked for are dropped.
        """
        if self.at_once == 1:
            return [ask(part) for part in parts]
        futures = [self._senders.submit(ask, part) for part in parts]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    @cached_property
    def _senders(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.at_once, "podeval-request")
