"""How often do the arena's intervals contain the truth for a new system, and can friends choose its opponents?

    .venv/bin/python studies/newcomers.py coverage [ROUNDS]
    .venv/bin/python studies/newcomers.py friends [ROUNDS]

`coverage` simulates seven systems, with 30 voters who cast 20 votes each, and an eighth system that is added later and
has few battles. The eighth is judged by new voters with one vote each, by five voters, by five voters of whom one casts
nearly all votes, or by earlier voters. `friends` simulates a system that is added to ten others: five friends skip
every battle except those between the new system and the three weakest, and other voters vote on the battles that they
are given.
"""

import sys
from collections import Counter, defaultdict
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from podeval.arena.pairing import Deal, MetBefore, Pair, PairingField, PairingPool, choose_next_meeting, pair
from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import CENTRE, rate

OLD, VOTERS, EACH, TIE_ODDS, TASTE = 7, 30, 20, 0.5, 0.5
NAMES = tuple(f"s{number:02}" for number in range(OLD + 1))
JUDGED_BY = ("a new voter each", "five voters", "mostly one of five", "old voters")

Numbers = NDArray[np.float64]


def simulate(
    strength: Numbers, late: int, judged_by: str, random: np.random.Generator, voters: int = VOTERS
) -> Battles:
    """Return votes on all systems but the last, and `late` further votes on the last."""
    old = len(strength) - 1
    # The votes of the regular voters, and those on the newcomer.
    voter = np.repeat(np.arange(voters), EACH)
    first = random.integers(0, old, voter.size)
    second = (first + random.integers(1, old, voter.size)) % old
    number = np.arange(late)
    one_of_five = np.maximum(0, number - (late - 5)) if "mostly" in judged_by else number % 5
    own = {JUDGED_BY[0]: number, JUDGED_BY[3]: random.permutation(voters)[number % voters] - voters}
    voter = np.concatenate([voter, voters + own.get(judged_by, one_of_five)])
    first = np.concatenate([first, np.full(late, old)])
    second = np.concatenate([second, random.permutation(np.arange(late) % old)])
    # Tastes differ, and ties occur.
    tastes = strength + random.normal(0, TASTE, (int(voter.max()) + 1, old + 1))
    half = (tastes[voter, first] - tastes[voter, second]) / 2
    odds = np.stack([np.exp(half), np.exp(-half), np.full(voter.size, TIE_ODDS)], axis=1)
    draw = random.random(voter.size)[:, None] * odds.sum(axis=1, keepdims=True)
    outcome = (draw > odds.cumsum(axis=1)).sum(axis=1)
    people = tuple(f"v{number}" for number in range(len(tastes)))
    return Battles(NAMES[: old + 1], people, first, second, outcome, voter, {})


def find_truth(strength: Numbers) -> Numbers:
    """Return the ratings that the votes of very many people with tastes imply; zeros if all strengths are equal."""
    if np.ptp(strength) == 0:
        return np.zeros(len(strength))
    many = simulate(strength, 100_000, JUDGED_BY[0], np.random.default_rng(1), voters=20_000)
    rated = rate(many)
    return np.array([rated.get(name).rating for name in NAMES])


def coverage(unequal: bool, late: int, judged_by: str, rounds: int) -> tuple[float, float, float]:
    """Return the share of the newcomer's intervals that contain the truth, that of the other systems' intervals, and
    the share of arenas with any false order.
    """
    random = np.random.default_rng([7, unequal, late, JUDGED_BY.index(judged_by)])
    strength = np.append(np.linspace(-1, 1, OLD), 0.5) * unequal
    truth = find_truth(strength)
    held: dict[bool, list[bool]] = {False: [], True: []}
    false = 0
    for _ in range(rounds):
        ratings = rate(simulate(strength, late, judged_by, random))
        shown = {row.system: row for row in ratings.systems if row.low is not None}
        centre = np.mean([truth[NAMES.index(name)] for name in shown])
        for name, row in shown.items():
            true = CENTRE + truth[NAMES.index(name)] - centre
            held[name == NAMES[-1]].append(bool(row.low <= true <= row.high))
        true_order = np.array([truth[NAMES.index(row.system)] for row in ratings.systems])
        wrong = ratings.apart & ((true_order[:, None] - true_order) * ratings.differences <= 0)
        false += bool(wrong.any())
    return *(float(np.mean(held[late])) if held[late] else float("nan") for late in (True, False)), false / rounds


def befriend(seed: int, honest: float) -> tuple[int, list[int], int]:
    """Serve battles to five friends of a new system until each has been served 120, the hourly maximum of the site.

    Args:
        seed: the seed.
        honest: number of battles that other voters vote on for each battle that is served to a friend.

    Returns:
        The friends' wins over the three weakest systems, the number of the new system's first ten votes against each
        opponent, weakest first, and the number of its votes that come from other voters.
    """
    random = np.random.default_rng(seed)
    systems = [f"s{number}" for number in range(10)]
    pool = PairingPool({f"i{item}": [*systems, "new"] for item in range(50)})
    votes: Counter[Pair] = Counter({pair(*met): 40 for met in combinations(systems, 2)})
    served, battles = votes.copy(), Counter[tuple[Pair, str]]()
    ratings = {name: 40.0 * number for number, name in enumerate(systems)}
    own: dict[str, list[Pair]] = defaultdict(list)
    judged: dict[str, set[tuple[Pair, str]]] = defaultdict(set)
    wins, first_votes, others = 0, [], 0
    for _ in range(120):
        voters = [
            *(f"friend{number}" for number in range(5)),
            *(f"v{n}" for n in random.integers(0, 40, random.poisson(5 * honest))),
        ]
        for voter in voters:
            rated = ratings | ({"new": 200.0} if first_votes else {})
            met = choose_next_meeting(
                PairingField(pool, rated, votes, served), MetBefore(judged[voter]),
                lambda both: {item: count for (played, item), count in battles.items() if played == both},
                seed=int(random.integers(2**40)), deal=Deal(voter, own[voter]),
            )  # fmt: skip
            if met is None:
                continue
            judged[voter].add((met.pair, met.item))
            battles[met.pair, met.item] += 1
            served[met.pair] += 1
            opponent = next(iter({met.a, met.b} - {"new"}))
            wanted = "new" in met.pair and opponent in systems[:3]
            if voter.startswith("friend") and not wanted:
                continue
            votes[met.pair] += 1
            own[voter].append(met.pair)
            if "new" in met.pair:
                wins += voter.startswith("friend")
                others += not voter.startswith("friend")
                first_votes.append(systems.index(opponent))
    return wins, [first_votes[:10].count(number) for number in range(10)], others


def main() -> None:
    """Print the tables."""
    if sys.argv[1:2] == ["friends"]:
        for honest in (0.0, 0.2, 1.0):
            rounds = [befriend(seed, honest) for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20)]
            wins, others = (np.array([one[place] for one in rounds]) for place in (0, 2))
            shares = np.mean([one[1] for one in rounds], axis=0)
            print(
                f"{honest:g} votes of others to a friend's battle: {wins.mean():.1f} wins by friends, "
                f"{others.mean():.1f} votes by others; the first ten votes by opponent: {np.round(shares, 1).tolist()}"
            )
        return
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    print("systems  judged by            battles  newcomer  others  any false order")
    for unequal, judged_by, late in product((False, True), JUDGED_BY, (4, 10, 15, 20, 40)):
        new, others, false = coverage(unequal, late, judged_by, rounds)
        print(f"{'unequal' if unequal else 'equal':8} {judged_by:20} {late:7}  {new:8.3f}  {others:6.3f}  {false:.3f}")


if __name__ == "__main__":
    main()
