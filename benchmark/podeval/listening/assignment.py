"""Assign items to listeners, and their order: Latin squares balance systems over positions and listeners.

Pure arithmetic on numbers of places, items and systems.
"""

import math


def build_williams_row(size: int, row: int) -> list[int]:
    """Return one row of a Latin square in which each element follows every other equally often (Williams 1949).

    Over `size` rows every element stands once in every place, and over `size` rows (2 * `size` where that is odd) every
    element follows every other equally often.

    Args:
        size: number of elements.
        row: any number; rows repeat after 2 * `size`.
    """
    row %= 2 * size if size % 2 else size
    zigzag = [position // 2 if position % 2 == 0 else size - 1 - position // 2 for position in range(size)]
    shifted = [(entry + row) % size for entry in zigzag]
    return shifted[::-1] if row >= size else shifted


def choose_items(slot: int, items: int, each: int) -> list[tuple[int, int]]:
    """Choose the items of one listener, and for each how many listeners heard it before, in the order of hearing.

    Each listener goes on in the ring of items where the one before stopped, so that after any number of listeners the
    numbers of hearings of two items differ by one at most. Listeners with the same items hear them in the orders of a
    Latin square, one after the other.

    Args:
        slot: slot of the listener, from 0.
        items: number of items.
        each: number of items for each listener.
    """
    each = min(each, items)
    chosen = [(position % items, position // items) for position in range(slot * each, (slot + 1) * each)]
    same_items_after = items // math.gcd(items, each)
    return [chosen[number] for number in build_williams_row(each, slot // same_items_after)]


def choose_alternative(item: int, hearing: int, alternatives: int) -> int:
    """Choose one of several alternatives (systems, pairs of systems) for the n-th hearing of an item.

    The hearings of an item go through all alternatives in turn, and so do the items of one listener.
    """
    return (item + hearing) % alternatives
