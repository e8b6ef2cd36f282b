"""The Hub as the record of submissions and results: pushed, read back into an empty server, never twice."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.hub.commits import AppendOnly
from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database
from podeval.submissions.hub_record import HubRecord
from podeval.submissions.queue import Queue


@pytest.fixture
def repos(hub_client: Any) -> tuple[AppendOnly, AppendOnly]:
    from huggingface_hub import HfApi

    api = HfApi(token="hf_x")
    return AppendOnly("podeval/requests", api=api), AppendOnly("podeval/results", api=api)


@pytest.fixture
def server(tmp_path: Path, empty_store: Path, repos: Any) -> Iterator[Any]:
    """Makers of servers: each with a database of its own."""
    opened: list[Database] = []

    def make(name: str) -> HubRecord:
        opened.append(Database(Path(shutil.copy(empty_store, tmp_path / f"{name}.db"))))
        return HubRecord(Queue(opened[-1]), *repos)

    yield make
    for database in opened:
        database.close()


def plain(row: Any) -> dict[str, Any]:
    left_out = ("number", "not_before", "failures", "place")
    return {c.key: getattr(row, c.key) for c in row.__table__.columns if c.key not in left_out}


def test_a_new_server_starts_from_what_the_hub_holds(
    tiny: ModuleType, server: Any, hub_client: Any, tmp_path: Path
) -> None:
    first = server("first")
    done, waiting, running = (tiny.enqueue(first.queue, name) for name in ("one", "two", "three"))
    assert first.push() == 9
    tiny.worker(first.queue, tmp_path).once()
    claim = first.queue.claim("somebody")
    assert claim
    assert first.push() == 4
    assert first.push() == 0
    assert first.push_results(tmp_path / "board") == 1
    assert first.push_results(tmp_path / "board") == 0

    second = server("second")
    assert second.read_back() == 3
    assert second.read_back() == 0
    for row in (done, running):
        assert plain(second.queue.get(row.id)) == plain(first.queue.get(row.id))
    restored = second.queue.get(claim.id)
    assert (restored.state, restored.attempt) == ("queued", 1)
    history = second.queue.history(claim.id)
    assert [step.after for step in history] == ["received", "checked", "queued", "running", "queued"]
    assert {row.system for row in second.queue.all()} == {"one", "two", "three"}
    next_claim = second.queue.claim("new worker")
    assert next_claim
    assert next_claim.id in (waiting.id, running.id)

    assert second.read_back_results(tmp_path / "new board") > 0
    restored = RunFolder(tmp_path / "new board", "ten", "demo", "one")
    assert restored.summaries() == RunFolder(tmp_path / "board", "ten", "demo", "one").summaries()
    assert second.read_back_results(tmp_path / "new board") == 0


def test_two_servers_that_push_the_same_make_no_doubles(tiny: ModuleType, server: Any, hub_client: Any) -> None:
    first = server("first")
    tiny.enqueue(first.queue, "one")
    first.push()
    second = server("second")
    second.read_back()
    assert second.push() == 0
    names = [name for name in hub_client.repos.repos["datasets", "podeval/requests"].at("main")[1] if "/" in name]
    assert len(names) == 3


def test_no_folder_of_the_submitters_machine_and_no_secret_is_published(
    tiny: ModuleType, server: Any, hub_client: Any, tmp_path: Path
) -> None:
    first = server("first")
    first.queue.receive(tiny.document("one"), owner="alice", document_folder="/home/alice/private")
    first.push()
    files = hub_client.repos.repos["datasets", "podeval/requests"].at("main")[1]
    assert not any(b"/home/alice" in data or b"hf_x" in data for data in files.values())


def test_names_that_lead_out_of_the_board_are_not_written(
    tiny: ModuleType, server: Any, hub_client: Any, tmp_path: Path
) -> None:
    first = server("first")
    row = tiny.enqueue(first.queue, "one")
    tiny.worker(first.queue, tmp_path).once()
    names = (f"results/ten/../one/{row.id}/x.json", f"results/a/b/c/{row.id}/../../y.json")
    hub_client.repos.publish("datasets", "podeval/results", dict.fromkeys(names, b"{}"))
    assert first.read_back_results(tmp_path / "new") == 0
    assert not (tmp_path / "new").exists()
