"""Scores from listeners' marks: means by stimulus, ranks, agreement between listeners, and screening of listeners.

One listener's marks are not independent of each other, so the listener is the cluster of every interval.

PodEval section 5 excludes a listener unless the low anchor is worst on more than 90 % of the pages and the high anchor
among the top two on more than 50 %. The paper does not define ties: here, the low anchor is worst if nothing is below
it, and a rank is one more than the number of stimuli above it (competition ranking). By these two rules, a listener who
never moves a slider passes, because all stimuli share the first and the last rank. The paper names equal marks for all
systems as a further sign of an invalid submission (rater 20), so a listener who gives them on more than half of the
pages is also excluded.

PAM (App. 10.2) excludes listeners who give constant marks on more than five samples, and marks given in under 10
seconds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from podeval.errors import BadInput
from podeval.stats.agreement import Estimate, Level, krippendorff_alpha, plcc, srcc
from podeval.stats.intervals import Array, Bounds, Interval, mean_ci, paired_bootstrap_ranks
from podeval.stats.pair_comparisons import bound_alike, holm

HIGH, LOW = "HQ", "LQ"
"""Names of the hidden anchors."""
FLAT_SAMPLES, FEWEST_SECONDS, FEWEST_TESTED = 5, 10.0, 2
"""PAM's limits for samples with constant marks and for seconds per answer, and the minimum size of compared groups."""


@dataclass(frozen=True)
class Mark:
    """One rater's mark for one stimulus on one page; `seconds` is the time spent on the page."""

    rater: str
    page: str
    stimulus: str
    value: float
    scale: str = ""
    seconds: float | None = None
    comment: str = ""


@dataclass(frozen=True)
class StimulusScore:
    """One stimulus: its mean with the 95 % interval clustered by listener, and its possible ranks."""

    stimulus: str
    mean: Interval
    best: int | None
    worst: int | None


def standings(
    marks: Sequence[Mark], ranked: Sequence[str] | None = None, bounds: Bounds = (None, None)
) -> list[StimulusScore]:
    """Return the mean of each stimulus, best first, with ranks from pairwise comparisons on common pages.

    Args:
        marks: marks on one scale.
        ranked: the stimuli to rank; None means all. Anchors are usually left out.
        bounds: the smallest and the largest mark of the scale, which intervals do not exceed.

    Raises:
        BadInput: there are no marks, or two marks by one rater for the same stimulus on a page.
    """
    if not marks:
        raise BadInput("there are no marks, because every listener was excluded or nobody finished")
    # Marks by stimulus, and their raters.
    values: dict[str, dict[str, float]] = {}
    people: dict[str, str] = {}
    for mark in marks:
        key = f"{mark.rater}\t{mark.page}\t{mark.scale}"
        if key in values.setdefault(mark.stimulus, {}):
            raise BadInput(
                f"{mark.rater} marked {mark.stimulus} twice on page {mark.page}; keep only one of the two marks"
            )
        values[mark.stimulus][key] = mark.value
        people[key] = mark.rater
    # Two systems are compared on the pages that contain both, so a rarely heard system does not affect the ranks of
    # others.
    taking_part = {name: values[name] for name in values if ranked is None or name in ranked}
    several = any(set(taking_part[a]) & set(taking_part[b]) for a, b in combinations(taking_part, 2))
    ranks = paired_bootstrap_ranks(taking_part, True, clusters=people) if several or len(taking_part) == 1 else {}
    stimulus_scores = [
        StimulusScore(
            name,
            mean_ci(list(of_stimulus.values()), [people[key] for key in of_stimulus], bounds=bounds),
            *ranks.get(name, (None, None)),
        )
        for name, of_stimulus in values.items()
    ]
    return sorted(stimulus_scores, key=lambda standing: -standing.mean.mean)


def tabulate_marks(marks: Iterable[Mark]) -> tuple[list[str], list[list[float | None]]]:
    """Return the raters, and each rater's marks for all units (page, stimulus, scale) in the same order, with None for
    a missing mark.
    """
    cells = {(mark.rater, (mark.page, mark.stimulus, mark.scale)): mark.value for mark in marks}
    raters = sorted({rater for rater, _ in cells})
    things = sorted({thing for _, thing in cells})
    return raters, [[cells.get((rater, thing)) for thing in things] for rater in raters]


def reliability(marks: Sequence[Mark], level: Level = "interval") -> Estimate:
    """Return Krippendorff's alpha over all marks."""
    return krippendorff_alpha(tabulate_marks(marks)[1], level)


def correlate_raters(marks: Iterable[Mark]) -> dict[tuple[str, str], Estimate]:
    """Return the PLCC of each pair of raters over the units that both marked (PodEval Figure 16)."""
    raters, table = tabulate_marks(marks)
    pairs = {}
    for (one, mine), (other, theirs) in combinations(zip(raters, table, strict=True), 2):
        both = [(a, b) for a, b in zip(mine, theirs, strict=True) if a is not None and b is not None]
        pairs[one, other] = plcc([a for a, _ in both], [b for _, b in both])
    return pairs


def describe_pairs(marks: Iterable[Mark]) -> list[str]:
    """Describe the correlation of each pair of raters in sentences: the mean of all pairs, then one line per rater."""
    values = {pair: figure.value for pair, figure in correlate_raters(marks).items() if figure.value is not None}
    if not values:
        return []
    mean, low, high = sum(values.values()) / len(values), min(values.values()), max(values.values())
    lines = [f"PLCC of two raters: {mean:.2f} on average of {len(values)} pairs, {low:.2f} to {high:.2f}"]
    for rater in dict.fromkeys(one for one, _ in values):
        others = ", ".join(f"{other} {value:.2f}" for (one, other), value in values.items() if one == rater)
        lines.append(f"PLCC of {rater} with {others}")
    return lines


@dataclass(frozen=True)
class MushraRules:
    """The requirements that a listener must meet; None switches a rule off.

    `low_worst` and `high_top` are shares that must be exceeded; `alike` is the maximum share of pages on which
    everything except the low anchor may have the same mark, and `seconds` is the minimum median time per page.
    """

    low_worst: float | None = 0.9
    high_top: float | None = 0.5
    top: int = 2
    alike: float | None = 0.5
    seconds: float | None = None


@dataclass(frozen=True)
class ScreenedListener:
    """The result of screening one listener: shares of pages, whether the marks count, and the reasons if they do
    not.
    """

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
    """Screen every listener in a MUSHRA test by means of the anchors.

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
                f"the screening uses the anchor {anchor}, but no page has it; choose another anchor, or turn off "
                f"its rule"
            )
    return [
        _screen_listener(rater, list(of_rater.values()), times.get(rater, {}), rules, high, low)
        for rater, of_rater in pages.items()
    ]


def screen_by_shares(
    rater: str, pages: int, low_worst: float | None, high_top: float | None, rules: MushraRules, alike: float = 0.0
) -> ScreenedListener:
    """Screen a listener by shares alone, as printed in papers.

    Args:
        rater: the listener.
        pages: number of pages that the shares refer to.
        low_worst: share of pages on which the low anchor is worst; None if no page has it.
        high_top: share of pages on which the high anchor is among the top two; None if no page has it.
        rules: the requirements.
        alike: share of pages on which everything except the low anchor has the same mark.
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
        reasons.append(f"all but the low anchor have the same mark on {alike:.1%} of {pages} pages")
    return ScreenedListener(rater, pages, low_worst, high_top, alike, tuple(reasons))


def _screen_listener(
    rater: str, pages: list[dict[str, float]], times: dict[str, float], rules: MushraRules, high: str, low: str
) -> ScreenedListener:
    # Count the pages that satisfy each rule.
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
    # The median time spent on a page.
    middle = sorted(times.values())[len(times) // 2] if times else None
    if rules.seconds is not None and middle is not None and middle < rules.seconds:
        reason = f"half of the pages took less than {rules.seconds:g} s"
        listener = replace(listener, reasons=(*listener.reasons, reason))
    return listener


@dataclass(frozen=True)
class PamScreening:
    """The marks that count, and the reasons why other marks do not count."""

    kept: tuple[Mark, ...]
    dropped_raters: dict[str, str]
    hurried: int


def screen_pam(marks: Sequence[Mark]) -> PamScreening:
    """Apply PAM's filters, App. 10.2, to marks on several scales per sample.

    A rater's marks do not count if they are constant over the scales (standard deviation 0) on more than `FLAT_SAMPLES`
    samples or, with a single scale, if the rater gave the same mark to all samples and there are more than that many.
    An answer (all marks by one rater for one sample) does not count if it took less than `FEWEST_SECONDS`.
    """
    answers: dict[str, dict[tuple[str, str], list[Mark]]] = {}
    for mark in marks:
        answers.setdefault(mark.rater, {}).setdefault((mark.page, mark.stimulus), []).append(mark)
    # Raters whose marks do not vary.
    dropped = {}
    for rater, samples in answers.items():
        values = [{mark.value for mark in of_sample} for of_sample in samples.values()]
        scales = max(len(of_sample) for of_sample in samples.values())
        flat = sum(len(of) > 1 == len(alike) for of, alike in zip(samples.values(), values, strict=True))
        if scales > 1 and flat > FLAT_SAMPLES:
            dropped[rater] = f"gave one mark on all scales of {flat} of {len(samples)} samples"
        elif scales == 1 and len(samples) > FLAT_SAMPLES and len(set.union(*values)) == 1:
            dropped[rater] = f"gave {min(values[0]):g} to all of {len(samples)} samples"
    # Answers that were given too quickly.
    staying = [of_sample for rater in answers if rater not in dropped for of_sample in answers[rater].values()]
    hurried = {id(mark) for of_sample in staying if _is_hurried(of_sample) for mark in of_sample}
    kept = [mark for mark in marks if mark.rater not in dropped and id(mark) not in hurried]
    return PamScreening(tuple(kept), dropped, len(hurried))


def _is_hurried(answer: Sequence[Mark]) -> bool:
    times = [mark.seconds for mark in answer if mark.seconds is not None]
    return bool(times) and max(times) < FEWEST_SECONDS


RULES: Mapping[str, str] = {
    "the low anchor": "low anchor not last",
    "the high anchor": "high anchor not among the top",
    "all but the low anchor": "equal marks for all but the low anchor",
    "half of the pages": "pages marked too fast",
    "heard": "speakers miscounted",
    "marked music": "music marked where there is none",
    "gave no reason": "marks without a reason",
    "gave the reason": "one reason for most marks",
    "gave one mark": "one mark on all scales of too many samples",
    "gave": "equal marks for all samples",
}
"""The rules, including the rules for questionnaires, by the first words of a reason for excluding a listener."""


def describe_screening(marks: Iterable[Mark], reasons: Mapping[str, Sequence[str]], low: str = LOW) -> list[str]:
    """Report the number of listeners that each rule excludes, and warn if they disagree with the rest.

    A rule about an anchor also excludes listeners who hear well but have a different opinion of it; this opinion is
    then missing from the result that it would contradict. The warning has two conditions. The excluded listeners can
    distinguish stimuli (Student's test of a listener's difference, each pair without the low anchor, Holm, 5 %), so
    they do not mark at random. And for some pair, anchors included, they do not prefer the stimulus that the rest
    prefer, with a significant difference between the groups (Welch's test over listeners, Holm, 5 %).

    Args:
        marks: marks of all listeners.
        reasons: reasons why listeners were excluded, by listener.
        low: name of the low anchor.
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for mark in marks:
        values[mark.rater][mark.stimulus].append(mark.value)
    means = {rater: {name: fmean(of_one) for name, of_one in of.items()} for rater, of in values.items()}
    kept, excluded = ([means[rater] for rater in means if (rater in reasons) == out] for out in (False, True))
    if not excluded:
        return []
    broken = Counter(
        RULES[start]
        for rater in means.keys() & reasons.keys()
        for start in {next(start for start in RULES if text.startswith(start)) for text in reasons[rater]}
    )
    counts = ", ".join(f"{rule} {count}" for rule, count in sorted(broken.items(), key=lambda one: (-one[1], one[0])))
    lines = [f"{len(excluded)} of {len(means)} listeners were excluded by the screening: {counts}"]
    common = sorted(set().union(*kept) & set().union(*excluded))
    averages = [[fmean(of[name] for of in group if name in of) for name in common] for group in (kept, excluded)]
    if (correlation := srcc(*averages).value) is not None:
        lines.append(f"SRCC of the stimuli's means by the excluded listeners with those by the rest: {correlation:.2f}")
    if min(len(kept), len(excluded)) < FEWEST_TESTED:
        return [*lines, "there are too few listeners to test whether the excluded listeners disagree with the rest"]
    return lines + _find_disagreements(common, kept, excluded, low)


def _find_disagreements(
    stimuli: Sequence[str], kept: Sequence[Mapping[str, float]], excluded: Sequence[Mapping[str, float]], low: str
) -> list[str]:
    pairs: list[tuple[str, str, Array, Array]] = []
    for first, second in combinations(stimuli, 2):
        ours, theirs = (
            np.array([of[first] - of[second] for of in group if first in of and second in of])
            for group in (kept, excluded)
        )
        if min(ours.size, theirs.size) >= FEWEST_TESTED:
            pairs.append((first, second, ours, theirs))
    differs = holm(np.array([_test(theirs) for first, second, _, theirs in pairs if low not in (first, second)]))
    p = np.array([_test(ours, theirs) for *_, ours, theirs in pairs])
    apart = holm(p) & differs.any()
    return [
        f"WARNING: the excluded listeners disagree about {first} and {second}: the mean difference is "
        f"{theirs.mean():+.1f} according to them and {ours.mean():+.1f} according to the rest (p {p[index]:.2g}); read "
        "the results without screening too"
        for index, (first, second, ours, theirs) in enumerate(pairs)
        if apart[index] and ours.mean() * theirs.mean() <= 0
    ]


def _test(*samples: Array) -> float:
    """Return Student's p-value for the mean of one sample, or Welch's for two samples; NaN if it cannot be computed."""
    from scipy import stats

    if max(map(np.ptp, samples)) < 1e-9:
        alike = abs(samples[0][0] - (samples[1][0] if len(samples) > 1 else 0.0)) < 1e-9
        return float("nan") if alike else float(bound_alike(min(sample.size for sample in samples)))
    if len(samples) == 1:
        return float(stats.ttest_1samp(samples[0], 0).pvalue)
    figures = [figure for sample in samples for figure in (sample.mean(), sample.std(ddof=1), sample.size)]
    return float(stats.ttest_ind_from_stats(*figures, equal_var=False).pvalue)
