"""Workers woken by procrastinate, on a real PostgreSQL."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.store.database import Database
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy
from podeval.submissions.scheduler import Dispatch

pytest.importorskip("procrastinate")


@pytest.fixture
def queue(server_database: str) -> Iterator[Queue]:
    with Database(server_database) as database:
        yield Queue(database, Policy())


def worked_off(dispatch: Dispatch, worker: Any) -> None:
    """In a thread of its own: procrastinate begins a loop, and a browser of other tests may have left one running."""
    with ThreadPoolExecutor(1) as alone:
        alone.submit(dispatch.work, worker.once, wait=False).result()


def test_every_submission_that_waits_is_announced_once_and_done_once(
    tiny: ModuleType, queue: Queue, tmp_path: Path
) -> None:
    rows = [tiny.enqueue(queue, name, owner=name) for name in ("one", "two")]
    dispatch = Dispatch(queue)
    assert dispatch.announce() == 2
    assert dispatch.announce() == 0
    worked_off(Dispatch(queue), tiny.worker(queue, tmp_path))
    assert [queue.get(row.id).state for row in rows] == ["published", "published"]
    assert [queue.get(row.id).attempt for row in rows] == [1, 1]
    assert dispatch.announce() == 0


def test_a_job_without_a_submission_harms_nothing_and_a_lost_job_is_made_again(
    tiny: ModuleType, queue: Queue, tmp_path: Path
) -> None:
    row = tiny.enqueue(queue, "one")
    dispatch = Dispatch(queue)
    dispatch.announce()
    queue.cancel(row.id, "alice")
    worked_off(dispatch, tiny.worker(queue, tmp_path))
    assert queue.get(row.id).state == "cancelled"
    queue.retry(row.id, "alice")
    assert dispatch.announce() == 1


def test_sqlite_needs_no_dispatcher(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as database, pytest.raises(BadInput, match="let workers watch the queue"):
        Dispatch(Queue(database))
