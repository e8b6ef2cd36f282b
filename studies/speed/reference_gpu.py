"""Measure the reference profile on a GPU: an hour in one process, many clips in several, and how busy the GPU is.

    python studies/speed/podcast.py make speech.wav --minutes 60
    python studies/speed/reference_gpu.py make speech.wav podcast.wav          # music under a third of it
    python studies/speed/reference_gpu.py hour podcast.wav [--profile reference] [--metrics wer,dnsmos]
    python studies/speed/reference_gpu.py hour podcast.wav --metrics wer --batch 128
    python studies/speed/reference_gpu.py several podcast.wav [--workers 0] [--clips 12] [--seconds 600]
    python studies/speed/reference_gpu.py equal podcast.wav

`make` writes stereo at 44.1 kHz with chords under the middle third. `hour` scores the file as `podeval score` does,
with an empty cache, after a first scoring of 40 s has loaded the models. `several` cuts clips and measures them as
`podeval run` does, with this many workers (0 means as many as the GPU has room for); loading the models is part of its
time. `equal` scores the first 40 s on the CPU and on the default device, and ends with 1 if a value differs by more
than 1 %. The others print the wall-clock seconds, the speed relative to real time, and the share of time in which a
kernel ran (`nvidia-smi`, five times per second), both overall and while it is above zero. The targets on one H100 are
less than 80 s for the hour, 300 times real time for several, and 60 % while networks run. The models come from `podeval
models install --profile reference`; without a GPU, or without the models, `--profile embedded` shows that the script
works. `gpu.sh` runs all of it.
"""

import argparse
import contextlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

RATE = 44_100
WARM_SECONDS = 40
WANTED_HOUR, WANTED_TIMES, WANTED_BUSY = 80, 300, 60
CHORDS = ((220.0, 277.2, 329.6), (196.0, 246.9, 293.7), (174.6, 220.0, 261.6), (164.8, 207.7, 246.9))


def make(speech: Path, podcast: Path) -> None:
    """Write the speech in two channels, with chords 12 dB below full scale under its middle third."""
    from podeval.audio.samples import resample

    samples, rate = soundfile.read(speech, dtype="float32", always_2d=True)
    voice = resample(samples.mean(axis=1), rate, RATE)
    chord = np.arange(2 * RATE) / RATE
    fade = np.minimum(1, np.minimum(chord, 2 - chord) / 0.1)
    notes = [fade * sum(np.sin(2 * np.pi * pitch * chord) for pitch in pitches) / 12 for pitches in CHORDS]
    third = len(voice) // 3
    music = np.resize(np.concatenate(notes), third).astype(np.float32)
    both = np.stack([voice, voice], axis=1)
    both[third : 2 * third] = 0.7 * both[third : 2 * third] + np.stack([music, np.roll(music, 400)], axis=1)
    soundfile.write(podcast, both, RATE)
    shutil.copy(speech.with_suffix(".txt"), podcast.with_suffix(".txt"))


@contextlib.contextmanager
def watch_gpu() -> Iterator[list[int]]:
    """Collect the percentage of each fifth of a second in which a kernel ran; nothing if there is no `nvidia-smi`."""
    shares: list[int] = []
    if shutil.which("nvidia-smi") is None:
        yield shares
        return
    query = ["nvidia-smi", "--id=0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"]
    with subprocess.Popen(query, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        try:
            yield shares
        finally:
            watcher.terminate()
            shares += [int(line) for line in watcher.stdout.read().split() if line.isdigit()]


def tell(what: str, audio: float, wall: float, shares: list[int], wanted: str) -> None:
    """Print one measurement."""
    print(f"{what}: {audio / 60:.1f} minutes in {wall:.1f} s, {audio / wall:.0f} times real time (wanted: {wanted})")
    if not shares:
        print("no GPU was watched: there is no nvidia-smi here")
        return
    busy = [share for share in shares if share]
    print(
        f"the GPU was busy {statistics.mean(shares):.0f} % of the time, and "
        f"{statistics.mean(busy) if busy else 0:.0f} % of that in which it was used (wanted: {WANTED_BUSY} %)"
    )


def cut(podcast: Path, folder: Path, begin: float, seconds: float, name: str) -> Path:
    """Write a part of the podcast to a file."""
    rate = soundfile.info(podcast).samplerate
    samples, _ = soundfile.read(podcast, start=round(begin * rate), frames=round(seconds * rate), dtype="float32")
    soundfile.write(folder / f"{name}.wav", samples, rate)
    return folder / f"{name}.wav"


def score_hour(podcast: Path, profile: str, metrics: str) -> None:
    """Score one file with warm models and an empty cache."""
    import podeval

    text = podcast.with_suffix(".txt").read_text(encoding="utf-8")
    chosen: dict[str, Any] = {"metrics": metrics} if metrics else {}
    with tempfile.TemporaryDirectory() as folder:
        podeval.score(cut(podcast, Path(folder), 0, WARM_SECONDS, "warm"), text=text, profile=profile, **chosen)
        with watch_gpu() as shares:
            began = time.perf_counter()
            scores = podeval.score(podcast, text=text, profile=profile, **chosen)
            wall = time.perf_counter() - began
    for name, result in scores.results.items():
        print(f"{name:24}{getattr(result, 'reason', None) or dict(result.values)}")
    tell(f"one process, {profile}", soundfile.info(podcast).duration, wall, shares, f"an hour in {WANTED_HOUR} s")


def compare_devices(podcast: Path, profile: str, metrics: str) -> bool:
    """Print the values of the first seconds that differ between the CPU and the default device; return whether none
    differs.
    """
    values = []
    with tempfile.TemporaryDirectory() as folder:
        clip = cut(podcast, Path(folder), 0, WARM_SECONDS, "clip")
        command = [sys.executable, "-m", "podeval", "score", clip, "--text", podcast.with_suffix(".txt"), "--json"]
        command += ["--profile", profile, *(["--metrics", metrics] if metrics else [])]
        for device in ("cpu", ""):
            environment = {**os.environ, "PODEVAL_DEVICE": device, "PODEVAL_CACHE": f"{folder}/cache-{device}"}
            scores = json.loads(subprocess.check_output(command, env=environment))["scores"]
            values.append({(name, key): value for name, one in scores.items() for key, value in one.items()})
    on_cpu, here = values
    differing = [key for key in on_cpu.keys() | here.keys() if not is_close(on_cpu.get(key), here.get(key))]
    print(f"{len(on_cpu)} values on the CPU and here: {len(on_cpu) - len(differing)} within 1 %; others: {differing}")
    return not differing


def is_close(one: float | None, other: float | None) -> bool:
    """Return whether two values differ by at most 1 %."""
    return one == other if one is None or other is None else math.isclose(one, other, rel_tol=0.01, abs_tol=1e-3)


def measure_several(podcast: Path, profile: str, metrics: str, workers: int, clips: int, seconds: float) -> None:
    """Measure clips with several workers, each from its file."""
    from podeval.benchmarks.benchmark import Item, MetricUse
    from podeval.metrics import catalogue
    from podeval.runs.executor import Workers, count_workers
    from podeval.runs.measure import Task, measure_item
    from podeval.runs.run_folder import Output

    text = podcast.with_suffix(".txt").read_text(encoding="utf-8")
    script = ({"speaker": "A", "text": text},)
    names = metrics.split(",") if metrics else [
        metric.name for metric in catalogue.load_all_metrics() if set(metric.inputs) <= {"recording", "reference_text"}
    ]  # fmt: skip
    uses = tuple(MetricUse(name=name, keys=(catalogue.get(name).keys[0].name,)) for name in names)
    whole, count = soundfile.info(podcast).duration, workers or count_workers(profile)
    with tempfile.TemporaryDirectory() as place:
        folder, tasks = Path(place), []
        for number in range(clips):
            begin = number * seconds % max(1.0, whole - seconds)
            cut(podcast, folder, begin, seconds, str(number))
            item = Item.model_validate(
                {"id": str(number), "language": "en", "topic": "-", "category": "Arts", "voices": 2}
            )
            output = Output(item=str(number), audio=f"{number}.wav", duration=seconds, script=script)
            tasks.append(Task(item, output, folder, profile, "voice", uses))
        with watch_gpu() as shares, Workers(count) as executor:
            began = time.perf_counter()
            results = list(executor.map(measure_item, tasks))
            wall = time.perf_counter() - began
    unmeasured = sum(one is None for _, one in results)
    reasons = {getattr(result, "reason", "") for _, one in results if one for result in one.values()} - {""}
    print(f"{len(results)} clips of {seconds:g} s, {len(uses)} metrics; {unmeasured} not measured; unscored: {reasons}")
    tell(f"{executor.processes} workers, {profile}", clips * seconds, wall, shares, f"{WANTED_TIMES} times real time")


def main() -> None:
    """Run the given command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["make", "hour", "several", "equal"])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--profile", default="reference")
    parser.add_argument("--metrics", default="", help="some, separated by commas; otherwise all that fit")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--clips", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--batch", type=int, default=0, help="pieces that Whisper decodes together; 0: its own choice")
    options = parser.parse_args()
    if options.what == "make":
        if len(options.files) != 2:
            parser.error("make needs the file of the speech and the one to write")
        make(*options.files)
        return
    from podeval.models import whisper_transformers

    with tempfile.TemporaryDirectory() as cache:
        os.environ["PODEVAL_CACHE"] = cache
        if options.batch:
            whisper_transformers._GPU_BATCH = options.batch
        if options.what == "equal":
            sys.exit(not compare_devices(options.files[0], options.profile, options.metrics))
        if options.what == "hour":
            score_hour(options.files[0], options.profile, options.metrics)
        else:
            measure_several(
                options.files[0], options.profile, options.metrics, options.workers, options.clips, options.seconds
            )


if __name__ == "__main__":
    sys.exit(main())
