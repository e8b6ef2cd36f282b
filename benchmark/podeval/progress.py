"""Progress of long-running work, passed from the code that does it to the code that displays it.

The engine calls `report` in its long loops; a user interface registers a listener with `listen`. Without a
listener, a report has no effect.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float, float], None]
"""Called with the name of the task, how much of it is finished, and the total, both in the same unit."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(what: str, done: float, total: float) -> None:
    """Report that `done` units of `total` are finished in the task called `what`."""
    if (listener := _listener.get()) is not None:
        listener(what, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Pass every report made inside the block, in this thread, to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
