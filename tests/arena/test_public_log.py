"""The public log on a Hub of the tests' own, written and read by the real client."""

import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from podeval.arena.public_log import PublicLog
from podeval.errors import BadInput
from podeval.hub.retry import HubUnavailable
from podeval.store.database import Database
from podeval.store.tables import MirrorFile, Vote
from tests.fakes.databases import ON_SQLITE, Make

REPO = "podeval/votes"

pytestmark = [ON_SQLITE, pytest.mark.usefixtures("waited")]


def mirror(small: Any, **choices: Any) -> PublicLog:
    return PublicLog(small.database, REPO, token="hf_test", clock=small.clock, **choices)


def log(hub: Any) -> list[dict[str, Any]]:
    """All records of the log, from all its files."""
    _, files = hub.repos.repos["datasets", REPO].at("main")
    return [
        json.loads(line)
        for name, text in sorted(files.items())
        if name.startswith("log/")
        for line in text.splitlines()
    ]


def each_once(hub: Any) -> set[str]:
    counts = Counter(f"{record['record']}:{record.get('id') or record.get('voter')}" for record in log(hub))
    assert set(counts.values()) <= {1}
    return set(counts)


def votes_of(database: Database) -> list[tuple[Any, ...]]:
    with database.reading() as session:
        rows = session.scalars(select(Vote).order_by(Vote.number))
        return [(row.id, row.outcome, row.voter, row.standing, row.recorded_at) for row in rows]


@pytest.fixture
def small(small_arena: Make) -> Any:
    return small_arena()


def test_a_new_server_reads_back_what_was_sent(small_arena: Make, hub_client: Any, tmp_path: Path) -> None:
    small = small_arena(systems=6)
    for number in range(8):
        small.vote(f"voter{number % 3}", "ab"[number % 2], comment=f"a private remark, number {number}")
    small.arena.decide("ballot-000003", "excluded", "a test of the operator's", "ada@example.org")
    assert mirror(small).push().records == 9
    assert mirror(small).push().records == 0
    other = small_arena(str(tmp_path / "other.db"), systems=0, items=0)
    done = mirror(other).read_back()
    assert (done.votes, done.standings) == (8, 1)
    assert votes_of(other.database) == votes_of(small.database)
    columns = ["system_a", "system_b", "outcome", "voter", "item", "dimension", "seconds_a", "loudness_b"]
    assert other.arena.battles()[columns].equals(small.arena.battles()[columns])
    assert mirror(other).read_back().votes == 0
    other.fill(6, 3, 20.0)
    other.vote("late", id="a-late-vote")
    assert mirror(other).push().records == 1
    assert len(each_once(hub_client)) == 10
    assert mirror(small).read_back().votes == 1


def test_the_log_holds_no_comment_origin_or_operator(small: Any, hub_client: Any) -> None:
    vote = small.vote(
        small.arena.voter("hf:alice"), comment="call me at the ferry", origin=small.arena.origin("203.0.113.7")
    )
    small.arena.decide(vote.vote, "excluded", "duplicate", "ada@example.org")
    mirror(small).push()
    text = json.dumps(log(hub_client))
    for private in ("the ferry", "alice", "203.0.113", "ada@example", small.arena.origin("203.0.113.7")):
        assert private not in text
    assert "a person" in text


def test_what_a_dead_sender_planned_is_sent_once(small_arena: Make, hub_client: Any) -> None:
    """Killed before sending, and killed after it, before it heard that it arrived."""
    small = small_arena(systems=6)
    for number in range(3):
        small.vote(f"voter{number}")
    first = mirror(small)
    small.database.write(first._plan)  # private: a sender that is killed right after it
    small.vote("late")
    assert mirror(small).push().records == 4
    with small.database.writing() as session:
        for file in session.scalars(select(MirrorFile)):
            file.commit = None
    assert mirror(small).push().records == 0
    with small.database.reading() as session:
        assert session.scalars(select(MirrorFile).where(MirrorFile.commit.is_(None))).all() == []
    assert len(each_once(hub_client)) == 4


@pytest.mark.parametrize("status", [503, 412])
def test_trouble_that_passes_is_tried_again(small: Any, hub_client: Any, status: int) -> None:
    mirror(small).push()
    small.vote("alice")
    hub_client.repos.faults += [status] * 2
    assert mirror(small).push().records == 1
    assert len(each_once(hub_client)) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_told_at_once_and_as_one(small: Any, hub_client: Any, waited: list[float], status: int) -> None:
    mirror(small).push()
    small.vote("alice")
    waited.clear()
    hub_client.trouble = lambda method, path: status
    for ask in (mirror(small).read_back, mirror(small).push):
        with pytest.raises(BadInput, match="check that the token may read"):
            ask()
    hub_client.trouble = lambda method, path: status if method == "POST" else None
    with pytest.raises(BadInput, match="check that the token may write"):
        mirror(small).push()
    assert waited == []


def test_a_card_that_was_written_by_hand_stays(small: Any, hub_client: Any) -> None:
    mirror(small).push()
    repo = hub_client.repos.repos["datasets", REPO]
    assert b"data_files: log/*.jsonl" in repo.at("main")[1]["README.md"]
    repo.commit({**repo.at("main")[1], "README.md": b"our votes"})
    small.vote("alice")
    assert mirror(small).push().records == 1
    assert repo.at("main")[1]["README.md"] == b"our votes"


@pytest.mark.long
def test_senders_that_meet_send_everything_once(small_arena: Make, hub_client: Any, tmp_path: Path) -> None:
    """Two servers, each with a database of its own, push to one log at the same time, again and again."""
    arenas = [small_arena(str(tmp_path / f"{name}.db"), systems=6, items=4) for name in ("one", "two")]
    mirror(arenas[0]).push()

    def work(small: Any, name: str) -> None:
        for number in range(4):
            small.vote(f"{name}{number}", id=f"vote-of-{name}-{number}")
            mirror(small).push()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, arenas, ("one", "two")))
    assert len(each_once(hub_client)) == 8
    for small in arenas:
        mirror(small).read_back()
        assert len(votes_of(small.database)) == 8


def test_an_old_backup_does_not_send_again(small_arena: Make, hub_client: Any, tmp_path: Path) -> None:
    small = small_arena(systems=6)
    small.vote("alice")
    small.database.engine.dispose()
    shutil.copy(tmp_path / "store.db", tmp_path / "backup.db")
    small.vote("bob")
    mirror(small).push()
    restored = small_arena(str(tmp_path / "backup.db"), systems=6)
    assert mirror(restored).push().records == 0
    assert len(votes_of(restored.database)) == 2
    assert len(each_once(hub_client)) == 2


def test_an_erased_voter_stays_erased_everywhere(small_arena: Make, hub_client: Any, tmp_path: Path) -> None:
    small = small_arena(systems=6)
    alice = small.arena.voter("hf:alice")
    small.vote(alice)
    small.vote("bob")
    mirror(small).push()
    small.arena.erase("hf:alice")
    small.database.write(lambda session: None)
    mirror(small).push()
    other = small_arena(str(tmp_path / "other.db"))
    done = mirror(other).read_back()
    assert done.erasures == 1
    assert [row[2] for row in votes_of(other.database)] == ["bob"]
    fresh = small_arena(str(tmp_path / "third.db"))
    for _ in range(2):
        mirror(fresh).read_back()
    assert [row[2] for row in votes_of(fresh.database)] == ["bob"]


def test_what_was_erased_before_it_was_sent_is_never_sent(small: Any, hub_client: Any) -> None:
    alice = small.arena.voter("hf:alice")
    small.vote(alice)
    small.database.write(mirror(small)._plan)  # private: the erasure comes between planning and sending
    small.arena.erase("hf:alice")
    mirror(small).push()
    assert {record["record"] for record in log(hub_client)} == {"erasure"}
    assert mirror(small).push().files == []


def test_who_is_forgotten_between_two_senders_of_one_file_stops_neither(small_arena: Make, hub_client: Any) -> None:
    small = small_arena(systems=6)
    small.vote(small.arena.voter("hf:alice"))
    small.vote("bob")
    slow = mirror(small)
    real = slow._send  # private: another sender comes in between, just before a file is sent

    def sent_late(path: str, records: list[Any]) -> str:
        slow._send = real
        mirror(small).push()
        small.arena.erase("hf:alice")
        with small.database.reading() as session:
            return real(path, slow._records_of(session, path))

    slow._send = sent_late
    slow.push()
    assert {line["record"] for line in log(hub_client)} == {"vote", "erasure"}
    assert len(each_once(hub_client)) == 3


def test_a_log_that_was_changed_is_not_taken_in(small: Any, hub_client: Any, tmp_path: Path) -> None:
    small.vote("alice", "a")
    mirror(small).push()
    repo = hub_client.repos.repos["datasets", REPO]
    files = dict(repo.at("main")[1])
    (name,) = (name for name in files if name.startswith("log/"))
    original = files[name]
    for changed, says in (
        (original.replace(b'"outcome": "a"', b'"outcome": "b"'), "different content"),
        (original.replace(b'"heard_a": 1.0', b'"heard_a": 9.0'), "heard_a"),
        (original[:-20], "not JSON"),
        (b'{"record": "gift"}\n', "not a vote record"),
        (b"\xff\n", "is damaged"),
    ):
        repo.commit({**files, "log/29990101T000000000000-ffffffff.jsonl": changed})
        with pytest.raises(BadInput, match=says):
            mirror(small).read_back()
        assert [row[1] for row in votes_of(small.database)] == ["a"]


def test_a_hub_that_is_away_is_a_sentence(small: Any, hub_client: Any, monkeypatch: Any) -> None:
    small.vote("alice")
    mirror(small).push()
    small.vote("bob")
    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(HubUnavailable, match="try again later"):
            mirror(small).push()
    assert mirror(small).push().records == 1
