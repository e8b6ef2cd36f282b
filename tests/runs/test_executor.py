"""A worker process that dies takes only what it and its siblings were at."""

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from podeval.runs.executor import Workers

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
