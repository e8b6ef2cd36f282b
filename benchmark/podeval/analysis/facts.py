"""What is derived of one recording, each piece computed once, also where several threads ask for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

T = TypeVar("T")


class DerivedFacts:
    """Values by name, kept in memory."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._locks: dict[str, Any] = {}

    def compute_once(self, name: str, make: Callable[[], T]) -> T:
        """Return a value, computed when it is first asked for; who asks meanwhile waits for it."""
        with self.lock(name):
            if name not in self._values:
                self._values[name] = make()
            value: T = self._values[name]
            return value

    def lock(self, name: str) -> AbstractContextManager[Any]:
        """Return the lock of a name: one thread at a time is inside, as often as it likes."""
        # `setdefault` is one step to all threads.
        lock: AbstractContextManager[Any] = self._locks.setdefault(name, RLock())
        return lock
