from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from podeval.store.files import DiskFull
from podeval.store.tables import Erasure
from podeval.store.vote_objects import VoteObjects

Make = Callable[..., Any]

pytestmark = pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)


def test_a_space_that_lost_its_disk_has_its_votes_back(small_arena: Make, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SPACE_ID", "podeval/leaderboard")
    bucket = VoteObjects(tmp_path / "bucket")
    small = small_arena(systems=6, objects=bucket)
    alice = small.arena.voter("hf:alice")
    for voter in (alice, "bob", alice):
        small.vote(voter, comment="because")
    restarted = small_arena(str(tmp_path / "restarted.db"), systems=6, objects=bucket)
    done = bucket.read_back(restarted.database)
    assert done.votes == 3
    assert bucket.read_back(restarted.database).votes == 0
    assert restarted.arena.voter("hf:alice") == alice, "she is recognised, so no battle of hers comes twice"
    columns = ["vote", "voter", "system_a", "system_b", "outcome"]
    assert restarted.arena.battles()[columns].equals(small.arena.battles()[columns])


def test_no_acknowledgement_without_the_object(small_arena: Make, tmp_path: Path, monkeypatch: Any) -> None:
    bucket = VoteObjects(tmp_path / "bucket")
    small = small_arena(objects=bucket)
    ballot = small.ballot(small.serve("alice"))
    small.clock.on(60)

    def full(*_: Any) -> None:
        raise DiskFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(bucket, "_once", full)
        with pytest.raises(DiskFull):
            small.arena.vote("alice", ballot)
    assert small.arena.vote("alice", ballot).vote == ballot.id
    assert (tmp_path / "bucket" / "voters" / "alice" / f"{ballot.id}.json").is_file()


def test_a_half_written_object_is_passed_over_and_written_again(small_arena: Make, tmp_path: Path) -> None:
    bucket = VoteObjects(tmp_path / "bucket")
    small = small_arena(objects=bucket)
    ballot = small.ballot(small.serve("alice"))
    small.clock.on(60)
    small.arena.vote("alice", ballot)
    file = tmp_path / "bucket" / "voters" / "alice" / f"{ballot.id}.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    assert bucket.read_back(small_arena(str(tmp_path / "other.db")).database).votes == 0
    small.arena.vote("alice", ballot)
    assert file.read_bytes() == whole


def test_erasing_a_person_empties_the_bucket_of_them(small_arena: Make, tmp_path: Path) -> None:
    bucket = VoteObjects(tmp_path / "bucket")
    small = small_arena(systems=6, objects=bucket)
    alice = small.arena.voter("hf:alice")
    small.vote(alice, comment="my own words")
    small.vote("bob")
    small.arena.erase("hf:alice")
    left = [path for path in (tmp_path / "bucket").rglob("*") if path.is_file()]
    assert sorted(path.parent.name for path in left) == ["bob", "erased"]
    again = small_arena(str(tmp_path / "restarted.db"), systems=6)
    assert bucket.read_back(again.database).erasures == 1
    assert bucket.read_back(again.database).erasures == 0
    with again.database.reading() as session:
        assert list(session.scalars(select(Erasure.pseudonym))) == [alice], "no log brings her votes back"


def test_a_restart_undoes_no_decision_of_a_person(small_arena: Make, tmp_path: Path) -> None:
    bucket = VoteObjects(tmp_path / "bucket")
    small = small_arena(systems=6, objects=bucket)
    votes = [small.vote(voter).vote for voter in ("alice", "bob", "cyd")]
    small.arena.exclude(votes[0], "caught cheating", "ada")
    small.arena.exclude(votes[1], "a test of ours", "ada")
    small.clock.on(1)
    small.arena.restore(votes[1], "it was none", "bob")
    again = small_arena(str(tmp_path / "restarted.db"), systems=6, objects=bucket)
    assert bucket.read_back(again.database).standings == 3
    assert list(again.arena.battles()["vote"]) == votes[1:]
    assert again.arena.sweep().restored == [], "rules do not overrule a person"
    assert not any(b"ada" in path.read_bytes() for path in (tmp_path / "bucket").rglob("*.json")), "nor is one named"
