"""Measure the cost and the gain of distributing work: the same items in this process, in workers, and over a Ray
cluster on this machine.

    python studies/speed/spreading.py [--workers 2] [--clips 8] [--seconds 30]

Three kinds of tasks are run in turn: tasks that do nothing (the cost of handing one over), tasks that only read a file
(the cost of transferring files), and clips that are measured for loudness, DNSMOS and SRMR with an empty cache. The
figures are wall-clock time, without starting processes and loading models, because every executor has done each kind of
task once before.
"""

import argparse
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from podeval.measuring.compute import score_item
from podeval.metrics import catalogue
from podeval.recording.recording import Recording
from podeval.runs.executor import InProcess, Workers
from podeval.runs.ray_executor import Ray

METRICS = ("loudness", "dnsmos", "reverb_consistency")


@dataclass(frozen=True)
class Clip:
    """A file that is read or measured."""

    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    def moved(self, folders: Mapping[Path, Path]) -> "Clip":
        return replace(self, path=folders[self.path.parent] / self.path.name)


def nothing(task: int) -> int:
    """Do nothing."""
    return task


def read(clip: Clip) -> str:
    """Return a hash of the file's content."""
    return hashlib.sha256(clip.path.read_bytes()).hexdigest()


def measure(clip: Clip) -> dict[str, Any]:
    """Compute a few metrics that need only samples."""
    recording = Recording.open(clip.path)
    given = {"recording": recording}
    return {name: score_item(catalogue.get(name), given, {}).to_json() for name in METRICS}


def clips(folder: Path, count: int, seconds: float) -> list[Clip]:
    """Write clips of noise that swells and fades like syllables, with different noise in each."""
    rate, found = 24_000, []
    time_line = np.arange(int(rate * seconds)) / rate
    for number in range(count):
        noise = np.random.default_rng(number).normal(0, 0.1, time_line.size)
        path = folder / f"{number}.flac"
        soundfile.write(path, noise * np.clip(np.sin(2 * np.pi * 2 * time_line), 0, 1), rate, subtype="PCM_24")
        found.append(Clip(path))
    return found


def timed(run: Callable[..., Iterator[Any]], work: Callable[[Any], Any], tasks: Iterable[Any]) -> tuple[float, Any]:
    """Return the seconds, and the results in the order of the tasks."""
    began = time.perf_counter()
    found = dict(run(work, tasks))
    return time.perf_counter() - began, [found[task] for task in tasks]


def main() -> None:
    """Measure, and print a table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--workers", type=int, default=2)
    asked.add_argument("--clips", type=int, default=8)
    asked.add_argument("--seconds", type=float, default=30.0)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place, ExitStack() as held:
        cache = Path(place) / "cache"
        os.environ["PODEVAL_CACHE"] = str(cache)
        files = clips(Path(place), given.clips, given.seconds)
        size = sum(clip.path.stat().st_size for clip in files)
        executors = {
            "one process": InProcess(),
            f"{given.workers} workers": held.enter_context(Workers(given.workers)),
            f"ray, {given.workers} processes": held.enter_context(Ray("local", workers=given.workers)),
        }
        print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
        print("| where | a task of nothing, ms | reading files, MB/s | real time of clips measured in a second |")
        print("| --- | --- | --- | --- |")
        before = None
        for name, executor in executors.items():
            for work, tasks in ((nothing, range(4)), (read, files[:4]), (measure, files[:4])):
                timed(executor.map, work, tasks)
            shutil.rmtree(cache)
            empty, _ = timed(executor.map, nothing, range(200))
            reading, _ = timed(executor.map, read, files)
            measuring, found = timed(executor.map, measure, files)
            assert before in (None, found), "the same values wherever they are measured"
            before = found
            audio = given.clips * given.seconds
            print(f"| {name} | {1000 * empty / 200:.2f} | {size / 1e6 / reading:.0f} | {audio / measuring:.1f} |")


if __name__ == "__main__":
    main()
