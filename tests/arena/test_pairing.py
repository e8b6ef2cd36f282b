from collections import Counter
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from podeval.arena.pairing import Deal, PairingPool, choose_next_meeting

SYSTEMS = [f"s{number}" for number in range(8)]
RATINGS = {system: 100.0 * number for number, system in enumerate(SYSTEMS)}
SETTLED = {(met, "old"): 40 for met in combinations(SYSTEMS, 2)}


def field(systems: list[str] = SYSTEMS, items: int = 3) -> PairingPool:
    return PairingPool({f"i{number}": systems for number in range(items)})


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**53))
def test_a_voter_meets_each_pair_once_on_each_item_and_then_nothing(seed: int) -> None:
    there, judged = field(SYSTEMS[:4], 2), set()
    while (meeting := choose_next_meeting(there, RATINGS, {}, judged, seed=seed + len(judged))) is not None:
        assert meeting.a != meeting.b
        assert (meeting.pair, meeting.item) not in judged
        judged.add((meeting.pair, meeting.item))
    assert len(judged) == 6 * 2


def test_the_closest_third_meets_and_of_it_the_least_compared() -> None:
    """28 pairs: 7 lie 100 apart, 6 lie 200; the closest third are 9, and all that are as close as the ninth: 13."""
    fewer = SETTLED | {(("s3", "s5"), "old"): 30}
    met = {choose_next_meeting(field(), RATINGS, fewer, set(), seed=seed).pair for seed in range(40)}
    assert met == {("s3", "s5")}
    far = SETTLED | {(("s0", "s7"), "old"): 30}
    gaps = {
        abs(RATINGS[a] - RATINGS[b])
        for a, b in (choose_next_meeting(field(), RATINGS, far, set(), seed=s).pair for s in range(80))
    }
    assert gaps == {100.0, 200.0}


def test_a_system_without_a_rating_meets_strong_and_weak_and_is_in_half_of_the_battles() -> None:
    there = field([*SYSTEMS, "new"])
    met = [choose_next_meeting(there, RATINGS, SETTLED, set(), seed=seed).pair for seed in range(300)]
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
            next_one = choose_next_meeting(there, RATINGS, {}, judged, seed=seed, deal=Deal(voter, [], votes))
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
    few = Deal("v", [], votes, {"s0"})
    met = {choose_next_meeting(there, RATINGS, {}, set(), seed=seed, deal=few).pair for seed in range(20)}
    assert len(met) == 1 or not any("s0" in pair for pair in met)


def test_nobody_settled_is_all_against_all() -> None:
    battles: Counter = Counter()
    there = field(SYSTEMS[:5], 2)
    for seed in range(100):
        meeting = choose_next_meeting(there, {}, battles, set(), seed=seed)
        battles[meeting.pair, meeting.item] += 1
    assert set(battles.values()) == {5}, "20 pairs and items, 100 battles"


def test_systems_without_a_common_item_do_not_meet() -> None:
    there = PairingPool({"i0": {"a", "b"}, "i1": {"b", "c"}})
    pairs = {choose_next_meeting(there, {}, {}, set(), seed=seed).pair for seed in range(30)}
    assert pairs == {("a", "b"), ("b", "c")}
    assert choose_next_meeting(PairingPool({"i0": {"a"}}), {}, {}, set(), seed=0) is None


def test_sides_are_even() -> None:
    first = sum(choose_next_meeting(field(), RATINGS, {}, set(), seed=seed).a < "s4" for seed in range(400))
    meetings = [choose_next_meeting(field(), RATINGS, {}, set(), seed=seed) for seed in range(400)]
    assert 160 < sum((one.a, one.b) == one.pair for one in meetings) < 240
    assert 0 < first < 400


def test_mtalk_takes_one_of_the_three_closest_pairs() -> None:
    ratings = {"s0": 0.0, "s1": 10.0, "s2": 30.0, "s3": 70.0, "s4": 150.0}
    there = field(list(ratings))
    met = Counter(choose_next_meeting(there, ratings, {}, set(), seed=seed, rule="mtalk").pair for seed in range(300))
    assert set(met) == {("s0", "s1"), ("s1", "s2"), ("s0", "s2")}
    assert min(met.values()) > 60


def test_a_hundred_systems_are_paired_at_once() -> None:
    import time

    systems = [f"s{number:03}" for number in range(100)]
    there = PairingPool({f"i{number}": systems for number in range(100)})
    ratings = {system: float(number) for number, system in enumerate(systems)}
    began = time.process_time()
    for seed in range(5):
        assert choose_next_meeting(there, ratings, {}, set(), seed=seed)
    assert (time.process_time() - began) / 5 < 0.2
