"""What keeps a claim alive, while the database of PostgreSQL is away for a moment or for good."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.errors import StoreUnusable
from podeval.store.database import Database
from podeval.submissions.queue import LeaseLost, Queue
from podeval.submissions.rules import Policy
from podeval.submissions.submission_runs import keep_alive
from tests.fakes.waiting import wait_until

LEASE_SECONDS = 4.0
SHORT_LEASE = 0.4
"""Where a lease has to pass."""


class Server:
    """A database of a server's that can be shut: its connections end, and no new one is let in."""

    def __init__(self, address: str) -> None:
        self.address = address
        server, _, self._name = address.rpartition("/")
        self._server = f"{server}/postgres"

    def shut(self) -> None:
        self._do(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false")
        self._do(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'")

    def open(self) -> None:
        self._do(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true")

    def _do(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture
def server(server_database: str) -> Server:
    return Server(server_database)


@pytest.fixture
def queue(server: Server) -> Iterator[Queue]:
    with Database(server.address) as database:
        yield Queue(database, Policy(lease_seconds=LEASE_SECONDS, pause_seconds=0.0))


@pytest.fixture
def impatient(queue: Queue) -> Queue:
    return Queue(queue.database, Policy(lease_seconds=SHORT_LEASE, pause_seconds=0.0))


def claim_one(tiny: ModuleType, queue: Queue) -> Any:
    tiny.enqueue(queue, "singer")
    claim = queue.claim("worker")
    assert claim
    return claim


def test_a_beat_without_a_server_is_a_sentence(tiny: ModuleType, queue: Queue, server: Server) -> None:
    claim = claim_one(tiny, queue)
    server.shut()
    with pytest.raises(StoreUnusable, match=r"does not answer .* nothing was recorded; try again"):
        queue.beat(claim)


def test_a_claim_outlives_a_server_that_is_away_for_less_than_its_lease(
    tiny: ModuleType, queue: Queue, server: Server
) -> None:
    claim = claim_one(tiny, queue)
    with keep_alive(queue, claim) as pulse:
        server.shut()
        wait_until(lambda: pulse.trouble != "no answer")
        server.open()
        pulse.done, pulse.total = 3, 10
        wait_until(lambda: queue.get(claim.id).items_done == 3)
        pulse.check()


def test_a_claim_whose_lease_may_be_gone_is_lost(tiny: ModuleType, impatient: Queue, server: Server) -> None:
    claim = claim_one(tiny, impatient)
    with keep_alive(impatient, claim) as pulse:
        server.shut()
        wait_until(lambda: time.monotonic() - pulse.renewed > SHORT_LEASE and pulse.trouble != "no answer")
        with pytest.raises(LeaseLost, match=r"could not be reached for too long .*does not answer"):
            pulse.check()


def test_a_claim_is_lost_while_a_beat_waits_for_an_answer(
    tiny: ModuleType, impatient: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claim_one(tiny, impatient)
    answered = threading.Event()
    monkeypatch.setattr(impatient, "beat", lambda *_, **__: answered.wait())
    with keep_alive(impatient, claim) as pulse:
        wait_until(lambda: time.monotonic() - pulse.renewed > SHORT_LEASE)
        try:
            with pytest.raises(LeaseLost, match="could not be reached"):
                pulse.check()
        finally:
            answered.set()


def test_a_worker_waits_for_a_server_that_is_away(
    tiny: ModuleType, queue: Queue, server: Server, tmp_path: Path
) -> None:
    row = tiny.enqueue(queue, "singer")
    log: list[str] = []
    worker: Any = tiny.worker(queue, tmp_path, log=log.append)
    over = threading.Event()
    server.shut()
    thread = threading.Thread(target=worker.watch, args=(0.1, over.is_set), daemon=True)
    thread.start()
    wait_until(lambda: any("does not answer" in line for line in log))
    server.open()
    wait_until(lambda: queue.get(row.id).state == "published", 60.0)
    over.set()
    thread.join()
