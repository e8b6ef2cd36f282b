"""Keep the recordings of runs within a budget by removing the oldest recordings; results and words are kept.

If object storage is configured, a run's recordings are moved there as one tar file and can be fetched again. Only
recordings of finished runs are removed, the oldest first, and superseded runs before runs on the board.
Recordings that battles and open listening tests use are kept. Every item's output records the removal of its audio, so
the audio does not count as missing and is not generated again unless requested.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import NonNegativeFloat, TypeAdapter
from sqlalchemy import or_, select

from podeval.audio.container import AUDIO_ENDINGS
from podeval.errors import BadInput
from podeval.files import append_line, lock_folder, read_shard, write_shard
from podeval.runs.run_folder import SHARDS, Output, RunFolder, list_shards, run_folders, superseded_runs
from podeval.store.database import Database
from podeval.store.tables import PLAYED_AFTER, ArenaItem, ArenaOutput, ArenaSystem, Battle, ListeningTest, list_audio

VARIABLE = "PODEVAL_RUNS_GB"
"""Environment variable with the budget for the recordings of all runs in gigabytes; if it is unset, there is no
limit."""

STORE = "PODEVAL_RUNS_STORE"
"""Environment variable with the folder or object storage to which recordings are moved; if unset, they are deleted."""


@dataclass
class Retention:
    """The result: the size before, the items that lost recordings in each run, and why other runs kept theirs."""

    budget: int
    bytes: int
    freed: int = 0
    removed: dict[str, list[str]] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    def describe(self) -> str:
        """Describe whether the recordings fit the budget after the removals."""
        short, budget = self.bytes - self.freed - self.budget, f"the budget of {self.budget / 2**30:.3g} GB"
        if short <= 0:
            return f"the recordings fit {budget}"
        need = f"the other recordings are still needed; raise {VARIABLE}, or retire systems in the arena"
        return f"the recordings are {short / 2**30:.3g} GB over {budget}, but {need}"


def keep_to_budget(
    runs: Path, budget: int, needed: Collection[Path] = (), *, dry_run: bool = False, now: datetime | None = None
) -> Retention:
    """Remove recordings, or move them to `PODEVAL_RUNS_STORE`, until those of all runs fit a budget in bytes.

    The recordings that are `needed` are kept regardless of the budget; a `dry_run` removes nothing.

    Raises:
        DiskFull: an output cannot be marked; its recordings still exist.
        PodevalError: the storage refuses the recordings; they still exist.
    """
    moment, stay = now or datetime.now(UTC), {path.parent.resolve() / path.name for path in needed}
    aside = superseded_runs(runs)
    measured = {run: max((one.created for one in run.summaries()), default="") for run in (*aside, *run_folders(runs))}
    audio = {run: [p for p in run.outputs.glob("*") if p.suffix.lower()[1:] in AUDIO_ENDINGS] for run in measured}
    sizes = {run: sum(path.stat().st_size for path in paths) for run, paths in audio.items()}
    done = Retention(budget, sum(sizes.values()))
    # Start with superseded runs, then continue with the runs that were measured longest ago.
    for run in sorted(measured, key=lambda one: (one not in aside, measured[one])):
        if done.bytes - done.freed <= budget:
            break
        name = run.path.relative_to(runs).as_posix()
        if not measured[run]:
            done.kept[name] = "the run is not finished"
            continue
        try:
            with lock_folder(run.path):
                folder = run.outputs.resolve()
                outputs = [
                    (output, files)
                    for output in run.readable_outputs()
                    if (files := [p for p in run.audio_paths(output) if p.exists() and folder / p.name not in stay])
                ]
                freed = sum(path.stat().st_size for _, files in outputs for path in files)
                if outputs and not dry_run:
                    _remove(run, outputs, name, moment)
        except BadInput:
            done.kept[name] = "a process is writing to the run"
            continue
        if freed < sizes[run]:
            done.kept[name] = "battles or listening tests need some of them"
        if freed:
            done.freed += freed
            done.removed[name] = sorted(output.item for output, _ in outputs)
    return done


def find_needed(database: Database, runs: Path, now: datetime | None = None) -> set[Path]:
    """Return the recordings that battles can play or played recently, and the recordings of open listening tests."""
    recent = Battle.expires_at > (now or datetime.now(UTC)) - PLAYED_AFTER
    battles = (ArenaOutput.id.in_(select(side).where(recent)) for side in (Battle.output_a, Battle.output_b))
    used = or_(ArenaOutput.active & ArenaSystem.active & ArenaItem.active, *battles)
    played = select(ArenaOutput.audio, ArenaItem).select_from(ArenaOutput).join(ArenaSystem).join(ArenaItem).where(used)
    with database.reading() as session:
        paths = {path for audio, item in session.execute(played) for path in (audio, *list_audio(item.turns))}
        for design in session.scalars(select(ListeningTest.design).where(ListeningTest.closed_at.is_(None))):
            paths.update(list_audio(design))
    return {runs / path for path in paths if path and "://" not in path}


def schedule_housekeeping(database: Database, runs: Path, log: Callable[[str], None]) -> dict[str, tuple[float, Any]]:
    """Return the hourly job that keeps recordings within the budget; no job if no budget is set.

    Raises:
        BadInput: the budget is not a number.
    """
    if not (value := os.environ.get(VARIABLE)):
        return {}
    try:
        budget = int(TypeAdapter(NonNegativeFloat).validate_python(value) * 2**30)
    except (ValueError, OverflowError):
        raise BadInput(f"{VARIABLE} must be a number of gigabytes, such as 200, not {value!r}") from None

    def work() -> None:
        done = keep_to_budget(runs, budget, find_needed(database, runs))
        if done.bytes > budget:
            log(f"recordings of {len(done.removed)} runs ({done.freed / 2**30:.3g} GB) were removed; {done.describe()}")

    return {"retention": (3600.0, work)}


def fetch_recordings(run: RunFolder) -> int:
    """Fetch a run's recordings that were moved to storage; return the number of items whose recordings were fetched.

    Raises:
        PodevalError: the storage does not return one of the run's tar files.
    """
    with lock_folder(run.path):
        for address in list_shards(run):
            read_shard(address, run.outputs)
        complete = 0
        for output in run.readable_outputs():
            if output.audio_removed and all(path.exists() for path in run.audio_paths(output)):
                run.write_output(output.model_copy(update={"audio_removed": None}))
                complete += 1
    return complete


def _remove(run: RunFolder, outputs: Sequence[tuple[Output, list[Path]]], name: str, moment: datetime) -> None:
    """Remove recordings after marking their outputs, so that an interruption in between leaves no loss unmarked."""
    if store := os.environ.get(STORE):
        recordings = [path for _, files in outputs for path in files]
        names = "\n".join(path.name for path in recordings).encode()
        address = f"{store.rstrip('/')}/{name}/{hashlib.sha256(names).hexdigest()[:16]}.tar"
        # The address is stored first, so that a takedown also deletes what an interrupted move left behind.
        if address not in list_shards(run):
            append_line(run.path / SHARDS, {"schema": 1, "address": address})
        write_shard(address, recordings)
    for output, files in outputs:
        if output.audio_removed is None:
            run.write_output(output.model_copy(update={"audio_removed": moment.date().isoformat()}))
        for path in files:
            path.unlink()
