"""What a ranking is made of changes: it is made anew, beside those who ask, and the last one is kept."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from podeval.arena import kept_ranking
from podeval.arena import ranking as ranking_module
from podeval.arena.import_votes import make_output_id
from podeval.arena.kept_ranking import VoteReader, find_file, read_kept
from podeval.arena.moderation import ArenaModeration
from podeval.arena.ranking import Ranking, Rankings
from podeval.arena.ratings import build_rating_table, make_battles
from podeval.errors import StoreUnusable
from podeval.store.tables import ArenaSystem
from tests.fakes.databases import ON_SQLITE, SERVER_LONG, Make
from tests.fakes.waiting import wait_until


def vote_often(small: Any, count: int = 40) -> None:
    for number in range(count):
        small.vote(f"voter{number % 6}", ("a", "b", "tie", "both_bad", "skip")[number % 5])


def test_a_system_that_gets_another_title_has_it_in_the_next_ranking(small_arena: Make) -> None:
    small = small_arena(systems=2)
    small.vote("alice")
    rankings = Rankings(small.arena, share=1e9)
    assert rankings.current().systems["s0"].title != "Renamed"
    with small.database.writing() as session:
        session.get_one(ArenaSystem, "s0").title = "Renamed"
    # On a busy machine the first rating took long, and the next is made beside.
    wait_until(lambda: rankings.current().systems["s0"].title == "Renamed")


def test_votes_are_read_as_numbers_as_they_are_in_the_table(small_arena: Make) -> None:
    small = small_arena(systems=4, items=6, gold_share=0.2, gold_after=3)
    for number in range(40):
        outcome = ("a", "b", "tie", "both_bad", "skip")[number % 5]
        battle = small.serve(f"voter{number % 3}", protocol=("excerpts", "whole")[number % 2])
        small.vote(f"voter{number % 3}", outcome, battle=battle, preference="slight" if number % 5 < 2 else "")
    with small.database.reading() as session:
        read, table = VoteReader().read(session), build_rating_table(session)
    assert list(read) == ["excerpts", "whole"]
    for protocol, votes in read.items():
        part, battles = table[table["protocol"] == protocol], votes.battles
        expected = make_battles(part)
        assert votes.dimensions == list(part["dimension"])
        sides = [
            part[f"heard_seconds_{side}"] / (part[f"seconds_{side}"] if protocol == "whole" else 1) for side in "ab"
        ]
        assert votes.heard == pytest.approx(np.minimum(*sides).to_numpy())
        for name in ("first", "second", "voter"):
            names = expected.voters if name == "voter" else expected.systems
            texts = battles.voters if name == "voter" else battles.systems
            assert [texts[n] for n in getattr(battles, name)] == [names[n] for n in getattr(expected, name)]
        assert np.array_equal(battles.outcome, expected.outcome)
        assert np.array_equal(battles.slight, expected.slight)


def number_vote(small: Any, old: int, new: int) -> None:
    """Give a vote another number, as if its writer had begun at another time."""
    with small.database.writing() as session:
        for table in ("votes", "rated_votes"):
            session.execute(text(f"update {table} set number = :new where number = :old"), {"new": new, "old": old})


@SERVER_LONG
def test_a_following_ranking_equals_one_that_reads_every_vote(
    small_arena: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = small_arena(systems=5, items=8, gold_share=0.2, gold_after=3)
    operator, read_votes = ArenaModeration(small.arena, small.clock), kept_ranking.read_later_votes
    read: list[int | None] = []
    whether_from_file: list[bool] = []
    read_file = kept_ranking.read_kept
    monkeypatch.setattr(kept_ranking, "read_later_votes", lambda *about: read.append(about[2]) or read_votes(*about))
    # So few votes would not be kept on disk.
    monkeypatch.setattr(kept_ranking, "_MANY", 1)
    following = Rankings(small.arena, share=1e9, quick=1e9)

    def change_and_compare(change: Callable[[], Any]) -> list[int | None]:
        """Return from which number on the following ranking reads votes."""
        change()
        read.clear()
        kept = following.current()
        what = read.copy()
        read.clear()
        restarted = Rankings(small.arena, share=1e9, quick=1e9).current()
        whether_from_file.append(None not in read)
        monkeypatch.setattr(kept_ranking, "read_kept", lambda *_: None)
        new = Rankings(small.arena, share=1e9, quick=1e9).current()
        monkeypatch.setattr(kept_ranking, "read_kept", read_file)
        for other in (kept, restarted):
            assert json.dumps(other.document() | {"made_at": ""}) == json.dumps(new.document() | {"made_at": ""})
            assert other.heard == new.heard
            assert other.table().equals(new.table())
        return what

    about = {"reason": "to be compared", "by": "operator"}
    assert change_and_compare(lambda: vote_often(small)) == [None]
    votes = small.arena.list_votes(limit=100)[1]
    last, ids = votes[-1]["number"], [vote["vote"] for vote in votes]
    assert change_and_compare(lambda: vote_often(small, 12)) == [last + 1]
    # Decisions and the pool change what counts, not what is read.
    assert change_and_compare(lambda: operator.count_vote(ids[0], False, **about)) == []
    assert change_and_compare(lambda: operator.count_voter("voter1", False, **about)) == []
    assert change_and_compare(lambda: operator.count_vote(ids[0], True, **about)) == []
    assert change_and_compare(lambda: operator.pool_system("s0", False, **about)) == []
    assert change_and_compare(lambda: small.arena.retire(make_output_id("s1", "i0"), "another file")) == []
    # A vote that was excluded before it was read counts again.
    small.vote("late")
    newest = small.arena.list_votes(limit=100, after=last)[1][-1]
    small.arena.decide(newest["vote"], "excluded", "to be compared", "operator")
    vote_often(small, 3)
    assert len(change_and_compare(lambda: None)) == 1
    assert change_and_compare(lambda: operator.count_vote(newest["vote"], True, **about)) == []
    assert all(whether_from_file)
    # A vote becomes visible after one with a higher number.
    number_vote(small, small.arena.list_votes(limit=100)[1][-1]["number"], 1000)
    change_and_compare(lambda: None)
    small.vote("early")
    (early,) = (vote for vote in small.arena.list_votes(limit=100)[1] if vote["voter"] == "early")
    number_vote(small, early["number"], 500)
    assert change_and_compare(lambda: None) == [500]
    # A new vote may have the number of an erased one.
    file = find_file(small.database.name).with_suffix(".votes.npz")
    assert b"voter" not in file.read_bytes().replace(b"voters", b""), "it names nobody"
    small.arena.erase(pseudonym="voter3")
    with small.database.reading() as session:
        assert VoteReader(file).read(session), "another process reads the votes"
    assert not file.exists()
    assert change_and_compare(lambda: small.vote("new")) == [None]
    assert json.loads(np.load(file)["content"].tobytes())["erasures"] == 1


@ON_SQLITE
def test_the_last_ranking_is_served_after_a_restart_until_the_new_one_is_there(
    small_arena: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = small_arena(systems=5, items=6)
    vote_often(small)
    last = Rankings(small.arena, quick=-1.0).current()
    wait_until(lambda: read_kept(find_file(small.database.name), Ranking) is not None)
    small.vote("somebody")
    go, status = threading.Event(), ranking_module.report_status
    monkeypatch.setattr(ranking_module, "report_status", lambda *about: go.wait(60) and status(*about))
    restarted = Rankings(small.arena, share=1e9)
    shown = restarted.current()
    assert shown.document() == last.document()
    assert shown.table().equals(last.table())
    assert shown.heard == last.heard
    assert sum(group.votes for part in shown.heard for group in part.groups) == 32, "all votes but skips"
    part, before = (next(iter(each.protocols["excerpts"].values())) for each in (shown, last))
    assert np.array_equal(part.ratings.errors, before.ratings.errors, equal_nan=True)
    assert part.ratings.apart.dtype == np.bool_
    go.set()
    wait_until(lambda: restarted.current().made_at > last.made_at)
    assert restarted.current().status.votes == last.status.votes + 1


@ON_SQLITE
def test_a_ranking_of_other_votes_or_of_no_ranking_at_all_is_not_served(small_arena: Make, tmp_path: Path) -> None:
    small = small_arena(systems=3, items=4, gold_share=0.0)
    vote_often(small, 10)
    assert Rankings(small.arena, quick=-1.0).current().status.votes == 10
    file = find_file(small.database.name)
    wait_until(lambda: read_kept(file, Ranking) is not None)
    # The newest vote that it rests on is gone.
    small.arena.erase(pseudonym="voter3")
    assert Rankings(small.arena, quick=-1.0).current().status.votes == 8
    wait_until(lambda: (kept := read_kept(file, Ranking)) is not None and kept.status.votes == 8)
    file.write_bytes(b"no archive")
    assert read_kept(file, Ranking) is None
    assert Rankings(small.arena).current().status.votes == 8


@ON_SQLITE
def test_whoever_asks_learns_why_there_is_no_ranking_yet(small_arena: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    small = small_arena(systems=3)

    def refuse(*_: Any) -> None:
        raise StoreUnusable("the database does not answer; try again")

    monkeypatch.setattr(ranking_module, "report_status", refuse)
    rankings = Rankings(small.arena)
    with pytest.raises(StoreUnusable, match="does not answer"):
        rankings.current()
    monkeypatch.undo()
    wait_until(lambda: Rankings(small.arena).current().status.votes == 0)
