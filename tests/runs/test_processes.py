"""Worker processes may die, the main process may be killed or stopped, the disk may be full: through the command."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.runs.run import RunRequest, run_system
from tests.fakes.waiting import wait_until

Counted = Callable[[str], int]
Command = Callable[..., "subprocess.Popen[str]"]


def finish(process: "subprocess.Popen[str]", code: int) -> tuple[str, str]:
    """Wait until a command ends, with a code and without a traceback; what it printed, and its errors."""
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in out + err, err
    assert process.returncode == code, err
    return out, err


def summary(runs: Path) -> dict[str, Any]:
    found = json.loads((runs / "tiny/demo/singer/embedded/summary.json").read_text())
    return {row["metric"]: row for row in found["metrics"]}


def run_again(tiny: ModuleType, runs: Path) -> None:
    """What the same command does, in this process: to start another and its workers takes seconds."""
    run_system(tiny.Singer(), "The Singer", RunRequest(tiny.BENCHMARK, "demo", "voice", runs))


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in tasks.read_text().split()] if tasks.exists() else []


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.long
def test_an_item_whose_worker_dies_once_is_measured_alone(command: Command, counted: Counted, tmp_path: Path) -> None:
    out, _ = finish(command(tmp_path / "runs", "--workers", "2", TINY_KILL="two:once"), 0)
    assert "The Singer" in out
    assert {name: row["scored"] for name, row in summary(tmp_path / "runs").items()} == {"loudness": 3, "trouble": 3}


def test_an_item_that_kills_every_worker_is_unscored_and_harms_no_other(
    command: Command, counted: Counted, tiny: ModuleType, tmp_path: Path
) -> None:
    _, err = finish(command(tmp_path / "runs", "--workers", "1", TINY_KILL="two:always"), 1)
    reason = (
        "the measuring process died twice on this item, or had too little memory; use --workers 1 to give the "
        "process all the memory"
    )
    assert f"The Singer: every metric unscored on 1 of 3 items: {reason}" in err
    for row in summary(tmp_path / "runs").values():
        assert (row["scored"], row["unscored_ours"], row["reasons"]) == (2, 1, {reason: 1})
    run_again(tiny, tmp_path / "runs")
    assert all(row["scored"] == 3 for row in summary(tmp_path / "runs").values())
    assert counted("spoken") == 3


@pytest.mark.long
def test_workers_go_with_a_main_process_that_was_killed_and_the_command_goes_on(
    command: Command, counted: Counted, tmp_path: Path
) -> None:
    process = command(tmp_path / "runs", "--workers", "2", TINY_SLOW="60")
    wait_until(lambda: counted("measured") >= 2)
    workers = children(process.pid)
    assert len(workers) >= 2
    process.kill()
    process.wait()
    wait_until(lambda: not any(alive(pid) for pid in workers))
    finish(command(tmp_path / "runs", "--workers", "1"), 0)
    assert counted("spoken") == 3


@pytest.mark.long
def test_stopped_by_a_person_it_says_one_sentence(command: Command, counted: Counted, tmp_path: Path) -> None:
    process = command(tmp_path / "runs", "--workers", "2", TINY_SLOW="60")
    wait_until(lambda: counted("measured") >= 2)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, err = finish(process, 130)
    assert "podeval: stopped; finished work is kept, and the same command resumes the run" in err
    assert time.monotonic() - began < 50, "before what is measured would end"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "podeval-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk can only be mounted by root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
def test_on_a_full_disk_the_command_says_so_and_completes_once_there_is_space(
    command: Command, counted: Counted, tiny: ModuleType, small_disk: Path
) -> None:
    out, err = finish(command(small_disk, "--workers", "1"), 2)
    assert "podeval: the disk is full" in err
    assert "free some space and run the same command again" in err
    assert out == ""
    spoken = counted("spoken")
    assert spoken >= 1
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    run_again(tiny, small_disk)
    assert all(row["scored"] == 3 for row in summary(small_disk).values())
    assert counted("spoken") <= 4, "only the item that did not fit is spoken again"
