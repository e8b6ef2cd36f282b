"""An acknowledged vote is on the disk: after a kill, and after a loss of power that takes everything not synced."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select

from podeval.store.database import Database, find_damage
from podeval.store.tables import Vote
from tests.fakes.databases import ON_SQLITE, Make
from tests.store import crashing_disk

VOTES_UNTIL_KILLED = """
import itertools, sys
from tests.fakes.small_arena import SmallArena
arena = SmallArena(sys.argv[1], systems=12, items=4, most_an_hour=10_000)
arena.vote(f"warm{sys.argv[2]}", id=f"warm-up-{sys.argv[2]}")
print("ready", flush=True)
for number in itertools.count():
    done = arena.vote(f"p{sys.argv[2]}x{number % 40}", id=f"vote-{sys.argv[2]}-{number:06}")
    print(done.vote, flush=True)
"""


def acknowledged_until_killed(python: Any, output: Path, place: str, round_: int, after: float) -> list[str]:
    """Votes that a process acknowledged before it was killed, so many seconds after the third."""
    process = python.start(VOTES_UNTIL_KILLED, output, place, str(round_))
    while not (output.exists() and output.read_text().count("\n") > 3):
        assert process.poll() is None, output.read_text()
        time.sleep(0.005)
    time.sleep(after)
    process.kill()
    process.wait()
    whole = output.read_text().removeprefix("ready\n")
    return whole[: whole.rfind("\n") + 1].split()


def test_acknowledged_votes_survive_kills_at_random_moments(
    database_place: str, warm_store: Any, tmp_path: Path
) -> None:
    chance = random.Random(6)
    acknowledged: list[str] = []
    for round_ in range(3 if database_place.endswith(".db") else 1):
        output = tmp_path / f"told-{round_}"
        acknowledged += acknowledged_until_killed(warm_store, output, database_place, round_, chance.uniform(0.1, 0.5))
    with Database(database_place) as database:
        with database.reading() as session:
            kept = set(session.scalars(select(Vote.id)))
        assert set(acknowledged) <= kept
        assert len(kept) <= len(acknowledged) + 6, "each round's first, and at most one that was not told in time"
        assert find_damage(database) is None


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Any]:
    if crashing_disk.library() is None:
        pytest.skip("this Python has SQLite built in, so its writes cannot be watched")
    made = crashing_disk.CrashingDisk(tmp_path)
    made.start()
    yield made
    made.stop()


def lost(folder: Path, acknowledged: list[str]) -> set[str]:
    with Database(folder / "store.db") as database:
        assert find_damage(database) is None
        with database.reading() as session:
            return set(acknowledged) - set(session.scalars(select(Vote.id)))


@ON_SQLITE
def test_acknowledged_votes_survive_the_loss_of_everything_not_synced(
    disk: Any, small_arena: Make, tmp_path: Path
) -> None:
    arena, chance = small_arena(systems=5), random.Random(6)
    acknowledged: list[str] = []
    crashes = []
    for number in range(12):
        acknowledged.append(arena.vote(f"voter{number}").vote)
        nothing_else = disk.crash(tmp_path / f"nothing-{number}")
        by_chance = disk.crash(tmp_path / f"chance-{number}", chance)
        crashes += [(folder, list(acknowledged)) for folder in (nothing_else, by_chance)]
    disk.stop()
    assert disk.syncs >= len(acknowledged)
    for folder, votes in crashes:
        assert lost(folder, votes) == set()
    disk.start()


@ON_SQLITE
def test_that_test_sees_a_database_that_does_not_sync(disk: Any, small_arena: Make, tmp_path: Path) -> None:
    arena = small_arena(systems=5)
    arena.database.engine.dispose()
    event.listen(arena.database.engine, "connect", lambda made, _: made.execute("PRAGMA synchronous = NORMAL"))
    acknowledged = [arena.vote(f"voter{number}").vote for number in range(6)]
    crashed = disk.crash(tmp_path / "crashed")
    disk.stop()
    assert lost(crashed, acknowledged)
    disk.start()
