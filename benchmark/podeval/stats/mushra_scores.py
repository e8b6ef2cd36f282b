"""Scores from listeners' marks: means by stimulus, ranks, how far the listeners agree, and whose marks count.

A listener's marks depend on each other, so the listener is the cluster of every interval.

PodEval section 5 excludes a listener unless the low anchor is worst on more than 90 % of the pages and the high anchor
among the top two on more than 50 %. It does not define ties: here the low anchor is worst if nothing is below it, and a
rank is one more than the number of stimuli above (competition ranking). By these two rules a listener who never moves
a slider passes, because all share the first and the last rank. The paper names equal marks for all systems as a further
sign of an invalid submission (rater 20), so a listener who gives them on more than half of the pages is excluded too.

PAM (App. 10.2) excludes listeners whose marks do not vary on more than five samples, and marks given in less than 10
seconds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from podeval.errors import BadInput
from podeval.stats.agreement import Estimate, Level, krippendorff_alpha
from podeval.stats.intervals import Bounds, Interval, mean_ci, paired_bootstrap_ranks

HIGH, LOW = "HQ", "LQ"
"""Names of the hidden anchors."""
FLAT_SAMPLES, FEWEST_SECONDS = 5, 10.0
"""PAM's filters: samples beyond which a rater's marks have to vary, and the shortest time of a mark."""


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


@dataclass(frozen=True)
class MushraRules:
    """The requirements that a listener must meet; None switches a rule off.

    `low_worst` and `high_top` are shares that must be exceeded; `alike` is the largest share of pages on which all
    but the low anchor may have the same mark, `seconds` the minimum median time per page.
    """

    low_worst: float | None = 0.9
    high_top: float | None = 0.5
    top: int = 2
    alike: float | None = 0.5
    seconds: float | None = None


@dataclass(frozen=True)
class ScreenedListener:
    """The result for one listener: shares of pages, whether the marks count, and the reasons if they do not."""

    rater: str
    pages: int
    low_worst: float | None
    high_top: float | None
    alike: float
    reasons: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Whether the marks count."""
        return not self.reasons


def screen(
    marks: Iterable[Mark], rules: MushraRules | None = None, *, high: str = HIGH, low: str = LOW
) -> list[ScreenedListener]:
    """Screen every listener of a MUSHRA test by the anchors.

    Raises:
        BadInput: a rule needs an anchor that no page has.
    """
    rules = rules or MushraRules()
    # Marks and times by rater and page.
    pages: dict[str, dict[str, dict[str, float]]] = {}
    times: dict[str, dict[str, float]] = {}
    for mark in marks:
        pages.setdefault(mark.rater, {}).setdefault(mark.page, {})[mark.stimulus] = mark.value
        if mark.seconds is not None:
            times.setdefault(mark.rater, {})[mark.page] = mark.seconds
    # The anchors that the rules need.
    stimuli = {name for of_rater in pages.values() for page in of_rater.values() for name in page}
    for anchor, rule in ((low, rules.low_worst), (high, rules.high_top)):
        if rule is not None and pages and anchor not in stimuli:
            raise BadInput(
                f"the screening uses the anchor {anchor}, but no page has it; choose another, or turn its rule off"
            )
    return [
        _screen_listener(rater, list(of_rater.values()), times.get(rater, {}), rules, high, low)
        for rater, of_rater in pages.items()
    ]


def screen_by_shares(
    rater: str, pages: int, low_worst: float | None, high_top: float | None, rules: MushraRules, alike: float = 0.0
) -> ScreenedListener:
    """Screen a listener by shares alone, as papers print them.

    Args:
        rater: the listener.
        pages: number of pages that the shares refer to.
        low_worst: share of pages on which the low anchor is worst; None if no page has it.
        high_top: share of pages on which the high anchor is among the top two; None if no page has it.
        rules: the requirements.
        alike: share of pages on which everything but the low anchor has the same mark.
    """
    reasons = []
    for anchor, position, share, least in (
        ("low", "worst", low_worst, rules.low_worst),
        ("high", f"among the top {rules.top}", high_top, rules.high_top),
    ):
        if least is not None and share is not None and not share > least:
            reasons.append(
                f"the {anchor} anchor is {position} on {share:.1%} of {pages} pages, not on more than {least:.0%}"
            )
    if rules.alike is not None and alike > rules.alike:
        reasons.append(f"all but the low anchor have one mark on {alike:.1%} of {pages} pages")
    return ScreenedListener(rater, pages, low_worst, high_top, alike, tuple(reasons))


def _screen_listener(
    rater: str, pages: list[dict[str, float]], times: dict[str, float], rules: MushraRules, high: str, low: str
) -> ScreenedListener:
    # Count the pages on which each rule holds.
    with_low = [page for page in pages if low in page]
    with_high = [page for page in pages if high in page]
    worst = sum(page[low] <= min(page.values()) for page in with_low)
    top = sum(1 + sum(value > page[high] for value in page.values()) <= rules.top for page in with_high)
    others = [[value for name, value in page.items() if name != low] for page in pages]
    alike = sum(len(values) > 1 and len(set(values)) == 1 for values in others)
    listener = screen_by_shares(
        rater,
        len(pages),
        worst / len(with_low) if with_low else None,
        top / len(with_high) if with_high else None,
        rules,
        alike / len(pages),
    )
    # The time a page took.
    middle = sorted(times.values())[len(times) // 2] if times else None
    if rules.seconds is not None and middle is not None and middle < rules.seconds:
        reason = f"half of the pages took less than {rules.seconds:g} s"
        listener = replace(listener, reasons=(*listener.reasons, reason))
    return listener


@dataclass(frozen=True)
class PamScreening:
    """The marks that count, and why the others do not."""

    kept: tuple[Mark, ...]
    dropped_raters: dict[str, str]
    hurried: int


def screen_pam(marks: Sequence[Mark]) -> PamScreening:
    """Apply PAM's filters to single marks on several scales per page.

    A rater without variation is one who rated more than `FLAT_SAMPLES` pages and gave the same mark on every scale of
    all of them; §5.1 describes it so, App. 10.2 as zero standard deviation on more than five samples.
    """
    # Raters whose marks do not vary.
    by_rater: dict[str, list[Mark]] = {}
    for mark in marks:
        by_rater.setdefault(mark.rater, []).append(mark)
    dropped = {}
    for rater, of_rater in by_rater.items():
        samples = len({(mark.page, mark.stimulus) for mark in of_rater})
        if samples > FLAT_SAMPLES and len({m.value for m in of_rater}) == 1:
            dropped[rater] = f"gave {of_rater[0].value:g} to all of {samples} samples"
    # Marks that were given too fast.
    staying = [mark for mark in marks if mark.rater not in dropped]
    kept = [mark for mark in staying if mark.seconds is None or mark.seconds >= FEWEST_SECONDS]
    return PamScreening(tuple(kept), dropped, len(staying) - len(kept))
