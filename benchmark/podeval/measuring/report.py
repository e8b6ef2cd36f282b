"""Reports on recordings: values, unscored metrics, defects, transcript, values over time, protocols and sources."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from podeval.errors import BadInput, CannotScore, ModelMissing, PodevalError
from podeval.measuring.recording_results import RecordingResults, ResultsTable
from podeval.measuring.score_tables import describe_facts, sum_up, tabulate_all, tabulate_means, write_notes
from podeval.measuring.verdict import ReportWords, ScoreRow
from podeval.metrics import catalogue
from podeval.metrics.score import format_clock
from podeval.metrics.standing import find_usual, translate
from podeval.models.interfaces import SpeakerTurn, Word
from podeval.plots.lines import LEFT, RIGHT, Highlight, Line, draw_lines, draw_waveform
from podeval.plots.svg import Axis, Frame, stack_pictures
from podeval.recording import Recording
from podeval.recording.speaker_turns import find_speaker_turns
from podeval.reports import page
from podeval.text.dialogue_segments import Utterance, attribute_to_speakers

PLAYED_RATES = (48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000)
"""Sample rates of MP3 in Hz; the audio is resampled to the next lower of these rates."""
QUALITY = 0.6
"""Quality of the encoded audio, from 0 (best, largest) to 1; this is about 60 kbit/s for speech in one channel."""
MOST_SECONDS = 2 * 3600.0
"""Maximum length, in seconds, of a recording that is embedded in the file; a browser could not open a file with a
longer recording."""
_PEAKS = 900
WIDTH, HEIGHT = 720, 130
"""Size of a plot of values over time."""
_OF_VOICES = {"speaker_attribution", "sptd", "timbre_consistency", "sim", "wsim", "timbre_similarity"}
"""Metrics that transcribe a recording for which there is a script."""
STYLE = """<style>
.podeval table{border-collapse:collapse}.podeval td,.podeval th{padding:.15em .7em;text-align:left}
.podeval td.number{text-align:right;font-variant-numeric:tabular-nums}
.podeval .good{color:#1a7f37}.podeval .poor{color:#9a6700}
.podeval .conclusion{font-size:1.1em}.podeval .group th{padding-top:.6em}
.podeval svg{max-width:44em;height:auto}
</style>"""


def write_report(scores: RecordingResults | ResultsTable, path: Path, language: str = "en") -> Path:
    """Write the report of one recording, or of many with the means first; an existing file is replaced.

    Raises:
        BadInput: the file cannot be written, or there is no such language.
    """
    words, reports = ReportWords(language), []
    if isinstance(scores, ResultsTable):
        total, title = len(scores.scores), words["all"]
        head: list[page.Part] = [tabulate_means(scores, words)]
        for (name, reason), count in scores.failures.items():
            head.append(page.Text(words["not_scored_in"].format(count, total, name, words.reason(reason))))
        head += [page.Text(words["more_values"].format(scores.hidden_values))] if scores.hidden_values else []
        reports.append(page.Report("all", words["count"].format(total), words.made, [page.Section(title, head)]))
    for number, one in enumerate(scores.scores if isinstance(scores, ResultsTable) else [scores]):
        about, head = f"{describe_facts(one, words)}. {words.made}", [*sum_up(one, words), *_play(one, words)]
        reports.append(page.Report(f"recording-{number}", one.name, about, list_sections(one, words), head))
    return page.write_page(page.render_document(reports, language), path)


def list_sections(scores: RecordingResults, words: ReportWords) -> list[page.Section]:
    """Return everything except the verdict and the defects, by section, from the values to their origin."""
    values = tabulate_all(scores, words)
    values += [page.Text(words.note(name, one), words.metric(name)) for name, of in scores.notes.items() for one in of]
    reasons = {name: one["unscored"] for name, one in scores.unscored.items()}
    reasons |= {} if scores.advice else scores.left_out
    missing = [page.Text(words.reason(why), words.metric(name)) for name, why in reasons.items()]
    for what, names in scores.advice.items():
        missing.append(page.Text(words["with"], ", ".join(map(words.metric, names)), words["advice"].get(what, what)))
    materials = dict.fromkeys(row.band["material"] for row in scores.rows if row.band.get("n"))
    sources = [page.Text(translate(material, words.language).replace("`", "")) for material in materials]
    protocols = [(words.metric(name), content) for name, content in scores.protocols.items()]
    return [
        page.Section(words["values"], values),
        page.Section(words["not_scored"], [page.Listing(missing)] if missing else []),
        page.Section(words["transcript"], list(_transcribe(scores, words))),
        page.Section(words["over_time"], list(_draw(scores, words))),
        page.Section(words["protocols"], [page.list_protocols(protocols)]),
        page.Section(words["sources"], [page.Listing(sources)] if sources else []),
    ]


def render_html(scores: RecordingResults | ResultsTable) -> str:
    """Render the table of one or many recordings for a notebook, with the plots of one."""
    words = ReportWords()
    if isinstance(scores, ResultsTable):
        parts: list[page.Part] = [tabulate_means(scores, words), *map(page.Text, scores.notes)]
    else:
        heading = page.Text(f"{scores.name} · {describe_facts(scores, words)}")
        parts = [heading, *sum_up(scores, words), *tabulate_all(scores, words), *map(page.Text, write_notes(scores))]
        plots = plot_results(scores).pictures.values() if scores.timelines else ()
        parts += [page.Pictures([("", Markup(plot)) for plot in plots], summary=words["over_time"])] if plots else []
    return f'{STYLE}<div class="podeval">{page.render_parts(parts)}</div>'


def _play(scores: RecordingResults, words: ReportWords) -> Iterator[page.Part]:
    """Make a player whose waveform has marks at the defects, or a sentence that says why there is no player."""
    recording = scores.source.recording if scores.source and scores.facts.seconds <= MOST_SECONDS else None
    if recording and not recording.defect:
        from podeval.recording.playback import measure_peaks

        seconds = max(len(recording.samples) / recording.rate, 1e-3)
        marks = [(one.start / seconds, one.end / seconds) for one in scores.defects]
        waveform = draw_waveform(measure_peaks(recording.samples, _PEAKS), marks, words["waveform"])
        yield page.Player(encode_sound(recording), Markup(waveform), words["play_from"], scores.facts.seconds)
    elif scores.facts.seconds:
        yield page.Text(words["no_sound"])


def _transcribe(scores: RecordingResults, words: ReportWords) -> Iterator[page.Part]:
    """Make the transcript from existing words; return an empty one if no metric transcribed the recording."""
    rows = []
    with suppress(PodevalError):
        for turn in read_turns(scores):
            timed = [(round(word.start, 2), word.text.strip()) for word in turn.words]
            rows.append((turn.speaker, round(turn.start, 2), format_clock(turn.start), timed))
    if rows:
        yield page.Text(words["transcript_about"])
        yield page.Transcription(words["transcript"], rows)


def _draw(scores: RecordingResults, words: ReportWords) -> Iterator[page.Part]:
    """Plot the values over time, if there are any."""
    pictures = plot_results(scores, words=words, css_class="drawn wide").pictures if scores.timelines else {}
    if pictures:
        yield page.Text(words["over_time_about"])
        yield page.Pictures([("", Markup(picture)) for picture in pictures.values()], "", "track plot")


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


@dataclass(frozen=True)
class TimelinePlot:
    """Plots of values over time, an SVG for each value by `metric.key`; a notebook shows them."""

    pictures: Mapping[str, str]

    def save(self, path: str | Path) -> Path:
        """Write the plots to one SVG file, one below the other."""
        target = Path(path)
        target.write_text(stack_pictures(list(self.pictures.values()), ", ".join(self.pictures)), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """Return the plots as HTML, one below the other, for a notebook."""
        return "".join(f"<div>{picture}</div>" for picture in self.pictures.values())


def plot_results(
    results: RecordingResults, name: str = "", words: ReportWords | None = None, css_class: str = ""
) -> TimelinePlot:
    """Draw the timelines of a recording or, if a name is given, those of a metric or of one of its values
    (`dnsmos.ovrl`).

    With a CSS class, the plots are for a page that has a style for them; without one, they are standalone.

    Raises:
        BadInput: there are no values over time; the message lists the metrics that have them.
    """
    words = words or ReportWords()
    metric, _, wanted = name.partition(".")
    timelines = {one: line for one, line in results.timelines.items() if not metric or one == metric}
    if not timelines or (wanted and wanted not in timelines[metric].values):
        choices = ", ".join(results.timelines) or "none here"
        raise BadInput(f"{name or 'this result'} has no values over time; metrics that have such values: {choices}")
    pictures, defects = {}, results.defects
    highlights = [Highlight(one.start, one.end, ": ".join(filter(None, words.defect(one)))) for one in defects]
    for one, timeline in timelines.items():
        keys = {key.name: key for key in (*catalogue.get(one).keys, *catalogue.get(one).courses)}
        for column, values in timeline.values.items():
            if column not in keys or column != (wanted or column) or all(value is None for value in values):
                continue
            title, unit = words.name(ScoreRow(catalogue.get(one), keys[column], None)), keys[column].unit
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
                highlights=highlights if in_time else [],
                data_length=length if in_time else None,
            )
    return TimelinePlot(pictures)


@dataclass(frozen=True)
class TranscribedTurn:
    """The words of one speaker, with the time of each; `speaker` is empty if unknown."""

    speaker: str
    start: float
    end: float
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The words as text."""
        return " ".join(word.text.strip() for word in self.words)


def read_turns(scores: RecordingResults) -> tuple[TranscribedTurn, ...]:
    """Return the turns of a recording, whose words are in the cache; empty if no metric has transcribed it.

    Raises:
        CannotScore: the recording's rate is too low for recognising words.
        ModelMissing: the transcriber is not installed.
    """
    transcribed, scored = {"wer", "content_errors"} & set(scores.results), _OF_VOICES & set(scores.results)
    if scores.source is None or not (transcribed or (scored and scores.script)):
        return ()
    track, notes = scores.source.recording.speech_track(), getattr(scores.results.get("wer"), "notes", {})
    words = track.transcript(notes["language"] if notes.get("language") in ("en", "zh") else None).words
    script = scores.script if scores.script and len(scores.script.speakers) > 1 else None
    speakers: tuple[SpeakerTurn, ...] = ()
    if script or "sptd" in scores.results:
        # If `sptd` merged the voices until the expected number remained, they are merged here, too.
        notes = getattr(scores.results.get("sptd"), "notes", {})
        asked = int(notes["speakers_asked"]) if "voices_heard" in notes else 0
        with suppress(CannotScore, ModelMissing):
            speakers = find_speaker_turns(track, script, asked)[0]
    return join_turns(words, speakers)


def join_turns(words: Sequence[Word], speakers: Iterable[SpeakerTurn]) -> tuple[TranscribedTurn, ...]:
    """Group words into turns: a turn begins when a different speaker says most of a word, or after a pause of a second.

    A word during which no speaker was found belongs to the preceding speaker.
    """
    spoken = [Utterance(word.text, word.start, word.end) for word in words]
    said, _ = attribute_to_speakers(spoken, ((turn.speaker, turn.start, turn.end) for turn in speakers))
    speaker_at = {segment.start: segment.speaker for segment in said}
    turns: list[TranscribedTurn] = []
    for word in words:
        who = speaker_at.get(word.start, turns[-1].speaker if turns else "")
        if turns and turns[-1].speaker == who and (who or word.start - turns[-1].end < 1.0):
            last = turns.pop()
            turns.append(TranscribedTurn(who, last.start, max(last.end, word.end), (*last.words, word)))
        else:
            turns.append(TranscribedTurn(who, word.start, word.end, (word,)))
    return tuple(turns)
