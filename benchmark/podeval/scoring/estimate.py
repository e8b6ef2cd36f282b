"""How far the scoring of a recording is, and how long the rest will take.

Each piece of work takes some seconds once in a process (its model is loaded) and some for a minute of audio: first
guessed (`JOBS`, one core of an AMD EPYC) and multiplied by how much slower a core of this machine is, then known from
what was scored here before (`scoring.timings`). Programs that share the cores at the start make it slower by as much;
how much faster or slower it is than that, the pieces that are finished say. What is in the cache takes no time and
counts for nothing. While little of the work was ever timed here, a range is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from podeval.models.threads import limit_threads
from podeval.progress import PREPARING, listen
from podeval.scoring.machine import describe_machine, measure_contention, measure_speed
from podeval.scoring.timings import Pace, Timings

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric


@dataclass(frozen=True)
class Work:
    """A piece of work, as it is guessed.

    Attributes:
        title: what it reports of itself.
        seconds: of one core, for a minute of audio.
        loading: seconds until it begins, once in a process.
        spreads: whether it uses all the cores that it may.
        preparing: seconds more until it begins, where it was never done on this machine.
    """

    title: str
    seconds: float
    loading: float = 0.5
    spreads: bool = False
    preparing: float = 0.0


JOBS = {
    "transcriber": Work("transcribing", 5.8, 2.0, spreads=True),
    "speech_quality": Work("DNSMOS", 2.2, 0.5, spreads=True),
    "diarizer": Work("finding speech", 0.8, 1.0),
    "segmentation": Work("finding overlaps", 0.4),
    "music_detector": Work("looking for music", 0.3, 1.0),
    "naturalness": Work("naturalness, windows", 3.1, 1.0, spreads=True, preparing=4.0),
    "separator": Work("separating", 3.0, 1.0),
    "speaker_encoder": Work("voices", 0.6, 1.0, spreads=True, preparing=4.0),
    "audio_text": Work("hearing", 6.0, 2.0),
    "harmony": Work("comparing speech and music", 6.0, 2.0),
    "pesq_estimator": Work("estimating PESQ", 6.0, 2.0),
}
"""By job the work of its model."""

ALSO = {"diarizer": (Work("finding speakers", 1.0, 1.0),)}
"""By job what comes with the work of its model."""

_PITCH = (Work("following pitch", 0.9, 5.0),)
STEPS = {"pace": _PITCH, "dialogue_naturalness": _PITCH}
"""By metric the steps of its own that it reports."""

METRICS = {"integrity": 1.5, "pace": 0.2, "content_errors": 0.5, "turn_taking": 0.3}
"""Seconds of one core for a minute of audio that metrics take beside all that; others take `OTHERS`."""

OTHERS = 0.1
OTHERS_LOADING = 0.2

SHORTEST = {"pace": 40.0, "dialogue_naturalness": 8.0}
"""Seconds below which metrics refuse a recording before any model is asked."""

_WORDS_BY_SCRIPT, _OF_WORDS = frozenset({"sptd", "timbre_consistency", "integrity", "turn_taking"}), {"transcriber"}
"""Metrics that have words transcribed only where a script says who speaks them."""
_ONLY_WITH_MUSIC = frozenset({"separator"})
_BESIDE_SCRIPT = frozenset({"diarizer"})
"""Jobs that a metric which takes a script does not have done where a script says who speaks when."""
_FAITH = 0.2
"""Share of the whole as which the expectation counts beside what was measured."""
_OFTEN = 2
"""Times after which it is known how long a piece of work takes; of the first nobody knows how much was loading."""
_LIBRARIES_LOADED = 0.4
"""Share of a model's loading that is left where the process has worked with others, whose libraries it shares."""
_SHOWS_ITS_PACE = 0.1
"""Share of a piece after which it is believed itself how long it takes."""
_SURE = 0.5
"""Share of the work that has been timed, now or before, from which on one number is told and no range."""
_SPAN = 3.0
"""How many times shorter or longer it may be while less is known."""

loaded_works: set[str] = set()
"""The pieces of work that this process has done, so that nothing is loaded for them again."""


@dataclass(frozen=True)
class ScoreProgress:
    """How far it is.

    Attributes:
        what: is being done.
        done: share of the whole work, 0 to 1.
        left: seconds that the rest will take; None where that cannot be said yet.
        between: the least and the most that the rest may take, while little is known; None as soon as `left` is good.
        whole: seconds that all of it would take once more, with everything loaded.
    """

    what: str
    done: float
    left: float | None
    between: tuple[float, float] | None = None
    whole: float | None = None


@dataclass(eq=False)
class MetricScoring:
    """One metric that is being scored.

    Attributes:
        metric: its name.
        piece: of work, at hand.
        began: when the piece was begun.
        last: when anything was reported.
        share: of the piece, finished.
        first: the share of the piece that was reported first, and when: what was before was loading, too.
        waited: seconds for what another thread computes, since the piece was begun.
        heard: of these, what was before the last report.
        apart: seconds of its pieces that are counted by their titles, and all that it waited before.
    """

    metric: str
    piece: str
    began: float
    last: float
    share: float = 0.0
    first: tuple[float, float] | None = None
    waited: float = 0.0
    heard: float = 0.0
    apart: float = 0.0

    def wait(self, seconds: float) -> None:
        """Take up that its thread waited for what another computes."""
        self.waited += seconds

    def rest(self, now: float) -> float | None:
        """Seconds that the piece still takes at its own pace; None while it has not shown it."""
        if self.first is None or self.share - self.first[0] <= _SHOWS_ITS_PACE:
            return None
        return (now - self.first[1]) / (self.share - self.first[0]) * (1 - self.share)


class TimeEstimate:
    """Counts the work of some metrics on one recording.

    Args:
        metrics: that are to be scored.
        seconds: the recording lasts.
        has_turns: whether a script says who speaks when.
        tell: is told how far it is, by one thread at a time.
        side_by_side: how many metrics are scored at once.
        profile: whose models.
        kept: titles of the pieces whose results are in the cache.
        loaded: titles of the pieces that nothing is loaded for; what the process has done by default.
        timings: of earlier recordings.
        clock: the time in seconds.
        slower: how many times as long everything takes because of what else runs; by default what the machine says.
        speed: how many times as long a core takes than was guessed; by default what the machine shows.
        after: as `slower`, when everything is scored.
    """

    def __init__(
        self,
        metrics: Iterable[Metric],
        seconds: float,
        has_turns: bool,
        tell: Callable[[ScoreProgress], None],
        *,
        side_by_side: int = 1,
        profile: str = "embedded",
        kept: Collection[str] = (),
        loaded: set[str] | None = None,
        timings: Timings | None = None,
        clock: Callable[[], float] = time.monotonic,
        slower: float | None = None,
        speed: float | None = None,
        after: float | None = None,
    ) -> None:
        self._minutes, self._tell, self._clock = seconds / 60, tell, clock
        self._timings = timings or Timings(machine=f"{describe_machine()}, {profile}")
        self._loaded = loaded_works if loaded is None else loaded
        self._side_by_side = side_by_side
        self._slower = measure_contention(limit_threads()) if slower is None else slower
        self._speed = measure_speed() if speed is None else speed
        self._after = after
        self._cores = max(1, limit_threads() // side_by_side)
        self._works = list_works(metrics := list(metrics), has_turns, seconds)
        self._titles = {
            metric.name: set(list_works([metric], has_turns, seconds)) - {metric.name} for metric in metrics
        }
        self._open = {title: self._expect(work, True) for title, work in self._works.items() if title not in kept}
        self._preparing = {title: seconds for title in self._open if (seconds := self._expect_preparing(title))}
        self._whole = sum(self._open.values()) + sum(self._preparing.values())
        self._again = {title: self._expect(self._works[title], False) for title in self._open}
        known = (title for title in self._open if self._count_times(self._works[title]) >= _OFTEN)
        self._timed_before = sum(self._open[title] for title in known)
        self._finished = 0.0
        """Expected seconds of what is finished."""
        self._taken: dict[str, float] = {}
        """Seconds that pieces of work took."""
        self._spent_preparing = self._share = 0.0
        self.complete: set[str] = set()
        """Titles of the pieces that were seen to their end."""
        self._running: list[MetricScoring] = []
        self._lock, self._telling = Lock(), Lock()

    def _guess(self, work: Work) -> Pace:
        cores = self._cores if work.spreads else 1
        on_one = Pace(work.loading * self._speed, work.seconds * self._speed)
        if cores > 1:
            # What it took on one core says more than a guess.
            on_one = self._timings.get(work.title, on_one)
        return Pace(on_one.loading, on_one.per_minute / cores)

    def _expect(self, work: Work, may_load: bool) -> float:
        """How many seconds a piece of work will take in its thread."""
        loads = self._loads(work.title) if may_load else 0.0
        return self._timings.get(self._name(work), self._guess(work)).expect(self._minutes, loads) * self._slower

    def _loads(self, title: str) -> float:
        """How much of a piece's loading is to be done in this process."""
        return 0.0 if title in self._loaded else _LIBRARIES_LOADED if self._loaded else 1.0

    def _expect_loading(self, metric: str) -> float:
        """How many seconds of what is left of a metric's work are loading and preparing."""
        titles = [title for title in (*self._titles[metric], metric) if title in self._open]
        loading = sum(self._open[title] - self._again[title] for title in titles)
        return loading + sum(self._preparing.get(title, 0.0) for title in titles)

    def _expect_preparing(self, title: str) -> float:
        """How many seconds it takes until a model can be loaded that was never used on this machine."""
        work = self._works[title]
        unknown = title not in self._loaded and not self._count_times(work)
        return work.preparing * self._speed * self._slower * unknown

    def _count_times(self, work: Work) -> int:
        """How often a piece of work was timed here, on any number of cores."""
        return sum(self._timings.count(name) for name in {work.title, self._name(work)})

    def _name(self, work: Work) -> str:
        return f"{work.title} on {self._cores} cores" if work.spreads and self._cores > 1 else work.title

    @contextmanager
    def scoring(self, name: str) -> Iterator[None]:
        """Count what is reported while one metric is scored."""
        began = self._clock()
        scoring = MetricScoring(name, name, began, began)
        with self._lock:
            self._running.append(scoring)
        self._say(name)
        try:
            with listen(partial(self._hear, scoring), scoring.wait):
                yield
        finally:
            with self._lock:
                self._close_piece(scoring)
                self._running.remove(scoring)
        with self._lock:
            self._settle(name, max(0.0, self._clock() - began - scoring.apart - scoring.waited))
            others = {title for other in self._running for title in self._titles[other.metric]}
            for title in self._titles[name] - others:
                # Was in the cache, or is not needed for this recording.
                if (expected := self._open.pop(title, None)) is not None:
                    self._whole -= expected
                    self._whole -= self._preparing.pop(title, 0.0)
                    del self._again[title]
        self._say(name)

    def learn(self) -> None:
        """Keep how long everything took, for the next estimate."""
        slower = (self._slower + self._contention_after()) / 2
        for title, seconds in self._taken.items():
            work, loads = self._works[title], self._loads(title)
            self._timings.learn(self._name(work), seconds / slower, self._minutes, loads, self._guess(work))
        self._loaded.update(self._taken)
        self._timings.save()

    def _contention_after(self) -> float:
        return measure_contention(limit_threads(), working=limit_threads()) if self._after is None else self._after

    def _hear(self, scoring: MetricScoring, what: str, done: float, total: float) -> None:
        with self._lock:
            if scoring.piece != what:
                # Whatever is reported first was begun when the last was over.
                self._close_piece(scoring)
                scoring.piece = what
                # A model whose work begins needs no preparing any more.
                self._whole -= self._preparing.pop(what, 0.0)
            scoring.last, scoring.heard = self._clock(), scoring.waited
            scoring.share = min(1.0, done / total) if total else 1.0
            scoring.first = scoring.first or (scoring.share, scoring.last)
        self._say(what)

    def _close_piece(self, scoring: MetricScoring) -> None:
        """Count the piece at hand as finished; one that nobody expected is a part of its metric's own work."""
        if scoring.piece != scoring.metric and scoring.piece in self._works:
            spent = max(0.0, scoring.last - scoring.began - scoring.heard)
            scoring.apart += spent + scoring.heard
            scoring.waited -= scoring.heard
            scoring.heard = 0.0
            self._settle(scoring.piece, spent)
            if scoring.share >= 1:
                self.complete.add(scoring.piece)
        elif scoring.piece == PREPARING:
            # Is done once on a machine, and nobody's own work.
            scoring.apart += scoring.last - scoring.began
            self._spent_preparing += scoring.last - scoring.began
            for title in self._titles[scoring.metric] & self._preparing.keys():
                self._finished += self._preparing.pop(title)
                break
        scoring.piece, scoring.began, scoring.share, scoring.first = scoring.metric, scoring.last, 0.0, None

    def _settle(self, what: str, spent: float) -> None:
        """Count a piece of work as finished."""
        self._finished += self._open.pop(what, 0.0)
        self._taken[what] = self._taken.get(what, 0.0) + spent

    def _say(self, what: str) -> None:
        with self._lock:
            progress = self._estimate(what)
        with self._telling:
            self._tell(progress)

    def _estimate(self, what: str) -> ScoreProgress:
        """Say how far it is."""
        if self._whole <= 0:
            return ScoreProgress(what, 1.0, None)
        now = self._clock()
        finished, spent = self._finished, sum(self._taken.values()) + self._spent_preparing
        for scoring in self._running:
            if scoring.share and scoring.piece in self._open:
                finished += scoring.share * self._open[scoring.piece]
                spent += now - scoring.began - scoring.waited
            else:
                # Nothing is heard while a model is loaded; the time passes all the same.
                passed = max(0.0, now - scoring.began - scoring.waited)
                finished += min(passed, self._expect_loading(scoring.metric))
                spent += passed
        faith = _FAITH * self._whole
        rate = (spent + faith) / (finished + faith)
        left = (self._whole - finished) * rate
        # The piece at work says itself how fast it is, as soon as it has come a little way.
        waiting = dict(self._open)
        longest = 0.0
        for scoring in self._running:
            expected = waiting.pop(scoring.piece, None)
            if expected is not None and (rest := scoring.rest(now)) is not None:
                left += rest - (1 - scoring.share) * expected * rate
                longest = max(longest, rest)
            elif expected is not None:
                longest = max(longest, (1 - scoring.share) * expected * rate)
        longest = max([longest, *(rate * seconds for seconds in waiting.values())])
        left = max(longest, left / self._side_by_side, 0.0)
        share = self._share = max(self._share, min(1.0, finished / self._whole))
        sure = (self._timed_before + finished) / self._whole >= _SURE
        between = None if sure else (left / _SPAN, left * _SPAN)
        return ScoreProgress(what, share, left, between, sum(self._again.values()) / self._side_by_side * rate)


def list_works(metrics: Iterable[Metric], has_turns: bool, seconds: float = 600.0) -> dict[str, Work]:
    """Return the pieces of work of some metrics by title, as they are guessed.

    Args:
        metrics: to be scored.
        has_turns: whether a script says who speaks when.
        seconds: the recording lasts.
    """
    works: dict[str, Work] = {}
    for metric in metrics:
        works[metric.name] = Work(metric.name, METRICS.get(metric.name, OTHERS), OTHERS_LOADING)
        if seconds < SHORTEST.get(metric.name, 0.0):
            continue
        left_out = _ONLY_WITH_MUSIC | (_BESIDE_SCRIPT if has_turns and "script" in metric.optional_inputs else set())
        if metric.name in _WORDS_BY_SCRIPT and not has_turns:
            left_out |= _OF_WORDS
        for job in metric.needs:
            if job in JOBS and job not in left_out:
                works |= {work.title: work for work in (JOBS[job], *ALSO.get(job, ()))}
        works |= {work.title: work for work in STEPS.get(metric.name, ())}
    return works
