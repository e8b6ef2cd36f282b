"""Pilots: a small sample that represents the whole, and what the whole would show."""

import hashlib
import math
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")

USUAL = 20
"""Items of a pilot if no number is given."""


def choose_pilot(strata: Sequence[Hashable], names: Sequence[str], count: int) -> list[int]:
    """Choose a stratified sample: each stratum has its share of it, to within one item.

    Items are ordered by stratum and, within it, by a hash of their names; then every k-th is taken. The same items give
    the same sample.

    Args:
        strata: the stratum of each item.
        names: the name of each item.
        count: size of the sample; with as many items or fewer, all are taken.

    Returns:
        Places of the items that are taken, ascending.
    """
    digests = [hashlib.sha256(name.encode("utf-8", "replace")).hexdigest() for name in names]
    order = sorted(range(len(strata)), key=lambda i: (str(strata[i]), digests[i]))
    count = min(count, len(order))
    return sorted(order[int((place + 0.5) * len(order) / count)] for place in range(count))


def project_half_width(half: float, count: int, total: int) -> float:
    """Return the half width that an interval of a mean would have with more items of the same kind.

    It shrinks with the root of the number, and Student's t has more degrees of freedom.

    Args:
        half: half width of the 95 % interval with `count` items; at least two.
        count: number of items in the sample.
        total: number of items that there are.
    """
    from podeval.stats.pair_comparisons import find_student_quantile

    narrower = find_student_quantile(total - 1, 0.95) / find_student_quantile(count - 1, 0.95)
    return half * math.sqrt(count / total) * narrower


def select_items(
    items: Sequence[T], limit: int | None, pilot: bool, stratum: Callable[[T], Hashable], name: Callable[[T], str]
) -> list[T]:
    """Return the items that are worked on now: all, the first so many, or a stratified sample.

    Args:
        items: all items.
        limit: number of items; None for all, or for a sample of the usual size.
        pilot: whether a sample is taken.
        stratum: gives the stratum of an item.
        name: gives the name of an item, by which it is drawn.
    """
    if not pilot:
        return list(items[:limit])
    return [items[i] for i in choose_pilot([*map(stratum, items)], [*map(name, items)], limit or USUAL)]
