import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.vote_objects import VoteObjects
from podeval.files import DiskFull
from podeval.store.database import Database
from podeval.store.tables import Erasure, Pseudonym
from tests.fakes.databases import ON_SQLITE, Make

pytestmark = ON_SQLITE


@pytest.fixture
def bucket(tmp_path: Path) -> VoteObjects:
    return VoteObjects(tmp_path / "bucket")


@pytest.fixture
def small(small_arena: Make, bucket: Any) -> Any:
    return small_arena(systems=6, objects=bucket)


def test_a_space_that_lost_its_disk_has_its_votes_back(
    small_arena: Make, bucket: VoteObjects, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("SPACE_ID", "podeval/leaderboard")
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


def test_no_acknowledgement_without_the_object(
    small_arena: Make, bucket: VoteObjects, tmp_path: Path, monkeypatch: Any
) -> None:
    small = small_arena(objects=bucket)
    ballot = small.ballot(small.listen("alice"))

    def full(*_: Any) -> None:
        raise DiskFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(bucket, "_once", full)
        with pytest.raises(DiskFull):
            small.arena.vote("alice", ballot)
    assert small.arena.vote("alice", ballot).vote == ballot.id
    assert (tmp_path / "bucket" / "voters" / "alice" / f"{ballot.id}.json").is_file()


def test_a_half_written_object_is_passed_over_and_written_again(
    small_arena: Make, bucket: VoteObjects, tmp_path: Path
) -> None:
    small = small_arena(objects=bucket)
    ballot = small.ballot(small.listen("alice"))
    small.arena.vote("alice", ballot)
    file = tmp_path / "bucket" / "voters" / "alice" / f"{ballot.id}.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    assert bucket.read_back(small_arena(str(tmp_path / "other.db")).database).votes == 0
    small.arena.vote("alice", ballot)
    assert file.read_bytes() == whole


def test_erasing_a_person_empties_the_bucket_of_them(
    small: Any, small_arena: Make, bucket: VoteObjects, tmp_path: Path
) -> None:
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


class Watched:
    """Whether a transaction that keeps other writers waiting is open."""

    def __init__(self, database: Database) -> None:
        self.open = False
        self._write = database.write

    def write(self, work: Callable[[Session], Any]) -> Any:
        def watched(session: Session) -> Any:
            self.open = True
            try:
                return work(session)
            finally:
                self.open = False

        return self._write(watched)


def test_no_writer_waits_while_the_bucket_is_read_and_cleared(
    small: Any, bucket: VoteObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, place = small.arena.voter("hf:alice"), tmp_path / "bucket" / "voters"
    small.vote(alice)
    small.vote("bob")
    shutil.copytree(place / alice, tmp_path / "kept")
    small.arena.erase("hf:alice")
    shutil.copytree(tmp_path / "kept", place / alice)
    watched, touched = Watched(small.database), []
    for name in ("read_bytes", "glob", "exists", "unlink"):
        real = getattr(Path, name)

        def noted(path: Path, *given: Any, real: Any = real, **named: Any) -> Any:
            touched.append((watched.open, path))
            return real(path, *given, **named)

        monkeypatch.setattr(Path, name, noted)
    monkeypatch.setattr(small.database, "write", watched.write)
    assert bucket.read_back(small.database).repeated == 2
    assert touched
    assert [path for waiting, path in touched if waiting] == []
    assert not (place / alice).exists()


def test_who_is_forgotten_while_the_bucket_is_read_stays_forgotten(
    small: Any, bucket: VoteObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.vote(small.arena.voter("hf:alice"))
    real = small.database.write

    def erased_before(work: Callable[[Session], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(small.database, "write", real)
            small.arena.erase("hf:alice")
        return real(work)

    monkeypatch.setattr(small.database, "write", erased_before)
    assert bucket.read_back(small.database).votes == 0
    with small.database.reading() as session:
        assert session.scalars(select(Pseudonym)).all() == []


def test_an_object_that_is_deleted_while_the_bucket_is_listed_is_passed_over(
    small: Any, bucket: VoteObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = small.arena.voter("hf:alice")
    small.vote(alice)
    real = Path.glob

    def listed(path: Path, pattern: str) -> list[Path]:
        found = list(real(path, pattern))
        shutil.rmtree(tmp_path / "bucket", ignore_errors=True)
        return found

    monkeypatch.setattr(Path, "glob", listed)
    assert bucket.read_back(Database(tmp_path / "other.db")).votes == 0


def test_a_restart_undoes_no_decision_of_a_person(
    small: Any, small_arena: Make, bucket: VoteObjects, tmp_path: Path
) -> None:
    votes = [small.vote(voter).vote for voter in ("alice", "bob", "cyd")]
    # Ids and sums of random digits hold no such name by chance.
    operators = ("operator-quilliam-thorogood", "operator-morwenna-tyrwhitt")
    small.arena.decide(votes[0], "excluded", "caught cheating", operators[0])
    small.arena.decide(votes[1], "excluded", "a test of ours", operators[0])
    small.clock.on(1)
    small.arena.decide(votes[1], "counted", "it was none", operators[1])
    again = small_arena(str(tmp_path / "restarted.db"), systems=6, objects=bucket)
    assert bucket.read_back(again.database).standings == 3
    assert list(again.arena.battles()["vote"]) == votes[1:]
    assert again.arena.sweep().restored == [], "rules do not overrule a person"
    objects = [path.read_text("utf-8") for path in (tmp_path / "bucket").rglob("*.json")]
    assert len(objects) >= 3
    assert [name for name in operators for text in objects if name in text] == [], "nor is one named"
