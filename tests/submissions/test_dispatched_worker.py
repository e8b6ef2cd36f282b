"""`podeval worker --watch --dispatch`, as an operator calls it, on a real PostgreSQL."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.store.database import Database
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy

pytest.importorskip("procrastinate")

COMMAND = """
import sys
from tests.fakes import tiny_worker as tiny
tiny.settle_in()
from podeval.cli import main
from podeval.board import build
build.build = lambda board: None
sys.argv = ["podeval", "worker", "--watch", "--dispatch", "--trust-models", "--pause", "0.5",
    "--database", {database!r}, "--runs", {place!r} + "/board", "--work", {place!r} + "/work"]
main()
"""


@pytest.fixture
def start(server_database: str, tmp_path: Path, warm_store: Any) -> Iterator[Callable[[], Any]]:
    """Start a worker as its own process."""
    running: list[Any] = []

    def begin() -> Any:
        program = COMMAND.format(place=str(tmp_path), database=server_database)
        log = tmp_path / f"worker-{len(running)}.log"
        running.append(warm_store.start(program, log, environment={"TALLY_HOLD": str(tmp_path / "hold")}))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_worker_is_woken_for_what_comes_and_the_other_takes_over_where_it_is_killed(
    tiny: ModuleType, server_database: str, start: Callable[[], Any], tmp_path: Path
) -> None:
    with Database(server_database) as opened:
        queue = Queue(opened, Policy(pause_seconds=0.0))
        first = enqueue(tiny, queue, "embedded")
        workers = [start(), start()]
        wait_for(lambda: queue.get(first.id).state == "published", tmp_path)
        # One that comes later wakes one of the workers that wait, which is held while it measures its second item.
        (tmp_path / "hold").touch()
        second = enqueue(tiny, queue, "reference")
        wait_for(lambda: queue.get(second.id).items_done >= 1, tmp_path)
        (lease,) = queue.leases()
        number = next(n for n, each in enumerate(workers) if lease.worker.endswith(f":{each.pid}"))
        workers[number].kill()
        workers[number].wait()
        (tmp_path / "hold").unlink()
        killed_in = queue.get(second.id).state
        # The killed worker's lease is of two minutes, as workers have it: it is let lapse here.
        tiny.let_leases_lapse(opened)
        queue.sweep()
        wait_for(lambda: queue.get(second.id).state == "published", tmp_path)
        assert killed_in in ("running", "measured"), "it was killed in the middle"
        assert queue.get(second.id).attempt == 2
        survivor = workers[1 - number]
        survivor.send_signal(signal.SIGINT)
        assert survivor.wait(60) in (0, 130)
        # What is published may not be put away yet, which it finishes first.
        _, _, last = (
            (tmp_path / f"worker-{1 - number}.log").read_text().splitlines()[-1].partition(" INFO podeval.worker: ")
        )
        assert last == "the worker stops" or last.startswith(f"the worker finishes {second.id}, then stops")


def enqueue(tiny: ModuleType, queue: Queue, profile: str) -> SubmissionRow:
    """A submission of a system that comes with podeval, so that no model has to be had."""
    plain = tiny.document("silence") | {"source": {"kind": "builtin", "runner": "silence", "role": "control"}}
    row = queue.receive(plain, owner="operator", quotas=False, profile=profile)
    queue.move(row.id, "received", "checked", by="gate", pinned={"passed": True})
    return queue.move(row.id, "checked", "queued", by="gate")


def wait_for(condition: Callable[[], bool], database_path: Path, seconds: float = 90.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        logs = "".join(path.read_text() for path in database_path.glob("worker-*.log"))
        assert time.monotonic() < until, logs[-3_000:]
        time.sleep(0.1)
