"""Drift: the change of a windowed value over the course of a recording, as a slope with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

_MOST_BLOCKS = 20
_FEWEST_BLOCKS = 3
_MEMORIES = 1 - np.geomspace(1, 1 / 30, 20)
"""Possible correlations of neighbouring blocks, for memories of 1 to 30 blocks spaced evenly on a logarithmic scale."""


@dataclass(frozen=True)
class Drift:
    """A slope in the value's unit per unit of time; `low` and `high` bound it with 95 % confidence."""

    slope: float
    low: float
    high: float
    blocks: int


def drift(starts: Sequence[float], values: Sequence[float | None], window: float) -> Drift | None:
    """Estimate the least-squares slope over the means of blocks that do not share windows.

    Neighbouring windows overlap and resemble each other, so windows are not independent evidence of a trend. The values
    are averaged in at most 20 blocks of equal length, none shorter than a window. Blocks are also correlated (a topic
    lasts minutes), and a few blocks do not reveal how strong this correlation is. The interval therefore averages the
    slope's variance over all correlations of neighbours from 0 to 0.97, weighted by their probability given the
    residuals (restricted likelihood of a first-order autoregression), and is at least as wide as that of independent
    blocks. The prior is uniform in the logarithm of the memory, 1 / (1 - correlation). The interval is then widened to
    correct the average underestimate of a standard deviation from so few blocks (Gurland and Tripathi, 1971). Of 20,000
    series of at least three blocks without a trend, at most 4.5 % seem to drift if the correlation of neighbours is at
    most 0.8. If the correlation is 0.9, this share is 8 % with 20 blocks, 7 % with ten and 6 % with five. As a
    consequence, the interval from ten independent blocks is three times as wide as if their independence were known. If
    the interval were made valid at 0.8 by a larger critical value alone, it would be 2.6 times as wide.

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
    # The slope's interval. If the blocks lie on a straight line, their uncertainty is the resolution of the values,
    # whose errors are uncorrelated.
    count, memories = len(filled), _MEMORIES
    if np.abs(residuals).max() <= 1e-9 * np.abs(y).max():
        from podeval.stats.intervals import find_step

        residuals, memories = find_step(y) / np.sqrt(12) * np.resize([1.0, -1.0], count), _MEMORIES[:1]
    from scipy import special  # Importing it takes as long as the rest of a short command.

    reach = float(special.stdtrit(count - 2, 0.975) * (1 + 1 / (4 * (count - 2)))) * _find_error(
        filled, offset, residuals, memories
    )
    return Drift(slope, slope - reach, slope + reach, count)


SPREADS = 5.0
"""Number of spreads beyond which a value is outside the usual minute-to-minute variation."""


def find_departure(
    values: Sequence[float | None], tolerance: float, side: Literal[-1, 0, 1], reference: int
) -> int | None:
    """Return the index of the first of two consecutive values outside the usual range on the same side, or None.

    The range is the mean of the first `reference` values, plus or minus the tolerance, or `SPREADS` spreads if those
    are larger. The spread is the standard deviation of independent values with the same differences between neighbours:
    1.4826 times the median absolute deviation of the differences, divided by the square root of 2. Neither a trend nor
    a jump widens it.

    Args:
        values: one value per minute; None if a minute has no value.
        tolerance: distance from the mean that always counts as usual.
        side: the side on which values leave the range: -1 below, 1 above, 0 either.
        reference: number of values at the beginning with which the rest is compared.
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


def _find_error(
    blocks: NDArray[np.int64],
    offset: NDArray[np.float64],
    residuals: NDArray[np.float64],
    memories: NDArray[np.float64],
) -> float:
    """Return the standard error of the least-squares slope of values whose neighbours have an unknown correlation.

    Args:
        blocks: number of each block; blocks without a value are omitted.
        offset: time of each block, relative to the mean time.
        residuals: distances from the least-squares line.
        memories: the possible correlations of neighbours, the first of which is 0.
    """
    line, free = np.stack([np.ones(len(offset)), offset], axis=1), len(offset) - 2
    covariance = memories[:, None, None] ** np.abs(np.subtract.outer(blocks, blocks))
    inverse = np.linalg.inv(covariance)
    information = line.T @ inverse @ line
    rest = inverse - inverse @ line @ np.linalg.inv(information) @ line.T @ inverse
    power = residuals @ rest @ residuals
    likelihood = -(np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1] + free * np.log(power)) / 2
    variances = power / free * (offset @ covariance @ offset) / (offset @ offset) ** 2
    weights = np.exp(likelihood - likelihood.max())
    return float(np.sqrt(np.average(np.maximum(variances, variances[0]), weights=weights)))
