"""Choose which parts of long recordings to compare, under one of two protocols.

Votes on `excerpts` (20 to 30 s of each side, of which at least 10 s must be heard) and votes on `whole` recordings (of
which at least 90 % must be heard) are never rated together. A benchmark whose outputs make sense only as a whole
(`Benchmark.whole_battles`) uses only `whole`.

Nobody judges two hours of audio in one sitting, and two excerpts chosen independently might compare a greeting with a
farewell. Short outputs are played in full. Outputs with the same number of turns (because they share a script or a
dialogue) are compared over the same turns and, if a turn must be cut, over the same part of that turn; other outputs
are compared at the same relative position. Anyone who wants to judge recordings from beginning to end gets whole
recordings (`choose_whole`).
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import Row

from podeval import benchmarks
from podeval.arena.settings import EXCERPTS, PROTOCOLS, WHOLE, ArenaSettings
from podeval.store.tables import Battle

SECONDS = 30.0
"""Default maximum length of an excerpt, in seconds."""

SHORTEST_SHARE = 2 / 3
"""Minimum share of an excerpt's maximum length that whole turns fill; if they fill less, part of the next turn is
added.
"""

_TIMES_HEARD = 3
"""Minimum number of times that both sides can be played in full before a battle expires."""

Span = tuple[float, float]
"""The start and the end of an excerpt, in seconds."""


@dataclass(frozen=True)
class RecordingLength:
    """The length of a recording, and the times of its turns."""

    seconds: float
    turns: Sequence[Span] = ()


@dataclass(frozen=True)
class Excerpts:
    """The excerpt of each side, and the rule that chose both excerpts: `whole`, `same turns` or `same position`.

    `turns` contains the first and the last of the turns that both sides play.
    """

    a: Span
    b: Span
    rule: str
    turns: tuple[int, int] | None = None


@cache
def _benchmarks_heard_whole() -> frozenset[str]:
    return frozenset(name for name in benchmarks.list_benchmarks() if benchmarks.get(name).whole_battles)


def list_protocols(benchmark: str) -> tuple[str, ...]:
    """List the protocols under which a benchmark's outputs are compared.

    Args:
        benchmark: name of the benchmark; the name is empty or unknown for recordings that do not belong to a benchmark.
    """
    return (WHOLE,) if benchmark in _benchmarks_heard_whole() else PROTOCOLS


def choose(a: RecordingLength, b: RecordingLength, *, seed: int, seconds: float = SECONDS) -> Excerpts:
    """Choose the excerpts to compare.

    Args:
        a: one recording.
        b: the other recording.
        seed: seed for the position; the same seed gives the same excerpts even if the sides are swapped.
        seconds: maximum length of an excerpt.
    """
    if max(a.seconds, b.seconds) <= seconds:
        return choose_whole(a, b)
    chance = random.Random(f"{seed}:excerpt")  # noqa: S311 - reproducible by its recorded seed, no secret
    if len(a.turns) == len(b.turns) and len(a.turns) > 1:
        return _same_turns(a, b, chance, seconds)
    position = chance.random()
    return Excerpts(_at(a, position, seconds), _at(b, position, seconds), "same position")


def choose_whole(a: RecordingLength, b: RecordingLength) -> Excerpts:
    """Choose both recordings in full."""
    return Excerpts((0.0, a.seconds), (0.0, b.seconds), "whole")


def _same_turns(a: RecordingLength, b: RecordingLength, chance: random.Random, seconds: float) -> Excerpts:
    """Choose as many whole turns as fit on both sides, starting at the same turn; if needed, add part of the next turn.

    The start is always early enough for the longer side to fill an excerpt, so the end of a recording is played as
    often as any other part, and never as a short fragment.
    """
    count = len(a.turns)
    latest = max(
        (k for k in range(count) if max(a.turns[-1][1] - a.turns[k][0], b.turns[-1][1] - b.turns[k][0]) >= seconds),
        default=0,
    )
    first = chance.randint(0, latest)
    last = first
    while last + 1 < count and all(side.turns[last + 1][1] - side.turns[first][0] <= seconds for side in (a, b)):
        last += 1

    def measure(side: RecordingLength, turn: int) -> float:
        return side.turns[turn][1] - side.turns[first][0]

    # The last turn must contain the same words on both sides, even if it is cut.
    share = _fitting_share(a, b, first, last, seconds)
    if last + 1 < count and share == 1 and max(measure(a, last), measure(b, last)) < SHORTEST_SHARE * seconds:
        begun = _fitting_share(a, b, first, last + 1, seconds)
        last, share = (last + 1, begun) if begun > 0 else (last, share)

    def span(side: RecordingLength) -> Span:
        start, (begin, end) = side.turns[first][0], side.turns[last]
        return start, max(start, min(begin + share * (end - begin), start + seconds, side.seconds))

    return Excerpts(span(a), span(b), "same turns", (first, last))


def _fitting_share(a: RecordingLength, b: RecordingLength, first: int, last: int, seconds: float) -> float:
    """Return the largest share of the last turn, counted from its beginning, that fits into the excerpts of both
    sides.
    """
    sides = ((side.turns[first][0] + seconds, *side.turns[last]) for side in (a, b))
    return max(0.0, min([1.0, *((stop - begin) / (end - begin) for stop, begin, end in sides if end > begin)]))


def _at(side: RecordingLength, position: float, seconds: float) -> Span:
    """Return the excerpt at a relative `position` from 0 to 1, moved back to the start of the nearest earlier turn."""
    if side.seconds <= seconds:
        return 0.0, side.seconds
    start = position * (side.seconds - seconds)
    before = [begin for begin, _ in side.turns if begin <= start]
    if before and start - before[-1] <= seconds / 4:
        start = before[-1]
    return start, min(start + seconds, side.seconds)


def count_heard_seconds(played: Sequence[Span], length: float) -> float:
    """Return how many seconds of a sound were played at least once.

    Args:
        played: spans of the sound that were played, in seconds, in any order; they may overlap.
        length: length of the sound in seconds.
    """
    seconds = reached = 0.0
    for start, stop in sorted(played):
        start, stop = max(start, reached), min(stop, length)
        if stop > start:
            seconds += stop - start
            reached = stop
    return min(seconds, max(0.0, length))


def time_open(battle: Battle, settings: ArenaSettings) -> timedelta:
    """Return the time limit for judging a battle; long limits are rounded to whole hours to hide exact lengths."""
    (begin_a, end_a), (begin_b, end_b) = read_spans(battle)
    hours = math.floor(_TIMES_HEARD * (end_a - begin_a + end_b - begin_b) / 3600)
    return timedelta(seconds=max(settings.vote_within, 3600 * (hours + 1 if hours else 0)))


def read_spans(battle: Battle | Row[Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the start and end of each side's excerpt in seconds, side A first."""
    (a, b), (c, d) = battle.excerpt["a"], battle.excerpt["b"]
    return (float(a), float(b)), (float(c), float(d))


def compute_played_seconds(length: float, other: float, protocol: str) -> float:
    """Return the playing time of a side in seconds, including the silence that hides its exact length.

    Both excerpts are played for the same time, because a difference in length would identify a system.
    """
    return round_up_seconds(max(length, other) if protocol == EXCERPTS else length)


def round_up_seconds(length: float) -> float:
    """Round a length up to whole seconds, at least one, because the exact length of a recording would identify it."""
    # A tiny excess over a whole second is a rounding error.
    return float(max(1, math.ceil(round(length, 3))))
