import random
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podeval.arena.pairing import (
    Deal,
    Meeting,
    MetBefore,
    Pair,
    PairingField,
    PairingPool,
    choose_next_meeting,
)

SYSTEMS = [f"s{number}" for number in range(8)]
RATINGS = {system: 100.0 * number for number, system in enumerate(SYSTEMS)}
SETTLED = {(met, "old"): 40 for met in combinations(SYSTEMS, 2)}


def field(systems: list[str] = SYSTEMS, items: int = 3) -> PairingPool:
    return PairingPool({f"i{number}": systems for number in range(items)})


def meet(
    pool: PairingPool,
    ratings: Mapping[str, float],
    battles: Mapping[tuple[Pair, str], int],
    judged: Collection[tuple[Pair, str]],
    votes: Mapping[Pair, int] | None = None,
    provisional: Collection[str] = (),
    **how: Any,
) -> Meeting | None:
    """Choose by numbers of battles by pair and item; where no votes are given, each battle had one."""
    served: Counter[Pair] = Counter()
    for (met, _), count in battles.items():
        served[met] += count
    arranged = PairingField(pool, ratings, served if votes is None else votes, served, provisional)
    return choose_next_meeting(
        arranged, MetBefore(judged), lambda met: {item: n for (both, item), n in battles.items() if both == met}, **how
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**53))
def test_a_voter_meets_each_pair_once_on_each_item_and_then_nothing(seed: int) -> None:
    there, judged = field(SYSTEMS[:4], 2), set()
    while (meeting := meet(there, RATINGS, {}, judged, seed=seed + len(judged))) is not None:
        assert meeting.a != meeting.b
        assert (meeting.pair, meeting.item) not in judged
        judged.add((meeting.pair, meeting.item))
    assert len(judged) == 6 * 2


def test_the_closest_third_meets_and_of_it_the_least_compared() -> None:
    """28 pairs: 7 lie 100 apart, 6 lie 200; the closest third are 9, and all that are as close as the ninth: 13."""
    fewer = SETTLED | {(("s3", "s5"), "old"): 30}
    met = {meet(field(), RATINGS, fewer, set(), seed=seed).pair for seed in range(40)}
    assert met == {("s3", "s5")}
    far = SETTLED | {(("s0", "s7"), "old"): 30}
    gaps = {
        abs(RATINGS[a] - RATINGS[b]) for a, b in (meet(field(), RATINGS, far, set(), seed=s).pair for s in range(80))
    }
    assert gaps == {100.0, 200.0}


def test_a_system_without_a_rating_meets_strong_and_weak_and_is_in_half_of_the_battles() -> None:
    there = field([*SYSTEMS, "new"])
    met = [meet(there, RATINGS, SETTLED, set(), seed=seed).pair for seed in range(300)]
    with_new = [one for one in met if "new" in one]
    assert 110 < len(with_new) < 190
    assert {other for one in with_new for other in one} == {*SYSTEMS, "new"}


def test_skipping_brings_no_other_opponent_of_a_newcomer_and_no_more_of_its_battles() -> None:
    """Whatever the seed, a voter without a vote is given one pair with the newcomer again, or never one."""
    there, votes = field([*SYSTEMS, "new"], items=9), Counter(dict.fromkeys(combinations(SYSTEMS, 2), 40))
    given = {}
    for voter in map(str, range(60)):
        met, judged = set(), set()
        for seed in range(9):
            next_one = meet(there, RATINGS, {}, judged, votes, seed=seed, deal=Deal(voter))
            judged.add((next_one.pair, next_one.item))
            met.add(next_one.pair if "new" in next_one.pair else None)
        (given[voter],) = met
    with_new = [pair for pair in given.values() if pair]
    assert 20 < len(with_new) < 40, "half of the voters are given the newcomer"
    assert set(with_new) == {tuple(sorted((system, "new"))) for system in SYSTEMS}, (
        "each with an opponent drawn for them"
    )


def test_a_newcomer_meets_everybody_once_before_anybody_twice_though_friends_skip() -> None:
    from studies.newcomers import befriend

    wins, by_opponent, others = befriend(3, 0.2)
    assert by_opponent == [1] * 10
    assert wins <= 3 < others


def test_a_system_with_few_voters_is_new_whatever_its_votes() -> None:
    there, votes = field(items=9), Counter(dict.fromkeys(combinations(SYSTEMS, 2), 40))
    met = {meet(there, RATINGS, {}, set(), votes, {"s0"}, seed=seed, deal=Deal("v")).pair for seed in range(20)}
    assert len(met) == 1 or not any("s0" in pair for pair in met)


def test_nobody_settled_is_all_against_all() -> None:
    battles: Counter = Counter()
    there = field(SYSTEMS[:5], 2)
    for seed in range(100):
        meeting = meet(there, {}, battles, set(), seed=seed)
        battles[meeting.pair, meeting.item] += 1
    assert set(battles.values()) == {5}, "20 pairs and items, 100 battles"


def test_systems_without_a_common_item_do_not_meet() -> None:
    there = PairingPool({"i0": {"a", "b"}, "i1": {"b", "c"}})
    pairs = {meet(there, {}, {}, set(), seed=seed).pair for seed in range(30)}
    assert pairs == {("a", "b"), ("b", "c")}
    assert meet(PairingPool({"i0": {"a"}}), {}, {}, set(), seed=0) is None


def test_sides_are_even() -> None:
    first = sum(meet(field(), RATINGS, {}, set(), seed=seed).a < "s4" for seed in range(400))
    meetings = [meet(field(), RATINGS, {}, set(), seed=seed) for seed in range(400)]
    assert 160 < sum((one.a, one.b) == one.pair for one in meetings) < 240
    assert 0 < first < 400


def test_mtalk_takes_one_of_the_three_closest_pairs() -> None:
    ratings = {"s0": 0.0, "s1": 10.0, "s2": 30.0, "s3": 70.0, "s4": 150.0}
    there = field(list(ratings))
    met = Counter(meet(there, ratings, {}, set(), seed=seed, rule="mtalk").pair for seed in range(300))
    assert set(met) == {("s0", "s1"), ("s1", "s2"), ("s0", "s2")}
    assert min(met.values()) > 60


def closest_by_sorting(pool: PairingPool, served: Mapping[Pair, int], judged: set[tuple[Pair, str]]) -> set[Pair]:
    """The rule of settled systems as it is written: sort what is open, take the closest third, then the least met."""
    open_pairs = [
        met
        for met in combinations(SYSTEMS, 2)
        if any({*met} <= systems and (met, item) not in judged for item, systems in pool.items.items())
    ]
    gaps = {met: abs(RATINGS[met[0]] - RATINGS[met[1]]) for met in open_pairs}
    nearest = sorted(open_pairs, key=gaps.__getitem__)
    last = gaps[nearest[min(max(3, round(len(nearest) / 3)), len(nearest)) - 1]]
    near = [met for met in nearest if gaps[met] <= last]
    return {met for met in near if served[met] == min(served[met] for met in near)}


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_settled_pairs_are_those_of_the_rule_as_it_is_written_each_as_often(random_: random.Random) -> None:
    pool = PairingPool({f"i{number}": random_.sample(SYSTEMS, random_.randint(2, 8)) for number in range(4)})
    together = [(met, item) for item, systems in pool.items.items() for met in combinations(sorted(systems), 2)]
    judged = set(random_.sample(together, len(together) // 2))
    served = {met: random_.randint(40, 42) for met in combinations(SYSTEMS, 2)}
    arranged = PairingField(pool, RATINGS, served, served)
    assert not arranged.new
    expected = closest_by_sorting(pool, served, judged)
    draws = Counter(
        choose_next_meeting(arranged, MetBefore(judged), lambda _: {}, seed=seed).pair
        for seed in range(40 * len(expected))
    )
    assert set(draws) == expected
    assert min(draws.values()) > 12, "40 each"


def test_the_opponents_of_a_newcomer_are_drawn_evenly_and_votes_elsewhere_change_nothing() -> None:
    """Sixteen pairs have no vote; each is the deal of as many voters, and stays it when another gets a vote."""
    pool, votes = field([*SYSTEMS, "new", "next"], items=9), Counter(dict.fromkeys(combinations(SYSTEMS, 2), 40))
    votes["new", "next"] = 1

    def deals(votes: Mapping[Pair, int]) -> dict[str, Pair]:
        arranged = PairingField(pool, RATINGS, votes, votes)
        met = {
            voter: choose_next_meeting(arranged, MetBefore([]), lambda _: {}, seed=1, deal=Deal(voter)).pair
            for voter in map(str, range(3200))
        }
        return {voter: pair for voter, pair in met.items() if {"new", "next"} & {*pair}}

    before = deals(votes)
    counts = Counter(before.values())
    assert 1450 < len(before) < 1750, "half of the voters"
    assert len(counts) == 16
    assert 65 < min(counts.values()) <= max(counts.values()) < 140, "100 each"
    after = deals(votes | {("new", "s3"): 1})
    assert all(after[voter] == pair for voter, pair in before.items() if pair != ("new", "s3"))


def test_what_was_heard_on_an_item_is_avoided_there() -> None:
    pool = PairingPool({"i0": SYSTEMS[:4], "i1": SYSTEMS[:4]})
    heard = [(("s0", "s1"), "i0"), (("s0", "s2"), "i1")]
    strict = PairingField(pool, RATINGS, {}, {})
    meetings = {
        (meeting.pair, meeting.item)
        for seed in range(200)
        if (meeting := choose_next_meeting(strict, MetBefore(heard, again=False), lambda _: {}, seed=seed))
    }
    assert meetings <= {(("s2", "s3"), "i0"), (("s1", "s3"), "i1")}
    open_pairs = [pool.name(number) for number in pool.find_open(MetBefore(heard, again=False)).nonzero()[0]]
    assert open_pairs == [("s1", "s3"), ("s2", "s3")]
    assert pool.find_open(MetBefore(heard)).all(), "each pair is left on one item at least"


def test_three_hundred_systems_are_paired_at_once() -> None:
    import time

    systems = [f"s{number:03}" for number in range(300)]
    ratings = {system: float(number) for number, system in enumerate(systems)}
    votes = dict.fromkeys(combinations(systems, 2), 30)
    arranged = PairingField(PairingPool({f"i{number}": systems for number in range(100)}), ratings, votes, votes)
    began = time.process_time()
    for seed in range(50):
        assert choose_next_meeting(arranged, MetBefore([]), lambda _: {}, seed=seed)
    assert (time.process_time() - began) / 50 < 0.02, "sorting all pairs took 0.17 s"
