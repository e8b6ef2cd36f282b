"""Make a manifest from the recordings of runs: outputs of two systems for one item can meet in the arena."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from podeval.arena.manifest import ItemEntry, Manifest, OutputEntry, SystemEntry
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.runs.run_folder import Output, RunPlan, run_folders

DIMENSION = "overall"
QUESTION = "Which of the two would you rather go on listening to?"
LONGEST_NAME = 100


def make_manifest(
    runs: Path,
    *,
    benchmark: str = "",
    split: str = "",
    dimension: str = DIMENSION,
    question: str = QUESTION,
    controls: bool = False,
) -> Manifest:
    """Make the manifest of a folder of runs: every item for which two or more systems have a recording.

    Args:
        runs: the folder.
        benchmark: include only runs on this benchmark.
        split: include only runs on this split.
        dimension: dimension on which listeners judge; the same item under another dimension is another item of the
            arena.
        question: the question that listeners answer.
        controls: include recordings of controls, against which everybody should vote.

    Raises:
        BadInput: the dimension has no name, or too long a one.
    """
    if not 0 < len(dimension.strip()) <= LONGEST_NAME:
        raise BadInput(f"a dimension's name has 1 to {LONGEST_NAME} characters, such as overall, not {dimension!r}")
    # Select the recordings, and count the systems that have one of each item.
    outputs = [
        (plan, item, output, audio)
        for plan, item, output, audio in _recordings(runs)
        if benchmark in ("", plan.benchmark)
        and split in ("", plan.split)
        and (controls or plan.shown_kind != "control")
    ]
    times = Counter(_name(plan, item, dimension) for plan, item, _, _ in outputs)
    # Enter the items that at least two systems have in common.
    manifest = Manifest()
    systems, items = {}, {}
    for plan, item, output, audio in outputs:
        name = _name(plan, item, dimension)
        if times[name] < 2:
            continue
        systems[plan.system] = SystemEntry(id=plan.system, title=plan.system_title, kind=plan.shown_kind)
        items[name] = ItemEntry(
            id=name,
            dimension=dimension,
            benchmark=plan.benchmark,
            capability=item.category.replace("_", " "),
            language=item.language,
            title=item.topic,
            instructions=question,
        )
        turns = [(turn.start, turn.end) for turn in output.turns]
        manifest.outputs.append(OutputEntry(system=plan.system, item=name, audio=str(audio.resolve()), turns=turns))
    manifest.systems, manifest.items = list(systems.values()), list(items.values())
    return manifest


def _recordings(runs: Path) -> Iterator[tuple[RunPlan, Item, Output, Path]]:
    """Yield every item's recording in one piece; scripts and answers by turn are left out."""
    for folder in run_folders(runs):
        plan = folder.plan()
        for item in folder.items() or ():
            output = folder.output(item.id)
            audio = folder.audio_path(output) if output is not None and output.audio_removed is None else None
            if output is not None and audio is not None:
                yield plan, item, output, audio


def _name(plan: RunPlan, item: Item, dimension: str) -> str:
    return f"{plan.benchmark}/{plan.split}/{item.id}/{dimension}"
