"""Measure a system's outputs: every metric of the benchmark on every item, once.

An item's recording is opened once and shared by all its metrics. The work may be done in other processes, but only this
one writes: a line for each finished measurement. This process also asks the judges about many items at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count, repeat
from pathlib import Path
from typing import Any

from podeval.benchmarks.benchmark import Benchmark, Item, MetricUse, Split
from podeval.errors import PodevalError
from podeval.judges.client import JudgeClient
from podeval.measuring.compute import score_item, score_items
from podeval.measuring.inputs import MetricInputs
from podeval.metrics import UNRANKED, Metric, Result, Score, Unscored, catalogue
from podeval.metrics.catalogue import make_protocol
from podeval.metrics.judge_use import NOBODY, JudgeConfig
from podeval.metrics.score import Protocol
from podeval.models import registry
from podeval.models.device import is_out_of_memory
from podeval.runs import composite_scores
from podeval.runs.executor import Executor, MemoryRanOut
from podeval.runs.item_inputs import GIVEN, gather_inputs
from podeval.runs.judge_usage import log_usage
from podeval.runs.latency import AT_ONCE
from podeval.runs.run_folder import Output, RunFolder, RunPlan

CONDITIONS = {"voices": "own", "strategy": "whole", "capture": "file"}
"""Conditions that the task sets for all systems."""

JOINED = "podeval joined its turns, so the pauses between them are not the system's"
"""The reason why timing values are not ranked."""

_ORDER = ("turns", "chunks", "given", "supplied", "whole", "own")


def list_task_conditions(split: Split) -> dict[str, str]:
    """Return the conditions of the task: systems are offered the split's reference voices, if there are any."""
    return CONDITIONS | ({"voices": "given"} if split.voices else {})


def list_conditions(plan: RunPlan, outputs: Iterable[Output] = ()) -> dict[str, Any]:
    """Return how these outputs of a run were made; without outputs, return only the facts in the plan.

    `cuts` is the number of places at which podeval cut scripts that were too long for a request, if there are any.
    """
    details: list[Mapping[str, Any]] = [output.details for output in outputs] or [{}]
    strategies = {_find_strategy(plan, one) for one in details}
    voices = {_find_voices(plan, one) for one in details}
    cuts = sum(one.get("cuts", 0) for one in details)
    return CONDITIONS | {
        "strategy": min(strategies, key=_ORDER.index),
        "voices": min(voices, key=_ORDER.index),
        **({"cuts": cuts} if cuts else {}),
    }


def mark_joined_timing(plan: RunPlan, output: Output, results: Mapping[str, Result]) -> dict[str, Result]:
    """Note in the results of an output, by metric, that timing is not ranked because podeval set the pauses."""
    noted = dict(results)
    if plan.provenance == "run by us" and list_conditions(plan, [output])["strategy"] in ("turns", "chunks"):
        for name, result in results.items():
            reasons = {key.name: JOINED for key in catalogue.get(name).keys if key.timing}
            if isinstance(result, Score) and reasons:
                noted[name] = replace(result, notes={**result.notes, UNRANKED: {**result.unranked, **reasons}})
    return noted


def _find_strategy(plan: RunPlan, details: Mapping[str, Any]) -> str:
    generation = details if "strategy" in details else plan.generation
    while isinstance(generation.get("reader"), Mapping):
        generation = generation["reader"]
    strategy = generation.get("strategy")
    if strategy == "chunked":
        return "chunks" if str(generation.get("chunk")).startswith("turns") else "turns"
    if strategy not in _ORDER:
        return "supplied" if plan.provenance == "outputs supplied" else "whole"
    return str(strategy)


def _find_voices(plan: RunPlan, details: Mapping[str, Any]) -> str:
    voices = details.get("voices")
    if isinstance(voices, Mapping) and "reference" in voices.values():
        return "given"
    if plan.provenance == "outputs supplied":
        return voices if voices in ("given", "own") else "supplied"
    return "own"


DIED = Unscored(
    "the measuring process died twice on this item, or had too little memory; use --workers 1 to give the process "
    "all the memory",
    "ours",
)

_JUDGED_AT_ONCE = 64
_NOTHING = "the system produced no "


@dataclass(frozen=True)
class Task:
    """A worker's task: the measurements of one item."""

    item: Item
    output: Output
    outputs: Path
    profile: str
    track: str
    uses: tuple[MetricUse, ...]
    allow_upsampling: bool = False
    original_folders: Mapping[str, str] = field(default_factory=dict)
    """The folders to name in results, if the files were moved."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The parts of an item that are read from disk."""
        outputs = [self.output.audio, *(answer.audio for answer in self.output.answers)]
        recordings = [turn.audio for turn in self.item.user]
        return (
            *(self.outputs / Path(name).name for name in outputs if name),
            *(Path(path) for path in recordings if path),
        )

    def moved(self, folders: Mapping[Path, Path]) -> "Task":
        """Return the same task with its files in other folders; `folders` maps each current folder to the new one."""
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
            original_folders={str(to): str(at) for at, to in folders.items()},
        )


def make_protocols(
    benchmark: Benchmark, plan: RunPlan, profile: str, conditions: Mapping[str, Any], bench: JudgeConfig = NOBODY
) -> dict[str, Protocol]:
    """Return the protocol of each metric on a plan's track, and of each composite figure, by name.

    Args:
        benchmark: the benchmark to measure.
        plan: the plan of the run.
        profile: the profile of the models.
        conditions: facts about how outputs were generated, from `podeval.runs.measure.list_conditions`.
        bench: the judges.
    """
    by_name = {}
    fields = plan.generation.get("extra")
    generation = {"track": plan.track, **conditions, **({"fields": fields} if fields else {})}
    task = list_task_conditions(benchmark.split(plan.split))
    for use in benchmark.metrics(plan.track, plan.split, profile):
        metric = catalogue.get(use.name)
        parameters = use.choose_parameters(bench.hears) if metric.asks else use.parameters
        models = registry.describe_identities(metric.jobs(parameters), profile, metric.where_available)
        by_name[use.name] = make_protocol(
            metric,
            parameters,
            (*GIVEN[plan.track], *(("readings",) if benchmark.split(plan.split).readings else ())),
            {**models, **bench.identity(metric.asks, metric.read_parameters(parameters))},
            dataset=plan.dataset,
            generation={**generation, **_describe_log(metric, plan)},
            task={"track": plan.track, **task, **_describe_log(metric, plan)},
        )
    for composite in composite_scores.list_composites(benchmark, plan.track):
        by_name[composite.name] = composite_scores.make_composite_protocol(composite, by_name)
    return by_name


def _describe_log(metric: Metric, plan: RunPlan) -> dict[str, Any]:
    """Mark values from a log that the supplier of the outputs wrote, or from runs with several requests in flight.
    These values are not ranked with our own measurements of one request at a time.
    """
    if "generation_log" not in metric.inputs:
        return {}
    own = {"log": "the submitter's own"} if plan.provenance == "outputs supplied" else {}
    return {**own, **{name: plan.generation[name] for name in (AT_ONCE,) if name in plan.generation}}


def measure(
    folder: RunFolder,
    profile: str,
    benchmark: Benchmark,
    items: Iterable[Item],
    executor: Executor,
    done: Callable[[int], None],
    bench: JudgeConfig = NOBODY,
    *,
    allow_upsampling: bool = False,
) -> None:
    """Measure everything that has no result under the current protocols.

    Args:
        folder: the folder of the run.
        profile: the profile of the models.
        benchmark: the benchmark to measure.
        items: the items whose outputs are in the folder, as they arrive.
        executor: the processes that do the work; only this process writes.
        done: function that receives the number of finished items.
        bench: the judges.
        allow_upsampling: whether recordings below a model's sampling rate are measured anyway.
    """
    plan = folder.plan()
    make = cache(lambda *conditions: make_protocols(benchmark, plan, profile, dict(conditions), bench))

    def protocols(*outputs: Output) -> dict[str, Protocol]:
        """Return the protocols of one output, or of all outputs of a run together."""
        return make(*list_conditions(plan, outputs).items())

    protocols()  # Before anything is generated, refuse a run that cannot be measured.
    # Metrics of all outputs together are measured when the run is summarised.
    measured = benchmark.metrics(plan.track, plan.split, profile)
    uses = {use.name: use for use in measured if catalogue.get(use.name).inputs[0] != "recordings"}
    unjudged = [name for name in uses if not catalogue.get(name).asks]
    before = folder.results(profile)
    finished = count(1)
    seen: list[Task] = []

    def missing(item: Item, output: Output, names: Iterable[str]) -> tuple[MetricUse, ...]:
        of_item = protocols(output)
        results = {n: before.get((item.id, of_item[n].id)) for n in names}
        return tuple(uses[n] for n in names if not _is_final(results[n], output, allow_upsampling))

    def keep(item: Item, of_item: Mapping[str, Protocol], results: Mapping[str, Result]) -> None:
        pairs = [(of_item[name], result) for name, result in results.items()]
        if new := [(one, result) for one, result in pairs if before.get((item.id, one.id)) != result]:
            folder.append_results(profile, item.id, new)

    def tasks() -> Iterator[Task]:
        for item in items:
            output = folder.output(item.id)
            if output is None:
                done(next(finished))
                continue
            some = missing(item, output, unjudged)
            task = Task(item, output, folder.outputs, profile, plan.track, some, allow_upsampling)
            seen.append(task)
            if task.uses:
                yield task
            else:
                done(next(finished))

    # Measure with models, wherever the executor runs them.
    for task, results in executor.map(measure_item, tasks()):
        results = results or dict.fromkeys((use.name for use in task.uses), DIED)
        keep(task.item, protocols(task.output), mark_joined_timing(plan, task.output, results))
        done(next(finished))
    # Ask the judges from this process, about many items at a time.
    for name in uses:
        if name not in unjudged:
            some = [task for task in seen if missing(task.item, task.output, [name])]
            for task, result in _judge(uses[name], some, bench, partial(log_usage, folder, profile, protocols()[name])):
                keep(task.item, protocols(task.output), {name: result})
    # If the outputs of a run were made in different ways, they still share one protocol; composites come last.
    after, current = folder.results(profile), protocols(*(task.output for task in seen))
    for task in seen:
        of_item = protocols(task.output)
        parts = {name: after.get((task.item.id, of_item[name].id)) for name in uses}
        keep(task.item, current, {n: part for n, part in parts.items() if part and of_item[n].id != current[n].id})
        for composite in composite_scores.list_composites(benchmark, plan.track):
            keep(task.item, current, {composite.name: composite_scores.compose(composite, parts)})


def measure_item(task: Task) -> dict[str, Result]:
    """Measure every requested metric on one item; the recording is decoded once."""
    inputs = _read_inputs(task)
    if isinstance(inputs, Unscored):
        results: dict[str, Result] = dict.fromkeys((use.name for use in task.uses), inputs)
    else:
        results = {use.name: _score_guarded(use, inputs) for use in task.uses}
    return {name: _restore_paths(result, task.original_folders) for name, result in results.items()}


def _read_inputs(task: Task) -> MetricInputs | Unscored:
    """Read the inputs of metrics from an item, or return the reason why there is nothing to measure."""
    if reason := _explain_nothing(task):
        return reason
    try:
        return gather_inputs(task.item, task.output, task.outputs, task.profile, task.allow_upsampling)
    except Exception as error:
        return _describe_failure(error)


def _restore_paths(result: Result, original_folders: Mapping[str, str]) -> Result:
    """Replace the file names in a result with the caller's names."""
    if isinstance(result, Unscored):
        reason = result.reason
        for here, original in original_folders.items():
            reason = reason.replace(here, original)
        result = replace(result, reason=reason)
    return result


def _explain_nothing(task: Task) -> Unscored | None:
    """Explain why an item cannot be measured; None if it can be measured."""
    output = task.output
    if output.audio_removed and task.track != "write":
        return Unscored(
            f"the audio was removed on {output.audio_removed} to free disk space; delete outputs/{output.item}.json to "
            f"generate it again",
            "ours",
        )
    content, name = {
        "voice": (output.audio, "audio"),
        "write": (output.script and output.failed is None, "script"),
        "respond": (output.answers, "answers"),
        "podcast": (output.audio, "audio"),
    }[task.track]
    if not content and output.failed_by == "ours":
        return Unscored(f"the request does not suit the system: {output.failed}", "ours")
    return None if content else Unscored(f"{_NOTHING}{name}: {output.failed}", "system")


def _score_guarded(use: MetricUse, inputs: Mapping[str, Any]) -> Result:
    """Score an item; an error on our side becomes an unscored result and does not stop the run."""
    try:
        return score_item(catalogue.get(use.name), inputs, use.parameters)
    except Exception as error:
        return _describe_failure(error)


def _describe_failure(error: Exception) -> Unscored:
    """Describe an error on our side.

    Raises:
        MemoryRanOut: the error reports insufficient memory, so the executor can make room.
    """
    if is_out_of_memory(error):
        raise MemoryRanOut(str(error).partition("\n")[0])
    return Unscored(f"measuring failed: {type(error).__name__}: {error}", "ours")


def _judge(
    use: MetricUse,
    tasks: Sequence[Task],
    bench: JudgeConfig,
    log: Callable[[JudgeClient], AbstractContextManager[None]],
) -> Iterator[tuple[Task, Result]]:
    """Ask a judge about these items; items without an output are not shown to it."""
    metric = catalogue.get(use.name)
    chosen = metric.read_parameters(use.choose_parameters(bench.hears))
    try:
        judging = bench.judging(metric.asks, chosen) if metric.asks and tasks else None
    except PodevalError as error:
        yield from ((task, _describe_judge_failure(error)) for task in tasks)
        return
    for start in range(0, len(tasks), _JUDGED_AT_ONCE):
        part = tasks[start : start + _JUDGED_AT_ONCE]
        all_inputs = [_read_inputs(task) for task in part]
        ready = [inputs.select(metric) for inputs in all_inputs if not isinstance(inputs, Unscored)]
        results: Iterator[Result | Exception]
        try:
            with log(judging) if judging else nullcontext():
                results = iter(list(score_items(metric, ready, chosen, judging)))
        except Exception as error:
            results = repeat(error)
        for task, inputs in zip(part, all_inputs, strict=True):
            result = inputs if isinstance(inputs, Unscored) else next(results)
            yield task, _describe_judge_failure(result) if isinstance(result, Exception) else result


def _describe_judge_failure(error: Exception) -> Unscored:
    kind = "" if isinstance(error, PodevalError) else f"{type(error).__name__}: "
    return Unscored(f"judging failed: {kind}{error}", "ours")


def _is_final(result: Result | None, output: Output, allow_upsampling: bool) -> bool:
    """Return whether a result is final.

    After a failure on our side, the next run measures again. "Nothing to measure" is final until there is an output,
    and a sampling rate that is too low is final until upsampling is allowed.
    """
    if not isinstance(result, Unscored):
        return result is not None
    nothing_then = result.reason.startswith(_NOTHING) and output.failed is None
    too_low_then = allow_upsampling and "--allow-upsampling" in result.reason
    return result.cause != "ours" and not nothing_then and not too_low_then
