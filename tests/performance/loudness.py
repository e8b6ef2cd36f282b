"""Loudness side by side: integrated, true peak and range by ours and by the PodEval way, on ten minutes of 44.1 kHz."""

import time

import numpy as np

from podeval.audio.loudness import measure, measure_podeval

RATE, SECONDS = 44_100, 600


def main() -> None:
    """Print seconds of each and their ratio, taken by turns in one process."""
    noise = np.random.default_rng(0).normal(0, 0.1, (SECONDS * RATE, 1)).astype(np.float32)
    taken: dict[str, list[float]] = {"ours": [], "PodEval's way": []}
    for _ in range(2):
        for name, program in (("ours", measure), ("PodEval's way", measure_podeval)):
            start = time.perf_counter()
            program(noise, RATE)
            taken[name].append(time.perf_counter() - start)
    for name, times in taken.items():
        print(f"loudness of {SECONDS} s, {name}: {min(times):.2f} s")
    ratio = min(taken["PodEval's way"]) / min(taken["ours"])
    print(f"ratio {ratio:.1f}")


if __name__ == "__main__":
    main()
