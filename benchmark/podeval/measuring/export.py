"""Scores written to files, by the name's ending: a report, JSON, CSV or Parquet; or labels for Audacity and players."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from podeval.errors import BadInput, PodevalError
from podeval.measuring.recording_results import RecordingResults
from podeval.measuring.scores import Scores, ScoreTable
from podeval.measuring.transcripts import read_turns
from podeval.reports.page import write_page
from podeval.text.labels import format_audacity_labels, format_webvtt_cues
from podeval.text.table_files import make_csv_safe

ENDINGS = (".html", ".json", ".csv", ".parquet")


def check_ending(path: Path, endings: Sequence[str] = ENDINGS) -> None:
    """Refuse a name whose ending does not say what is to be written, or a folder that is not there.

    Raises:
        BadInput: says which endings there are.
    """
    if path.suffix.lower() not in endings:
        raise BadInput(f"{path} cannot be written: the name has to end in {', '.join(endings[:-1])} or {endings[-1]}")
    if not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {path.parent}; make it first")


def write_scores(scores: Scores | ScoreTable, path: Path, language: str = "en") -> Path:
    """Write scores in the form that the ending of a checked name says; an existing file is replaced.

    Args:
        scores: the scores to write.
        path: the path of the file.
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
    """Refuse a name whose ending is none of labels.

    Raises:
        BadInput: says which endings there are.
    """
    if path.suffix.lower() not in (".txt", ".vtt"):
        raise BadInput(f"{path} cannot be written: labels are .txt (Audacity) or .vtt (WebVTT)")


def write_labels(labels: Sequence[tuple[float, float, str]], path: Path) -> Path:
    """Write labels, each a start, an end and a text, under a name that was checked; an existing file is replaced.

    Raises:
        BadInput: the file cannot be written.
    """
    render = format_webvtt_cues if path.suffix.lower() == ".vtt" else format_audacity_labels
    return write_page(render(labels), path)


def list_labels(scores: RecordingResults) -> list[tuple[float, float, str]]:
    """List the defects and, where somebody was heard speaking, the turns of a recording, in order of time."""
    labels = [(one.start, one.end, f"{one.kind}: {one.detail}") for one in scores.defects]
    # Labels of the defects are worth having where nobody is heard, or no model hears.
    with contextlib.suppress(PodevalError):
        labels += [(turn.start, turn.end, f"{turn.speaker}: {turn.text}") for turn in read_turns(scores)]
    return sorted(labels)
