"""Measure what a system said: every metric of the benchmark on every item, each once.

An item's recording is opened once and shared by all its metrics. The work may be done in other processes; this one
alone writes, a line for each finished measurement.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podeval.analysis import Recording
from podeval.benchmarks.benchmark import Benchmark, Item, MetricUse
from podeval.metrics import catalogue
from podeval.metrics.compute import score_item
from podeval.metrics.protocol import Protocol, protocol_of
from podeval.metrics.score import Result, Unscored
from podeval.models import registry
from podeval.runs.executor import Executor
from podeval.store.run_folder import RunFolder
from podeval.text.script import Script

DIED = Unscored("the measuring process died twice on this item; it may be short of memory", "ours")


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
    spoken: Iterable[Item],
    executor: Executor,
    done: Callable[[int], None],
    conditions: Mapping[str, Any],
) -> None:
    """Measure what has no result yet under the present protocols.

    Args:
        folder: of the run.
        profile: whose models.
        benchmark: what is measured.
        spoken: items whose outputs are in the folder, as they come.
        executor: where the work is done; this process alone writes.
        done: is told how many items are finished.
        conditions: of generation, for the protocol.
    """
    plan = folder.plan()
    wanted = protocols(benchmark, plan.split, plan.track, profile, conditions)
    uses = {use.name: use for use in benchmark.metrics(plan.track)}
    before = folder.results(profile)
    finished = 0

    def tasks() -> Iterator[Task]:
        nonlocal finished
        for item in spoken:
            output = folder.output(item.id)
            missing = tuple(uses[name] for name in wanted if not _final(before.get((item.id, wanted[name].id))))
            if output is None or not missing:
                finished += 1
                done(finished)
                continue
            script = Script.parse(list(output.script)) if output.script else Script(())
            yield Task(item.id, folder.audio_path(output), output.failed, script, profile, missing)

    for task, results in executor.map(measure_item, tasks()):
        for name, result in (results or dict.fromkeys((use.name for use in task.uses), DIED)).items():
            if before.get((task.item, wanted[name].id)) != result:
                folder.append_result(profile, task.item, wanted[name], result)
        finished += 1
        done(finished)


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
