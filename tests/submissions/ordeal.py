"""Workers that are killed at random moments while they work, and what must be true when all is done."""

import json
import multiprocessing
import random
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass
class Outcome:
    """How many kills met a worker with a claim, and how long everything took."""

    kills: int
    seconds: float
    attempts: int


def undergo(
    tiny: ModuleType,
    path: str,
    folder: Path,
    *,
    kills: int,
    submissions: int,
    workers: int,
    seed: int,
    lease: float,
    item_seconds: float,
    between: tuple[float, float],
) -> Outcome:
    """Have killed workers do the submissions, and check everything about the result."""
    from podeval.store.database import Database
    from podeval.submissions.queue import Queue

    tiny.settle_in()
    database = Database(path)
    queue = Queue(database)
    names = [f"system_{number}" for number in range(submissions)]
    for name in names:
        (folder / "models" / name).mkdir(parents=True)
        (folder / "models" / name / "behaviour.json").write_text(json.dumps({"seconds": item_seconds}))
        tiny.enqueue(queue, name, owner=f"owner of {name}")
    database.engine.dispose()
    began, dice, killed = time.monotonic(), random.Random(seed), 0
    context = multiprocessing.get_context("fork")
    running: list[Any] = []
    while True:
        running = [process for process in running if process.is_alive()]
        open_ = queue.all(states=("queued", "running", "measured"))
        if not open_:
            break
        database.engine.dispose()
        while len(running) < workers:
            process = context.Process(target=tiny.work, args=(path, folder, lease))
            process.start()
            running.append(process)
        time.sleep(dice.uniform(*between))
        at_work = _holding(queue, running)
        if killed < kills and at_work:
            victim = dice.choice(at_work)
            victim.kill()
            victim.join()
            killed += 1
        assert time.monotonic() - began < 60 * 30, "it takes too long"
    for process in running:
        process.join(60)
    _check(queue, folder, names, tiny.ITEMS)
    attempts = sum(row.attempt for row in queue.all())
    database.close()
    return Outcome(killed, time.monotonic() - began, attempts)


def _holding(queue: Any, running: list[Any]) -> list[Any]:
    """The workers that hold a claim: there is something to lose if they die."""
    holders = {lease.worker.rpartition(":")[2] for lease in queue.leases()}
    return [process for process in running if process.is_alive() and str(process.pid) in holders]


def _check(queue: Any, folder: Path, names: list[str], items: tuple[str, ...]) -> None:
    """Every item once in the result, nothing lost, states and history consistent."""
    assert {row.system: row.state for row in queue.all()} == dict.fromkeys(names, "published")
    assert queue.leases() == []
    for row in queue.all():
        history = queue.history(row.id)
        assert [entry.step for entry in history] == list(range(1, len(history) + 1))
        assert [entry.before for entry in history] == ["", *(entry.after for entry in history[:-1])]
        attempts = [entry.attempt for entry in history if entry.after == "running"]
        assert attempts == list(range(1, row.attempt + 1)), "each attempt began once, in order"
        assert row.items_done <= row.items_total == len(items)
        run = folder / "board/ten/demo" / row.system
        lines = [json.loads(line) for line in (run / "embedded/results.jsonl").read_text().splitlines()]
        assert sorted(line["item"] for line in lines) == sorted(items), "measured exactly once"
        outputs = {path.stem for path in (run / "outputs").glob("*.json")}
        assert outputs == set(items) == {path.stem for path in (run / "outputs").glob("*.flac")}
        assert all(json.loads((run / f"outputs/{item}.json").read_text())["failed"] is None for item in items)
        summary = json.loads((run / "embedded/summary.json").read_text())
        assert [(row["scored"], row["unscored_system"], row["unscored_ours"]) for row in summary["metrics"]] == [
            (len(items), 0, 0)
        ]
    means = {
        json.loads((folder / f"board/ten/demo/{name}/embedded/summary.json").read_text())["metrics"][0]["keys"][
            "level"
        ]["mean"]
        for name in names
    }
    assert len(means) == 1, "all models are the same, so all results must be"
