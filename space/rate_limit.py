"""Limit how often somebody may ask, by the times of their last requests on a monotonic clock.

`limits` says what a rate is; its storage in memory looks through everybody's requests up to a hundred times a second,
never forgets a name, and goes by the time of day, so that a clock set back by an hour shuts people out for an hour.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

from limits import RateLimitItem

_SWEEP = 60.0
"""Seconds between two looks for those who are gone."""


class RateLimit:
    """A moving window for each name; used by any number of threads.

    Args:
        clock: seconds that only go on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[Hashable, tuple[deque[float], float]] = {}
        self._swept = clock()

    def wait(self, rate: RateLimitItem, *who: Hashable) -> float:
        """Count a request, and give 0; or the seconds to wait before one is let through, and count nothing.

        Args:
            rate: so many in so much time.
            who: the person or address whose requests are counted together.
        """
        length, now = float(rate.get_expiry()), self._clock()
        with self._lock:
            if now - self._swept > _SWEEP:
                self._swept = now
                self._seen = {name: kept for name, kept in self._seen.items() if kept[0][-1] > now - kept[1]}
            moments, _ = self._seen.setdefault(who, (deque(), length))
            while moments and moments[0] <= now - length:
                moments.popleft()
            if len(moments) >= rate.amount:
                return moments[0] + length - now
            moments.append(now)
            return 0.0
