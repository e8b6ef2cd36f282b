"""Limits of generation: how long an item may take by the wall clock, and how many go at once in the memory there is."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from podeval.errors import PodevalError

_AGAIN = 5.0

T = TypeVar("T")
R = TypeVar("R")


class TookTooLong(PodevalError):
    """An item was not done when its time was up."""


class OutOfMemory(PodevalError):
    """One item alone does not fit into memory."""


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Interrupt what is in this block when its time is up, between two steps of the interpreter.

    Only the main thread can be interrupted; elsewhere the block runs on.

    Raises:
        TookTooLong: the time was up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"it was not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    begin = time.monotonic()
    # Again and again: a library may catch the first interruption and go on.
    waiting, again = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if waiting:  # someone else's alarm goes on
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, waiting - (time.monotonic() - begin)), again)


class Batches:
    """Gives work as many items at once as memory allows: half as many each time it does not.

    Args:
        most: at first.

    Attributes:
        size: the most that have not run out of memory so far.
    """

    def __init__(self, most: int) -> None:
        self.size = most

    def over(self, items: Sequence[T], work: Callable[[Sequence[T]], R]) -> Iterator[tuple[Sequence[T], R | Exception]]:
        """Yield every batch with what work made of it, or with the error it ended in.

        What failed together is tried again one by one, so that no item fails for another's sake.
        """
        rest = list(items)
        while rest:
            batch = rest[: self.size]
            result = self._try(batch, work)
            if result is None:
                continue
            rest = rest[len(batch) :]
            if isinstance(result, PodevalError) and len(batch) > 1:
                for item in batch:
                    alone = self._try([item], work)
                    assert alone is not None, "one item is never halved"
                    yield [item], alone
                continue
            yield batch, result

    def _try(self, batch: Sequence[T], work: Callable[[Sequence[T]], R]) -> R | Exception | None:
        """Return the result or the error; None where the batch was too large and the next is smaller."""
        try:
            return work(batch)
        except PodevalError as error:
            return error
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        # Outside of the except block: the error's frames hold the tensors that did not fit.
        _free()
        if len(batch) > 1:
            self.size = max(1, len(batch) // 2)
            return None
        return OutOfMemory("one item alone does not fit into memory; take a larger machine, or a smaller model")


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an error of any library says that memory was too small."""
    from accelerate.utils.memory import should_reduce_batch_size

    return isinstance(error, MemoryError) or "out of memory" in str(error) or should_reduce_batch_size(error)


def _free() -> None:
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)
