"""Defects and turns of a recording as labels: a text file for Audacity, or WebVTT for players.

Audacity's labels are lines of start, end and text with tabs between them; WebVTT is the W3C's format of cues.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.errors import BadInput, PodevalError
from podeval.scoring.transcripts import read_turns

if TYPE_CHECKING:
    from podeval.scoring.results import RecordingResults

ENDINGS = (".txt", ".vtt")


@dataclass(frozen=True)
class TimeLabel:
    """A stretch of a recording, seconds, with what it is."""

    start: float
    end: float
    text: str


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
    text = format_webvtt(labels) if path.suffix.lower() == ".vtt" else format_audacity(labels)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error})") from None
    return path


def list_labels(scores: RecordingResults) -> list[TimeLabel]:
    """The defects and the turns of a recording, in order of time."""
    labels = [TimeLabel(one.start, one.end, f"{one.kind}: {one.detail}") for one in scores.defects]
    # Labels of the defects are worth having where nobody is heard, or no model hears.
    with contextlib.suppress(PodevalError):
        labels += [TimeLabel(turn.start, turn.end, f"{turn.speaker}: {turn.text}") for turn in read_turns(scores)]
    return sorted(labels, key=lambda label: (label.start, label.end))


def format_audacity(labels: Iterable[TimeLabel]) -> str:
    """Labels as Audacity imports them."""
    return "".join(f"{one.start:.6f}\t{one.end:.6f}\t{_in_one_line(one.text)}\n" for one in labels)


def format_webvtt(labels: Iterable[TimeLabel]) -> str:
    """Labels as cues; what would be read as markup is written out."""
    cues = []
    for label in labels:
        text = _in_one_line(label.text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        end = max(label.end, label.start + 0.001)
        cues.append(f"{_stamp(label.start)} --> {_stamp(end)}\n{text}\n")
    return "\n".join(["WEBVTT\n", *cues])


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _stamp(seconds: float) -> str:
    minutes, rest = divmod(round(seconds, 3), 60)
    return f"{int(minutes // 60):02d}:{int(minutes % 60):02d}:{rest:06.3f}"
