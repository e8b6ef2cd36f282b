"""How far can accounts that push one system, and vote honestly otherwise, move the arena's ratings?

    .venv/bin/python studies/patient_rings.py [SEEDS]

prints for each ring (accounts x votes each, probability p of a push when an account meets the system) how far it moves
the rating of the system that it moves most, by all votes alike and by the public ratings, and the bound: 10 points and
a point for each per cent of the voters who are in the ring. Then the same for honest votes only: how much the public
ratings differ from those by all votes alike, and how many voters' votes on a system count for less.
"""

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import Ratings, rate

SYSTEMS, VOTES = 10, 4000
CROWDS = (150, 400)
"""Numbers of honest voters, who give 4,000 votes together."""

Numbers = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Ring:
    """Accounts that push the third weakest of ten systems."""

    accounts: int
    each: int
    push: float = 1.0
    numbers: str = "equal"
    """How many votes an account gives: `equal`, `about` (a Poisson number), or `honest` (as honest voters differ)."""
    arrive: float = 1.0
    """Share of the time, in the middle of it, in which the ring votes."""


RINGS = (
    Ring(60, 7), Ring(120, 4), Ring(200, 2), Ring(30, 15), Ring(60, 7, 0.7), Ring(60, 15, 0.7), Ring(30, 15, 0.7),
    Ring(60, 7, numbers="about"), Ring(60, 7, numbers="honest", arrive=0.1), Ring(60, 7, numbers="honest"),
    Ring(30, 15, numbers="honest"),
)  # fmt: skip


def simulate(seed: int, voters: int, ring: Ring | None = None, kinds: bool = True) -> tuple[Battles, Battles, int]:
    """Return the honest votes, those with the ring's, and the system that it pushes.

    Args:
        seed: seed of the honest votes, which are the same for every ring.
        voters: the number of honest voters.
        ring: the ring.
        kinds: whether one honest voter in twenty is a fan of one system, and one in twenty has the opposite taste.
    """
    random = np.random.default_rng([seed, voters])
    strength = random.permutation(np.linspace(-1.2, 1.2, SYSTEMS))
    pushed = int(np.argsort(strength)[2])
    taste = strength + random.normal(0, 0.3, (voters, SYSTEMS))
    if kinds:
        special = np.arange(voters) % 20
        taste[special == 0] *= -1
        fans = np.flatnonzero(special == 1)
        taste[fans, random.integers(0, SYSTEMS, fans.size)] += 2
    honest = _vote(_spread(voters, VOTES, random), taste, random.random(VOTES), random)
    if ring is None:
        return _battles([honest]), _battles([honest]), pushed
    # The ring's votes are honest but for its pushes.
    accounts, total = ring.accounts, ring.accounts * ring.each
    numbers = random.poisson(ring.each, accounts) if ring.numbers == "about" else np.full(accounts, ring.each)
    voter = _spread(accounts, total, random) if ring.numbers == "honest" else np.repeat(np.arange(accounts), numbers)
    own = strength + random.normal(0, 0.3, (accounts, SYSTEMS))
    at = 0.5 + ring.arrive * (random.random(voter.size) - 0.5)
    votes = _vote(voter, own, at, random)
    push = random.random(voter.size) < ring.push
    votes["outcome"][(votes["a"] == pushed) & push] = 0
    votes["outcome"][(votes["b"] == pushed) & push] = 1
    return _battles([honest]), _battles([honest, votes]), pushed


def _spread(voters: int, votes: int, random: np.random.Generator) -> Codes:
    """Return who gave each vote: some give many, most few."""
    activity = random.lognormal(0, 0.8, voters)
    return random.choice(voters, votes, p=activity / activity.sum())


def _vote(voter: Codes, taste: Numbers, at: Numbers, random: np.random.Generator) -> dict[str, NDArray[np.generic]]:
    a = random.integers(0, SYSTEMS, voter.size)
    b = (a + random.integers(1, SYSTEMS, voter.size)) % SYSTEMS
    gap = taste[voter, a] - taste[voter, b]
    outcome = (random.random(voter.size) > 1 / (1 + np.exp(-gap))).astype(np.intp)
    outcome[random.random(voter.size) < 0.2 * np.exp(-np.abs(gap))] = 2
    return {"voter": voter, "a": a, "b": b, "outcome": outcome, "at": at}


def _battles(groups: list[dict[str, NDArray[np.generic]]]) -> Battles:
    first = np.cumsum([0, *(int(group["voter"].max()) + 1 for group in groups)])
    columns = {name: np.concatenate([group[name] for group in groups]) for name in ("a", "b", "outcome", "at")}
    voter = np.concatenate([group["voter"] + start for group, start in zip(groups, first[:-1], strict=True)])
    order = np.argsort(columns["at"])
    names = tuple(f"s{number}" for number in range(SYSTEMS))
    people = tuple(f"v{number}" for number in range(first[-1]))
    return Battles(names, people, *(columns[name][order] for name in ("a", "b", "outcome")), voter[order], {})


def points(ratings: Ratings) -> Numbers:
    """Ratings of s0, s1, …"""
    return np.array([ratings.get(f"s{number}").rating for number in range(SYSTEMS)])


def move(ring: Ring, voters: int, seeds: int) -> tuple[Numbers, Numbers, float]:
    """Points by which the ring moves the system that it moves most, by all votes and in public, and the bound."""
    moved = []
    for seed in range(seeds):
        honest, together, _ = simulate(seed, voters, ring)
        before = points(rate(honest))
        moved.append([np.abs(points(rate(together, robust=robust)) - before).max() for robust in (False, True)])
    alike, public = np.array(moved).T
    return alike, public, 10 + 100 * ring.accounts / (voters + ring.accounts)


def main() -> None:
    """Print the tables."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print("honest voters, ring: bound | all votes alike, mean (most) | public, mean (most) | within the bound")
    for voters in CROWDS:
        for ring in RINGS:
            alike, public, bound = move(ring, voters, seeds)
            print(
                f"{voters} {ring}: {bound:.1f} | {alike.mean():.1f} ({alike.max():.1f}) | "
                f"{public.mean():.1f} ({public.max():.1f}) | {np.mean(public <= bound):.0%}",
                flush=True,
            )
    for voters in (*CROWDS, 2000):
        change, touched = [], []
        for seed in range(seeds):
            honest, _, _ = simulate(seed, voters)
            public = rate(honest, robust=True)
            change.append(np.abs(points(public) - points(rate(honest))))
            touched.append(max((one.voters for one in public.lowered if one.weight < 0.5), default=0) / voters)
        print(
            f"honest only, {voters}: changed by {np.mean(change):.2f} points, at most {np.max(change):.1f}; "
            f"{np.mean(touched):.2%} of the voters count less than half on a system"
        )


if __name__ == "__main__":
    main()
