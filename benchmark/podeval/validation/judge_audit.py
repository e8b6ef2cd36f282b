"""Audit a judge: is it consistent, does position or length influence it, and does it agree with people and other
judges?

A judge is unfit for publication if the lower 95 % bound of its agreement between orders is at or below one half (with
at least 50 pairs, without ties), or if it is a declared trial model. The records show the two orders of a comparison:
the same prompt and seed, with the texts or clips swapped. For a judge that was never asked to compare, `orders` is
None, which does not make the judge unfit. A judge without a usable answer is unfit.

A probe is an audit that asks the judge about cases with known answers. The judge fails a kind of case if the lower 95 %
bound of its share of errors is above `TOLERATED`, that is, from five errors in 20 cases or three in ten upwards, so a
sound judge that makes a single error passes.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podeval.judges.rounds import hold
from podeval.metrics.judge_use import JudgeConfig
from podeval.metrics.judged.dialogue_judge import Comparison
from podeval.metrics.pairwise_judge import Choice
from podeval.stats import agreement
from podeval.stats.agreement import Estimate, format_estimate
from podeval.stats.bias import Bias, LengthBias, length_bias, position_bias, preference, wilson
from podeval.validation.human_scores import Named, average_figures, compare_with_people
from podeval.validation.judge_answers import JudgeAnswers, JudgeReply, Leaf, measure_of
from podeval.validation.planted_cases import WEAKNESSES, CaseGroup

PAIRS = 50
"""Minimum number of pairs without ties for a verdict on the agreement between orders."""
TOLERATED = 0.1
"""Maximum lower bound of a probe's share of errors."""


@dataclass(frozen=True)
class Orders:
    """One judge's comparisons in both orders.

    Args:
        agreement: share of the pairs, without ties, in which the same side was preferred in both orders.
        ties: number of pairs with a tie in either order.
        single: number of comparisons made in only one order.
        places: share of all decided answers that prefer the first position, as in the papers.
        swayed: share of the pairs in which the first position won both times, among the pairs that the order decided.
        lengths: preference for the longer side among the pairs that the order did not decide.
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
    """The repeatability of a measure over seeds: the share of equal repeats, and Krippendorff's alpha."""

    prompt: str
    measure: str
    identical: Estimate
    alpha: Estimate | None
    repeats: int


@dataclass(frozen=True)
class Likeness:
    """The agreement between two judges on a measure, over the questions that both answered."""

    prompt: str
    measure: str
    first: str
    second: str
    figures: Named


@dataclass(frozen=True)
class Probe:
    """How often a judge errs in planted cases of one kind: a weakness, or the anchors of a metric.

    `errors` is the share of errors among the answered cases; `unanswered` is the number of cases without a usable
    answer.
    """

    kind: str
    errors: Estimate
    unanswered: int

    @property
    def failed(self) -> bool:
        """Whether the cases show that the judge errs too often."""
        return self.errors.low is not None and self.errors.low > TOLERATED

    @property
    def sentence(self) -> str:
        """The finding as a sentence."""
        value, low, high = self.errors.value, self.errors.low, self.errors.high
        missing = f"; {self.unanswered} without an answer" if self.unanswered else ""
        if value is None or low is None or high is None:
            return f"{self.kind}: no case was answered{missing}"
        fault = WEAKNESSES.get(self.kind, "does not recognise the better anchor") if self.failed else "passed"
        return f"{self.kind}: {fault}; errs in {value:.0%} [{low:.0%}, {high:.0%}] of {self.errors.count}{missing}"


@dataclass(frozen=True)
class AuditFindings:
    """All findings on a judge; `unfit` lists the reasons against publishing its scores and is empty if there are none.

    `judge` is the judge's description; `unknown` is the number of answers to prompts that this version of podeval does
    not have.
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


def audit(judge: JudgeAnswers) -> AuditFindings:
    """Audit a judge from its records."""
    orders = compare_orders(judge.replies)
    return AuditFindings(
        judge=judge.described,
        unfit=_explain_unfit(judge, orders),
        unusable=wilson(judge.unusable, judge.asked),
        unanswered=wilson(judge.unanswered, judge.asked),
        orders=orders,
        steadiness=measure_steadiness(judge.replies),
        **{name: getattr(judge, name) for name in ("failed_calls", "unknown", "prompt_tokens", "answer_tokens")},
    )


def probe(judge: JudgeConfig, groups: Iterable[CaseGroup]) -> list[Probe]:
    """Ask a judge about planted cases, by kind; earlier answers are read from the judge's records.

    Raises:
        BadInput: no judge is named, or there are no cases.
    """
    errors: dict[str, list[bool | None]] = defaultdict(list)
    for group in groups:
        client = judge.require_client(group.asks, group.parameters)
        for kind, error in group.find_errors(hold(group.conversations, client)):
            errors[kind].append(error)
    probes = []
    for kind, of_kind in errors.items():
        answered = [error for error in of_kind if error is not None]
        probes.append(Probe(kind, wilson(sum(answered), len(answered)), len(of_kind) - len(answered)))
    return probes


def _explain_unfit(judge: JudgeAnswers, orders: Orders | None) -> tuple[str, ...]:
    """Return the reasons against publishing a judge's scores; empty if there are none."""
    reasons = ["it is declared a trial model"] if judge.described.get("trial") else []
    if not judge.replies:
        reasons.append("none of its answers can be used")
    if orders is None:
        return tuple(reasons)
    if orders.agreement.count < PAIRS:
        pairs = f"{orders.agreement.count} pairs without ties, but {PAIRS} are needed"
        reasons.append(f"its agreement between orders is not shown: {pairs}")
    elif orders.agreement.low is None or orders.agreement.low <= 0.5:
        reasons.append(
            "the order may decide as much as the judge: agreement between orders "
            f"{format_estimate(orders.agreement, 3)}, whose lower bound is not above 0.5"
        )
    return tuple(reasons)


@dataclass
class _Pair:
    """A comparison in one or both orders: the preference (1 first, -1 second, 0 tie), by the side shown first."""

    preferences: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    unit: str = "characters"

    def list_sizes(self) -> tuple[float, float]:
        """Return the sizes of the winner and of the loser."""
        first, preferred = next(iter(self.preferences.items()))
        (second,) = self.sizes.keys() - {first}
        winner, loser = (first, second) if preferred > 0 else (second, first)
        return self.sizes[winner], self.sizes[loser]


def compare_orders(replies: Sequence[JudgeReply]) -> Orders | None:
    """Summarise the comparisons among the answers; return None if there are none."""
    pairs: dict[Hashable, _Pair] = defaultdict(_Pair)
    for answer in replies:
        preference = read_preference(answer)
        first, second, about = _sides(answer)
        one, other = (repr(sorted(what for what, _ in side)) for side in (first, second))
        # A comparison of a system with itself has no better side.
        if preference is not None and one != other:
            pair = pairs[(answer.prompt, answer.seed, about, frozenset((one, other)))]
            pair.preferences[one], pair.unit = preference, "seconds" if "audio" in answer.name else "characters"
            pair.sizes |= {one: sum(size for _, size in first), other: sum(size for _, size in second)}
    return _orders(list(pairs.values())) if pairs else None


def _orders(pairs: Sequence[_Pair]) -> Orders:
    both, single = ([pair for pair in pairs if len(pair.preferences) == count] for count in (2, 1))
    decided = [pair for pair in both if all(pair.preferences.values())]
    # Preferring the first position in one order and the second in the other means preferring the same side twice.
    steady = [pair for pair in decided if sum(pair.preferences.values()) == 0]
    swayed = [position for pair in decided if (position := sum(pair.preferences.values()))]
    # Both orders of a pair are one piece of evidence.
    answers = [(one == 1, number) for number, pair in enumerate(pairs) for one in pair.preferences.values() if one]
    # Lengths of texts and of recordings are not pooled; only the more frequent kind is used.
    unit = Counter(pair.unit for pair in pairs).most_common(1)[0][0]
    of_unit = [pair for pair in [*steady, *single] if pair.unit == unit and any(pair.preferences.values())]
    wins = [pair.list_sizes() for pair in of_unit]
    return Orders(
        agreement=wilson(len(steady), len(decided)),
        ties=len(both) - len(decided),
        single=len(single),
        places=preference([first for first, _ in answers], [pair for _, pair in answers]),
        swayed=position_bias(sum(position > 0 for position in swayed), len(swayed)),
        lengths=length_bias([winner for winner, _ in wins], [loser for _, loser in wins]) if wins else None,
        unit=unit,
    )


def read_preference(answer: JudgeReply) -> int | None:
    """Return 1 if the first side was preferred, -1 if the second, 0 if neither; None if it is not a comparison."""
    if isinstance(answer.value, Choice):
        return {"A": 1, "B": -1, "tie": 0}[answer.value.winner]
    if isinstance(answer.value, Comparison):
        return int(-np.sign(answer.value.overall))
    return None


_SIDE = re.compile(r"(first|dialogue_a|a_.*)|(second|dialogue_b|b_.*)")

Side = list[tuple[str, float]]


def _sides(answer: JudgeReply) -> tuple[Side, Side, str]:
    """Return the first text, the second text, and the material that was shown only once for both texts."""
    sides: tuple[Side, Side] = [], []
    rest = []
    for name, (what, size) in sorted(answer.inputs.items()):
        if match := _SIDE.fullmatch(name):
            sides[(match.lastindex or 1) - 1].append((what, size))
        else:
            rest.append((name, what))
    return *sides, repr(rest)


def measure_steadiness(replies: Sequence[JudgeReply]) -> tuple[Steadiness, ...]:
    """Return the repeatability of answers over seeds, by prompt and measure, for questions asked more than once."""
    repeats: dict[str, list[JudgeReply]] = defaultdict(list)
    for answer in replies:
        repeats[answer.question].append(answer)
    units: dict[tuple[str, str], list[list[Leaf]]] = defaultdict(list)
    for answers in repeats.values():
        answers.sort(key=lambda answer: answer.seed)
        for leaf in sorted(set.intersection(*(set(answer.leaves) for answer in answers))) if len(answers) > 1 else ():
            units[answers[0].name, measure_of(leaf)].append([answer.leaves[leaf] for answer in answers])
    return tuple(
        Steadiness(*unit, wilson(sum(len({*row}) == 1 for row in rows), len(rows)), _alpha(rows), max(map(len, rows)))
        for unit, rows in sorted(units.items())
    )


def _alpha(rows: list[list[Leaf]]) -> Estimate | None:
    """Return Krippendorff's alpha with repeats as raters; None for words, or if all values are equal."""
    numbers = [[value for value in row if not isinstance(value, str)] for row in rows]
    if numbers != rows or len({value for row in numbers for value in row}) < 2:
        return None
    if all(len(set(row)) == 1 for row in numbers):
        # Alpha is then 1 by definition, including in every bootstrap draw.
        return Estimate(1.0, 1.0, 1.0, len(rows))
    return agreement.krippendorff_alpha(list(itertools.zip_longest(*numbers)), "interval")


def compare_judges(judges: Sequence[JudgeAnswers]) -> tuple[Likeness, ...]:
    """Return the agreement between each pair of judges on their common questions, by prompt and measure.

    To compare two versions of one judge, pass the answers of both versions; `difference` is then the drift.
    """
    results: list[Likeness] = []
    for one, other in itertools.combinations(judges, 2):
        theirs = {(answer.question, answer.seed): answer.leaves for answer in other.replies}
        units: dict[tuple[str, str], list[tuple[Leaf, Leaf, str]]] = defaultdict(list)
        for answer in one.replies:
            leaves = theirs.get((answer.question, answer.seed), {})
            for leaf in sorted(answer.leaves.keys() & leaves.keys()):
                row = answer.leaves[leaf], leaves[leaf], answer.question
                units[answer.name, measure_of(leaf)].append(row)
        first, second = (f"{judge.id} in {judge.folder}" if one.id == other.id else judge.id for judge in (one, other))
        results += [Likeness(*unit, first, second, _compare_columns(rows)) for unit, rows in sorted(units.items())]
    return tuple(results)


def _compare_columns(rows: Sequence[tuple[Leaf, Leaf, Hashable]]) -> Named:
    """Return agreement figures for two columns, clustered by the third; `difference` is the second minus the first."""
    clusters = [cluster for _, _, cluster in rows]
    identical = {"identical": wilson(sum(a == b for a, b, _ in rows), len(rows))}
    first = [value for value, _, _ in rows if not isinstance(value, str)]
    second = [value for _, value, _ in rows if not isinstance(value, str)]
    if len(first) != len(rows) or len(second) != len(rows):
        return identical | {"kappa": agreement.cohen_kappa([a for a, _, _ in rows], [b for _, b, _ in rows], clusters)}
    drift = average_figures([b - a for a, b in zip(first, second, strict=True)], clusters, (None, None))
    repeated = clusters if len(set(clusters)) < len(clusters) else None
    return identical | {"difference": drift} | compare_with_people(first, second, repeated)
