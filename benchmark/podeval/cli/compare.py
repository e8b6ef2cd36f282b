"""`podeval compare`: compare two runs, and guard against regressions."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from xml.etree import ElementTree

import typer

from podeval.cli.completion import complete_metric_or_key, complete_profile
from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from podeval.runs.compare import ColumnComparison, QuarantinedItem, RunComparison

FAILED = 3
"""Exit code if the comparison failed."""


def compare(
    first: Annotated[Path, typer.Argument(help="folder of the run to compare with: RUNS/BENCHMARK/SPLIT/NAME")],
    second: Annotated[Path, typer.Argument(help="folder of the run that must not be worse")],
    fail_if_worse: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if-worse",
            help="metric that must not get worse: METRIC or METRIC.KEY, optionally with =MARGIN (repeatable)",
            autocompletion=complete_metric_or_key,
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help=f"measurements to compare: {CHOICES}", autocompletion=complete_profile)
    ] = "embedded",
    quarantine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ITEM|FILE",
            help="item to compare but not to count, or a file with one item per line, followed by # and the reason "
            "(repeatable)",
        ),
    ] = None,
    detect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=SIZE",
            help="print how many items are needed to show, in four of five comparisons, that METRIC is worse by SIZE "
            "(repeatable)",
            autocompletion=complete_metric_or_key,
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="write a JUnit file for CI")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="write the comparison as Markdown, for a summary or a comment")
    ] = None,
    annotations: Annotated[
        bool, typer.Option(help="print annotations for GitHub; on by default if GITHUB_ACTIONS is set")
    ] = bool(os.environ.get("GITHUB_ACTIONS")),
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Compare two runs item by item and seed by seed; the exit code is 3 if a watched metric became worse.

    If both systems are equal, at most one comparison in twenty fails, however often you check while a run is in
    progress. If both runs have enough seeds, items are also tested individually.

    Example: podeval compare runs/real_pod/demo/before runs/real_pod/demo/after --fail-if-worse wer=0.005
    """
    from podeval.runs.compare import compare_runs

    comparison = compare_runs(
        first,
        second,
        dict(_parse(text, "--fail-if-worse", 0.0) for text in fail_if_worse or ()),
        profile,
        quarantine=dict(entry for text in quarantine or () for entry in _read_quarantine(text)),
        sizes=dict(_parse(text, "--detect") for text in detect or ()),
    )
    if junit:
        _write_junit(comparison, junit)
    if markdown:
        _write_markdown(comparison, markdown)
    if as_json:
        print(json.dumps(_to_json(comparison), ensure_ascii=False, allow_nan=False))
    else:
        _print_table(comparison)
    if annotations:
        _print_annotations(comparison)
    raise typer.Exit(FAILED if comparison.failed else 0)


def describe(column: "ColumnComparison") -> str:
    """Describe the result of a column in a sentence."""
    unit = f" {column.key.unit}" if column.key.unit else ""
    step = column.difference.mean
    better = (step < 0) == (column.key.better == "lower")
    change = "the same" if step == 0 else f"{abs(step):.4g}{unit} {'better' if better else 'worse'}"
    sentence = f"{column.column} is {change} over {column.pairs} pairs"
    if column.lost or column.won:
        sentence += f"; {column.lost} pairs have a value only in the first run, and {column.won} only in the second"
    if column.verdict is None:
        return f"{sentence}."
    by = f" by more than {column.margin:g}{unit}" if column.margin else ""
    verdict = {
        "worse": f"it became worse{by}",
        "no worse": f"it is no worse{by}",
        "undecided": f"whether it became worse{by} is undecided",
    }[column.verdict]
    return (
        f"{sentence}: {verdict} (evidence {column.evidence:.3g}, {column.needed:.3g} needed){_describe_more(column)}."
    )


def _describe_more(column: "ColumnComparison") -> str:
    """Name the items that became worse, or state the number of further items needed for a decision."""
    if column.worse_items:
        items = ", ".join(f"{one.item} ({one.before:.4g} to {one.after:.4g})" for one in column.worse_items)
        return f"; in tests of single items over their seeds, these became worse: {items}"
    if column.verdict != "undecided":
        return ""
    more = [(column.more_items, "items"), (column.more_seeds, "seeds")]
    ways = [f"{count} more {what if count != 1 else what[:-1]}" for count, what in more if count]
    return (
        f"; about {' or '.join(ways)} like these would decide this"
        if ways
        else "; even many more would probably not decide this"
    )


def _describe_size(column: "ColumnComparison") -> str:
    """State the number of items needed to show a difference of a given size."""
    count = "more than 3,200" if column.items_to_show is None else f"about {column.items_to_show:,}"
    shows = f"{count} items like these would show that it is worse by {column.size:g}"
    return f"{column.column}: {shows} in four of five comparisons."


def _describe_quarantine(item: "QuarantinedItem") -> str:
    """Describe the result for a quarantined item, which does not affect the outcome."""
    means = ", ".join(f"{column} {before:.4g} to {after:.4g}" for column, (before, after) in item.means.items())
    reason = f" ({item.reason})" if item.reason else ""
    return f"In quarantine, not counted: {item.item}{reason}: {means or 'no value in both runs'}."


def _parse(text: str, option: str, default: float | None = None) -> tuple[str, float]:
    """Read a metric and a number in its unit: a margin, or the size of a difference."""
    column, equals, number = text.partition("=")
    try:
        value = float(number) if equals or default is None else default
        if not 0 <= value < float("inf") or not column or (default is None and not value):
            raise ValueError
    except ValueError:
        forms = "METRIC=SIZE, such as wer=0.02" if default is None else "METRIC or METRIC=MARGIN, such as wer=0.005"
        raise BadInput(f"{option} takes {forms}, not {text!r}") from None
    return column, value


def _read_quarantine(text: str) -> Iterator[tuple[str, str]]:
    """Yield the items of a file, or the named item, with the reason."""
    path = Path(text)
    for line in path.read_text("utf-8", errors="replace").splitlines() if path.is_file() else [text]:
        item, _, reason = line.partition("#")
        if item.strip():
            yield item.strip(), reason.strip()


def _print_table(comparison: "RunComparison") -> None:
    from rich.table import Table
    from rich.text import Text

    from podeval.text.terminal_safe import make_console, make_printable

    out = make_console(sys.stdout, width=None if sys.stdout.isatty() else 200)
    plan = comparison.first
    seeds = f"{len(comparison.seeds)} seed{'s' if len(comparison.seeds) != 1 else ''}"
    systems = f"{plan.system} and {comparison.second.system}"
    title = f"{plan.benchmark}/{plan.split}: {systems}, {comparison.items} items, {seeds}"
    table = Table(title=Text(make_printable(title)), title_justify="left", pad_edge=False)
    for number, header in enumerate(_list_headers(comparison)):
        table.add_column(Text(make_printable(header)), justify="right" if number else "left")
    for column in comparison.columns:
        table.add_row(*(Text(make_printable(cell)) for cell in _list_cells(column)))
    out.print(table)
    for sentence in _list_sentences(comparison):
        out.print(make_printable(sentence), soft_wrap=True)


def _list_headers(comparison: "RunComparison") -> tuple[str, ...]:
    systems = comparison.first.system, comparison.second.system
    return ("Column", *systems, "Difference", "95 %, one look", "95 %, any number of looks", "Pairs")


def _list_cells(column: "ColumnComparison") -> tuple[str, ...]:
    difference = column.difference
    return (
        f"{column.column} {'↓' if column.key.better == 'lower' else '↑'}",
        f"{column.before:.4g}",
        f"{column.after:.4g}",
        f"{difference.mean:+.4g}",
        _write_interval(difference.low, difference.high),
        _write_interval(*(column.anytime or (None, None))),
        str(column.pairs),
    )


def _list_sentences(comparison: "RunComparison") -> Iterator[str]:
    """Yield sentences about the columns, the items in quarantine, and the parts that were not compared."""
    yield from map(describe, comparison.columns)
    yield from (_describe_size(column) for column in comparison.columns if column.size is not None)
    yield from map(_describe_quarantine, comparison.quarantined)
    if comparison.apart:
        yield f"Not compared, because the runs used different protocols: {', '.join(comparison.apart)}"
    if any(column.verdict for column in comparison.columns) and not comparison.tested_items:
        needed = comparison.seeds_for_items
        yield f"Items are tested individually if there are {needed} seeds or more (podeval run --seeds {needed})."


def _write_markdown(comparison: "RunComparison", path: Path) -> None:
    """Write a heading with the outcome, the table, and the sentences as a list."""
    watched = [column for column in comparison.columns if column.verdict]
    outcome = "worse" if comparison.failed else "not shown to be worse" if watched else "compared"
    plan = comparison.first
    seeds = f"{len(comparison.seeds)} seed{'s' if len(comparison.seeds) != 1 else ''}"
    headers = _list_headers(comparison)
    rows = [headers, ("---", *["---:"] * (len(headers) - 1)), *map(_list_cells, comparison.columns)]
    lines = [
        f"### {_escape(comparison.second.system)} is {outcome}",
        "",
        f"{plan.benchmark}/{plan.split}, {comparison.items} items, {seeds}, compared with {_escape(plan.system)}.",
        "",
        *(f"| {' | '.join(map(_escape, row))} |" for row in rows),
        "",
        *(f"- {_escape(sentence)}" for sentence in _list_sentences(comparison)),
    ]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _escape(text: str) -> str:
    """Escape characters with a special meaning in Markdown, or in HTML inside Markdown."""
    return re.sub(r"([\\|*_`<\[\]])", r"\\\1", " ".join(text.split()))


def _write_interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:+.4g} … {high:+.4g}"


def _to_json(comparison: "RunComparison") -> dict[str, Any]:
    columns = [
        {
            "column": column.column,
            "better": column.key.better,
            "before": column.before,
            "after": column.after,
            "difference": column.difference.mean,
            "ci95": [column.difference.low, column.difference.high],
            "anytime95": list(column.anytime) if column.anytime else None,
            "pairs": column.pairs,
            "lost": column.lost,
            "won": column.won,
            "margin": column.margin,
            "evidence": column.evidence,
            "needed": column.needed,
            "verdict": column.verdict,
            "worse_items": [
                {"item": one.item, "before": one.before, "after": one.after, "p": one.p} for one in column.worse_items
            ],
            "more_items": column.more_items,
            "more_seeds": column.more_seeds,
            "size": column.size,
            "items_to_show": column.items_to_show,
            "sentence": describe(column),
        }
        for column in comparison.columns
    ]
    return {
        "benchmark": comparison.first.benchmark,
        "split": comparison.first.split,
        "first": comparison.first.system,
        "second": comparison.second.system,
        "items": comparison.items,
        "seeds": list(comparison.seeds),
        "failed": comparison.failed,
        "items_tested": comparison.tested_items,
        "not_compared": list(comparison.apart),
        "quarantined": [
            {"item": one.item, "reason": one.reason, "means": {name: list(pair) for name, pair in one.means.items()}}
            for one in comparison.quarantined
        ],
        "columns": columns,
    }


def _write_junit(comparison: "RunComparison", path: Path) -> None:
    """Write a test case for each watched column, or a single test case for the comparison itself if no column is
    watched.
    """
    watched = [column for column in comparison.columns if column.verdict]
    name = f"podeval compare {comparison.first.benchmark}/{comparison.first.split}"
    counts = {
        "tests": str(len(watched) + len(comparison.quarantined)),
        "failures": str(sum(column.failed for column in watched)),
        "errors": "0",
        "skipped": str(len(comparison.quarantined)),
    }
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": name, **counts})
    pair = f"{comparison.first.system}.{comparison.second.system}"
    for column in watched:
        case = ElementTree.SubElement(suite, "testcase", {"classname": pair, "name": column.column, "time": "0"})
        if column.failed:
            failure = ElementTree.SubElement(case, "failure", {"type": "regression", "message": describe(column)})
            failure.text = describe(column)
        else:
            ElementTree.SubElement(case, "system-out").text = describe(column)
    for item in comparison.quarantined:
        case = ElementTree.SubElement(suite, "testcase", {"classname": pair, "name": item.item, "time": "0"})
        ElementTree.SubElement(case, "skipped", {"message": _describe_quarantine(item)})
    write_whole(path, ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))


def _print_annotations(comparison: "RunComparison") -> None:
    """Print workflow commands that make GitHub show failed and undecided columns next to the change."""
    for column in comparison.columns:
        if column.verdict and (column.failed or column.verdict == "undecided"):
            kind = "error" if column.failed else "notice"
            title = f"podeval: {column.column}"
            message = describe(column).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
            print(f"::{kind} title={title}::{message}")
