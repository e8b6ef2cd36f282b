"""Scores as tables for a report, a terminal, plain text and a notebook, in the language of the reader."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text as Line

from podeval.measuring.recording_results import RecordingResults, ResultsTable
from podeval.measuring.verdict import ReportWords, group_rows
from podeval.metrics.score import format_clock
from podeval.metrics.standing import format_span, format_value, translate
from podeval.reports import page
from podeval.text.terminal_safe import make_printable

_COLOURS = {"good": "green", "poor": "yellow", "quiet": "dim"}
MOST_DEFECTS = 8
"""Maximum number of defects that a terminal lists and a report shows without collapsing them; files contain all
defects."""


def describe_facts(scores: RecordingResults, words: ReportWords) -> str:
    """Describe a recording in one line: length, rate, channels and profile."""
    facts = scores.facts
    parts = [str(words["only_words"])]
    if facts.channels:
        channels = words["channels"].get(str(facts.channels)) or words["channels"]["many"].format(facts.channels)
        parts = [words.length(facts.seconds), f"{facts.rate / 1000:g} kHz", str(channels)]
    return " · ".join([*parts, str(words["profile"]).format(scores.profile)])


def write_notes(scores: RecordingResults) -> list[str]:
    """Write the text below the table: notes for readers, unscored metrics with reasons, and how to get more."""
    noted, unscored = _group(scores.notes), _group({name: [one["unscored"]] for name, one in scores.unscored.items()})
    lines = [f"Note ({names}): {sentence}" for sentence, names in noted.items()]
    lines += [f"Not scored: {names}: {reason}" for reason, names in unscored.items()]
    advice = "; ".join(f"{what} for {', '.join(names)}" for what, names in scores.advice.items())
    return [*lines, f"More with {advice}"] if advice else lines


def _group(sentences: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return each sentence once, with the names to which it applies."""
    every = dict.fromkeys(sentence for of_name in sentences.values() for sentence in of_name)
    return {sentence: ", ".join(name for name, of in sentences.items() if sentence in of) for sentence in every}


def sum_up(scores: RecordingResults, words: ReportWords) -> list[page.Part]:
    """Give the verdict and list the defects, collapsing a long list; a click on a defect's time starts the player.
    Every form of the result begins this way.
    """
    entries = []
    for one in scores.defects:
        text = f"{words['until']} {format_clock(one.end, 1)}, {': '.join(filter(None, words.defect(one)))}"
        entries.append(page.Text(text, format_clock(one.start, 1), start=one.start))
    first, more = entries[:MOST_DEFECTS], entries[MOST_DEFECTS:]
    lists = [(first, ""), (more, words["more_defects"].format(len(more)))]
    verdict = page.Text(scores.write_verdict(words), css="conclusion")
    return [verdict, *(page.Listing(some, summary) for some, summary in lists if some)]


def tabulate_values(scores: RecordingResults, words: ReportWords, *, whole: bool = False) -> page.Table:
    """Make the table of a recording's values in groups: the chosen lines, or the whole table, collapsed."""
    rows: list[page.RowOfCells] = []
    rows_of_scores = scores.shown_rows if whole else scores.lines
    for group, members in group_rows(rows_of_scores).items():
        rows.append(page.make_row(str(words["groups"][group]), span="group"))
        for row in members:
            about = translate(row.key.about or row.metric.purpose, words.language).replace("`", "")
            name = page.TableCell(words.name(row), hint=f"{row.name}: {about}")
            value = page.TableCell(words.value(row), css="quiet" if row.unranked else "", hint=row.unranked)
            stand = str(words["stands"][row.word]) if row.word else ""
            word = page.TableCell(stand, css=row.word, hint=words.basis(row))
            rows.append(page.make_row(name, value, words.unit(row), word, words.usual(row)))
    summary = str(words["every_value"]).format(len(rows_of_scores)) if whole else ""
    names = "metric #value unit compared usual_range"
    return page.tabulate(words["values"], words.texts, names, rows, "values", summary)


def tabulate_all(scores: RecordingResults, words: ReportWords) -> list[page.Part]:
    """Make the tables of a recording: the chosen lines and, if there are more, all others, collapsed."""
    has_more = len(scores.shown_rows) > len(scores.lines)
    return [tabulate_values(scores, words, whole=whole) for whole in (False, True) if has_more or not whole]


def tabulate_means(table: ResultsTable, words: ReportWords) -> page.Table:
    """Make the table of many recordings, with the mean and the interval of each value."""
    chosen, rows = table.headlines, []
    heads = [page.TableCell(words["recording"])]
    heads += [page.TableCell(words.name(row), words.unit(row), css="number", hint=row.name) for row in chosen]
    for number, (scores, name) in enumerate(zip(table.scores, table.short_names, strict=True)):
        by_name = {row.name: page.TableCell(format_value(row.key, row.value), css=row.word) for row in scores.rows}
        link = page.TableCell(name, link=f"#recording-{number}")
        rows.append(page.make_row(link, *(by_name.get(row.name) for row in chosen)))
    for name, sentence in table.errors.items():
        rows.append(page.make_row(f"{name}: {words['error']} {sentence}", span="why"))
    means = [(row.key, table.intervals.get(row.name)) for row in chosen]
    spans = ((key, (m.low, m.high) if m and m.low is not None else None) for key, m in means)
    mean_of = words["mean_of"].format(len(table.scores))
    rows.append(page.make_row(mean_of, *(format_value(key, m.mean if m else None) for key, m in means)))
    rows.append(page.make_row(words["interval"], *(format_span(*span) for span in spans)))
    return page.Table(words["all"], heads, rows, "means")


def build_table(scores: RecordingResults | ResultsTable, *, whole: bool = False) -> RenderableType:
    """Render the result of one or many recordings for a rich console; `whole` shows every value of one recording."""
    words = ReportWords()
    if isinstance(scores, ResultsTable):
        return Group(*_render([tabulate_means(scores, words), *map(page.Text, scores.notes)]))
    heading = page.Text(f"{scores.name} · {describe_facts(scores, words)}", css="conclusion")
    verdict, *defects = sum_up(scores, words)
    values = [tabulate_values(scores, words, whole=whole)] if scores.rows else []
    hidden, blank = 0 if whole else len(scores.shown_rows) - len(scores.lines), page.Text("")
    notes = [*([words["hidden"].format(hidden)] if hidden else []), *write_notes(scores)]
    defects += [blank] if defects and values else []
    return Group(*_render([heading, blank, verdict, blank, *defects, *values, blank, *map(page.Text, notes)]))


def _render(parts: Iterable[page.Part]) -> Iterator[RenderableType]:
    """Render the parts of a report for a rich console; rows that span a whole table are printed below it."""
    for part in parts:
        if isinstance(part, page.Table):
            yield _convert(part)
            yield from (Line(make_printable(row.cells[0].text), "red") for row in part.rows if row.span == "why")
        else:
            style = "bold" if isinstance(part, page.Text) and part.css == "conclusion" else ""
            yield from (Line(make_printable(line), style) for line in page.write_lines(part))


def _convert(table: page.Table) -> RenderableType:
    """Convert a table of a report; the columns of a recording's values need no headers, except the last."""
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, head in enumerate(table.headers):
        # In a narrow terminal, names are wrapped, so numbers are not cut off.
        is_named = table.css != "values" or number == len(table.headers) - 1
        text = "\n".join(filter(None, (head.text, head.note))) if is_named else ""
        justify: Any = "right" if head.css else "left"
        grid.add_column(Line(text), justify=justify, vertical="bottom", overflow="fold", no_wrap=number > 0)
    for row in table.rows:
        if row.span == "group":
            grid.add_row(Line(row.cells[0].text, "bold"))
        elif not row.span:
            grid.add_row(*(Line(make_printable(cell.text), _COLOURS.get(cell.css, "")) for cell in row.cells))
    return grid


def render_text(scores: RecordingResults | ResultsTable, *, whole: bool = False) -> str:
    """Return the result as plain text."""
    stream = io.StringIO()
    console = Console(file=stream, width=120, color_system=None, highlight=False, markup=False, emoji=False)
    console.print(build_table(scores, whole=whole), soft_wrap=True)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().split("\n"))
