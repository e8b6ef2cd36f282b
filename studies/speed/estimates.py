"""Estimates of `podeval score` on real recordings: what was told, and what it took.

    python studies/speed/estimates.py a.wav [b.wav ...] [--text words.json] [--metrics a,b] [--record FILE.json]

Scores the recordings in this process, one after the other, and prints for each how many seconds each estimate told in
all (what had passed and what was left), as a share of what it took: at the start, and the least and the most of those
after a fifth of the time. `--record` keeps when each piece of work reported what, for
`tests/scoring/test_recorded_paces.py`, which plays it back with a clock set by hand.
"""

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STEP = 0.04
"""Share of a piece of work between two reports that are kept."""


def main() -> None:
    """Score, print and record."""
    import podeval
    from podeval.scoring import engine, estimate

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--text")
    parser.add_argument("--metrics")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    recorded: list[dict[str, Any]] = []

    class Recorded(estimate.TimeEstimate):
        """Writes down what it hears."""

        def __init__(self, metrics: Any, seconds: float, has_turns: bool, tell: Any, **settings: Any) -> None:
            self.events: list[Any] = []
            self.threads: dict[int, int] = {}
            self.told: list[tuple[float, Any]] = []
            self.began = time.monotonic()
            self.shares: dict[tuple[int, str], float] = {}
            loaded = set(estimate.loaded_works)

            def tell_and_keep(progress: Any) -> None:
                self.told.append((time.monotonic() - self.began, progress))
                tell(progress)

            super().__init__(metrics, seconds, has_turns, tell_and_keep, **settings)
            recorded.append(
                {
                    "metrics": [metric.name for metric in metrics],
                    "seconds": round(seconds, 2),
                    "has_turns": has_turns,
                    "side_by_side": settings["side_by_side"],
                    "cores": self._cores,
                    "kept": sorted(settings["kept"]),
                    "loaded": sorted(loaded),
                    "slower": round(self._slower, 3),
                    "events": self.events,
                }
            )
            recorded[-1]["estimate"] = self

        def note(self, kind: str, *details: Any) -> None:
            thread = self.threads.setdefault(threading.get_ident(), len(self.threads))
            self.events.append([round(time.monotonic() - self.began, 2), thread, kind, *details])

        @contextmanager
        def scoring(self, name: str) -> Iterator[None]:
            self.note("begin", name)
            with super().scoring(name):
                yield
            self.note("end", name)

        def _hear(self, scoring: Any, what: str, done: float, total: float) -> None:
            share, key = min(1.0, done / total) if total else 1.0, (id(scoring), what)
            before = self.shares.get(key)
            if before is None or share == 1 or not before <= share < before + STEP:
                self.shares[key] = share
                self.note("report", what, round(share, 4))
            super()._hear(scoring, what, done, total)

        def learn(self) -> None:
            recorded[-1]["took"] = round(time.monotonic() - self.began, 2)
            self._after = self._contention_after()
            recorded[-1]["after"] = round(self._after, 3)
            recorded[-1]["taken"] = {name: round(seconds, 2) for name, seconds in self._taken.items()}
            super().learn()

    engine.TimeEstimate = Recorded  # type: ignore[misc]
    wait = estimate.MetricScoring.wait

    def wait_and_note(scoring: Any, seconds: float) -> None:
        recorded[-1]["estimate"].note("wait", round(seconds, 2))
        wait(scoring, seconds)

    estimate.MetricScoring.wait = wait_and_note  # type: ignore[method-assign]
    for path in options.recordings:
        count = len(recorded)
        began = time.monotonic()
        podeval.score(path, text=options.text, metrics=options.metrics)
        took = time.monotonic() - began
        if len(recorded) == count:
            print(f"{path}: {took:.1f} s, nothing to estimate")
            continue
        entry = recorded[-1]
        told = entry.pop("estimate").told
        after = [(at, progress.left) for at, progress in told if progress.left is not None and at >= entry["took"] / 5]
        late = [(at + left) / entry["took"] for at, left in after]
        first = told[0][1]
        between = first.between and [round(seconds, 1) for seconds in first.between]
        print(
            f"{path}: {entry['seconds']:.0f} s of audio took {entry['took']:.1f} s ({took:.1f} in all), "
            f"told at the start {first.left:.1f} {between or ''}: {first.left / entry['took']:.2f}; after a fifth "
            f"{min(late):.2f} to {max(late):.2f}; slower {entry['slower']}, then {entry['after']}"
        )
    if options.record:
        before = json.loads(options.record.read_text()) if options.record.exists() else []
        options.record.write_text(json.dumps(before + recorded, separators=(",", ":")))


if __name__ == "__main__":
    main()
