"""Stretches of time and windows slid over them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A stretch of time, in seconds from the recording's start."""

    start: float
    end: float

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start


Clip = tuple[Span, ...]
"""Stretches played one after the other, as if they were one."""


def windows_over(spans: Sequence[Span], window: float, stride: float) -> list[Clip]:
    """Windows of `window` seconds every `stride` seconds over the spans joined end to end.

    Each window is given as the stretches of the original time it is made of. Spans that together are shorter than
    one window give none.
    """
    total = sum(span.duration for span in spans)
    count = int((total - window) / stride + 1e-9) + 1 if total >= window - 1e-9 else 0
    return [_cut(spans, number * stride, number * stride + window) for number in range(count)]


def _cut(spans: Sequence[Span], start: float, end: float) -> Clip:
    """What lies between two moments of the joined time, in the original time."""
    clip, before = [], 0.0
    for span in spans:
        first, last = max(start, before), min(end, before + span.duration)
        if last - first > 1e-9:
            clip.append(Span(span.start + first - before, span.start + last - before))
        before += span.duration
    return tuple(clip)


def overlap(clip: Clip, others: Sequence[Span]) -> float:
    """Seconds of `clip` that lie inside any of `others`, which do not overlap one another."""
    return sum(max(0.0, min(span.end, other.end) - max(span.start, other.start)) for span in clip for other in others)
