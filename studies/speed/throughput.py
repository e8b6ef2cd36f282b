"""Measure how many clips one process and two processes measure per hour, each on its own core.

    python studies/speed/throughput.py podcast.wav [--clips 8] [--seconds 90]

Clips are cut one after another from the file that `podcast.py make` wrote. Every process loads its models and measures
one clip before the timing begins. Then each clip is opened with an empty cache, its words are transcribed, and every
embedded metric that needs no given words is computed. This is done twice: with all clips in one process on the first
core, and with half of them in each of two processes on the first two cores. The target is that two processes do at
least 1.8 times as much as one.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import soundfile

WANTED = 1.8


def cut(path: Path, folder: Path, clips: int, seconds: float) -> list[Path]:
    """Cut this many clips, and write them to files."""
    found = []
    with soundfile.SoundFile(path) as whole:
        for number in range(clips):
            samples = whole.read(round(seconds * whole.samplerate), dtype="float32")
            if len(samples) < round(seconds * whole.samplerate):
                raise SystemExit(f"{path} has less than {clips} clips of {seconds:g} s; make a longer one")
            found.append(folder / f"{number}.wav")
            soundfile.write(found[-1], samples, whole.samplerate)
    return found


def everything(path: Path) -> None:
    """Compute each embedded metric of one clip with an empty cache."""
    from podeval.metrics import catalogue
    from podeval.recording import Recording
    from podeval.recording.cache import Cache

    with tempfile.TemporaryDirectory() as folder:
        recording = Recording.open(path, cache=Cache(Path(folder)))
        given = {"recording": recording, "reference_text": "words that are not said"}
        for metric in catalogue.load_all_metrics():
            if "recording" in metric.inputs and set(metric.inputs) <= set(given):
                metric(given, {})


def worker(core: int, clips: list[Path], start: Barrier, stop: Barrier) -> None:
    """Measure clips on one core, once all processes are ready."""
    os.sched_setaffinity(0, {core})
    for variable in ("PODEVAL_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    everything(clips[0])
    start.wait()
    for clip in clips:
        everything(clip)
    stop.wait()


def seconds_of(shares: dict[int, list[Path]]) -> float:
    """Return the seconds from the moment when every process is ready until all have finished."""
    context = multiprocessing.get_context("spawn")
    start, stop = context.Barrier(len(shares) + 1), context.Barrier(len(shares) + 1)
    processes = [
        context.Process(target=worker, args=(core, clips, start, stop), daemon=True) for core, clips in shares.items()
    ]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    stop.wait()
    took = time.perf_counter() - began
    for process in processes:
        process.join()
    return took


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("podcast", type=Path)
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=90)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise SystemExit("this needs two cores")
    with tempfile.TemporaryDirectory() as temporary:
        clips = cut(options.podcast, Path(temporary), options.clips, options.seconds)
        one = seconds_of({cores[0]: clips})
        two = seconds_of({cores[0]: clips[::2], cores[1]: clips[1::2]})
    print(f"{len(clips)} clips of {options.seconds:g} s; load {os.getloadavg()[0]:.1f}")
    for name, took in (("one process", one), ("two processes", two)):
        each = took / len(clips) / options.seconds
        print(f"{name:14}{took:9.1f} s, real-time factor {each:.3f}, {3600 * len(clips) / took:.0f} clips an hour")
    print(f"two do {one / two:.2f} times as much as one (wanted {WANTED})", flush=True)


if __name__ == "__main__":
    main()
