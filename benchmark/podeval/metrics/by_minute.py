"""A share minute by minute, so that a long recording shows where it goes wrong, and whether it gets worse."""

from collections.abc import Iterable

import numpy as np

from podeval.metrics.score import Timeline

MINUTE = 60.0
LONG = 300.0
"""Seconds from which on a recording has a course: below, a minute is too large a part of it."""

FEWEST = 20
"""Words that a minute has to have for a share of its own."""


def compute_share_by_minute(
    key: str, duration: float, counts: Iterable[tuple[float, float, float]], scale: float = 1.0
) -> Timeline | None:
    """Return how often something happens in each minute, or None for a recording under five minutes.

    Args:
        key: the metric's key that the shares add up to.
        duration: length of the recording in seconds; a short rest of a minute belongs to the minute before it.
        counts: for each thing, when it is (seconds), by how much it happens, and out of how many.
        scale: the factor of the shares.
    """
    if duration < LONG:
        return None
    minutes = max(1, round(duration / MINUTE))
    happened, possible = np.zeros(minutes), np.zeros(minutes)
    for seconds, part, whole in counts:
        minute = min(minutes - 1, int(max(0.0, seconds) / MINUTE))
        happened[minute] += part
        possible[minute] += whole
    shares = [
        float(scale * part / whole) if whole >= FEWEST else None for part, whole in zip(happened, possible, strict=True)
    ]
    return Timeline(starts=[MINUTE * minute for minute in range(minutes)], window=MINUTE, values={key: shares})
