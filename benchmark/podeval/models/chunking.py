"""Splits a long recording at its pauses into chunks for Whisper's window of 30 s, and many clips into batches."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from podeval.models.interfaces import Samples


def batch_equal_lengths(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the indices of inputs of equal length, at most `most` at a time, so that none needs padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for _, same in groupby(order, key=lengths.__getitem__):
        positions = list(same)
        for start in range(0, len(positions), most):
            yield positions[start : start + most]


RATE = 16_000
"""Sample rate of the input, Hz."""

_LONGEST = 29 * RATE
_USUAL = 27 * RATE
_STEP = RATE // 20
_PAUSE = 8


def cut_at_pauses(samples: Samples) -> Iterator[slice]:
    """Yield few slices of at most 29 s, each cut in the middle of the quietest 0.4 s within a range of 2 s or more."""
    start = 0
    while (left := len(samples) - start) > _LONGEST:
        count = -(-left // _USUAL)
        earliest = start + max(left - (count - 1) * _LONGEST, left // count * 3 // 5)
        levels = np.square(samples[earliest : start + _LONGEST], dtype=np.float64)
        steps = levels[: len(levels) // _STEP * _STEP].reshape(-1, _STEP).sum(axis=1)
        quietest = int(np.argmin(np.convolve(steps, np.ones(_PAUSE), "valid")))
        end = earliest + (quietest + _PAUSE // 2) * _STEP
        yield slice(start, end)
        start = end
    yield slice(start, len(samples))
