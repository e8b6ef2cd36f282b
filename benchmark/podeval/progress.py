"""Progress of long-running work, passed from the code that does the work to the code that displays its progress.

The engine calls `report` in its long loops; a user interface registers a listener with `listen`. Without a
listener, a report has no effect.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float, float], None]
"""A function that is called with the name of the task, the finished amount, and the total amount in the same unit.
"""

PREPARING = "preparing a model, once"
"""The task of preparing a model that has never been used on this machine."""

SECONDS = frozenset(
    {
        "DNSMOS",
        "decoding",
        "finding speech",
        "following pitch",
        "looking for music",
        "loudness",
        "resampling",
        "reverberation",
        "separating",
        "timing words",
        "transcribing",
    }
)
"""Tasks whose progress is measured in seconds of the recording."""

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


def report(what: str, done: float, total: float) -> None:
    """Report that `done` units of `total` are finished in the task called `what`."""
    for listener in _listeners.get():
        listener(what, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Pass every report made inside the block, in this thread, to `listener` and to the listeners of outer blocks."""
    token = _listeners.set((listener, *_listeners.get()))
    try:
        yield
    finally:
        _listeners.reset(token)
