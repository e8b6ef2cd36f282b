import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from podeval.arena import ArenaRefused
from podeval.store.tables import ArenaOutput, ArenaSystem, Battle, Vote
from tests.fakes.databases import ON_SQLITE, SERVER_LONG, Make


def battles(small: Any) -> list[Battle]:
    with small.database.reading() as session:
        return list(session.scalars(select(Battle)))


@SERVER_LONG
def test_a_voter_never_meets_a_pair_twice_on_an_item(small_arena: Make) -> None:
    small = small_arena(systems=4, items=2, gold_share=0.0)
    for _ in range(2 * 6):
        small.vote("alice", "skip")
    with pytest.raises(ArenaRefused) as caught:
        small.serve("alice")
    assert caught.value.reason == "nothing left"
    assert len({(row.low, row.high, row.item) for row in battles(small)}) == 12
    assert small.serve("bob")


@SERVER_LONG
def test_battles_that_were_only_opened_are_not_judged(small_arena: Make) -> None:
    small = small_arena(systems=2, items=2, gold_share=0.0)
    tabs = [small.serve("alice") for _ in range(2)]
    assert small.serve("alice").token == tabs[0].token, "all there is stands open in other tabs"
    small.clock.on(3601)
    with pytest.raises(ArenaRefused, match="expired"):
        small.arena.show(tabs[0].token, "alice")
    opened = []
    for _ in tabs:
        opened.append(small.serve("alice"))
        small.vote("alice", "skip", battle=opened[-1])
    assert {each.token for each in opened} == {tab.token for tab in tabs}, "what lapsed is opened again"
    with pytest.raises(ArenaRefused, match="judged every comparison"):
        small.serve("alice")


@ON_SQLITE
def test_what_a_vote_named_does_not_come_again_on_its_item_while_there_is_anything_else(small_arena: Make) -> None:
    small = small_arena(systems=4, items=2, gold_share=0.0)
    heard = Counter[tuple[str, str]]()
    for number in range(12):
        small.vote("alice", battle=small.serve("alice", seed=number))
        (newest,) = small.arena.battles().tail(1).itertuples()
        heard.update([(newest.item, newest.system_a), (newest.item, newest.system_b)])
        if number == 3:
            assert len(heard) == 8, "four battles show every system once on each item"
    assert set(heard.values()) == {3}


@ON_SQLITE
def test_battles_tell_lengths_in_whole_seconds(small_arena: Make) -> None:
    small = small_arena(systems=2, seconds=20.123456, excerpt_seconds=7.7)
    battle = small.serve("alice")
    assert (battle.a.seconds, battle.b.seconds) == (8.0, 8.0)
    assert battle.a.needed == battle.b.needed == pytest.approx(7.2), "less than 10 s: 90 % of it"
    whole = small.serve("bob", protocol="whole")
    assert (whole.a.seconds, whole.a.needed) == (21.0, pytest.approx(18.9))
    excerpt, all_of_it = small.arena.sounds.find(battle.a.audio), small.arena.sounds.find(whole.a.audio)
    assert (excerpt.seconds, all_of_it.seconds) == (8.0, 21.0), "as the sounds last"
    assert excerpt.end - excerpt.start == pytest.approx(7.7)
    small.vote("alice", battle=battle)


def test_battles_of_one_voter_at_the_same_moment_differ(small_arena: Make) -> None:
    small = small_arena(systems=3, items=2, gold_share=0.0, most_open=50)
    with ThreadPoolExecutor(8) as threads:
        served = list(threads.map(small.serve, ["alice"] * 8))
    assert len({battle.token for battle in served}) == 6, "who finds nothing new is given one that is open"
    assert len({(row.low, row.high, row.item) for row in battles(small)}) == 6


@ON_SQLITE
def test_a_decision_about_a_vote_lets_nobody_wait_for_new_counts(small_arena: Make) -> None:
    small = small_arena()
    vote, matchmaker = small.vote("alice").vote, small.arena._matchmaker  # private: what battles are chosen by
    before = matchmaker._snapshot
    small.arena.decide(vote, "excluded", "a test", "ada")
    small.arena.sweep()
    assert matchmaker._snapshot is before
    small.arena.changed()
    assert matchmaker._snapshot is not before, "the pool may be another"


@ON_SQLITE
def test_battles_are_counted_while_others_are_chosen(small_arena: Make) -> None:
    small = small_arena(systems=3, items=2, gold_share=0.0)
    matchmaker, done = small.arena._matchmaker, threading.Event()  # private: two threads race in its counts
    before = sys.getswitchinterval()

    def count() -> None:
        number = 0
        while not done.is_set():
            number += 1
            for dimension in ("semantic", "ambient"):
                item = f"i{number}"
                matchmaker.count(Battle(dimension=dimension, low="s0", high="s1", item=item, purpose="rating"))

    other = threading.Thread(target=count)
    with small.database.reading() as session:
        matchmaker.new_battle(session, "alice", small.clock.now)
        sys.setswitchinterval(1e-6)
        other.start()
        try:
            made = [matchmaker.new_battle(session, "alice", small.clock.now, seed=seed) for seed in range(100)]
        finally:
            sys.setswitchinterval(before)
            done.set()
            other.join()
    assert len(made) == 100


@ON_SQLITE
def test_the_seed_decides_and_is_recorded(small_arena: Make, tmp_path: Path) -> None:
    made = []
    for number in range(3):
        small = small_arena(str(tmp_path / f"{number}.db"), systems=8, items=6)
        battle = small.serve("alice", **({"seed": 7} if number < 2 else {}))
        (row,) = battles(small)
        made.append((row.seed, small.sides(battle), row.item, battle.token))
    assert made[0][:3] == made[1][:3]
    assert made[0][0] == 7 != made[2][0]
    assert made[0][3] != made[1][3]


@ON_SQLITE
def test_dimensions_come_evenly_and_can_be_asked_for(small_arena: Make) -> None:
    small = small_arena(systems=5, items=4, gold_share=0.0)
    seen = Counter(small.serve(f"voter{number}", seed=number).dimension for number in range(60))
    assert min(seen.values()) > 18
    assert {small.serve("alice", dimension="ambient").dimension for _ in range(5)} == {"ambient"}
    with pytest.raises(ArenaRefused):
        small.serve("alice", dimension="colour")


@ON_SQLITE
def test_what_is_retired_is_not_shown_and_keeps_its_votes(small_arena: Make) -> None:
    small = small_arena(systems=3, gold_share=0.0)
    small.vote("alice")
    with small.database.writing() as session:
        session.get_one(ArenaSystem, "s0").active = False
    small.arena.changed()
    assert all("s0" not in small.sides(small.serve("bob")) for _ in range(3))
    assert len(small.arena.battles()) == 1


@ON_SQLITE
def test_too_many_open_battles_close_the_oldest(small_arena: Make) -> None:
    small = small_arena(systems=6, most_open=2)
    first, second, third = (small.serve("alice") for _ in range(3))
    small.clock.on(60)
    with pytest.raises(ArenaRefused) as caught:
        small.arena.vote("alice", small.ballot(first))
    assert caught.value.reason == "expired"
    small.arena.vote("alice", small.ballot(second))
    small.clock.on(60)
    small.arena.vote("alice", small.ballot(third))


@ON_SQLITE
def test_a_skipped_battle_of_new_systems_comes_again_until_there_is_a_vote(small_arena: Make) -> None:
    small = small_arena(systems=6, items=8, gold_share=0.0)
    for _ in range(3):
        small.vote("alice", "skip", battle=small.serve("alice", dimension="semantic"))
    small.serve("alice", dimension="semantic")
    assert len({(row.low, row.high) for row in battles(small)}) == 1
    assert len({row.item for row in battles(small)}) == 4
    for _ in range(4):
        small.vote("alice", "a", battle=small.serve("alice", dimension="semantic"))
    assert len({(row.low, row.high) for row in battles(small)}) > 2


@ON_SQLITE
def test_an_hour_has_its_limit(small_arena: Make) -> None:
    small = small_arena(systems=6, most_an_hour=3)
    for _ in range(3):
        small.serve("alice")
    with pytest.raises(ArenaRefused, match="break") as caught:
        small.serve("alice")
    assert caught.value.reason == "too many"
    small.clock.on(3601)
    assert small.serve("alice")


@SERVER_LONG
def test_a_repeated_battle_has_its_sides_exchanged_and_does_not_count(small_arena: Make) -> None:
    small = small_arena(systems=6, items=4, gold_share=1.0, gold_after=6)
    for _ in range(6):
        small.vote("alice", "a")
    repeated = small.serve("alice")
    with small.database.reading() as session:
        row = session.get_one(Battle, repeated.token.partition(".")[0])
        first = session.get_one(Battle, row.repeats)
        assert (row.output_a, row.output_b, row.purpose) == (first.output_b, first.output_a, "gold")
        assert session.scalar(select(Vote.outcome).where(Vote.battle == first.id)) == "a"
    small.vote("alice", "b", battle=repeated)
    assert len(small.arena.battles()) == 6
    assert small.arena.status().votes == 7


def test_outputs_without_audio_are_not_served(small_arena: Make) -> None:
    small = small_arena(systems=3, items=1)
    with small.database.writing() as session:
        for output in session.scalars(select(ArenaOutput).where(ArenaOutput.system == "s1")):
            output.audio = ""
    assert "s1" not in small.sides(small.serve("alice"))
