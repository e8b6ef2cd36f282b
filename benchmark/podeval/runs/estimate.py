"""How long the rest of a run takes, of which items are spoken and measured, several at once.

What a run takes is guessed from what each metric's models take for a minute of audio (`scoring.estimate`), then known
from runs of the same metrics on this machine. The items that are finished say how much faster or slower it is. Between
two of them time passes as expected, until they are overdue.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from podeval.scoring.estimate import ScoreProgress, list_works
from podeval.scoring.machine import describe_machine, measure_contention, measure_speed
from podeval.scoring.timings import Pace, Timings

if TYPE_CHECKING:
    from podeval.benchmarks.benchmark import Item
    from podeval.metrics.declaration import Metric

WORDS_PER_MINUTE, CHARACTERS_PER_MINUTE = 150, 250
"""Of speech; characters where words have no spaces between them."""
_AT_ONCE = 2.0
"""Seconds within which an item is finished that was measured before."""
_FAITH = 0.3
"""How many items the expectation counts as beside those that are finished."""
_SPAN = 3.0
_OFTEN = 2
"""Runs after which it is known what they take: of a single one nobody knows what else ran meanwhile."""


def estimate_minutes(item: Item) -> float:
    """Return how long an item's audio will be, by the words of its script."""
    if item.script is None:
        return 1.0
    text = item.script.text
    spaced = item.language != "zh"
    return max(0.1, len(text.split()) / WORDS_PER_MINUTE if spaced else len(text) / CHARACTERS_PER_MINUTE)


class RunEstimate:
    """Estimates a run.

    Args:
        minutes: of audio of each item.
        metrics: that are measured.
        workers: how many items are measured at once.
        system: who speaks.
        timings: of earlier runs.
        clock: the time in seconds.
        slower: how many times as long everything takes because of what else runs.
        speed: how many times as long a core takes than was guessed.
    """

    def __init__(
        self,
        minutes: Sequence[float],
        metrics: Iterable[Metric],
        workers: int,
        system: str,
        *,
        timings: Timings | None = None,
        clock: Callable[[], float] = time.monotonic,
        slower: float | None = None,
        speed: float | None = None,
    ) -> None:
        self._minutes, self._workers, self._clock = sum(minutes), max(1, min(workers, len(minutes))), clock
        self._count = len(minutes)
        self._timings = timings or Timings(machine=f"{describe_machine()}, runs")
        self._given = slower
        self._slower = self._measure_contention()
        speed = measure_speed() if speed is None else speed
        metrics = list(metrics)
        names = hashlib.sha256(" ".join(sorted(metric.name for metric in metrics)).encode()).hexdigest()[:12]
        self._name = f"{system}, metrics {names}, {self._workers} at once"
        works = list_works(metrics, True).values()
        loading = sum(work.loading + work.preparing for work in works) * speed
        self._guess = Pace(loading, sum(work.seconds for work in works) * speed / self._workers)
        self._known = self._timings.count(self._name) >= _OFTEN
        pace = self._timings.get(self._name, self._guess)
        self._loading = pace.loading * self._slower
        self._each = pace.per_minute * self._minutes / max(1, self._count) * self._slower
        self._began = clock()
        self._kept = self._done = 0
        self._at = 0.0
        """Seconds from the beginning to the item that was finished last."""

    def _measure_contention(self) -> float:
        return measure_contention(self._workers) if self._given is None else self._given

    def combine(self, title: str, done: int, total: int) -> ScoreProgress:
        """Take up that `done` of `total` pieces of a step are finished, and say how far the run is."""
        now = self._clock() - self._began
        if title == "measure" and done > self._done:
            self._done, self._at = done, now
            if now < _AT_ONCE:
                self._kept = done
        return self.look(f"{title} {done}/{total}")

    def look(self, what: str) -> ScoreProgress:
        """Say how far the run is now."""
        now = self._clock() - self._began
        items = self._count - self._kept
        whole = self._loading + items * self._each
        if items and whole <= 0:
            return ScoreProgress(what, 0.0, None)
        if not items or self._done >= self._count:
            return ScoreProgress(what, 1.0, None)
        fresh = self._done - self._kept
        reached = self._loading + fresh * self._each if fresh else 0.0
        faith = self._loading / 2 + _FAITH * self._each
        rate = (self._at + faith) / (reached + faith) if fresh else 1.0
        # The next items are on their way, as far as the time since the last ones brings them.
        coming = self._loading + min(items, fresh + self._workers) * self._each
        finished = reached + (now - (self._at if fresh else 0.0)) / rate
        if finished > coming:
            # They are overdue.
            rate *= finished / coming
            finished = coming
        least = self._each / 4 * rate
        left = max(least, (whole - finished) * rate)
        # Of the first item nobody knows how much was loading.
        sure = self._known or fresh >= 2 * self._workers
        between = None if sure else (left / _SPAN, left * _SPAN)
        return ScoreProgress(what, min(1.0, finished / whole), left, between)

    def learn(self) -> None:
        """Keep how long the run took, if all of it was measured now."""
        if self._done == self._count and not self._kept and self._count:
            # What else runs at the end, and at the beginning.
            slower = (self._slower + self._measure_contention()) / 2
            self._timings.learn(self._name, self._at / slower, self._minutes, True, self._guess)
            self._timings.save()
