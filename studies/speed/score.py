"""Compare `podeval.score` of one recording with the sum of its metrics, each measured separately.

    python studies/speed/score.py speech.wav [--text words.txt] [--seconds 600] [--threads 2] [--added]

Our side is one call with an empty cache. The other side is the sum of all metrics, each measured separately from the
file with an empty cache. With `--added`, the script also sums the times that the metrics add one after another on one
shared `Recording`; only parallel work can be faster than this sum. The target is at most 1.1 times the first sum. The
second call and the report are timed after the first call. Figures are processor and wall-clock seconds, with the models
loaded and warm on both sides; the words are repeated like the speech. Each line is printed as soon as it is known, so a
stopped measurement shows its results so far.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import soundfile
from loudness import stereo
from timing import keep

WANTED = 1.1
WARM_SECONDS = 20
FILE_RATE = 44_100


def processor() -> float:
    """Return the processor seconds of this process."""
    times = os.times()
    return times.user + times.system


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Run a function with an empty cache; return its processor and wall-clock seconds and its result."""
    from podeval.recording import cache

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PODEVAL_CACHE"] = folder
        cache.open_default_cache.cache_clear()
        start, wall = processor(), time.perf_counter()
        result = work()
        return processor() - start, time.perf_counter() - wall, result


def repeat_words(text: str, times: float) -> str:
    """Repeat the words this many times, the last time only as far as there is room."""
    words = text.split()
    return " ".join(words[number % len(words)] for number in range(round(len(words) * times)))


def one_after_another(path: Path, text: str | None, names: list[str]) -> dict[str, float]:
    """Return the processor seconds that each metric adds on one shared recording; each gets the inputs that
    `podeval.score` gives it.
    """
    from podeval.errors import PodevalError
    from podeval.measuring.compute import score_item
    from podeval.measuring.inputs import MetricInputs, read_request
    from podeval.metrics import catalogue
    from podeval.recording import Recording

    request = read_request(text=text)
    words = dict.fromkeys(("reference_text", "text", "passage", "script"), request.script) if text else {}
    inputs = MetricInputs({"recording": Recording.open(path), **words}, keep=True)
    seconds = {}
    for name in names:
        metric = catalogue.get(name)
        start = processor()
        # A metric that refuses these inputs is unscored in `podeval.score`.
        with contextlib.suppress(PodevalError):
            score_item(metric, {one: inputs[one] for one in request.names_for(metric)}, request.chosen_for(metric))
        seconds[name] = processor() - start
    return seconds


def score_alone(path: Path, text: str | None, name: str) -> None:
    """Score with one metric; a metric that refuses the inputs counts with the time that the refusal takes."""
    import podeval
    from podeval.errors import PodevalError

    with contextlib.suppress(PodevalError):
        podeval.score(path, text=text, metrics=name)


def compare_with_sum(whole: Path, text: str | None, seconds: int, added: bool) -> bool:
    """Print our time and that of the separate metrics; return whether the target is met."""
    import podeval

    def score_twice() -> tuple[Any, float, float]:
        scores = podeval.score(whole, text=text)
        began = time.perf_counter()
        podeval.score(whole, text=text)
        again = time.perf_counter() - began
        scores.report(whole.with_name("report.html"))
        return scores, again, time.perf_counter() - began - again

    both, both_wall, (scores, again, report) = timed(score_twice)
    ours, wall = both - again - report, both_wall - again - report
    threads, load = os.environ["PODEVAL_THREADS"], os.getloadavg()[0]
    print(f"{seconds} s of speech, threads: {threads}, load {load:.1f}; processor seconds, and wall")
    print(f"{'podeval.score':42}{ours:10.1f}{wall:10.1f}; again {again:.2f} s, the report {report:.1f} s", flush=True)
    alone = {}
    for name in scores.results:
        spent, took, _ = timed(lambda name=name: score_alone(whole, text, name))
        alone[name] = spent, took
        print(f"{name:42}{spent:10.1f}{took:10.1f}", flush=True)
    sums = [sum(column) for column in zip(*alone.values(), strict=True)]
    print(f"{'sum of the metrics by themselves':42}{sums[0]:10.1f}{sums[1]:10.1f}")
    print(f"{'times the sum':42}{ours / sums[0]:10.2f}{wall / sums[1]:10.2f} (wanted: at most {WANTED})", flush=True)
    if added:
        shared, _, each = timed(lambda: one_after_another(whole, text, list(alone)))
        print("\n".join(f"{name:42}{more:10.1f} added on one recording" for name, more in each.items()))
        print(f"{ours / shared:.2f} times the {shared:.1f} s that they add one after another on one recording")
    keep(f"podeval.score of {seconds} s", "its metrics, each by itself", ours, sums[0], sums[0] / ours, 1 / WANTED)
    return ours <= WANTED * sums[0] and wall <= WANTED * sums[1]


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--text", type=Path, help="what is said in it")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--added", action="store_true", help="also what metrics add one after another on one recording")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of both sides; by default one a core")
    options = parser.parse_args()
    # The module that is imported for the speech has set one thread.
    os.environ["PODEVAL_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import podeval

    samples = stereo(options.speech, options.seconds)
    text = options.text.read_text(encoding="utf-8") if options.text else None
    times = options.seconds / soundfile.info(str(options.speech)).duration
    with tempfile.TemporaryDirectory() as folder:
        whole, start = Path(folder) / "whole.wav", Path(folder) / "start.wav"
        soundfile.write(whole, samples, FILE_RATE, subtype="PCM_16")
        soundfile.write(start, samples[: WARM_SECONDS * FILE_RATE], FILE_RATE, subtype="PCM_16")
        timed(lambda: podeval.score(start, text=text))
        words = repeat_words(text, times) if text else None
        good = compare_with_sum(whole, words, options.seconds, options.added)
    sys.exit(not good)


if __name__ == "__main__":
    main()
