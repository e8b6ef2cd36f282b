"""Removal of the files that submissions leave on a worker's disk.

The folder `<id>` holds the files of a model and its outputs; `spot-<id>` holds those of a spot check. A submission that
can be retried keeps everything for a week. Nothing stays of a submission that was taken down.
"""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select

from podeval.errors import BadInput
from podeval.files import explain_write_errors, lock_folder
from podeval.runs.run_folder import run_folders
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.content_marks import SpokenContent, keep_marks
from podeval.submissions.queue import Queue
from podeval.submissions.states import KEPT, TAKEN_DOWN_IDS
from podeval.submissions.takedown import delete_facts

SPOT_CHECK = "spot-"

_OVER = ("published", "refused", "withdrawn")
_TRIED_AGAIN = ("failed", "cancelled")
_LOCK, _REMOVED = ".lock", ".removed"


def clear(queue: Queue, work: Path, now: datetime) -> list[str]:
    """Remove files that are not needed any more, and return the names of the folders that lost some.

    A folder that is in use is left, and so are folders that belong to no submission of the queue. If the process is
    killed in between, the next call finishes the work.

    Args:
        queue: queue of the submissions.
        work: folder of submissions at work, on this machine.
        now: the time.
    """
    folders = [path for path in sorted(work.glob("*")) if path.is_dir() and _list_folder(path, _LOCK)]
    cleared: list[str] = []
    if not folders:
        return cleared
    for path in _find_finished(queue, folders, now):
        with suppress(BadInput), lock_folder(path):
            # Looked at again under the lock: it may have been queued meanwhile.
            for unneeded, taken_down in _find_finished(queue, [path], now).items():
                if taken_down:
                    _keep_marks(queue, unneeded, now)
                if _remove(unneeded):
                    cleared.append(path.name)
    return cleared


def _keep_marks(queue: Queue, folder: Path, now: datetime) -> None:
    """Keep the marks of taken-down content that never reached the board, and delete it from the local cache."""
    content = SpokenContent()
    for run in run_folders(folder / "runs"):
        content.add(run)
    delete_facts(content.contents)
    if content.marks:
        id = folder.name.removeprefix(SPOT_CHECK)
        queue.database.write(lambda session: keep_marks(session, id, content.marks, "worker", now))


def _find_finished(queue: Queue, paths: Iterable[Path], now: datetime) -> dict[Path, bool]:
    """Find the folders that nobody needs any more, and whether their submission was taken down."""
    ids = {path: path.name.removeprefix(SPOT_CHECK) for path in paths}
    with queue.database.reading() as session:
        columns = (SubmissionRow.id, SubmissionRow.state, SubmissionRow.state_at)
        query = select(*columns).where(SubmissionRow.id.in_(ids.values()))
        rows = {id: (state, since) for id, state, since in session.execute(query)}
        taken_down = set(session.scalars(TAKEN_DOWN_IDS))
    submissions = {path: (id, *rows[id]) for path, id in ids.items() if id in rows}
    return {
        path: id in taken_down
        for path, (id, state, since) in submissions.items()
        if id in taken_down or _is_over(path, state, since, now)
    }


def _is_over(path: Path, state: str, since: datetime, now: datetime) -> bool:
    if path.name.startswith(SPOT_CHECK):
        used = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return state != "published" or used < now - KEPT
    return state in _OVER or (state in _TRIED_AGAIN and since < now - KEPT)


def _remove(folder: Path) -> bool:
    """Remove the contents of a folder except its lock; return whether there was anything to remove."""
    if not _list_folder(folder, _LOCK):
        return False
    aside = folder / _REMOVED
    with explain_write_errors(folder):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(exist_ok=True)
        # Renamed first: a retry after a kill finds a thing whole or not at all. Files before folders: the mark that a
        # model was fetched must not outlive it.
        for path in sorted(_list_folder(folder, _LOCK, _REMOVED), key=Path.is_dir):
            path.rename(aside / path.name)
        shutil.rmtree(aside, ignore_errors=True)
    return True


def _list_folder(folder: Path, *kept: str) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.name not in kept]
