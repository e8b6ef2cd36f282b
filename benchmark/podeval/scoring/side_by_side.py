"""Metrics of one recording scored side by side, in threads that share the process's cores.

Transcribing, DNSMOS and DistillMOS use every core; finding speech, music, overlaps and pitch one each, so that another
core idles meanwhile; and all of them do while a model is on a GPU. Here a thread scores the next metric whose models
are not at work for another, with its share of the cores, and whoever asks for something that another is computing waits
for it and leaves it its share: everything is computed once, by the same code in the same steps, so that values are
those of one after another (docs/performance.md says what it gains).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Lock, Thread
from typing import TYPE_CHECKING

from podeval.models.device import is_gpu_used
from podeval.models.threads import SharedThreads, count_threads

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric


MOST_AT_ONCE = 2

_SPREADING = frozenset({"speech_quality", "naturalness"})
"""Jobs whose models rate windows that know nothing of each other, so that they use as many threads as are free."""


def count_at_once(profile: str) -> int:
    """Return how many metrics of a profile are scored at once here: two, or one where that gains nothing.

    Models of the reference profile use every core by themselves where there is no GPU.
    """
    if profile.partition(",")[0] != "embedded" and not is_gpu_used():
        return 1
    return min(MOST_AT_ONCE, count_threads())


class _Stopped(BaseException):
    """Another thread failed, so that this one's work is of no use."""


class SideBySide:
    """Scores metrics in some threads, this one among them.

    Args:
        metrics: in the order in which they are begun.
        count: the number of threads.
        score: scores one metric, and keeps the result.
    """

    def __init__(self, metrics: Sequence[Metric], count: int, score: Callable[[Metric], None]) -> None:
        self._waiting, self._count, self._score = list(metrics), count, score
        self._running: list[Metric] = []
        self._settled: set[str] = set()
        """Jobs whose models have been at work."""
        self._errors: list[BaseException] = []
        self._threads = SharedThreads()
        self._lock = Lock()

    def run(self) -> None:
        """Score all of them.

        Raises:
            BaseException: the first error of any thread, after all have stopped.
        """
        others = [Thread(target=copy_context().run, args=(self._work,), daemon=True) for _ in range(self._count - 1)]
        for other in others:
            other.start()
        try:
            self._work()
            for other in others:
                other.join()
        except KeyboardInterrupt as interruption:
            self._errors.append(interruption)
        for other in others:
            other.join()
        if self._errors:
            raise self._errors[0]

    def require_success(self) -> None:
        """End the work of the thread that calls this where another failed.

        Raises:
            BaseException: another thread failed; `run` raises what it was.
        """
        if self._errors:
            raise _Stopped

    def _work(self) -> None:
        """Score one metric after the other, until none is left or a thread fails."""
        while (metric := self._take()) is not None:
            try:
                with self._threads.work():
                    self._score(metric)
            except _Stopped:
                return
            except BaseException as error:
                self._errors.append(error)
                return
            with self._lock:
                self._running.remove(metric)
                self._settled.update(metric.needs)

    def _take(self) -> Metric | None:
        """Take the first metric of those that wait for the fewest models at work; None where none is left.

        On a processor, metrics that use as many threads as are free come after others that wait for as few: at the
        end, when one thread has nothing more to begin, the other uses both. Beside a GPU they come in their turn.
        """
        with self._lock:
            if self._errors or not self._waiting:
                return None
            at_work = {job for metric in self._running for job in metric.needs} - self._settled
            last = frozenset() if is_gpu_used() else _SPREADING
            metric = min(
                self._waiting, key=lambda one: (len(at_work.intersection(one.needs)), not last.isdisjoint(one.needs))
            )
            self._waiting.remove(metric)
            self._running.append(metric)
            return metric
