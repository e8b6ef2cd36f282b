"""Choose which two systems meet next, on which item, and on which side each is shown.

`closest`: among the pairs with the closest ratings, the pair that has been compared least often comes first. New
systems take part in at most half of the battles: often enough to get ratings soon, while listeners still hear the
other systems. A new system first meets the opponents with which it has the fewest votes. The voter and the number of
their votes determine whether they hear a new system next, and against which opponent. A voter who skips or leaves such
a battle gets the same pair again.
`mtalk`: one of the three closest pairs is chosen, as in MTalk-Bench. Sides are random. All other choices follow from
one seed, which is recorded with the battle.

Pairs are sorted by rating difference once for all voters. To create a battle, the voter's remaining pairs are searched
as arrays, so the time that this takes does not depend on the number of votes.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Rule = Literal["closest", "mtalk"]
"""The name of a pairing rule, which is recorded with each battle."""

CLOSEST_SHARE = 1 / 3
"""Share of the possible pairs that count as closest; at least `CLOSEST_PAIRS` pairs always are."""

CLOSEST_PAIRS = 3

SETTLED_VOTES = 30
"""Number of votes at which a system's rating is considered settled."""

NEWCOMERS_SHARE = 0.5
"""Maximum share of battles with unsettled systems if at least two systems are settled."""

Pair = tuple[str, str]
"""Two systems, sorted by name."""

Kind = TypeVar("Kind", bound=Hashable)

Positions = NDArray[np.intp]
"""Positions of pairs in a pool."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Meeting:
    """The subject of a battle: a system on each side, and the item."""

    a: str
    b: str
    item: str

    @property
    def pair(self) -> Pair:
        """The two systems, regardless of side."""
        return pair(self.a, self.b)


def pair(one: str, other: str) -> Pair:
    """Return the pair of two systems; the order of the arguments does not matter."""
    return (one, other) if one < other else (other, one)


class MetBefore:
    """The voter's earlier meetings.

    Args:
        meetings: pairs of systems, each with the item on which they met.
        again: whether the voter may hear a system again on the same item, against a new opponent.
    """

    def __init__(self, meetings: Collection[tuple[Pair, str]], again: bool = True) -> None:
        self.meetings = frozenset(meetings)
        self.again = again
        self.systems: dict[str, set[str]] = {}
        """Systems that the voter has heard on each item."""
        for met, item in self.meetings:
            self.systems.setdefault(item, set()).update(met)

    def is_spent(self, met: Pair, item: str) -> bool:
        """Return whether the voter must not be given this pair on this item."""
        return (met, item) in self.meetings if self.again else not self.systems.get(item, set()).isdisjoint(met)


class PairingPool:
    """The systems and items that can be compared.

    Args:
        items: the items, each with the systems that have an output for it.
    """

    def __init__(self, items: Mapping[str, Collection[str]]) -> None:
        self.items = {item: frozenset(systems) for item, systems in sorted(items.items())}
        self.systems = sorted(frozenset[str]().union(*self.items.values()))
        self.number = {system: number for number, system in enumerate(self.systems)}
        size = len(self.systems)
        together = np.zeros((size, size), dtype=np.intp)
        self._members: dict[frozenset[str], Positions] = {}
        for systems, count in Counter(self.items.values()).items():
            self._members[systems] = np.array([self.number[system] for system in systems], dtype=np.intp)
            together[np.ix_(self._members[systems], self._members[systems])] += count
        self.low, self.high = (side.astype(np.intp) for side in np.nonzero(np.triu(together, 1)))
        self.common = together[self.low, self.high]
        """Number of items on which each pair can meet, for pairs sorted by name."""
        self._position = np.full((size, size), -1, dtype=np.intp)
        self._position[self.low, self.high] = np.arange(len(self.low))

    def find(self, met: Pair) -> int | None:
        """Return the position of a pair; None if its systems cannot meet."""
        low, high = (self.number.get(system) for system in met)
        if low is None or high is None or (position := int(self._position[low, high])) < 0:
            return None
        return position

    def name(self, position: int) -> Pair:
        """Return the pair at a position."""
        return self.systems[self.low[position]], self.systems[self.high[position]]

    def spread(self, counts: Mapping[Pair, int]) -> NDArray[np.int64]:
        """Return the counts of pairs by position; pairs that cannot meet are left out."""
        values = np.zeros(len(self.low), dtype=np.int64)
        low, high = (np.array([self.number.get(met[side], -1) for met in counts], dtype=np.intp) for side in (0, 1))
        position = np.where((low < 0) | (high < 0), -1, self._position[low, high])
        values[position[position >= 0]] = np.fromiter(counts.values(), np.int64, len(counts))[position >= 0]
        return values

    def find_open(self, before: MetBefore) -> Mask:
        """Return a mask of the pairs that a voter can still meet on some item."""
        met = {item: self.items[item] & systems for item, systems in before.systems.items() if item in self.items}
        is_open = np.ones(len(self.low), dtype=np.bool_)
        if not len(self.low) or len(met) < self.common.min():
            return is_open
        spent = np.zeros((len(self.systems), len(self.systems)), dtype=np.intp)
        if before.again:
            for (low, high), item in before.meetings:
                if item in met and {low, high} <= self.items[item]:
                    spent[self.number[low], self.number[high]] += 1
        else:
            for item, systems in met.items():
                members, theirs = self._members[self.items[item]], [self.number[system] for system in systems]
                for system in theirs:
                    spent[system, members] += 1
                    spent[members, system] += 1
                # If the voter has heard both systems of a pair on an item, the pair was counted twice.
                spent[np.ix_(theirs, theirs)] -= 1
        return np.asarray(self.common > spent[self.low, self.high], dtype=np.bool_)


class PairingField:
    """A pool with all ratings and votes: the data shared by all voters, prepared once.

    Args:
        pool: the systems and items that can be compared.
        ratings: ratings of systems on any interval scale; a system without a rating is new.
        votes: number of votes on each pair.
        served: number of battles served for each pair.
        provisional: systems that have met too few opponents or voters, regardless of their number of votes.
    """

    def __init__(
        self,
        pool: PairingPool,
        ratings: Mapping[str, float],
        votes: Mapping[Pair, int],
        served: Mapping[Pair, int],
        provisional: Collection[str] = (),
    ) -> None:
        self.pool, self.ratings = pool, ratings
        self.votes, self.served = pool.spread(votes), pool.spread(served)
        by_system: Counter[str] = Counter()
        for (low, high), count in votes.items():
            by_system[low] += count
            by_system[high] += count
        # Find the new systems, and the pairs that include at least one new system.
        self.new = {
            system
            for system in pool.systems
            if by_system[system] < SETTLED_VOTES or system not in ratings or system in provisional
        }
        is_new = np.array([system in self.new for system in pool.systems], dtype=np.bool_)
        with_new = is_new[pool.low] | is_new[pool.high]
        self.with_new = np.flatnonzero(with_new)
        # Sort all pairs, and separately the pairs of settled systems, closest first; a pair with an unrated system
        # counts as close.
        rating = np.array([ratings.get(system, np.nan) for system in pool.systems], dtype=np.float64)
        self.gaps = np.nan_to_num(np.abs(rating[pool.low] - rating[pool.high]))
        self.by_gap = np.argsort(self.gaps, kind="stable")
        self.settled = self.by_gap[~with_new[self.by_gap]]
        # Number the pairs in such a way that a pair keeps its number when other pairs are added or removed.
        keys = np.array([_hash(system) for system in pool.systems], dtype=np.uint64)
        self.keys = _mix(keys[pool.low] * np.uint64(3) + keys[pool.high])

    def count(self, met: Pair) -> None:
        """Count one more battle for a pair."""
        if (position := self.pool.find(met)) is not None:
            self.served[position] += 1

    @cached_property
    def closest(self) -> Positions:
        """The closest pairs of settled systems for a voter who can still meet all pairs."""
        return self.find_closest(self.settled)

    def find_closest(self, settled: Positions) -> Positions:
        """Return the pairs that count as closest, sorted by rating difference."""
        return self.find_nearest(settled, max(CLOSEST_PAIRS, round(CLOSEST_SHARE * len(settled))))

    def find_nearest(self, positions: Positions, count: int) -> Positions:
        """Return the first `count` of these pairs, sorted by rating difference, and all pairs that tie with the last of
        them.
        """
        gaps = self.gaps[positions]
        return positions[: np.searchsorted(gaps, gaps[min(count, len(gaps)) - 1], side="right")]


@dataclass(frozen=True)
class Deal:
    """The basis for choosing a new system's battle: the voter, and the pairs on which the voter has voted."""

    voter: str
    pairs_of_voter: Sequence[Pair] = ()


def choose_next_meeting(
    field: PairingField,
    before: MetBefore,
    count_items: Callable[[Pair], Mapping[str, int]],
    *,
    seed: int | str,
    rule: Rule = "closest",
    deal: Deal | None = None,
) -> Meeting | None:
    """Choose the next comparison for one voter; return None if the voter has judged everything.

    Args:
        field: the systems and items that can be compared, with ratings and votes.
        before: this voter's earlier meetings; no earlier meeting is shown again.
        count_items: function that returns the number of battles that a pair has had on each item, over all voters.
        seed: seed for all random choices.
        rule: the rule that pairs systems.
        deal: the voter and the votes that determine new systems' battles; by default, the seed determines these
            battles.
    """
    chance = random.Random(seed)  # noqa: S311 - reproducible by its recorded seed, no secret
    is_open = field.pool.find_open(before)
    if not is_open.any():
        return None
    if rule == "mtalk":
        position = _draw_of_three(field, field.by_gap[is_open[field.by_gap]], chance)
    else:
        position = _draw_closest(field, is_open, chance, deal or Deal(str(seed)))
    chosen = field.pool.name(position)
    items = [
        item
        for item, systems in field.pool.items.items()
        if systems.issuperset(chosen) and not before.is_spent(chosen, item)
    ]
    counts = count_items(chosen)
    fewest = min(counts.get(item, 0) for item in items)
    item = chance.choice([item for item in items if counts.get(item, 0) == fewest])
    a, b = chosen if chance.random() < 0.5 else chosen[::-1]
    return Meeting(a, b, item)


def pick_dimension(available: Sequence[str], *, seed: int) -> str:
    """Draw one of the dimensions on which the voter has something left to judge, with equal probability."""
    return random.Random(f"{seed}:dimension").choice(sorted(available))  # noqa: S311 - as above


def _draw_of_three(field: PairingField, candidates: Positions, chance: random.Random) -> int:
    """Draw one of the three closest pairs; ties are broken at random."""
    near = field.find_nearest(candidates, CLOSEST_PAIRS)
    closer = near[field.gaps[near] < field.gaps[near[-1]]].tolist()
    tied = near[len(closer) :].tolist()
    left = min(CLOSEST_PAIRS, len(candidates)) - len(closer)
    return int(chance.choice([*closer, *chance.sample(tied, left)]))


def _draw_closest(field: PairingField, is_open: Mask, chance: random.Random, deal: Deal) -> int:
    settled = field.settled if is_open.all() else field.settled[is_open[field.settled]]
    # A new system's battle stays the same until the voter has voted.
    turn = random.Random(f"{deal.voter}:{len(deal.pairs_of_voter)}").random()  # noqa: S311 - reproducible, no secret
    if len(field.with_new) and (turn < NEWCOMERS_SHARE or not len(settled)):
        dealt = _deal(field, deal)
        if is_open[dealt]:
            return dealt
        if not len(settled):
            return _draw_least(np.flatnonzero(is_open), field.votes, chance)
    near = field.closest if settled is field.settled else field.find_closest(settled)
    return _draw_least(near, field.served, chance)


def _deal(field: PairingField, deal: Deal) -> int:
    """Return one of the pairs with the fewest votes, chosen by the voter and the number of their votes on new systems.

    Every pair gets a number that depends on the voter and this number of votes; the pair with the smallest is chosen.
    Votes by others on other pairs therefore do not affect the choice.
    """
    votes = field.votes[field.with_new]
    least = field.with_new[votes == votes.min()]
    turn = _hash(f"{deal.voter}:{sum(not field.new.isdisjoint(met) for met in deal.pairs_of_voter)}")
    return int(least[np.argmin(_mix(field.keys[least] ^ np.uint64(turn)))])


def _draw_least(candidates: Positions, counts: NDArray[np.int64], chance: random.Random) -> int:
    """Draw one of the pairs with the smallest count."""
    values = counts[candidates]
    least = candidates[values == values.min()]
    return int(least[chance.randrange(len(least))])


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread numbers over all 64-bit integers (the finaliser of SplitMix64; Steele, Lea and Flood 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
