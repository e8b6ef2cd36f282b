"""Measure how time and memory grow with clips, hours in one file, items in a run, systems on a board, and votes.

    python studies/speed/growth.py [--works votes,systems] [--rows rows.jsonl] [--material FOLDER] [--largest 1]

The kinds of work are listed in `WORKS`. The sizes of clips are reached one after another in one process (the figures of
100 clips are those of the first 100 of 10,000); for other kinds of work, every size is run in a separate process.
Processor seconds are those of the process and its children after the necessary imports; memory is the highest resident
size. The slope is the exponent by which processor seconds grow from one size to the next (1 means proportional growth).
Nothing is extrapolated: a size that was not run is not in the table. With `--rows`, each row is written as soon as it
is known, and rows in the file are not run again; clips continue after the largest size in the file. `--largest` is the
share of the largest sizes to run, for a quick test. The script uses one thread unless PODEVAL_THREADS sets another
number.
"""

import os

os.environ.setdefault("PODEVAL_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", os.environ["PODEVAL_THREADS"])

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]


def rate_votes(count: int, folder: Path, material: Path) -> Callable[[], object]:
    """Rate the votes of 5,000 voters on 30 systems, with intervals."""
    from ratings import votes

    from podeval.stats.battles import Battles
    from podeval.stats.bradley_terry import rate

    columns = votes(count, 30, 5_000)
    rate(Battles.of(["a"], ["b"], ["tie"]))
    return lambda: rate(Battles.of(**columns))


def read_board(count: int, folder: Path, material: Path) -> Callable[[], object]:
    """Read the tables of a board with this many systems, 40 figures and every breakdown of LFS-Bench."""
    from podeval.board.runs_folder import RunsFolder
    from tests.board.large_board import write_large_board

    runs = write_large_board(folder / "runs", count, 40)
    return lambda: RunsFolder(runs).index()


def rank_systems(count: int, folder: Path, material: Path) -> Callable[[], object]:
    """Rank this many systems pair by pair on one figure over 100 items, as for every column when a board is built."""
    import numpy as np

    from podeval.stats.intervals import paired_bootstrap_ranks

    dice = np.random.default_rng(0)
    values = np.linspace(0, 1, count)[:, None] + dice.normal(0, 0.5, 100) + dice.normal(0, 0.5, (count, 100))
    scores = {f"s{n}": {f"item{i}": float(v) for i, v in enumerate(row)} for n, row in enumerate(values)}
    return lambda: len(paired_bootstrap_ranks(scores, higher_is_better=True))


def build_board(count: int, folder: Path, material: Path) -> Callable[[], object]:
    """Build the board of this many systems, each with 51 items: loudness over all items and over each slice.

    Without WER, nothing is ranked here; `rank_systems` measures the cost of ranking.
    """
    from growth_runs import prepare_board

    return prepare_board(count, folder)


def run_items(count: int, folder: Path, material: Path) -> Callable[[], object]:
    """Measure the loudness of this many clips of 9 s as `podeval run --outputs` does; resume, build the board, write
    the report.
    """
    from growth_runs import prepare_run

    return prepare_run(count, folder, material)


def measure_minutes(count: int, folder: Path, material: Path) -> Callable[[], object]:
    """Measure one file of this many minutes with every embedded metric."""
    from growth_material import write_hours

    path = folder / "hours.wav"
    text = write_hours(material, path, count)
    return lambda: measure_everything(path, {"reference_text": text}, material)


def measure_clips(metrics: Sequence[str], seconds: float = 9.0) -> Callable[[Path, Path], Callable[[int], object]]:
    """Return a function that prepares the measurement of clips from a file, one after another in one process, with the
    cache on disk.
    """

    def prepare(folder: Path, material: Path) -> Callable[[int], object]:
        from growth_material import write_clip

        def step(number: int) -> object:
            path = folder / "clip.wav"
            dialogue = write_clip(material, number, path, seconds)
            given = {"script": dialogue.script, "reference_text": dialogue.script.text}
            return measure_everything(path, given, material, metrics)

        return step

    return prepare


def measure_everything(
    path: Path, given: dict[str, Any], material: Path, metrics: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Measure a file with these metrics or every embedded one; return each metric's processor seconds, and whether it
    scored.
    """
    from podeval.metrics import catalogue
    from podeval.metrics.score import Score
    from podeval.recording import Recording

    known = [catalogue.get(name) for name in metrics] or [
        metric for metric in catalogue.load_all_metrics() if not metric.asks and "recording" in metric.inputs
    ]
    inputs: dict[str, Any] = {"recording": Recording.open(path), **given}
    if not metrics:
        inputs["reference_voices"] = find_voices(material)
    steps = {}
    for metric in known:
        if set(metric.inputs) <= inputs.keys():
            start = time.process_time()
            result = metric(inputs, {"speakers": 2} if metric.needs_speakers and "script" not in given else {})
            steps[metric.name] = {"busy": time.process_time() - start, "scored": isinstance(result, Score)}
    return {"steps": steps}


def find_voices(material: Path) -> Any:
    """Return the two voices that the clips should have, from the first dialogue."""
    from growth_material import RATE, read_dialogues

    from podeval.recording import Recording
    from podeval.recording.reference_voices import ReferenceVoices

    first = read_dialogues(material)[0]
    spans = {who: slice(round(start * RATE), round(end * RATE)) for who, start, end in first.turns}
    return ReferenceVoices({who: Recording.from_samples(first.samples[span], RATE) for who, span in spans.items()})


@dataclass(frozen=True)
class Work:
    """A kind of work: its title in the table, its sizes, and the function that prepares it."""

    title: str
    sizes: tuple[int, ...]
    prepare: Callable[[int, Path, Path], Callable[[], object]] | None = None
    one_after_the_other: Callable[[Path, Path], Callable[[int], object]] | None = None


WORKS = {
    "votes": Work("votes rated, with intervals", (10_000, 100_000, 1_000_000), rate_votes),
    "systems": Work("systems on a board, tables read", (100, 300, 1_000), read_board),
    "ranks": Work("systems ranked by one figure on 100 items", (100, 300, 1_000), rank_systems),
    "build": Work(
        "systems' runs of 51 items, loudness, built into a board, unranked", (30, 100, 300, 1_000), build_board
    ),
    "loudness": Work("clips of 9 s, loudness", (100, 1_000, 10_000), None, measure_clips(["loudness"])),
    "items": Work("items in a run, loudness", (100, 1_000, 10_000), run_items),
    "everything": Work("clips of 9 s, all embedded metrics", (30, 100, 300, 600, 1_000), None, measure_clips([])),
    # DNSMOS repeats a clip shorter than 9.01 s, like its reference, and would then score nine windows of it instead of
    # one.
    "dnsmos": Work(
        "clips of 9.02 s, loudness and DNSMOS",
        (100, 1_000, 3_000, 6_000, 10_000),
        None,
        measure_clips(["loudness", "dnsmos"], 9.02),
    ),
    "minutes": Work("minutes in one file, all embedded metrics", (20, 60, 180), measure_minutes),
}


def processor() -> float:
    """Return the processor seconds of this process and of its children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def memory() -> float:
    """Return the highest resident memory of this process so far in GB; the value of getrusage would include that of the
    parent.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024 / 1e9


def do_sizes(name: str, sizes: Sequence[int], material: Path) -> None:
    """Run sizes of a kind of work; print the cost of each as JSON once it is done."""
    work, folder = WORKS[name], Path(os.environ["PODEVAL_CACHE"])
    if work.prepare:
        prepared = work.prepare(sizes[0], folder, material)
        before, start, busy = memory(), time.perf_counter(), processor()
        told = prepared()
        print_row(name, sizes[0], start, busy, before, told if isinstance(told, dict) else {})
        return
    assert work.one_after_the_other
    step = work.one_after_the_other(folder, material)
    step(max(sizes))  # loads the models
    before, start, busy = memory(), time.perf_counter(), processor()
    # Work that an earlier process has done is not repeated, and its cost is added.
    done = json.loads(os.environ.get("GROWTH_DONE") or "{}")
    steps: dict[str, dict[str, float]] = done.get("steps", {})
    for number in range(done.get("size", 0), max(sizes)):
        told = step(number)
        for metric, took in told["steps"].items() if isinstance(told, dict) else ():
            whole = steps.setdefault(metric, {"busy": 0.0, "scored": 0})
            for what in whole:
                whole[what] = round(whole[what] + took[what], 3)
        if number + 1 in sizes:
            print_row(name, number + 1, start, busy, before, {"steps": steps}, done)


def print_row(
    name: str,
    size: int,
    start: float,
    busy: float,
    before: float,
    more: dict[str, Any],
    done: dict[str, Any] | None = None,
) -> None:
    """Print the cost of a size, including earlier work, with the number and bytes of the files in the cache."""
    files = [path.stat().st_size for path in Path(os.environ["PODEVAL_CACHE"]).glob("analysis/*/*")]
    took = {"wall": time.perf_counter() - start, "busy": processor() - busy, "files": len(files), "bytes": sum(files)}
    took = {what: value + (done or {}).get(what, 0) for what, value in took.items()}
    most = {"before": before, "memory": max(memory(), (done or {}).get("memory", 0.0))}
    print(json.dumps({"work": name, "size": size, "load": os.getloadavg()[0], **took, **most, **more}), flush=True)


def run_sizes(
    name: str, sizes: Sequence[int], material: Path, done: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Run sizes of a kind of work in a separate process with an empty cache; yield their rows as they become
    available.
    """
    with tempfile.TemporaryDirectory(prefix="podeval-growth-") as folder:
        command = [sys.executable, __file__, "--material", str(material), "--one", name, *map(str, sizes)]
        environment = {**os.environ, "PODEVAL_CACHE": folder, "GROWTH_DONE": json.dumps(done or {})}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            yield from (json.loads(line) for line in process.stdout if line.startswith('{"work"'))
        if process.returncode:
            raise SystemExit(f"{name} ended with {process.returncode}")


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the rows with their slopes."""
    print("| work | size | wall s | processor s | GB before | GB at most | files in the cache | MB of them | slope |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for before, row in zip([None, *rows], rows, strict=False):
        same = before and before["work"] == row["work"]
        slope = math.log(row["busy"] / before["busy"]) / math.log(row["size"] / before["size"]) if same else None
        print(
            f"| {WORKS[row['work']].title} | {row['size']:,} | {row['wall']:.2f} | {row['busy']:.2f} "
            f"| {row['before']:.2f} | {row['memory']:.2f} | {row['files']:,} | {row['bytes'] / 1e6:.1f} | "
            f"{'' if slope is None else f'{slope:.2f}'} |"
        )


def main() -> None:
    """Run the missing sizes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--largest", type=float, default=1.0)
    parser.add_argument("--sizes", help="these sizes instead, separated by commas")
    parser.add_argument("--rows", type=Path, help="a file to keep the rows in, and to go on from")
    parser.add_argument("--material", type=Path, default=Path(tempfile.gettempdir()) / "podeval-growth-material")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        do_sizes(options.one[0], [int(size) for size in options.one[1:]], options.material)
        return
    from growth_material import write_dialogues

    write_dialogues(options.material)
    kept = options.rows.read_text(encoding="utf-8").splitlines() if options.rows and options.rows.exists() else []
    rows = [json.loads(line) for line in kept]
    for name in options.works.split(","):
        of_work = {row["size"]: row for row in rows if row["work"] == name}
        sizes = [max(1, round(size * options.largest)) for size in WORKS[name].sizes]
        if options.sizes:
            sizes = [int(size) for size in options.sizes.split(",")]
        left = [size for size in sizes if size not in of_work]
        together = WORKS[name].one_after_the_other is not None
        last = of_work[max(of_work)] if together and of_work else None
        if last:
            left = [size for size in left if size > last["size"]]
        for part in ([left] if together else [[size] for size in left]) if left else ():
            for row in run_sizes(name, part, options.material, last):
                rows.append(row)
                if options.rows:
                    options.rows.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    order = list(WORKS)
    print_table(sorted(rows, key=lambda row: (order.index(row["work"]), row["size"])))
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
