"""An operator's decisions by the real command line."""

import json
from pathlib import Path
from typing import Any

import pytest

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


def test_submissions_are_cancelled_queued_again_and_taken_down(
    podeval: Podeval, database: Path, tmp_path: Path
) -> None:
    with Database(database) as opened:
        queue = Queue(opened)
        id = queue.receive(DOCUMENT, owner="alice").id
        queue.move(id, "received", "checked", by="gate", pinned={"revision": "0" * 40})
        queue.move(id, "checked", "queued", by="gate")
    because = ("--reason", "a test", "--by", "ada")
    assert podeval("submissions", "cancel", id, "--by", "bob").code == 0
    assert podeval("submissions", "retry", id, "--by", "bob").code == 0
    trail = [json.loads(line) for line in podeval("admin", "trail", "--json").out.splitlines()]
    assert [(row["action"], row["made_by"]) for row in trail] == [
        ("submission requeued", "bob"),
        ("submission cancelled", "bob"),
    ]
    takedown = podeval("admin", "takedown", id, *because, "--runs", str(tmp_path))
    assert (takedown.code, takedown.out) == (0, f"{id}: cancelled; its outputs were deleted\n")
    newest = json.loads(podeval("admin", "trail", "--json", "--newest", "1").out)
    assert (newest["subject"], newest["reason"], newest["made_by"]) == (id, "a test", "ada")


def test_decisions_of_the_page_are_no_commands(podeval: Podeval, database: Path) -> None:
    assert "No such command 'freeze'" in podeval("admin", "freeze", "votes", "--reason", "We move.").err
    missing = podeval("admin", "trail", "--database", str(database.parent / "none.db"))
    assert (missing.code, "there is no database" in missing.err) == (2, True)
