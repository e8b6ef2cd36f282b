"""An audit of a judge for readers: its figures as text, next to the papers' figures, and as parts of a report."""

from collections.abc import Iterator
from typing import Any

from podeval.reports import page
from podeval.stats.agreement import Estimate, format_estimate
from podeval.validation.agreement import read_printed_audits
from podeval.validation.human_scores import Agreement
from podeval.validation.judge_audit import AuditFindings


def tabulate_checks(audited: AuditFindings, title: str, words: page.Texts) -> page.Table:
    """Build the table for an audit: the figures, in order, next to the papers' corresponding figures."""

    def describe(name: str, estimate: Estimate, p: float | None = None, measure: str = "", unit: str = "") -> list[Any]:
        figure = f"{format_estimate(estimate, 1 if unit else 3)} {words['units'].get(unit, '')}".rstrip()
        figure += "" if p is None else f", p = {p:.2g}"
        return [words[name], figure, estimate.count, quote_papers(measure, "bias")]

    rows = [describe("unusable", audited.unusable), describe("unanswered", audited.unanswered)]
    if orders := audited.orders:
        rows.append(describe("order", orders.agreement))
        rows.append(describe("first", orders.places.share, orders.places.p, "TPR"))
        rows.append(describe("swayed", orders.swayed.share, orders.swayed.p))
        if lengths := orders.lengths:
            rows.append(describe("longer", lengths.longer.share, lengths.longer.p, "LPR"))
            rows.append(describe("excess", lengths.excess, lengths.p_excess, unit=orders.unit))
    return page.tabulate(f"{title}: {words['what']}", words, "what #figure #of papers_print", rows)


def tabulate_people(people: Agreement, name: str, words: page.Texts) -> page.Table:
    """Build the table of a judge's agreement with people; `name` is the name of the judge's records."""
    rows = [
        (measure, format_estimate(figure, 3), figure.count, quote_papers(measure, "scores"))
        for measure, figure in people.figures.items()
    ]
    return page.tabulate(f"{name}: {words['people']}", words, "measure #figure #item_count papers_print", rows)


def quote_papers(measure: str, kind: str) -> page.TableCell:
    """Quote the papers' figures for a measure of a kind, such as `TPR` of `bias`, as shares between 0 and 1."""
    scale = 100.0 if kind == "bias" else 1.0
    tables: dict[str, list[str]] = {}
    for row in read_printed_audits():
        if (row["measure"], row["kind"]) == (measure, kind):
            bounds = f" [{float(row['low']) / scale:.3f}, {float(row['high']) / scale:.3f}]" if row["low"] else ""
            figure = f"{row['judge']} {float(row['value']) / scale:.3f}{bounds}"
            tables.setdefault(f"{row['table']}, {row['about'].replace('_', ' ')}", []).append(figure)
    text = ". ".join(f"{table}: {'; '.join(figures)}" for table, figures in tables.items())
    return page.TableCell(text or page.MISSING, css="printed")


def describe_audit(name: str, audited: AuditFindings) -> Iterator[str]:
    """Yield the lines of a judge's audit for a terminal."""
    verdict, _, *parts = describe_judge(audited, page.read_report_texts("en")["judges"]).parts
    yield f"{name}: {', '.join(page.write_lines(verdict))}"
    yield from (f"  {line}" for part in parts for line in page.write_lines(part))
    calls = f"  {audited.failed_calls} calls without an answer; {audited.unknown} answers to unknown prompts"
    yield f"{calls}; {audited.prompt_tokens} tokens in requests, {audited.answer_tokens} in answers"


def describe_judge(audited: AuditFindings, words: page.Texts) -> page.Section:
    """Build the section on one judge."""
    facts, orders = audited.judge, audited.orders
    title = str(facts.get("model") or facts.get("id"))
    served = (str(facts.get("backend") or ""), str(facts.get("revision") or "")[:16])
    verdict, css = ("unfit", "state-refused") if audited.unfit else ("fit", "state-published")
    parts: list[page.Part] = [
        page.Text(words[verdict], css=f"state {css}"),
        page.Text("".join(f"{fact} · " for fact in served if fact), literal=str(facts.get("id"))),
        *([page.Listing([page.Text(reason) for reason in audited.unfit])] if audited.unfit else []),
        tabulate_checks(audited, title, words),
        page.Text(words["ties"].format(orders.ties, orders.single) if orders else words["no_comparisons"]),
    ]
    rows = []
    for repeat in audited.steadiness:
        identical, alpha = format_estimate(repeat.identical, 3), repeat.alpha and format_estimate(repeat.alpha, 3)
        rows.append([repeat.prompt, repeat.measure, identical, repeat.identical.count, alpha])
    if rows:
        label, columns = f"{title}: {words['repeats']}", "prompt measure #identical #of #alpha"
        parts.append(page.tabulate(label, words, columns, rows, summary=words["repeats"]))
    return page.Section(title, parts)


def tabulate_papers(words: page.Texts, method: page.Texts) -> Iterator[page.Table]:
    """Build a collapsed table for each table of the papers; measures have the same names as on the page `method`."""
    rows_by_table: dict[str, list[tuple[str, ...]]] = {}
    for row in read_printed_audits():
        subjects = row["about"].replace("_", " ").split(", ")
        about = method["comma"].join(method["phrases"].get(subject, subject) for subject in subjects)
        interval = f"{row['low']} – {row['high']}" if row["low"] else ""
        measure, figure = method["measures"].get(row["measure"], row["measure"]), row["value"] + row["significance"]
        cells = (row["judge"], about, measure, figure, interval)
        rows_by_table.setdefault(row["table"].replace(", table ", method["table"]), []).append(cells)
    for table, rows in rows_by_table.items():
        yield page.tabulate(table, words, "judge about measure #figure #interval", rows, summary=table)
