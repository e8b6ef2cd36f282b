"""The runs of a submission, the supplied files of each item, and the items as tasks for a model.

Tasks are written to a folder, which adapters read inside a sandbox.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podeval import benchmarks
from podeval.audio.container import AUDIO_ENDINGS
from podeval.benchmarks.benchmark import Item
from podeval.datasets.items import load_items
from podeval.runs.item_inputs import write_prompt
from podeval.runs.run_folder import RunFolder
from podeval.store.submission_tables import SubmissionRow
from podeval.systems.adapters.outputs import SCRIPT
from podeval.systems.speech import Ask, RecordedUserTurn, Reference
from podeval.systems.submission import Submission

TASKS = {"voice": ("text-to-speech", "podcast"), "write": ("script-writer",), "respond": ("speech-to-speech",)}
"""Model tasks that are suitable for a track."""


@dataclass(frozen=True)
class RunEntry:
    """One run that a submission asks for: a split of a benchmark on a track."""

    benchmark: str
    split: str
    track: str

    @property
    def folder(self) -> str:
        """Folder of the run's outputs within a repo or folder of outputs."""
        return f"{self.benchmark}/{self.split}"

    def items(self, data: Path | None = None) -> tuple[Item, ...]:
        """Return the items, in order.

        Raises:
            BadInput: the items come from a dataset that must be built first; the message gives the command.
        """
        return load_items(benchmarks.get(self.benchmark), self.split, data).items


def list_entries(document: Submission) -> tuple[RunEntry, ...]:
    """List the runs that a submission asks for: every split of its tracks except trial splits, or its trial splits if
    there are only trial splits.

    Superseded splits are not entered, nor are splits for listening tests, which are generated only on request.
    """
    return list_runs_of_tracks((entered.name, track) for entered in document.benchmarks for track in entered.tracks)


def list_runs_of_tracks(tracks: Iterable[tuple[str, str]]) -> tuple[RunEntry, ...]:
    """List the runs on tracks, each given as a benchmark and one of its tracks; unknown tracks have no runs."""
    runs = []
    for name, track in tracks:
        splits = benchmarks.get(name).splits if name in benchmarks.list_benchmarks() else ()
        serving = [split for split in splits if track in split.tracks and split.open_to_entries]
        whole = [split for split in serving if not split.sample and not split.trial] or serving
        runs += [RunEntry(name, split.name, track) for split in whole]
    return tuple(runs)


def list_possible_runs(document: Submission) -> tuple[RunEntry, ...]:
    """List every run that a submission may have, including those in splits that are no longer entered."""
    return tuple(
        RunEntry(entered.name, split.name, track)
        for entered in document.benchmarks
        for track in entered.tracks
        for split in benchmarks.get(entered.name).splits
        if track in split.tracks
    )


def find_trial(document: Submission, folder: Path) -> tuple[RunEntry, ...]:
    """Find the runs for which a folder has outputs, if the folder has no outputs for the document's own entries."""
    supplied = [run for run in list_possible_runs(document) if (folder / run.folder).is_dir()]
    return () if set(supplied) & set(list_entries(document)) else tuple(supplied)


def find_runs(row: SubmissionRow, board: Path) -> Iterator[tuple[RunEntry, RunFolder]]:
    """Find the runs of a submission on the board, excluding those of other submissions of the same system."""
    for entry, run in list_run_folders(row, board):
        if (run.path / "run.json").exists() and run.plan().generation.get("submission") == row.id:
            yield entry, run


def list_run_folders(row: SubmissionRow, board: Path) -> list[tuple[RunEntry, RunFolder]]:
    """List the runs that a submission may have on the board, whether or not they exist."""
    document = Submission.model_validate(row.document)
    return [
        (entry, RunFolder(board, entry.benchmark, entry.split, document.system.id))
        for entry in list_possible_runs(document)
    ]


def list_expected_names(entry: RunEntry, items: Sequence[Item]) -> dict[str, tuple[str, ...]]:
    """List the names that a file may have for each expected output; outputs are named by item, or by item and turn."""
    endings = SCRIPT if entry.track == "write" else AUDIO_ENDINGS
    names = [
        name
        for item in items
        for name in ([f"{item.id}/{turn.id}" for turn in item.user] if entry.track == "respond" else [item.id])
    ]
    return {name: tuple(f"{name}.{ending}" for ending in endings) for name in names}


def find_outputs_folder(entry: RunEntry, files: Mapping[str, int], alone: bool) -> str:
    """Return the folder of an entry's outputs, `<benchmark>/<split>`; a single entry may use the root."""
    inside = any(name.startswith(f"{entry.folder}/") for name in files)
    return "" if alone and not inside else f"{entry.folder}/"


PRESETS = {"podbench": "podbench", "mtalk_bench": "mtalk", "lfs_bench": "lfs"}
"""Generation settings from the papers, by benchmark; other benchmarks use the model's own settings."""


def get_preset_settings(entry: RunEntry) -> str:
    """Return the generation settings of a benchmark."""
    return PRESETS.get(entry.benchmark, "default")


def write_asks(entry: RunEntry, items: Iterable[Item], folder: Path) -> Path:
    """Write the items with their recordings; return the path of the items' file."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [ask_of(entry, item, folder).model_dump_json(exclude_none=True) for item in items]
    file = folder / "items.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def ask_of(entry: RunEntry, item: Item, folder: Path) -> Ask:
    """Return an item as a task for a model."""
    match entry.track:
        case "voice" if item.script is not None:
            return Ask(id=item.id, language=item.language, script=item.script.turns, voices=_voices(item, folder))
        case "write":
            return Ask(id=item.id, language=item.language, prompt=write_prompt(item))
        case "podcast":
            return Ask(id=item.id, language=item.language, topic=item.topic)
    turns = tuple(
        RecordedUserTurn(id=turn.id, words=turn.words, audio=_beside(turn.audio, f"{item.id}.{turn.id}", folder))
        for turn in item.user
    )
    return Ask(id=item.id, language=item.language, user=turns)


def _voices(item: Item, folder: Path) -> dict[str, Reference]:
    """Return the reference voice of each speaker, copying each recording only once to a place next to the items."""
    voices = {}
    for speaker, voice in item.reference_voices.items():
        copy = folder / f"{voice.id}{Path(voice.file).suffix}"
        if not copy.exists():
            shutil.copyfile(voice.recording(), copy)
        voices[speaker] = Reference(audio=copy.name, text=voice.words)
    return voices


def _beside(audio: str | None, name: str, folder: Path) -> str | None:
    if audio is None:
        return None
    copy = f"{name}{Path(audio).suffix}"
    shutil.copyfile(audio, folder / copy)
    return copy
