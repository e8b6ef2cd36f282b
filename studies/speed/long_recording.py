"""Measure the memory and time that each metric needs for a recording of hours.

    python studies/speed/long_recording.py speech.wav [--hours 3] [--music] [--metrics loudness,sptd] [--rate 24000]
    python studies/speed/long_recording.py speech.wav --hours 10 --metrics integrity --channels 1 --limit 1

The speech is repeated to the requested length in two different channels, with new noise at -50 dB in every repetition.
It is written as a FLAC file, which is opened as by `podeval measure`. With --music, a tune of steady tones is under
every second half minute, 8 dB below the speech, so the metrics of speech get the separated speech.

Each metric is measured in a separate process, after the models that it needs are loaded. The measurement includes
opening the file: the highest resident memory beyond the initial one, and the wall-clock and processor seconds. All
metrics share a cache on disk, so facts that one metric has derived (such as who speaks when) are found by the next
ones; the order of --metrics decides which metric bears the cost. The script runs only on Linux, and ends with 1 if a
metric exceeds the limit, by default 2.5 GB.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import soxr

METRICS = "loudness,reverb_consistency,sptd,timbre_consistency,distillmos,dnsmos"
"""The default metrics; `smr` needs --music."""

MUSIC_BELOW, NOISE_BELOW = 8.0, 50.0
"""Number of dB by which music and noise are below the speech."""

MUSIC_SECONDS = 30
_MUSIC_NOTES = (220.0, 277.18, 329.63, 440.0, 369.99, 293.66, 246.94, 329.63)
_NOTE_SECONDS = 0.5


class Used(NamedTuple):
    """The use of one metric: resident bytes before and at most, seconds, and the result in words."""

    before: int
    peak: int
    wall: float
    processor: float
    said: str


def long_speech(speech: Path, seconds: float, rate: int, music: bool) -> Iterator[np.ndarray]:
    """Yield the recording piece by piece, each of shape (frames, 2): the speech once, with new noise."""
    samples, own_rate = soundfile.read(speech, dtype="float32", always_2d=True)
    voice = soxr.resample(samples.mean(axis=1), own_rate, rate).astype(np.float32)
    level = float(np.sqrt(np.mean(np.square(voice))))
    random = np.random.default_rng(0)
    left = round(seconds * rate)
    at = 0
    while left > 0:
        frames = min(left, len(voice))
        both = np.stack([voice[:frames], 0.8 * np.roll(voice, 13)[:frames]], axis=1)
        both += level * 10 ** (-NOISE_BELOW / 20) * random.standard_normal(both.shape, dtype=np.float32)
        if music:
            both += tune(at, frames, rate, level * 10 ** (-MUSIC_BELOW / 20))[:, np.newaxis]
        yield both
        at, left = at + frames, left - frames


def tune(start: int, frames: int, rate: int, level: float) -> np.ndarray:
    """Return chords of three tones with two overtones each, at this RMS; every first half minute is silent."""
    seconds = (start + np.arange(frames)) / rate
    note = (seconds // _NOTE_SECONDS).astype(int)
    fade = np.minimum(1, np.minimum(seconds % _NOTE_SECONDS, _NOTE_SECONDS - seconds % _NOTE_SECONDS) / 0.02)
    chord = sum(
        np.sin(2 * np.pi * part * np.array(_MUSIC_NOTES)[(note + third) % len(_MUSIC_NOTES)] * seconds) / part
        for third in (0, 2, 4)
        for part in (1, 2, 3)
    )
    sounding = fade * (seconds // MUSIC_SECONDS % 2 == 1)
    tones: np.ndarray = level * sounding * chord / np.sqrt(3 * (1 + 1 / 4 + 1 / 9) / 2)
    return tones.astype(np.float32)


def used(metric_name: str, path: Path, cache: Path) -> Used:
    """Measure one metric on the file in this process, after loading its models."""
    from podeval.measuring.inputs import read_input
    from podeval.metrics import catalogue
    from podeval.metrics.score import Unscored
    from podeval.models import registry
    from podeval.recording.cache import Cache

    metric = catalogue.get(metric_name)
    for job in metric.needs:
        registry.load(job, "embedded")
    before = _memory("VmRSS")
    # Since version 4.0, Linux resets the highest resident memory when 5 is written to this file.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    wall, processor = time.perf_counter(), time.process_time()
    options = {"profile": "embedded", "allow_upsampling": False, "cache": Cache(cache)}
    told = {"speakers": 2} if metric.needs_speakers else {}
    result = metric({"recording": read_input("recording", path, **options)}, told)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    if isinstance(result, Unscored):
        said = result.reason
    else:
        said = "  ".join(f"{key} {value:.4g}" for key, value in result.values.items() if value is not None)
        said += f", scored: {result.notes['scored']}" if "scored" in result.notes else ""
    return Used(before, _memory("VmHWM"), wall, processor, said)


def _memory(name: str) -> int:
    """Return a figure of this process in bytes, by its name in /proc."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


def main() -> int:
    """Measure the metrics, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("--rate", type=int, default=24_000)
    parser.add_argument("--music", action="store_true")
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--channels", type=int, choices=(1, 2), default=2)
    parser.add_argument("--limit", type=float, default=2.5, help="GB above the models")
    options = parser.parse_args()
    above = False
    with tempfile.TemporaryDirectory() as temporary:
        path, cache = Path(temporary) / "long.flac", Path(temporary) / "cache"
        with soundfile.SoundFile(path, "w", options.rate, channels=options.channels, subtype="PCM_16") as file:
            for piece in long_speech(options.speech, options.hours * 3600, options.rate, options.music):
                file.write(np.clip(piece[:, : options.channels], -1, 1))
        music = ", music under half of it" if options.music else ""
        form = f"{options.hours:g} h, {options.channels} channels at {options.rate} Hz{music}"
        print(f"{form}; wanted: at most {options.limit:g} GB above the models")
        # A forked process has its parent's memory; a spawned one has only its own.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as processes:
            for name in options.metrics.split(","):
                cost = processes.submit(used, name, path, cache).result()
                grown = (cost.peak - cost.before) / 1e9
                above |= grown > options.limit
                print(
                    f"{name:20} models {cost.before / 1e9:5.2f} GB, above them {grown:5.2f} GB; "
                    f"{cost.wall:7.1f} s wall, {cost.processor:7.1f} s processor ({cost.said})",
                    flush=True,
                )
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
