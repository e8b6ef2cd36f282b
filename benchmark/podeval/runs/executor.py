"""Run measurements in this process, or in worker processes that share the cores.

Tasks are taken one by one while earlier ones are in progress, so a system can generate its next item while podeval
measures the previous one. Tasks that are lost when a worker dies are run once more, each in a separate process. If a
task does not fit into memory alongside other tasks, one worker is removed and the task is run again.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Protocol, Self, TypeVar, runtime_checkable

from podeval.models.device import count_copies, free_memory
from podeval.models.profiles import MEASURING, PROFILES

T = TypeVar("T")
R = TypeVar("R")


class MemoryRanOut(Exception):
    """The work did not fit into memory, but may fit alongside fewer processes. Workers raise this error."""


def count_workers(profile: str) -> int:
    """Return the default number of measuring processes: one per core, or fewer if the GPU has no room for them."""
    cores = len(os.sched_getaffinity(0))
    # An unknown profile is refused later, when its models are looked up.
    needed = {name: PROFILES[name].gigabytes for name in MEASURING}
    return min(cores, count_copies(needed.get(profile.partition(",")[0], max(needed.values()))) or cores)


class Executor(Protocol):
    """Runs a function on tasks."""

    def map(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[T, R | None]]:
        """Yield each task with its result, in order of completion; None if its process died twice.

        Args:
            work: the function to run on each task.
            tasks: the tasks, which are taken one by one.
        """


@runtime_checkable
class Carried(Protocol):
    """A task that reads files; they must be sent along to a machine that does not share the disk."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the task reads."""

    def moved(self, folders: Mapping[Path, Path]) -> Self:
        """Return the same task with its files in other folders; `folders` maps each current folder to the new one."""


class InProcess:
    """Runs one task after another in this process."""

    def map(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[T, R | None]]:
        """Yield each task with its result, in order; None if memory ran out twice."""
        for task in tasks:
            yield task, try_twice(work, task)


class Workers(AbstractContextManager["Workers"]):
    """Worker processes, which start with the first task and are kept, with their models, until the block ends."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._pool: ProcessPoolExecutor | None = None

    def map(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[T, R | None]]:
        """Yield each task with its result, in order of completion; None if its process died twice.

        There are never more tasks in progress than processes, because all tasks in progress fail when a process dies.
        """
        running: dict[Future[R], tuple[T, ProcessPoolExecutor]] = {}
        fallen: list[T] = []
        too_large: list[T] = []
        for task in tasks:
            while len(running) >= self.processes:
                yield from self._collect_finished(running, fallen, too_large, timeout=None)
            self._submit(running, work, task)
            yield from self._collect_finished(running, fallen, too_large, timeout=0)
        # Items that did not fit into memory alongside other items are run with fewer processes.
        while running or too_large:
            if too_large and len(running) < self.processes:
                self._submit(running, work, too_large.pop())
            else:
                yield from self._collect_finished(running, fallen, too_large, timeout=None)
        yield from ((task, _run_alone(work, task)) for task in fallen)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._stop(self._pool)

    def _collect_finished(
        self,
        running: dict[Future[R], tuple[T, ProcessPoolExecutor]],
        fallen: list[T],
        too_large: list[T],
        timeout: float | None,
    ) -> Iterator[tuple[T, R | None]]:
        for future in wait(running, timeout=timeout, return_when=FIRST_COMPLETED).done:
            task, pool = running.pop(future)
            try:
                yield task, future.result()
            except BrokenProcessPool:
                fallen.append(task)
                self._stop(pool)
            except MemoryRanOut:
                (too_large if self.processes > 1 else fallen).append(task)
                if pool is self._pool:
                    self._leave_one_out(pool)

    def _leave_one_out(self, pool: ProcessPoolExecutor) -> None:
        """Continue with one process fewer once the busy processes have finished; the next pool starts empty."""
        self.processes = max(1, self.processes - 1)
        self._pool = None
        pool.shutdown()

    def _submit(self, running: dict[Future[R], tuple[T, ProcessPoolExecutor]], work: Callable[[T], R], task: T) -> None:
        """Submit a task to the pool, or to a new pool if a process of the current one has died."""
        self._pool = pool = self._pool or _pool(self.processes)
        try:
            running[pool.submit(work, task)] = task, pool
        except BrokenProcessPool:
            self._stop(pool)
            self._submit(running, work, task)

    def _stop(self, pool: ProcessPoolExecutor) -> None:
        """Stop a pool without waiting for tasks that have not begun.

        A late report of a dead process in an earlier pool does not stop the current pool.
        """
        pool.shutdown(cancel_futures=True)
        if self._pool is pool:
            self._pool = None


def _run_alone(work: Callable[[T], R], task: T) -> R | None:
    """Run a task whose process died again, in a separate process, so that it cannot take other tasks down with it."""
    try:
        with _pool(1) as pool:
            return pool.submit(work, task).result()
    except (BrokenProcessPool, MemoryRanOut):
        return None


def try_twice(work: Callable[[T], R], task: T) -> R | None:
    """Run a task in this process; if memory runs out, free memory and try once more."""
    for _ in range(2):
        try:
            return work(task)
        except MemoryRanOut:
            free_memory()
    return None


def _pool(processes: int) -> ProcessPoolExecutor:
    """Start processes that share the cores; a full thread pool in each process would oversubscribe the cores."""
    threads = max(1, len(os.sched_getaffinity(0)) // processes)
    return ProcessPoolExecutor(
        max_workers=processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=partial(_prepare_worker, threads),
    )


def limit_threads(threads: int) -> None:
    """Set this process's number of threads; call it before the numerical libraries are loaded."""
    for variable in ("PODEVAL_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(threads)


def _prepare_worker(threads: int) -> None:
    limit_threads(threads)
    # Ctrl-C reaches the whole group: this process ends silently, and the main process reports it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End with the main process; otherwise a worker would wait for work forever, with its models in memory."""
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)
