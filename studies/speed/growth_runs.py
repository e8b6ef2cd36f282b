"""Runs of thousands of items and boards of hundreds of runs for `growth.py`: from files to the board and the report.

The items are made for this purpose, in the split of Real-Pod that only measures loudness; their outputs are clips of 9
s.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from growth_material import read_dialogues, write_clip

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.board.build import build
from podeval.board.exports.report_page import render_reports
from podeval.board.report import report_runs
from podeval.files import append_lines, write_json
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.runs.aggregate import summarise
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.own_system import OwnSystem, run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import SCHEMA, RunFolder, RunPlan
from podeval.systems.adapters.outputs import OwnOutputs

SPLIT, NAME = "spontaneous", "many_items"


class ManyItems(Benchmark):
    """Real-Pod with any number of items."""

    def items(self, split: str) -> tuple[Item, ...]:
        """Return the items that `prepare_run` made, whatever the split."""
        return _ITEMS


_ITEMS: tuple[Item, ...] = ()


def prepare_run(count: int, folder: Path, material: Path) -> Callable[[], dict[str, Any]]:
    """Write the clips; return a function that makes their run, resumes it, builds the board and writes the report."""
    global _ITEMS
    script = read_dialogues(material)[0].script
    _ITEMS = tuple(
        Item(
            id=f"item{n:06}", topic=f"Topic {n}", category=f"Category {n % 17}", language="en", voices=2, script=script
        )
        for n in range(count)
    )
    clips = folder / "clips"
    clips.mkdir()
    for number, item in enumerate(_ITEMS):
        write_clip(material, number, clips / f"{item.id}.wav")
    benchmark = ManyItems.model_construct(**dict(benchmarks.get("real_pod")))
    request = RunRequest(benchmark, SPLIT, "voice", folder / "runs")
    system = OwnSystem(OwnOutputs(clips), NAME, "Many items", supplied=True)
    return lambda: _run(system, request)


def _run(system: OwnSystem, request: RunRequest) -> dict[str, Any]:
    """Run, resume with nothing to do, build the board and write the report; return the processor seconds of each
    step.
    """
    seconds, start = {}, time.process_time()

    def clock(step: str) -> None:
        nonlocal start
        seconds[step] = round(time.process_time() - start, 2)
        start = time.process_time()

    summary = run_own_system(system, request)
    clock("run")
    again = run_own_system(system, request)
    clock("resumed")
    assert [row.scored for row in summary.metrics] == [row.scored for row in again.metrics]
    assert summary.metrics[0].scored == len(_ITEMS), summary.metrics[0]
    build(request.runs)
    clock("board")
    path = request.runs / request.benchmark.name / request.split / system.name
    page = render_reports(report_runs([path], None), "en")
    clock("report")
    return {"steps": seconds, "report_bytes": len(page.encode())}


def prepare_board(count: int, folder: Path) -> Callable[[], None]:
    """Write this many systems' runs of Real-Pod's 51 topics, with loudness only; return a function that builds their
    board.
    """
    benchmark = benchmarks.get("real_pod")
    items = benchmark.items(SPLIT)
    dice = np.random.default_rng(0)
    for number in range(count):
        run = RunFolder(folder / "runs", benchmark.name, SPLIT, f"system_{number:04}")
        run.begin(
            RunPlan(
                benchmark=benchmark.name,
                split=SPLIT,
                dataset="made@for-this",
                track="voice",
                system=f"system_{number:04}",
                system_title=f"System {number}",
                system_kind="model",
                generation={},
                seed=0,
            )
        )
        run.write_items(items)
        (protocol,) = make_protocols(benchmark, run.plan(), "embedded", CONDITIONS).values()
        keys = [key.name for key in catalogue.get(protocol.metric).keys]
        values = number / count + dice.normal(0, 0.3, (len(items), len(keys)))
        write_json(run.path / "embedded" / "protocols.json", {protocol.id: protocol.to_json()})
        lines = [
            {
                "schema": SCHEMA,
                "item": item.id,
                "protocol": protocol.id,
                "result": Score(dict(zip(keys, map(float, row), strict=True))).to_json(),
            }
            for item, row in zip(items, values, strict=True)
        ]
        append_lines(run.path / "embedded" / "results.jsonl", lines)
        run.write_summary(summarise(run, "embedded", benchmark, items))
    return lambda: build(folder / "runs")
