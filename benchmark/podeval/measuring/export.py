"""Write scores and proofs to files, in the format of the file name's extension (a report, JSON, CSV or Parquet), or
labels for players.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput, PodevalError
from podeval.measuring.engine import Scores, ScoreTable
from podeval.measuring.recording_results import RecordingResults
from podeval.measuring.report import read_turns
from podeval.metrics.score import format_clock
from podeval.reports.page import (
    Listing,
    Report,
    Section,
    Text,
    read_report_texts,
    render_document,
    tabulate,
    write_page,
)
from podeval.text.subtitles import format_audacity_labels, format_webvtt_cues
from podeval.text.table_files import make_csv_safe
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.measuring.proof import BookProof, ProofedSentence

ENDINGS = (".html", ".json", ".csv", ".parquet")


def check_ending(path: Path, endings: Sequence[str] = ENDINGS) -> None:
    """Refuse a file name whose extension does not determine a format, or whose folder is missing.

    Raises:
        BadInput: the name is refused; the message lists the extensions.
    """
    if path.suffix.lower() not in endings:
        raise BadInput(f"{path} cannot be written: the name must end in {', '.join(endings[:-1])} or {endings[-1]}")
    if not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {path.parent}; create it first")


def write_scores(scores: Scores | ScoreTable, path: Path, language: str = "en") -> Path:
    """Write scores in the format of the file name's extension, already checked; an existing file is replaced.

    Args:
        scores: the scores to write.
        path: the path of the file to write.
        language: the language of a report, `en` or `zh`.

    Raises:
        BadInput: the file cannot be written.
    """
    ending = path.suffix.lower()
    try:
        if ending == ".html":
            scores.report(path, language)
        elif ending == ".json":
            content = json.dumps(scores.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
            path.write_text(content, encoding="utf-8", errors="backslashreplace")
        else:
            frame = scores.to_pandas()
            make_csv_safe(frame).to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path, index=False)
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error})") from None
    return path


def check_label_ending(path: Path) -> None:
    """Refuse a file name whose extension is not one for labels.

    Raises:
        BadInput: the name is refused; the message lists the extensions.
    """
    if path.suffix.lower() not in (".txt", ".vtt"):
        raise BadInput(f"{path} cannot be written: the name must end in .txt (Audacity) or .vtt (WebVTT)")


def write_labels(labels: Sequence[tuple[float, float, str]], path: Path) -> Path:
    """Write labels (start, end and text) to a file whose name has been checked; an existing file is replaced.

    Raises:
        BadInput: the file cannot be written.
    """
    render = format_webvtt_cues if path.suffix.lower() == ".vtt" else format_audacity_labels
    return write_page(render(labels), path)


def list_labels(scores: RecordingResults) -> list[tuple[float, float, str]]:
    """List the defects of a recording and, if the speakers are known, its turns, in chronological order."""
    labels = [(one.start, one.end, f"{one.kind}: {one.detail}") for one in scores.defects]
    # Labels of the defects are useful even if no speaker is found, or if no model can find speakers.
    with contextlib.suppress(PodevalError):
        labels += [(turn.start, turn.end, f"{turn.speaker}: {turn.text}") for turn in read_turns(scores)]
    return sorted(labels)


def write_proof(proof: BookProof, path: Path, language: str = "en") -> Path:
    """Write the proof of a book in the format of the file name's extension, already checked; an existing file is
    replaced.

    Raises:
        BadInput: the file cannot be written, or there is no such language.
    """
    if path.suffix.lower() == ".html":
        return write_page(render_document(describe_proof(proof, read_report_texts(language)["proof"]), language), path)
    if path.suffix.lower() == ".csv":
        return write_page(format_proof_csv(proof), path)
    return write_page(json.dumps(proof.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n", path)


def format_proof_csv(proof: BookProof) -> str:
    """Format the sentences of a book as a table for other programs."""
    import pandas as pd

    rows = [sentence.to_json() for sentence in proof.sentences]
    rows = [row | {"faults": "; ".join(f"{one['kind']}: {one['detail']}" for one in row["faults"])} for row in rows]
    return str(make_csv_safe(pd.DataFrame(rows)).to_csv(index=False))


def describe_proof(proof: BookProof, texts: Mapping[str, Any]) -> list[Report]:
    """Describe the proof of a book: a summary, and for each recording the playable sentences to record again."""
    of_file = {file: [one for one in proof.sentences if one.recording == file] for file in proof.recordings}
    rows = [
        (Path(file).name, _list_titles(of), format_clock(seconds), len(of), sum(one.is_faulty for one in of))
        for (file, of), seconds in zip(of_file.items(), proof.recordings.values(), strict=True)
    ]
    table = tabulate(texts["recordings"], texts, "recording sections #length #sentences #faulty", rows)
    absent = [one for one in proof.faulty if not one.recording]
    unscored = [Text(reason.reason, Path(file).name) for file, reason in proof.unscored.items()]
    sections = [
        Section(texts["recordings"], [table]),
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


def _describe_sentence(one: ProofedSentence, texts: Mapping[str, Any]) -> Text:
    """Format a sentence with its time and verdict, and the recognised words if they differ."""
    clock = format_clock(one.start or 0.0)
    lead = f"{clock} {texts['verdicts'][one.verdict]} ({texts['confidence'][one.confidence]})"
    instead = f" — {texts['heard'].format(one.heard)}" if one.faults and one.heard else ""
    words = " · ".join(f"{fault['script'] or '–'} → {fault['heard'] or '–'}" for fault in one.faults)
    return Text(
        f"{one.text or texts['end']}{instead}", lead, words if one.verdict == "misread" else "", sound=one.sound
    )
