"""Drift: how a windowed value changes over the course of a recording, as a slope with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

_MOST_BLOCKS = 20
_FEWEST_BLOCKS = 3


@dataclass(frozen=True)
class Drift:
    """A slope in the value's unit per unit of time; `low` and `high` bound it with 95 % confidence."""

    slope: float
    low: float
    high: float
    blocks: int


def drift(starts: Sequence[float], values: Sequence[float | None], window: float) -> Drift | None:
    """Estimate the least-squares slope over means of blocks that share no window.

    Neighbouring windows overlap and resemble each other, so windows are not independent evidence of a trend. They
    are averaged in at most 20 blocks of equal length, none shorter than a window. Blocks remember too (a topic lasts
    minutes): the correlation of neighbouring residuals, corrected for its bias, makes them count as fewer, and widens
    the interval of ordinary least squares. Of 20 blocks without a trend 4 % seem to drift where they are independent,
    6 % where neighbours correlate by 0.3, 9 % by 0.6, 10 % by 0.8 (5, 15, 32 and 48 % without the correction); of six
    blocks 4, 6, 11 and 15 %. So a drift of a short recording is a hint.

    Args:
        starts: start of each window, in order.
        values: one value per window; None if a window has no value.
        window: length of a window, in the unit of `starts`.

    Returns:
        The slope, or None if fewer than three blocks have a value, because no interval can then be computed.
    """
    kept = [(start, value) for start, value in zip(starts, values, strict=True) if value is not None]
    if len(kept) < _FEWEST_BLOCKS:
        return None
    # Average the values in blocks.
    x, y = np.asarray(kept, dtype=np.float64).T
    span = x[-1] - x[0] + window
    count = min(_MOST_BLOCKS, int(span / window + 1e-9)) if window > 0 else _MOST_BLOCKS
    block = np.minimum(((x - x[0]) * count / span).astype(int), count - 1)
    filled = np.unique(block)
    if len(filled) < _FEWEST_BLOCKS:
        return None
    at = np.array([x[block == number].mean() for number in filled])
    mean = np.array([y[block == number].mean() for number in filled])
    # Least squares on the blocks' means.
    offset = at - at.mean()
    slope = float(offset @ mean / (offset @ offset))
    residuals = mean - mean.mean() - slope * offset
    # The slope's interval. Blocks on one line are as uncertain as the resolution of their values.
    count = len(filled)
    if np.abs(residuals).max() <= 1e-9 * np.abs(y).max():
        from podeval.stats.intervals import find_step

        residuals = find_step(y) / np.sqrt(12) * np.resize([1.0, -1.0], count)
    memory = _memory(residuals)
    inflation = (1 + memory) / (1 - memory)
    error = float(np.sqrt(residuals @ residuals / (count - 2) / (offset @ offset) * inflation))
    independent = max(3.0, count / inflation)
    from scipy import special  # takes as long as the rest of a short command

    reach = float(special.stdtrit(independent - 2, 0.975)) * error
    return Drift(slope, slope - reach, slope + reach, len(filled))


SPREADS = 5.0
"""Spreads from one minute to the next from which on a value is outside of the range that its own variation allows."""


def find_departure(
    values: Sequence[float | None], tolerance: float, side: Literal[-1, 0, 1], reference: int
) -> int | None:
    """Return where a value leaves its usual range, or None: the first of two in a row that are outside on one side.

    The range is the mean of the first `reference` values, give or take the tolerance or `SPREADS` spreads, if those are
    more. The spread is the standard deviation of independent values whose neighbours differ as much: 1.4826 times the
    median distance of the differences from their median, divided by the square root of 2. Neither a trend nor a leap
    widens it.

    Args:
        values: one value per minute; None if a minute has no value.
        tolerance: distance from the mean that is usual in any case.
        side: the side on which the range is left: -1 below, 1 above, 0 either.
        reference: number of values at the beginning that the rest is compared with.
    """
    pairs = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(pairs) < reference + 2:
        return None
    at, y = np.asarray(pairs, dtype=np.float64).T
    steps = np.diff(y)
    spread = 1.4826 / np.sqrt(2) * float(np.median(np.abs(steps - np.median(steps))))
    away = y - y[:reference].mean()
    outside = (np.abs(away) if side == 0 else side * away) > max(tolerance, SPREADS * spread)
    twice = outside[:-1] & outside[1:] & (away[:-1] * away[1:] > 0)
    return int(at[twice.argmax()]) if twice.any() else None


def _memory(residuals: NDArray[np.float64]) -> float:
    """Return the correlation of neighbouring residuals, from 0 to 0.9, corrected upwards for its bias in few blocks."""
    power = float(residuals @ residuals)
    if power == 0:
        return 0.0
    correlation = float(residuals[1:] @ residuals[:-1]) / power
    return min(max(correlation + (3 + 5 * correlation) / len(residuals), 0.0), 0.9)
