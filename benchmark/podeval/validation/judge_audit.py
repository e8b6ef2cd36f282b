"""Audit a judge: is it consistent, do position or length sway it, does it agree with people and with other judges?

A judge is unfit for publication while the lower 95 % bound of its agreement between orders is at or below one half (at
least 50 pairs, ties left out), or when it is a declared trial model. The two orders of one comparison are found in the
records themselves: the same prompt and seed, the same texts or clips, exchanged.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podeval.metrics.judged.dialogue_judge import Comparison
from podeval.metrics.pairwise_judge import Choice
from podeval.stats import agreement
from podeval.stats.agreement import Estimate, format_estimate
from podeval.stats.bias import Bias, LengthBias, length_bias, position_bias, preference, wilson
from podeval.stats.intervals import mean_ci
from podeval.validation.agreement import read_printed_audits
from podeval.validation.human_scores import Agreement, Named, compare_with_people
from podeval.validation.judge_answers import JudgeAnswers, JudgeReply, Leaf, measure_of

PAIRS = 50
"""Fewest pairs without ties for a verdict on the order agreement."""


@dataclass(frozen=True)
class Orders:
    """One judge's comparisons in both orders.

    Args:
        agreement: share of the pairs, ties left out, in which the same one was preferred in both orders.
        ties: number of pairs with a tie in either order.
        single: number of comparisons asked in one order only.
        places: the first place's share of all decided answers, as the papers print it.
        swayed: share of the pairs decided by the order in which the first place won both times.
        lengths: preference for the longer one, where the order did not decide.
        unit: unit of the lengths.
    """

    agreement: Estimate
    ties: int
    single: int
    places: Bias
    swayed: Bias
    lengths: LengthBias | None
    unit: str


@dataclass(frozen=True)
class Steadiness:
    """The repeatability of one measure over seeds: questions with equal repeats, and Krippendorff's alpha."""

    prompt: str
    measure: str
    identical: Estimate
    alpha: Estimate | None
    repeats: int


@dataclass(frozen=True)
class Likeness:
    """The agreement of two judges on one measure, over the same questions."""

    prompt: str
    measure: str
    first: str
    second: str
    figures: Named


@dataclass(frozen=True)
class AuditFindings:
    """All findings on one judge; `unfit` lists why its scores may not be published, empty when they may.

    `judge` is its description; `unknown` counts answers to prompts that this version of podeval does not have.
    """

    judge: Mapping[str, Any]
    unfit: tuple[str, ...]
    unusable: Estimate
    unanswered: Estimate
    failed_calls: int
    unknown: int
    prompt_tokens: int
    answer_tokens: int
    orders: Orders | None
    steadiness: tuple[Steadiness, ...]


@dataclass(frozen=True)
class AuditRow:
    """One line of an audit as text: the name of the check, its figure, and what papers print of the same."""

    name: str
    figure: str
    count: int
    papers: str = ""
    unit: str = ""
    p: str = ""


def audit(judge: JudgeAnswers) -> AuditFindings:
    """Audit a judge by its records."""
    orders = compare_orders(judge.given)
    return AuditFindings(
        judge=judge.described,
        unfit=explain_unfit(orders, trial=bool(judge.described.get("trial"))),
        unusable=wilson(judge.unusable, judge.asked),
        unanswered=wilson(judge.unanswered, judge.asked),
        failed_calls=judge.failed_calls,
        unknown=judge.unknown,
        prompt_tokens=judge.prompt_tokens,
        answer_tokens=judge.answer_tokens,
        orders=orders,
        steadiness=measure_steadiness(judge.given),
    )


def list_rows(audited: AuditFindings) -> list[AuditRow]:
    """Return the figures of an audit, in order, as text."""
    figures: list[tuple[str, Estimate, float | None, str]] = [
        ("unusable", audited.unusable, None, ""),
        ("unanswered", audited.unanswered, None, ""),
    ]
    orders = audited.orders
    if orders:
        figures += [
            ("order", orders.agreement, None, ""),
            ("first", orders.places.share, orders.places.p, "TPR"),
            ("swayed", orders.swayed.share, orders.swayed.p, ""),
        ]
    if orders and orders.lengths:
        figures.append(("longer", orders.lengths.longer.share, orders.lengths.longer.p, "LPR"))
    rows = [
        AuditRow(name, format_estimate(share, 3), share.count, quote_papers(measure, "bias"), p=_format_p(p))
        for name, share, p, measure in figures
    ]
    if orders and orders.lengths:
        excess = orders.lengths.excess
        p_excess = _format_p(orders.lengths.p_excess)
        rows.append(AuditRow("excess", format_estimate(excess, 1), excess.count, unit=orders.unit, p=p_excess))
    return rows


def list_agreement_rows(people: Agreement) -> list[AuditRow]:
    """Return the figures of agreement with people as text."""
    return [
        AuditRow(measure, format_estimate(figure, 3), figure.count, quote_papers(measure, "scores"))
        for measure, figure in people.figures.items()
    ]


def describe_repeat(repeat: Steadiness) -> str:
    """Return how equal repeats are, as text."""
    alpha = f"; Krippendorff's alpha {format_estimate(repeat.alpha, 3)}" if repeat.alpha else ""
    return f"all equal in {format_estimate(repeat.identical, 3)} of {repeat.identical.count} questions{alpha}"


def describe_likeness(likeness: Likeness) -> str:
    """Return the figures of two judges as text."""
    figures = "; ".join(f"{name} {format_estimate(figure, 3)}" for name, figure in likeness.figures.items())
    return f"{figures}; n {likeness.figures['identical'].count}"


def quote_papers(measure: str, kind: str) -> str:
    """Return what papers print of a measure, such as `TPR` of the kind `bias`, as shares between 0 and 1."""
    scale = 100.0 if kind == "bias" else 1.0
    tables: dict[str, list[str]] = {}
    for row in read_printed_audits():
        if (row["measure"], row["kind"]) == (measure, kind):
            bounds = f" [{float(row['low']) / scale:.3f}, {float(row['high']) / scale:.3f}]" if row["low"] else ""
            figure = f"{row['judge']} {float(row['value']) / scale:.3f}{bounds}"
            tables.setdefault(f"{row['table']}, {row['about'].replace('_', ' ')}", []).append(figure)
    return ". ".join(f"{table}: {'; '.join(figures)}" for table, figures in tables.items())


def _format_p(p: float | None) -> str:
    return "" if p is None else f", p = {p:.2g}"


def explain_unfit(orders: Orders | None, *, trial: bool) -> tuple[str, ...]:
    """Return why a judge's scores may not be published; empty when they may."""
    reasons = ["it is declared a trial model"] if trial else []
    if orders is None or orders.agreement.count < PAIRS:
        pairs = orders.agreement.count if orders else 0
        reasons.append(f"its agreement between orders is not shown: {pairs} pairs without ties, {PAIRS} are needed")
    elif orders.agreement.low is None or orders.agreement.low <= 0.5:
        reasons.append(
            "the order may decide as much as the judge: agreement between orders "
            f"{format_estimate(orders.agreement, 3)}, whose lower bound is not above 0.5"
        )
    return tuple(reasons)


@dataclass
class _Pair:
    """One comparison in its orders: by what stood first, the preference (1 the first, -1 the second, 0 a tie)."""

    preferences: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)


def compare_orders(replies: Sequence[JudgeReply]) -> Orders | None:
    """Summarise the comparisons among the answers; return None where there are none."""
    pairs: dict[Hashable, _Pair] = defaultdict(_Pair)
    unit = "characters"
    for answer in replies:
        preference = read_preference(answer)
        if preference is None:
            continue
        first, second, about = _sides(answer)
        one, other = (repr(sorted(what for what, _ in side)) for side in (first, second))
        if one == other:
            # The same thing against itself has no better side.
            continue
        unit = "seconds" if "audio" in answer.name else "characters"
        pair = pairs[(answer.prompt, answer.seed, about, frozenset((one, other)))]
        pair.preferences[one] = preference
        pair.sizes |= {one: sum(size for _, size in first), other: sum(size for _, size in second)}
    return _orders(list(pairs.values()), unit) if pairs else None


def _orders(pairs: Sequence[_Pair], unit: str) -> Orders:
    both = [pair for pair in pairs if len(pair.preferences) == 2]
    decided = [pair for pair in both if all(pair.preferences.values())]
    # The first place preferred in one order and the second in the other is the same thing preferred twice.
    steady = [pair for pair in decided if sum(pair.preferences.values()) == 0]
    swayed = [pair for pair in decided if sum(pair.preferences.values()) != 0]
    single = [pair for pair in pairs if len(pair.preferences) == 1]
    # Both orders of a pair are one piece of evidence.
    answers = [
        (preferred == 1, number)
        for number, pair in enumerate(pairs)
        for preferred in pair.preferences.values()
        if preferred
    ]
    wins: list[tuple[float, float]] = []
    for pair in [*steady, *(pair for pair in single if any(pair.preferences.values()))]:
        first, preferred = next(iter(pair.preferences.items()))
        (second,) = set(pair.sizes) - {first}
        winner, loser = (first, second) if preferred > 0 else (second, first)
        wins.append((pair.sizes[winner], pair.sizes[loser]))
    return Orders(
        agreement=wilson(len(steady), len(decided)),
        ties=len(both) - len(decided),
        single=len(single),
        places=preference([first for first, _ in answers], [pair for _, pair in answers]),
        swayed=position_bias(sum(sum(pair.preferences.values()) > 0 for pair in swayed), len(swayed)),
        lengths=length_bias([winner for winner, _ in wins], [loser for _, loser in wins]) if wins else None,
        unit=unit,
    )


def read_preference(answer: JudgeReply) -> int | None:
    """Return 1 where the first was preferred, -1 the second, 0 neither; None where the answer is not a comparison."""
    if isinstance(answer.value, Choice):
        return {"A": 1, "B": -1, "tie": 0}[answer.value.winner]
    if isinstance(answer.value, Comparison):
        return int(-np.sign(answer.value.overall))
    return None


_SIDE = re.compile(r"(?:(?P<first>first|dialogue_a|a_.*)|(?P<second>second|dialogue_b|b_.*))")

Side = list[tuple[str, float]]


def _sides(answer: JudgeReply) -> tuple[Side, Side, str]:
    """Return what stood first, what stood second, and what was shown once for both."""
    first: Side = []
    second: Side = []
    rest = []
    for name, (what, size) in sorted(answer.inputs.items()):
        match = _SIDE.fullmatch(name)
        if match and match["first"]:
            first.append((what, size))
        elif match:
            second.append((what, size))
        else:
            rest.append((name, what))
    return first, second, repr(rest)


def measure_steadiness(replies: Sequence[JudgeReply]) -> tuple[Steadiness, ...]:
    """Return how answers repeat over seeds, by prompt and measure, for questions that were asked more than once."""
    repeats: dict[str, list[JudgeReply]] = defaultdict(list)
    for answer in replies:
        repeats[answer.question].append(answer)
    units: dict[tuple[str, str], list[list[Leaf]]] = defaultdict(list)
    for answers in repeats.values():
        if len(answers) < 2:
            continue
        places = set.intersection(*(set(answer.leaves) for answer in answers))
        for leaf in sorted(places):
            key = answers[0].name, measure_of(leaf)
            units[key].append([answer.leaves[leaf] for answer in sorted(answers, key=lambda answer: answer.seed)])
    results = []
    for (prompt, measure), rows in sorted(units.items()):
        identical = wilson(sum(len(set(row)) == 1 for row in rows), len(rows))
        most = max(len(row) for row in rows)
        results.append(Steadiness(prompt, measure, identical, _alpha(rows, most), most))
    return tuple(results)


def _alpha(rows: Sequence[Sequence[Leaf]], most: int) -> Estimate | None:
    """Return Krippendorff's alpha with repeats as raters; None for words, and where all values are equal."""
    numbers = [[value for value in row if not isinstance(value, str)] for row in rows]
    if any(len(row) != len(kept) for row, kept in zip(rows, numbers, strict=True)):
        return None
    if len({value for row in numbers for value in row}) < 2:
        return None
    if all(len(set(row)) == 1 for row in numbers):
        # 1 by definition, in every draw of the bootstrap too.
        return Estimate(1.0, 1.0, 1.0, len(rows))
    padded = [[*row, *[None] * (most - len(row))] for row in numbers]
    return agreement.krippendorff_alpha(list(zip(*padded, strict=True)), "interval")


def compare_judges(judges: Sequence[JudgeAnswers]) -> tuple[Likeness, ...]:
    """Return how each two judges agree on questions that both were asked, by prompt and measure.

    Two versions of one judge are compared by giving the answers of both: `difference` is then the drift.
    """
    results = []
    for one, other in itertools.combinations(judges, 2):
        theirs = {(answer.question, answer.seed): answer.leaves for answer in other.given}
        units: dict[tuple[str, str], list[tuple[Leaf, Leaf, str]]] = defaultdict(list)
        for answer in one.given:
            leaves = theirs.get((answer.question, answer.seed), {})
            for leaf in sorted(set(answer.leaves) & set(leaves)):
                row = answer.leaves[leaf], leaves[leaf], answer.question
                units[(answer.name, measure_of(leaf))].append(row)
        first, second = (f"{judge.id} in {judge.folder}" if one.id == other.id else judge.id for judge in (one, other))
        for (prompt, measure), rows in sorted(units.items()):
            results.append(Likeness(prompt, measure, first, second, measure_likeness(rows)))
    return tuple(results)


def measure_likeness(rows: Sequence[tuple[Leaf, Leaf, Hashable]]) -> Named:
    """Return figures of agreement of two columns, clustered by the third; `difference` is second minus first."""
    clusters = [cluster for _, _, cluster in rows]
    identical = {"identical": wilson(sum(a == b for a, b, _ in rows), len(rows))}
    first = [value for value, _, _ in rows if not isinstance(value, str)]
    second = [value for _, value, _ in rows if not isinstance(value, str)]
    if len(first) != len(rows) or len(second) != len(rows):
        return identical | {"kappa": agreement.cohen_kappa([a for a, _, _ in rows], [b for _, b, _ in rows], clusters)}
    drift = mean_ci([b - a for a, b in zip(first, second, strict=True)], clusters)
    repeated = clusters if len(set(clusters)) < len(clusters) else None
    return (
        identical
        | {"difference": Estimate(drift.mean, drift.low, drift.high, drift.n)}
        | compare_with_people(first, second, repeated)
    )
