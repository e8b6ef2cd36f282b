"""Progress of long-running work, passed from the code that does it to the code that displays it.

The engine calls `report` in its long loops; a user interface registers a listener with `listen`. Without a
listener, a report has no effect.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float, float], None]
"""Called with the name of the task, how much of it is finished, and the total, both in the same unit."""

PREPARING = "preparing a model, once"
"""The task of making a model ready that was never used on this machine; it belongs to no measurement."""

Waits = Callable[[float], None]
"""Called with the seconds that a thread waited for what another one computes."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_waits: ContextVar[Waits | None] = ContextVar("waits", default=None)


def report(what: str, done: float, total: float) -> None:
    """Report that `done` units of `total` are finished in the task called `what`."""
    if (listener := _listener.get()) is not None:
        listener(what, done, total)


def report_wait(seconds: float) -> None:
    """Report that this thread waited for what another one computes."""
    if (waits := _waits.get()) is not None:
        waits(seconds)


@contextmanager
def listen(listener: Listener, waits: Waits | None = None) -> Iterator[None]:
    """Pass every report made inside the block, in this thread, to `listener`, and every wait to `waits`."""
    token, waits_token = _listener.set(listener), _waits.set(waits)
    try:
        yield
    finally:
        _listener.reset(token)
        _waits.reset(waits_token)
