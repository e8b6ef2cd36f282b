"""What is told of the time that is left: nothing until it can be known, then a range that becomes narrower.

Three answers are compared: what is expected of the work that is left, the pace of all that was done, and the pace of
its latest third, so that a load that changes is followed. As far as they differ nobody knows better, so the least and
the most of them are told, each a quarter further.
"""

from __future__ import annotations

from podeval.progress import PREPARING
from podeval.scoring.estimate import ScoreProgress

LEAST_DONE = 0.2
"""Share of the work before which nothing is told."""
_WIDER = 1.25
_LAST = 2.0
"""Seconds that printing and writing take at the end."""
_STANDS_STILL = 0.1
"""Share of the time for which nothing was finished, after which a model is being loaded, and nobody knows how long."""
_FARTHEST = 3.0
"""How many times shorter or longer than what is expected a pace may make it."""
_LATEST = 1 / 3
_LEAST_STEP = 0.02


class TimeLeft:
    """Follows how far some work is, and says how long the rest will take."""

    def __init__(self) -> None:
        self._shares = [(0.0, 0.0)]
        """Seconds since the beginning, and what was done then, each time that it was more."""
        self._progress: ScoreProgress | None = None
        self._heard = 0.0

    def hear(self, progress: ScoreProgress, now: float) -> None:
        """Take up how far it is, some seconds after the beginning."""
        if progress.done > self._shares[-1][1]:
            self._shares.append((now, progress.done))
        elif progress.done < self._shares[-1][1]:
            # It was thought to be further than it is.
            self._shares = [(at, min(share, progress.done)) for at, share in self._shares]
        self._progress, self._heard = progress, now

    def tell(self, now: float) -> tuple[float, float] | None:
        """Return the least and the most seconds that are left; None while that cannot be known."""
        progress = self._progress
        if progress is None or progress.left is None or not LEAST_DONE <= progress.done < 1:
            return None
        last, done = self._shares[-1]
        if progress.what == PREPARING or now - last > _STANDS_STILL * now:
            return None
        answers = [progress.left - (now - self._heard), now / done * (1 - done)]
        before, share = next(each for each in reversed(self._shares) if each[0] <= (1 - _LATEST) * now)
        if done - share >= _LEAST_STEP:
            answers.append((now - before) / (done - share) * (1 - done))
        # A pace that hardly anything was done at says less than what is expected.
        answers = [min(max(answer, answers[0] / _FARTHEST), answers[0] * _FARTHEST) for answer in answers]
        return max(1.0, min(answers) / _WIDER), max(1.0, max(answers)) * _WIDER + _LAST
