"""Run a system on a benchmark: plan, generate, measure, aggregate.

Every step is on disk when it is done, so the same call again goes on where the last one stopped, whatever stopped it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol as Interface

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.errors import BadInput
from podeval.models import registry
from podeval.runs.aggregate import summarise
from podeval.runs.executor import Executor, InProcess
from podeval.runs.measure import measure
from podeval.store.files import only_one
from podeval.store.run_folder import Output, OutputTurn, Plan, RunFolder, Summary
from podeval.systems.speech import SpeakingSystem, SpeechFailed

CONDITIONS = {"voices": "own", "strategy": "whole", "capture": "file"}
"""Conditions of generation that the task imposes on every system alike."""


class Progress(Interface):
    """Tells a person how far long work has come."""

    def step(self, title: str, done: int, total: int) -> None:
        """`done` of `total` pieces of the step are finished."""


class Quiet:
    """Tells nobody."""

    def step(self, title: str, done: int, total: int) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Request:
    """What to run, where the results go, and where the measuring is done."""

    benchmark: Benchmark
    split: str
    track: str
    runs: Path
    profile: str = "embedded"
    seed: int = 0
    executor: Executor = field(default_factory=InProcess)


def run_system(system: SpeakingSystem, title: str, request: Request, progress: Progress | None = None) -> Summary:
    """Generate what is missing, measure what is missing, aggregate.

    Raises:
        BadInput: the folder holds a run made otherwise, or there is no such track, profile or seed.
        ModelMissing: the system cannot speak here; says the command that helps.
        DiskFull: nothing more can be written; what is finished is kept.
    """
    progress = progress or Quiet()
    benchmark, split = request.benchmark, request.benchmark.split(request.split)
    if request.track not in split.tracks:
        raise BadInput(f"the split {split.name} serves {', '.join(split.tracks)}, not {request.track}")
    registry.require_profile(request.profile)
    items = benchmark.items(split.name)
    folder = RunFolder(request.runs, benchmark.name, split.name, system.name)
    with only_one(folder.path):
        if any(folder.output(item.id) is None for item in items):
            system.require(request.seed)
        folder.begin(
            Plan(
                benchmark=benchmark.name,
                split=split.name,
                dataset=f"{benchmark.dataset.path}@{split.revision}",
                track=request.track,
                system=system.name,
                system_title=title,
                system_kind=system.kind,
                generation=system.generation,
                seed=request.seed,
            )
        )
        total = len(items)
        spoken = generate(system, items, folder, request.seed, lambda done: progress.step("speak", done, total))
        measure(
            folder,
            request.profile,
            benchmark,
            spoken,
            request.executor,
            lambda done: progress.step("measure", done, total),
            CONDITIONS,
        )
        summary = summarise(folder, request.profile, benchmark, items, CONDITIONS)
        folder.write_summary(summary)
        return summary


def generate(
    system: SpeakingSystem, items: tuple[Item, ...], folder: RunFolder, seed: int, done: Callable[[int], None]
) -> Iterator[Item]:
    """Make the system speak every item it has not spoken yet, and hand on each item whose output is there.

    A failure of the system is kept as its output.
    """
    for number, item in enumerate(items):
        done(number)
        if folder.output(item.id) is None:
            _speak(system, item, folder, seed)
        yield item
    done(len(items))


def _speak(system: SpeakingSystem, item: Item, folder: RunFolder, seed: int) -> None:
    """One item's output, kept."""
    if item.script is None:
        raise BadInput(f"item {item.id} has no script to speak; choose a split of the voice track")
    script = tuple(item.script.to_json())
    try:
        speech = system.speak(item.script, seed=seed)
    except (SpeechFailed, BadInput) as failure:
        folder.write_output(Output(item=item.id, failed=str(failure), script=script))
        return
    folder.write_output(
        Output(
            item=item.id,
            duration=speech.duration,
            wall_seconds=speech.wall_seconds,
            load_seconds=speech.load_seconds,
            turns=tuple(OutputTurn(speaker=t.speaker, start=t.start, end=t.end, text=t.text) for t in speech.turns),
            script=script,
            details=dict(speech.details),
        ),
        speech.samples,
        speech.rate,
    )
