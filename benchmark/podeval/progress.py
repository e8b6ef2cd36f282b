"""How far long work is: whoever works reports, whoever shows it listens.

The engine calls `report` in its long loops; a face sets a listener with `listen`. Without one, nothing happens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float, float], None]
"""Told what is done, how much of it is finished, and how much there is, both in the same unit."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(what: str, done: float, total: float) -> None:
    """`done` of `total` of `what` is finished."""
    if (listener := _listener.get()) is not None:
        listener(what, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Hand every report made inside the block, in this thread, to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
