"""Choose which two systems meet next, on which item, and on which side each is shown.

`closest`: among the pairs with the closest ratings, the least compared comes first. A system with few battles counts as
close to every other, because its rating is still unknown; new systems take part in at most half of the battles, so that
they are placed soon and listeners still hear the others. `mtalk`: one of the three closest pairs, as in MTalk-Bench.
Sides are random. Everything follows from one seed, which is recorded with the battle.
"""

import random
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeVar

Rule = Literal["closest", "mtalk"]
"""The name of a rule, which is recorded with each battle."""

CLOSEST_SHARE = 1 / 3
"""Share of the possible pairs that count as the closest; never fewer than `CLOSEST_PAIRS`."""

CLOSEST_PAIRS = 3

SETTLED_BATTLES = 30
"""Battles from which a system's rating is considered settled."""

NEWCOMERS_SHARE = 0.5
"""Largest share of battles with unsettled systems, while two others are settled."""

Pair = tuple[str, str]
"""Two systems in order of their names."""

Kind = TypeVar("Kind", bound=Hashable)


@dataclass(frozen=True)
class Meeting:
    """The content of a battle: two systems with their sides, and the item."""

    a: str
    b: str
    item: str

    @property
    def pair(self) -> Pair:
        """The two systems without their sides."""
        return pair(self.a, self.b)


def pair(one: str, other: str) -> Pair:
    """Return the pair of two systems; the order of the arguments does not matter."""
    return (one, other) if one < other else (other, one)


class PairingPool:
    """The systems and items that can be compared, with counts that are the same for all voters.

    Args:
        items: for each item, the systems that have an output for it.
    """

    def __init__(self, items: Mapping[str, Collection[str]]) -> None:
        self.items = {item: frozenset(systems) for item, systems in sorted(items.items())}
        self.common: Counter[Pair] = Counter()
        """Number of items on which each pair can meet."""
        for systems, count in Counter(self.items.values()).items():
            for met in combinations(sorted(systems), 2):
                self.common[met] += count

    def open_pairs(self, judged: Collection[tuple[Pair, str]]) -> list[Pair]:
        """List the pairs that one voter can still meet, in order of their names."""
        spent = Counter(met for met, item in judged if self.items.get(item, frozenset()).issuperset(met))
        return sorted(met for met, count in self.common.items() if count > spent[met])


def choose_next_meeting(
    field: PairingPool,
    ratings: Mapping[str, float],
    battles: Mapping[tuple[Pair, str], int],
    judged: Collection[tuple[Pair, str]],
    *,
    seed: int,
    rule: Rule = "closest",
) -> Meeting | None:
    """Choose the next comparison for one voter; return None where the voter has judged everything.

    Args:
        field: the systems and items that can be compared.
        ratings: ratings of systems, on any interval scale; a system without one is new.
        battles: how often each pair met on each item, over all voters.
        judged: what this voter met before, which is never shown again.
        seed: seed of all random choices.
        rule: the rule for which pair meets.
    """
    chance = random.Random(seed)  # noqa: S311 - reproducible by its recorded seed, no secret
    candidates = field.open_pairs(judged)
    if not candidates:
        return None
    if rule == "mtalk":
        gaps = _gaps(candidates, ratings, ())
        chosen = chance.choice(_nearest(candidates, gaps, CLOSEST_PAIRS, chance)[:CLOSEST_PAIRS])
    else:
        chosen = _closest(candidates, ratings, _by_pair(battles), chance)
    items = [
        item for item, systems in field.items.items() if systems.issuperset(chosen) and (chosen, item) not in judged
    ]
    item = _least(items, {item: battles.get((chosen, item), 0) for item in items}, chance)
    a, b = chosen if chance.random() < 0.5 else chosen[::-1]
    return Meeting(a, b, item)


def pick_dimension(available: Sequence[str], *, seed: int) -> str:
    """Draw one of the dimensions in which the voter has something left to judge, each equally likely."""
    return random.Random(f"{seed}:dimension").choice(sorted(available))  # noqa: S311 - as above


def _by_pair(battles: Mapping[tuple[Pair, str], int]) -> Counter[Pair]:
    counts: Counter[Pair] = Counter()
    for (met, _), count in battles.items():
        counts[met] += count
    return counts


def _closest(
    candidates: list[Pair], ratings: Mapping[str, float], by_pair: Mapping[Pair, int], chance: random.Random
) -> Pair:
    by_system: Counter[str] = Counter()
    for (one, other), count in by_pair.items():
        by_system[one] += count
        by_system[other] += count
    systems = {system for met in candidates for system in met}
    new = {system for system in systems if by_system[system] < SETTLED_BATTLES or system not in ratings}
    with_new = [met for met in candidates if new.intersection(met)]
    settled = [met for met in candidates if not new.intersection(met)]
    if settled and with_new:
        candidates = with_new if chance.random() < NEWCOMERS_SHARE else settled
    gaps = _gaps(candidates, ratings, new)
    near = _nearest(candidates, gaps, max(CLOSEST_PAIRS, round(CLOSEST_SHARE * len(candidates))), chance)
    return _least(near, by_pair, chance)


def _gaps(candidates: Iterable[Pair], ratings: Mapping[str, float], new: Collection[str]) -> dict[Pair, float]:
    """Return the differences of ratings by pair; 0 where one of the two systems is new."""
    return {
        (one, other): 0.0
        if one in new or other in new or one not in ratings or other not in ratings
        else abs(ratings[one] - ratings[other])
        for one, other in candidates
    }


def _nearest(candidates: list[Pair], gaps: Mapping[Pair, float], count: int, chance: random.Random) -> list[Pair]:
    """Return the closest pairs, closest first, ties in random order, and every other as close as the last of them."""
    mixed = chance.sample(candidates, len(candidates))
    mixed.sort(key=gaps.__getitem__)
    return [met for met in mixed if gaps[met] <= gaps[mixed[min(count, len(mixed)) - 1]]]


def _least(candidates: Sequence[Kind], counts: Mapping[Kind, int], chance: random.Random) -> Kind:
    """Return a random one of those with the smallest count."""
    fewest = min(counts.get(candidate, 0) for candidate in candidates)
    return chance.choice([candidate for candidate in candidates if counts.get(candidate, 0) == fewest])
