"""Measure what a system made: every metric of the benchmark on every item, each once.

An item's recording is opened once and shared by all its metrics. The work may be done in other processes; this one
alone writes, a line for each finished measurement. Judges are asked here, about many items at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any

from podeval.benchmarks.benchmark import Benchmark, Item, MetricUse
from podeval.errors import PodevalError
from podeval.metrics import catalogue
from podeval.metrics.compute import score_item, score_judged
from podeval.metrics.inputs import MetricInputs
from podeval.metrics.judge_use import NOBODY, JudgeConfig
from podeval.metrics.protocol import Protocol, protocol_of
from podeval.metrics.score import Result, Unscored
from podeval.models import registry
from podeval.runs import composite_scores
from podeval.runs.executor import Executor
from podeval.runs.item_inputs import GIVEN, inputs_of
from podeval.runs.run_folder import Output, RunFolder, RunPlan

DIED = Unscored("the measuring process died twice on this item; it may be short of memory", "ours")

_JUDGED_AT_ONCE = 64


@dataclass(frozen=True)
class Task:
    """What a worker measures of one item."""

    item: Item
    output: Output
    outputs: Path
    profile: str
    track: str
    uses: tuple[MetricUse, ...]
    told_as: Mapping[str, str] = field(default_factory=dict)
    """Folders by which the files' folders are called in results, where the files were moved."""

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read of it from a disk."""
        made = [self.output.audio, *(answer.audio for answer in self.output.answers)]
        asked = [turn.audio for turn in self.item.user]
        return (*(self.outputs / Path(name).name for name in made if name), *(Path(path) for path in asked if path))

    def moved(self, folders: Mapping[Path, Path]) -> "Task":
        """The same with its files in other folders, given by those that they are in."""
        user = tuple(
            turn.model_copy(update={"audio": str(folders[Path(turn.audio).parent] / Path(turn.audio).name)})
            if turn.audio
            else turn
            for turn in self.item.user
        )
        return replace(
            self,
            item=self.item.model_copy(update={"user": user}),
            outputs=folders.get(self.outputs, self.outputs),
            told_as={str(to): str(at) for at, to in folders.items()},
        )


def protocols(
    benchmark: Benchmark, plan: RunPlan, profile: str, conditions: Mapping[str, Any], bench: JudgeConfig = NOBODY
) -> dict[str, Protocol]:
    """The protocol of each metric of a plan's track, and of each figure made of them, by name."""
    found = {}
    for use in benchmark.metrics(plan.track, plan.split):
        metric = catalogue.get(use.name)
        models = registry.identities(metric.jobs(use.parameters), profile)
        found[use.name] = protocol_of(
            metric,
            use.parameters,
            GIVEN[plan.track],
            {**models, **bench.identity(metric.asks, metric.read_parameters(use.parameters))},
            dataset=plan.dataset,
            generation={"track": plan.track, **conditions},
        )
    for composite in composite_scores.composites_of(benchmark, plan.track):
        found[composite.name] = composite_scores.protocol(composite, found)
    return found


def measure(
    folder: RunFolder,
    profile: str,
    benchmark: Benchmark,
    made: Iterable[Item],
    executor: Executor,
    done: Callable[[int], None],
    conditions: Mapping[str, Any],
    bench: JudgeConfig = NOBODY,
) -> None:
    """Measure what has no result yet under the present protocols.

    Args:
        folder: of the run.
        profile: whose models.
        benchmark: what is measured.
        made: items whose outputs are in the folder, as they come.
        executor: where the work is done; this process alone writes.
        done: is told how many items are finished.
        conditions: of generation, for the protocol.
        bench: who judges.
    """
    plan = folder.plan()
    wanted = protocols(benchmark, plan, profile, conditions, bench)
    uses = {use.name: use for use in benchmark.metrics(plan.track, plan.split)}
    heard = [name for name in uses if not catalogue.get(name).asks]
    before = folder.results(profile)
    finished = 0
    seen: list[Task] = []

    def missing(item: Item, names: Iterable[str]) -> tuple[MetricUse, ...]:
        return tuple(uses[name] for name in names if not _final(before.get((item.id, wanted[name].id))))

    def keep(item: Item, results: Mapping[str, Result]) -> None:
        found = [(wanted[name], result) for name, result in results.items()]
        if new := [(one, result) for one, result in found if before.get((item.id, one.id)) != result]:
            folder.append_results(profile, item.id, new)

    def tasks() -> Iterator[Task]:
        nonlocal finished
        for item in made:
            output = folder.output(item.id)
            if output is None:
                finished += 1
                done(finished)
                continue
            task = Task(item, output, folder.outputs, profile, plan.track, missing(item, heard))
            seen.append(task)
            if task.uses:
                yield task
            else:
                finished += 1
                done(finished)

    for task, results in executor.map(measure_item, tasks()):
        keep(task.item, results or dict.fromkeys((use.name for use in task.uses), DIED))
        finished += 1
        done(finished)
    for name in uses:
        if name not in heard:
            some = [task for task in seen if missing(task.item, [name])]
            for task, result in _judged(uses[name], some, bench):
                keep(task.item, {name: result})
    after = folder.results(profile)
    for composite in composite_scores.composites_of(benchmark, plan.track):
        for task in seen:
            parts = {name: after.get((task.item.id, wanted[name].id)) for name in uses}
            keep(task.item, {composite.name: composite_scores.compose(composite, parts)})


def measure_item(task: Task) -> dict[str, Result]:
    """Every metric asked for on one item; the recording is decoded once."""
    inputs = _inputs(task)
    if isinstance(inputs, Unscored):
        return dict.fromkeys((use.name for use in task.uses), _told(inputs, task.told_as))
    return {use.name: _told(_guarded(use, inputs), task.told_as) for use in task.uses}


def _inputs(task: Task) -> MetricInputs | Unscored:
    """What metrics are given of an item, or why there is nothing to give."""
    if reason := _nothing_made(task):
        return reason
    try:
        return inputs_of(task.item, task.output, task.outputs, task.profile)
    except Exception as error:
        return _failed(error)


def _told(result: Result, told_as: Mapping[str, str]) -> Result:
    """A result that names files as whoever asked for it knows them."""
    if isinstance(result, Unscored):
        reason = result.reason
        for here, there in told_as.items():
            reason = reason.replace(here, there)
        result = replace(result, reason=reason)
    return result


def _nothing_made(task: Task) -> Unscored | None:
    """Why there is nothing to measure."""
    output = task.output
    if output.audio_removed and task.track != "write":
        return Unscored(
            f"audio removed on {output.audio_removed} to free the disk; delete outputs/{output.item}.json to have it "
            "made again",
            "ours",
        )
    made, name = {
        "voice": (output.audio, "audio"),
        "write": (output.script and output.failed is None, "script"),
        "respond": (output.answers, "answers"),
    }[task.track]
    return None if made else Unscored(f"the system produced no {name}: {output.failed}", "system")


def _guarded(use: MetricUse, inputs: Mapping[str, Any]) -> Result:
    """A result whatever happens: an error of ours is unscored with its cause, and does not stop the run."""
    try:
        return score_item(catalogue.get(use.name), inputs, use.parameters)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> Unscored:
    return Unscored(f"measuring failed: {type(error).__name__}: {error}", "ours")


def _judged(use: MetricUse, tasks: Sequence[Task], bench: JudgeConfig) -> Iterator[tuple[Task, Result]]:
    """What a judge says of these items; an item whose output is missing is not shown to it."""
    metric = catalogue.get(use.name)
    chosen = metric.read_parameters(use.parameters)
    try:
        asked = bench.judging(metric.asks, chosen) if metric.asks and tasks else None
    except PodevalError as error:
        yield from ((task, _unjudged(error)) for task in tasks)
        return
    for start in range(0, len(tasks), _JUDGED_AT_ONCE):
        part = tasks[start : start + _JUDGED_AT_ONCE]
        given = [_inputs(task) for task in part]
        ready = [inputs.select(metric) for inputs in given if not isinstance(inputs, Unscored)]
        found: Iterator[Result | PodevalError]
        try:
            found = iter(list(score_judged(metric, ready, chosen, asked)))
        except PodevalError as error:
            found = repeat(error)
        for task, inputs in zip(part, given, strict=True):
            result = inputs if isinstance(inputs, Unscored) else next(found)
            yield task, _unjudged(result) if isinstance(result, PodevalError) else result


def _unjudged(error: PodevalError) -> Unscored:
    return Unscored(f"judging failed: {error}", "ours")


def _final(result: Result | None) -> bool:
    """Whether a result stands; what failed by our fault is tried again on the next run."""
    return result is not None and not (isinstance(result, Unscored) and result.cause == "ours")
