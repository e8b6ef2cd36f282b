"""The site and the database server are killed at random moments while people vote; what was told them is there, once.

Workers are killed in tests/submissions/test_worker.py (and 50 times in studies/queue_kills.py), runs at each of
their writes in tests/runs/test_resume.py, voting programs in tests/store/test_durability.py.
"""

import json
import random
import signal
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from podeval.errors import StoreUnusable
from podeval.store.database import Database, find_damage
from podeval.store.tables import Battle, Vote
from tests.fakes import postgresql_server
from tests.fakes.databases import ON_SQLITE, Make

TESTS = Path(__file__).parents[1]
SITE = """
import os, sys
from pathlib import Path
sys.path[:0] = [{space!r}, {repository!r}]
import uvicorn
from tests.space.arena_fixture import site_without_board
from podeval.arena import Arena, ArenaSettings
from podeval.store.database import Database
arena = Arena(Database({database!r}), ArenaSettings(heard_share=0.0, gold_share=0.0, most_an_hour=10_000))
app = site_without_board(Path({runs!r}), arena)
uvicorn.run(app, host="127.0.0.1", port={port}, log_level="warning")
"""


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


def each_once(place: str, voters: Voters, most_unheard: int) -> None:
    """What was acknowledged is there as it was told, nothing twice, and little that nobody heard of."""
    with Database(place) as database, database.reading() as session:
        assert find_damage(database) is None
        there = session.scalars(select(Vote)).all()
        known = {vote.id: vote.outcome for vote in there}
    assert {id: known.get(id) for id in voters.acknowledged} == voters.acknowledged
    assert max(Counter(vote.battle for vote in there).values()) == 1
    assert len(known.keys() - voters.acknowledged.keys()) <= most_unheard


def free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@ON_SQLITE
def test_a_site_that_is_killed_while_people_vote_loses_no_vote_and_counts_none_twice(
    small_arena: Make, database_place: str, tmp_path: Path, warm_python: Any
) -> None:
    pytest.importorskip("fastapi")
    small_arena(systems=12, items=8).close()
    chance, port = random.Random(4), free_port()
    program = SITE.format(
        space=str(TESTS.parent / "space"), repository=str(TESTS.parent),
        database=database_place, runs=str(tmp_path), port=port,
    )  # fmt: skip
    voters = Voters(f"http://127.0.0.1:{port}")
    threads = [threading.Thread(target=voters.vote, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    kills = 2
    try:
        for kill in range(kills + 1):
            before = len(voters.acknowledged)
            site = warm_python.start(program, tmp_path / "site.log")
            deadline = time.monotonic() + 60
            while len(voters.acknowledged) < before + 3:
                assert site.poll() is None, (tmp_path / "site.log").read_text()
                assert time.monotonic() < deadline, voters.refused[:3]
                time.sleep(0.01)
            if kill < kills:
                time.sleep(chance.uniform(0.02, 0.5))
            else:
                voters.stop.set()
                for thread in threads:
                    thread.join()
            site.send_signal(signal.SIGKILL)
            site.wait()
    finally:
        voters.stop.set()
        site.kill()
    each_once(database_place, voters, most_unheard=4)
    assert voters.unanswered, "people saw that it was down"
    # A vote that was recorded and not told, then sent again, got the acknowledgement of the first.
    assert not [said for said in voters.refused if "judged" in said]


@pytest.fixture
def server() -> Iterator[postgresql_server.Server]:
    if (binaries := postgresql_server.programs()) is None:
        pytest.skip("no PostgreSQL here (apt-get install postgresql)")
    with postgresql_server.started(binaries) as started:
        yield started


def wait_for_votes(acknowledged: dict[str, str], more: int, voting: list[Future[None]]) -> None:
    """Return once so many more votes were acknowledged; as soon as a voter fails, so does this."""
    enough, deadline = len(acknowledged) + more, time.monotonic() + 60
    while len(acknowledged) < enough:
        assert not any(each.done() for each in voting), voting
        assert time.monotonic() < deadline
        time.sleep(0.01)


@ON_SQLITE
def test_a_database_server_that_is_killed_while_people_vote_loses_no_vote_and_counts_none_twice(
    small_arena: Make, server: postgresql_server.Server
) -> None:
    place = f"{server.address}/postgres"
    small = small_arena(place, systems=12, items=8, gold_share=0.0, most_an_hour=10_000, heard_share=0.0)
    chance, acknowledged, told, stop = random.Random(5), {}, [], threading.Event()

    def vote(number: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            try:
                battle = small.serve(f"person{number}x{count // 20}")
            except StoreUnusable as error:
                told.append(str(error))
                time.sleep(0.05)
                continue
            ballot = small.ballot(battle, id=f"vote-{number}-{count:06}")
            while not stop.is_set():
                try:
                    acknowledged[small.arena.vote(f"person{number}x{count // 20}", ballot).vote] = "a"
                    break
                except StoreUnusable as error:
                    told.append(str(error))
                    time.sleep(0.05)

    with ThreadPoolExecutor(3) as threads:
        voting = [threads.submit(vote, number) for number in range(3)]
        try:
            for _ in range(2):
                wait_for_votes(acknowledged, 4, voting)
                time.sleep(chance.uniform(0, 0.3))
                server.kill()
                server.start()
            wait_for_votes(acknowledged, 4, voting)
        finally:
            stop.set()
    for each in voting:
        each.result()
    with Database(place) as database, database.reading() as session:
        there = {vote.id: vote.battle for vote in session.scalars(select(Vote))}
        battles = set(session.scalars(select(Battle.id)))
    assert acknowledged.keys() <= there.keys()
    assert len(set(there.values())) == len(there)
    assert set(there.values()) <= battles
    assert len(there.keys() - acknowledged.keys()) <= 3, "at most what each was about to hear"
    assert told, "the operator and the pages were told"
    assert all("does not answer" in sentence and "try again" in sentence for sentence in told), set(told)
