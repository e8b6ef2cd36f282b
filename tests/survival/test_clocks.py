"""The time of day is set forward and back, as by a first synchronisation: who waits, and who is shut out."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from podeval.arena import ArenaRefused
from podeval.store.database import Database
from podeval.store.tables import Vote
from podeval.submissions.queue import LeaseLost, Queue
from podeval.submissions.rules import Policy
from tests.fakes import tiny_worker
from tests.fakes.databases import ON_SQLITE, Make
from tests.fakes.small_arena import Clock

HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, empty_store: Path, clock: Clock) -> Iterator[Queue]:
    with Database(Path(shutil.copy(empty_store, tmp_path / "queue.db"))) as database:
        yield Queue(database, Policy(), clock=clock)


def count(small: Any) -> int:
    with small.database.reading() as session:
        return session.scalar(select(func.count()).select_from(Vote)) or 0


@pytest.fixture
def small(small_arena: Make) -> Any:
    return small_arena()


@ON_SQLITE
def test_a_battle_that_was_open_when_the_clock_jumped_ahead_is_open_when_it_is_right_again(small: Any) -> None:
    battle = small.serve("alice")
    small.clock.on(DAY)
    with pytest.raises(ArenaRefused, match="expired") as told:
        small.arena.vote("alice", small.ballot(battle))
    assert told.value.reason == "expired"
    assert count(small) == 0
    small.clock.on(-DAY)
    small.vote("alice", battle=battle)
    assert count(small) == 1


@ON_SQLITE
def test_a_clock_set_back_between_battle_and_vote_costs_no_vote_and_lets_none_pass_twice(small: Any) -> None:
    battle = small.serve("alice")
    small.clock.on(-2 * HOUR)
    ballot = small.ballot(battle)
    done = small.arena.vote("alice", ballot)
    small.clock.on(DAY)
    assert small.arena.vote("alice", ballot) == done, "sent again, whatever the time is, it is the same vote"
    assert count(small) == 1
    with small.database.reading() as session:
        assert session.scalar(select(Vote.elapsed)) is None, "nobody knows how long it took"
    assert small.arena.sweep().excluded == []


@ON_SQLITE
def test_who_voted_while_the_clock_was_ahead_is_not_shut_out_until_then(small_arena: Make) -> None:
    small = small_arena(systems=8, items=6, most_an_hour=5, gold_share=0.0)
    small.clock.on(3 * DAY)
    for _ in range(5):
        small.vote("alice")
    small.clock.on(-3 * DAY - 5 * 60)
    small.vote("alice")
    assert count(small) == 6


@ON_SQLITE
def test_votes_keep_their_order_and_the_ranking_holds_all_of_them(small_arena: Make) -> None:
    small = small_arena(systems=6, gold_share=0.0)
    for seconds in (0, DAY, -3 * DAY, HOUR):
        small.clock.on(seconds)
        small.vote("alice")
        small.vote("bob")
    with small.database.reading() as session:
        numbers = list(session.scalars(select(Vote.number).order_by(Vote.number)))
    assert numbers == list(range(1, 9))
    small.arena.sweep()
    assert small.arena.counts().votes == 8


def test_a_worker_that_lives_keeps_its_submission_over_a_jump_ahead_or_finds_out_that_it_lost_it(
    queue: Queue, clock: Clock
) -> None:
    id = tiny_worker.enqueue(queue, "one").id
    claim = queue.claim("worker 1")
    clock.on(DAY)
    queue.beat(claim, done=1, total=2)
    assert queue.sweep() == [], "it said so before anybody looked"
    assert queue.get(id).worked_seconds <= queue.policy.lease_seconds, "the jump is no time of work"
    clock.on(DAY)
    assert queue.sweep() == [id]
    with pytest.raises(LeaseLost):
        queue.advance(claim, "running", "measured")
    clock.on(-2 * DAY)
    again = queue.claim("worker 2")
    assert again is not None, "the pause that was set in the future is not waited for"
    assert (again.id, again.attempt) == (id, 2)


def test_a_worker_that_died_while_the_clock_was_ahead_is_missed_when_it_is_right_again(
    queue: Queue, clock: Clock
) -> None:
    clock.on(DAY)
    id = tiny_worker.enqueue(queue, "one").id
    assert queue.claim("worker that dies")
    clock.on(-DAY)
    assert queue.sweep() == [], "it may live: it has one lease from now on"
    clock.on(queue.policy.lease_seconds + 1)
    assert queue.sweep() == [id]
    clock.on(queue.policy.pause_seconds + 1)
    again = queue.claim("worker 2")
    assert again.id == id


def test_a_worker_that_lives_keeps_its_submission_over_a_jump_back(queue: Queue, clock: Clock) -> None:
    id = tiny_worker.enqueue(queue, "one").id
    claim = queue.claim("worker 1")
    clock.on(-DAY)
    for done in range(5):
        clock.on(40)
        assert queue.sweep() == []
        queue.beat(claim, done=done, total=5)
    queue.advance(claim, "running", "measured")
    assert queue.get(id).state == "measured"
    assert queue.get(id).worked_seconds < 300


def test_clocks_of_two_workers_that_differ_by_half_a_minute_take_nothing_away(queue: Queue, clock: Clock) -> None:
    id = tiny_worker.enqueue(queue, "one").id
    claim = queue.claim("worker ahead")
    for _ in range(10):
        clock.on(30)
        queue.beat(claim)
        clock.on(-30)
        assert queue.sweep() == []
        clock.on(30)
    assert [step.after for step in queue.history(id)] == ["received", "checked", "queued", "running"]


def test_a_quota_of_a_day_counts_no_submission_of_tomorrow(tmp_path: Path, clock: Clock) -> None:
    with Database(tmp_path / "queue.db") as database:
        queue = Queue(database, Policy(day_per_owner=2, open_per_owner=100), clock=clock)
        clock.on(30 * DAY)
        for number in range(2):
            tiny_worker.enqueue(queue, f"system-{number}")
        clock.on(-30 * DAY)
        assert queue.receive(tiny_worker.document("third"), owner="alice").state == "received"


@ON_SQLITE
def test_a_battle_is_shown_again_after_jumps_either_way(small: Any) -> None:
    battle = small.serve("alice")
    for seconds in (-DAY, DAY + 60, -120.0):
        small.clock.on(seconds)
        assert small.arena.show(battle.token, "alice") == battle
