"""The command line with a Real-Pod in which every split has two items of two turns: minutes become seconds."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from podeval.benchmarks.benchmark import Benchmark
from podeval.benchmarks.item import Item

ITEMS, TURNS = 2, 2
_read_items = Benchmark.items


def read_some(benchmark: Benchmark, split: str) -> tuple[Item, ...]:
    pairs = [item for item in _read_items(benchmark, split) if item.voices == 2 and item.script]
    return tuple(
        item.model_copy(update={"script": replace(item.script, turns=item.script.turns[:TURNS])})
        for item in pairs[:ITEMS]
        if item.script is not None
    )


# Worker processes import this program's file under another name, and need the same.
Benchmark.items = read_some  # type: ignore[assignment, method-assign]

if __name__ == "__main__":
    from podeval.board import build
    from podeval.cli import main
    from podeval.runs import executor

    # Two short items are measured before a second process has imported what measures them.
    executor.count_workers = lambda profile: 1
    # The board of a short run leaves out the papers' figures, whose reading takes longer than all the rest of it.
    build.locate_hub_source = lambda name: Path(os.devnull)  # type: ignore[attr-defined]
    sys.argv[0] = "podeval"
    main()
