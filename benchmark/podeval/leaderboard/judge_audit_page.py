"""Write the audit of a judge as a page: findings, whether its scores may be published, and the papers' figures."""

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from podeval.leaderboard.human_scores import Agreement
from podeval.leaderboard.judge_audit import PAIRS, AuditFindings, Likeness, Orders, format_figure
from podeval.stats.agreement import Estimate
from podeval.stats.bias import Bias

REPORTED = Path(__file__).with_name("judge_reported.csv")

FIT, UNFIT = "fit for publication", "unfit for publication"


def render_audit_page(audits: Sequence[AuditFindings], alike: Sequence[Likeness], people: Agreement | None) -> str:
    """Return the page for all judges of some records, as Markdown."""
    parts = ["# Audit of judges\n"]
    parts += [_judge(audit) for audit in audits]
    if people:
        parts.append(_people(people))
    if alike:
        parts.append(_likeness_table(alike))
    parts.append(_papers())
    return "\n".join(parts)


def convert_to_plain(
    audits: Sequence[AuditFindings], alike: Sequence[Likeness], people: Agreement | None
) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "judges": [_judge_plain(audit) for audit in audits],
        "between_judges": [
            {"prompt": a.prompt, "measure": a.measure, "judges": [a.first, a.second], **_plain_figures(a.figures)}
            for a in alike
        ],
        "people": None
        if people is None
        else {
            **_plain_figures(people.figures),
            "items": people.items,
            "raters": people.raters,
            "only_judge": people.only_judge,
            "only_people": people.only_people,
        },
        "papers": read_paper_figures(),
    }


@cache
def _rows() -> tuple[dict[str, str], ...]:
    with REPORTED.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def read_paper_figures() -> list[dict[str, str]]:
    """Read the papers' own figures on judges, as printed: MTalk-Bench tables 3 and 13, LFS-Bench 4 to 6, PodBench 4."""
    return [dict(row) for row in _rows()]


def write_verdict(audit: AuditFindings) -> str:
    """Return the verdict on a judge in one line."""
    return f"{UNFIT}: {'; '.join(audit.unfit)}" if audit.unfit else FIT


def _judge(audit: AuditFindings) -> str:
    judge = audit.judge
    lines = [
        f"## {judge.id}\n",
        f"**{write_verdict(audit).capitalize()}.**\n",
        "| what | figure [95 %] | of |",
        "| --- | --- | --- |",
    ]
    lines += [
        _row("first answers that could not be used", audit.unusable, "questions"),
        _row("questions without a usable answer in the end", audit.unanswered, "questions"),
    ]
    if audit.orders:
        lines += _orders(audit.orders)
    lines.append("")
    counts = [f"{judge.failed_calls} calls without an answer", f"{judge.prompt_tokens} tokens asked"]
    counts.append(f"{judge.answer_tokens} answered")
    if judge.unknown:
        counts.append(f"{judge.unknown} answers to prompts that this version does not have, left out")
    lines.append(f"{'; '.join(counts)}.\n")
    if audit.steadiness:
        lines += ["| repeats: prompt | measure | all equal [95 %] | questions | Krippendorff α |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for repeat in audit.steadiness:
            cells = (repeat.prompt, repeat.measure, format_figure(repeat.identical), str(repeat.identical.count))
            alpha = "–" if repeat.alpha is None else format_figure(repeat.alpha)
            lines.append(f"| {' | '.join(cells)} | {alpha} |")
        lines.append("")
    return "\n".join(lines)


def _orders(orders: Orders) -> list[str]:
    lines = [
        _row("the same one preferred in both orders", orders.agreement, "pairs without ties"),
        f"| pairs with a tie in an order; comparisons in one order only | {orders.ties}; {orders.single} | |",
        _bias_row("first place preferred, all answers", orders.places, "answers without ties"),
        _bias_row("first place preferred, where the order decided", orders.swayed, "pairs"),
    ]
    if orders.lengths:
        excess = orders.lengths.excess
        p = "" if orders.lengths.p_excess is None else f", p = {orders.lengths.p_excess:.3g} (permutation)"
        lines += [
            _bias_row("longer one preferred", orders.lengths.longer, "decided comparisons"),
            f"| winners longer than losers by, {orders.unit} | {format_figure(excess, 1)}{p} | {excess.count} |",
        ]
    return lines


def _row(what: str, estimate: Estimate, of: str) -> str:
    return f"| {what} | {format_figure(estimate)} | {estimate.count} {of} |"


def _bias_row(what: str, bias: Bias, of: str) -> str:
    p = "" if bias.p is None else f", p = {bias.p:.3g} (exact)"
    return f"| {what} | {format_figure(bias.share)}{p} | {bias.share.count} {of} |"


def _people(people: Agreement) -> str:
    lines = [
        f"## With people\n\n{people.items} items in common, {people.raters} rater(s); left out are "
        f"{people.only_judge} items that only the judge scored and {people.only_people} that only people did.\n",
        "| measure | figure [95 %] | of |",
        "| --- | --- | --- |",
    ]
    lines += [_row(name, estimate, "items") for name, estimate in people.figures.items()]
    return "\n".join(lines) + "\n"


def _likeness_table(alike: Sequence[Likeness]) -> str:
    lines = [
        "## Between judges\n",
        "| judges | prompt | measure | figures [95 %] | of |",
        "| --- | --- | --- | --- | --- |",
    ]
    for likeness in alike:
        figures = "; ".join(f"{name} {format_figure(estimate)}" for name, estimate in likeness.figures.items())
        count = likeness.figures["identical"].count
        lines.append(
            f"| {likeness.first} and {likeness.second} | {likeness.prompt} | {likeness.measure} | {figures} | {count} |"
        )
    return "\n".join(lines) + "\n"


def _papers() -> str:
    """Return the papers' figures, one line for each judge and setting."""
    lines = [
        "## What the papers report\n",
        "As printed, on the papers' own data; intervals where the paper prints them.\n",
    ]
    lines += ["| table | judge | about | figures |", "| --- | --- | --- | --- |"]
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for row in _rows():
        bounds = f" [{row['low']}, {row['high']}]" if row["low"] else ""
        figure = f"{row['measure']} {row['value']}{bounds}{row['significance']}"
        grouped.setdefault((row["table"], row["judge"], row["about"]), []).append(figure)
    lines += [f"| {table} | {judge} | {about} | {'; '.join(f)} |" for (table, judge, about), f in grouped.items()]
    lines.append(
        "\nTPR, BPR: first (top) and second (bottom) place preferred; LPR, SPR: longer and shorter one preferred, %; "
        f"podeval believes an agreement between orders from {PAIRS} pairs."
    )
    return "\n".join(lines) + "\n"


def _plain_figures(figures: Any) -> dict[str, Any]:
    return {name: _plain(estimate) for name, estimate in figures.items()}


def _plain(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "ci95": [estimate.low, estimate.high], "count": estimate.count}


def _bias_plain(bias: Bias) -> dict[str, Any]:
    return {"share": _plain(bias.share), "difference": _plain(bias.difference), "p": bias.p}


def _judge_plain(audit: AuditFindings) -> dict[str, Any]:
    orders = audit.orders
    lengths = orders.lengths if orders else None
    return {
        "judge": audit.judge.described,
        "fit": not audit.unfit,
        "unfit": list(audit.unfit),
        "questions": audit.judge.asked,
        "unusable_first_answers": _plain(audit.unusable),
        "unanswered": _plain(audit.unanswered),
        "failed_calls": audit.judge.failed_calls,
        "tokens": {"asked": audit.judge.prompt_tokens, "answered": audit.judge.answer_tokens},
        "order": orders
        and {
            "agreement": _plain(orders.agreement),
            "ties": orders.ties,
            "single": orders.single,
            "first_place": _bias_plain(orders.places),
            "swayed_to_first": _bias_plain(orders.swayed),
        },
        "length": lengths
        and {
            "longer": _bias_plain(lengths.longer),
            "excess": _plain(lengths.excess),
            "p_excess": lengths.p_excess,
            "unit": orders.unit if orders else None,
        },
        "repeats": [
            {
                "prompt": repeat.prompt,
                "measure": repeat.measure,
                "identical": _plain(repeat.identical),
                "alpha": _plain(repeat.alpha),
            }
            for repeat in audit.steadiness
        ],
    }
