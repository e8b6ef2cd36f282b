"""A run killed at any moment goes on where it was: nothing is lost, nothing finished is done again."""

import errno
import itertools
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.board.build import build
from podeval.errors import BadInput, ModelMissing
from podeval.files import DiskFull, lock_folder
from podeval.runs.board_tables import BOARD, read_table
from podeval.runs.run import RunRequest, run_system
from podeval.runs.run_folder import RunSummary

Counted = Callable[[str], int]
Child = Callable[[], Any]


def lines(runs: Path) -> list[dict[str, Any]]:
    path = runs / "tiny/demo/singer/embedded/results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def numbers(summary: RunSummary) -> dict[str, Any]:
    """A summary without the time it was made at."""
    return summary.model_copy(update={"created": ""}).model_dump()


def in_a_child(work: Child) -> int | None:
    """Run in a process of its own; its exit code, negative for a signal."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(60)
    return process.exitcode


@pytest.fixture
def run(tiny: ModuleType, tmp_path: Path) -> Callable[..., RunSummary]:
    def once(folder: str = "runs", **fields: Any) -> RunSummary:
        request = RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path / folder, **fields)
        return run_system(tiny.Singer(), "The Singer", request)

    return once


def test_an_undisturbed_run_speaks_measures_and_sums_up_once(
    run: Callable[..., RunSummary], counted: Counted, tmp_path: Path
) -> None:
    summary = run()
    assert {row.metric: row.scored for row in summary.metrics} == {"loudness": 3, "trouble": 3}
    assert all(row.rankable for row in summary.metrics)
    assert (counted("spoken"), counted("measured"), len(lines(tmp_path / "runs"))) == (3, 3, 6)
    assert numbers(run()) == numbers(summary)
    assert (counted("spoken"), counted("measured"), len(lines(tmp_path / "runs"))) == (3, 3, 6)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_each_of_its_writes_a_run_ends_like_an_undisturbed_one(
    run: Callable[..., RunSummary], counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """At every third: files and their names are written in turn, so that each kind meets a kill."""
    sync, written = os.fsync, list[int]()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: (written.append(file), sync(file)))
        whole = run("whole")
    spoken = counted("spoken")
    # The plan, the items, three outputs of two files, the content of the protocols and the summary, each with its name;
    # three items' results, with their file's name once.
    assert len(written) == 2 * (1 + 1 + 6 + 1 + 1) + 3 + 1

    def killed_at(number: int, folder: str) -> Child:
        def work() -> None:
            writes = itertools.count(1)

            def sync_or_die(file: int) -> None:
                if next(writes) == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                sync(file)

            os.fsync = sync_or_die  # type: ignore[assignment]
            run(folder)

        return work

    for number in range(1, len(written) + 1, step):
        folder, before = f"at {number}", counted("spoken")
        assert in_a_child(killed_at(number, folder)) == -signal.SIGKILL
        assert numbers(run(folder)) == numbers(whole), f"killed at write {number}"
        results = [(line["item"], line["protocol"]) for line in lines(tmp_path / folder)]
        assert len(results) == len(set(results)) == 6
        assert counted("spoken") - before <= 4, "only what was being written may be spoken again"
        assert not list((tmp_path / folder).rglob("*.partial"))
    assert spoken == 3


def test_a_half_written_last_line_does_not_count_and_is_cut_off(
    run: Callable[..., RunSummary], counted: Counted, tmp_path: Path
) -> None:
    whole = run()
    path = tmp_path / "runs/tiny/demo/singer/embedded/results.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    assert numbers(run()) == numbers(whole)
    assert len(lines(tmp_path / "runs")) == 6
    assert counted("spoken") == 3


def test_a_damaged_line_in_the_middle_is_told_with_its_number(run: Callable[..., RunSummary], tmp_path: Path) -> None:
    run()
    path = tmp_path / "runs/tiny/demo/singer/embedded/results.jsonl"
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*content[:2], content[2][:20] + b"\n", *content[3:]]))
    with pytest.raises(
        BadInput, match=r"results.jsonl, line 3 is damaged .* delete that line and run the same command"
    ):
        run()
    path.write_bytes(b'{"schema": 9}\n')
    with pytest.raises(BadInput, match=r"was not written by this version of podeval"):
        run()


def test_audio_that_was_deleted_is_spoken_again(
    run: Callable[..., RunSummary], counted: Counted, tmp_path: Path
) -> None:
    run()
    (tmp_path / "runs/tiny/demo/singer/outputs/two.flac").unlink()
    run()
    assert counted("spoken") == 4


def test_a_run_made_otherwise_is_refused_and_left_as_it_is(
    run: Callable[..., RunSummary], tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    before = lines(tmp_path / "runs")
    with pytest.raises(BadInput, match=r"contains a run that differs in seed; choose another folder with --out"):
        run(seed=1)
    monkeypatch.setattr(tiny.Singer, "pitch", 300)
    with pytest.raises(BadInput, match="differs in generation"):
        run()
    assert lines(tmp_path / "runs") == before


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seed": -1}, "the seed -1 of singer is out of range"),
        ({"profile": "nosuch"}, "there is no profile 'nosuch'"),
        ({"profile": "paper"}, "there is no profile 'paper' that can be run"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_spoken_or_written(
    run: Callable[..., RunSummary], counted: Counted, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run(**fields)
    assert counted("spoken") == 0
    assert not (tmp_path / "runs/tiny/demo/singer/run.json").exists()
    run()


def test_two_runs_in_one_folder_are_refused(run: Callable[..., RunSummary], tmp_path: Path) -> None:
    refusal = pytest.raises(BadInput, match=r"another podeval run is writing to .*singer; wait, or choose another")
    with lock_folder(tmp_path / "runs/tiny/demo/singer"), refusal:
        run()
    run()


def test_the_board_waits_for_another_that_is_being_built(run: Callable[..., RunSummary], tmp_path: Path) -> None:
    run()
    holder = multiprocessing.get_context("fork").Process(target=_hold, args=(tmp_path / "runs",))
    holder.start()
    while not (tmp_path / "runs/.held").exists():
        time.sleep(0.01)
    build(tmp_path / "runs")
    holder.join()
    assert holder.exitcode == 0
    board = read_table(tmp_path / "runs" / BOARD)
    assert list(board[(board.system == "singer") & (board.key == "trouble")].scored) == [3]


def _hold(folder: Path) -> None:
    with lock_folder(folder):
        (folder / ".held").touch()
        time.sleep(0.3)


def test_a_system_that_fails_on_an_item_is_unscored_there_by_its_own_fault(
    run: Callable[..., RunSummary], counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_FAIL", "Number two")
    for row in run().metrics:
        assert (row.scored, row.unscored_system, row.unscored_ours) == (2, 1, 0)
        assert row.reasons == {"the system produced no audio: the singer has lost its voice": 1}
        assert not row.rankable
    run()
    assert counted("spoken") == 3


def test_a_system_that_is_not_installed_leaves_no_run_behind_and_is_not_needed_once_it_has_spoken(
    run: Callable[..., RunSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TINY_ABSENT", "install the singer")
        with pytest.raises(ModelMissing, match="install the singer"):
            run()
    assert not (tmp_path / "runs/tiny/demo/singer/run.json").exists()
    run()
    monkeypatch.setenv("TINY_ABSENT", "install the singer")
    run()


def test_what_failed_by_our_fault_is_tried_again_and_written_once(
    run: Callable[..., RunSummary], tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, block: Any) -> Any:
        raise RuntimeError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr("podeval.recording.Recording.require_sound", broken)
        for _ in range(2):
            loudness, trouble = run().metrics
            assert loudness.unscored_ours == 3
            assert loudness.reasons == {"measuring failed: RuntimeError: no luck": 3}
            assert not loudness.rankable
            assert trouble.scored == 3
        assert len(lines(tmp_path / "runs")) == 6
    loudness, _ = run().metrics
    assert loudness.scored == 3
    assert len(lines(tmp_path / "runs")) == 9


def test_a_full_disk_loses_nothing_that_was_finished(
    run: Callable[..., RunSummary], counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, writes = os.fsync, itertools.count(1)

    def full(file: int) -> None:
        if next(writes) > 16:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(DiskFull, match=r"results.jsonl, because the disk is full.* Everything .* is kept"):
            run()
    kept = len(lines(tmp_path / "runs"))
    assert 0 < kept < 6
    measured = counted("measured")
    summary = run()
    assert all(row.scored == 3 for row in summary.metrics)
    assert counted("spoken") == 3
    assert counted("measured") < measured + 3
    assert len(lines(tmp_path / "runs")) == 6
