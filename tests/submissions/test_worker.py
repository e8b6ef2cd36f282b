"""A worker takes submissions from the queue to the board, whatever happens to it or to them."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.runs.run_folder import RunFolder
from podeval.submissions.public_view import SubmissionLog
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy

POLICY = Policy(lease_seconds=6, pause_seconds=0.0)
"""The policy of the queue."""


@pytest.fixture
def behave(tmp_path: Path) -> Callable[..., None]:
    """What the model of a system does on items: code that sees `out`, `item`, `tone` and `finish`."""

    def write(system: str, **items: str) -> None:
        folder = tmp_path / "models" / system
        folder.mkdir(parents=True)
        (folder / "behaviour.json").write_text(json.dumps({"items": items}))

    return write


def test_a_submission_is_run_measured_and_published(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    row = tiny.enqueue(queue, "singer")
    refreshed: list[Path] = []
    assert tiny.worker(queue, tmp_path, refresh=refreshed.append).once() == row.id
    current = queue.get(row.id)
    assert (current.state, current.items_done, current.items_total) == ("published", 10, 10), current.reason
    assert refreshed == [tmp_path / "board"]
    run = RunFolder(tmp_path / "board", "ten", "demo", "singer")
    assert run.plan().provenance == "run by us"
    assert run.plan().generation["revision"] == "a" * 40
    output = run.output("item_3")
    assert output
    assert (output.audio, output.duration, output.wall_seconds) == ("item_3.flac", 0.5, 0.01)
    assert run.summaries()[0].metrics[0].scored == 10
    lines = SubmissionLog(queue.database).lines(row.id)
    assert [line.text for line in lines if line.item == "ten/demo/item_3"] == ["0.5 s of audio, made in 0.0 s"]
    assert len([line for line in lines if line.item]) == 10
    texts = [line.text for line in lines if not line.item]
    assert texts == ["attempt 1 began: 10 items of 1 runs", "ten/demo: all 10 items have been generated and measured"]
    assert tiny.worker(queue, tmp_path).once() is None


def test_a_worker_goes_on_after_an_error_that_nobody_expected(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    looks: list[int] = []

    def look_over() -> None:
        looks.append(len(looks))
        if len(looks) == 1:
            raise KeyError("maybe")
        if len(looks) == 2:
            tiny.enqueue(queue, "singer")

    tiny.worker(queue, tmp_path, look_over=look_over).watch(
        0.0, lambda: any(row.state == "published" for row in queue.all())
    )
    # More looks where the machine is so slow that the lease of six seconds lapses, and the submission is claimed again.
    assert len(looks) >= 2


@pytest.mark.parametrize(
    ("kills", "submissions", "item_seconds", "longest"),
    [(3, 2, 0.15, 0.3), pytest.param(50, 4, 1.0, 1.0, marks=pytest.mark.long)],
)
def test_killed_workers_lose_nothing_and_double_nothing(
    tiny: ModuleType,
    ordeal: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kills: int,
    submissions: int,
    item_seconds: float,
    longest: float,
) -> None:
    monkeypatch.setenv("TALLY_SECONDS", "0.05")
    path = str(tmp_path / "store.db")
    outcome = ordeal.undergo(
        tiny,
        path,
        tmp_path,
        kills=kills,
        submissions=submissions,
        workers=2,
        seed=5,
        lease=1.0,
        item_seconds=item_seconds,
        between=(0.05, longest),
    )
    assert outcome.kills == kills
    assert outcome.attempts > (8 if kills == 50 else submissions)
