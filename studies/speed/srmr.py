"""Compare the speed of SRMR in windows of 3 s every 2 s at 16 kHz: ours, and torchmetrics called once per window.

    python studies/speed/srmr.py speech.flac [--seconds 600] [--slow-seconds 60] [--turns 3]

The recording is repeated to the requested length. Everything runs on one thread, in turn in one process; the fast modes
are compared with each other, and so are the slow modes. The slow mode of torchmetrics takes about a second per window,
so it is measured on `--slow-seconds`; the time of both programs is proportional to the number of windows, so the time
for ten minutes is extrapolated. Ratios are of processor time; the lines also give wall-clock time.

In slow mode, the values agree within 1e-4. In fast mode, they cannot: torchmetrics computes the number of frames from
the samples instead of from the 400 Hz envelopes, so it averages over one more, partly empty frame than SRMRpy, and its
Hamming window is one sample longer. Our values equal those of SRMRpy in both modes (tests/audio/test_srmr.py); the
difference printed for fast mode comes from torchmetrics.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["PODEVAL_THREADS"] = "1"

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import soundfile
import soxr
from timing import by_turns

from podeval.audio.srmr import compute_srmr_windows

RATE, WINDOW, STRIDE, TEN_MINUTES = 16_000, 3, 2, 600
PACKAGES = ("torchmetrics", "torchaudio", "torch", "gammatone", "numpy", "scipy")
HELP = """The comparison needs torchmetrics, gammatone and torchaudio: {}.
They stay out of podeval's environment, where torchaudio does not fit the pinned torch; `make reference-packages`
unpacks them beside it."""


def torchmetrics_per_window() -> Callable[..., np.ndarray]:
    """Return the function of torchmetrics in a loop over windows."""
    sys.path.append(str(Path(sys.prefix) / "share" / "podeval" / "reference-packages"))
    try:
        versions = [f"{name} {version(name)}" for name in PACKAGES]
        import torch
        from torchmetrics.functional.audio import speech_reverberation_modulation_energy_ratio as reference
    except (PackageNotFoundError, ImportError, OSError) as error:
        sys.exit(HELP.format(error))
    print("Python " + sys.version.split()[0], *versions, sep=", ")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message=".*fast=True.*")

    def score(samples: np.ndarray, fast: bool) -> np.ndarray:
        starts = range(0, len(samples) - WINDOW * RATE + 1, STRIDE * RATE)
        windows = (torch.from_numpy(samples[start : start + WINDOW * RATE]) for start in starts)
        return np.array([reference(window, RATE, fast=fast).item() for window in windows])

    return score


def ours(samples: np.ndarray, fast: bool) -> np.ndarray:
    """Return our values in the same form."""
    return compute_srmr_windows(samples, RATE, WINDOW, STRIDE, fast=fast)[1]


def main() -> None:
    """Time both programs, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--seconds", type=int, default=TEN_MINUTES)
    parser.add_argument("--slow-seconds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    reference = torchmetrics_per_window()
    samples, rate = soundfile.read(options.recording, dtype="float32", always_2d=True)
    speech = soxr.resample(samples.mean(axis=1), rate, RATE)
    for fast, seconds in ((True, options.seconds), (False, options.slow_seconds)):
        mode = "fast" if fast else "slow"
        part = np.resize(speech, seconds * RATE)
        programs = {"ours": partial(ours, part, fast), "torchmetrics": partial(reference, part, fast)}
        found = by_turns(f"SRMR {mode}, {seconds} s", programs, options.turns, {"torchmetrics": 10})
        if seconds != TEN_MINUTES:
            windows = (TEN_MINUTES - WINDOW) // STRIDE + 1
            print(f"SRMR {mode}: {windows / len(found['ours']):.1f} times as much for {TEN_MINUTES} s (extrapolated)")
        difference = np.abs(found["torchmetrics"] / found["ours"] - 1)
        print(f"SRMR {mode}: relative difference at most {difference.max():.1e}, median {np.median(difference):.1e}")


if __name__ == "__main__":
    main()
