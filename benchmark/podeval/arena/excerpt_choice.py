"""Choose which stretches of two long recordings are compared: the same turn of both, or the same position.

Nobody judges two hours of audio in one sitting, and two stretches chosen freely would compare a greeting with a
farewell. Short outputs are heard whole. Outputs with equally many turns (the same script, the same dialogue) are
compared over the same turns; others at the same position, in equal share of what lies before it. The whole recording
stays available beside the excerpt.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = 60.0
"""Longest excerpt of one side, unless told."""

Span = tuple[float, float]
"""Begin and end, seconds."""


@dataclass(frozen=True)
class RecordingLength:
    """How long a recording is, and where its turns lie in it."""

    seconds: float
    turns: Sequence[Span] = ()


@dataclass(frozen=True)
class Excerpts:
    """What is heard of each side, and by which rule: `whole`, `same turns` or `same position`."""

    a: Span
    b: Span
    rule: str
    first_turn: int | None = None
    last_turn: int | None = None

    def document(self) -> dict[str, Any]:
        """As plain data."""
        turns = None if self.first_turn is None else [self.first_turn, self.last_turn]
        return {"a": list(self.a), "b": list(self.b), "rule": self.rule, "turns": turns}


def choose(a: RecordingLength, b: RecordingLength, *, seed: int, seconds: float = SECONDS) -> Excerpts:
    """Choose the stretches to compare.

    Args:
        a: one recording.
        b: the other.
        seed: decides where in the recordings; sides exchanged and the same seed give the same stretches.
        seconds: longest stretch.
    """
    if max(a.seconds, b.seconds) <= seconds:
        return Excerpts((0.0, a.seconds), (0.0, b.seconds), "whole")
    chance = random.Random(f"{seed}:excerpt")  # noqa: S311 - reproducible by its recorded seed, no secret
    if len(a.turns) == len(b.turns) and len(a.turns) > 1:
        return _same_turns(a, b, chance, seconds)
    position = chance.random()
    return Excerpts(_at(a, position, seconds), _at(b, position, seconds), "same position")


def _same_turns(a: RecordingLength, b: RecordingLength, chance: random.Random, seconds: float) -> Excerpts:
    """From a turn's start over as many whole turns as fit on both sides; at least one, cut where it must be.

    The latest start is the one from which the longer side still fills an excerpt, so that the end is heard as often as
    any other part, and not in scraps.
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

    def span(side: RecordingLength) -> Span:
        start = side.turns[first][0]
        return start, min(side.turns[last][1], start + seconds, side.seconds)

    return Excerpts(span(a), span(b), "same turns", first, last)


def _at(side: RecordingLength, position: float, seconds: float) -> Span:
    """A stretch with the share `position` of the rest before it, moved to the nearest start of a turn before it."""
    if side.seconds <= seconds:
        return 0.0, side.seconds
    start = position * (side.seconds - seconds)
    before = [begin for begin, _ in side.turns if begin <= start]
    if before and start - before[-1] <= seconds / 4:
        start = before[-1]
    return start, min(start + seconds, side.seconds)


def heard_share(played: Sequence[Span], span: Span) -> float:
    """Compute the share of a stretch that was played at least once; what lies outside the stretch does not count.

    Args:
        played: stretches of the recording that were played, seconds, in any order and overlapping as they may.
        span: what had to be heard.

    Returns:
        0 to 1; 1 for an empty stretch.
    """
    begin, end = span
    if end <= begin:
        return 1.0
    seconds, reached = 0.0, begin
    for start, stop in sorted(played):
        start, stop = max(start, reached), min(stop, end)
        if stop > start:
            seconds += stop - start
            reached = stop
    return min(1.0, seconds / (end - begin))
