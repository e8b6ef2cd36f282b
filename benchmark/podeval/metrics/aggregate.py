"""Aggregation of results over many items: the mean over scored items, its 95 % interval, and why items are unscored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podeval.metrics import Key, Metric, Result, Score, Unscored
from podeval.stats.intervals import Interval, mean_ci

COMPLETE = 0.95
"""Share of items that must be scored for a system to be ranked."""


@dataclass(frozen=True)
class Aggregate:
    """The values of one metric over many items.

    `intervals[key]` contains the mean and its 95 % interval, clustered by item group; None if no item has a value. The
    keys are those of the scores, in the order of the declaration, or all declared keys if nothing was scored. An
    interval never extends beyond the bounds of its key.
    """

    intervals: dict[str, Interval | None]
    scored: int
    unscored_system: int
    unscored_ours: int
    reasons: dict[str, int]

    @property
    def unscored(self) -> int:
        """The number of items without a score, from any cause."""
        return self.unscored_system + self.unscored_ours

    @property
    def rankable(self) -> bool:
        """Whether a system may be ranked by these values: no item is unscored through our fault, and at least the share
        `COMPLETE` of the items is scored, so a system gains nothing from unscored items.
        """
        return is_complete(self.scored, self.unscored_system, self.unscored_ours)


def is_complete(scored: int, unscored_system: int, unscored_ours: int) -> bool:
    """Return whether enough items are scored for a system to be ranked by them."""
    return scored > 0 and unscored_ours == 0 and scored >= COMPLETE * (scored + unscored_system)


def find_gap(score: Score, key: Key) -> Unscored | None:
    """Return the reason why a score lacks a value that the item should have; None if no value is missing.

    A key does not exist for an item if the score omits it, or if it is None and its declaration has a condition
    `only_for`. If a key exists but has no value, the item is unscored for the key, with the reason and the
    cause from the note `<key>_unscored`; without such a note, the cause is the system.
    """
    stated = score.notes.get(f"{key.name}_unscored", {})
    if score.values.get(key.name, 0.0) is not None or (key.only_for and not stated):
        return None
    # A note that is plain text names the model that is not installed, so the cause is ours.
    stated = stated if isinstance(stated, Mapping) else {"unscored": stated, "cause": "ours"}
    return Unscored(stated.get("unscored", f"{key.name} has no value"), stated.get("cause", "system"))


def aggregate(metric: Metric, results: Sequence[Result], groups: Sequence[str] | None = None) -> Aggregate:
    """Aggregate the results of one metric; `groups[i]` names the group of item i for resampling, such as an episode."""
    groups = groups if groups is not None else [str(number) for number in range(len(results))]
    scored = [(result, group) for result, group in zip(results, groups, strict=True) if isinstance(result, Score)]
    refused = [result for result in results if isinstance(result, Unscored)]
    declared = [key.name for key in metric.keys]
    bounds = {key.name: key.bounds for key in metric.keys}
    scored_keys = dict.fromkeys(key for score, _ in scored for key in score.values)
    keys = [
        *(key for key in declared if key in scored_keys),
        *(key for key in scored_keys if key not in declared),
    ] or declared
    intervals: dict[str, Interval | None] = {}
    for key in keys:
        present = [
            (value, group, score.weights.get(key))
            for score, group in scored
            if (value := score.values.get(key)) is not None
        ]
        weights = [1.0 if weight is None else weight for _, _, weight in present]
        intervals[key] = (
            mean_ci(
                [value for value, _, _ in present],
                [group for _, group, _ in present],
                weights=weights if any(weight is not None for _, _, weight in present) else None,
                bounds=bounds.get(key, (None, None)),
            )
            if present
            else None
        )
    return Aggregate(
        intervals=intervals,
        scored=len(scored),
        unscored_system=sum(result.cause == "system" for result in refused),
        unscored_ours=sum(result.cause == "ours" for result in refused),
        reasons=dict(Counter(result.reason for result in refused)),
    )
