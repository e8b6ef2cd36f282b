"""Drift: how a windowed value changes over the course of a recording, as a slope with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

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
    are averaged in at most 20 blocks of equal length, none shorter than a window; the interval is that of ordinary
    least squares on the blocks' means, with Student's t.

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
    if count < _FEWEST_BLOCKS:
        return None
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
    # The slope's interval.
    freedom = len(filled) - 2
    error = float(np.sqrt(residuals @ residuals / freedom / (offset @ offset)))
    reach = float(special.stdtrit(freedom, 0.975)) * error
    return Drift(slope, slope - reach, slope + reach, len(filled))
