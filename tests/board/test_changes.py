"""What changed on a board, from its runs and submissions."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from podeval.board.changes import list_changes
from podeval.runs.run_folder import RunFolder, RunPlan, RunSummary
from podeval.store.database import Database
from podeval.submissions.queue import Queue
from podeval.submissions.service import take_down


def row(created: str, version: str = "1.0", **more: Any) -> dict[str, Any]:
    return {
        "created": created, "system": "voice", "system_title": "A Voice", "benchmark": "real_pod", "split": "demo",
        "profile": "embedded", "protocol_json": json.dumps({"metric": "sptd", "version": version}), **more,
    }  # fmt: skip


def set_aside(runs: Path, created: str, version: str = "1.0") -> None:
    """An earlier run of the same system, taken off the board as publishing does."""
    run = RunFolder(runs, "real_pod", "demo", "voice")
    plan = RunPlan(
        benchmark="real_pod", split="demo", dataset="d", track="voice", system="voice", system_title="A Voice",
        system_kind="model", generation={}, seed=0,
    )  # fmt: skip
    run.begin(plan)
    protocols = {"p": {"metric": "sptd", "version": version}}
    run.write_summary(
        RunSummary(plan=plan, profile="embedded", created=created, provenance={}, protocols=protocols, metrics=())
    )
    assert take_down(run)


def test_the_first_result_is_new_and_a_later_one_takes_its_place(tmp_path: Path) -> None:
    set_aside(tmp_path, "2026-10-01T00:00:00+00:00")
    other = {"system": "other", "system_title": "Another"}
    board = pd.DataFrame([row("2026-11-01T00:00:00+00:00"), row("2026-10-15T00:00:00+00:00", **other)])
    found = [(change.at[:10], change.kind, change.about) for change in list_changes(board, tmp_path)]
    assert found == [
        ("2026-11-01", "again", "A Voice"),
        ("2026-10-15", "new", "Another"),
        ("2026-10-01", "new", "A Voice"),
    ]
    assert list_changes(board, tmp_path)[0].benchmark.endswith(" · demo")


def test_a_newer_version_of_a_metric_supersedes_the_older_one_when_its_first_result_comes(tmp_path: Path) -> None:
    set_aside(tmp_path, "2026-09-01T00:00:00+00:00", "1.9")
    board = pd.DataFrame(
        [row("2026-11-01T00:00:00+00:00", "1.10"), row("2026-10-01T00:00:00+00:00", "1.10", split="x")]
    )
    (change,) = [change for change in list_changes(board, tmp_path) if change.kind == "protocol"]
    assert (change.at[:10], change.about, change.detail) == ("2026-10-01", "sptd", "1.9 → 1.10")


def test_papers_figures_and_an_empty_board_change_nothing(tmp_path: Path) -> None:
    assert list_changes(pd.DataFrame([row("", profile="paper")]), tmp_path) == []
    assert list_changes(pd.DataFrame(columns=list(row(""))), tmp_path) == []


@pytest.mark.parametrize("reason", ["its authors asked", "see /home/ada/notes.txt"])
def test_what_is_withdrawn_is_told_with_its_reason_and_no_folders_of_ours(tmp_path: Path, reason: str) -> None:
    document = {
        "system": {"id": "voice", "name": "A Voice"},
        "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
        "source": {"kind": "outputs", "repo": "a/b"},
    }
    with Database(tmp_path / "s.db") as database:
        queue = Queue(database)
        id = queue.receive(document, owner="alice").id
        queue.move(id, "received", "checked", by="gate")
        queue.move(id, "checked", "queued", by="gate")
        claim = queue.claim("worker")
        queue.advance(claim, "running", "measured")
        queue.advance(claim, "measured", "published")
        queue.move(id, "published", "withdrawn", by="alice", reason=reason)
        (change,) = list_changes(pd.DataFrame(columns=list(row(""))), tmp_path, database)
    assert (change.kind, change.about) == ("withdrawn", "A Voice")
    assert "/home/ada" not in change.detail
    assert change.detail.startswith(reason[:4])
