"""Measure all embedded metrics on one long podcast in two voices: seconds, real-time factor, and the time of a second
run.

    python studies/speed/podcast.py make podcast.wav [--minutes 60]      # read by the baseline, with its words
    python studies/speed/podcast.py measure podcast.wav
    python studies/speed/podcast.py compare podcast.wav --against CHECKOUT [--turns 1]
    python studies/speed/podcast.py score podcast.wav

`make` has podeval's baseline read the scripts of Real-Pod one after another; sentences are repeated only after all
scripts were read. `measure` opens the file as `podeval measure` does, with an empty cache. It computes every embedded
metric, one after another in one process with as many threads as there are cores (or PODEVAL_THREADS), and then
everything again from the cache of the first run. Loading the models is part of the time. It prints the wall-clock and
processor seconds of each metric. The targets are a real-time factor of 0.15 on two cores, and a second run that is at
least 50 times as fast.

`score` times `podeval.score` instead, on the recording with its words and two voices: all metrics, two at a time, and a
second call; the machine must have been prepared by `podeval models install`.

`compare` measures with this code and with that of another checkout (`git worktree add CHECKOUT COMMIT`) in turn, each
in a separate process with an empty cache and its own copy of this script. It prints the wall-clock and processor
seconds of each metric side by side, and the differences between the values. Exported networks exist beforehand, because
each side first measures 20 s.
"""

import argparse
import contextlib
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

import podeval
from podeval import benchmarks
from podeval.files import find_user_folder
from podeval.metrics import catalogue
from podeval.metrics.score import Unscored
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.recording.reference_voices import ReferenceVoices
from podeval.systems.hibari_piper import HibariPiper
from podeval.text.script import Script

GAP_SECONDS = 0.8
"""Seconds between two scripts."""

REFERENCE_SECONDS = 60
"""Number of seconds at the beginning from which the reference voices are taken."""

WANTED_FACTOR, WANTED_AGAIN = 0.15, 50


def scripts() -> list[Script]:
    """Return every English script of Real-Pod for at most two voices, each once."""
    benchmark = benchmarks.get("real_pod")
    found = {
        item.script.text: item.script
        for split in benchmark.splits
        for item in benchmark.items(split.name)
        if item.script is not None and item.language == "en" and len(item.script.speakers) <= 2
    }
    return list(found.values())


def make(path: Path, minutes: float) -> None:
    """Write this many minutes of speech and, next to it, the words as .txt and the turns with their times as .json."""
    voice = HibariPiper()
    voice.threads = len(os.sched_getaffinity(0))
    turns: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        file: soundfile.SoundFile | None = None
        for script in itertools.cycle(scripts()):
            said = voice.speak(script)
            if file is None:
                file = stack.enter_context(soundfile.SoundFile(path, "w", samplerate=said.rate, channels=1))
            voices, begin = script.speakers, file.frames / said.rate
            for turn in said.turns:
                own = {"speaker": f"voice {voices.index(turn.speaker) + 1}", "text": turn.text}
                turns.append(own | {"start": begin + turn.start, "end": begin + turn.end})
            file.write(np.squeeze(said.samples))
            file.write(np.zeros(round(GAP_SECONDS * said.rate), dtype=np.float32))
            made = file.frames / said.rate / 60
            print(f"{made:.1f} of {minutes:g} minutes", file=sys.stderr, flush=True)
            if made >= minutes:
                break
    path.with_suffix(".txt").write_text("\n".join(turn["text"] for turn in turns), encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(turns), encoding="utf-8")


def measured(path: Path, reference: list[Path], cache: Cache) -> Iterator[tuple[str, Any]]:
    """Open the recording; yield it and then the result of each metric."""
    recording = Recording.open(path, cache=cache)
    yield "opening", recording
    voices = {clip.stem: Recording.open(clip, cache=cache) for clip in reference}
    given = {
        "recording": recording,
        "reference_text": path.with_suffix(".txt").read_text(encoding="utf-8"),
        "reference_voices": ReferenceVoices(voices),
    }
    for metric in catalogue.load_all_metrics():
        if "recording" in metric.inputs and set(metric.inputs) <= set(given):
            yield metric.name, metric(given, {})


def voice_clips(path: Path, folder: Path) -> list[Path]:
    """Write the longest turn of each of two speakers to a file."""
    with soundfile.SoundFile(path) as whole:
        start, rate = whole.read(REFERENCE_SECONDS * whole.samplerate, dtype="float32"), whole.samplerate
    opening = folder / "opening.wav"
    soundfile.write(opening, start, rate)
    turns = Recording.open(opening).diarization()
    longest = {turn.speaker: turn for turn in sorted(turns, key=lambda turn: turn.end - turn.start)}
    clips = []
    for speaker, turn in sorted(longest.items())[:2]:
        clips.append(folder / f"{speaker}.wav")
        soundfile.write(clips[-1], start[int(turn.start * rate) : int(turn.end * rate)], rate)
    return clips


def timed(parts: Iterator[tuple[str, Any]]) -> dict[str, tuple[float, float, Any]]:
    """Return the wall-clock and processor seconds and the result of every part, in the order in which the parts are
    made.
    """
    found = {}
    wall, busy = time.perf_counter(), time.process_time()
    for name, result in parts:
        found[name] = time.perf_counter() - wall, time.process_time() - busy, result
        wall, busy = time.perf_counter(), time.process_time()
    return found


def measure(path: Path) -> None:
    """Measure twice, and print the figures."""
    warnings.simplefilter("ignore")
    seconds = soundfile.info(path).duration
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stdout(sys.stderr):
        folder = Path(temporary)
        reference = voice_clips(path, folder)
        first = timed(measured(path, reference, Cache(folder / "cache")))
        second = timed(measured(path, reference, Cache(folder / "cache")))
    print(f"{seconds / 60:.1f} minutes; {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':24}{'wall s':>10}{'processor s':>13}{'again, wall s':>15}")
    for name, (wall, busy, result) in first.items():
        said = f"   ({result.reason})" if isinstance(result, Unscored) else ""
        print(f"{name:24}{wall:10.2f}{busy:13.2f}{second[name][0]:15.3f}{said}")
    wall, busy, again = (sum(row) for row in zip(*((*first[name][:2], second[name][0]) for name in first), strict=True))
    print(f"{'sum':24}{wall:10.2f}{busy:13.2f}{again:15.3f}")
    print(f"real-time factor {wall / seconds:.3f} (wanted at most {WANTED_FACTOR}); processor {busy / seconds:.3f}")
    print(f"again {wall / again:.0f} times as fast (wanted {WANTED_AGAIN})", flush=True)


def score(path: Path) -> None:
    """Score everything twice, and print the figures."""
    warnings.simplefilter("ignore")
    seconds, calls = soundfile.info(path).duration, []
    networks = find_user_folder() / "networks"
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stdout(sys.stderr):
        # Only the parts that are made once per machine exist beforehand.
        os.environ["PODEVAL_CACHE"] = temporary
        shutil.copytree(networks, find_user_folder() / "networks")
        reference = {clip.stem: str(clip) for clip in voice_clips(path, Path(temporary))}
        for _ in range(2):
            wall, busy = time.perf_counter(), time.process_time()
            scores = podeval.score(path, text=str(path.with_suffix(".txt")), references=reference)
            calls.append((time.perf_counter() - wall, time.process_time() - busy))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{seconds / 60:.1f} minutes; {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{len(scores.values)} values of {len(scores.results)} metrics; {memory:.1f} GB at most")
    for name, (wall, busy) in zip(("first", "again"), calls, strict=True):
        print(f"{name}: {wall:.1f} s, {wall / seconds:.3f} of real time; processor {busy:.1f} s, {busy / seconds:.3f}")


def measure_once(path: Path) -> None:
    """Measure once; print a line of JSON with the wall-clock and processor seconds and the values of every metric."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stdout(sys.stderr):
        folder = Path(temporary)
        reference = voice_clips(path, folder)
        results = timed(measured(path, reference, Cache(folder / "cache")))
    values = {name: getattr(result, "values", None) for name, (_, _, result) in results.items()}
    print(json.dumps({name: [wall, busy, values[name]] for name, (wall, busy, _) in results.items()}, default=str))


def ask(checkout: Path, path: Path) -> dict[str, Any]:
    """Measure once with the code of a checkout, in a separate process."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "benchmark")}
    script = checkout / "studies" / "speed" / "podcast.py"
    command = [sys.executable, str(script if script.is_file() else __file__), "once", str(path)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def compare(path: Path, other: Path, turns: int) -> None:
    """Measure with both checkouts in turn; print the minimum over the turns side by side."""
    ours = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as temporary:
        start = Path(temporary) / "start.wav"
        samples, rate = soundfile.read(path, dtype="float32", frames=20 * soundfile.info(path).samplerate)
        soundfile.write(start, samples, rate)
        start.with_suffix(".txt").write_text(path.with_suffix(".txt").read_text(encoding="utf-8"), encoding="utf-8")
        for checkout in (other, ours):
            ask(checkout, start)
    runs: dict[Path, list[dict[str, Any]]] = {other: [], ours: []}
    for turn in range(turns):
        for checkout in (other, ours) if turn % 2 == 0 else (ours, other):
            runs[checkout].append(ask(checkout, path))
    print_side_by_side(path, runs[other], runs[ours])


def print_side_by_side(path: Path, before: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
    """Print the wall-clock and processor seconds of both, and the largest relative difference between a metric's
    values.
    """
    seconds = soundfile.info(path).duration
    print(f"{seconds / 60:.1f} minutes; {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':24}{'wall, other':>14}{'wall, ours':>14}{'cpu, other':>14}{'cpu, ours':>14}{'apart':>10}")
    sums = [0.0] * 4
    for name in now[0]:
        row = [min(run[name][which] for run in side) for which in (0, 1) for side in (before, now) if name in side[0]]
        if len(row) < 4:
            continue
        sums = [total + one for total, one in zip(sums, row, strict=True)]
        apart = find_distance(before[0][name][2], now[0][name][2])
        if max(row) >= 0.05:
            print(f"{name:24}" + "".join(f"{one:14.2f}" for one in row) + f"{apart:>10}")
    print(f"{'sum':24}" + "".join(f"{one:14.2f}" for one in sums))
    print("of the recording's time " + "".join(f"{one / seconds:14.3f}" for one in sums))


def find_distance(before: dict[str, float] | None, now: dict[str, float] | None) -> str:
    """Return the largest relative difference over the keys that both have, as text; empty if nothing was scored."""
    keys = [key for key in before or {} if key in (now or {}) and isinstance(before[key], float)] if before else []
    if not keys or before is None or now is None:
        return ""
    return f"{max(abs(now[key] - before[key]) / max(abs(before[key]), 1e-9) for key in keys):.0e}"


def main() -> None:
    """Run the given command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["make", "measure", "score", "compare", "once"])
    parser.add_argument("podcast", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--against", type=Path, help="the other checkout")
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    if options.what == "make":
        make(options.podcast, options.minutes)
    elif options.what == "once":
        measure_once(options.podcast)
    elif options.what == "score":
        score(options.podcast)
    elif options.what == "compare":
        if options.against is None:
            parser.error("compare needs --against CHECKOUT")
        compare(options.podcast, options.against, options.turns)
    else:
        measure(options.podcast)


if __name__ == "__main__":
    main()
