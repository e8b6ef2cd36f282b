"""Measure how often `podeval compare` fails equal systems, and which changes it detects, for
docs/decisions/regression-gate.md.

`python studies/regression_gate.py [COMPARISONS]` prints the figures as Markdown. Values are simulated: each item has a
difficulty, around which the values of its seeds vary. Values "like WER" are skewed and change in steps of one word in
250, and sometimes a whole sentence is lost; values "like DNSMOS" are nearly normal. Equal systems draw from the same
distribution.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from podeval.stats.pair_comparisons import holm
from podeval.stats.sequential import evidence_of_increase, permutation_p

LEVEL = 0.05
Draw = Callable[[np.random.Generator, int, int, float], np.ndarray]


def like_wer(generator: np.random.Generator, items: int, seeds: int, worse: float) -> np.ndarray:
    """Draw error rates `(items, seeds)`; `worse` is added to the rate of each item."""
    difficulty = generator.gamma(2.0, 0.02, (items, 1))
    words = generator.binomial(250, np.clip(difficulty + worse, 0, 1), (items, seeds))
    lost = 15 * (generator.random((items, seeds)) < 0.05)
    return (words + lost) / 250


def like_dnsmos(generator: np.random.Generator, items: int, seeds: int, worse: float) -> np.ndarray:
    """Draw negated DNSMOS values, so that more is worse, with standard deviations of 0.1 between items and 0.03 between
    seeds.
    """
    difficulty = generator.normal(-3.4, 0.1, (items, 1))
    return difficulty + generator.normal(0, 0.03, (items, seeds)) + worse


DRAWS: dict[str, Draw] = {"like WER": like_wer, "like DNSMOS": like_dnsmos}


@dataclass(frozen=True)
class Look:
    """Whether a comparison failed: in a single look at the mean, in a look after each item, or by an item's seeds."""

    once: bool
    often: bool
    by_item: bool


def compare_once(draw: Draw, items: int, seeds: int, worse: np.ndarray | float, seed: int) -> Look:
    """Draw two systems on the same items and compare them as `podeval compare --fail-if-worse` does.

    Args:
        draw: function that draws the values.
        items: number of items; each is its own cluster.
        seeds: number of seeds for each item.
        worse: amount added to the second system's values, for all items or for each.
        seed: seed of the draws.
    """
    generator = np.random.default_rng(seed)
    # Both systems get the same difficulties, because these are properties of the items.
    state = generator.bit_generator.state
    first = draw(generator, items, seeds, 0.0)
    twin = np.random.default_rng(seed)
    twin.bit_generator.state = state
    second = draw(_SameItems(twin, np.random.default_rng(seed + 10**9)), items, seeds, 0.0)  # type: ignore[arg-type]
    second = second + np.broadcast_to(worse, (items,))[:, None]
    tested = seeds >= 5
    share = LEVEL / 2 if tested else LEVEL
    evidence = evidence_of_increase((second - first).mean(axis=1))
    by_item = False
    if tested:
        p = np.array([permutation_p(a, b) for a, b in zip(first, second, strict=True)])
        by_item = bool(holm(p, 1 - share).any())
    return Look(bool(evidence[-1] >= 1 / share), bool(evidence.max() >= 1 / share), by_item)


class _SameItems:
    """Repeats another generator's draws of the items' difficulties, and draws everything else anew."""

    def __init__(self, same: np.random.Generator, fresh: np.random.Generator) -> None:
        self._same, self._fresh = same, fresh

    def gamma(self, *arguments: object) -> np.ndarray:
        return self._same.gamma(*arguments)  # type: ignore[arg-type, return-value]

    def normal(self, centre: float, spread: float, shape: tuple[int, int]) -> np.ndarray:
        return (self._same if shape[1] == 1 and centre else self._fresh).normal(centre, spread, shape)

    def binomial(self, *arguments: object) -> np.ndarray:
        return self._fresh.binomial(*arguments)  # type: ignore[arg-type, return-value]

    def random(self, shape: tuple[int, int]) -> np.ndarray:
        return self._fresh.random(shape)


def share_failed(
    draw: Draw, items: int, seeds: int, worse: np.ndarray | float, comparisons: int
) -> tuple[float, float, float]:
    """Return the shares of comparisons that fail in a single look at the mean, in any look, and in any look or by an
    item.
    """
    looks = [compare_once(draw, items, seeds, worse, number) for number in range(comparisons)]
    return (
        float(np.mean([look.once for look in looks])),
        float(np.mean([look.often for look in looks])),
        float(np.mean([look.often or look.by_item for look in looks])),
    )


def main(comparisons: int) -> None:
    """Print the tables of the decision's page."""
    print("| values | items | seeds | one look | after each item | after each item, or by an item |")
    print("|---|---|---|---|---|---|")
    for name, draw in DRAWS.items():
        for items, seeds in ((6, 1), (6, 5), (20, 1), (51, 1), (51, 3)):
            shares = share_failed(draw, items, seeds, 0.0, comparisons)
            print(f"| {name} | {items} | {seeds} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    print("\n| values | worse by | where | items | seeds | one look at the mean | any look or an item |")
    print("|---|---|---|---|---|---|---|")
    one_of_six = np.array([0, 0, 1, 0, 0, 0])
    for name, steps in (("like WER", (0.01, 0.02, 0.05, 0.1)), ("like DNSMOS", (0.02, 0.05, 0.1, 0.5))):
        for step in steps:
            for where, items, seeds in (("all", 6, 1), ("all", 6, 5), ("all", 20, 1), ("all", 51, 1), ("one", 6, 5)):
                worse = step * one_of_six if where == "one" else step
                once, _, any_way = share_failed(DRAWS[name], items, seeds, worse, comparisons // 5)
                caught = f"{once:.0%} | {any_way:.0%}"
                print(f"| {name} | {step} | {where} | {items} | {seeds} | {caught} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
