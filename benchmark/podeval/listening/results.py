"""The results of a listening test: screening, means with intervals and ranks, and the agreement between listeners."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from scipy import optimize, stats

from podeval.errors import BadInput
from podeval.listening import session_results
from podeval.listening.designs import PAIRED, Design
from podeval.listening.questionnaire import describe_scales
from podeval.listening.screening import NEEDED, TRIALS
from podeval.plots.charts import BoxRow, draw_boxes
from podeval.plots.svg import WIDTH, Frame, shorten
from podeval.stats.intervals import Interval, mean_ci
from podeval.stats.mushra_scores import (
    Mark,
    MushraRules,
    ScreenedListener,
    describe_pairs,
    describe_screening,
    reliability,
    screen,
    screen_pam,
    standings,
)
from podeval.stats.pair_comparisons import holm
from podeval.stats.questionnaire_scores import screen_answers
from podeval.store.database import Database
from podeval.texts import write_sentence

_FARTHEST = 12.0
"""The d' above which the share of correct answers is practically 1."""

_BOUNDS: dict[str, tuple[float, float]] = {
    "mushra": (0, 100),
    "questionnaire": (1, 5),
    "rubric": (0, 1),
    "mos": (1, 5),
    "preference": (-2, 2),
    "text_preference": (-2, 2),
    "abx": (0, 1),
}
"""The lowest and the highest possible mark in each kind of test."""


@dataclass(frozen=True)
class Trial:
    """One ABX answer: the listener, whether X was the second side, and whether the listener chose the second side."""

    rater: Hashable
    is_second: bool
    says_second: bool

    @property
    def right(self) -> bool:
        """Whether the answer is correct."""
        return self.is_second == self.says_second


@dataclass(frozen=True)
class Discrimination:
    """The ability of listeners to distinguish two recordings.

    Attributes:
        share: share of correct answers, with its 95 % interval.
        p: probability that listeners who hear no difference give at least this many correct answers.
        d_prime: sensitivity, independent of a preference for one side; below 0 if most answers are wrong.
    """

    share: Interval
    p: float
    d_prime: float


def discrimination(trials: Sequence[Trial]) -> Discrimination:
    """Measure how well listeners distinguish two recordings.

    The interval is Wilson's with the effective number of trials, because the trials of one listener depend on each
    other; with a single listener, the interval is the exact one (Clopper and Pearson). The p-value is that of the exact
    binomial test. The test can ignore differences between listeners: because X is drawn at random, anyone who hears no
    difference is correct with probability one half in each trial, regardless of their habits.

    Raises:
        BadInput: there are no trials.
    """
    if not trials:
        raise BadInput("there are no answers; every listener was left out or nobody finished")
    right = sum(trial.right for trial in trials)
    test = stats.binomtest(right, len(trials), 0.5, alternative="greater")
    share = mean_ci([float(t.right) for t in trials], [t.rater for t in trials], bounds=(0.0, 1.0))
    if share.low is None:
        exact = stats.binomtest(right, len(trials)).proportion_ci(0.95)
        share = Interval(share.mean, float(exact.low), float(exact.high), share.n, share.clusters)
    # Add half an answer of each kind, so that a perfect listener has a finite d' (Hautus 1995).
    hits, false_alarms = (
        (sum(t.says_second for t in trials if t.is_second == second) + 0.5)
        / (sum(t.is_second == second for t in trials) + 1)
        for second in (True, False)
    )
    z_hits, z_false_alarms = float(stats.norm.ppf(hits)), float(stats.norm.ppf(false_alarms))
    unbiased = float(stats.norm.cdf((z_hits - z_false_alarms) / 2))
    return Discrimination(share, float(test.pvalue), d_prime(unbiased))


def share_right(d: float) -> float:
    """Return the share of correct answers that unbiased listeners give at a given sensitivity."""
    by_pair, by_third = d / math.sqrt(2), d / math.sqrt(6)
    cdf = stats.norm.cdf
    return float(cdf(by_pair) * cdf(by_third) + cdf(-by_pair) * cdf(-by_third))


def d_prime(share: float) -> float:
    """Return the sensitivity at which listeners give this share of correct answers; negative if the share is below one
    half.
    """
    if share < 0.5:
        return -d_prime(1 - share)
    if share >= share_right(_FARTHEST):
        return _FARTHEST
    return float(optimize.brentq(lambda d: share_right(d) - share, 0.0, _FARTHEST))


@dataclass(frozen=True)
class ListeningResults:
    """The results of a test: rows by stimulus and scale, a verdict on every MUSHRA listener, and remarks in sentences.

    `dropped` is the number of listeners who finished but were excluded by the screening. Each row has the figures for
    the counted listeners and, in the fields that begin with `unscreened_`, the figures for all listeners who finished.
    """

    rows: tuple[dict[str, Any], ...]
    screened: tuple[ScreenedListener, ...]
    remarks: tuple[str, ...]
    dropped: int = 0


def summarise(database: Database, test: str) -> ListeningResults:
    """Screen the finished sessions of a test by the rules of its design, and summarise the remaining sessions.

    Raises:
        BadInput: the test does not exist, or no marks remain to be averaged.
    """
    overview = session_results.read_overview(database, test)
    design, marks = overview.design, session_results.read_session_marks(database, test)
    came = {name: getattr(overview, name) for name in ("finished", "unfinished", "excluded")}
    remarks: list[str] = [write_sentence("listeners-came", **came)]
    remarks += [*_describe_headphones(database, design), *describe_scales(design.kind, design.scales)]
    # Screen the listeners by the rules of the kind of test.
    screened: list[ScreenedListener] = []
    chosen: list[Mark] = []
    if design.kind == "questionnaire":
        answers, clips = session_results.read_session_answers(database, test)
        dropped = dict(screen_answers(answers, clips))
        silent = {stimulus for stimulus, clip in clips.items() if clip.music is False}
        choices = {question.name for question in design.questions if question.choice}
        rated = [question.name for question in design.questionnaire if question.labels and question.name not in choices]
        chosen = marks
        unheard = {("music", *clip) for clip in silent}
        marks = [
            mark for mark in marks if mark.scale in rated and (mark.scale, mark.page, mark.stimulus) not in unheard
        ]
    else:
        screened = _screen(design, marks)
        dropped = {verdict.rater: list(verdict.reasons) for verdict in screened if not verdict.kept}
    every_mark = marks
    # Drop hurried marks if the design requires this.
    if design.screening.pam:
        screening = screen_pam(marks)
        dropped |= {rater: [reason] for rater, reason in screening.dropped_raters.items()}
        marks = list(screening.kept)
        if screening.hurried:
            remarks.append(f"{screening.hurried} marks were given in less than 10 s and do not count")
    # Summarise the remaining marks, by scale.
    remarks += [f"left out: {rater}: {'; '.join(reasons)}" for rater, reasons in dropped.items()]
    marks = [mark for mark in marks if mark.rater not in dropped]
    if design.kind == "abx":
        rows = _discriminate(design, marks)
    else:
        rows = _set_beside(_list_rows(design, marks), _list_rows(design, every_mark))
        remarks += describe_screening(_by_system(every_mark) if design.kind in PAIRED else every_mark, dropped)
    remarks += _count_choices(design, [mark for mark in chosen if mark.rater not in dropped])
    remarks += [
        f"listeners, {name}: {', '.join(f'{label} {count}' for label, count in counts.items())}"
        for name, counts in session_results.count_demographics(database, test).items()
    ]
    # Measure the agreement between listeners.
    if design.kind != "abx" and len({mark.rater for mark in marks}) > 1:
        alpha = reliability(marks)
        if alpha.value is not None:
            bounds = "" if alpha.low is None else f" [{alpha.low:.2f}, {alpha.high:.2f}]"
            remarks.append(f"Krippendorff's alpha {alpha.value:.2f}{bounds} over {alpha.count} rated units")
        remarks += describe_pairs(marks)
    return ListeningResults(tuple(rows), tuple(screened), tuple(remarks), len(dropped))


def _count_choices(design: Design, marks: list[Mark]) -> list[str]:
    """Return how often each label of an unordered question was chosen, by question and system."""
    lines = []
    for question in design.questions:
        for system in design.systems if question.choice else ():
            numbers = [int(mark.value) for mark in marks if (mark.scale, mark.stimulus) == (question.name, system)]
            counts = ", ".join(f"{label} {numbers.count(n)}" for n, label in enumerate(question.labels, 1))
            lines.append(f"{system} · {question.name}: {counts}")
    return lines


def _screen(design: Design, marks: list[Mark]) -> list[ScreenedListener]:
    """Return the verdicts on the listeners of a MUSHRA test; rules about anchors that the design lacks are disabled."""
    if design.kind != "mushra":
        return []
    method = design.screening
    with_low, with_high = (any(getattr(item, name) for item in design.items) for name in ("low", "high"))
    rules = MushraRules(
        low_worst=method.low_worst if with_low else None,
        high_top=method.high_top if with_high else None,
        alike=method.alike,
        seconds=method.seconds,
    )
    return screen(marks, rules)


_FIGURES = ("mean", "low", "high", "marks", "listeners", "best", "worst")
"""Fields of a row whose values may be different without screening."""


def _set_beside(screened: list[dict[str, Any]], unscreened: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the screened rows with the unscreened figures added; rows without any counted marks come last."""
    rows = {(row["stimulus"], row["scale"]): row for row in screened}
    for row in unscreened:
        nothing = row | dict.fromkeys(_FIGURES) | {"marks": 0, "listeners": 0}
        kept = rows.setdefault((row["stimulus"], row["scale"]), nothing)
        kept |= {f"unscreened_{name}": row[name] for name in _FIGURES}
    return list(rows.values())


def _list_rows(design: Design, marks: list[Mark]) -> list[dict[str, Any]]:
    return [row for scale in dict.fromkeys(mark.scale for mark in marks) for row in _rows(design, marks, scale)]


def _rows(design: Design, marks: list[Mark], scale: str) -> list[dict[str, Any]]:
    of_scale = [mark for mark in marks if mark.scale == scale]
    if design.kind in PAIRED:
        of_scale = _by_system(of_scale)
    # Only systems that are rated on the same page have ranks; anchors have no ranks.
    ranked = design.systems if design.kind == "mushra" else ()
    return [
        {
            "test": design.id,
            "stimulus": standing.stimulus,
            "scale": "" if scale == "naturalness" else scale,
            "mean": standing.mean.mean,
            "low": standing.mean.low,
            "high": standing.mean.high,
            "marks": standing.mean.n,
            "listeners": standing.mean.clusters,
            "best": standing.best,
            "worst": standing.worst,
        }
        for standing in standings(of_scale, ranked, _find_bounds(design, scale))
    ]


def _find_bounds(design: Design, scale: str) -> tuple[float, float]:
    """Return the lowest and the highest mark on a scale; a user's own question has as many marks as labels."""
    labels = {question.name: len(question.labels) for question in design.questions}
    return (1, labels[scale]) if scale in labels else _BOUNDS[design.kind]


def _describe_headphones(database: Database, design: Design) -> list[str]:
    """Return sentences about the headphone check: the number of listeners who passed, and the names of the listeners
    who failed.
    """
    if design.headphone_check is None:
        return []
    came = [came for came in session_results.read_sessions(database, design.id) if came.headphones is not None]
    failing = [listener for listener in came if (listener.headphones or 0) < NEEDED]
    counts = {"exclude": "their marks do not count", "flag": "they count", "end": "the test ended for them"}
    lines = [
        f"headphone check: {len(came) - len(failing)} of {len(came)} listeners passed; of those who did not, "
        f"{counts[design.headphone_check.failed]}"
    ]
    return lines + [
        f"headphone check not passed: {one.listener}: {one.headphones} of {TRIALS} right" for one in failing
    ]


def _discriminate(design: Design, marks: list[Mark]) -> list[dict[str, Any]]:
    """Return a row for each pair of an ABX test, starting with the pair that listeners distinguish most clearly."""
    trials: dict[str, list[Trial]] = {}
    sides = sorted(permutations(design.systems, 2), key=lambda pair: -len("".join(pair)))
    for mark in marks:
        shown_pair = next((pair for pair in sides if mark.page.endswith(f": {pair[0]} | {pair[1]}")), None)
        if shown_pair is None:
            continue
        first, second = shown_pair
        is_second = mark.stimulus == second
        pair = " | ".join((first, second) if (first, second) in design.pairs else (second, first))
        trials.setdefault(pair, []).append(Trial(mark.rater, is_second, is_second == bool(mark.value)))
    if not trials:
        raise BadInput("there are no answers; every listener was left out or nobody finished")
    figures = {pair: discrimination(of_pair) for pair, of_pair in trials.items()}
    apart = holm(np.array([figure.p for figure in figures.values()]))
    rows = [
        {
            "test": design.id,
            "stimulus": pair,
            "scale": "share right",
            "mean": figure.share.mean,
            "low": figure.share.low,
            "high": figure.share.high,
            "marks": figure.share.n,
            "listeners": figure.share.clusters,
            "best": None,
            "worst": None,
            "p": figure.p,
            "d_prime": figure.d_prime,
            "told_apart": bool(differs),
        }
        for (pair, figure), differs in zip(figures.items(), apart, strict=True)
    ]
    return sorted(rows, key=lambda row: float(row["p"]))


def _by_system(marks: list[Mark]) -> list[Mark]:
    """Split each mark of a pair A | B (positive: B is better) into a mark for B and a mark of opposite sign for A."""
    rows = []
    for mark in marks:
        item, _, pair = mark.page.rpartition(": ")
        first, _, second = pair.partition(" | ")
        for system, value in ((first, -mark.value), (second, mark.value)):
            rows.append(Mark(mark.rater, f"{item}: {pair}", system, value, mark.scale, mark.seconds))
    return rows


def draw_listeners(marks: Sequence[Mark], screened: Sequence[ScreenedListener], *, alone: bool = True) -> list[str]:
    """Draw a box plot for each listener of a MUSHRA test, to reveal listeners who gave all stimuli the same mark.

    Each plot has a box for each stimulus, with marks from 0 to 100 (PodEval Figure 9). Listeners whose marks do not
    count come first and are labelled in words, not only by colour.

    Args:
        marks: marks of the test.
        screened: verdicts on its listeners.
        alone: whether the picture includes its styles; the content policy of the site's pages forbids included styles.
    """
    stimuli = sorted({mark.stimulus for mark in marks})
    verdicts = {verdict.rater: verdict for verdict in screened}
    values: dict[tuple[str, str], list[float]] = {}
    for mark in marks:
        values.setdefault((mark.rater, mark.stimulus), []).append(mark.value)
    dropped = {rater for rater, verdict in verdicts.items() if not verdict.kept}
    pictures = []
    for rater in sorted({mark.rater for mark in marks}, key=lambda rater: (rater not in dropped, rater)):
        reasons = "; ".join(verdicts[rater].reasons) if rater in verdicts else ""
        rows = [
            BoxRow(stimulus, values.get((rater, stimulus), []), dots="out" if rater in dropped else "dot")
            for stimulus in stimuli
        ]
        frame = Frame(": ".join(filter(None, (rater, reasons))), WIDTH, alone=alone)
        heading = shorten(rater, 30) + (" (left out)" if rater in dropped else "")
        pictures.append(draw_boxes(rows, frame, ends=(0, 100), heading=heading))
    return pictures
