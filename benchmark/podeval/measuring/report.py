"""Recordings as reports: values, what was not scored, defects, transcript, values over time, protocols, sources."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from podeval.errors import PodevalError
from podeval.measuring.plots import PlotTexts, plot_results
from podeval.measuring.standing import choose_tone, format_number, format_reach, format_span
from podeval.measuring.transcripts import read_turns
from podeval.plots.lines import draw_waveform
from podeval.reports.page import (
    LANGUAGES,
    Entry,
    Listing,
    Part,
    Pictures,
    Player,
    Protocols,
    Report,
    RowOfCells,
    Section,
    Table,
    TableCell,
    Text,
    Transcription,
    describe_protocol,
    make_breakable,
    make_heads,
    read_report_texts,
    render_document,
    write_page,
)
from podeval.text.message_catalogue import translate
from podeval.texts import translate_reason
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.measuring.recording_results import Defect, RecordingResults, ResultsTable, ScoreRow
    from podeval.recording import Recording

_PHRASE = re.compile(r"^said again: |^in |'s voice$")
"""What stands around the words or the name in what a metric says is heard."""

UNUSABLE = "unusable"
"""The kind of a defect of the whole recording, whose detail begins with a verb."""

PLAYED_RATES = (48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000)
"""Rates of MP3, Hz: the sound is brought down to the next of them."""
QUALITY = 0.6
"""Quality of the sound, from 0 (best, largest) to 1: about 60 kbit/s for speech in one channel."""
MOST_SECONDS = 2 * 3600.0
"""Longer recordings are not put into a file, which a browser could not open."""
_PEAKS = 900


def format_clock(seconds: float) -> str:
    """Format a time in a recording: `1:02.5`."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:04.1f}"


class ReportWords:
    """The texts of a report.

    Args:
        language: `en` or `zh`.

    Raises:
        BadInput: there is no such language.
    """

    def __init__(self, language: str = LANGUAGES[0]) -> None:
        texts = read_report_texts(language)
        self.language = language
        self.texts: Mapping[str, Any] = texts["recording_report"]
        self._defects: Mapping[str, Any] = texts["report"]
        self._causes: Mapping[str, Any] = texts["board"]["causes"]

    def __getitem__(self, name: str) -> Any:
        """Return a text, or a group of them."""
        return self.texts[name]

    @property
    def made(self) -> str:
        """Say by which version a report was made and when, and what the arrows mean."""
        return str(self["made"]).format(__version__, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))

    def reason(self, sentence: str) -> str:
        """Why something is not scored."""
        return translate_reason(sentence, self._causes)

    def unit(self, row: ScoreRow) -> str:
        """Unit and direction of a value."""
        unit = row.key.unit
        return row.key.unit_text.replace(unit, translate(unit, self.language), 1) if unit else row.key.unit_text

    def name(self, row: ScoreRow) -> str:
        """What a value is called, where that says more than its name."""
        title = row.metric.title_of(row.key)
        translated = translate(title, self.language)
        return "" if translated == title else translated

    def ideal(self, row: ScoreRow) -> str:
        """What is best, where a key is best in a range."""
        if row.key.ideal is None:
            return ""
        low, high = row.key.ideal
        if low == float("-inf"):
            return str(self["best"]["up_to"]).format(format_number(high))
        return str(self["best"]["between"]).format(format_span((low, high)))

    def defect(self, defect: Defect) -> tuple[str, str]:
        """The kind of a defect, and what is to be heard there."""
        if self.language == LANGUAGES[0]:
            kind = defect.kind.replace("_", " ")
            # What is said of a click is that it is a click.
            return kind, "" if defect.detail in (kind, f"a {kind}") else defect.detail
        kinds, phrases = self._defects["defect_kinds"], self._defects["defect_heard"]
        name = defect.kind.replace(" ", "_")
        kind = kinds.get(name) or self["file_defects"].get(name, defect.kind)
        phrase = str(phrases.get(name, "{heard}"))
        if name == UNUSABLE:
            return str(kind), self.reason(f"the recording {defect.detail}")
        seconds = f"{defect.end - defect.start:.1f}"
        return str(kind), self.reason(phrase.format(heard=_PHRASE.sub("", defect.detail), seconds=seconds))

    @property
    def plots(self) -> PlotTexts:
        """What plots say."""
        return PlotTexts(
            str(self["usual"]),
            str(self["plot_over_time"]),
            lambda defect: ": ".join(filter(None, self.defect(defect))),
            css_class="drawn wide",
        )

    def length(self, seconds: float) -> str:
        """A length of time: `48.2 s`, `1 min 31 s`, `1 h 02 min`."""
        if seconds < 60:
            return str(self["lengths"]["seconds"]).format(f"{seconds:.1f}")
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return str(self["lengths"]["minutes"]).format(minutes, f"{rest:02d}")
        return str(self["lengths"]["hours"]).format(minutes // 60, f"{minutes % 60:02d}")

    def facts(self, scores: RecordingResults) -> str:
        """What the recording is, in one line: length, rate, channels, profile."""
        facts = scores.facts
        parts = [str(self["only_words"])]
        if facts.channels:
            channels = self["channels"].get(str(facts.channels)) or self["channels"]["many"].format(facts.channels)
            parts = [self.length(facts.seconds), f"{facts.rate / 1000:g} kHz", str(channels)]
        return " · ".join([*parts, str(self["profile"]).format(scores.profile)])

    def heading(self, scores: RecordingResults) -> str:
        """The name of the recording, and what it is."""
        return f"{scores.name} · {self.facts(scores)}"


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


def make_player(recording: Recording, marks: Sequence[tuple[float, float]], label: str, hint: str) -> Player:
    """Make a player of a recording; `marks` are stretches in seconds that are marked in its waveform."""
    seconds = max(len(recording.samples) / recording.rate, 1e-3)
    from podeval.recording.playback import measure_peaks

    heights = measure_peaks(recording.samples, _PEAKS)
    waveform = draw_waveform(heights, [(start / seconds, end / seconds) for start, end in marks], label)
    return Player(encode_sound(recording), Markup(waveform), hint)


def encode_sound(recording: Recording) -> str:
    """Encode the sound of a recording as an address that holds it, `data:audio/mpeg;base64,…`."""
    import numpy as np
    import soundfile

    from podeval.audio.resample import resample

    samples = recording.samples if recording.channels <= 2 else recording.samples.mean(axis=1, keepdims=True)
    rate = next((rate for rate in PLAYED_RATES if rate <= recording.rate), PLAYED_RATES[-1])
    file = io.BytesIO()
    sound = np.clip(resample(samples, recording.rate, rate), -1.0, 1.0)
    soundfile.write(file, sound, rate, format="MP3", bitrate_mode="VARIABLE", compression_level=QUALITY)
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode()
