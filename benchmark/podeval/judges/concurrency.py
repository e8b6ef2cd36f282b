"""How many calls at a time: as many as the backend bears, found by trying.

Additive increase, multiplicative decrease, as networks do it: every round of answers allows one call more, a sign of
crowding (too many requests, a server's error, a timeout) halves them, at most once for the calls that were under way
together. A wait that the backend asks for holds for all calls.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long to try.

    Args:
        tries: calls for one answer, when none comes.
        first_wait: seconds before the second; doubled each time, half of it by chance.
        longest_wait: seconds, also of a wait that the backend asks for; a longer one ends the asking.
    """

    tries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 120.0

    def wait(self, failed: int, chance: float) -> float:
        """Seconds after so many failed calls; `chance` is drawn from 0..1."""
        full = min(self.longest_wait, self.first_wait * 2.0 ** (failed - 1))
        return full * (0.5 + 0.5 * chance)


class AdaptiveConcurrency:
    """Calls at a time, between 1 and `most`; starts at `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self.lowest = float(most)
        self._under_way = 0
        self._round = 0
        self._open_from = 0.0
        self._changed = threading.Condition()

    @contextmanager
    def call(self, stop: threading.Event) -> Iterator[int]:
        """A place among the calls under way, once there is one; gives the round it belongs to."""
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
        """A call went well."""
        with self._changed:
            self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
            self._changed.notify_all()

    def crowded(self, begun: int, retry_after: float | None) -> None:
        """A call of this round was turned away; `retry_after` seconds hold for everyone."""
        with self._changed:
            if begun == self._round:
                self._round += 1
                self.limit = max(1.0, self.limit / 2)
                self.lowest = min(self.lowest, self.limit)
            if retry_after:
                self._open_from = max(self._open_from, time.monotonic() + retry_after)
