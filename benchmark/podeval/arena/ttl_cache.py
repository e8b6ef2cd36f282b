"""What was looked up a moment ago, so that it is not asked of the database again by every request."""

import threading
import time
from typing import Generic, TypeVar

Kept = TypeVar("Kept")

SECONDS = 30.0
MOST = 10_000


class Remembered(Generic[Kept]):
    """Things by name for a while; used by any number of threads."""

    def __init__(self, seconds: float = SECONDS, most: int = MOST) -> None:
        self._seconds = seconds
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Kept, float]] = {}

    def get(self, name: str) -> Kept | None:
        """What was put under a name, as long as it is fresh."""
        with self._lock:
            found = self._kept.get(name)
        return found[0] if found is not None and time.monotonic() < found[1] else None

    def put(self, name: str, thing: Kept) -> None:
        """Keep a thing from now on."""
        with self._lock:
            if len(self._kept) >= self._most:
                self._kept.clear()
            self._kept[name] = (thing, time.monotonic() + self._seconds)

    def forget(self) -> None:
        """Look everything up anew: something was changed."""
        with self._lock:
            self._kept.clear()
