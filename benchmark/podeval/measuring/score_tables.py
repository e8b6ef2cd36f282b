"""Scores as tables: for a terminal, for text, and for a notebook."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from podeval.measuring.plots import plot_results
from podeval.measuring.report import ReportWords, format_clock, tabulate_means, tabulate_values
from podeval.reports.page import Part, Table, TableCell, Text, render_parts
from podeval.text.terminal_safe import make_printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from podeval.measuring.recording_results import RecordingResults, ResultsTable

_COLOURS = {"good": "green", "bad": "yellow", "quiet": "dim"}
_SHOWN = (False, True, False, True, True, False)
"""Columns of the values of a recording in a terminal, and whether they have a header there."""
_WIDTH = 120
"""Columns of a table where nobody says how wide it may be."""
_WHOLE_NAMES, _LONGEST_NAME = 108, 22
"""Columns of a terminal below which names are broken, and the longest name that is left whole there."""

STYLE = """<style>
.podeval table{border-collapse:collapse}.podeval td,.podeval th{padding:.15em .7em;text-align:left}
.podeval td.number{text-align:right;font-variant-numeric:tabular-nums}
.podeval .good{color:#1a7f37}.podeval .bad{color:#9a6700}
.podeval svg{max-width:44em;height:auto}
</style>"""


def write_notes(scores: RecordingResults) -> list[str]:
    """Under the table: defects, what was not scored and why, and how to get more."""
    lines = []
    if scores.defects:
        kinds: dict[str, list[float]] = {}
        for defect in scores.defects:
            kinds.setdefault(defect.kind, []).append(defect.start)
        kind_texts = (
            f"{kind} {len(at)} ({', '.join(format_clock(one) for one in at[:3])}{' …' * (len(at) > 3)})"
            for kind, at in kinds.items()
        )
        lines.append(f"Defects: {'; '.join(kind_texts)}")
    noted = ((sentence, name) for name, sentences in scores.notes.items() for sentence in sentences)
    for sentence, names in _group(noted).items():
        lines.append(f"Note ({', '.join(names)}): {sentence}")
    for reason, names in _group((one["unscored"], name) for name, one in scores.unscored.items()).items():
        lines.append(f"Not scored: {', '.join(names)}: {reason}")
    if scores.advice:
        advice = [f"{what} for {', '.join(names)}" for what, names in scores.advice.items()]
        lines.append(f"More with {'; '.join(advice)}")
    return lines


def build_table(scores: RecordingResults | ResultsTable) -> RenderableType:
    """The table of one recording, or of many, for a console of rich."""
    from rich.console import Group
    from rich.text import Text as Line

    from podeval.measuring.recording_results import ResultsTable

    if not isinstance(scores, ResultsTable):
        return _ByWidth(scores)
    table = tabulate_means(scores, ReportWords())
    errors = [Line(make_printable(str(row.cells[0])), style="red") for row in table.rows if row.span]
    return Group(_convert(table), *errors, *(Line(make_printable(line)) for line in scores.notes))


class _ByWidth:
    """The table of one recording for a console of any width, and under it what was not scored."""

    def __init__(self, scores: RecordingResults) -> None:
        self._scores = scores

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.text import Text as Line

        words = ReportWords()
        yield Line(make_printable(words.heading(self._scores)), style="bold")
        if self._scores.rows:
            table = tabulate_values(self._scores, words)
            yield _convert(table, _SHOWN, narrow=options.max_width < _WHOLE_NAMES)
        yield from (Line(make_printable(line)) for line in write_notes(self._scores))


def _convert(table: Table, heads: Sequence[bool] = (), *, narrow: bool = False) -> RenderableType:
    """Convert a table of a report; `heads` says of each column that is shown whether it has a header."""
    from rich.table import Table as Grid
    from rich.text import Text as Line

    heads = heads or [True] * len(table.headers)
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, (head, is_named) in enumerate(zip(table.headers, heads, strict=False)):
        text = "\n".join(filter(None, (head.text, head.note))) if is_named else ""
        # In a narrow terminal names and units take several lines, so that no figure is cut off.
        grid.add_column(
            Line(text),
            justify="right" if head.css else "left",
            vertical="bottom",
            overflow="fold",
            no_wrap=number not in (0, 2),
            max_width=10 if narrow and number == 2 else None,
        )
    before = ""
    for row in (row for row in table.rows if not row.span):
        cells = [cell if isinstance(cell, TableCell) else TableCell(cell) for cell in row.cells[: len(heads)]]
        lines = [Line(make_printable(Markup(cell.text).striptags()), _COLOURS.get(cell.css, "")) for cell in cells]
        name = lines[0].plain
        if narrow:
            lines[0] = Line(_break_name(name, before))
        before = name.partition(".")[0]
        grid.add_row(*lines)
    return grid


def _break_name(name: str, before: str) -> str:
    """The name of a value for a narrow column: its key alone under the metric it shares with the row before."""
    metric, _, key = name.partition(".")
    if metric == before and key:
        return f"  .{key}"
    return f"{metric}\n  .{key}" if len(name) > _LONGEST_NAME else name


def render_text(scores: RecordingResults | ResultsTable) -> str:
    """The table as plain text."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=_WIDTH, color_system=None, highlight=False, markup=False, emoji=False)
    console.print(build_table(scores), soft_wrap=True)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().split("\n"))


def render_html(scores: RecordingResults) -> str:
    """The table of one recording with its plots, for a notebook."""
    words = ReportWords()
    parts: list[Part] = [Text(words.heading(scores), "strong"), tabulate_values(scores, words)]
    plots = plot_results(scores).to_html() if scores.timelines else ""
    over_time = f"<details><summary>{words['over_time']}</summary>{plots}</details>" if plots else ""
    return _render_parts([*parts, *map(Text, write_notes(scores))], over_time)


def render_summary_html(table: ResultsTable) -> str:
    """The table of many recordings, for a notebook."""
    return _render_parts([tabulate_means(table, ReportWords()), *map(Text, table.notes)])


def _render_parts(parts: Sequence[Part], more: str = "") -> str:
    return f'{STYLE}<div class="podeval">{render_parts(parts)}{more}</div>'


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for reason, name in pairs:
        grouped.setdefault(reason, []).append(name)
    return grouped
