"""What the machine says of itself: which one it is, how fast it is, and how much of it others take."""

from __future__ import annotations

import math
import os
import platform
import time
from functools import cache
from pathlib import Path

_TRANSFORMS, _SAMPLES = 10, 1 << 16
_MOMENTS, _PAUSE = 5, 0.004
_REFERENCE = 0.0105
"""Seconds of one core of an AMD EPYC for the small work of `measure_speed`."""


@cache
def describe_machine() -> str:
    """Return the kind of this machine: its processor and the device of torch's models.

    Not the host's name, which is another one in each container.
    """
    gpu = "cuda" if Path("/dev/nvidia0").exists() else "cpu"
    return f"{_read_processor()}, {os.environ.get('PODEVAL_DEVICE') or gpu}"


def _read_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@cache
def measure_speed() -> float:
    """Return how many times as long a core of this machine takes as the one of which the first guesses are.

    It transforms some noise for a few hundredths of a second, and counts processor time, as what else runs has no part
    in the speed.
    """
    import numpy as np

    noise = np.random.default_rng(0).standard_normal(_SAMPLES)
    fastest = float("inf")
    for _ in range(3):
        began = time.thread_time()
        for _ in range(_TRANSFORMS):
            np.fft.rfft(noise)
        fastest = min(fastest, time.thread_time() - began)
    return min(20.0, max(0.2, fastest / _REFERENCE))


def measure_contention(own: int, working: int = 0) -> float:
    """Return how many times as long work of some threads takes because of the programs that run now; 1 if none does.

    Of the programs that run at a few moments and the mean of the last minute the geometric mean counts: a mean
    remembers what is over, and a moment may be an exception.

    Args:
        own: threads that are about to work.
        working: threads of this process that have worked in the last minute.
    """
    try:
        moments = []
        for _ in range(_MOMENTS):
            mean, *_, running, _ = Path("/proc/loadavg").read_text(encoding="ascii").split()
            # This thread is running as well.
            moments.append(int(running.partition("/")[0]) - 1)
            time.sleep(_PAUSE)
        others = math.sqrt(max(0.0, float(mean) - working) * max(0, sum(moments)) / _MOMENTS)
    except (OSError, ValueError):
        return 1.0
    # Where this process may use some of the cores, others are on all of them.
    cores = len(os.sched_getaffinity(0))
    return max(1.0, others / max(cores, os.cpu_count() or 1) + own / cores)
