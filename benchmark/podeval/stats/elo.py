"""Elo: R_A + K (S_A - E_A) with E_A = 1 / (1 + 10^((R_B - R_A) / 400)), from 1000 with K = 4, in recorded order.

MTalk-Bench section 5.1 and App. C.1; computed by evalica. It is what the paper prints, and easy to follow battle by
battle, but it depends on the order of the votes and has no interval: `order_spread` shows how much the order alone
changes it. Ranks are by Bradley and Terry (`podeval.stats.bradley_terry`).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from podeval.stats.battles import OUTCOMES, Battles

Variant = Literal["default", "mtalk"]

INITIAL = 1000.0
K = 4.0
SCALE = 400.0
_SHUFFLES = 100


@dataclass(frozen=True)
class Elo:
    """A system's rating after its last battle, and its outcomes; `both_bad` is counted neither in wins nor in ties."""

    rating: float
    wins: int
    losses: int
    ties: int
    both_bad: int


def elo(battles: Battles, variant: Variant = "default") -> dict[str, Elo]:
    """Compute the Elo rating of every system that was in a battle, best first.

    Args:
        battles: in the order in which they count.
        variant: `default` gives both sides ½ for a tie and for both bad; `mtalk` leaves those out, as the paper's code.
    """
    # Ratings, from the battles that the variant counts.
    decided = battles.outcome < 2
    counted = battles.only(decided) if variant == "mtalk" else battles
    ratings = _ratings(counted, np.arange(len(counted)))
    # Outcomes of every battle, seen from either side.
    counts = {
        system: np.zeros(4, dtype=int) for number, system in enumerate(battles.systems) if _has_fought(battles, number)
    }
    for side, order in ((battles.first, (0, 1, 2, 3)), (battles.second, (1, 0, 2, 3))):
        table = np.zeros((len(battles.systems), len(OUTCOMES)), dtype=int)
        np.add.at(table, (side, battles.outcome), 1)
        for number, system in enumerate(battles.systems):
            if system in counts:
                counts[system] += table[number, list(order)]
    elos = {system: Elo(ratings.get(system, INITIAL), *map(int, row)) for system, row in counts.items()}
    return dict(sorted(elos.items(), key=lambda entry: (-entry[1].rating, entry[0])))


def order_spread(
    battles: Battles, variant: Variant = "default", shuffles: int = _SHUFFLES, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Return the 2.5 and 97.5 % points of each system's Elo over shuffles of the same votes: what order alone does."""
    counted = battles.only(battles.outcome < 2) if variant == "mtalk" else battles
    random = np.random.default_rng(seed)
    runs = [_ratings(counted, random.permutation(len(counted))) for _ in range(shuffles)]
    spread = {}
    for system in runs[0] if runs else ():
        low, high = np.quantile([run[system] for run in runs], (0.025, 0.975))
        spread[system] = (float(low), float(high))
    return spread


def _ratings(battles: Battles, order: np.ndarray) -> dict[str, float]:
    import evalica

    if not len(battles):
        return {}
    ending = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.Draw)
    result = evalica.elo(
        battles.first[order].tolist(),
        battles.second[order].tolist(),
        [ending[code] for code in battles.outcome[order].tolist()],
        initial=INITIAL,
        base=10.0,
        scale=SCALE,
        k=K,
        win_weight=1.0,
        tie_weight=0.5,
    )
    return {battles.systems[code]: float(result.scores[code]) for code in result.scores.index.tolist()}


def _has_fought(battles: Battles, number: int) -> bool:
    return bool((battles.first == number).any() or (battles.second == number).any())
