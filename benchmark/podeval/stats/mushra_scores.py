"""Scores from listeners' marks: means by stimulus, ranks, and how far the listeners agree.

A listener's marks depend on each other, so the listener is the cluster of every interval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from podeval.errors import BadInput
from podeval.stats.agreement import Estimate, Level, krippendorff_alpha
from podeval.stats.bounded import Bounds
from podeval.stats.intervals import Interval, mean_ci, paired_bootstrap_ranks


@dataclass(frozen=True)
class Mark:
    """One rater's mark for one stimulus on one page; `seconds` is the time the page took."""

    rater: str
    page: str
    stimulus: str
    value: float
    scale: str = ""
    seconds: float | None = None
    comment: str = ""


@dataclass(frozen=True)
class StimulusScore:
    """One stimulus: its mean with the 95 % interval clustered by listener, and the ranks it may claim."""

    stimulus: str
    mean: Interval
    best: int | None
    worst: int | None


def standings(
    marks: Sequence[Mark], ranked: Sequence[str] | None = None, bounds: Bounds = (None, None)
) -> list[StimulusScore]:
    """Return the mean of each stimulus, best first, with ranks by comparing each two on the pages that both are on.

    Args:
        marks: marks on one scale.
        ranked: the stimuli to rank; None means all. Anchors are usually left out.
        bounds: the smallest and the largest mark of the scale; no interval exceeds them.

    Raises:
        BadInput: there are no marks, or two marks of one rater for the same stimulus on a page.
    """
    if not marks:
        raise BadInput("there are no marks; every listener was left out or nobody finished")
    # Marks and raters by stimulus.
    values: dict[str, dict[str, float]] = {}
    raters: dict[str, dict[str, str]] = {}
    people: dict[str, str] = {}
    for mark in marks:
        key = f"{mark.rater}\t{mark.page}\t{mark.scale}"
        if key in values.setdefault(mark.stimulus, {}):
            raise BadInput(f"{mark.rater} marked {mark.stimulus} twice on page {mark.page}; keep one of them")
        values[mark.stimulus][key] = mark.value
        raters.setdefault(mark.stimulus, {})[key] = people[key] = mark.rater
    # Ranks of each two over the pages that both are on; one that was hardly heard takes nobody's rank away.
    taking_part = {name: values[name] for name in values if ranked is None or name in ranked}
    several = any(set(taking_part[a]) & set(taking_part[b]) for a, b in combinations(taking_part, 2))
    ranks = paired_bootstrap_ranks(taking_part, True, clusters=people) if several or len(taking_part) == 1 else {}
    stimulus_scores = [
        StimulusScore(
            name,
            mean_ci(list(of_stimulus.values()), list(raters[name].values()), bounds=bounds),
            *ranks.get(name, (None, None)),
        )
        for name, of_stimulus in values.items()
    ]
    return sorted(stimulus_scores, key=lambda standing: -standing.mean.mean)


def tabulate_marks(marks: Iterable[Mark]) -> tuple[list[str], list[list[float | None]]]:
    """Return the raters, and each one's marks of all things (page, stimulus, scale) in one order; None if missing."""
    cells = {(mark.rater, (mark.page, mark.stimulus, mark.scale)): mark.value for mark in marks}
    raters = sorted({rater for rater, _ in cells})
    things = sorted({thing for _, thing in cells})
    return raters, [[cells.get((rater, thing)) for thing in things] for rater in raters]


def reliability(marks: Sequence[Mark], level: Level = "interval") -> Estimate:
    """Return Krippendorff's alpha over everything that was marked."""
    return krippendorff_alpha(tabulate_marks(marks)[1], level)
