"""Limits the number of concurrent calls to what the backend can handle, which is found by trying.

Additive increase, multiplicative decrease, as in network congestion control: every round of answers allows one more
call; a sign of overload (too many requests, a server error, a timeout) halves the limit, at most once for the calls
that were in progress together. A wait that the backend asks for applies to all calls.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long failed calls are repeated.

    Args:
        tries: maximum number of calls for one answer.
        first_wait: seconds before the second call; doubled each time, with half of it random.
        longest_wait: maximum wait in seconds, also for a wait that the backend asks for; a longer one ends the retries.
    """

    tries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 120.0

    def wait(self, failed: int, chance: float) -> float:
        """Return the seconds to wait after `failed` calls; `chance` is a random number from 0 to 1."""
        full = min(self.longest_wait, self.first_wait * 2.0 ** (failed - 1))
        return full * (0.5 + 0.5 * chance)


class AdaptiveConcurrency:
    """A limit on concurrent calls, between 1 and `most`; it starts at `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._under_way = 0
        self._round = 0
        self._open_from = 0.0
        self._changed = threading.Condition()

    @contextmanager
    def call(self, stop: threading.Event) -> Iterator[int]:
        """Wait until another call may start, and yield the round that it belongs to."""
        with self._changed:
            while not stop.is_set():
                wait = self._open_from - time.monotonic()
                if wait <= 0 and self._under_way < int(self.limit):
                    break
                self._changed.wait(min(wait, 0.5) if wait > 0 else 0.5)
            self._under_way += 1
            begun = self._round
        try:
            yield begun
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def answered(self) -> None:
        """Record that a call succeeded."""
        with self._changed:
            self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
            self._changed.notify_all()

    def crowded(self, begun: int, retry_after: float | None) -> None:
        """Record that the backend rejected a call of this round; all calls then wait `retry_after` seconds."""
        with self._changed:
            if begun == self._round:
                self._round += 1
                self.limit = max(1.0, self.limit / 2)
            if retry_after:
                self._open_from = max(self._open_from, time.monotonic() + retry_after)
