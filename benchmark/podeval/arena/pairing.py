"""Choose which two systems meet next, on which item, and on which side each is shown.

`closest`: among the pairs with the closest ratings, the least compared comes first. A new system takes part in at most
half of the battles, so that it is placed soon and listeners still hear the others. Its battles are dealt: it first
meets those with whom it has the fewest votes, and whether a voter meets it next, and whom with it, follows from the
voter and the number of their votes. Anyone who skips such a battle, or leaves it, is given the same pair again.
`mtalk`: one of the three closest pairs, as in MTalk-Bench. Sides are random. Everything else follows from one seed,
which is recorded with the battle.
"""

import hashlib
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

SETTLED_VOTES = 30
"""Votes from which a system's rating is considered settled."""

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


@dataclass(frozen=True)
class Deal:
    """The basis of a new system's battles: the voter, the pairs that they voted on, and everybody's votes by pair.

    `provisional` are the systems that have too few opponents or voters, however many votes there are on them.
    """

    voter: str
    pairs_of_voter: Sequence[Pair]
    votes: Mapping[Pair, int]
    provisional: Collection[str] = ()


def pair(one: str, other: str) -> Pair:
    """Return the pair of two systems; the order of the arguments does not matter."""
    return (one, other) if one < other else (other, one)


class PairingPool:
    """The systems and items that can be compared, with counts that are the same for all voters.

    Args:
        items: systems that have an output for an item, by item.
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
    seed: int | str,
    rule: Rule = "closest",
    deal: Deal | None = None,
) -> Meeting | None:
    """Choose the next comparison for one voter; return None where the voter has judged everything.

    Args:
        field: the systems and items that can be compared.
        ratings: ratings of systems, on any interval scale; a system without one is new.
        battles: number of meetings of each pair on each item, over all voters.
        judged: meetings that this voter had before; none of them is shown again.
        seed: seed of all random choices.
        rule: the rule for which pair meets.
        deal: the basis of the choice of new systems' battles; by default the seed and the numbers of meetings.
    """
    chance = random.Random(seed)  # noqa: S311 - reproducible by its recorded seed, no secret
    candidates = field.open_pairs(judged)
    if not candidates:
        return None
    if rule == "mtalk":
        gaps = _gaps(candidates, ratings)
        chosen = chance.choice(_nearest(candidates, gaps, CLOSEST_PAIRS, chance)[:CLOSEST_PAIRS])
    else:
        by_pair = _by_pair(battles)
        chosen = _closest(field, candidates, ratings, by_pair, chance, deal or Deal(str(seed), (), by_pair))
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
    field: PairingPool,
    candidates: list[Pair],
    ratings: Mapping[str, float],
    by_pair: Mapping[Pair, int],
    chance: random.Random,
    deal: Deal,
) -> Pair:
    # Which systems are new.
    by_system: Counter[str] = Counter()
    for met, count in deal.votes.items():
        by_system.update(dict.fromkeys(met, count))
    new = {
        system
        for met in field.common
        for system in met
        if by_system[system] < SETTLED_VOTES or system not in ratings or system in deal.provisional
    }
    # A new system's battle is the same until the voter has voted.
    settled = [met for met in candidates if not new.intersection(met)]
    turn = random.Random(f"{deal.voter}:{len(deal.pairs_of_voter)}").random()  # noqa: S311 - reproducible, no secret
    if new and (turn < NEWCOMERS_SHARE or not settled):
        dealt = _deal([met for met in field.common if new.intersection(met)], new, deal)
        if dealt in candidates or not settled:
            return dealt if dealt in candidates else _least(candidates, deal.votes, chance)
    gaps = _gaps(settled, ratings)
    near = _nearest(settled, gaps, max(CLOSEST_PAIRS, round(CLOSEST_SHARE * len(settled))), chance)
    return _least(near, by_pair, chance)


def _deal(pairs: list[Pair], new: set[str], deal: Deal) -> Pair:
    """Return one of the pairs with the fewest votes, by the voter and how often they voted on a new system."""
    fewest = min(deal.votes.get(met, 0) for met in pairs)
    turn = f"{deal.voter}:{sum(not new.isdisjoint(met) for met in deal.pairs_of_voter)}"
    least = (met for met in pairs if deal.votes.get(met, 0) == fewest)
    return min(least, key=lambda met: hashlib.blake2b(f"{turn}:{met}".encode()).digest())


def _gaps(candidates: Iterable[Pair], ratings: Mapping[str, float]) -> dict[Pair, float]:
    """Return the differences of ratings by pair; 0 where one of the two systems has no rating."""
    return {
        (one, other): abs(ratings[one] - ratings[other]) if one in ratings and other in ratings else 0.0
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
