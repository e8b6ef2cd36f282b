"""Spread one run over several processes, one per GPU, with `accelerate launch`; each generates a share of the outputs.

The first process owns the run's folder, measures and aggregates. The other processes put outputs into the folder and
exit. The processes synchronise only once, when the plan has been written; after that, progress is visible in the files,
so no process waits in a call that could time out, and a killed group can resume.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput, ModelMissing
from podeval.runs.run import RunRequest, Voicing, choose_items, read_items
from podeval.runs.run_folder import RunFolder
from podeval.systems.speech import SpeakingSystem

TICK = 0.5
"""Seconds between two checks for the outputs of the other processes."""

_PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class ProcessGroup:
    """This process within the group that was started together; the process of rank 0 measures."""

    rank: int
    count: int
    meet: Callable[[], None]
    """Waits until all processes have arrived, then dissolves the group."""

    def share(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return the items that this process generates: every n-th, because long items are often next to each other."""
        return items[self.rank :: self.count]


def group() -> ProcessGroup | None:
    """Return the group of this process; None if it was started alone.

    Remove the group's variables from the environment, so that programs that this process starts do not join the group.

    Raises:
        ModelMissing: accelerate is not installed.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) < 2:
        return None
    try:
        from accelerate import PartialState
    except ModuleNotFoundError:
        raise ModelMissing("a run in several processes needs accelerate; run `pip install accelerate`") from None
    _choose_device(int(os.environ.get("LOCAL_RANK") or 0))
    # Synchronise on the CPU, which works with and without GPUs and lets several processes share a GPU.
    state = PartialState(cpu=True)
    for variable in _PLACE:
        os.environ.pop(variable, None)

    def meet() -> None:
        """Synchronise on the CPU; accelerate's own method needs one GPU for each process."""
        from torch import distributed

        distributed.monitored_barrier()
        state.destroy_process_group()

    return ProcessGroup(state.process_index, state.num_processes, meet)


@dataclass(frozen=True, kw_only=True)
class Shares(Voicing):
    """Generation as the first process sees it: it generates its own share, and the other processes generate theirs."""

    group: ProcessGroup

    def speak(
        self, system: SpeakingSystem, items: tuple[Item, ...], folder: RunFolder, seed: int, done: Callable[[int], None]
    ) -> Iterator[Item]:
        """Generate the first share; pass on every item as soon as its output, from any process, is in the folder."""
        self.group.meet()
        share = self.group.share(items)
        mine = {item.id for item in share}
        others = [item for item in items if item.id not in mine]

        def collect_arrived() -> Iterator[Item]:
            for other in others.copy():
                if folder.output(other.id) is not None:
                    others.remove(other)
                    yield other

        def collect() -> Iterator[Item]:
            for item in Voicing().speak(system, share, folder, seed, lambda count: None):
                yield item
                yield from collect_arrived()
            while others:
                yield from collect_arrived()
                if others:
                    time.sleep(TICK)

        for finished, item in enumerate(collect(), 1):
            done(finished)
            yield item


def speak_share(system: SpeakingSystem, request: RunRequest, group: ProcessGroup) -> None:
    """Put this process's share of a run's outputs into its folder, which the first process has begun.

    Raises:
        BadInput: the first process's folder is not on a disk that this process can see.
        ModelMissing: the system cannot speak on this machine.
    """
    items = choose_items(request, read_items(request).items)
    folder = RunFolder(request.runs, request.benchmark.name, request.split, system.name)
    voicing = Voicing()
    if any(folder.output(item.id) is None for item in items):
        voicing.require(system, request.seed)
    group.meet()
    if not (folder.path / "run.json").exists():
        raise BadInput(
            f"process {group.rank} cannot see {folder.path}; all processes of `accelerate launch` need the same "
            "--out, on a disk that all machines share"
        )
    for _ in voicing.speak(system, group.share(items), folder, request.seed, lambda count: None):
        pass


def _choose_device(local: int) -> None:
    import torch

    if "PODEVAL_DEVICE" not in os.environ and torch.cuda.is_available():
        os.environ["PODEVAL_DEVICE"] = f"cuda:{local % torch.cuda.device_count()}"
