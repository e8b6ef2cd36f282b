"""A quick point estimate of each system's strength, for choosing pairs and checking voters, not for the board.

Bradley-Terry by evalica, ties and both-bad as half a win. Every system also has two drawn battles against an invisible
one, so that the estimate of a system that never lost stays finite. The board's ratings, with intervals:
`arena.ratings`.
"""

import math
from collections.abc import Iterable

_WINNERS = {"a": "X", "b": "Y", "tie": "Draw", "both_bad": "Draw"}
_INVISIBLE = "\x00"
_PRIOR = 2.0


def rate_quickly(systems: Iterable[str], battles: Iterable[tuple[str, str, str, int]]) -> dict[str, float]:
    """Rate each system on Elo's scale (400 for odds of ten to one), centred at 0.

    Args:
        systems: the systems to rate, also those without a battle.
        battles: `(a, b, outcome, how often)`, outcome `a`, `b`, `tie` or `both_bad`.
    """
    import evalica

    names, met = sorted(set(systems)), list(battles)
    if not names:
        return {}
    fitted = evalica.bradley_terry(
        [a for a, *_ in met] + names,
        [b for _, b, *_ in met] + [_INVISIBLE] * len(names),
        [evalica.Winner[_WINNERS[outcome]] for *_, outcome, _ in met] + [evalica.Winner.Draw] * len(names),
        weights=[float(count) for *_, count in met] + [_PRIOR] * len(names),
    )
    scale = {system: 400 * math.log10(score) for system, score in fitted.scores.items()}
    middle = sum(scale[system] for system in names) / len(names)
    return {system: scale[system] - middle for system in names}
