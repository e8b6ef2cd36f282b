"""Measure a run of many items in one folder: written, resumed, aggregated, added to the board, and shown.

    python studies/speed/store_size.py [--items 100000] [--no-sync]

The items are made for this purpose, in a folder of the benchmark real_pod. Their outputs are scripts, so no audio needs
to be made, and results are stored as in a measuring run. `--no-sync` omits the syncs to the disk, whose time depends on
the disk and not on podeval. The script prints the seconds, the size of the store and the memory of the process. The
small version in the tests checks whether the time per item grows with the number of items.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.runs.aggregate import summarise
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.run_folder import Output, RunFolder, RunPlan


class Clocked:
    """Records the seconds of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began


def items_of(count: int) -> tuple[Item, ...]:
    """Return items in 17 categories, like those of Real-Pod."""
    return tuple(
        Item(
            id=f"item{number:06}", topic=f"Topic {number}", category=f"Category {number % 17}", language="en", voices=2
        )
        for number in range(count)
    )


def measure(folder: Path, count: int) -> dict[str, float]:
    """Return the seconds of every step with this many items."""
    from podeval.board.build import build
    from podeval.board.runs_folder import RunsFolder
    from podeval.runs.executor import InProcess
    from podeval.runs.measure import measure as measured

    benchmark, items, clocked = benchmarks.get("real_pod"), items_of(count), Clocked()
    run = RunFolder(folder, "real_pod", "topics", "many")
    plan = RunPlan(
        benchmark="real_pod", split="topics", dataset="d@1", track="write", system="many", system_title="Many",
        system_kind="model", generation={}, seed=0,
    )  # fmt: skip
    run.begin(plan)
    run.write_items(items)
    wanted = {
        name: protocol
        for name, protocol in make_protocols(benchmark, plan, "embedded", CONDITIONS).items()
        if name in catalogue.NAMES
    }
    script = ({"speaker": "A", "text": "Good evening and welcome."}, {"speaker": "B", "text": "Good evening."})
    with clocked.step("outputs written"):
        for item in items:
            run.write_output(Output(item=item.id, script=script))
    with clocked.step(f"results of {len(wanted)} metrics written"):
        for number, item in enumerate(items):
            value = (number * 37 % 101) / 101
            run.append_results("embedded", item.id, [
                (protocol, Score({key.name: value for key in catalogue.get(name).keys}))
                for name, protocol in wanted.items()
            ])  # fmt: skip
    with clocked.step("resumed with nothing to do"):
        measured(run, "embedded", benchmark, items, InProcess(), lambda done: None)
    with clocked.step("aggregated"):
        run.write_summary(summarise(run, "embedded", benchmark, items))
    with clocked.step("board built"):
        build(folder)
    shown = RunsFolder(folder)
    with clocked.step("board and items read"):
        board, rows = shown.board(), shown.items()
    assert len(board[board["system"] == "many"]) > len(wanted)
    assert len(rows) == count * len(wanted)
    with clocked.step("system's page, first"):
        page(shown, items[0].id)
    with clocked.step("system's page, another item"):
        page(shown, items[-1].id)
    return clocked.seconds


def page(shown: Any, item: str) -> None:
    """Read what a system's page requests from the folder for one item."""
    from podeval.board import item_results
    from podeval.board.playable import list_parts

    rows, where = shown.items(), "real_pod/topics/embedded"
    found, path = item_results.find_item_results(rows, "many", where, item)
    assert found
    assert list_parts(shown.path, path)[0].turns


def without_sync() -> None:
    """From now on, do not wait for the disk."""
    os.fsync = lambda descriptor: None  # type: ignore[assignment]


def main() -> None:
    """Measure the steps, and print the figures."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--items", type=int, default=100_000)
    asked.add_argument("--no-sync", action="store_true")
    asked.add_argument("--folder", type=Path)
    given = asked.parse_args()
    if given.no_sync:
        without_sync()
    print(f"{given.items:,} items; the machine's load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for name, seconds in measure(Path(folder), given.items).items():
            print(f"  {name:36} {seconds:8.1f} s  {1e6 * seconds / given.items:8.1f} µs an item")
            sys.stdout.flush()
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
        lines = sum(path.stat().st_size for path in Path(folder).rglob("*.jsonl"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  results.jsonl {lines / 1e6:.0f} MB, tables {size / 1e6:.0f} MB, memory at most {memory:.0f} MB")


if __name__ == "__main__":
    main()
