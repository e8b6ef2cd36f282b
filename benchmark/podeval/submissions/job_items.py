"""Write the task of a model for each item of a run, as a folder that adapters read inside a sandbox."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from podeval.benchmarks.benchmark import Item
from podeval.runs.asks import write_prompt
from podeval.submissions.benchmark_entries import RunEntry
from podeval.systems.adapters.job import Job
from podeval.systems.ask import Ask, RecordedUserTurn, Reference

PRESETS = {"podbench": "podbench", "mtalk_bench": "mtalk", "lfs_bench": "lfs"}
"""Settings of generation by benchmark, as the papers have them; of others, the model's own."""

ITEMS = "items.jsonl"


def get_preset_settings(entry: RunEntry) -> str:
    """Return the generation settings of a benchmark."""
    return PRESETS.get(entry.benchmark, "default")


def write_asks(entry: RunEntry, items: Iterable[Item], folder: Path) -> Path:
    """Write the items with their recordings; return the file of items."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [ask_of(entry, item, folder).model_dump_json(exclude_none=True) for item in items]
    file = folder / ITEMS
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def write_job(path: Path, job: Job) -> Path:
    """Write a job in the form that the generating program reads; return its path."""
    path.write_text(job.model_dump_json(exclude_none=True), encoding="utf-8")
    return path


def ask_of(entry: RunEntry, item: Item, folder: Path) -> Ask:
    """Return one item as a task for a model."""
    match entry.track:
        case "voice" if item.script is not None:
            return Ask(id=item.id, language=item.language, script=item.script.turns, voices=_voices(item, folder))
        case "write":
            return Ask(id=item.id, language=item.language, prompt=write_prompt(item))
    turns = tuple(
        RecordedUserTurn(id=turn.id, words=turn.words, audio=_beside(turn.audio, f"{item.id}.{turn.id}", folder))
        for turn in item.user
    )
    return Ask(id=item.id, language=item.language, user=turns)


def _voices(item: Item, folder: Path) -> dict[str, Reference]:
    """Return the reference voice of each speaker; each recording is copied beside the items once."""
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
