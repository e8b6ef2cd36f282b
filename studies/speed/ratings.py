"""Measure how long it takes to rate one million votes; the script prints figures and asserts nothing.

python studies/speed/ratings.py [VOTES] [SYSTEMS] [VOTERS]
"""

import sys
import time
from functools import partial

import numpy as np

from podeval.stats.battles import Battles, elo
from podeval.stats.bradley_terry import rate


def votes(count: int, systems: int, voters: int, seed: int = 0) -> dict[str, list[str]]:
    """Draw votes of people with different tastes, as columns of names."""
    random = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, systems)
    taste = random.normal(0, 0.5, (voters, systems))
    voter = random.integers(0, voters, count)
    first = random.integers(0, systems, count)
    second = (first + random.integers(1, systems, count)) % systems
    apart = strength[first] - strength[second] + taste[voter, first] - taste[voter, second]
    odds = np.stack([np.exp(apart / 2), np.exp(-apart / 2), np.full(count, 0.5)], axis=1)
    drawn = random.random(count)[:, None] * odds.sum(axis=1, keepdims=True)
    outcome = np.array(["a", "b", "tie"], dtype=object)[(drawn > odds.cumsum(axis=1)).sum(axis=1)]
    names = np.array([f"system {number}" for number in range(systems)], dtype=object)
    people = np.array([f"voter {number}" for number in range(voters)], dtype=object)
    return {
        "first": names[first].tolist(),
        "second": names[second].tolist(),
        "outcome": outcome.tolist(),
        "voter": people[voter].tolist(),
    }


def main() -> None:
    count, systems, voters = (int(value) for value in (*sys.argv[1:], *("1000000", "30", "5000")[len(sys.argv) - 1 :]))
    rate(Battles.of(["a"], ["b"], ["tie"]))  # imports evalica once
    columns = votes(count, systems, voters)
    print(f"{count:,} votes of {voters:,} voters on {systems} systems")
    battles = Battles.of(**columns)
    for name, step in (
        ("read the columns", partial(Battles.of, **columns)),
        ("rate, voter-clustered intervals", partial(rate, battles)),
        ("the same with position", partial(rate, battles, position=True)),
        ("Elo", partial(elo, battles)),
    ):
        began = time.perf_counter()
        step()
        print(f"  {name:32s} {time.perf_counter() - began:6.2f} s")


if __name__ == "__main__":
    main()
