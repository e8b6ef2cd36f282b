"""Compare the speed of loudness on ten minutes of 44.1 kHz stereo speech: ours, PodEval's code, and FFmpeg's ebur128.

    python studies/speed/loudness.py speech.wav [--turns 3]

The recording is repeated to ten minutes, resampled to 44.1 kHz and put into two different channels. Everything runs on
one thread, in turn in one process:

- from the same decoded samples: ours (loudness, range and true peak of both channels), PodEval's way (librosa's mix to
  mono; pyloudnorm's integrated loudness; librosa's resampling by 4 for the peak; pyloudnorm on frames of 3 s every
  1.5 s for the range), and the filter `ebur128=peak=true` of the FFmpeg libraries that PyAV brings
- from the file (16-bit WAV), decoding included: ours, PodEval's way after `librosa.load`, and the program `ffmpeg` with
  the same filter, if it is installed

The lines give wall-clock and processor seconds. The ratios are medians over the turns of processor time, which depends
less on the machine's other work.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["PODEVAL_THREADS"] = "1"

import argparse
import math
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import soundfile
import soxr
from timing import by_turns

from podeval.audio.decode import decode
from podeval.audio.loudness import measure

RATE, SECONDS = 44_100, 600

WANTED = {"PodEval's way": 8, "libavfilter ebur128": 1 / 1.5, "ffmpeg ebur128": 1 / 1.5}
"""Minimum factor by which each program should take longer than ours."""


def stereo(speech: Path, seconds: int) -> np.ndarray:
    """Return this many seconds of the speech at 44.1 kHz, repeated, in two channels; the right one is 0.3 ms later and
    quieter.
    """
    samples, rate = soundfile.read(speech, dtype="float32", always_2d=True)
    left = soxr.resample(samples.mean(axis=1), rate, RATE)
    return np.resize(np.stack([left, 0.8 * np.roll(left, 13)], axis=1).astype(np.float32), (seconds * RATE, 2))


def ours(path: Path) -> tuple[float, float | None, float]:
    """Measure a file with our code."""
    decoded = decode(path)
    found = measure(decoded.samples, decoded.rate, decoded.layout)
    return found.integrated, found.range, found.true_peak


def podeval_way_from_file(path: Path) -> tuple[float, float, float]:
    """Measure a file as `calculate_loudness` in PodEval's code does before it scores."""
    import librosa

    mono, rate = librosa.load(path, sr=None)
    return podeval_way(mono, int(rate))


def podeval_way(samples: np.ndarray, rate: int) -> tuple[float, float, float]:
    """Measure decoded samples, (frames,) or (frames, channels), in the same way."""
    import librosa
    import pyloudnorm

    mono = librosa.to_mono(samples.T)
    meter = pyloudnorm.Meter(rate)
    integrated = meter.integrated_loudness(mono)
    peak = np.abs(librosa.resample(mono, orig_sr=rate, target_sr=4 * rate)).max()
    starts = range(0, len(mono) - 3 * rate + 1, 3 * rate // 2)
    frames = [meter.integrated_loudness(mono[start : start + 3 * rate]) for start in starts]
    low, high = np.percentile(frames, (10, 95))
    return float(integrated), float(high - low), 20 * math.log10(peak)


def ffmpeg_program(path: Path) -> None:
    """Measure a file with the program `ffmpeg`, whose three readings go to its log."""
    command = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-threads", "1", "-i", str(path)]
    command += ["-filter_complex", "ebur128=peak=true:framelog=verbose", "-f", "null", "-"]
    subprocess.run(command, check=True)


def ffmpeg_filter(samples: np.ndarray) -> tuple[float, float, float]:
    """Measure samples with FFmpeg's filter through PyAV, a second at a time."""
    import av
    import av.filter

    graph = av.filter.Graph()
    source = graph.add_abuffer(sample_rate=RATE, format="flt", layout="stereo", time_base=Fraction(1, RATE))
    meter, sink = graph.add("ebur128", "metadata=1:peak=true:framelog=verbose"), graph.add("abuffersink")
    source.link_to(meter)
    meter.link_to(sink)
    graph.configure()
    last = None
    for start in [*range(0, len(samples), RATE), None]:
        frame = None
        if start is not None:
            frame = av.AudioFrame.from_ndarray(
                samples[start : start + RATE].reshape(1, -1), format="flt", layout="stereo"
            )
            frame.sample_rate, frame.pts = RATE, start
        graph.push(frame)
        try:
            while True:
                last = graph.pull()
        except (av.BlockingIOError, av.EOFError):
            pass
    readings = dict(last.metadata)
    peak = max(float(value) for key, value in readings.items() if "true_peaks_ch" in key)
    return float(readings["lavfi.r128.I"]), float(readings["lavfi.r128.LRA"]), 20 * math.log10(peak)


def main() -> None:
    """Time the programs, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    samples = stereo(options.speech, SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        soundfile.write(path, samples, RATE, subtype="PCM_16")
        from_samples = {
            "ours": partial(measure, samples, RATE),
            "PodEval's way": partial(podeval_way, samples, RATE),
            "libavfilter ebur128": partial(ffmpeg_filter, samples),
        }
        found = by_turns(f"loudness of {SECONDS} s of stereo, decoded", from_samples, options.turns, WANTED)
        from_file: dict[str, Callable[[], object]] = {
            "ours": partial(ours, path),
            "PodEval's way": partial(podeval_way_from_file, path),
        }
        if shutil.which("ffmpeg"):
            from_file["ffmpeg ebur128"] = partial(ffmpeg_program, path)
        by_turns(f"loudness of {SECONDS} s of stereo, from the file", from_file, options.turns, WANTED)
    readings = found["ours"]
    print(f"ours: {readings.integrated:.2f} LUFS, {readings.range:.2f} LU, {readings.true_peak:.2f} dBTP")
    print("libavfilter: {:.2f} LUFS, {:.2f} LU, {:.2f} dBTP".format(*found["libavfilter ebur128"]))


if __name__ == "__main__":
    main()
