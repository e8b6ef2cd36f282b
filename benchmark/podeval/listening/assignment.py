"""Who hears what, in which order: Latin squares, so that no system gains by its place or by its listeners.

Pure arithmetic on numbers of places, items and systems.
"""

import math


def williams(size: int, row: int) -> list[int]:
    """One row of a Latin square in which each thing follows each other equally often (Williams 1949).

    Over `size` rows every thing stands once in every place, and over `size` rows (2 * `size` where that is odd) every
    thing follows every other equally often.

    Args:
        size: number of things.
        row: any number; rows repeat after 2 * `size`.
    """
    row %= 2 * size if size % 2 else size
    zigzag = [position // 2 if position % 2 == 0 else size - 1 - position // 2 for position in range(size)]
    shifted = [(entry + row) % size for entry in zigzag]
    return shifted[::-1] if row >= size else shifted


def choose_items(slot: int, items: int, each: int) -> list[tuple[int, int]]:
    """The items of one listener, and of each how many listeners heard it before, in the order of hearing.

    Everybody goes on in the ring of items where the listener before stopped, so that after any number of listeners no
    item was heard more than once more than another. Those who have the same items hear them in the orders of a Latin
    square, one after the other.

    Args:
        slot: of the listener, from 0.
        items: how many there are.
        each: how many a listener hears.
    """
    each = min(each, items)
    chosen = [(position % items, position // items) for position in range(slot * each, (slot + 1) * each)]
    same_items_after = items // math.gcd(items, each)
    return [chosen[number] for number in williams(each, slot // same_items_after)]


def choose_alternative(item: int, hearing: int, alternatives: int) -> int:
    """Which of several alternatives (systems, pairs of systems) is met when an item is heard the n-th time.

    Hearings of an item go through all alternatives in turn, and so do the items of one listener.
    """
    return (item + hearing) % alternatives
