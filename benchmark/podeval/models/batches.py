"""Groups inputs of a network into batches."""

from collections.abc import Iterator, Sequence
from itertools import groupby


def batch_equal_lengths(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the indices of inputs of equal length, at most `most` at a time, so that none needs padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for _, same in groupby(order, key=lengths.__getitem__):
        positions = list(same)
        for start in range(0, len(positions), most):
            yield positions[start : start + most]
