"""Measure a set like LFS-Bench's in the way of `podeval run`: many clips of a minute and a half, with worker processes.

    python studies/speed/clips.py [--clips 1000] [--seconds 90] [--metrics loudness,…] [--workers 2]

eSpeak NG reads the scripts of Real-Pod; each clip begins with another turn, and no two clips are alike. Every embedded
metric that needs no reference voice (or the given metrics) is computed for all clips in the folder of a real run with
an empty cache, and the results are aggregated. The results are then removed, and everything is computed again from the
cache. Loading the models is part of the time. The script prints wall-clock and processor seconds (of the main process
and of the workers), the real-time factor, the maximum memory of each process, and the size of results and cache.
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Dimension, Item, MetricUse
from podeval.metrics import catalogue
from podeval.runs.aggregate import summarise
from podeval.runs.executor import Workers
from podeval.runs.measure import measure
from podeval.runs.run import Voicing
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.systems.espeak_ng import EspeakNg
from podeval.text.script import Script

WORDS_A_SECOND = 3.1
"""Number of words per second that eSpeak NG speaks at its own pace."""


def items(clips: int, seconds: float) -> tuple[Item, ...]:
    """Return scripts for this many clips of about this many seconds, in the two voices of a podcast."""
    turns = [
        {"speaker": f"Speaker{1 + number % 2}", "text": turn.text}
        for item in benchmarks.get("real_pod").items("topics")
        if item.script is not None and item.language == "en"
        for number, turn in enumerate(item.script.turns)
    ]
    found, at = [], 0
    for number in range(clips):
        chosen: list[dict[str, str]] = []
        while sum(len(turn["text"].split()) for turn in chosen) < seconds * WORDS_A_SECOND:
            chosen.append(turns[at % len(turns)])
            at += 1
        # Begin each round with another turn, so that no clip occurs twice.
        at += at // len(turns) % 7
        script = Script.parse(chosen)
        found.append(Item(id=f"clip-{number:04}", topic="", language="en", voices=2, script=script))
    return tuple(found)


def asking(names: Sequence[str]) -> Benchmark:
    """Return LFS-Bench with these metrics or, by default, all that need only a clip and its script."""
    given = {"recording", "script", "reference_text"}
    known = [
        one
        for one in catalogue.load_all_metrics()
        if not one.asks and "recording" in one.inputs and set(one.inputs) <= given
    ]
    uses = tuple(MetricUse(name=one.name, keys=(one.keys[0].name,)) for one in known if one.name in names or not names)
    everything = Dimension(
        name="clips",
        title="Clips",
        description="What is asked for.",
        tracks=("voice",),
        metrics=uses,
        main=f"{uses[0].name}.{uses[0].keys[0]}",
        needs_accurate_speech=False,
    )
    return benchmarks.get("lfs_bench").model_copy(update={"dimensions": (everything,)})


def take(folder: RunFolder, benchmark: Benchmark, asked: tuple[Item, ...], workers: int) -> tuple[float, float, float]:
    """Measure and aggregate everything; return the wall-clock seconds, and the processor seconds of this process and of
    the workers.
    """

    def done(count: int) -> None:
        print(f"\r{count}/{len(asked)} clips", end="", file=sys.stderr, flush=True)

    own, theirs = time.process_time(), _seconds_of_children()
    began = time.perf_counter()
    with Workers(workers) as executor:
        measure(folder, "embedded", benchmark, asked, executor, done)
    summarise(folder, "embedded", benchmark, asked)
    took = time.perf_counter() - began
    print(file=sys.stderr)
    return took, time.process_time() - own, _seconds_of_children() - theirs


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main() -> None:
    """Measure twice, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clips", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--metrics", default="", help="by commas; all by default")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    benchmark = asking(options.metrics.split(",") if options.metrics else [])
    asked = items(options.clips, options.seconds)
    with tempfile.TemporaryDirectory() as place:
        # The workers inherit the variable, so all share one empty cache.
        os.environ["PODEVAL_CACHE"] = str(Path(place) / "cache")
        folder = RunFolder(Path(place), "lfs_bench", "test", "espeak_ng")
        system = EspeakNg()
        plan = {"benchmark": "lfs_bench", "split": "test", "dataset": "clips", "track": "voice", "seed": 0}
        voice = {"system": system.name, "system_title": system.name, "system_kind": system.kind}
        folder.begin(RunPlan(**plan, **voice, generation=system.generation))
        began = time.perf_counter()
        for _ in Voicing().speak(system, asked, folder, 0, lambda _: None):
            pass
        spoke = time.perf_counter() - began
        seconds = sum(output.duration or 0 for item in asked if (output := folder.output(item.id)))
        print(f"{len(asked)} clips of {seconds / len(asked):.1f} s on average, spoken in {spoke:.0f} s")
        print(
            ", ".join(use.name for use in benchmark.dimensions[0].metrics),
            f"; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        for name in ("empty cache", "over the cache"):
            wall, own, theirs = take(folder, benchmark, asked, options.workers)
            print(
                f"{name}: {wall:.0f} s, real-time factor {wall / seconds:.3f}, {3600 * len(asked) / wall:.0f} clips an "
                f"hour; processor {own:.1f} s here, {theirs:.0f} s in {options.workers} workers",
                flush=True,
            )
            if name == "empty cache":
                results, cache = (_size(path) / 1e6 for path in (folder.path / "embedded", Path(place) / "cache"))
                print(f"results {results:.1f} MB, cache {cache:.0f} MB")
                shutil.rmtree(folder.path / "embedded")
        here, workers = (
            resource.getrusage(who).ru_maxrss / 2**20 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        print(f"most memory: {here:.2f} GB here, {workers:.2f} GB in a worker")


if __name__ == "__main__":
    main()
