"""An audit of a judge for readers: its figures as text, next to those of the papers, and as parts of a report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podeval.reports.page import Entry, Listing, Part, RowOfCells, Section, Table, TableCell, Text, make_heads
from podeval.stats.agreement import Estimate, format_estimate
from podeval.validation.agreement import read_printed_audits
from podeval.validation.human_scores import Agreement
from podeval.validation.judge_audit import AuditFindings, Likeness, Steadiness

Texts = Mapping[str, Any]

CHECKS = {
    "unusable": "first answers that could not be used",
    "unanswered": "questions that never got a usable answer",
    "order": "same side preferred in both orders",
    "first": "first position preferred, all answers",
    "swayed": "first position preferred, where the order decided",
    "longer": "longer side preferred",
    "excess": "winners longer than losers by",
}
"""The rows of an audit of records, each as the beginning of a sentence."""


@dataclass(frozen=True)
class AuditRow:
    """A line of an audit as text: the name of the check, its figure, and the papers' corresponding figures."""

    name: str
    figure: str
    count: int
    papers: str = ""
    unit: str = ""
    p: str = ""


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
    """Return the agreement between repeats as text."""
    alpha = f"; Krippendorff's alpha {format_estimate(repeat.alpha, 3)}" if repeat.alpha else ""
    return f"all equal in {format_estimate(repeat.identical, 3)} of {repeat.identical.count} questions{alpha}"


def describe_likeness(likeness: Likeness) -> str:
    """Return the agreement figures of two judges as text."""
    figures = "; ".join(f"{name} {format_estimate(figure, 3)}" for name, figure in likeness.figures.items())
    return f"{figures}; n {likeness.figures['identical'].count}"


def quote_papers(measure: str, kind: str) -> str:
    """Return the papers' figures for a measure of a kind, such as `TPR` of `bias`, as shares between 0 and 1."""
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


def describe_audit(name: str, audited: AuditFindings) -> Iterator[str]:
    """Yield the lines of an audit for a terminal; for a probe, only one line per kind of case.

    Args:
        name: name of the judge.
        audited: the findings on the judge.
    """
    if audited.probes:
        yield from (one.sentence for one in audited.probes)
        return
    verdict = f"unfit for publication: {'; '.join(audited.unfit)}" if audited.unfit else "fit for publication"
    yield f"{name}: {verdict}"
    for row in list_rows(audited):
        quoted = f" (papers: {row.papers})" if row.papers else ""
        yield f"  {CHECKS[row.name]}: {row.figure} {row.unit}".rstrip() + f"{row.p}, n {row.count}{quoted}"
    if audited.orders:
        yield f"  {audited.orders.ties} pairs with a tie, {audited.orders.single} comparisons in one order only"
    else:
        yield "  the judge was never asked to compare, so a preference for a position or a length is not audited"
    for repeat in audited.steadiness:
        yield f"  repeats of {repeat.prompt}, {repeat.measure}: {describe_repeat(repeat)}"
    calls = f"  {audited.failed_calls} calls without an answer; {audited.unknown} answers to unknown prompts"
    yield f"{calls}; {audited.prompt_tokens} tokens asked, {audited.answer_tokens} answered"


def describe_judge(audited: AuditFindings, words: Texts) -> Section:
    """Build the section on one judge.

    Args:
        audited: the findings on the judge.
        words: texts of the page `judges`.
    """
    facts, orders = audited.judge, audited.orders
    title = str(facts.get("model") or facts.get("id"))
    served = (str(facts.get("backend") or ""), str(facts.get("revision") or "")[:16])
    verdict, css = ("unfit", "state-refused") if audited.unfit else ("fit", "state-published")
    parts: list[Part] = [
        Text(words[verdict], f"state {css}"),
        Text("".join(f"{fact} · " for fact in served if fact), sample=str(facts.get("id"))),
    ]
    if audited.unfit:
        parts.append(Listing([Entry(reason) for reason in audited.unfit]))
    rows = [_make_row(words[row.name], row, words) for row in list_rows(audited)]
    parts.append(Table(f"{title}: {words['what']}", _make_heads(words, "what", "of"), rows))
    parts.append(Text(words["ties"].format(orders.ties, orders.single) if orders else words["no_comparisons"]))
    if audited.steadiness:
        parts.append(_tabulate_repeats(audited, title, words))
    return Section(title, parts)


def tabulate_people(people: Agreement, name: str, words: Texts) -> Table:
    """Build the table of a judge's agreement with people; `name` is that of the judge's records."""
    rows = [_make_row(row.name, row, words) for row in list_agreement_rows(people)]
    return Table(f"{name}: {words['people']}", _make_heads(words, "measure", "item_count"), rows)


def tabulate_papers(words: Texts, method: Texts) -> Iterator[Table]:
    """Build a collapsed table for each table of figures on judges in the papers.

    Args:
        words: texts of the page `judges`.
        method: texts of the page `method`; these contain the names of measures.
    """
    heads = make_heads(words, ("judge", "about", "measure", "figure", "interval"), ("figure", "interval"))
    rows_by_table: dict[str, list[RowOfCells]] = {}
    for row in read_printed_audits():
        subjects = row["about"].replace("_", " ").split(", ")
        about = method["comma"].join(method["phrases"].get(subject, subject) for subject in subjects)
        interval = f"{row['low']} – {row['high']}" if row["low"] else ""
        measure, figure = method["measures"].get(row["measure"], row["measure"]), row["value"] + row["significance"]
        cells = RowOfCells([row["judge"], about, measure, figure, interval])
        rows_by_table.setdefault(row["table"].replace(", table ", method["table"]), []).append(cells)
    for table, rows in rows_by_table.items():
        yield Table(table, heads, rows, summary=table)


def _make_heads(words: Texts, name: str, count: str) -> list[TableCell]:
    figures = make_heads(words, (name, "figure", count), ("figure", count))
    return [*figures, TableCell(words["papers_print"], css="printed")]


def _make_row(name: str, row: AuditRow, words: Texts) -> RowOfCells:
    figure = f"{row.figure} {words['units'].get(row.unit, '')}".rstrip() + row.p
    return RowOfCells([name, figure, str(row.count), row.papers or "–"])


def _tabulate_repeats(audited: AuditFindings, title: str, words: Texts) -> Table:
    heads = make_heads(words, ("prompt", "measure", "identical", "of", "alpha"), ("identical", "of", "alpha"))
    rows = []
    for repeat in audited.steadiness:
        alpha = format_estimate(repeat.alpha, 3) if repeat.alpha else "–"
        identical = format_estimate(repeat.identical, 3)
        rows.append(RowOfCells([repeat.prompt, repeat.measure, identical, str(repeat.identical.count), alpha]))
    return Table(f"{title}: {words['repeats']}", heads, rows, summary=words["repeats"])
