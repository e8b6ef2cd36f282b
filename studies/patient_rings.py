"""How far can accounts that push one system, and vote honestly otherwise, change the arena's ratings?

    .venv/bin/python studies/patient_rings.py [SEEDS]

Each ring consists of accounts with a number of votes each, and a probability p that an account pushes the system when
it meets it. For each ring, the script prints how far the ring changes the rating of the system that it affects most,
both in the ratings with equal weights for all votes and in the public ratings. Next to this is the bound: 10 points,
plus one point for each per cent of the voters who belong to the ring. The last figure is how often the interval of the
pushed system contains the rating that honest voters would give it. The same is then done with honest votes only, by
voters who differ as much as in the arenas of the rings, who differ more, or who differ about one system. In this case,
the script prints how much the public ratings differ from those with equal weights, how often the intervals of both
contain the truth, and for how many voters the votes on a system count less.
"""

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import CENTRE, POINTS, Ratings, rate
from podeval.stats.davidson import Rows, fit

SYSTEMS, VOTES = 10, 4000
CROWDS = (150, 400)
"""Numbers of honest voters, who cast 4,000 votes in total."""

Numbers = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Ring:
    """Accounts that push the third weakest of ten systems."""

    accounts: int
    each: int
    push: float = 1.0
    numbers: str = "equal"
    """The numbers of votes by the accounts: `equal`, `about` (Poisson), or `honest` (distributed like those of honest
    voters).
    """
    arrive: float = 1.0
    """Share of the period, around its middle, in which the ring votes."""


RINGS = (
    Ring(60, 7), Ring(120, 4), Ring(200, 2), Ring(30, 15), Ring(60, 7, 0.7), Ring(60, 15, 0.7), Ring(30, 15, 0.7),
    Ring(60, 7, numbers="about"), Ring(60, 7, numbers="honest", arrive=0.1), Ring(60, 7, numbers="honest"),
    Ring(120, 4, numbers="honest"), Ring(200, 2, numbers="honest"), Ring(30, 15, numbers="honest"),
    Ring(60, 7, 0.7, "honest"), Ring(60, 15, 0.7, "honest"), Ring(30, 15, 0.7, "honest"), Ring(60, 7, 0.0, "honest"),
)  # fmt: skip
"""The last ring never pushes: it shows how far the votes of as many honest voters change a rating."""


@dataclass(frozen=True)
class Crowd:
    """A crowd of honest voters."""

    voters: int
    kinds: bool = True
    """Whether one voter in twenty is a fan of one system, and one in twenty has the opposite taste."""
    taste: float = 0.3
    """Standard deviation of a voter's taste, in natural logarithms of odds; the systems' strengths range from -1.2 to
    1.2.
    """
    divided: float = 0.0
    """Share of voters who like one system much better than others do, and of voters who like it much less."""
    votes: int = VOTES


HONEST = (
    *map(Crowd, (*CROWDS, 2000)), Crowd(40, votes=1200), Crowd(400, kinds=False, taste=0.0), Crowd(400, taste=0.6),
    Crowd(400, taste=1.0), Crowd(400, divided=0.1), Crowd(400, votes=40_000),
)  # fmt: skip


def simulate(seed: int, crowd: int | Crowd, ring: Ring | None = None) -> tuple[Battles, Battles, int]:
    """Return the honest votes, the same with the ring's votes, and the pushed system.

    Args:
        seed: seed of the honest votes, which are the same for every ring.
        crowd: the honest voters, or their number.
        ring: the ring.
    """
    crowd = Crowd(crowd) if isinstance(crowd, int) else crowd
    random = np.random.default_rng([seed, crowd.voters])
    strength = random.permutation(np.linspace(-1.2, 1.2, SYSTEMS))
    pushed = int(np.argsort(strength)[2])
    taste = _draw_tastes(crowd, crowd.voters, strength, random)
    honest = _vote(_spread(crowd.voters, crowd.votes, random), taste, random.random(crowd.votes), random)
    if ring is None:
        return _battles([honest]), _battles([honest]), pushed
    # The ring's votes are honest except when it pushes.
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


def _draw_tastes(crowd: Crowd, voters: int, strength: Numbers, random: np.random.Generator) -> Numbers:
    taste: Numbers = strength + random.normal(0, crowd.taste, (voters, SYSTEMS))
    if crowd.kinds:
        special = np.arange(voters) % 20
        taste[special == 0] *= -1
        fans = np.flatnonzero(special == 1)
        taste[fans, random.integers(0, SYSTEMS, fans.size)] += 2
    taste[: round(crowd.divided * voters), 0] += 3
    taste[voters - round(crowd.divided * voters) :, 0] -= 3
    return taste


def find_truth(seed: int, crowd: Crowd) -> Numbers:
    """Compute the ratings from the expected votes of 4,000 such voters on every pair."""
    random = np.random.default_rng([seed, crowd.voters])
    strength = random.permutation(np.linspace(-1.2, 1.2, SYSTEMS))
    taste = _draw_tastes(crowd, 4000, strength, random)
    a, b = np.triu_indices(SYSTEMS, 1)
    gap = taste[:, a] - taste[:, b]
    tie, won = 0.2 * np.exp(-np.abs(gap)), 1 / (1 + np.exp(-gap))
    shares = np.stack([won * (1 - tie), (1 - won) * (1 - tie), tie]).mean(axis=1)
    rows = Rows(np.arange(SYSTEMS), 1, (), a, b, np.zeros_like(a), np.zeros((a.size, 0)), 1000 * shares)
    fitted = fit(rows, 0.0)[:-1]
    return np.asarray(CENTRE + POINTS * (fitted - fitted.mean()))


def _spread(voters: int, votes: int, random: np.random.Generator) -> Codes:
    """Draw the voter of each vote: a few voters cast many votes, and most cast few."""
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
    """Return the ratings of s0, s1, …"""
    return np.array([ratings.get(f"s{number}").rating for number in range(SYSTEMS)])


def move(ring: Ring, voters: int, seeds: int) -> tuple[Numbers, Numbers, float]:
    """Return how far the ring changes the rating of the system that it affects most, whether the interval of the pushed
    system contains the truth, and the bound.

    The first two are arrays (seeds, 2): with equal weights for all votes, and in public. The truth is the rating that
    honest voters would give.
    """
    moves, inside = [], []
    for seed in range(seeds):
        honest, together, pushed = simulate(seed, voters, ring)
        before, truth = points(rate(honest)), find_truth(seed, Crowd(voters))[pushed]
        both = [rate(together, robust=robust) for robust in (False, True)]
        moves.append([np.abs(points(ratings) - before).max() for ratings in both])
        inside.append([one.low <= truth <= one.high for one in (ratings.get(f"s{pushed}") for ratings in both)])
    return np.array(moves), np.array(inside), 10 + 100 * ring.accounts / (voters + ring.accounts)


def main() -> None:
    """Print the tables."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print("voters, ring: bound | all alike, mean (most) | public, mean (most) | within the bound | intervals of both")
    for voters in CROWDS:
        for ring in RINGS:
            moves, inside, bound = move(ring, voters, seeds)
            figures = [f"{mean:.1f} ({most:.1f})" for mean, most in zip(moves.mean(0), moves.max(0), strict=True)]
            shares = [f"{share:.0%}" for share in (np.mean(moves[:, 1] <= bound), *inside.mean(axis=0))]
            print(f"{voters} {ring}: {bound:.1f} | {' | '.join(figures + shares)}", flush=True)
    for crowd in HONEST:
        change, touched, fans, held = [], [], [], []
        for seed in range(seeds):
            honest, _, _ = simulate(seed, crowd)
            alike, public, truth = rate(honest), rate(honest, robust=True), find_truth(seed, crowd)
            change.append(np.abs(points(public) - points(alike)))
            touched.append(max((one.voters for one in public.lowered if one.weight < 0.5), default=0) / crowd.voters)
            fans.append(any(one.grouped_by in ("fans", "opponents") for one in public.lowered))
            rows = [[ratings.get(f"s{number}") for number in range(SYSTEMS)] for ratings in (alike, public)]
            held.append([[one.low <= true <= one.high for one, true in zip(each, truth, strict=True)] for each in rows])
        inside = np.mean(held, axis=(0, 2))
        print(
            f"honest only, {crowd}: changed by {np.mean(change):.2f} points, at most {np.max(change):.1f}; intervals "
            f"hold the truth {inside[0]:.1%}, public {inside[1]:.1%}; fans lowered in {np.mean(fans):.0%} of arenas; "
            f"{np.mean(touched):.2%} of the voters count less than half on a system",
            flush=True,
        )


if __name__ == "__main__":
    main()
