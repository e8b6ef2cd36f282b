"""A tiny VITS with random weights, from the loopback Hub through gate, download, sandbox and adapter to the board."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database
from podeval.submissions import sandbox
from podeval.submissions.gate import Gate
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.queue import Queue
from podeval.submissions.sandbox import SandboxLimits
from podeval.submissions.service import SubmissionService, Submitter
from podeval.submissions.worker import Worker
from podeval.systems.submission import Submission

CARD = b"---\nlicense: cc0-1.0\n---\n# Tiny VITS\n" + b"Made of random numbers for a test, it says nothing at all. " * 5


@pytest.fixture
def queue(store: Path) -> Iterator[Queue]:
    with Database(store) as database:
        yield Queue(database)


@pytest.mark.long
def test_a_submitted_model_repo_becomes_a_row_of_the_board(
    tiny: ModuleType, queue: Queue, hub_client: Any, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    from tests.fakes import tiny_submissions

    folder = tiny_submissions.vits(tmp_path / "vits", speakers=2)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    commit = hub_client.repos.publish("models", "alice/vits", {**files, "README.md": CARD}).refs["main"]
    plain = tiny.document("tiny_vits")
    plain["source"] = {"kind": "model", "repo": "alice/vits", "revision": commit, "task": "text-to-speech"}

    row = SubmissionService(queue, Gate()).submit(Submission.model_validate(plain), Submitter("alice"))
    assert (row.state, row.owner_proven) == ("queued", True)
    assert row.pinned["parameters"] > 0
    limits = SandboxLimits(wall_seconds=200, memory_bytes=8 * 2**30, output_bytes=200 * 2**20)
    making = GenerationSettings(limits=limits, threads=1, trusted=sandbox.explain_missing_isolation() is not None)
    Worker(queue, tmp_path / "work", tmp_path / "board", lambda board: None, making).once()

    current = queue.get(row.id)
    assert current.state == "published", current.reason
    run = RunFolder(tmp_path / "board", "ten", "demo", "tiny_vits")
    output = run.output("item_0")
    assert output
    assert output.failed is None
    assert output.audio == "item_0.flac"
    assert output.wall_seconds
    assert run.summaries()[0].metrics[0].scored == 10
    assert run.plan().generation["revision"] == commit
    assert os.environ.get("HF_HUB_OFFLINE") != "1", "only the sandbox is offline"
