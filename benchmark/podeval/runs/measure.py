"""Measure what a system said: every metric of the benchmark on every item, each once.

An item's recording is opened once and shared by all its metrics. Items go to worker processes; this process alone
writes, a line for each finished measurement. What a dying worker took with it is tried once more, each item in a
process of its own; one that kills that too is unscored.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from podeval.analysis import Recording
from podeval.benchmarks.benchmark import Benchmark, Item, MetricUse
from podeval.metrics import catalogue
from podeval.metrics.compute import score_item
from podeval.metrics.protocol import Protocol, protocol_of
from podeval.metrics.score import Result, Unscored
from podeval.models import registry
from podeval.store.run_folder import RunFolder
from podeval.text.script import Script

Step = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Task:
    """What a worker measures of one item."""

    item: str
    audio: Path | None
    failed: str | None
    script: Script
    profile: str
    uses: tuple[MetricUse, ...]


def protocols(
    benchmark: Benchmark, split: str, track: str, profile: str, conditions: Mapping[str, Any]
) -> dict[str, Protocol]:
    """The protocol of each metric of a track, by metric name."""
    revision = f"{benchmark.dataset.path}@{benchmark.split(split).revision}"
    return {
        use.name: protocol_of(
            catalogue.get(use.name),
            use.parameters,
            ("recording", "script", "reference_text"),
            registry.identities(catalogue.get(use.name).needs, profile),
            dataset=revision,
            generation={"track": track, **conditions},
        )
        for use in benchmark.metrics(track)
    }


def measure(
    folder: RunFolder,
    profile: str,
    benchmark: Benchmark,
    items: Sequence[Item],
    workers: int,
    step: Step,
    conditions: Mapping[str, Any],
) -> None:
    """Measure what has no result yet under the present protocols."""
    plan = folder.plan()
    wanted = protocols(benchmark, plan.split, plan.track, profile, conditions)
    uses = {use.name: use for use in benchmark.metrics(plan.track)}
    done = folder.results(profile)
    tasks = []
    for item in items:
        output = folder.output(item.id)
        open_uses = tuple(uses[name] for name in wanted if not _final(done.get((item.id, wanted[name].id))))
        if output is None or not open_uses:
            continue
        script = Script.parse(list(output.script)) if output.script else Script(())
        tasks.append(Task(item.id, folder.audio_path(output), output.failed, script, profile, open_uses))
    step("measure", len(items) - len(tasks), len(items))
    finished = len(items) - len(tasks)
    for task, results in _measured(tasks, workers):
        for name, result in results.items():
            if done.get((task.item, wanted[name].id)) != result:
                folder.append_result(profile, task.item, wanted[name], result)
        finished += 1
        step("measure", finished, len(items))


def measure_item(task: Task) -> dict[str, Result]:
    """Every metric asked for on one item; the recording is decoded once."""
    if task.audio is None:
        reason = f"the system produced no audio: {task.failed}"
        return {use.name: Unscored(reason, "system") for use in task.uses}
    opened: list[Recording] = []
    path = task.audio

    def recording() -> Recording:
        if not opened:
            opened.append(Recording.open(path, profile=task.profile))
        return opened[0]

    inputs = {"recording": recording, "script": task.script, "reference_text": task.script.text}
    return {use.name: _guarded(use, inputs) for use in task.uses}


def _guarded(use: MetricUse, inputs: Mapping[str, Any]) -> Result:
    """A result whatever happens: an error of ours is unscored with its cause, and does not stop the run."""
    try:
        return score_item(catalogue.get(use.name), inputs, use.parameters)
    except Exception as error:
        return Unscored(f"measuring failed: {type(error).__name__}: {error}", "ours")


def _final(result: Result | None) -> bool:
    """Whether a result stands; what failed by our fault is tried again on the next run."""
    return result is not None and not (isinstance(result, Unscored) and result.cause == "ours")


def _measured(tasks: list[Task], workers: int) -> Iterator[tuple[Task, dict[str, Result]]]:
    """Tasks with their results, in the order they finish."""
    if not workers:
        yield from ((task, measure_item(task)) for task in tasks)
        return
    fallen: list[Task] = []
    pool = _pool(min(workers, len(tasks) or 1))
    try:
        running = {pool.submit(measure_item, task): task for task in tasks}
        for future in as_completed(running):
            try:
                results = future.result()
            except BrokenProcessPool:
                fallen.append(running[future])
            else:
                yield running[future], results
    finally:
        # Where the run stops early, what has not begun is not waited for.
        pool.shutdown(cancel_futures=True)
    yield from ((task, _measured_alone(task)) for task in fallen)


def _measured_alone(task: Task) -> dict[str, Result]:
    """A task whose process died, once more in a process of its own, so that it can take no other with it."""
    try:
        with _pool(1) as pool:
            return pool.submit(measure_item, task).result()
    except BrokenProcessPool:
        reason = "the measuring process died twice on this item; it may be short of memory"
        return {use.name: Unscored(reason, "ours") for use in task.uses}


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes that share the cores: one thread pool each would fight over them."""
    cores = len(os.sched_getaffinity(0))
    return ProcessPoolExecutor(
        max_workers=workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=partial(_settle, max(1, cores // workers)),
    )


def _settle(threads: int) -> None:
    os.environ["PODEVAL_THREADS"] = str(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["MKL_NUM_THREADS"] = str(threads)
    # Ctrl-C reaches the whole group: here it ends without a word, the main process speaks.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A worker whose main process was killed would wait for work for ever, its models in memory."""
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)
