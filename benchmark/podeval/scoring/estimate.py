"""How far the scoring of a recording is, and how long the rest will take.

Each job of a model takes about so many seconds for a minute of audio on two cores (docs/performance.md, the
recording of an hour); how much faster or slower this machine is, the jobs that are finished say. What is in the cache
takes no time and counts for neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podeval.progress import listen

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric

JOBS = {
    "transcriber": ("transcribing", 4.1),
    "speech_quality": ("DNSMOS", 2.2),
    "diarizer": ("finding speakers", 5.7),
    "naturalness": ("naturalness, windows", 2.2),
    "separator": ("separating", 1.0),
    "speaker_encoder": ("voices", 0.3),
    "audio_text": ("hearing", 3.0),
    "harmony": ("comparing speech and music", 3.0),
    "pesq_estimator": ("estimating PESQ", 3.0),
}
"""By job what it reports of itself, and seconds for a minute of audio."""

REST = 0.2
"""Seconds for a minute of audio that a metric takes beside its models."""

_ONLY_WITH_MUSIC = frozenset({"separator"})
_BESIDE_SCRIPT = frozenset({"diarizer"})
"""Jobs that are not done where a script says who speaks when."""


@dataclass(frozen=True)
class ScoreProgress:
    """How far it is.

    Attributes:
        what: is being done.
        done: share of the whole work, 0 to 1.
        left: seconds that the rest will take; None where that cannot be said yet.
    """

    what: str
    done: float
    left: float | None


class TimeEstimate:
    """Counts the work of some metrics on one recording.

    Args:
        metrics: that are to be scored.
        seconds: the recording lasts.
        has_turns: whether a script says who speaks when.
        tell: is told how far it is.
    """

    def __init__(
        self, metrics: Iterable[Metric], seconds: float, has_turns: bool, tell: Callable[[ScoreProgress], None]
    ) -> None:
        self._minutes, self._tell = seconds / 60, tell
        unused = _ONLY_WITH_MUSIC | (_BESIDE_SCRIPT if has_turns else set())
        self._metrics = list(metrics)
        jobs = {job for metric in self._metrics for job in metric.needs if job in JOBS and job not in unused}
        self._open = {JOBS[job][0]: JOBS[job][1] * self._minutes for job in jobs}
        self._open |= {metric.name: REST * self._minutes for metric in self._metrics}
        self._titles = {metric.name: {JOBS[job][0] for job in metric.needs if job in JOBS} for metric in self._metrics}
        self._finished: dict[str, float] = {}
        self._spent = 0.0
        self._running: tuple[str, float, float] | None = None
        """What is being done, since when, and its finished share."""

    @contextmanager
    def scoring(self, name: str) -> Iterator[None]:
        """Count what is reported while one metric is scored."""
        self._say(name)
        began = time.monotonic()
        with listen(self._hear):
            yield
        self._close_running()
        self._settle(name, time.monotonic() - began if not self._titles[name] else 0.0)
        for title in self._titles[name]:
            # Was in the cache, or is not needed for this recording.
            self._open.pop(title, None)
        self._say(name)

    def _hear(self, what: str, done: float, total: float) -> None:
        if self._running is None or self._running[0] != what:
            self._close_running()
            self._running = (what, time.monotonic(), 0.0)
            self._open.setdefault(what, 0.0)
        self._running = (what, self._running[1], min(1.0, done / total) if total else 1.0)
        self._say(what)

    def _close_running(self) -> None:
        if self._running is not None:
            what, began, _ = self._running
            self._running = None
            self._settle(what, time.monotonic() - began)

    def _settle(self, what: str, spent: float) -> None:
        """Count a piece of work as finished."""
        expected = self._open.pop(what, 0.0)
        self._finished[what] = self._finished.get(what, 0.0) + expected
        self._spent += spent if expected else 0.0

    def _say(self, what: str) -> None:
        share, began = (self._running[2], self._running[1]) if self._running else (0.0, 0.0)
        title = self._running[0] if self._running else ""
        current = self._open.get(title, 0.0)
        finished = sum(self._finished.values()) + share * current
        whole = sum(self._finished.values()) + sum(self._open.values())
        spent = self._spent + (time.monotonic() - began if current else 0.0)
        rate = spent / finished if finished > 0.02 * whole and spent > 0.2 else 1.0
        # The piece at work says itself how fast it is, as soon as it has come a little way.
        left = (whole - finished) * rate
        if current and share > 0.1:
            of_piece = (time.monotonic() - began) * (1 - share) / share
            left = of_piece + (sum(self._open.values()) - current) * rate
        self._tell(ScoreProgress(what, finished / whole if whole else 1.0, left if whole else None))
