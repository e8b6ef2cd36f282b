"""Scores as tables: for a terminal, for text, and for a notebook."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from podeval.scoring.plots import plot_results
from podeval.scoring.standing import choose_tone, format_number, format_reach
from podeval.text.terminal_safe import make_printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from podeval.scoring.recording_results import RecordingResults, ResultsTable, ScoreRow

_COLOURS = {"good": "green", "fair": "", "bad": "yellow", "": "dim"}
_WIDTH = 120
"""Columns of a table where nobody says how wide it may be."""
_WHOLE_NAMES, _LONGEST_NAME = 108, 22
"""Columns of a terminal below which names are broken, and the longest name that is left whole there."""

STYLE = """<style>
.podeval table{border-collapse:collapse}.podeval td,.podeval th{padding:.15em .7em;text-align:left}
.podeval td.n{text-align:right;font-variant-numeric:tabular-nums}
.podeval .good{color:#1a7f37}.podeval .bad{color:#9a6700}
.podeval svg{max-width:44em;height:auto}
</style>"""


def format_duration(seconds: float) -> str:
    """A length of time: `48.2 s`, `1 min 31 s`, `1 h 02 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def write_heading(scores: RecordingResults) -> str:
    """What the recording is, in one line."""
    facts = scores.facts
    if not facts.channels:
        return f"{scores.name} · words · profile {scores.profile}"
    channels = {1: "mono", 2: "stereo"}.get(facts.channels, f"{facts.channels} channels")
    rate = f"{facts.rate / 1000:g} kHz, {channels}"
    return f"{scores.name} · {format_duration(facts.seconds)} · {rate} · profile {scores.profile}"


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


def format_clock(seconds: float) -> str:
    """A time in a recording: `1:02.5`."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:04.1f}"


def build_table(scores: RecordingResults | ResultsTable) -> RenderableType:
    """The table of one recording, or of many, for a console of rich."""
    from podeval.scoring.recording_results import ResultsTable

    return _build_summary(scores) if isinstance(scores, ResultsTable) else _ByWidth(scores)


class _ByWidth:
    """The table of one recording for a console of any width."""

    def __init__(self, scores: RecordingResults) -> None:
        self._scores = scores

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield _build_one(self._scores, narrow=options.max_width < _WHOLE_NAMES)


def _build_one(scores: RecordingResults, *, narrow: bool) -> RenderableType:
    """A row a value, and under them what was not scored."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    # In a narrow terminal names and units take several lines, so that no figure is cut off.
    table.add_column("", overflow="fold")
    table.add_column("value", justify="right", vertical="bottom", no_wrap=True)
    table.add_column("", vertical="bottom", max_width=10 if narrow else None)
    for name in ("people", "good systems", ""):
        table.add_column(name, vertical="bottom", no_wrap=True)
    before = ""
    for row in scores.shown_rows:
        name = _break_name(row, before) if narrow else row.short_name
        before = row.name.partition(".")[0]
        table.add_row(Text(name), *_cells(row, scores.profile))
    parts: list[RenderableType] = [Text(make_printable(write_heading(scores)), style="bold")]
    parts += [table] if scores.rows else []
    parts += [Text(make_printable(line)) for line in write_notes(scores)]
    return Group(*parts)


def _break_name(row: ScoreRow, before: str) -> str:
    """The name of a value for a narrow column: its key alone under the metric it shares with the row before."""
    metric, _, key = row.short_name.partition(".")
    if metric == before and key:
        return f"  .{key}"
    return f"{metric}\n  .{key}" if len(row.short_name) > _LONGEST_NAME else row.short_name


def _cells(row: ScoreRow, profile: str) -> tuple[RenderableType, ...]:
    from rich.text import Text

    key, value = row.key, row.value
    people, systems = format_reach(key, profile)
    return (
        Text(format_number(value), style="dim" if row.unranked else ""),
        Text(key.unit_text),
        Text(people or format_ideal(row)),
        Text(systems),
        Text(row.word(profile), style=_COLOURS[row.tone(profile)]),
    )


def format_ideal(row: ScoreRow) -> str:
    """What is best, where a key is best in a range."""
    ideal = row.key.ideal
    if ideal is None:
        return ""
    low, high = ideal
    return (
        f"best up to {format_number(high)}"
        if low == float("-inf")
        else f"best {format_number(low)} – {format_number(high)}"
    )


def _build_summary(table: ResultsTable) -> RenderableType:
    """A row a file, and the mean with its interval."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    headlines = table.headlines
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("")
    for row in headlines:
        grid.add_column(Text(f"{row.short_name}\n{row.key.unit_text}"), justify="right")
    for scores, name in zip(table.scores, table.short_names, strict=True):
        values = scores.values
        grid.add_row(Text(make_printable(name)), *(_value(scores, row, values.get(row.name)) for row in headlines))
    for name, sentence in table.errors.items():
        grid.add_row(Text(make_printable(name)), Text(make_printable(f"error: {sentence}"), style="red"))
    intervals = table.intervals
    cells = []
    for row in headlines:
        mean = intervals.get(row.name)
        bounds = ""
        if mean is not None and mean.low is not None and mean.high is not None:
            bounds = f"\n{format_number(mean.low)} – {format_number(mean.high)}"
        cells.append(Text(format_number(mean.mean if mean else None) + bounds, style="bold"))
    grid.add_row(Text(f"mean of {len(table.scores)}\n95 % interval", style="bold"), *cells)
    lines = [Text(make_printable(line)) for line in table.notes]
    return Group(grid, *lines)


def _value(scores: RecordingResults, row: ScoreRow, value: float | None) -> RenderableType:
    from rich.text import Text

    return Text(format_number(value), style=_COLOURS[choose_tone(row.key, value, scores.profile)])


def render_text(scores: RecordingResults | ResultsTable) -> str:
    """The table as plain text."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=_WIDTH, color_system=None, highlight=False, markup=False, emoji=False)
    console.print(build_table(scores), soft_wrap=True)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().split("\n"))


def render_html(scores: RecordingResults) -> str:
    """The table of one recording with its plots, for a notebook."""
    body = "".join(_html_row(row, scores.profile) for row in scores.shown_rows)
    head = "".join(f"<th>{name}</th>" for name in ("", "value", "", "people", "good systems", ""))
    notes = "".join(f"<p>{escape(line)}</p>" for line in write_notes(scores))
    plots = ""
    if scores.timelines:
        plots = f"<details><summary>Over time</summary>{plot_results(scores).to_html()}</details>"
    return (
        f'{STYLE}<div class="podeval"><p><strong>{escape(write_heading(scores))}</strong></p>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}{plots}</div>"
    )


def _html_row(row: ScoreRow, profile: str) -> str:
    key, value = row.key, row.value
    people, systems = format_reach(key, profile)
    word, tone = row.word(profile), row.tone(profile)
    return (
        f'<tr><td title="{escape(key.about, quote=True)}">{escape(row.short_name)}</td>'
        f'<td class="n">{format_number(value)}</td>'
        f"<td>{escape(key.unit_text)}</td><td>{people or format_ideal(row)}</td><td>{systems}</td>"
        f'<td class="{tone}">{word}</td></tr>'
    )


def render_summary_html(table: ResultsTable) -> str:
    """The table of many recordings, for a notebook."""
    headlines = table.headlines
    intervals = table.intervals
    head = "".join(f"<th>{escape(row.short_name)}<br>{escape(row.key.unit_text)}</th>" for row in headlines)
    rows = "".join(
        f"<tr><td>{escape(name)}</td>" + _html_values(scores.values.get(row.name) for row in headlines) + "</tr>"
        for scores, name in zip(table.scores, table.short_names, strict=True)
    )
    rows += "".join(
        f'<tr><td>{escape(name)}</td><td colspan="{len(headlines)}" class="bad">error: {escape(sentence)}</td></tr>'
        for name, sentence in table.errors.items()
    )
    means = [intervals.get(row.name) for row in headlines]
    foot = _html_values(mean.mean if mean else None for mean in means)
    bounds = "".join(
        f'<td class="n">{format_number(mean.low)} – {format_number(mean.high)}</td>'
        if mean and mean.low is not None and mean.high is not None
        else "<td></td>"
        for mean in means
    )
    notes = "".join(f"<p>{escape(line)}</p>" for line in table.notes)
    return (
        f'{STYLE}<div class="podeval"><table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody>'
        f"<tfoot><tr><th>mean of {len(table.scores)}</th>{foot}</tr><tr><th>95 % interval</th>{bounds}</tr></tfoot>"
        f"</table>{notes}</div>"
    )


def _html_values(values: Iterable[float | None]) -> str:
    return "".join(f'<td class="n">{format_number(value)}</td>' for value in values)


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for reason, name in pairs:
        grouped.setdefault(reason, []).append(name)
    return grouped
