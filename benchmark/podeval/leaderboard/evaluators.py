"""Analyses of people and judges as evaluators, from votes and marks: groups of raters, separability, leave-one-out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.metrics.human_records import list_records
from podeval.stats import evaluators
from podeval.stats.agreement import Estimate, leave_one_out
from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import rate
from podeval.stats.mushra_scores import Mark, tabulate_marks

FEWEST_GROUPS = 2


@dataclass(frozen=True)
class AnalysisLine:
    """One finding of an analysis: its name, its subject, in words and as data."""

    analysis: str
    of: str
    says: str
    data: Mapping[str, Any]


def analyse_votes(name: str, rows: Sequence[Mapping[str, Any]]) -> list[AnalysisLine]:
    """Return the separability of the ratings by all votes, and the agreement of each pair of voter groups, if any.

    Args:
        name: name of the votes in the findings.
        rows: the votes, in a form of `Battles.of_records` and each perhaps with the `group` of its voter.

    Raises:
        BadInput: there are no votes, or one is not a vote.
    """
    battles = Battles.of_records(rows)
    lines = [_separability_line(name, part) for part in evaluators.separability(rate(battles)) if part.told_apart.count]
    groups = sorted({row.get("group") or "" for row in rows} - {""})
    if len(groups) >= FEWEST_GROUPS:
        rated = {
            group: rate(Battles.of_records([row for row in rows if row.get("group") == group])) for group in groups
        }
        lines += [
            _cohorts_line(f"{one} and {other}", evaluators.cohorts(rated[one], rated[other]))
            for one, other in itertools.combinations(groups, 2)
        ]
    return lines


def analyse_marks(name: str, marks: Sequence[Mark]) -> list[AnalysisLine]:
    """Return the agreement of each rater with the mean of the others (leave one out), where there are at least two."""
    raters, table = tabulate_marks(marks)
    if len(raters) < 2:
        return []
    return [
        AnalysisLine(
            "leave one out",
            name,
            f"{name}: {rater} against the mean of the others: SRCC {_figure(rank)}, PLCC {_figure(value)}, "
            f"KRCC {_figure(order)}, {rank.count} things",
            {"rater": rater, "srcc": asdict(rank), "plcc": asdict(value), "krcc": asdict(order)},
        )
        for rater, (rank, value, order) in zip(raters, leave_one_out(table), strict=True)
    ]


def read_votes(path: Path) -> list[Mapping[str, Any]]:
    """Read votes in any form that `podeval.metrics.human_records` reads, each perhaps with the `group` of its voter.

    Raises:
        BadInput: it cannot be read, or contains something that is not a vote; the message names its line.
    """
    try:
        places, rows = zip(*list_records(path, "vote"), strict=True)
        Battles.of_records(rows, places)
        return list(rows)
    except BadInput as refusal:
        raise BadInput(
            f"{path} needs a line of names with first, second and outcome, and a line for each vote, or JSON lines "
            f"with these names: {refusal}"
        ) from None


def _separability_line(name: str, part: evaluators.Separability) -> AnalysisLine:
    up_to = "more" if part.high == float("inf") else f"{part.high:g}"
    share = part.told_apart
    return AnalysisLine(
        "separability",
        name,
        f"{name}: pairs {part.low:g} to {up_to} points apart: {_figure(share)} told apart, {share.count} pairs",
        {"low": part.low, "high": None if up_to == "more" else part.high, "told_apart": asdict(share)},
    )


def _cohorts_line(name: str, cohorts: evaluators.Cohorts) -> AnalysisLine:
    gaps = [gap for gap in cohorts.gaps if gap.system in cohorts.differing]
    apart = ", ".join(f"{gap.system} {gap.one:+.0f} against {gap.other:+.0f}" for gap in gaps) or "none"
    agreement = cohorts.agreement
    return AnalysisLine(
        "groups of raters",
        name,
        f"{name}: SRCC {_figure(agreement)} over {agreement.count} systems; rated apart: {apart}",
        {
            "agreement": asdict(agreement),
            "differing": list(cohorts.differing),
            "gaps": [asdict(gap) for gap in cohorts.gaps],
        },
    )


def _figure(estimate: Estimate) -> str:
    if estimate.value is None:
        return "none"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
