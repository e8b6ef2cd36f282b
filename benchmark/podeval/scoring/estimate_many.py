"""How long several recordings take that are scored one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval.audio.decode import hash_file
from podeval.scoring.estimate import ScoreProgress, TimeEstimate, list_works
from podeval.scoring.kept_works import KeptWorks

if TYPE_CHECKING:
    from podeval.metrics.declaration import Metric

_BYTES_PER_SECOND = 16_000
"""Of a file whose header does not say how long it is."""


class ManyEstimate:
    """Makes of how far one recording is how far all are.

    What a recording takes by its length is what those before it took, or what the present one is estimated to take
    without loading models. One of which nothing is heard was in the cache, and says nothing of the others.

    Args:
        lengths: of the recordings, in any unit.
        clock: the time in seconds.
    """

    def __init__(self, lengths: Sequence[float], clock: Callable[[], float] = time.monotonic) -> None:
        self._lengths, self._clock = [max(length, 1e-6) for length in lengths], clock
        self._number = -1
        self._began = self._last = 0.0
        self._whole: float | None = None
        self._took = self._long = 0.0
        """Seconds that the recordings before this one took, without loading, and how long they are together."""

    def combine(self, number: int, progress: ScoreProgress) -> ScoreProgress:
        """Return how far all recordings are.

        Args:
            number: of the recording that is being scored, from 0.
            progress: how far it is.
        """
        if len(self._lengths) == 1:
            return progress
        now = self._clock()
        if number != self._number:
            self._finish()
            self._number, self._began = number, now
        self._last, self._whole = now, progress.whole
        done = sum(self._lengths[:number]) + progress.done * self._lengths[number]
        share = done / sum(self._lengths)
        if progress.left is None:
            return ScoreProgress(progress.what, share, None)
        took = self._took + (progress.whole or 0.0)
        others = sum(self._lengths[number + 1 :]) * took / (self._long + self._lengths[number])
        between = progress.between and (progress.between[0] + others / 2, progress.between[1] + others * 2)
        return ScoreProgress(progress.what, share, progress.left + others, between)

    def _finish(self) -> None:
        """Take up what the last recording took; the first also loaded what the others use."""
        if self._number >= 0 and self._whole is not None:
            took = self._last - self._began
            self._took += min(took, self._whole) if not self._long else took
            self._long += self._lengths[self._number]


@contextmanager
def estimate_metric(
    metric: Metric, file: Path, seconds: float, tell: Callable[[ScoreProgress], None], *, profile: str, has_turns: bool
) -> Iterator[None]:
    """Tell how far one metric on one recording is that is measured inside the block, and learn what it took.

    Args:
        metric: that is measured.
        file: the recording.
        seconds: that it lasts.
        tell: is told how far it is.
        profile: whose models.
        has_turns: whether a script says who speaks when.
    """
    kept = KeptWorks(hash_file(file), profile)
    titles = kept.choose(list_works([metric], has_turns))
    estimate = TimeEstimate([metric], seconds, has_turns, tell, profile=profile, kept=titles)
    with estimate.scoring(metric.name):
        yield
    estimate.learn()
    kept.note(estimate.complete)


def read_length(source: Any) -> float | None:
    """Return the seconds of a recording as the header of its file says; None where nobody can say."""
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    if not path.is_file():
        return None
    import soundfile

    # By an open file: libsndfile takes no name that is not UTF-8.
    try:
        with path.open("rb") as file:
            return float(soundfile.info(file).duration)
    except (soundfile.SoundFileError, RuntimeError, OSError):
        return path.stat().st_size / _BYTES_PER_SECOND
