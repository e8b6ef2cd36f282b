"""Keep the recordings of runs within a budget: beyond it the oldest are removed; results and words stay.

Only recordings of finished runs are removed, those kept longest first, runs that were set aside before those that the
board shows. Recordings that battles and open listening tests play stay. The output of every item says when its audio
was removed, so that it is not taken for missing and no run makes it again unasked.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.errors import BadInput, PodevalError
from podeval.runs.run_folder import SUPERSEDED, Output, RunFolder, run_folders
from podeval.store.database import Database
from podeval.store.files import append_line, lock_folder, write_json
from podeval.store.tables import PLAYED_AFTER, ArenaItem, ArenaSystem, Battle, ListeningTest
from podeval.store.tables import ArenaOutput as Played

VARIABLE = "PODEVAL_RUNS_GB"
"""Environment variable with the budget for the recordings of all runs in gigabytes; no limit where it is not set."""

LOG = "retention.jsonl"

_HOUR = 3600.0


@dataclass(frozen=True)
class Removal:
    """The recordings that one run loses, by item."""

    run: RunFolder
    made_at: str
    files: dict[str, list[Path]]
    bytes: int


@dataclass(frozen=True)
class Retention:
    """A plan of removals with the sizes in bytes; `short` is what stays over the budget, and `why` the reason."""

    budget: int
    bytes: int
    removals: list[Removal] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    """Runs that keep recordings although the budget is passed, with the reason."""

    @property
    def freed(self) -> int:
        """Bytes freed by all removals."""
        return sum(removal.bytes for removal in self.removals)

    @property
    def short(self) -> int:
        """Bytes over the budget after everything that can be removed is gone."""
        return max(0, self.bytes - self.freed - self.budget)


def read_budget() -> int | None:
    """Return the budget in bytes from the setting; None where there is none.

    Raises:
        BadInput: the setting is not a number.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        return None
    try:
        size = float(value)
        if not size >= 0:
            raise ValueError
        return int(size * 2**30)
    except (ValueError, OverflowError):
        raise BadInput(f"{VARIABLE} must be a number of gigabytes, such as 200, not {value!r}") from None


def look(runs: Path, limit: int, needed: Iterable[Path] = ()) -> Retention:
    """Plan the removals that bring the recordings of all runs within a limit; nothing is changed.

    Args:
        runs: the folder of runs.
        limit: bytes.
        needed: recordings that stay whatever the limit is.
    """
    stay = {path.resolve() for path in needed}
    folders = [(folder, *_read_measured(folder)) for folder in (*_list_set_aside(runs), *run_folders(runs))]
    sizes = {folder.path: _sum_bytes(_list_recordings(folder)) for folder, *_ in folders}
    plan = Retention(limit, sum(sizes.values()))
    over = plan.bytes - limit
    # Runs that were set aside go first, then those that were measured longest ago.
    for folder, finished, moment in sorted(folders, key=lambda entry: (not _is_aside(runs, entry[0]), entry[2])):
        if over <= 0:
            break
        name = folder.path.relative_to(runs).as_posix()
        if not finished:
            plan.kept[name] = "it is not finished"
            continue
        # Remove only recordings that nothing plays.
        files = {item: [path for path in paths if path.resolve() not in stay] for item, paths in _by_item(folder)}
        files = {item: paths for item, paths in files.items() if paths}
        size = _sum_bytes(path for paths in files.values() for path in paths)
        if size < sizes[folder.path]:
            plan.kept[name] = "battles or listening tests play some of it"
        if size:
            plan.removals.append(Removal(folder, moment, files, size))
            over -= size
    return plan


def remove(plan: Retention, runs: Path, *, now: datetime | None = None) -> int:
    """Carry out a plan of `look`, and return the bytes freed; a run that is being written to is left for the next time.

    Raises:
        DiskFull: the outputs cannot be marked; recordings of unmarked outputs are still there.
    """
    moment, freed = now or datetime.now(UTC), 0
    for removal in plan.removals:
        try:
            with lock_folder(removal.run.path):
                for item, paths in removal.files.items():
                    freed += _remove(removal.run, item, paths, moment)
        except BadInput:
            continue
        name = removal.run.path.relative_to(runs).as_posix()
        line = {"schema": 1, "at": moment.isoformat(timespec="seconds"), "run": name, "bytes": removal.bytes}
        append_line(runs / LOG, {**line, "items": sorted(removal.files)})
    return freed


def find_needed(database: Database, runs: Path, now: datetime | None = None) -> set[Path]:
    """Return the recordings that battles can play or played a short while ago, and those of open listening tests."""
    moment = now or datetime.now(UTC)
    with database.reading() as session:
        paths = set(_list_battle_audio(session, moment))
        designs = list(session.scalars(select(ListeningTest.design).where(ListeningTest.closed_at.is_(None))))
    texts = {
        text for design in designs for text in _collect_texts(design) if Path(text).suffix.lower()[1:] in AUDIO_ENDINGS
    }
    return {Path(path) for path in paths if "://" not in path} | {runs / text for text in texts if "://" not in text}


def keep_to_budget(database: Database, runs: Path, log: Any = print) -> None:
    """Remove what is over the budget, and log it in one sentence; do nothing where no budget is set."""
    limit = read_budget()
    if limit is None:
        return
    plan = look(runs, limit, find_needed(database, runs))
    if plan.removals:
        freed = remove(plan, runs)
        log(
            f"{freed / 2**30:.3g} GB of recordings of {len(plan.removals)} runs were removed: {describe_shortage(plan)}"
        )
    elif plan.short:
        log(describe_shortage(plan))


def describe_shortage(plan: Retention) -> str:
    """Describe how the budget stands after the removals."""
    if not plan.short:
        return f"the budget of {plan.budget / 2**30:.3g} GB is kept"
    return (
        f"the recordings are {plan.short / 2**30:.3g} GB over the budget of {plan.budget / 2**30:.3g} GB, and what "
        f"is left of them is still needed; raise {VARIABLE}, or retire systems of the arena"
    )


def _remove(run: RunFolder, item: str, paths: list[Path], moment: datetime) -> int:
    """Remove one item's recordings after marking its output, so that a kill in between leaves no unmarked loss."""
    try:
        output = Output.model_validate_json(run.output_path(item).read_bytes())
    except (OSError, ValueError) as error:
        raise PodevalError(f"{run.output_path(item)} cannot be read ({error}); its audio is kept") from None
    if output.audio_removed is None:
        output = output.model_copy(update={"audio_removed": moment.date().isoformat()})
        write_json(run.output_path(item), output.model_dump())
    freed = 0
    for path in paths:
        size = path.stat().st_size if path.exists() else 0
        path.unlink(missing_ok=True)
        freed += size
    return freed


def _list_battle_audio(session: Session, now: datetime) -> Iterable[str]:
    recent = select(Battle.output_a, Battle.output_b).where(Battle.expires_at > now - PLAYED_AFTER)
    outputs = {output for pair in session.execute(recent) for output in pair}
    active = (
        select(Played.id, Played.audio, Played.item)
        .join(ArenaSystem, Played.system == ArenaSystem.id)
        .join(ArenaItem, Played.item == ArenaItem.id)
        .where(Played.audio != "")
    )
    may_be_shown = Played.active & ArenaSystem.active & ArenaItem.active
    items = set()
    for start in range(0, max(1, len(outputs)), 500):
        some = sorted(outputs)[start : start + 500]
        for _, audio, item in session.execute(active.where(or_(may_be_shown, Played.id.in_(some)))):
            items.add(item)
            yield audio
    for item, turns in session.execute(select(ArenaItem.id, ArenaItem.turns)):
        if item in items:
            yield from (turn["audio"] for turn in turns if turn.get("audio"))


def _collect_texts(value: Any) -> Iterable[str]:
    """Yield every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _collect_texts(part)


def _list_set_aside(runs: Path) -> list[RunFolder]:
    runs_aside = sorted((runs / SUPERSEDED).glob("*/*/*/*/run.json"))
    places = [path.parent.relative_to(runs / SUPERSEDED).parts for path in runs_aside]
    return [RunFolder(runs / SUPERSEDED / benchmark, *rest) for benchmark, *rest in places]


def _is_aside(runs: Path, folder: RunFolder) -> bool:
    return folder.path.is_relative_to(runs / SUPERSEDED)


def _read_measured(folder: RunFolder) -> tuple[bool, str]:
    """Return whether a run was measured, and when."""
    summaries = folder.summaries()
    return bool(summaries), max((summary.created for summary in summaries), default="")


def _by_item(folder: RunFolder) -> Iterable[tuple[str, list[Path]]]:
    """Yield the recordings of every item that has an output, also those left over by a killed removal."""
    for document in sorted(folder.outputs.glob("*.json")):
        try:
            output = Output.model_validate_json(document.read_bytes())
        except ValueError:
            continue
        names = [output.audio, *(answer.audio for answer in output.answers)]
        paths = [folder.outputs / Path(name).name for name in names if name]
        yield output.item, [path for path in paths if path.exists()]


def _list_recordings(folder: RunFolder) -> Iterable[Path]:
    return (path for path in folder.outputs.glob("*") if path.suffix.lower()[1:] in AUDIO_ENDINGS)


def _sum_bytes(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def schedule_housekeeping(
    database: Database, runs: Path, log: Callable[[str], None]
) -> dict[str, tuple[float, Callable[[], Any]]]:
    """Return the scheduled job for the disk, where a budget is set: recordings are kept within it every hour.

    Raises:
        BadInput: the budget is not a number.
    """
    if read_budget() is None:
        return {}
    return {"retention": (_HOUR, lambda: keep_to_budget(database, runs, log))}
