"""Analyses of people and judges as raters: their agreement, their consistency, and what their ratings depend on.

The analyses are based on MTalk-Bench sections 6 and 7 and App. E and F: pseudo-agreement, a rater's arena choices
compared with the same rater's rubric marks, exclusion of rubric items, Elo against win rate, separability against
rating gap, and groups of raters. Each rater is also compared with the mean of the other raters (LFS-Bench, Table 6).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial.distance import cdist

from podeval.errors import BadInput
from podeval.metrics.battle_log import read_battles
from podeval.metrics.human_records import list_records
from podeval.stats.agreement import Estimate, cohen_kappa, format_estimate, leave_one_out, srcc
from podeval.stats.battles import Battles, elo, tally
from podeval.stats.bias import wilson
from podeval.stats.bradley_terry import Ratings, describe_missing, rate
from podeval.stats.mushra_scores import Mark, correlate_raters, tabulate_marks
from podeval.stats.pair_comparisons import holm

Array = NDArray[np.float64]


def compute_pseudo_agreement(first: float, second: float) -> float:
    """Return the probability that two independent evaluators prefer the same system of a pair: p q + (1 - p)(1 - q).

    Source: MTalk-Bench App. F.3; p and q are their win rates for the first system. The figure does not measure
    agreement on the same item: for two raters who always agree and have win rates of one half, it is one half.

    Raises:
        BadInput: a win rate is not between 0 and 1.
    """
    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise BadInput(f"win rates must be shares from 0 to 1, not {first} and {second}")
    return first * second + (1 - first) * (1 - second)


def compute_pseudo_agreements(one: Battles, other: Battles) -> dict[tuple[str, str], float]:
    """Return the pseudo-agreement of two evaluators on every pair of systems that both compared."""
    mine, theirs = tally(one).pairs, tally(other).pairs
    return {
        (a, b): compute_pseudo_agreement(mine[a, b][0], theirs[a, b][0])
        for a, b in sorted(mine.keys() & theirs.keys())
        if a < b
    }


def compare_arena_with_rubric(
    battles: Sequence[tuple[str, str, str, str, str]],
    totals: Mapping[tuple[str, str, str], float],
) -> tuple[Estimate, Estimate]:
    """Compare raters' choices between two systems with their own rubric totals (MTalk-Bench App. F.1).

    Args:
        battles: (rater, task, system A, system B, winner `a` or `b`).
        totals: sum of the rubric marks by (rater, task, system). Battles without both totals, or with equal totals, are
            omitted.

    Returns:
        Cohen's kappa between the explicit and the implied winner, and the share of battles in which they agree.
    """
    explicit, implied = [], []
    for rater, task, a, b, winner in battles:
        one, two = totals.get((rater, task, a)), totals.get((rater, task, b))
        if one is None or two is None or one == two or winner not in ("a", "b"):
            continue
        # The categories are the alphabetically first system and the other one, so the sides have no influence.
        chosen, better = (a if winner == "a" else b), (a if one > two else b)
        explicit.append("first" if chosen == min(a, b) else "second")
        implied.append("first" if better == min(a, b) else "second")
    agreed = sum(x == y for x, y in zip(explicit, implied, strict=True))
    return cohen_kappa(explicit, implied), wilson(agreed, len(explicit))


@dataclass(frozen=True)
class Exclusion:
    """Spearman correlation between a reference and the ranking by some of the rubric items, over 5,000 draws."""

    kept: int
    mean: float
    low: float
    high: float


def rank_without_items(
    scores: Mapping[str, Sequence[float]],
    reference: Mapping[str, float] | None = None,
    *,
    shares: Sequence[float] = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1),
    draws: int = 5000,
    seed: int = 0,
) -> list[Exclusion]:
    """Measure how much a ranking depends on individual rubric items, with random subsets (MTalk-Bench Fig. 9).

    Args:
        scores: score of each system on every item, in the same order.
        reference: ranking to correlate with, such as arena ratings; by default the ranking by all items.
        shares: shares of the items to keep, such as 0.5.
        draws: number of subsets drawn for each share.
        seed: seed of the draws.

    Raises:
        BadInput: there are fewer than three systems, the numbers of items differ, or a system has no reference.
    """
    systems = sorted(scores)
    table = np.array([scores[system] for system in systems if len(scores[system]) == len(scores[systems[0]])])
    if len(systems) < 3 or len(table) < len(systems):
        raise BadInput("this analysis needs at least three systems, each with a score on every item")
    if missing := [system for system in systems if reference is not None and system not in reference]:
        raise BadInput(f"the reference ranking lacks {', '.join(missing)}")
    # The reference ranking.
    target = stats.rankdata(table.mean(axis=1) if reference is None else [reference[system] for system in systems])
    random = np.random.default_rng(seed)
    items = table.shape[1]
    exclusions = []
    for share in shares:
        # Rank the systems by random subsets of the items, and correlate each ranking with the reference.
        kept = max(1, round(share * items))
        chosen = np.argsort(random.random((draws, items)), axis=1)[:, :kept]
        ranks = stats.rankdata(table[:, chosen].mean(axis=2).T, axis=1)
        # The correlation is undefined for subsets in which all systems are tied.
        rho = 1 - cdist(target[None], ranks[np.ptp(ranks, axis=1) > 0], "correlation")[0]
        if rho.size:
            low, high = np.quantile(rho, (0.025, 0.975))
            exclusions.append(Exclusion(kept, float(rho.mean()), float(low), float(high)))
    return exclusions


def correlate_elo_with_win_rate(battles: Battles) -> Estimate:
    """Return the SRCC between differences in Elo and in win rate, over the pairs that met (MTalk-Bench Fig. 12)."""
    ratings = elo(battles)
    pairs = [
        (ratings[a].rating - ratings[b].rating, 2 * share - 1)
        for (a, b), (share, _) in tally(battles).pairs.items()
        if a < b
    ]
    return srcc([gap for gap, _ in pairs], [rate for _, rate in pairs])


@dataclass(frozen=True)
class Separability:
    """Pairs of systems in a range of rating gaps, and the share of these pairs that the votes separate."""

    low: float
    high: float
    told_apart: Estimate


def compute_separability(ratings: Ratings) -> list[Separability]:
    """Return how the share of pairs with an interval that excludes zero grows with the gap (MTalk-Bench Fig. 10)."""
    ranked = [number for number, row in enumerate(ratings.systems) if row.provisional is None]
    pairs = list(itertools.combinations(ranked, 2))
    gaps = np.array([abs(ratings.differences[i, j]) for i, j in pairs])
    apart = np.array(
        [ratings.apart[i, j] or gap > 1.96 * ratings.errors[i, j] for (i, j), gap in zip(pairs, gaps, strict=True)],
        dtype=bool,
    )
    bins = []
    for low, high in itertools.pairwise((0, 10, 25, 50, 100, 200, np.inf)):
        inside = (gaps >= low) & (gaps < high)
        bins.append(Separability(float(low), float(high), wilson(int(apart[inside].sum()), int(inside.sum()))))
    return bins


@dataclass(frozen=True)
class Gap:
    """A system as rated by two groups: ratings relative to the mean of the shared systems, and their difference."""

    system: str
    one: float
    other: float
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True)
class Cohorts:
    """Two groups of raters on the same systems: their rank agreement, and the systems that they rate differently.

    `gaps` contains every shared system; `low` and `high` are the bounds of the 95 % interval of its difference, without
    correction. `differing` lists the systems whose difference remains significant after Holm's procedure over all
    shared systems.
    """

    agreement: Estimate
    differing: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()


def compare_groups(one: Ratings, other: Ratings) -> Cohorts:
    """Compare the ratings by two groups of raters, such as volunteers and paid raters (MTalk-Bench Table 12).

    The comparison covers the systems that both groups compared and that battles connect in both groups; a system that
    is provisional in either group has neither an interval nor a test. Each group's ratings are relative to the mean of
    the systems that the group ranks, so both sets of ratings are shifted to the mean of the shared systems, with errors
    derived from those of the differences. The test is Student's t-test, with Welch's degrees of freedom from the
    numbers of voters.

    Raises:
        BadInput: there are fewer than two shared systems.
    """
    # Find the systems that both groups compared.
    shared = max((sorted(set(a) & set(b)) for a in one.islands for b in other.islands), key=len)
    if len(shared) < 2:
        raise BadInput(
            "groups of raters are compared on the systems that both rated; these groups share fewer than two"
        )
    (first, variance), (second, others) = (_centre_on_shared(ratings, shared) for ratings in (one, other))
    # Apply Welch's test to each system's difference.
    apart, total = first - second, variance + others
    freedom = total**2 / (variance**2 / max(1, one.voters - 1) + others**2 / max(1, other.voters - 1))
    error = np.sqrt(total)
    p = 2 * stats.t.sf(np.abs(apart) / error, freedom)
    reach = stats.t.ppf(0.975, freedom) * error
    rejected = holm(p)
    gaps = tuple(
        Gap(system, *map(float, pair), *(None if np.isnan(end) else float(end) for end in ends))
        for system, pair, ends in zip(
            shared,
            zip(first, second, strict=True),
            zip(apart - reach, apart + reach, p, strict=True),
            strict=True,
        )
    )
    differing = tuple(system for system, apart_ in zip(shared, rejected, strict=True) if apart_)
    return Cohorts(srcc(first.tolist(), second.tolist()), differing, gaps)


def _centre_on_shared(ratings: Ratings, shared: Sequence[str]) -> tuple[Array, Array]:
    """Return some systems' ratings relative to their mean, and the variances; NaN if a variance cannot be computed."""
    names = [rating.system for rating in ratings.systems]
    indices = [names.index(system) for system in shared]
    values = np.array([ratings.systems[i].rating for i in indices])
    squares = ratings.errors[np.ix_(indices, indices)] ** 2
    # Variance of x about the mean: mean squared error of the differences from x, minus half of that of all differences.
    variances: Array = np.maximum(squares.mean(axis=1) - squares.mean() / 2, 0.0)
    variances[[ratings.systems[i].provisional is not None for i in indices]] = np.nan
    return values - values.mean(), variances


@dataclass(frozen=True)
class AnalysisLine:
    """A finding of an analysis: its name and its subject, as text and as data."""

    analysis: str
    of: str
    says: str
    data: Mapping[str, Any]


def analyse_votes(name: str, rows: Sequence[Mapping[str, Any]]) -> list[AnalysisLine]:
    """Return the provisional systems, the separability of the ratings from all votes, and the agreement between voter
    groups.

    Args:
        name: name of the votes in the findings.
        rows: the votes, in a form of `podeval.metrics.battle_log`, each optionally with the `group` of its voter.

    Raises:
        BadInput: there are no votes, or a row is not a vote.
    """
    ratings = rate(read_battles(rows))
    lines = [
        AnalysisLine(
            "provisional", row.system, f"{name}: {row.system} is provisional, {describe_missing(row.provisional)}",
            row.provisional,
        )
        for row in ratings.systems
        if row.provisional is not None
    ]  # fmt: skip
    for part in compute_separability(ratings):
        share, up_to = part.told_apart, "more" if part.high == np.inf else f"{part.high:g}"
        if share.count:
            says = (
                f"pairs {part.low:g} to {up_to} points apart: {format_estimate(share)} told apart, {share.count} pairs"
            )
            data = {"low": part.low, "high": None if up_to == "more" else part.high, "told_apart": asdict(share)}
            lines.append(AnalysisLine("separability", name, f"{name}: {says}", data))
    groups = sorted({row.get("group") or "" for row in rows} - {""})
    rated = {group: rate(read_battles([row for row in rows if row.get("group") == group])) for group in groups}
    for one, other in itertools.combinations(groups, 2):
        compared = compare_groups(rated[one], rated[other])
        gaps = [gap for gap in compared.gaps if gap.system in compared.differing]
        apart = ", ".join(f"{gap.system} {gap.one:+.0f} against {gap.other:+.0f}" for gap in gaps) or "none"
        of, alike = f"{one} and {other}", compared.agreement
        says = f"{of}: SRCC {format_estimate(alike)} over {alike.count} systems; rated differently: {apart}"
        lines.append(AnalysisLine("groups of raters", of, says, asdict(compared)))
    return lines


def analyse_marks(name: str, marks: Sequence[Mark]) -> list[AnalysisLine]:
    """Return each rater's agreement with the mean of the others (leave one out), and with every other rater."""
    raters, table = tabulate_marks(marks)
    if len(raters) < 2:
        return []
    lines = []
    for rater, by_measure in zip(raters, leave_one_out(table), strict=True):
        words = ", ".join(f"{measure} {format_estimate(figure)}" for measure, figure in by_measure.items())
        says = f"{name}: {rater} against the mean of the others: {words}, {by_measure['SRCC'].count} ratings"
        data = {"rater": rater} | {measure.lower(): asdict(figure) for measure, figure in by_measure.items()}
        lines.append(AnalysisLine("leave one out", name, says, data))
    for (one, other), figure in correlate_raters(marks).items():
        says = f"{name}: {one} and {other}: PLCC {format_estimate(figure)}, {figure.count} ratings"
        lines.append(AnalysisLine("pairs of raters", name, says, {"raters": [one, other], "plcc": asdict(figure)}))
    return lines


def read_votes(path: Path) -> list[Mapping[str, Any]]:
    """Read votes in any form that `podeval.metrics.human_records` reads, each optionally with the `group` of its voter.

    Raises:
        BadInput: the file cannot be read, or a line in it is not a vote; the message names the line.
    """
    try:
        places, rows = zip(*list_records(path, "vote"), strict=True)
        read_battles(rows, places)
        return list(rows)
    except BadInput as refusal:
        raise BadInput(
            f"{path} is neither a CSV of scores (system, item, score and optionally rater and measure) nor of votes "
            f"(first, second, outcome; also as JSON lines): {refusal}"
        ) from None
