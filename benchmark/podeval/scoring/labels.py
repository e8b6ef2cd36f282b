"""Defects and turns of a recording as labels: a text file for Audacity, or WebVTT for players."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.errors import BadInput, PodevalError
from podeval.scoring.transcripts import read_turns
from podeval.text.labels import format_audacity_labels, format_webvtt_cues

if TYPE_CHECKING:
    from podeval.scoring.recording_results import RecordingResults

ENDINGS = (".txt", ".vtt")


def check_ending(path: Path) -> None:
    """Refuse a name whose ending is none of labels.

    Raises:
        BadInput: says which endings there are.
    """
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{path} cannot be written: labels are .txt (Audacity) or .vtt (WebVTT)")


def write_labels(scores: RecordingResults, path: Path) -> Path:
    """Write the defects and, where somebody was heard speaking, the turns; an existing file is replaced.

    Raises:
        BadInput: another ending, or the file cannot be written.
    """
    check_ending(path)
    labels = list_labels(scores)
    text = format_webvtt_cues(labels) if path.suffix.lower() == ".vtt" else format_audacity_labels(labels)
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error})") from None
    return path


def list_labels(scores: RecordingResults) -> list[tuple[float, float, str]]:
    """The defects and the turns of a recording, in order of time."""
    labels = [(one.start, one.end, f"{one.kind}: {one.detail}") for one in scores.defects]
    # Labels of the defects are worth having where nobody is heard, or no model hears.
    with contextlib.suppress(PodevalError):
        labels += [(turn.start, turn.end, f"{turn.speaker}: {turn.text}") for turn in read_turns(scores)]
    return sorted(labels)
