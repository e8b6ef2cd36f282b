"""How a system that runs in our own processes comes to speak a benchmark's items: here, or wherever an executor works.

Only the process that owns the run's folder writes into it; what was said elsewhere comes back as samples.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.runs.executor import Executor, InProcess
from podeval.runs.run_folder import Output, RunFolder
from podeval.systems.speech import Ask, Samples, SpeakingSystem, SpeechFailed


class Speaking(Protocol):
    """Makes a system speak."""

    def require(self, system: SpeakingSystem, seed: int) -> None:
        """Refuse to start where the system cannot speak: see `SpeakingSystem.require`."""

    def speak(
        self, system: SpeakingSystem, items: tuple[Item, ...], folder: RunFolder, seed: int, done: Callable[[int], None]
    ) -> Iterator[Item]:
        """Put what is missing into the folder, and hand on each item whose output is there."""


@dataclass(frozen=True)
class Spoken:
    """One item's output on its way into the folder; no samples where the system failed on it."""

    output: Output
    samples: Samples | None = None
    rate: int = 0


@dataclass(frozen=True)
class Voicing:
    """The executor's processes speak, one item each at a time; by default this one, in the order of the items."""

    executor: Executor = field(default_factory=InProcess)

    def require(self, system: SpeakingSystem, seed: int) -> None:
        """Refuse to start where the system cannot speak.

        Raises:
            BadInput: the seed is out of range.
            ModelMissing: something has to be installed where it would speak.
        """
        for _ in self.executor.map(partial(_require, seed=seed), (system,)):
            pass

    def speak(
        self, system: SpeakingSystem, items: tuple[Item, ...], folder: RunFolder, seed: int, done: Callable[[int], None]
    ) -> Iterator[Item]:
        """Make the system speak every item it has not spoken yet, and hand on each item whose output is there.

        A failure of the system is kept as its output. An item whose process died twice is left out; the next run
        tries it again.
        """
        missing = [item for item in items if folder.output(item.id) is None]
        finished = len(items) - len(missing)
        absent = {item.id for item in missing}
        done(finished)
        yield from (item for item in items if item.id not in absent)
        for item, spoken in self.executor.map(partial(speak_item, system, seed=seed), _with_script(missing)):
            if spoken is not None:
                folder.write_output(spoken.output, spoken.samples, spoken.rate)
                finished += 1
                done(finished)
                yield item


def speak_item(system: SpeakingSystem, item: Item, *, seed: int) -> Spoken:
    """Have a system speak one item; a failure of the system is its output.

    Raises:
        ModelMissing: the system is not installed here.
    """
    assert item.script is not None
    script = tuple(item.script.to_json())
    try:
        (speech,) = system.make([_ask_of(item)], seed)
    except (SpeechFailed, BadInput) as failure:
        return Spoken(Output(item=item.id, failed=str(failure), script=script))
    output = Output(
        item=item.id,
        duration=speech.duration,
        wall_seconds=speech.wall_seconds,
        load_seconds=speech.load_seconds,
        turns=speech.turns,
        script=script,
        details=dict(speech.details),
    )
    return Spoken(output, speech.samples, speech.rate)


def _ask_of(item: Item) -> Ask:
    """Ask for an item as systems are asked; the item was checked when it was read."""
    assert item.script is not None
    return Ask.model_construct(id=item.id, language=item.language, script=item.script.turns)


def _require(system: SpeakingSystem, *, seed: int) -> None:
    system.require(seed)


def _with_script(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if item.script is None:
            raise BadInput(f"item {item.id} has no script to speak; choose a split of the voice track")
        yield item
