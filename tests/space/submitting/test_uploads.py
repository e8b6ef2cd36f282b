"""Recordings that people upload: who may, how much, and what becomes of them."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from fastapi.testclient import TestClient

from podeval import sandbox
from podeval.board.build import build
from podeval.board.runs_folder import RunsFolder
from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.queue import Queue
from podeval.submissions.worker import Worker
from tests.space.submit_fixture import Asking, Build, tab_method, zipped


def test_only_who_may_submit_uploads_as_much_as_recordings_take(
    site_of: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import gradio_addresses

    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "held"))
    monkeypatch.setenv("PODEVAL_TRY", "0")
    monkeypatch.setattr(gradio_addresses, "LARGEST_UPLOAD", 1_000)
    client = TestClient(site_of(tabs=True))

    def send(name: str, size: int) -> Any:
        known = {"x-person": name} if name else {}
        return client.post("/gradio_api/upload", headers=known, files={"files": ("a.zip", b"x" * size)})

    assert send("", 10).json()["error"] == "this board does not measure for visitors"
    assert send("alice", 5_000).status_code == 200
    monkeypatch.setenv("PODEVAL_TRY", "1")
    client = TestClient(site_of(tabs=True))
    assert send("", 10).status_code == 200
    assert send("", 5_000).status_code == 413
    assert [send("bob", 5_000).status_code for _ in range(11)] == [*[200] * 10, 429]
    shut = TestClient(site_of(closed="what is submitted here would be lost at the next restart", tabs=True))
    assert (
        shut.post("/gradio_api/upload", headers={"x-person": "bob"}, files={"files": b"x" * 5_000}).status_code == 413
    )
    monkeypatch.setattr(gradio_addresses, "LEAST_FREE", 2**60)
    assert send("carol", 5_000).status_code == 503, "the disk keeps room for the database"


def test_uploaded_recordings_are_looked_over_at_once_submitted_by_who_sent_them_and_put_on_the_board(
    site_of: Build, tiny: ModuleType, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "held"))
    site = site_of(tabs=True)
    form, part = tab_method(site, "SubmitTab.submit"), tab_method(site, "RecordingsUpload.receive")

    def upload(who: str, files: list[str]) -> str:
        path = tmp_path / "held" / "x" / "tones.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zipped(files))
        answer, _ = part.receive(Asking(who), {"path": str(path)}, ["ten.voice"])
        assert not path.exists(), "the zip itself is deleted in any case"
        return str(answer)

    values = {"system.id": "tones", "system.name": "Tones", "system.description": "Ten tones.", "system.open": True}
    values |= {"system.licence": "CC0-1.0", "system.languages": "en"}
    given = [values.get(field.path, "") for field in form._declared]  # no other way to a form without a browser

    def hand_in(who: str, step: str) -> str:
        answer = getattr(form, step)(Asking(who), "outputs", ["ten.voice"], *given)
        return " ".join([answer[0], *(str(mark.get("info")) for mark in answer[1:] if isinstance(mark, dict))])

    assert "sign in" in upload("", ["a.wav"])
    assert "points outside the zip" in upload("alice", ["../a.wav"])
    told = upload("alice", [f"my tones/{item}.wav" for item in tiny.ITEMS[:9]] + ["my tones/other.wav"])
    assert "Ten · demo: 9 of 10 are present" in told
    assert tiny.ITEMS[9] in told
    assert "other.wav" in told
    assert "1 of 10 outputs" in hand_in("alice", "check")
    assert "are missing" in hand_in("alice", "submit")
    assert Queue(database).all() == [], "what is incomplete is not queued, and its upload stays"
    assert "upload a zip" in hand_in("bob", "submit"), "nobody submits what another uploaded"
    assert "10 of 10 are present" in upload("alice", [f"{item}.wav" for item in tiny.ITEMS])
    assert "All checks passed" in hand_in("alice", "check")
    assert "/submissions/" in hand_in("alice", "submit")
    (row,) = Queue(database).all()
    assert (row.state, row.owner) == ("queued", "alice")
    making = GenerationSettings(trusted=sandbox.explain_missing_isolation() is not None)
    Worker(Queue(database), tmp_path / "work", tmp_path / "board", build, making).once()
    assert Queue(database).get(row.id).state == "published", Queue(database).get(row.id).reason
    board = RunsFolder(tmp_path / "board").board()
    assert "tones" in set(board["system"])
    run = RunFolder(tmp_path / "board", "ten", "demo", "tones")
    assert run.plan().generation["revision"] == row.pinned["content"]
    page = TestClient(site_of()).get(f"/submissions/{row.id}").text.replace("\xa0", " ")
    assert "Finished items: 10 of 10" in page
    assert "ten/demo/item_3" in page
    assert "all 10 items have been generated and measured" in page
    assert "Cost so far: 0.00 USD" in page
    shown = form.show_queue(Asking("alice"))[1]
    own = shown.partition('id="queue-working"')[0]
    assert own.count("<tr>") == 2, "the heads and one submission"
    assert "Progress" not in own, "a column of which nothing can be said is left out"
    assert "<h2>Your submissions" not in form.show_queue(Asking("bob"))[1]
    for head, cell in {"Cost": "0.00 USD", "Last": "ten/demo: all 10 items have been generated and measured"}.items():
        assert re.search(rf'<td[^>]* data-label="{head}[^"]*">{re.escape(cell)}</td>', own.replace("\xa0", " ")), head
