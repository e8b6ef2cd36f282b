"""Reports of what visitors measured, for an hour, under names that nobody guesses; in memory and nowhere else."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

SECONDS = 3600.0
MOST_BYTES, MOST_REPORTS = 8 * 2**20, 20


class ScoreReports:
    """The reports; the oldest goes when there are too many.

    Args:
        clock: gives seconds; time.monotonic outside of tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: dict[str, tuple[bytes, float]] = {}
        self._lock = threading.Lock()

    def keep(self, report: bytes) -> str:
        """Keep a report, and return its name; empty where it is too large to be kept."""
        if not report or len(report) > MOST_BYTES:
            return ""
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._reports[name] = (report, self._clock() + SECONDS)
            while len(self._reports) > MOST_REPORTS:
                del self._reports[next(iter(self._reports))]
        return name

    def read(self, name: str) -> bytes | None:
        """Return a report; None where there is none of this name any more."""
        with self._lock:
            report, expiry = self._reports.get(name, (b"", 0.0))
            if expiry > self._clock():
                return report
            self._reports.pop(name, None)
            return None
