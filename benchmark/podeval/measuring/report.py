"""Recordings as reports: values, what was not scored, defects, transcript, values over time, protocols, sources."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from podeval.errors import PodevalError
from podeval.measuring.plots import plot_results
from podeval.measuring.score_tables import (
    describe_facts,
    render_for_notebook,
    sum_up,
    tabulate_all,
    tabulate_means,
    write_heading,
    write_notes,
)
from podeval.measuring.transcripts import read_turns
from podeval.measuring.verdict import ReportWords
from podeval.metrics.score import format_clock
from podeval.metrics.translation import translate
from podeval.plots.lines import draw_waveform
from podeval.reports.page import (
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
    Text,
    Transcription,
    describe_protocol,
    make_heads,
    read_report_texts,
    render_document,
    write_page,
)
from podeval.text.table_files import make_csv_safe
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.measuring.proof import BookProof, ProofedSentence
    from podeval.measuring.recording_results import RecordingResults, ResultsTable
    from podeval.recording import Recording

PLAYED_RATES = (48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000)
"""Rates of MP3, Hz: the sound is brought down to the next of them."""
QUALITY = 0.6
"""Quality of the sound, from 0 (best, largest) to 1: about 60 kbit/s for speech in one channel."""
MOST_SECONDS = 2 * 3600.0
"""Longer recordings are not put into a file, which a browser could not open."""
_PEAKS = 900


def write_report(scores: RecordingResults, path: Path, language: str = "en") -> Path:
    """Write the report of one recording; an existing file is replaced.

    Raises:
        BadInput: it cannot be written, or there is no such language.
    """
    return write_page(render_document([_describe(scores, 0, ReportWords(language))], language), path)


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


def _describe(scores: RecordingResults, number: int, words: ReportWords) -> Report:
    """Describe one recording with the parts that it has."""
    title, about = scores.name, f"{describe_facts(scores, words)}. {words.made}"
    seconds = scores.facts.seconds
    head = [*sum_up(scores, words), *_play(scores, words)]
    return Report(f"recording-{number}", title, about, list_sections(scores, words), head, seconds=seconds)


def list_sections(scores: RecordingResults, words: ReportWords) -> list[Section]:
    """Everything but the verdict and the defects, by section: the values first, how they came about last."""
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
    """Make a player of the recording, or say that there is none to play, or one that cannot be played."""
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
    pictures = plot_results(scores, words=words, css_class="drawn wide").pictures if scores.timelines else {}
    if pictures:
        yield Text(words["over_time_about"])
        yield Pictures([("", Markup(picture)) for picture in pictures.values()], "", "track plot")


def _list_sources(scores: RecordingResults, words: ReportWords) -> list[Entry]:
    """List where the values of people and systems are from."""
    sources = dict.fromkeys(row.band["material"] for row in scores.rows if row.band.get("n"))
    return [Entry(translate(source, words.language).replace("`", "")) for source in sources]


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

    from podeval.audio.samples import resample

    samples = recording.samples if recording.channels <= 2 else recording.samples.mean(axis=1, keepdims=True)
    rate = next((rate for rate in PLAYED_RATES if rate <= recording.rate), PLAYED_RATES[-1])
    file = io.BytesIO()
    sound = np.clip(resample(samples, recording.rate, rate), -1.0, 1.0)
    soundfile.write(file, sound, rate, format="MP3", bitrate_mode="VARIABLE", compression_level=QUALITY)
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode()


def write_proof(proof: BookProof, path: Path, language: str = "en") -> Path:
    """Write the proof of a book in the form that the ending of a checked name says; an existing file is replaced.

    Raises:
        BadInput: it cannot be written, or there is no such language.
    """
    if path.suffix.lower() == ".html":
        return write_page(render_document(describe_proof(proof, read_report_texts(language)["proof"]), language), path)
    if path.suffix.lower() == ".csv":
        return write_page(format_proof_csv(proof), path)
    return write_page(json.dumps(proof.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n", path)


def format_proof_csv(proof: BookProof) -> str:
    """Format the sentences of a book as a table that other programs open."""
    import pandas as pd

    rows = [sentence.to_json() for sentence in proof.sentences]
    rows = [row | {"faults": "; ".join(f"{one['kind']}: {one['detail']}" for one in row["faults"])} for row in rows]
    return str(make_csv_safe(pd.DataFrame(rows)).to_csv(index=False))


def describe_proof(proof: BookProof, texts: Mapping[str, Any]) -> list[Report]:
    """Describe the proof of a book: a summary, and for each recording the sentences to record again, to be played."""
    of_file = {file: [one for one in proof.sentences if one.recording == file] for file in proof.recordings}
    names = ("recording", "sections", "length", "sentences", "faulty")
    rows = [
        RowOfCells(
            (
                Path(file).name,
                _list_titles(of),
                format_clock(seconds),
                str(len(of)),
                str(sum(one.is_faulty for one in of)),
            )
        )
        for (file, of), seconds in zip(of_file.items(), proof.recordings.values(), strict=True)
    ]
    absent = [one for one in proof.faulty if not one.recording]
    unscored = [Entry(reason.reason, Path(file).name) for file, reason in proof.unscored.items()]
    sections = [
        Section(texts["recordings"], [Table(texts["recordings"], make_heads(texts, names, names[2:]), rows)]),
        Section(texts["not_placed"], [Listing(unscored)] if unscored else []),
        Section(texts["absent"], [Text(_list_titles(absent))] if absent else []),
    ]
    about = texts["about"].format(proof.spoken, len(proof.faulty), f"{proof.share:.1%}", __version__)
    reports = [Report("book", Path(proof.book).name, about, sections)]
    for number, (file, of) in enumerate(of_file.items()):
        again = [_describe_sentence(one, texts) for one in of if one.is_faulty]
        whole = [_describe_sentence(replace(one, sound=""), texts) for one in of]
        parts = [Listing(again)] if again else [Text(texts["nothing"])]
        sections = [Section(texts["again"], parts), Section(texts["all"], [Listing(whole)], folded=True)]
        reports.append(Report(f"recording-{number}", Path(file).name, _list_titles(of), sections))
    return reports


def _list_titles(sentences: Sequence[ProofedSentence]) -> str:
    return " · ".join(dict.fromkeys(one.section for one in sentences if one.section))


def _describe_sentence(one: ProofedSentence, texts: Mapping[str, Any]) -> Entry:
    """Write a sentence with its time and verdict, and what is heard where that is something else."""
    clock = format_clock(one.start or 0.0)
    lead = f"{clock} {texts['verdicts'][one.verdict]} ({texts['confidence'][one.confidence]})"
    heard = f" — {texts['heard'].format(one.heard)}" if one.faults and one.heard else ""
    words = " · ".join(f"{fault['script'] or '–'} → {fault['heard'] or '–'}" for fault in one.faults)
    return Entry(f"{one.text or texts['end']}{heard}", lead, words if one.verdict == "misread" else "", sound=one.sound)
