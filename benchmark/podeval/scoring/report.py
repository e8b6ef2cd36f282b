"""A report on recordings: one self-contained HTML file that plays, reads and prints.

Its sound, style and script are inside; nothing is fetched, and names and words of strangers are text and never markup.
The sound is MP3 of one or two channels, made of the recording as it is; in a long report of many recordings each has
its own.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput, PodevalError
from podeval.metrics.reach import say
from podeval.scoring.plots import plot_results
from podeval.scoring.report_words import ReportWords
from podeval.scoring.score_tables import format_clock
from podeval.scoring.standing import format_number, format_reach, format_span
from podeval.scoring.transcripts import read_turns
from podeval.version import __version__

if TYPE_CHECKING:
    from markupsafe import Markup

    from podeval.analysis import Recording
    from podeval.scoring.defects import Defect
    from podeval.scoring.recording_results import RecordingResults, ResultsTable, ScoreRow

TEMPLATES = Path(__file__).parent / "templates"

PLAYED_RATES = (48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000)
"""Rates of MP3, Hz: the sound is brought down to the next of them."""

QUALITY = 0.6
"""Of the sound, from 0 (best, largest) to 1: about 60 kbit/s for speech in one channel."""

MOST_SECONDS = 2 * 3600.0
"""Longer recordings are not put into the file, which a browser could not open."""

PEAKS = 900
"""Heights of the waveform."""


def write_report(scores: RecordingResults, path: Path, language: str = "en") -> Path:
    """Write the report of one recording; an existing file is replaced.

    Raises:
        BadInput: it cannot be written, or there is no such language.
    """
    return _write(render_report([scores], language=language), path)


def write_reports(table: ResultsTable, path: Path, language: str = "en") -> Path:
    """Write the report of many recordings, the means first.

    Raises:
        BadInput: it cannot be written, or there is no such language.
    """
    return _write(render_report(table.scores, table, language), path)


def render_report(
    all_scores: Sequence[RecordingResults], table: ResultsTable | None = None, language: str = "en"
) -> str:
    """The report as HTML.

    Args:
        all_scores: of each recording.
        table: of all of them; None for one recording.
        language: `en` or `zh`.

    Raises:
        BadInput: there is no such language.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    words = ReportWords(language)
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html").render(
        t=words.texts,
        breakable=_make_breakable,
        language=language,
        title=all_scores[0].name if len(all_scores) == 1 else words["count"].format(len(all_scores)),
        recordings=[_describe(scores, number, words) for number, scores in enumerate(all_scores)],
        summary=_describe_table(table, words) if table else None,
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        # By its hash: the page's policy runs this script alone, whatever else gets in.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        script=Markup(script),
        style=Markup(style),
    )


def _write(page: str, path: Path) -> Path:
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error})") from None
    return path


def _describe(scores: RecordingResults, number: int, words: ReportWords) -> dict[str, Any]:
    """One recording as the template takes it: words, numbers and pictures of our own."""
    from markupsafe import Markup

    recording = _open(scores)
    plots = plot_results(scores, texts=words.plots).pictures if scores.timelines else {}
    return {
        "id": f"recording-{number}",
        "heading": words.heading(scores),
        "seconds": scores.facts.seconds,
        "rows": [_row(row, scores.profile, words) for row in scores.shown_rows],
        "notes": [(name, words.reason(note)) for name, notes in scores.notes.items() for note in notes],
        "unscored": [(name, words.reason(one["unscored"])) for name, one in scores.unscored.items()],
        "advice": [(words["advice"].get(what, what), ", ".join(names)) for what, names in scores.advice.items()],
        "defects": [_defect(defect, words) for defect in scores.defects],
        "sound": encode_sound(recording) if recording else "",
        "waveform": Markup(_draw_waveform(recording, scores, str(words["waveform"]))) if recording else "",
        "turns": _turns(scores),
        "plots": [Markup(picture) for picture in plots.values()],
        "protocols": [
            (name, protocol["id"], json.dumps(protocol, ensure_ascii=False, indent=1, default=str))
            for name, protocol in scores.protocols.items()
        ],
        "sources": [say(source, words.language).replace("`", "") for source in _sources(scores)],
    }


def _make_breakable(name: str) -> Markup:
    """A name that may go on in the next line behind a dot or an underscore, and nowhere else."""
    from markupsafe import Markup, escape

    return Markup(str(escape(name)).replace(".", ".<wbr>").replace("_", "_<wbr>"))


def _row(row: ScoreRow, profile: str, words: ReportWords) -> dict[str, str]:
    people, systems = format_reach(row.key, profile)
    word = row.word(profile)
    return {
        "name": row.short_name,
        "title": words.name(row),
        "about": (row.key.about_in(words.language) or row.metric.purpose_in(words.language)).replace("`", ""),
        "value": format_number(row.value),
        "unit": words.unit(row),
        "people": people or _ideal(row, words),
        "systems": systems,
        "word": str(words["stands"][word]) if word else "",
        "tone": row.tone(profile),
    }


def _ideal(row: ScoreRow, words: ReportWords) -> str:
    """What is best, where a key is best in a range."""
    if row.key.ideal is None:
        return ""
    low, high = row.key.ideal
    best = words["best"]
    if low == float("-inf"):
        return str(best["up_to"]).format(format_number(high))
    return str(best["between"]).format(format_span((low, high)))


def _defect(defect: Defect, words: ReportWords) -> dict[str, Any]:
    kind, detail = words.defect(defect)
    return {
        "kind": kind,
        "start": defect.start,
        "at": format_clock(defect.start),
        "end": format_clock(defect.end),
        "detail": detail,
    }


def _sources(scores: RecordingResults) -> list[str]:
    """Where the values of people and systems are from."""
    reaches = [
        row.key.reach for row in scores.rows if row.key.reach and format_reach(row.key, scores.profile) != ("", "")
    ]
    return list(dict.fromkeys(reach.source for reach in reaches))


def _describe_table(table: ResultsTable, words: ReportWords) -> dict[str, Any]:
    shown, intervals = table.headlines, table.intervals
    failures = [
        words["not_scored_in"].format(count, len(table.scores), name, words.reason(reason))
        for (name, reason), count in table.failures.items()
    ]
    more = [words["more_values"].format(table.hidden_values)] if table.hidden_values else []
    means = [intervals.get(row.name) for row in shown]
    return {
        "columns": [(words.name(row) or row.short_name, words.unit(row)) for row in shown],
        "rows": [
            (f"recording-{number}", name, [format_number(scores.values.get(row.name)) for row in shown])
            for number, (scores, name) in enumerate(zip(table.scores, table.short_names, strict=True))
        ],
        "errors": list(table.errors.items()),
        "means": [format_number(mean.mean if mean else None) for mean in means],
        "intervals": [
            f"{format_number(mean.low)} – {format_number(mean.high)}" if mean and mean.low is not None else ""
            for mean in means
        ],
        "notes": [*failures, *more],
    }


def _turns(scores: RecordingResults) -> list[dict[str, Any]]:
    """The transcript, for which nothing is heard anew; empty where no metric listened to the words."""
    try:
        turns = read_turns(scores)
    except PodevalError:
        return []
    speakers = list(dict.fromkeys(turn.speaker for turn in turns))
    return [
        {
            "speaker": turn.speaker,
            "number": speakers.index(turn.speaker) % 6,
            "start": round(turn.start, 2),
            "at": format_clock(turn.start),
            "words": [(round(word.start, 2), word.text.strip()) for word in turn.words],
        }
        for turn in turns
    ]


def _open(scores: RecordingResults) -> Recording | None:
    """The recording to play; None where there is none, or none that can be played."""
    if scores.source is None or scores.facts.seconds > MOST_SECONDS:
        return None
    recording = scores.source.recording
    return None if recording.defect else recording


def encode_sound(recording: Recording) -> str:
    """The sound of a recording as an address that holds it, `data:audio/mpeg;base64,…`."""
    import numpy as np
    import soundfile

    from podeval.audio.resample import resample

    samples = recording.samples if recording.channels <= 2 else recording.samples.mean(axis=1, keepdims=True)
    rate = next((rate for rate in PLAYED_RATES if rate <= recording.rate), PLAYED_RATES[-1])
    file = io.BytesIO()
    sound = np.clip(resample(samples, recording.rate, rate), -1.0, 1.0)
    soundfile.write(file, sound, rate, format="MP3", bitrate_mode="VARIABLE", compression_level=QUALITY)
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode()


def _draw_waveform(recording: Recording, scores: RecordingResults, label: str) -> str:
    """The waveform as SVG, 900 wide and 100 high, with the defects."""
    from podeval.analysis.playback import measure_peaks

    heights = measure_peaks(recording.samples, PEAKS)
    highest = max(max(heights), 1e-6)
    scale = 48 / highest
    step = PEAKS / len(heights)
    up = " ".join(f"{number * step:.1f},{50 - height * scale:.1f}" for number, height in enumerate(heights))
    down = " ".join(
        f"{number * step:.1f},{50 + height * scale:.1f}" for number, height in reversed(list(enumerate(heights)))
    )
    length = max(scores.facts.seconds, 1e-3)
    marks = "".join(
        f'<rect class="defect" x="{one.start / length * PEAKS:.1f}" '
        f'width="{max(2.0, (one.end - one.start) / length * PEAKS):.1f}" y="0" height="100"/>'
        for one in scores.defects
    )
    return (
        f'<svg viewBox="0 0 {PEAKS} 100" preserveAspectRatio="none" role="img" aria-label="{label}">{marks}'
        f'<polygon class="wave" points="{up} {down}"/></svg>'
    )
