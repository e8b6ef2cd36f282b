"""An operator's decisions by the real command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from podeval.arena import Arena
from podeval.store.database import Database
from podeval.submissions.queue import Queue

Podeval = Any
DOCUMENT = {
    "schema_version": 1,
    "system": {"id": "a_b", "name": "A", "description": "B", "licence": "MIT", "open": True, "languages": ["en"]},
    "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
    "source": {"kind": "outputs", "repo": "alice/x", "revision": "0" * 40},
}


@pytest.fixture
def database(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "podeval.db"
    place.write_bytes(empty_store.read_bytes())
    monkeypatch.setenv("DATABASE_URL", str(place))
    return place


def test_what_is_frozen_stays_so_for_every_process_until_it_is_thawed(podeval: Podeval, database: Path) -> None:
    assert podeval("admin", "freeze", "votes", "--reason", "We move.", "--by", "ada").out == "votes are frozen\n"
    with Database(database) as opened:
        assert Arena(opened).why_frozen() == "no votes are taken at the moment: We move."
    assert podeval("admin", "thaw", "votes", "--reason", "moved", "--by", "ada").code == 0
    with Database(database) as opened:
        assert Arena(opened).why_frozen() is None
    trail = [json.loads(line) for line in podeval("admin", "trail", "--json").out.splitlines()]
    assert [(row["action"], row["reason"], row["made_by"]) for row in trail] == [
        ("thawed", "moved", "ada"),
        ("frozen", "We move.", "ada"),
    ]
    assert "votes and submissions can" in podeval("admin", "freeze", "all", "--reason", "x").err


def test_submissions_are_cancelled_queued_again_and_taken_down(
    podeval: Podeval, database: Path, tmp_path: Path
) -> None:
    with Database(database) as opened:
        queue = Queue(opened)
        id = queue.receive(DOCUMENT, owner="alice").id
        queue.move(id, "received", "checked", by="gate", pinned={"revision": "0" * 40})
        queue.move(id, "checked", "queued", by="gate")
    because = ("--reason", "a test", "--by", "ada")
    assert podeval("admin", "cancel", id, *because).out == f"{id}: cancelled\n"
    assert podeval("admin", "requeue", id, *because).out == f"{id}: queued\n"
    assert podeval("submissions", "cancel", id, "--by", "bob").code == 0
    assert podeval("submissions", "retry", id, "--by", "bob").code == 0
    trail = [json.loads(line) for line in podeval("admin", "trail", "--json").out.splitlines()]
    assert [(row["action"], row["made_by"]) for row in trail] == [
        ("submission requeued", "bob"),
        ("submission cancelled", "bob"),
        ("submission requeued", "ada"),
        ("submission cancelled", "ada"),
    ], "whichever command it was"
    assert "queued, not published" in podeval("admin", "withdraw", id, *because, "--board", str(tmp_path)).err
    taken = podeval("admin", "takedown", id, *because, "--board", str(tmp_path))
    assert (taken.code, taken.out) == (0, f"{id}: cancelled, what it said is deleted\n")


def test_a_decision_names_one_thing_and_a_database_that_is_there(podeval: Podeval, database: Path) -> None:
    assert "name one: --vote" in podeval("admin", "exclude", "--reason", "x").err
    assert "there is no vote nothing" in podeval("admin", "include", "--vote", "nothing", "--reason", "x").err
    assert "there is no vote of p1" in podeval("admin", "exclude", "--voter", "p1", "--reason", "x").err
    assert podeval("admin", "goal", "300", "--reason", "x").out == "300 votes are wanted on each dimension\n"
    missing = podeval("admin", "trail", "--database", str(database.parent / "none.db"))
    assert (missing.code, "there is no database" in missing.err) == (2, True)
