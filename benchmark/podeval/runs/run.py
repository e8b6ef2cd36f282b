"""Run a system on a benchmark: plan, generate, measure, aggregate.

Every step is written to disk when it is done, so the same call resumes after any interruption.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from pathlib import Path

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.datasets.items import Items, load_items
from podeval.errors import BadInput
from podeval.files import lock_folder
from podeval.metrics.judge_use import NOBODY, JudgeConfig
from podeval.metrics.score import Score, Unscored
from podeval.models import registry
from podeval.runs.aggregate import summarise
from podeval.runs.executor import Executor, InProcess
from podeval.runs.measure import measure
from podeval.runs.run_folder import Output, RunFolder, RunPlan, RunSummary
from podeval.stats.sequential import select_items
from podeval.systems.speech import Ask, Samples, SpeakingSystem, SpeechFailed

Spoken = tuple[Output, Samples | None, int]
"""An item's output to be stored, with its samples and their rate; a failed item has neither samples nor a rate."""


@dataclass(frozen=True)
class Voicing:
    """Generation by the executor's processes, each of which makes one item at a time; by default, in this process, in
    order.
    """

    executor: Executor = field(default_factory=InProcess)

    def require(self, system: SpeakingSystem, seed: int) -> None:
        """Refuse to start if the system cannot speak.

        Raises:
            BadInput: the seed is out of range.
            ModelMissing: a package or model that the system needs is not installed on the machine that runs it.
        """
        for _ in self.executor.map(methodcaller("require", seed), (system,)):
            pass

    def speak(
        self, system: SpeakingSystem, items: tuple[Item, ...], folder: RunFolder, seed: int, done: Callable[[int], None]
    ) -> Iterator[Item]:
        """Have the system speak every item that has no output yet, and pass on each item whose output exists.

        A failure of the system is stored as its output. An item whose process died twice is skipped; the next run tries
        it again.
        """
        missing = [item for item in items if folder.output(item.id) is None]
        finished = len(items) - len(missing)
        absent = {item.id for item in missing}
        done(finished)
        yield from (item for item in items if item.id not in absent)
        for item, spoken in self.executor.map(partial(speak_item, system, seed=seed), _with_script(missing)):
            if spoken is not None:
                folder.write_output(*spoken)
                finished += 1
                done(finished)
                yield item


def speak_item(system: SpeakingSystem, item: Item, *, seed: int) -> Spoken:
    """Have a system speak one item; a failure of the system is recorded as its output.

    Raises:
        ModelMissing: the system is not installed on this machine.
    """
    assert item.script is not None
    script = tuple(item.script.to_json())
    # The item was checked when it was read.
    ask = Ask.model_construct(id=item.id, language=item.language, script=item.script.turns)
    try:
        (speech,) = system.make([ask], seed)
    except (SpeechFailed, BadInput) as failure:
        return Output(item=item.id, failed=str(failure), script=script), None, 0
    output = Output(
        item=item.id,
        duration=speech.duration,
        wall_seconds=speech.wall_seconds,
        load_seconds=speech.load_seconds,
        turns=speech.turns,
        script=script,
        details=dict(speech.details),
    )
    return output, speech.samples, speech.rate


def _with_script(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if item.script is None:
            raise BadInput(f"item {item.id} has no script to speak; choose a split of the voice track")
        yield item


_NOT_SPOKEN = {"write": "scripts", "respond": "answers to speech", "podcast": "whole podcasts that it writes itself"}
"""Outputs, by track, that a system that only reads scripts aloud cannot produce."""

Making = Callable[[RunFolder, tuple[Item, ...]], Iterable[Item]]
"""Function that puts items' outputs into a run's folder and passes on each item whose output is in it."""


RunProgress = Callable[[str, int, int], None]
"""Reports the title of a step, the number of its finished pieces, and the total number of its pieces."""


def tell_nobody(title: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class RunRequest:
    """A request for a run: the benchmark, the folder of results, and the executor."""

    benchmark: Benchmark
    split: str
    track: str
    runs: Path
    profile: str = "embedded"
    seed: int = 0
    executor: Executor = field(default_factory=InProcess)
    speaking: Voicing = field(default_factory=Voicing)
    """The way in which built-in systems generate their outputs."""
    data: Path | None = None
    """The folder of the dataset whose rows are the items; the default is where `podeval data build` puts it."""
    bench: JudgeConfig = NOBODY
    """The judges."""
    name: str = ""
    """Name of the run's folder, if it is not the system's own name."""
    repeats: bool = False
    """Whether the run is an additional seed of a system that already has a run, and belongs in that run's folder."""
    only: tuple[str, ...] = ()
    """Ids of the items to run; all items if empty."""
    retry: bool = False
    """Whether failed items are generated and measured again, whatever the cause."""
    allow_upsampling: bool = False
    """Whether recordings below a model's sampling rate are measured anyway."""
    limit: int | None = None
    """Number of items to run, with the other items left for later; None for all."""
    pilot: bool = False
    """Whether these items are a stratified sample instead of the first items of the split."""


def run_system(
    system: SpeakingSystem, title: str, request: RunRequest, progress: RunProgress = tell_nobody
) -> RunSummary:
    """Generate missing outputs, compute missing results, and aggregate.

    Raises:
        BadInput: the folder contains a run with different settings, there is no such track, profile or seed, or the
            track does not ask for speech.
        ModelMissing: the system cannot run on this machine; the message gives the command that installs what is
            missing.
        DiskFull: nothing more can be written; finished work is kept.
    """
    data = read_items(request)
    if (content := _NOT_SPOKEN.get(request.track)) is not None:
        raise BadInput(
            f"{system.name} reads scripts aloud, but {request.benchmark.name} asks for {content} (track "
            f"{request.track}): choose another benchmark or track, or evaluate "
            "a system that does this with --outputs or --python"
        )

    def require(folder: RunFolder) -> None:
        if any(folder.output(item.id) is None for item in data.items):
            request.speaking.require(system, request.seed)

    def speak(folder: RunFolder, items: tuple[Item, ...]) -> Iterable[Item]:
        return request.speaking.speak(
            system, items, folder, request.seed, lambda done: progress("speaking", done, len(items))
        )

    # The plan records the dataset when the run begins.
    plan = RunPlan(
        benchmark=request.benchmark.name,
        split=request.split,
        dataset="",
        track=request.track,
        system=request.name or system.name,
        system_title=title,
        system_kind=system.kind,
        generation=system.generation,
        seed=request.seed,
    )
    return _run(plan, request, data, progress, speak, require)


def measure_run(
    plan: RunPlan,
    request: RunRequest,
    progress: RunProgress = tell_nobody,
    making: Making = lambda folder, items: items,
) -> RunSummary:
    """Measure and aggregate a run whose outputs are put into its folder by other code.

    Args:
        plan: the plan of the run; its dataset is taken from the request's items.
        request: the request, with the metrics to measure; its seed is ignored.
        progress: function that reports progress to a person.
        making: function that puts outputs into the folder and passes on each item whose output exists; by default, all
            outputs already exist.

    Raises:
        BadInput: the run is not possible; see `run_system`.
    """
    return _run(plan, request, read_items(request), progress, making)


def _run(
    plan: RunPlan,
    request: RunRequest,
    data: Items,
    progress: RunProgress,
    making: Making,
    require: Callable[[RunFolder], None] = lambda folder: None,
) -> RunSummary:
    """Run a plan with any way of making outputs: put them into the folder, measure them as they arrive, then aggregate.

    Args:
        plan: the plan of the run, for the same dataset as the items.
        request: the request, with the metrics to measure.
        data: the items.
        progress: function that reports progress to a person.
        making: function that puts outputs into the folder.
        require: function that refuses a bad request before anything is written.
    """
    folder = RunFolder(request.runs, request.benchmark.name, request.split, plan.system)
    folder = folder.repeat(plan.seed) if request.repeats else folder
    with lock_folder(folder.path):
        require(folder)
        # If all outputs are made again, the system may have changed.
        failed = find_failed(folder, request.profile) if request.retry else set()
        replace = request.retry and len(failed) == len(list(folder.readable_outputs()))
        dataset = f"{request.benchmark.dataset.path}@{data.revision}"
        folder.begin(plan.model_copy(update={"dataset": dataset}), replace=replace)
        if request.retry:
            reopen_failed(folder, request.profile)
            require(folder)
        folder.write_items(data.items)
        chosen = choose_items(request, data.items)
        outputs, total = making(folder, chosen), len(chosen)
        measure(
            folder,
            request.profile,
            request.benchmark,
            outputs,
            request.executor,
            lambda done: progress("measuring", done, total),
            request.bench,
            allow_upsampling=request.allow_upsampling,
        )
        summary = summarise(folder, request.profile, request.benchmark, data.items, request.bench)
        folder.write_summary(summary, afresh=request.retry)
        return summary


def choose_items(request: RunRequest, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items to run now: all, the first, or a sample stratified by the groups of each breakdown."""
    names = [breakdown.name for breakdown in request.benchmark.breakdowns if not breakdown.within]
    return tuple(
        select_items(
            items,
            request.limit,
            request.pilot,
            lambda item: tuple(item.group(name) for name in names),
            lambda item: item.id,
        )
    )


def find_failed(folder: RunFolder, profile: str) -> set[str]:
    """Find items without output, or whose metrics are unscored because of the system at least as often as scored."""
    results = folder.results(profile)
    scored = Counter(item for (item, _), one in results.items() if isinstance(one, Score))
    refused = Counter(item for (item, _), one in results.items() if isinstance(one, Unscored) and one.cause == "system")
    return {
        output.item
        for output in folder.readable_outputs()
        if output.failed or refused[output.item] >= max(1, scored[output.item])
    }


def reopen_failed(folder: RunFolder, profile: str) -> None:
    """Mark the failures of a run as unfinished, so that they are generated and measured again, whatever the cause.

    For items that did not fail, unscored metrics are measured again.
    """
    again = find_failed(folder, profile)
    # Results are removed first: a run that is killed in between measures again, instead of keeping results of an old
    # output.
    for name in {profile, *(summary.profile for summary in folder.summaries())}:
        reopened: dict[str, list[str]] = {}
        for (item, protocol), result in folder.results(name).items():
            if item in again or (name == profile and isinstance(result, Unscored)):
                reopened.setdefault(item, []).append(protocol)
        for item, protocols in reopened.items():
            folder.reopen_results(name, item, protocols)
    for item in again:
        folder.output_path(item).unlink()


def read_items(request: RunRequest) -> Items:
    """Return the items of a request, after checking that it can be met.

    Raises:
        BadInput: there is no such split, track or profile, or its dataset is not on this machine.
    """
    split = request.benchmark.split(request.split)
    if request.track not in split.tracks:
        raise BadInput(f"the split {split.name} has no track {request.track}; choose from {', '.join(split.tracks)}")
    registry.require_profile(request.profile)
    data = load_items(request.benchmark, split.name, request.data)
    kept = [item for item in data.items if not request.only or item.id in request.only]
    return Items(tuple(item.as_podcast() if request.track == "podcast" else item for item in kept), data.revision)
