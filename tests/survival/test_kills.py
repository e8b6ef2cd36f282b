"""What a night brings, to programs in processes of their own: kills, restarts in a loop, a disk that is gone, a clock
that jumps. What people were told is there, once.

Workers are killed in tests/submissions/test_worker.py too (and 50 times in studies/queue_kills.py), runs at each of
their writes in tests/runs/test_resume.py, voting programs in tests/store/test_durability.py.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from podeval.store.database import Database, find_damage
from podeval.store.tables import Vote
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy
from tests.fakes import postgresql_server, tiny_worker
from tests.fakes.databases import ON_SQLITE, Make

REPOSITORY = Path(__file__).parents[2]
SITE = """
import sys
from pathlib import Path
sys.path[:0] = [{space!r}, {repository!r}]
import services, uvicorn
from tests.space.arena_fixture import site_without_board
from podeval.arena import Arena, ArenaSettings
from podeval.store.database import Database
database = Database({database!r})
settings = ArenaSettings(heard_share=0.0, gold_share=0.0, most_an_hour=10_000)
arena = Arena(database, settings, objects=services.open_bucket(database))
uvicorn.run(site_without_board(Path({runs!r}), arena), host="127.0.0.1", port={port}, log_level="warning")
"""
WORKER = """
from tests.fakes import tiny_worker as tiny
(dimension,) = tiny.BENCHMARK.model_dump()["dimensions"]
dimension |= {"main": "dnsmos.ovrl"}
dimension["metrics"] = [{"name": "loudness", "keys": ["integrated"]}, {"name": "dnsmos", "keys": ["ovrl"]}]
tiny.BENCHMARK = tiny.BENCHMARK.model_validate(tiny.BENCHMARK.model_dump() | {"dimensions": [dimension]})
tiny.settle_in()
from podeval.board import build
from podeval.cli import main
build.build = lambda board: None
main()
"""
"""The command line with a benchmark of ten items that are measured with loudness and DNSMOS."""

CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, at);
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("CLOCK_AHEAD"), "r") : NULL;
    long ahead = 0;
    if (file) { if (fscanf(file, "%ld", &ahead) == 1) at->tv_sec += ahead; fclose(file); }
    return done;
}
"""
"""A clock that is so many seconds ahead as a file says, for the program that it is loaded into."""
HOUR, DAY = 3600, 86_400


@dataclass
class Voters:
    """Threads that take battles and vote over HTTP, and send again what was not answered, until they are stopped."""

    address: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    unanswered: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def post(self, path: str, person: str, body: dict[str, Any]) -> dict[str, Any] | None:
        headers = {"Content-Type": "application/json", "X-Podeval": "1", "x-person": person}
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), headers)
        while not self.stop.is_set():
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                said = error.read().decode()
                if error.code < 500 and error.code != 429:
                    self.refused.append(f"{error.code} {said}")
                    return None
                self.unanswered += 1
            except OSError:
                self.unanswered += 1
            time.sleep(0.05)
        return None

    def vote(self, number: int) -> None:
        count = 0
        while not self.stop.is_set():
            person, count = f"person-{number}-{count // 20}", count + 1
            battle = self.post("/arena/battles", person, {})
            if battle is None:
                continue
            ballot = {"id": f"vote-{number}-{count:06}", "token": battle["token"], "outcome": "ab"[count % 2]}
            done = self.post("/arena/votes", person, ballot)
            if done is not None:
                self.acknowledged[done["vote"]] = done["outcome"]


@dataclass
class Site:
    """The site in a process of its own, on the same port each time that it is started."""

    python: Any
    log: Path
    port: int
    process: Any = None

    def start(self, place: str, folder: Path, library: str = "", **environment: str) -> None:
        space = str(REPOSITORY / "space")
        where = {"space": space, "repository": str(REPOSITORY), "database": place, "runs": str(folder)}
        program, settings = SITE.format(**where, port=self.port), {"PODEVAL_SECRET": "s" * 40, **environment}
        if not library:
            self.process = self.python.start(program, self.log, environment=settings)
            return
        with self.log.open("ab") as lines:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program], stdout=lines, stderr=lines,
                env={**os.environ, **settings, "LD_PRELOAD": library},
            )  # fmt: skip

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def wait_for_votes(self, voters: Voters, more: int = 3) -> None:
        enough, deadline = len(voters.acknowledged) + more, time.monotonic() + 120
        while len(voters.acknowledged) < enough:
            assert self.process.poll() is None, self.log.read_text()[-3_000:]
            assert time.monotonic() < deadline, (voters.refused[-3:], self.log.read_text()[-3_000:])
            time.sleep(0.01)


@pytest.fixture
def site(warm_python: Any, tmp_path: Path) -> Iterator[Site]:
    pytest.importorskip("fastapi")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Site(warm_python, tmp_path / "site.log", port)
    yield made
    made.kill()


@contextmanager
def voting(site: Site) -> Iterator[Voters]:
    voters = Voters(f"http://127.0.0.1:{site.port}")
    threads = [threading.Thread(target=voters.vote, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield voters
    finally:
        voters.stop.set()
        for thread in threads:
            thread.join()


def each_once(place: str, voters: Voters, most_unheard: int) -> None:
    """What was acknowledged is there as it was told, nothing twice, and little that nobody heard of."""
    with Database(place) as database, database.reading() as session:
        assert find_damage(database) is None
        there = session.scalars(select(Vote)).all()
        known = {vote.id: vote.outcome for vote in there}
    assert {id: known.get(id) for id in voters.acknowledged} == voters.acknowledged
    assert max(Counter(vote.battle for vote in there).values()) == 1
    assert len(known.keys() - voters.acknowledged.keys()) <= most_unheard
    assert voters.unanswered, "people saw that it was down"
    # A vote that was recorded and not told, then sent again, got the acknowledgement of the first.
    assert not [sentence for sentence in voters.refused if "judged" in sentence]


@ON_SQLITE
def test_a_site_that_is_killed_while_people_vote_loses_no_vote_and_counts_none_twice(
    small_arena: Make, database_place: str, site: Site, tmp_path: Path
) -> None:
    small_arena(systems=12, items=8).close()
    chance = random.Random(4)
    with voting(site) as voters:
        for _ in range(2):
            site.start(database_place, tmp_path)
            site.wait_for_votes(voters)
            time.sleep(chance.uniform(0.02, 0.5))
            site.kill()
        site.start(database_place, tmp_path)
        site.wait_for_votes(voters)
    each_once(database_place, voters, most_unheard=4)


@ON_SQLITE
def test_a_database_server_that_is_killed_under_a_site_loses_no_vote_and_counts_none_twice(
    small_arena: Make, site: Site, tmp_path: Path
) -> None:
    if (binaries := postgresql_server.programs()) is None:
        pytest.skip("no PostgreSQL here (apt-get install postgresql)")
    chance = random.Random(5)
    with postgresql_server.started(binaries) as server:
        place = f"{server.address}/postgres"
        small_arena(place, systems=12, items=8).close()
        site.start(place, tmp_path)
        with voting(site) as voters:
            for _ in range(2):
                site.wait_for_votes(voters)
                time.sleep(chance.uniform(0, 0.3))
                server.kill()
                server.start()
            site.wait_for_votes(voters)
        each_once(place, voters, most_unheard=4)
        site.kill()
    assert "does not answer" in site.log.read_text(), "the operator is told"


@ON_SQLITE
def test_a_space_whose_disk_goes_with_each_of_many_restarts_has_every_vote_of_its_bucket(
    small_arena: Make, site: Site, tmp_path: Path
) -> None:
    chance, disk = random.Random(7), tmp_path / "disk"
    place = str(disk / "podeval.db")

    def start() -> None:
        """Start the site on a disk that has nothing but the arena's systems."""
        shutil.rmtree(disk, ignore_errors=True)
        disk.mkdir()
        small_arena(place, systems=12, items=8).close()
        site.start(place, disk, SPACE_ID="lab/board", PODEVAL_BUCKET=str(tmp_path / "bucket"))

    start()
    with voting(site) as voters:
        site.wait_for_votes(voters)
        # It ends while it starts, again and again.
        for _ in range(6):
            site.kill()
            start()
            time.sleep(chance.uniform(0.0, 0.4))
        site.wait_for_votes(voters)
        site.kill()
        start()
        site.wait_for_votes(voters)
    # Each restart after votes may have cost every voter an answer.
    each_once(place, voters, most_unheard=12)
    assert "votes missing from the database were imported from" in site.log.read_text()


@ON_SQLITE
@pytest.mark.long
def test_a_clock_that_jumps_under_a_site_loses_no_vote_and_stops_nobody(
    small_arena: Make, database_place: str, site: Site, tmp_path: Path
) -> None:
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("no compiler here (apt-get install gcc)")
    library, source, ahead = tmp_path / "clock.so", tmp_path / "clock.c", tmp_path / "ahead"
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    small_arena(systems=12, items=8).close()
    site.start(database_place, tmp_path, str(library), CLOCK_AHEAD=str(ahead))
    with voting(site) as voters:
        for seconds in (0, DAY, -DAY, 3 * HOUR, 30 * DAY, 0):
            (tmp_path / "new").write_text(str(seconds))
            (tmp_path / "new").rename(ahead)
            site.wait_for_votes(voters, more=6)
    each_once(database_place, voters, most_unheard=4)
    # A battle that was open at a jump may have lapsed; nothing else is refused.
    assert {sentence.partition(" ")[0] for sentence in voters.refused} <= {"410"}, voters.refused
    assert "Traceback" not in site.log.read_text()


@pytest.mark.long
def test_a_worker_that_is_killed_while_it_measures_with_real_metrics_is_followed_by_another(
    tmp_path: Path, empty_store: Path
) -> None:
    place, log = Path(shutil.copy(empty_store, tmp_path / "podeval.db")), tmp_path / "log"
    places = ["--database", str(place), "--runs", str(tmp_path / "runs"), "--work", str(tmp_path / "work")]
    command = [sys.executable, "-c", WORKER, "worker", "--once", "--trust-models", *places]
    source = {"kind": "builtin", "runner": "espeak_ng", "role": "baseline"}
    with Database(place) as database, log.open("wb") as lines:
        queue = Queue(database, Policy(pause_seconds=0.0))
        document = tiny_worker.document("espeak_ng") | {"source": source}
        id = queue.receive(document, owner="operator", quotas=False, profile="embedded").id
        queue.move(id, "received", "checked", by="gate", pinned={"passed": True})
        queue.move(id, "checked", "queued", by="gate")
        worker = subprocess.Popen(command, stdout=lines, stderr=lines, cwd=REPOSITORY)
        try:
            # Its first result is there, and it is at the next.
            while not any(path.stat().st_size for path in (tmp_path / "work").rglob("results.jsonl")):
                assert worker.poll() is None, log.read_text()[-3_000:]
                time.sleep(0.01)
        finally:
            worker.kill()
            worker.wait()
        assert queue.get(id).state == "running"
        tiny_worker.let_leases_lapse(database)
        assert queue.sweep() == [id]
        subprocess.run(command, stdout=lines, stderr=lines, cwd=REPOSITORY, check=True)
        row = queue.get(id)
    assert (row.state, row.attempt) == ("published", 2), log.read_text()[-3_000:]
    (results,) = (tmp_path / "runs").rglob("results.jsonl")
    measured = [(line["item"], line["protocol"]) for line in map(json.loads, results.read_text().splitlines())]
    assert len(measured) == len(set(measured)) == 2 * len(tiny_worker.ITEMS), "each is measured once by each metric"
    assert row.items_done == row.items_total == len(tiny_worker.ITEMS)
