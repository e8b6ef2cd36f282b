"""`accelerate launch podeval run`: two processes speak one run's items, and leave what one process leaves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.errors import BadInput, ModelMissing
from podeval.runs.multi_gpu import ProcessGroup, Shares, group, speak_share
from podeval.runs.run import RunRequest, run_system
from podeval.runs.run_folder import RunFolder
from tests.fakes.waiting import wait_until
from tests.runs.test_ray import records

PROGRAM = Path(__file__).parents[1] / "fakes" / "tiny_run.py"
Launch = Callable[..., "subprocess.Popen[str]"]
Command = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def launch(command: Command, tmp_path: Path) -> Iterator[Launch]:
    """Start the same command as two processes, without a GPU, by the program that people use."""
    pytest.importorskip("accelerate")
    started: list[subprocess.Popen[str]] = []

    def start(out: Path, **environment: str) -> "subprocess.Popen[str]":
        settings = {"TINY_SPOKEN": str(tmp_path / "spoken"), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch"),
                *("--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--main_process_port", "0"),
                *("--mixed_precision", "no", "--dynamo_backend", "no", str(PROGRAM)),
                *("run", str(tmp_path / "singer.yaml"), "--benchmark", "tiny", "--workers", "1", "--out", str(out)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | settings | {"COLUMNS": "200"} | environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def spoken(folder: Path) -> dict[str, list[str]]:
    """What each process has spoken."""
    found: dict[str, list[str]] = {}
    path = folder / "spoken"
    for line in path.read_text().splitlines() if path.exists() else ():
        process, _, words = line.partition(" ")
        found.setdefault(process, []).append(words)
    return found


@pytest.mark.long
def test_two_processes_share_the_items_and_leave_what_one_leaves(
    launch: Launch, command: Command, tiny: ModuleType, tmp_path: Path
) -> None:
    together = launch(tmp_path / "together")
    out, err = together.communicate(timeout=200)
    assert together.returncode == 0, err
    assert sorted(map(len, spoken(tmp_path).values())) == [1, 2]
    assert out.count("tiny/demo · Audio · loudness") == 1, "the first process alone shows the board"
    run_system(tiny.Singer(), "The Singer", RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path / "alone"))
    assert records(tmp_path / "together") == records(tmp_path / "alone")


@pytest.mark.long
def test_when_one_process_is_killed_the_rest_end_and_the_command_goes_on_with_any_number(
    launch: Launch, command: Command, tmp_path: Path
) -> None:
    process = launch(tmp_path / "runs", TINY_SPEAKING="1.5")
    wait_until(lambda: any(len(said) == 2 for said in spoken(tmp_path).values()), 150)
    first = next(pid for pid, said in spoken(tmp_path).items() if len(said) == 2)
    os.kill(int(first), signal.SIGKILL)
    process.communicate(timeout=100)
    assert process.returncode != 0
    before = sum(map(len, spoken(tmp_path).values()))
    alone = command(tmp_path / "runs", "--workers", "1")
    assert alone.wait(120) == 0
    assert before <= sum(map(len, spoken(tmp_path).values())) <= before + 2, "what was there is not spoken again"
    summary = json.loads((tmp_path / "runs/tiny/demo/singer/embedded/summary.json").read_text())
    assert [(row["metric"], row["scored"]) for row in summary["metrics"]] == [("loudness", 3), ("trouble", 3)]


def here() -> None:
    """Processes that meet without waiting: in tests they come one after the other."""


def test_the_first_process_measures_what_the_others_spoke_as_it_comes(
    tiny: ModuleType, counted: Callable[[str], int], tmp_path: Path
) -> None:
    request = RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path / "runs")
    first, second = ProcessGroup(0, 2, here), ProcessGroup(1, 2, here)
    items = tiny.BENCHMARK.items("demo")
    assert [item.id for item in first.share(items)] == ["one", "three"]
    folder = RunFolder(tmp_path / "runs", "tiny", "demo", "singer")

    class WithAnother(Shares):
        def speak(self, *asked: Any) -> Any:
            for number, item in enumerate(super().speak(*asked)):
                yield item
                if number == 1:
                    assert folder.output("two") is None
                    speak_share(tiny.Singer(), request, second)

    spread = replace(request, speaking=WithAnother(group=first))
    summary = run_system(tiny.Singer(), "The Singer", spread)
    assert {row.metric: row.scored for row in summary.metrics} == {"loudness": 3, "trouble": 3}
    assert counted("spoken") == 3


def test_what_processes_that_died_have_spoken_is_kept_by_one_alone(
    tiny: ModuleType, counted: Callable[[str], int], tmp_path: Path
) -> None:
    request = RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path / "runs")

    class Killed(BaseException):
        """The first process ends here."""

    class Dying(Shares):
        def speak(self, *asked: Any) -> Any:
            yield next(super().speak(*asked))
            speak_share(tiny.Singer(), request, ProcessGroup(1, 2, here))
            raise Killed

    with pytest.raises(Killed):
        run_system(tiny.Singer(), "The Singer", replace(request, speaking=Dying(group=ProcessGroup(0, 2, here))))
    assert counted("spoken") == 2
    summary = run_system(tiny.Singer(), "The Singer", request)
    assert {row.metric: row.scored for row in summary.metrics} == {"loudness": 3, "trouble": 3}
    assert counted("spoken") == 3


def test_a_process_that_does_not_see_the_first_ones_folder_says_so(tiny: ModuleType, tmp_path: Path) -> None:
    request = RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=r"process 1 cannot see .*; all processes .* need the same --out, on a disk"):
        speak_share(tiny.Singer(), request, ProcessGroup(1, 2, here))
    assert not (tmp_path / "elsewhere").exists()


def test_a_process_alone_is_in_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert group() is None
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert group() is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ModelMissing, match="pip install accelerate"):
        group()
