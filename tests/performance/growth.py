"""How time and memory grow with the work: a million votes, 1,000 systems on a board, hours of clips.

    python tests/performance/growth.py [--works votes,systems,clips] [--largest 1]

Each size runs in a process of its own, so that its memory is its own: the highest resident memory, and the processor
seconds of it and its children, after what is needed was imported. The slope is the exponent by which seconds grow from
one size to the next (1: in proportion). Nothing is extrapolated: a size is run or not in the table. `--largest` is the
share of the largest sizes to run, for a quick look.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "leaderboard")]

SIZES = {"votes": (10_000, 100_000, 1_000_000), "systems": (100, 300, 1_000), "clips": (100, 1_000, 10_000)}
"""By work: votes to rate, systems on a board, clips of 9 s to measure for loudness."""


def rate_votes(count: int) -> Callable[[], object]:
    """Rate the votes of 5,000 voters on 30 systems, with intervals."""
    from ratings import votes

    from podeval.stats.battles import Battles
    from podeval.stats.bradley_terry import rate

    columns = votes(count, 30, 5_000)
    rate(Battles.of(["a"], ["b"], ["tie"]))
    return lambda: rate(Battles.of(**columns))


def read_board(count: int) -> Callable[[], object]:
    """Read the tables of a board of so many systems, 40 figures, every breakdown of LFS-Bench."""
    from large_board import write_large_board

    from podeval.leaderboard.runs_folder import RunsFolder

    runs = write_large_board(Path(tempfile.mkdtemp(dir=os.environ["GROWTH_FOLDER"])) / "runs", count, 40)
    return lambda: RunsFolder(runs).index()


def measure_clips(count: int) -> Callable[[], object]:
    """Measure so many clips of 9 s for loudness, one after the other in one process."""
    import numpy as np

    from podeval.analysis import Recording
    from podeval.metrics import catalogue

    noise = np.random.default_rng(0).normal(0, 0.05, (9 * 16_000, 1)).astype(np.float32)
    metric = catalogue.get("loudness")
    return lambda: [
        metric({"recording": Recording.from_samples(noise * (1 + n / count), 16_000)}, {}) for n in range(count)
    ]


WORKS = {"votes": rate_votes, "systems": read_board, "clips": measure_clips}


def processor() -> float:
    """Processor seconds of this process and of its children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run_one(work: str, count: int) -> None:
    """Do one size of one work and print what it took as JSON."""
    prepared = WORKS[work](count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, busy = time.perf_counter(), processor()
    prepared()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall = time.perf_counter() - start
    print(json.dumps({"wall": wall, "busy": processor() - busy, "memory": most / 2**20, "before": before / 2**20}))


def main() -> None:
    """Run all sizes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--largest", type=float, default=1.0)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one[0], int(options.one[1]))
        return
    print("| work | size | wall s | processor s | GB before | GB at most | slope |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for work in options.works.split(","):
        last: tuple[int, float] | None = None
        for size in SIZES[work]:
            count = max(1, round(size * options.largest))
            with tempfile.TemporaryDirectory(prefix="podeval-growth-") as folder:
                environment = {**os.environ, "GROWTH_FOLDER": folder, "PODEVAL_CACHE": folder}
                command = [sys.executable, __file__, "--one", work, str(count)]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            took = json.loads(done.stdout.splitlines()[-1])
            slope = f"{math.log(took['busy'] / last[1]) / math.log(count / last[0]):.2f}" if last else ""
            figures = f"{took['wall']:.2f} | {took['busy']:.2f} | {took['before']:.2f} | {took['memory']:.2f}"
            print(f"| {work} | {count:,} | {figures} | {slope} |", flush=True)
            last = count, took["busy"]
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
