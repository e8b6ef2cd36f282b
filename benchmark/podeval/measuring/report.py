"""Recordings as reports: values, what was not scored, defects, transcript, values over time, protocols, sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from podeval.errors import PodevalError
from podeval.measuring.plots import plot_results
from podeval.measuring.report_words import ReportWords, format_clock
from podeval.measuring.standing import choose_tone, format_number, format_reach
from podeval.measuring.transcripts import read_turns
from podeval.reports.page import describe_protocol, make_breakable, render_document, write_page
from podeval.reports.parts import (
    Entry,
    Listing,
    Part,
    Pictures,
    Protocols,
    Report,
    RowOfCells,
    Section,
    Table,
    TableCell,
    Text,
    Transcription,
    make_heads,
)
from podeval.text.message_catalogue import translate

if TYPE_CHECKING:
    from podeval.measuring.recording_results import RecordingResults, ResultsTable


def write_report(scores: RecordingResults, path: Path, language: str = "en") -> Path:
    """Write the report of one recording; an existing file is replaced.

    Raises:
        BadInput: it cannot be written, or there is no such language.
    """
    return write_page(render_report(scores, language), path)


def render_report(scores: RecordingResults, language: str = "en") -> str:
    """Render the report of one recording as HTML.

    Raises:
        BadInput: there is no such language.
    """
    return render_document([_describe(scores, 0, ReportWords(language))], language)


def write_reports(table: ResultsTable, path: Path, language: str = "en") -> Path:
    """Write the report of many recordings, the means first.

    Raises:
        BadInput: it cannot be written, or there is no such language.
    """
    words = ReportWords(language)
    head: list[Part] = [tabulate_means(table, words), *(Text(line) for line in _list_failures(table, words))]
    summary = Report("all", words["count"].format(len(table.scores)), words.made, [Section(words["all"], head)])
    reports = [_describe(scores, number, words) for number, scores in enumerate(table.scores)]
    return write_page(render_document([summary, *reports], language), path)


def tabulate_values(scores: RecordingResults, words: ReportWords) -> Table:
    """Make the table of a recording's values beside what people and good systems reach."""
    names = ("metric", "value", "unit", "people", "systems", "compared", "what")
    rows = []
    for row in scores.shown_rows:
        people, systems = format_reach(row.key, scores.profile)
        word = row.word(scores.profile)
        title, key = words.name(row), make_breakable(row.short_name)
        name = TableCell(title or key, code=key if title else "")
        tone = TableCell(str(words["stands"][word]) if word else "", css=row.tone(scores.profile))
        about = TableCell(translate(row.key.about or row.metric.purpose, words.language).replace("`", ""))
        value = TableCell(format_number(row.value), css="quiet" if row.unranked else "")
        people = people or words.ideal(row)
        rows.append(RowOfCells([name, value, words.unit(row), people, systems, tone, about]))
    return Table(words["values"], make_heads(words.texts, names, ("value",)), rows, "values")


def tabulate_means(table: ResultsTable, words: ReportWords) -> Table:
    """Make the table of many recordings, with the mean of each value and its interval."""
    shown = table.headlines
    heads = [TableCell(words["recording"])]
    heads += [TableCell(words.name(row) or row.short_name, words.unit(row), css="number") for row in shown]
    rows = []
    for number, (scores, name) in enumerate(zip(table.scores, table.short_names, strict=True)):
        cells = []
        for row in shown:
            value = scores.values.get(row.name)
            cells.append(TableCell(format_number(value), css=choose_tone(row.key, value, scores.profile)))
        rows.append(RowOfCells([TableCell(name, link=f"#recording-{number}"), *cells]))
    for name, sentence in table.errors.items():
        rows.append(RowOfCells([f"{name}: {words['error']} {sentence}"], span="why"))
    means = [table.intervals.get(row.name) for row in shown]
    rows.append(
        RowOfCells([words["mean_of"].format(len(table.scores)), *(format_number(m.mean if m else None) for m in means)])
    )
    bounds = (f"{format_number(m.low)} – {format_number(m.high)}" if m and m.low is not None else "" for m in means)
    rows.append(RowOfCells([words["interval"], *bounds]))
    return Table(words["all"], heads, rows, "means")


def _describe(scores: RecordingResults, number: int, words: ReportWords) -> Report:
    """Describe one recording with the parts that it has."""
    values: list[Part] = [tabulate_values(scores, words)]
    values += [Text(words.reason(note), lead=name) for name, notes in scores.notes.items() for note in notes]
    missing = [Entry(words.reason(one["unscored"]), name) for name, one in scores.unscored.items()]
    missing += [
        Entry(words["with"], ", ".join(names), words["advice"].get(what, what)) for what, names in scores.advice.items()
    ]
    defects = [_describe_defect(*words.defect(one), one.start, one.end, words) for one in scores.defects]
    sections = [
        Section(words["values"], values),
        Section(words["not_scored"], [Listing(missing)] if missing else []),
        Section(words["defects"], [Listing(defects)] if defects else [Text(words["no_defects"], "")]),
        Section(words["transcript"], list(_transcribe(scores, words))),
        Section(words["over_time"], list(_draw(scores, words))),
        Section(
            words["protocols"],
            [Protocols([describe_protocol(name, protocol) for name, protocol in scores.protocols.items()])],
        ),
        Section(words["sources"], [Listing(_list_sources(scores, words))]),
    ]
    title, about = scores.name, f"{words.facts(scores)}. {words.made}"
    seconds = scores.facts.seconds
    return Report(f"recording-{number}", title, about, sections, list(_play(scores, words)), seconds=seconds)


def _play(scores: RecordingResults, words: ReportWords) -> Iterator[Part]:
    """Make a player of the recording, or say that there is none to play, or one that cannot be played."""
    from podeval.reports.sound import MOST_SECONDS, make_player

    recording = scores.source.recording if scores.source and scores.facts.seconds <= MOST_SECONDS else None
    if recording and not recording.defect:
        marks = [(one.start, one.end) for one in scores.defects]
        yield make_player(recording, marks, words["waveform"], words["play_from"])
    elif scores.facts.seconds:
        yield Text(words["no_sound"])


def _describe_defect(kind: str, detail: str, start: float, end: float, words: ReportWords) -> Entry:
    text = f"{words['until']} {format_clock(end)}, {kind}" + (f": {detail}" if detail else "")
    return Entry(text, format_clock(start), start=start)


def _transcribe(scores: RecordingResults, words: ReportWords) -> Iterator[Part]:
    """Make the transcript, for which nothing is heard anew; nothing where no metric listened to the words."""
    try:
        turns = read_turns(scores)
    except PodevalError:
        return
    if turns:
        yield Text(words["transcript_about"])
        of_turns = [[(round(word.start, 2), word.text.strip()) for word in turn.words] for turn in turns]
        starts = [(turn.speaker, round(turn.start, 2), format_clock(turn.start)) for turn in turns]
        yield Transcription(words["transcript"], [(*start, of) for start, of in zip(starts, of_turns, strict=True)])


def _draw(scores: RecordingResults, words: ReportWords) -> Iterator[Part]:
    """Draw the values over time, if there are some."""
    pictures = plot_results(scores, texts=words.plots).pictures if scores.timelines else {}
    if pictures:
        yield Text(words["over_time_about"])
        yield Pictures([("", Markup(picture)) for picture in pictures.values()], "", "track plot")


def _list_sources(scores: RecordingResults, words: ReportWords) -> list[Entry]:
    """List where the values of people and systems are from."""
    keys = [row.key for row in scores.rows if format_reach(row.key, scores.profile) != ("", "")]
    sources = [key.reach.source for key in keys if key.reach]
    return [Entry(translate(source, words.language).replace("`", "")) for source in dict.fromkeys(sources)]


def _list_failures(table: ResultsTable, words: ReportWords) -> list[str]:
    failures = [
        words["not_scored_in"].format(count, len(table.scores), name, words.reason(reason))
        for (name, reason), count in table.failures.items()
    ]
    return [*failures, *([words["more_values"].format(table.hidden_values)] if table.hidden_values else [])]
