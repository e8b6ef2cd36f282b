"""Digests of sound and of words, by which taken-down content is recognised after it was deleted.

A recording's digest is of its decoded samples, so that another name, system, folder, repo or lossless container is the
same content; one different sample makes another digest. The digest of a script or an answer is of its words, whatever
their case and punctuation; texts shorter than `LEAST_WORDS`, which anybody may say, have none, and neither has silence.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.benchmarks.benchmark import Item
from podeval.runs.run_folder import Output, RunFolder
from podeval.store.database import Database
from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction, OperatorSetting, keep_setting
from podeval.submissions.rules import Refusal, SubmissionRefused
from podeval.texts import write_sentence

LEAST_WORDS = 40
"""Fewest words of a text that gets a digest; in a language without spaces, characters count as words."""

_SETTING = "taken down content."
_FRAMES = 2**18


def compute_marks(run: RunFolder, output: Output) -> set[str]:
    """Compute the digests of a system's output for one item."""
    files = [output.audio, *(answer.audio for answer in output.answers)]
    paths = [run.outputs / Path(name).name for name in files if name]
    marks = {compute_sound_mark(path) for path in paths if path.is_file()}
    if run.plan().track == "write":
        # Elsewhere the script is the benchmark's, not the system's.
        marks.add(_text_mark(" ".join(turn.get("text", "") for turn in output.script)))
    marks |= {_text_mark(answer.words) for answer in output.answers}
    return marks - {""}


def compute_marks_of_run(run: RunFolder) -> set[str]:
    """Compute the digests of all outputs of a run."""
    return {mark for output in list_outputs(run) for mark in compute_marks(run, output)}


def list_outputs(run: RunFolder) -> Iterator[Output]:
    """List the readable outputs of a run, also those whose audio is missing."""
    for path in sorted(run.outputs.glob("*.json")):
        try:
            yield Output.model_validate_json(path.read_bytes())
        except ValueError:
            continue


def keep_marks(session: Session, submission: str, marks: Iterable[str], by: str, now: datetime) -> None:
    """Store the digests of content taken down with a submission, beside those that are stored already."""
    name = _SETTING + submission
    row = session.get(OperatorSetting, name)
    kept = set(row.value) if row is not None else set()
    keep_setting(session, name, sorted(kept.union(marks)), by, now)


def read_taken_down_marks(database: Database) -> dict[str, str]:
    """Return for each digest the submission with which it was taken down."""
    query = select(OperatorSetting).where(OperatorSetting.name.startswith(_SETTING, autoescape=True))
    with database.reading() as session:
        rows = list(session.scalars(query))
        return {mark: row.name.removeprefix(_SETTING) for row in rows for mark in row.value}


def refuse_taken_down(database: Database, run: RunFolder, items: Iterable[Item]) -> Iterator[Item]:
    """Yield items as their outputs come; refuse the run if an output was taken down before.

    Args:
        database: database of the submissions.
        run: folder of the run with the outputs.
        items: items whose outputs are there.

    Raises:
        SubmissionRefused: by the rule `taken_down`; the outputs are not measured.
    """
    marks = read_taken_down_marks(database)
    for item in items:
        output = run.output(item.id) if marks else None
        mark = next((mark for mark in compute_marks(run, output) if mark in marks), None) if output else None
        if mark is not None:
            why = _reason(database, marks[mark])
            sentence = write_sentence("content-taken-down", item=item.id, why=why)
            raise SubmissionRefused(Refusal("taken_down", sentence))
        yield item


def _reason(database: Database, submission: str) -> str:
    query = select(OperatorAction.reason).where(
        OperatorAction.action == TAKEN_DOWN, OperatorAction.subject == submission
    )
    with database.reading() as session:
        return session.scalars(query.order_by(OperatorAction.number.desc()).limit(1)).first() or "no reason is kept"


def compute_sound_mark(path: Path) -> str:
    """Compute the digest of decoded samples, rate and channels; empty for silence and for unreadable files."""
    import soundfile

    digest, sounding = hashlib.sha256(b"sound"), False
    try:
        with soundfile.SoundFile(path) as file:
            digest.update(f"{file.samplerate} {file.channels} {file.frames}".encode())
            for block in file.blocks(_FRAMES, dtype="float32", always_2d=True):
                sounding = sounding or bool(np.any(block))
                digest.update(block.tobytes())
    except (OSError, soundfile.SoundFileError):
        return ""
    return digest.hexdigest() if sounding else ""


def _text_mark(text: str) -> str:
    """Compute the digest of a text's words; empty for a short text."""
    letters = "".join(letter if letter.isalnum() else " " for letter in unicodedata.normalize("NFKC", text).casefold())
    words = letters.split()
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in letters)
    if max(len(words), wide) < LEAST_WORDS:
        return ""
    return hashlib.sha256(f"text {''.join(words)}".encode()).hexdigest()
