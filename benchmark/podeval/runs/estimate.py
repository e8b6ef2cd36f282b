"""How long the rest of a run takes, of which items are spoken and measured, several at once.

What a run takes is guessed from what each metric's models take for a minute of audio (`scoring.estimate`), then known
from runs of the same metrics on this machine. The items that are finished say how much faster or slower it is. Between
two of them time passes as expected, until they are overdue. When the last item is measured, means and intervals are
still to be made, processes to be stopped and tables to be written, which belongs to the run as well.
"""

from __future__ import annotations

import hashlib
import math
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
_ENDING, _ENDING_NAME = 2.0, "end of a run"
"""Seconds from the last item to the end of the command, where no run has ended here yet."""
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
        self._guessed_ending = Pace(_ENDING * speed, 0.0)
        self._ending = self._timings.get(_ENDING_NAME, self._guessed_ending).expect(self._minutes, 1) * self._slower
        self._began = clock()
        self._kept = self._done = 0
        self._at = 0.0
        """Seconds from the beginning to the item that was finished last."""
        self._begun = [0.0] * self._workers
        """When the items were begun that are being measured, the oldest first."""

    def _measure_contention(self) -> float:
        return measure_contention(self._workers) if self._given is None else self._given

    def combine(self, title: str, done: int, total: int) -> ScoreProgress:
        """Take up that `done` of `total` pieces of a step are finished, and say how far the run is."""
        now = self._clock() - self._began
        if title == "measure" and done > self._done:
            self._begun = self._begun[done - self._done :]
            self._done, self._at = done, now
            if now < _AT_ONCE:
                self._kept, self._begun = done, []
            # Whoever has finished one begins the next.
            free = min(self._workers, self._count - done) - len(self._begun)
            self._begun += [now] * free
        return self.look(f"{title} {done}/{total}")

    def look(self, what: str) -> ScoreProgress:
        """Say how far the run is now."""
        now = self._clock() - self._began
        items = self._count - self._kept
        measuring = self._loading + items * self._each if items else 0.0
        whole = measuring + self._ending
        if self._done >= self._count:
            ending = max(self._ending / 4, self._ending - (now - self._at))
            return ScoreProgress(what, (whole - ending) / whole, ending)
        if self._each <= 0:
            # Judges alone measure, of whom nobody knows how long they take.
            return ScoreProgress(what, 0.0, None)
        fresh = self._done - self._kept
        of_one = self._workers * self._each
        faith = self._loading / 2 + _FAITH * self._each
        # Several are measured side by side, so the first of them says what all of them take.
        rounds = math.ceil(fresh / self._workers)
        rate = (self._at + faith) / (self._loading + rounds * of_one + faith) if fresh else 1.0
        loading = 0.0 if fresh else self._loading
        shares = [(now - begun) / ((loading + of_one) * rate) for begun in self._begun]
        if min(shares) > 1:
            # They are overdue.
            rate *= min(shares)
        shares = [min(1.0, share) for share in shares]
        reached = (self._loading if fresh else loading * sum(shares) / len(shares)) + fresh * self._each
        finished = reached + sum(shares) * self._each
        left = max(measuring - finished, (1 - min(shares)) * of_one, self._each / 4) * rate + self._ending
        # Of the first item nobody knows how much was loading.
        sure = self._known or fresh >= 2 * self._workers
        between = None if sure else (left / _SPAN, left * _SPAN)
        return ScoreProgress(what, min(1.0, finished / whole), left, between)

    def learn(self) -> None:
        """Keep how long the run took, if all of it was measured now, and how long its end took."""
        if self._done < self._count or not self._count:
            return
        # What else runs at the end, and at the beginning.
        slower = (self._slower + self._measure_contention()) / 2
        if not self._kept:
            self._timings.learn(self._name, self._at / slower, self._minutes, True, self._guess)
        ending = self._clock() - self._began - self._at
        self._timings.learn(_ENDING_NAME, ending / slower, self._minutes, True, self._guessed_ending)
        self._timings.save()
