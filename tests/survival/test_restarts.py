"""A site and a worker as processes of their own, on what a night brings: restarts in a loop, a disk that is gone, a
clock that jumps, a kill in the middle of a measurement.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podeval.store.database import Database
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy
from tests.fakes import tiny_worker
from tests.fakes.databases import ON_SQLITE, Make
from tests.survival.test_kills import Voters, each_once, free_port

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
arena = Arena(database, settings, objects=services._bucket(database))
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


def write_site(place: Path, port: int) -> str:
    space = str(REPOSITORY / "space")
    return SITE.format(space=space, repository=str(REPOSITORY), database=str(place), runs=str(place.parent), port=port)


@contextmanager
def voting(port: int, people: int = 3) -> Iterator[Voters]:
    voters = Voters(f"http://127.0.0.1:{port}")
    threads = [threading.Thread(target=voters.vote, args=(number,)) for number in range(people)]
    for thread in threads:
        thread.start()
    try:
        yield voters
    finally:
        voters.stop.set()
        for thread in threads:
            thread.join()


def wait_for_more(voters: Voters, site: Any, log: Path, more: int = 3) -> None:
    enough, deadline = len(voters.acknowledged) + more, time.monotonic() + 120
    while len(voters.acknowledged) < enough:
        assert site.poll() is None, log.read_text()[-3_000:]
        assert time.monotonic() < deadline, (voters.refused[-3:], log.read_text()[-3_000:])
        time.sleep(0.01)


@ON_SQLITE
@pytest.mark.space
def test_a_space_whose_disk_goes_with_each_of_many_restarts_has_every_vote_of_its_bucket(
    small_arena: Make, warm_python: Any, tmp_path: Path
) -> None:
    pytest.importorskip("fastapi")
    chance, port, log = random.Random(7), free_port(), tmp_path / "site.log"
    environment = {"SPACE_ID": "lab/board", "PODEVAL_BUCKET": str(tmp_path / "bucket"), "PODEVAL_SECRET": "s" * 40}
    disk = tmp_path / "disk"
    place = disk / "podeval.db"

    def start() -> Any:
        """Start the site on a disk that has nothing but the arena's systems."""
        shutil.rmtree(disk, ignore_errors=True)
        disk.mkdir()
        small_arena(str(place), systems=12, items=8).close()
        return warm_python.start(write_site(place, port), log, environment=environment)

    with voting(port) as voters:
        site = start()
        wait_for_more(voters, site, log)
        # It ends while it starts, again and again.
        for _ in range(6):
            site.kill()
            site.wait()
            site = start()
            time.sleep(chance.uniform(0.0, 0.4))
        wait_for_more(voters, site, log)
        site.kill()
        site.wait()
        site = start()
        wait_for_more(voters, site, log)
    site.kill()
    site.wait()
    # Each of three restarts with votes may have cost every voter an answer.
    each_once(str(place), voters, most_unheard=9)
    assert "votes missing from the database were imported from" in log.read_text()


@pytest.fixture
def ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set how many seconds the clock of a program is ahead that is started from now on."""
    library, source, file = tmp_path / "clock.so", tmp_path / "clock.c", tmp_path / "ahead"
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler here (apt-get install gcc)")
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    monkeypatch.setenv("CLOCK_AHEAD", str(file))
    monkeypatch.setenv("CLOCK_LIBRARY", str(library))

    def set_clock(seconds: int) -> None:
        file.with_suffix(".new").write_text(str(seconds))
        file.with_suffix(".new").rename(file)

    set_clock(0)
    return set_clock


@ON_SQLITE
@pytest.mark.space
@pytest.mark.long
def test_a_clock_that_jumps_under_a_site_loses_no_vote_and_stops_nobody(
    small_arena: Make, database_place: str, ahead: Callable[[int], None], tmp_path: Path
) -> None:
    pytest.importorskip("fastapi")
    small_arena(systems=12, items=8).close()
    port, log = free_port(), tmp_path / "site.log"
    environment = {**os.environ, "LD_PRELOAD": os.environ["CLOCK_LIBRARY"], "PODEVAL_SECRET": "s" * 40}
    program = [sys.executable, "-c", write_site(Path(database_place), port)]
    with log.open("wb") as lines, subprocess.Popen(program, stdout=lines, stderr=lines, env=environment) as site:
        try:
            with voting(port) as voters:
                wait_for_more(voters, site, log)
                for seconds in (DAY, -DAY, 3 * HOUR, 30 * DAY, 0):
                    ahead(seconds)
                    wait_for_more(voters, site, log, more=6)
        finally:
            site.kill()
    each_once(database_place, voters, most_unheard=3)
    # A battle that was open at a jump may have lapsed; nothing else is refused.
    reasons = Counter(sentence.partition(" ")[0] for sentence in voters.refused)
    assert set(reasons) <= {"410"}, voters.refused
    assert "Traceback" not in log.read_text()


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
