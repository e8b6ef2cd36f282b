"""Time programs in turn in one process, so that other work on the machine affects all of them equally.

If PODEVAL_BENCH names a file, the results are also stored in it, for the table of `table.py`.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def by_turns(
    what: str, programs: Mapping[str, Callable[[], Any]], turns: int, wanted: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Run each program in every turn; print its seconds, and how many times as long as the first the others take.

    Args:
        what: the name of the measurement.
        programs: the programs by name, ours first; all must use the same number of threads.
        turns: number of turns, after one that warms up.
        wanted: minimum factor by which another program should take longer than ours, by its name.

    Returns:
        The last result of each program.
    """
    wall: dict[str, list[float]] = {name: [] for name in programs}
    processor: dict[str, list[float]] = {name: [] for name in programs}
    answers = {}
    for turn in range(turns + 1):
        for name, program in programs.items():
            start, busy = time.perf_counter(), _processor()
            answers[name] = program()
            if turn:
                wall[name].append(time.perf_counter() - start)
                processor[name].append(_processor() - busy)
    ours = next(iter(programs))
    for name in programs:
        ratios = [other / own for other, own in zip(processor[name], processor[ours], strict=True)]
        compared = "" if name == ours else f", {statistics.median(ratios):.1f} times ours"
        times = f"{statistics.median(wall[name]):7.2f} s wall, {statistics.median(processor[name]):7.2f} s processor"
        print(f"{what}, {name}: {times}{compared}", flush=True)
        if name != ours:
            seconds = [statistics.median(processor[one]) for one in (ours, name)]
            keep(what, name, *seconds, statistics.median(ratios), (wanted or {}).get(name), turns)
    return answers


def keep(what: str, peer: str, ours: float, theirs: float, times: float, wanted: float | None, turns: int = 1) -> None:
    """Store a line for the table: processor seconds of both sides, their ratio, the target ratio, and the load."""
    if path := os.environ.get("PODEVAL_BENCH"):
        line = {"what": what, "peer": peer, "ours": ours, "theirs": theirs, "times": times, "wanted": wanted}
        line |= {"turns": turns, "load": os.getloadavg()[0]}
        with Path(path).open("a", encoding="utf-8") as found:
            found.write(json.dumps(line) + "\n")


def _processor() -> float:
    """Return the processor seconds of this process and of its finished children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
