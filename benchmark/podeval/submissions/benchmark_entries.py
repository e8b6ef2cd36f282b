"""The runs that a submission asks for, and which files of supplied outputs belong to which item."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podeval import benchmarks
from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.benchmarks.benchmark import Item
from podeval.datasets.items import load_items
from podeval.systems.adapters.outputs import SCRIPT
from podeval.systems.submission import Submission

ENDINGS = {"voice": AUDIO_ENDINGS, "write": SCRIPT, "respond": AUDIO_ENDINGS}
"""Allowed endings of an output's file, by track."""

TASKS = {
    "voice": ("text-to-speech", "podcast"),
    "write": ("script-writer",),
    "respond": ("speech-to-speech",),
}
"""Tasks of a model that are suitable for a track."""


@dataclass(frozen=True)
class RunEntry:
    """One run that a submission asks for: a split of a benchmark on a track."""

    benchmark: str
    split: str
    track: str

    @property
    def folder(self) -> str:
        """Folder of its outputs in a repo or folder of outputs."""
        return f"{self.benchmark}/{self.split}"

    def items(self, data: Path | None = None) -> tuple[Item, ...]:
        """Return the items, in order.

        Raises:
            BadInput: they are rows of a dataset that has to be built first; the message gives the command.
        """
        return load_items(benchmarks.get(self.benchmark), self.split, data).items


def list_entries(document: Submission) -> tuple[RunEntry, ...]:
    """List the runs that a submission asks for: every split of its tracks, or trial splits if there are no others.

    Splits for listening tests are generated on request, and not entered; nor are those that another has replaced.
    """
    return list_runs_of_tracks((entered.name, track) for entered in document.benchmarks for track in entered.tracks)


def list_runs_of_tracks(tracks: Iterable[tuple[str, str]]) -> tuple[RunEntry, ...]:
    """List the runs that tracks, each a benchmark and a track of it, are entered with; unknown ones have none."""
    runs = []
    for name, track in tracks:
        splits = benchmarks.get(name).splits if name in benchmarks.list_benchmarks() else ()
        serving = [split for split in splits if track in split.tracks and split.open_to_entries]
        whole = [split for split in serving if not split.sample and not split.trial] or serving
        runs += [RunEntry(name, split.name, track) for split in whole]
    return tuple(runs)


def list_possible_runs(document: Submission) -> tuple[RunEntry, ...]:
    """List every run that a submission may have, also in splits that are not entered any more."""
    return tuple(
        RunEntry(entered.name, split.name, track)
        for entered in document.benchmarks
        for track in entered.tracks
        for split in benchmarks.get(entered.name).splits
        if track in split.tracks
    )


def list_expected_names(entry: RunEntry, items: Sequence[Item]) -> dict[str, tuple[str, ...]]:
    """List the names that a file may have for each expected output, which is named by item, or by item and turn."""
    endings = ENDINGS[entry.track]
    names = [
        name
        for item in items
        for name in ([f"{item.id}/{turn.id}" for turn in item.user] if entry.track == "respond" else [item.id])
    ]
    return {name: tuple(f"{name}.{ending}" for ending in endings) for name in names}


def find_outputs_folder(entry: RunEntry, files: Mapping[str, int], alone: bool) -> str:
    """Return the folder of an entry's outputs, `<benchmark>/<split>`; an only entry may use the root."""
    inside = any(name.startswith(f"{entry.folder}/") for name in files)
    return "" if alone and not inside else f"{entry.folder}/"
