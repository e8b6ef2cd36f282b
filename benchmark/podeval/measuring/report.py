"""Reports on recordings: values, unscored metrics, defects, transcript, values over time, protocols and sources."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from podeval.errors import BadInput, CannotScore, ModelMissing, PodevalError
from podeval.measuring.recording_results import RecordingResults, ResultsTable
from podeval.measuring.score_tables import (
    describe_facts,
    render_for_notebook,
    sum_up,
    tabulate_all,
    tabulate_means,
    write_heading,
    write_notes,
)
from podeval.measuring.verdict import ReportWords
from podeval.metrics import catalogue
from podeval.metrics.score import format_clock
from podeval.metrics.standing import find_usual, translate
from podeval.models.interfaces import SpeakerTurn, Word
from podeval.plots.lines import LEFT, RIGHT, Highlight, Line, draw_lines, draw_waveform
from podeval.plots.svg import Axis, Frame, stack_pictures
from podeval.recording import Recording
from podeval.recording.speaker_turns import find_speaker_turns
from podeval.reports.page import (
    Entry,
    Listing,
    Part,
    Pictures,
    Player,
    Protocols,
    Report,
    Section,
    Text,
    Transcription,
    describe_protocol,
    render_document,
    write_page,
)

PLAYED_RATES = (48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000)
"""Sample rates of MP3 in Hz; the audio is resampled to the next lower one."""
QUALITY = 0.6
"""Quality of the encoded audio, from 0 (best, largest) to 1; this is about 60 kbit/s for speech in one channel."""
MOST_SECONDS = 2 * 3600.0
"""Maximum length, in seconds, of a recording that is embedded in the file; a browser could not open a longer one."""
_PEAKS = 900


def write_report(scores: RecordingResults, path: Path, language: str = "en") -> Path:
    """Write the report of one recording; an existing file is replaced.

    Raises:
        BadInput: the file cannot be written, or there is no such language.
    """
    return write_page(render_document([_describe(scores, 0, ReportWords(language))], language), path)


def write_reports(table: ResultsTable, path: Path, language: str = "en") -> Path:
    """Write the report of many recordings, with the means first.

    Raises:
        BadInput: the file cannot be written, or there is no such language.
    """
    words = ReportWords(language)
    head: list[Part] = [tabulate_means(table, words), *(Text(line) for line in _list_failures(table, words))]
    summary = Report("all", words["count"].format(len(table.scores)), words.made, [Section(words["all"], head)])
    reports = [_describe(scores, number, words) for number, scores in enumerate(table.scores)]
    return write_page(render_document([summary, *reports], language), path)


def _describe(scores: RecordingResults, number: int, words: ReportWords) -> Report:
    """Describe one recording, with the parts that are available."""
    title, about = scores.name, f"{describe_facts(scores, words)}. {words.made}"
    head = [*sum_up(scores, words), *_play(scores, words)]
    return Report(f"recording-{number}", title, about, list_sections(scores, words), head)


def list_sections(scores: RecordingResults, words: ReportWords) -> list[Section]:
    """Return everything except the verdict and the defects, by section: the values first, and their origin last."""
    values = tabulate_all(scores, words)
    values += [
        Text(words.note(name, note), lead=words.metric(name)) for name, notes in scores.notes.items() for note in notes
    ]
    reasons = {name: one["unscored"] for name, one in scores.unscored.items()}
    if not scores.advice:
        reasons |= scores.left_out
    missing = [Entry(words.reason(why), words.metric(name)) for name, why in reasons.items()]
    missing += [
        Entry(words["with"], ", ".join(map(words.metric, names)), words["advice"].get(what, what))
        for what, names in scores.advice.items()
    ]
    sources = _list_sources(scores, words)
    return [
        Section(words["values"], values),
        Section(words["not_scored"], [Listing(missing)] if missing else []),
        Section(words["transcript"], list(_transcribe(scores, words))),
        Section(words["over_time"], list(_draw(scores, words))),
        Section(
            words["protocols"],
            [Protocols([describe_protocol(words.metric(name), one) for name, one in scores.protocols.items()])],
        ),
        Section(words["sources"], [Listing(sources)] if sources else []),
    ]


def _play(scores: RecordingResults, words: ReportWords) -> Iterator[Part]:
    """Make a player for the recording, or a sentence that says why there is none."""
    recording = scores.source.recording if scores.source and scores.facts.seconds <= MOST_SECONDS else None
    if recording and not recording.defect:
        marks = [(one.start, one.end) for one in scores.defects]
        yield make_player(recording, marks, words["waveform"], words["play_from"])
    elif scores.facts.seconds:
        yield Text(words["no_sound"])


def render_html(scores: RecordingResults) -> str:
    """Render the table of one recording with its plots, for a notebook."""
    words = ReportWords()
    parts: list[Part] = [
        Text(write_heading(scores, words)),
        *sum_up(scores, words),
        *tabulate_all(scores, words),
    ]
    plots = plot_results(scores).to_html() if scores.timelines else ""
    over_time = f"<details><summary>{words['over_time']}</summary>{plots}</details>" if plots else ""
    return render_for_notebook([*parts, *map(Text, write_notes(scores))], over_time)


def _transcribe(scores: RecordingResults, words: ReportWords) -> Iterator[Part]:
    """Make the transcript from existing words; return an empty one if no metric transcribed the recording."""
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
    """Draw the values over time, if there are any."""
    pictures = plot_results(scores, words=words, css_class="drawn wide").pictures if scores.timelines else {}
    if pictures:
        yield Text(words["over_time_about"])
        yield Pictures([("", Markup(picture)) for picture in pictures.values()], "", "track plot")


def _list_sources(scores: RecordingResults, words: ReportWords) -> list[Entry]:
    """List the sources of the values of people and systems."""
    sources = dict.fromkeys(row.band["material"] for row in scores.rows if row.band.get("n"))
    return [Entry(translate(source, words.language).replace("`", "")) for source in sources]


def _list_failures(table: ResultsTable, words: ReportWords) -> list[str]:
    failures = [
        words["not_scored_in"].format(count, len(table.scores), name, words.reason(reason))
        for (name, reason), count in table.failures.items()
    ]
    return [*failures, *([words["more_values"].format(table.hidden_values)] if table.hidden_values else [])]


def make_player(recording: Recording, marks: Sequence[tuple[float, float]], label: str, hint: str) -> Player:
    """Make a player for a recording; `marks` are stretches, in seconds, that are marked in its waveform."""
    seconds = max(len(recording.samples) / recording.rate, 1e-3)
    from podeval.recording.playback import measure_peaks

    heights = measure_peaks(recording.samples, _PEAKS)
    waveform = draw_waveform(heights, [(start / seconds, end / seconds) for start, end in marks], label)
    return Player(encode_sound(recording), Markup(waveform), hint, seconds)


def encode_sound(recording: Recording) -> str:
    """Encode the audio of a recording as a data URI, `data:audio/mpeg;base64,…`."""
    import numpy as np
    import soundfile

    from podeval.audio.samples import resample

    samples = recording.samples if recording.channels <= 2 else recording.samples.mean(axis=1, keepdims=True)
    rate = next((rate for rate in PLAYED_RATES if rate <= recording.rate), PLAYED_RATES[-1])
    file = io.BytesIO()
    sound = np.clip(resample(samples, recording.rate, rate), -1.0, 1.0)
    soundfile.write(file, sound, rate, format="MP3", bitrate_mode="VARIABLE", compression_level=QUALITY)
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode()


# Plots of a metric's values over time: one line for each key, with the usual range behind it and the defects marked.

WIDTH, HEIGHT = 720, 130


@dataclass(frozen=True)
class TimelinePlot:
    """Plots of values over time; a notebook shows them.

    Attributes:
        pictures: an SVG for each value, by `metric.key`.
    """

    pictures: Mapping[str, str]

    def save(self, path: str | Path) -> Path:
        """Write the plots to one SVG file, one below the other."""
        target = Path(path)
        target.write_text(stack_pictures(list(self.pictures.values()), ", ".join(self.pictures)), encoding="utf-8")
        return target

    def to_html(self) -> str:
        """Return the plots as HTML, one below the other, for a notebook."""
        return "".join(f"<div>{picture}</div>" for picture in self.pictures.values())

    _repr_html_ = to_html


def plot_results(
    results: RecordingResults, name: str = "", words: ReportWords | None = None, css_class: str = ""
) -> TimelinePlot:
    """Draw the timelines of a recording.

    Args:
        results: the scores of the recording.
        name: a metric, or one value of it (`dnsmos.ovrl`); empty for every metric with a timeline.
        words: the texts of a report in the language of the reader; by default English.
        css_class: the CSS class of plots on a page that has a style for them; empty for plots on their own.

    Raises:
        BadInput: there are no values over time; the message lists the metrics that have them.
    """
    words = words or ReportWords()
    metric, _, wanted = name.partition(".")
    timelines = {one: line for one, line in results.timelines.items() if not metric or one == metric}
    if not timelines or (wanted and wanted not in timelines[metric].values):
        choices = ", ".join(results.timelines) or "none here"
        raise BadInput(f"{name or 'no metric'} has no values over time; metrics that have them: {choices}")
    pictures = {}
    for one, timeline in timelines.items():
        keys = {key.name: key for key in (*catalogue.get(one).keys, *catalogue.get(one).courses)}
        for column, values in timeline.values.items():
            if column not in keys or column != (wanted or column) or all(value is None for value in values):
                continue
            title, unit = words.title(catalogue.get(one), keys[column]), keys[column].unit
            in_time = timeline.unit == "s"
            length = max(results.facts.seconds if in_time else 0.0, timeline.starts[-1] + timeline.window)
            # A value is drawn at the middle of its window.
            middles = [start + timeline.window / 2 for start in timeline.starts]
            pictures[f"{one}.{column}"] = draw_lines(
                [Line(list(zip(middles, values, strict=True)))],
                Axis.over_length(length, LEFT, WIDTH - RIGHT, seconds=in_time),
                Frame(words["plot_over_time"].format(title), WIDTH, 11, css_class, alone=not css_class),
                HEIGHT,
                title=f"{title} ({unit})" if unit else title,
                unit="" if in_time else timeline.unit,
                usual=find_usual(catalogue.get(one), keys[column], results.profile),
                usual_text=str(words["usual"]),
                highlights=[
                    Highlight(one.start, one.end, ": ".join(filter(None, words.defect(one))))
                    for one in results.defects
                    if in_time
                ],
                data_length=length if in_time else None,
            )
    return TimelinePlot(pictures)


# The recognised words of a recording, with their times and speakers, for reports and labels.
#
# Nothing is transcribed again after scoring, because the transcript and the speakers are in the cache.


@dataclass(frozen=True)
class TranscribedTurn:
    """The words of one speaker, with the time of each; `speaker` is empty if unknown."""

    speaker: str
    start: float
    end: float
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The words as a text."""
        return " ".join(word.text.strip() for word in self.words)


def read_turns(scores: RecordingResults) -> tuple[TranscribedTurn, ...]:
    """Return the turns of a recording; empty if no metric has transcribed it.

    Raises:
        CannotScore: the recording's rate is too low for recognising words.
        ModelMissing: the transcriber is not installed.
    """
    heard = {
        "wer",
        "content_errors",
        "speaker_attribution",
        "sptd",
        "timbre_consistency",
        "sim",
        "wsim",
        "timbre_similarity",
    } & set(scores.results)
    if scores.source is None or not ({"wer", "content_errors"} & heard or (heard and scores.script)):
        return ()
    recording = scores.source.recording
    track = recording.speech_track()
    language = getattr(scores.results.get("wer"), "notes", {}).get("language")
    words = track.transcript(language if language in ("en", "zh") else None).words
    script = scores.script if scores.script and len(scores.script.speakers) > 1 else None
    speakers: tuple[SpeakerTurn, ...] = ()
    if script or "sptd" in scores.results:
        with suppress(CannotScore, ModelMissing):
            speakers = find_speaker_turns(track, script, _count_asked(scores))[0]
    return join_turns(words, speakers)


def _count_asked(scores: RecordingResults) -> int:
    """Return the expected number of speakers if more were found; otherwise 0."""
    notes = getattr(scores.results.get("sptd"), "notes", {})
    return int(notes["speakers_asked"]) if "voices_heard" in notes else 0


def join_turns(words: tuple[Word, ...], speakers: tuple[SpeakerTurn, ...]) -> tuple[TranscribedTurn, ...]:
    """Group words into turns: a turn begins when another speaker says most of a word, or after a pause of a second."""
    turns: list[TranscribedTurn] = []
    for word in words:
        who = _speaker_at(word, speakers, turns[-1].speaker if turns else "")
        if turns and turns[-1].speaker == who and (who or word.start - turns[-1].end < 1.0):
            last = turns[-1]
            turns[-1] = TranscribedTurn(who, last.start, max(last.end, word.end), (*last.words, word))
        else:
            turns.append(TranscribedTurn(who, word.start, word.end, (word,)))
    return tuple(turns)


def _speaker_at(word: Word, speakers: tuple[SpeakerTurn, ...], before: str) -> str:
    """Return the speaker who says the largest part of a word, or the previous speaker if nobody speaks during it."""
    shares = {
        turn.speaker: min(word.end, turn.end) - max(word.start, turn.start)
        for turn in speakers
        if turn.end > word.start and turn.start < word.end
    }
    return max(shares, key=lambda who: shares[who]) if shares else before
