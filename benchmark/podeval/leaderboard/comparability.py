"""Which values of a column may be ranked against one another: those that were measured on the same thing.

A recording with music is scored on its speech stem, and separation takes noise away together with the music: music
under noisy speech buys quality. So each item has a basis, that of most systems; a system that was scored on the other
one in more than a fifth of its items is shown without a rank, and items on the other basis are compared with none.
Values that a metric itself calls unranked (`Score.unranked`), such as the richness of three words, are compared with
none either.
"""

from collections import Counter
from collections.abc import Mapping

from podeval.metrics.aggregate import COMPLETE
from podeval.metrics.score import Score
from podeval.runs.board_tables import NOT_RANKED

OTHER_BASIS = 0.2
"""Largest share of a system's items that may be scored on another basis than most systems' are."""
STEM = "speech stem"

Scores = Mapping[str, Mapping[str, Score]]
"""By system and item."""


def explain_unranked(scores: Scores, key: str) -> dict[str, str]:
    """Return why systems are not ranked on a key although they have values, by system; others are left out."""
    bases = _bases(scores)
    reasons: dict[str, str] = {}
    for system, of_items in scores.items():
        refusals = Counter(reason for score in of_items.values() if (reason := score.unranked.get(key)))
        other = [item for item, score in of_items.items() if is_on_stem(score) != bases[item]]
        if refusals.total() > (1 - COMPLETE) * len(of_items):
            reasons[system] = f"{NOT_RANKED}: {refusals.most_common(1)[0][0]} ({refusals.total()} of {len(of_items)})"
        elif len(other) > OTHER_BASIS * len(of_items):
            stems = 2 * sum(is_on_stem(of_items[item]) for item in other) >= len(other)
            basis, usual = ("on their speech stem", "as they are")[:: 1 if stems else -1]
            reasons[system] = (
                f"{NOT_RANKED}: {len(other)} of {len(of_items)} recordings were scored {basis}, where those of most "
                f"systems are scored {usual}"
            )
    return reasons


def select_comparable(scores: Scores, key: str) -> dict[str, dict[str, float]]:
    """Return the values of a key that may be ranked, by system and item; weighted ones in proportion to their weight.

    Weights (those of criteria, where a mean is pooled over them) make the mean of what is returned the weighted mean.
    """
    bases = _bases(scores)
    out_of_rank = explain_unranked(scores, key)
    values_by_system: dict[str, dict[str, float]] = {}
    for system, of_items in scores.items():
        kept = {
            item: (value, score.weights.get(key, 1.0))
            for item, score in of_items.items()
            if (value := score.values.get(key)) is not None
            and key not in score.unranked
            and is_on_stem(score) == bases[item]
        }
        total = sum(weight for _, weight in kept.values())
        if system not in out_of_rank and total > 0:
            values_by_system[system] = {
                item: value * weight * len(kept) / total for item, (value, weight) in kept.items()
            }
    return values_by_system


def is_on_stem(score: Score) -> bool:
    """Return whether a recording was scored on its speech stem."""
    return score.notes.get("scored") == STEM


def _bases(scores: Scores) -> dict[str, bool]:
    """Return for each item whether most systems were scored on the speech stem; not so where they are as many."""
    votes: dict[str, list[bool]] = {}
    for of_items in scores.values():
        for item, score in of_items.items():
            votes.setdefault(item, []).append(is_on_stem(score))
    return {item: sum(stems) * 2 > len(stems) for item, stems in votes.items()}
