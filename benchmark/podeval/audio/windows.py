"""Spans of time, and windows that slide over them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Span:
    """A span of time, in seconds from the recording's start."""

    start: float
    end: float

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.end - self.start


Clip = tuple[Span, ...]
"""Spans that are joined end to end."""


def place_windows(spans: Sequence[Span], window: float, stride: float) -> list[Clip]:
    """Return windows of `window` seconds every `stride` seconds over the spans, as if the spans were joined end to end.

    Each window consists of spans in the recording's original time. Spans that are shorter than one window in total
    yield no windows.
    """
    total = sum(span.duration for span in spans)
    count = int((total - window) / stride + 1e-9) + 1 if total >= window - 1e-9 else 0
    return [_cut_clip(spans, number * stride, number * stride + window) for number in range(count)]


def _cut_clip(spans: Sequence[Span], start: float, end: float) -> Clip:
    """Return the part between two points on the joined timeline, expressed in the recording's original time."""
    clip, before = [], 0.0
    for span in spans:
        first, last = max(start, before), min(end, before + span.duration)
        if last - first > 1e-9:
            clip.append(Span(span.start + first - before, span.start + last - before))
        before += span.duration
    return tuple(clip)


def join_spans(spans: list[Span], gap: float) -> list[Span]:
    """Join spans that are at most `gap` seconds apart, sorted by start time."""
    joined: list[Span] = []
    for span in spans:
        if joined and span.start - joined[-1].end <= gap:
            joined[-1] = Span(joined[-1].start, max(span.end, joined[-1].end))
        else:
            joined.append(span)
    return joined


def count_seconds_inside(clips: Sequence[Clip], spans: Sequence[Span]) -> NDArray[np.float64]:
    """Return the number of seconds of each clip that are inside the spans, which are sorted and do not overlap.

    The running time grows with the number of clips plus spans, not with their product.
    """
    edges = [time for span in spans for time in (span.start, span.end)]
    passed = np.cumsum([0.0, *(length for span in spans for length in (span.duration, 0.0))])[:-1]
    counts = [len(clip) for clip in clips]
    if not edges or not sum(counts):
        return np.zeros(len(clips))
    bounds = np.array([(span.start, span.end) for clip in clips for span in clip])
    # Compute the seconds inside the spans up to each point in time; this number increases within a span and stays
    # constant between spans.
    before = np.interp(bounds, edges, passed)
    inside = before[:, 1] - before[:, 0]
    return np.bincount(np.repeat(np.arange(len(clips)), counts), inside, len(clips)).astype(np.float64)
