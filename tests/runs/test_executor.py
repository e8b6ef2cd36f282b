"""A worker process that dies takes only what it and its siblings were at."""

import importlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from podeval.runs import executor
from podeval.runs.executor import InProcess, MemoryRanOut, Workers

Task = tuple[Path, str, float]


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("mortal")


def begun(folder: Path) -> list[tuple[str, str]]:
    """Processes and what they began."""
    return [(line.split()[0], line.split()[1]) for line in (folder / "begun").read_text("utf-8").splitlines()]


def test_only_what_was_under_way_when_a_process_died_is_done_again_alone(mortal: ModuleType, tmp_path: Path) -> None:
    names = ["first", "deadly", *map(str, range(10))]
    with Workers(2) as workers:
        found = list(workers.map(mortal.note, [(tmp_path, name, 0.05) for name in names]))
    assert sorted(task[1] for task, _ in found) == sorted(names)
    assert all(pid for _, pid in found)
    again = [name for name, times in Counter(name for _, name in begun(tmp_path)).items() if times > 1]
    assert "deadly" in again
    assert len(again) <= 2
    assert len({pid for pid, _ in begun(tmp_path)}) <= 6, "two of the pool, two of the next, two alone"


def test_no_more_tasks_are_taken_than_there_are_processes_and_one(mortal: ModuleType, tmp_path: Path) -> None:
    taken = []

    def tasks() -> Iterator[Task]:
        for number in range(8):
            taken.append(number)
            yield tmp_path, str(number), 0.0

    with Workers(2) as workers:
        finished = 0
        for _ in workers.map(mortal.note, tasks()):
            finished += 1
            assert len(taken) <= finished + 2
    assert finished == 8


def test_where_memory_has_room_for_fewer_workers_some_are_left_out_and_nothing_is_lost(
    mortal: ModuleType, tmp_path: Path
) -> None:
    tasks = [(tmp_path, str(number), 1) for number in range(6)]
    with Workers(3) as workers:
        found = list(workers.map(mortal.fit_in, tasks))
    assert sorted(task[1] for task, _ in found) == [str(number) for number in range(6)]
    assert all(pid for _, pid in found)


def test_what_fits_into_no_memory_is_told_as_such_and_the_rest_is_done(mortal: ModuleType, tmp_path: Path) -> None:
    with Workers(2) as workers:
        found = dict(workers.map(mortal.fit_in, [(tmp_path, "large", 0), (tmp_path, "small", 2)]))
    assert found[tmp_path, "large", 0] is None
    assert found[tmp_path, "small", 2]


def test_one_process_frees_its_memory_and_tries_once_more() -> None:
    tries = Counter[str]()

    def work(name: str) -> str:
        tries[name] += 1
        if name == "never" or tries[name] == 1:
            raise MemoryRanOut(name)
        return name

    assert list(InProcess().map(work, ["later", "never"])) == [("later", "later"), ("never", None)]
    assert tries == {"later": 2, "never": 2}


@pytest.mark.parametrize(("room", "workers"), [(None, 8), (3, 3), (30, 8)])
def test_there_are_no_more_workers_than_cores_or_than_the_gpu_has_room_for(
    monkeypatch: pytest.MonkeyPatch, room: int | None, workers: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setattr(executor, "count_copies", lambda gigabytes: room)
    assert executor.count_workers("reference,transcriber=openai/whisper-base") == workers


def test_a_pool_that_one_map_began_anew_is_not_stopped_by_another_that_hears_late_of_the_death(
    mortal: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "measured").mkdir()
    names = [*map(str, range(4)), "deadly", *map(str, range(4, 10))]
    with Workers(2) as workers:
        made = workers.map(mortal.note, [(tmp_path / "made", str(number), 0.1) for number in range(len(names))])
        given = ((tmp_path / "measured", names[int(task[1])], 0.1) for task, _ in made)
        found = list(workers.map(mortal.note, given))
    assert sorted(task[1] for task, _ in found) == sorted(names)
    assert all(pid for _, pid in found)
    pids = {pid for folder in ("made", "measured") for pid, _ in begun(tmp_path / folder)}
    assert len(pids) <= 8, "two of the pool, two of the next, and each of the four under way alone"
