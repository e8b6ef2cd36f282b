"""What is done of an item while the one before it is measured: all that leaves a GPU to the other.

Decoding, finding speech and music, and metrics whose models run on the processor. What was finished is taken over by
the measurement, and what is under way is waited for: a recording computes each fact once, whoever asks first. So values
are those of measuring without it.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from podeval.metrics.score import Result

Key = tuple[str, ...]
T = TypeVar("T")


@dataclass
class _Begun(Generic[T]):
    """An item that was begun ahead."""

    inputs: "Future[T | None]" = field(default_factory=Future)
    results: dict[str, Result] = field(default_factory=dict)
    taken: bool = False


class NextItem(Generic[T]):
    """The items that are begun ahead in this process, by their keys: the next, and the one after it at most."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._begun: dict[Key, _Begun[T]] = {}
        self._last: Key | None = None

    def begin(
        self, key: Key, read: Callable[[], T], steps: Callable[[T], Iterable[tuple[str, Callable[[], Result]]]]
    ) -> None:
        """Begin an item, unless it is being measured already; stop after the step during which that begins.

        Args:
            key: the key of the item.
            read: reads its inputs.
            steps: yields, given the inputs, metrics' names and what scores with them; may do other work between them.
        """
        with self._lock:
            if key == self._last:
                return
            # What nobody comes for is not kept for long. The one before may not have been taken yet.
            while len(self._begun) > 1:
                del self._begun[next(iter(self._begun))]
            begun = self._begun[key] = _Begun[T]()
        try:
            inputs = read()
        except BaseException:
            # Whoever measures it meets the same error, and tells it.
            begun.inputs.set_result(None)
            return
        begun.inputs.set_result(inputs)
        for name, score in steps(inputs):
            if begun.taken:
                return
            begun.results[name] = score()

    def take(self, key: Key) -> tuple[T | None, dict[str, Result]]:
        """Return an item's inputs, None where it was not begun, and its results so far; it is measured from here on."""
        with self._lock:
            self._last = key
            begun = self._begun.pop(key, None)
        if begun is None:
            return None, {}
        begun.taken = True
        inputs = begun.inputs.result()
        return inputs, dict(begun.results)
