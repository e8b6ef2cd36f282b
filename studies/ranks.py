"""Measure how often intervals contain the truth, and how often equal systems are separated: the figures of two
decisions.

    python studies/ranks.py ranks [ROUNDS]        docs/decisions/ranks.md
    python studies/ranks.py gaps [ROUNDS]         the same page, with missing items
    python studies/ranks.py intervals [ROUNDS]    docs/decisions/intervals.md; docs/ratings.md has only ours

Normal values are an item's difficulty plus noise with a standard deviation of one. Values like word error rates are an
item's difficulty times an exponential value, of which a part is zero. Shares are yes-or-no values, seven in ten of
which are yes. Everything is drawn from fixed seeds.
"""

import sys
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from podeval.stats import pair_comparisons
from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import rate
from podeval.stats.intervals import mean_ci, paired_bootstrap_ranks, paired_difference
from podeval.stats.mushra_scores import Mark, standings

Array = NDArray[np.float64]
SYSTEMS, ITEMS = (7, 15), (2, 3, 4, 6, 20, 51)
KINDS = ("normal", "like WER", "share")


def board(kind: str, systems: int, items: int, random: np.random.Generator, gap: float = 0.0) -> Array:
    """Draw values of systems on items, `(systems, items)`; the first system is better (higher) by `gap` standard
    deviations.
    """
    ahead = gap * (np.arange(systems) == 0)[:, None]
    if kind == "normal":
        return random.normal(size=items) + random.normal(size=(systems, items)) + ahead
    if kind == "like WER":
        # The standard deviation of an exponential value that is zero in three of ten cases is 0.954.
        rates = random.exponential(size=(systems, items)) * (random.random((systems, items)) < 0.7)
        return random.gamma(4, 0.25, size=items) * (rates + 0.954 * ahead)
    easy = np.clip(0.7 + random.uniform(-0.2, 0.2, size=items), 0, 1)
    behind = gap * 0.458 * (ahead == 0) if gap else 0.0
    return (random.random((systems, items)) < np.clip(easy - behind, 0, 1)).astype(np.float64)


def ranges(values: Array) -> list[tuple[int, int]]:
    """Return the rank range of each system on a board; NaN marks a missing value."""
    scores = {
        f"s{i:02}": {f"i{j}": float(v) for j, v in enumerate(row) if not np.isnan(v)} for i, row in enumerate(values)
    }
    return list(paired_bootstrap_ranks(scores, True).values())


def false_places(kind: str, systems: int, items: int, rounds: int, seed: int = 1) -> int:
    """Count the columns of equal systems in which any system does not have the full range of ranks."""
    random = np.random.default_rng([seed, systems, items, KINDS.index(kind)])
    return sum(
        any(place != (1, systems) for place in ranges(board(kind, systems, items, random))) for _ in range(rounds)
    )


def power(kind: str, systems: int, items: int, gap: float, rounds: int, seed: int = 2) -> float:
    """Return the share of the other systems that the better system beats."""
    random = np.random.default_rng([seed, systems, items, KINDS.index(kind)])
    beaten = sum(systems - ranges(board(kind, systems, items, random, gap))[0][1] for _ in range(rounds))
    return beaten / rounds / (systems - 1)


GAPS = ("random", "its worst", "where it trails most")
"""Which items a system lacks: random ones, those with its lowest values, or those on which it trails the others
most.
"""


def leave_out(values: Array, which: str, gaps: int, who: int, random: np.random.Generator) -> Array:
    """Return a board on which the first `who` systems each lack `gaps` items."""
    kept, items = values.copy(), values.shape[1]
    for index in range(who):
        behind = values[index] - np.delete(values, index, 0).mean(axis=0)
        order = {"random": random.permutation(items), "its worst": np.argsort(values[index])}.get(which)
        kept[index, (np.argsort(behind) if order is None else order)[:gaps]] = np.nan
    return kept


def false_places_with_gaps(
    kind: str, systems: int, which: str, gaps: int, who: int, rounds: int, seed: int = 8
) -> tuple[int, int]:
    """Count the columns of equal systems on 51 items, some of them missing, in which any rank is false, and those in
    which a system with gaps is falsely ahead of another. Every pair counts as comparable, however few items it shares.
    """
    random = np.random.default_rng([seed, systems, gaps, who, KINDS.index(kind), GAPS.index(which)])
    false = won = 0
    for _ in range(rounds):
        # Error rates are negated, because higher is better here.
        values = board(kind, systems, 51, random) * (-1 if kind == "like WER" else 1)
        with patch.object(pair_comparisons, "ENOUGH_SHARED", 0):
            places = ranges(leave_out(values, which, gaps, who, random))
        false += any(place != (1, systems) for place in places)
        won += any(place[1] < systems for place in places[:who])
    return false, won


def power_with_gaps(kind: str, systems: int, gaps: int, gap: float, rounds: int, seed: int = 9) -> float:
    """Return the share of the other systems that the better system beats if it lacks random items."""
    random = np.random.default_rng([seed, systems, gaps, KINDS.index(kind)])
    beaten = sum(
        systems - ranges(leave_out(board(kind, systems, 51, random, gap), "random", gaps, 1, random))[0][1]
        for _ in range(rounds)
    )
    return beaten / rounds / (systems - 1)


def false_places_of_arena(systems: int, voters: int, each: int, rounds: int, seed: int = 3) -> int:
    """Count the arenas of equal systems, with voters of different tastes, in which any system does not have the full
    range of ranks.
    """
    random = np.random.default_rng([seed, systems, voters])
    false = 0
    for _ in range(rounds):
        taste = random.normal(0, 0.5, (voters, systems))
        voter = np.repeat(np.arange(voters), each)
        first = random.integers(0, systems, voter.size)
        second = (first + random.integers(1, systems, voter.size)) % systems
        wins = random.random(voter.size) < 1 / (1 + np.exp(taste[voter, second] - taste[voter, first]))
        tied = random.random(voter.size) < 0.2
        outcome = np.where(tied, "tie", np.where(wins, "a", "b"))
        names = [f"s{number:02}" for number in range(systems)]
        battles = Battles.of(
            [names[i] for i in first], [names[i] for i in second], outcome.tolist(), [f"v{i}" for i in voter]
        )
        found = rate(battles)
        false += any((row.best, row.worst) != (1, len(found.systems)) for row in found.systems)
    return false


def false_places_of_marks(listeners: int, rounds: int, seed: int = 4) -> int:
    """Count the MUSHRA tests of seven equal systems on six pages in which any rank is false."""
    random = np.random.default_rng([seed, listeners])
    false = 0
    for _ in range(rounds):
        taste = random.normal(60, 10, (listeners, 1, 1)) + random.normal(0, 5, (listeners, 1, 7))
        values = np.clip(taste + random.normal(0, 12, (listeners, 6, 7)), 0, 100)
        marks = [Mark(f"r{r}", f"p{p}", f"s{s}", float(v)) for (r, p, s), v in np.ndenumerate(values)]
        false += any((row.best, row.worst) != (1, 7) for row in standings(marks))
    return false


Draw = Callable[[np.random.Generator, int], Array]
DRAWS: dict[str, tuple[Draw, float, tuple[float | None, float | None]]] = {
    "normal, no bound": (lambda random, n: random.normal(size=n), 0.0, (None, None)),
    "normal, a bound 2 sd away": (lambda random, n: random.normal(size=n), 0.0, (-2.0, None)),
    "uniform in 0..1": (lambda random, n: random.random(n), 0.5, (0.0, 1.0)),
    "beta(8, 1) in 0..1": (lambda random, n: random.beta(8, 1, n), 8 / 9, (0.0, 1.0)),
    "exponential from 0": (lambda random, n: random.exponential(size=n), 1.0, (0.0, None)),
    "the same, 3 of 10 zero": (
        lambda random, n: random.exponential(size=n) * (random.random(n) < 0.7),
        0.7,
        (0.0, None),
    ),
    "gamma of shape 2 from 0": (lambda random, n: random.gamma(2, size=n), 2.0, (0.0, None)),
    "lognormal, sigma 0.5": (lambda random, n: random.lognormal(0, 0.5, n), float(np.exp(0.125)), (0.0, None)),
    "lognormal, sigma 1": (lambda random, n: random.lognormal(0, 1, n), float(np.exp(0.5)), (0.0, None)),
    "share of 0.9": (lambda random, n: (random.random(n) < 0.9).astype(float), 0.9, (0.0, 1.0)),
    "share of 0.7": (lambda random, n: (random.random(n) < 0.7).astype(float), 0.7, (0.0, 1.0)),
}
"""Functions that draw values, each with the true mean and the key's bounds."""


def held(name: str, count: int, rounds: int, seed: int = 5, bounded: bool = True) -> float:
    """Return how often the 95 % interval of a mean contains the truth; without `bounded`, this is Student's
    interval.
    """
    draw, truth, bounds = DRAWS[name]
    random = np.random.default_rng([seed, count])
    hits = 0
    for _ in range(rounds):
        interval = mean_ci(draw(random, count), bounds=bounds if bounded else (None, None))
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= truth <= interval.high
    return hits / rounds


COUNTS = (3, 4, 6, 20, 51)
"""Numbers of items per mean, for the table."""
CLUSTERS = {"equal, 3 each": (3,) * 17, "equal, 3 each, six": (3,) * 6, "unequal, 1 to 12": (1, 2, 3, 4, 6, 8, 10, 12),
            "unequal, 1 to 30": (1, 1, 2, 2, 3, 5, 8, 12, 20, 30)}  # fmt: skip


def held_clustered(sizes: tuple[int, ...], share: bool, rounds: int, seed: int = 6) -> float:
    """Return how often the clustered interval contains the truth, for means with half of the variance between clusters,
    or for shares of 0.8.
    """
    random = np.random.default_rng([seed, len(sizes), sum(sizes)])
    labels = np.repeat(np.arange(len(sizes)), sizes)
    hits = 0
    for _ in range(rounds):
        if share:
            values = (random.random(len(labels)) < random.beta(4, 1, len(sizes))[labels]).astype(float)
            truth, bounds = 0.8, (0.0, 1.0)
        else:
            values = random.normal(size=len(sizes))[labels] + random.normal(size=len(labels))
            truth, bounds = 0.0, (None, None)
        interval = mean_ci(values, labels.tolist(), bounds=bounds)
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= truth <= interval.high
    return hits / rounds


def held_difference(items: int, rounds: int, seed: int = 7) -> float:
    """Return how often the interval for the paired difference of two equal systems contains zero; a missing interval
    counts as containing it.
    """
    random = np.random.default_rng([seed, items])
    hits = 0
    for _ in range(rounds):
        a, b = ({f"i{j}": float(v) for j, v in enumerate(row)} for row in board("normal", 2, items, random))
        found = paired_difference(a, b)
        hits += found.low is None or found.high is None or found.low <= 0 <= found.high
    return hits / rounds


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_ranks(rounds: int) -> None:
    """Print the share of false ranks and the power for columns, arenas and listening tests."""
    rows = []
    for kind in KINDS:
        for systems in SYSTEMS:
            for items in ITEMS:
                few = max(100, rounds // 5)
                false = false_places(kind, systems, items, rounds) / rounds
                powers = [f"{100 * power(kind, systems, items, gap, few):.0f} %" for gap in (0.5, 1.0)]
                rows.append([kind, str(systems), str(items), f"{100 * false:.1f} %", *powers])
    print_table(["values", "systems", "items", "columns with a false place", "power at 0.5 sd", "at 1 sd"], rows)
    few = max(50, rounds // 4)
    rows = [
        [str(systems), str(voters), f"{100 * false_places_of_arena(systems, voters, 40, few) / few:.1f} %"]
        for systems in (8, 12)
        for voters in (5, 10, 30, 100)
    ]
    print_table(["systems", "voters of 40 votes", "arenas with a false place"], rows)
    rows = [[str(n), f"{100 * false_places_of_marks(n, few) / few:.1f} %"] for n in (2, 3, 5, 10, 20)]
    print_table(["listeners", "MUSHRA tests of 7 systems with a false place"], rows)
    rows = [[str(items), f"{held_difference(items, rounds):.3f}"] for items in (2, 3, 4, 6, 20, 51)]
    print_table(["items", "paired difference of equal systems holds zero"], rows)


def print_gaps(rounds: int) -> None:
    """Print the share of false ranks and the power for columns with missing items."""
    rows = []
    for kind in KINDS:
        for systems, which, gaps, who in (
            *((systems, "random", 2, systems) for systems in SYSTEMS),
            *((7, which, gaps, 1) for which in GAPS for gaps in (2, 5, 10, 25)),
            *((systems, "where it trails most", 2, systems) for systems in SYSTEMS),
        ):
            false, won = false_places_with_gaps(kind, systems, which, gaps, who, rounds)
            lacking = "each" if who > 1 else "one"
            shares = [f"{100 * count / rounds:.1f} %" for count in (false, won)]
            rows.append([kind, str(systems), f"{lacking} lacks {gaps} of 51", which, *shares])
    print_table(["values", "systems", "missing", "which items", "a false place", "won by a system with gaps"], rows)
    few = max(100, rounds // 5)
    rows = [
        [kind, str(gaps), *(f"{100 * power_with_gaps(kind, 7, gaps, gap, few):.0f} %" for gap in (0.5, 1.0))]
        for kind in KINDS
        for gaps in (0, 1, 2)
    ]
    print_table(["values", "missing from the better one, of 51", "power at 0.5 sd", "at 1 sd"], rows)


def print_intervals(rounds: int) -> None:
    """Print the coverage of means by kind and number of values, and in clusters."""
    rows = [
        [name, *(f"{held(name, n, rounds, bounded=False):.3f} → {held(name, n, rounds):.3f}" for n in COUNTS)]
        for name in DRAWS
    ]
    print_table(["values", f"{COUNTS[0]} items", *map(str, COUNTS[1:])], rows)
    rows = [
        [name, f"{held_clustered(sizes, False, rounds):.3f}", f"{held_clustered(sizes, True, rounds):.3f}"]
        for name, sizes in CLUSTERS.items()
    ]
    print_table(["clusters", "normal values", "shares of 0.8"], rows)


if __name__ == "__main__":
    asked = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    {"ranks": print_ranks, "gaps": print_gaps, "intervals": print_intervals}[sys.argv[1]](asked)
