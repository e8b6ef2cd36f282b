"""How far the scoring of a recording is, and how long the rest will take.

Each model's work takes about so many seconds for a minute of audio: first guessed (`JOBS`, one core of an AMD EPYC),
then known from what was scored on this machine before (`scoring.timings`). Programs that share the cores at the start
make it slower by as much; how much faster or slower it is than that, the pieces that are finished say. What is in the
cache takes no time and counts for nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from podeval.models.threads import threads
from podeval.progress import listen
from podeval.scoring.timings import Timings

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric


@dataclass(frozen=True)
class Work:
    """The work of a model.

    Attributes:
        title: what it reports of itself.
        seconds: of one core, for a minute of audio.
        spreads: whether it uses all the cores that it may.
    """

    title: str
    seconds: float
    spreads: bool = False


JOBS = {
    "transcriber": Work("transcribing", 6.0, spreads=True),
    "speech_quality": Work("DNSMOS", 2.0, spreads=True),
    "diarizer": Work("finding speech", 1.3),
    "segmentation": Work("finding overlaps", 0.4),
    "music_detector": Work("looking for music", 0.3),
    "naturalness": Work("naturalness, windows", 3.1, spreads=True),
    "separator": Work("separating", 3.0),
    "speaker_encoder": Work("voices", 0.6, spreads=True),
    "audio_text": Work("hearing", 6.0),
    "harmony": Work("comparing speech and music", 6.0),
    "pesq_estimator": Work("estimating PESQ", 6.0),
}
"""By job the work of its model."""

METRICS = {"integrity": 0.8, "pace": 1.5, "content_errors": 0.5, "turn_taking": 0.3}
"""Seconds of one core for a minute of audio that metrics take beside the work of `JOBS`; others take `OTHERS`."""

OTHERS = 0.1

_ONLY_WITH_MUSIC = frozenset({"separator"})
_BESIDE_SCRIPT = frozenset({"diarizer"})
"""Jobs that are not done where a script says who speaks when."""
_FAITH = 0.05
"""Share of the whole as which the expectation counts beside what was measured."""
_SHOWS_ITS_PACE = 0.1
"""Share of a piece after which it is believed itself how long it takes."""


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


@dataclass(eq=False)
class _Scoring:
    """One metric that is being scored.

    Attributes:
        metric: its name.
        piece: of work, at hand.
        began: when the piece was begun.
        last: when anything was reported.
        share: of the piece, finished.
        of_pieces: seconds of its pieces that are counted by their titles.
    """

    metric: str
    piece: str
    began: float
    last: float
    share: float = 0.0
    of_pieces: float = 0.0


class TimeEstimate:
    """Counts the work of some metrics on one recording.

    Args:
        metrics: that are to be scored.
        seconds: the recording lasts.
        has_turns: whether a script says who speaks when.
        tell: is told how far it is, by one thread at a time.
        side_by_side: how many metrics are scored at once.
        timings: of earlier recordings.
        clock: the time in seconds.
        slower: how many times as long everything takes because of what else runs; by default what the machine says.
    """

    def __init__(
        self,
        metrics: Iterable[Metric],
        seconds: float,
        has_turns: bool,
        tell: Callable[[ScoreProgress], None],
        *,
        side_by_side: int = 1,
        timings: Timings | None = None,
        clock: Callable[[], float] = time.monotonic,
        slower: float | None = None,
    ) -> None:
        self._minutes, self._tell, self._clock = seconds / 60, tell, clock
        self._timings = timings or Timings()
        self._side_by_side = side_by_side
        self._slower = measure_contention(threads()) if slower is None else slower
        self._cores = max(1, threads() // side_by_side)
        unused = _ONLY_WITH_MUSIC | (_BESIDE_SCRIPT if has_turns else set())
        self._titles = {metric.name: {JOBS[job].title for job in metric.needs if job in JOBS} for metric in metrics}
        jobs = {job for metric in metrics for job in metric.needs if job in JOBS and job not in unused}
        self._open = {JOBS[job].title: self._expect(JOBS[job]) for job in jobs}
        self._open |= {name: self._expect(Work(name, METRICS.get(name, OTHERS))) for name in self._titles}
        self._known = set(self._open)
        self._whole = sum(self._open.values())
        self._finished = 0.0
        """Expected seconds of what is finished."""
        self._taken: dict[str, float] = {}
        """Seconds that pieces of work took."""
        self._running: list[_Scoring] = []
        self._lock, self._telling = Lock(), Lock()

    def _expect(self, work: Work) -> float:
        """How many seconds a piece of work will take in its thread."""
        cores = self._cores if work.spreads else 1
        seconds = self._timings.get(self._name(work.title, cores), work.seconds / cores)
        return seconds * self._minutes * self._slower

    def _name(self, title: str, cores: int) -> str:
        return title if cores == 1 else f"{title} on {cores} cores"

    @contextmanager
    def scoring(self, name: str) -> Iterator[None]:
        """Count what is reported while one metric is scored."""
        began = self._clock()
        work = _Scoring(name, name, began, began)
        with self._lock:
            self._running.append(work)
        self._say(name)
        try:
            with listen(lambda what, done, total: self._hear(work, what, done, total)):
                yield
        finally:
            with self._lock:
                self._close_piece(work)
                self._running.remove(work)
        with self._lock:
            self._settle(name, max(0.0, self._clock() - began - work.of_pieces))
            others = {title for other in self._running for title in self._titles[other.metric]}
            for title in self._titles[name] - others:
                # Was in the cache, or is not needed for this recording.
                self._whole -= self._open.pop(title, 0.0)
        self._say(name)

    def learn(self) -> None:
        """Keep how long everything took, for the next estimate."""
        spread = {work.title for work in JOBS.values() if work.spreads}
        taken = {
            self._name(name, self._cores if name in spread else 1): seconds / self._slower
            for name, seconds in self._taken.items()
        }
        self._timings.learn(taken, self._minutes)

    def _hear(self, work: _Scoring, what: str, done: float, total: float) -> None:
        with self._lock:
            if work.piece != what:
                # Whatever is reported first was begun when the last was over.
                self._close_piece(work)
                work.piece = what
            work.last = self._clock()
            work.share = min(1.0, done / total) if total else 1.0
        self._say(what)

    def _close_piece(self, work: _Scoring) -> None:
        """Count the piece at hand as finished; one that nobody expected is a part of its metric's own work."""
        if work.piece != work.metric and work.piece in self._known:
            spent = work.last - work.began
            work.of_pieces += spent
            self._settle(work.piece, spent)
        work.piece, work.began, work.share = work.metric, work.last, 0.0

    def _settle(self, what: str, spent: float) -> None:
        """Count a piece of work as finished."""
        self._finished += self._open.pop(what, 0.0)
        self._taken[what] = self._taken.get(what, 0.0) + spent

    def _say(self, what: str) -> None:
        with self._lock:
            now = self._clock()
            finished, spent = self._finished, sum(self._taken.values())
            for work in self._running:
                if work.share:
                    finished += work.share * self._open.get(work.piece, 0.0)
                    spent += now - work.began if work.piece in self._open else 0.0
            faith = _FAITH * self._whole
            rate = (spent + faith) / (finished + faith) if self._whole else 1.0
            left = (self._whole - finished) * rate
            # The piece at work says itself how fast it is, as soon as it has come a little way.
            longest = 0.0
            for work in self._running:
                if work.share > _SHOWS_ITS_PACE and work.piece in self._open:
                    rest = (now - work.began) * (1 - work.share) / work.share
                    left += rest - (1 - work.share) * self._open.get(work.piece, 0.0) * rate
                    longest = max(longest, rest)
            left = max(longest, left / self._side_by_side)
            done = min(1.0, finished / self._whole) if self._whole else 1.0
            progress = ScoreProgress(what, done, left if self._whole else None)
        with self._telling:
            self._tell(progress)


def measure_contention(own: int) -> float:
    """Return how many times as long work of some threads takes because of the programs that run now; 1 if none does.

    Of the programs that are running and the mean of the last minute the smaller counts: a mean remembers what is over,
    and a moment may be an exception.

    Args:
        own: threads that are about to work.
    """
    try:
        mean, *_, running, _ = Path("/proc/loadavg").read_text(encoding="ascii").split()
        # This thread is running as well.
        others = min(float(mean), int(running.partition("/")[0]) - 1)
    except (OSError, ValueError):
        return 1.0
    return max(1.0, (others + own) / len(os.sched_getaffinity(0)))
