"""What submissions leave on a worker's disk: removed when nobody needs it any more, and not before."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from podeval.files import lock_folder
from podeval.runs.run_folder import RunFolder
from podeval.submissions.moderation import take_down
from podeval.submissions.queue import Queue
from podeval.submissions.service import withdraw
from podeval.submissions.worker import clear

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=8)


@pytest.fixture
def published(tiny: ModuleType, queue: Queue, tmp_path: Path) -> str:
    row = tiny.enqueue(queue, "singer")
    tiny.worker(queue, tmp_path).once()
    assert queue.get(row.id).state == "published", queue.get(row.id).reason
    return str(row.id)


@pytest.fixture
def cancelled(tiny: ModuleType, queue: Queue, tmp_path: Path) -> str:
    """A submission that was stopped after its items were made, before it was published."""
    row = tiny.enqueue(queue, "singer")

    def break_(board: Path) -> None:
        queue.cancel(row.id, "alice")

    tiny.worker(queue, tmp_path, refresh=break_).once()
    assert queue.get(row.id).state == "cancelled"
    shutil.rmtree(tmp_path / "board")
    return str(row.id)


def inside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_what_is_published_leaves_nothing(tiny: ModuleType, queue: Queue, published: str, tmp_path: Path) -> None:
    log: list[str] = []
    tiny.worker(queue, tmp_path, log=log.append).clear()
    assert inside(tmp_path / "work" / published) == []
    assert len(log) == 1
    assert published in log[0]
    assert clear(queue, tmp_path / "work", LATER) == []
    assert len(list((tmp_path / "board/ten/demo/singer/outputs").glob("*.flac"))) == 10


def retry(tiny: ModuleType, queue: Queue, submission: str, folder: Path) -> None:
    queue.retry(submission, "alice")
    tiny.worker(queue, folder).once()
    assert queue.get(submission).state == "published", queue.get(submission).reason


def test_a_watching_worker_clears_up_by_itself(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    row = tiny.enqueue(queue, "singer")
    tiny.worker(queue, tmp_path).watch(0.01, lambda: queue.get(row.id).state == "published")
    assert inside(tmp_path / "work" / row.id) == []


def test_what_may_be_tried_again_stays_a_week(tiny: ModuleType, queue: Queue, cancelled: str, tmp_path: Path) -> None:
    work, board = tmp_path / "work", tmp_path / "board"
    assert clear(queue, work, NOW + timedelta(days=6)) == []
    output = (work / cancelled / "runs/ten/demo/singer/outputs/item_1.flac").stat().st_mtime_ns
    retry(tiny, queue, cancelled, tmp_path)
    assert (work / cancelled / "runs/ten/demo/singer/outputs/item_1.flac").stat().st_mtime_ns == output, "made once"
    assert len(list((board / "ten/demo/singer/outputs").glob("*.flac"))) == 10


def test_after_it_all_is_removed_and_a_retry_begins_afresh(
    tiny: ModuleType, queue: Queue, cancelled: str, tmp_path: Path
) -> None:
    assert clear(queue, tmp_path / "work", LATER) == [cancelled]
    assert inside(tmp_path / "work" / cancelled) == []
    retry(tiny, queue, cancelled, tmp_path)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize(
    "steps", [0, 3, 7, *(pytest.param(steps, marks=pytest.mark.long) for steps in (1, 2, 4, 5, 6))]
)
def test_a_kill_while_it_removes_harms_nothing(
    tiny: ModuleType, queue: Queue, cancelled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    left = [steps]

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def do(*args: object, **options: object) -> object:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return real(*args, **options)

        return do

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying(Path.rename))
        patch.setattr(os, "rmdir", dying(os.rmdir))
        with pytest.raises(Killed):
            clear(queue, tmp_path / "work", LATER)
    retry(tiny, queue, cancelled, tmp_path)
    run = RunFolder(tmp_path / "board", "ten", "demo", "singer")
    assert run.summaries()[0].metrics[0].scored == 10
    assert {path.stem for path in run.outputs.glob("*.flac")} == set(tiny.ITEMS)
    assert clear(queue, tmp_path / "work", NOW) == [cancelled]
    assert inside(tmp_path / "work" / cancelled) == []


def test_a_folder_that_somebody_works_in_is_left(queue: Queue, published: str, tmp_path: Path) -> None:
    path = tmp_path / "work" / published
    with lock_folder(path):
        assert clear(queue, tmp_path / "work", LATER) == []
    assert "runs" in inside(path)


def test_what_is_under_way_and_what_is_nobodys_is_left(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    row = tiny.enqueue(queue, "singer")
    for name in (row.id, "s00000000000", "thesis"):
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / "file").write_text("x")
    (tmp_path / "work/notes.txt").write_text("x")
    assert clear(queue, tmp_path / "work", LATER) == []
    assert inside(tmp_path / "work/thesis") == ["file"]


def test_a_spot_check_stays_for_a_week_after_its_last_use(queue: Queue, published: str, tmp_path: Path) -> None:
    work, path = tmp_path / "work", tmp_path / "work" / f"spot-{published}"
    (path / "seed-0").mkdir(parents=True)
    clear(queue, work, NOW)
    assert inside(path) == ["seed-0"]
    assert clear(queue, work, LATER) == [path.name]
    assert inside(path) == []
    (path / "seed-0").mkdir()
    withdraw(queue, published, "alice", tmp_path / "board")
    assert clear(queue, work, NOW) == [path.name]


@pytest.mark.parametrize("state", ["published", "cancelled"])
def test_nothing_stays_of_what_was_taken_down(
    request: pytest.FixtureRequest, queue: Queue, tmp_path: Path, state: str
) -> None:
    id = request.getfixturevalue("published" if state == "published" else "cancelled")
    work = tmp_path / "work"
    for folder in (work / id / "attempts" / "said", work / f"spot-{id}" / "seed-0"):
        folder.mkdir(parents=True)
        (folder / "said.json").write_text(json.dumps("hello"))
    take_down(queue, id, "ada", tmp_path / "board", "it speaks with a stolen voice", NOW)
    assert clear(queue, work, NOW) == [id, f"spot-{id}"]
    assert [path.name for path in work.rglob("*") if path.is_file()] == [".lock", ".lock"]
