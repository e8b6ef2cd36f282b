"""The content that a takedown deletes: the digests by which it is recognised afterwards, and what else quotes it.

A recording's digest is of its decoded samples, so that another name, system, folder, repo or lossless container is the
same content; one different sample makes another digest. The digest of a script or an answer is of its words, whatever
their case and punctuation; texts shorter than `LEAST_WORDS`, which anybody may say, have none, and neither has silence.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy import text as sql
from sqlalchemy.orm import Session

from podeval.audio.decode import hash_file
from podeval.benchmarks.benchmark import Item
from podeval.errors import PodevalError
from podeval.files import read_lines
from podeval.runs.run_folder import Output, RunFolder
from podeval.store.database import Database
from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction, OperatorSetting, keep_setting
from podeval.store.tables import ArenaOutput, ListeningAnswer, ListeningTest, Vote, list_audio
from podeval.submissions.rules import Refusal, SubmissionRefused
from podeval.texts import write_sentence

LEAST_WORDS = 40
"""Fewest words of a text that gets a digest; in a language without spaces, characters count as words."""

_SETTING = "taken down content."
_FRAMES = 2**18

LEAST_QUOTED = 24
"""Fewest letters of a whole passage that count as a quote, whatever their case, spaces and punctuation."""

EMPTIED = "[taken down]"
"""Text that replaces a deleted text in a listening test."""

SILENT = "/taken-down"
"""Path that replaces that of a deleted recording in a listening test."""

_SHOWN = ("text", "prompt", "criteria", "instructions", "aspect", "consent")
"""Fields of a design with visible text; ids, which answers refer to, stay."""

_RECORD = re.compile(r"\b([0-9a-f]{16})-\d+-\d+\b")


@dataclass
class SpokenContent:
    """The content of runs: recordings, texts, and the digests by which both are recognised.

    Attributes:
        marks: digests by which it is recognised.
        contents: SHA-256 of the recordings' files, by which cached facts are found.
        passages: letters of the passages that judges, readers and listeners may have been shown.
        records: keys of exchanges with judges, as far as results name them.
    """

    marks: set[str] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)
    passages: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    def add(self, run: RunFolder) -> None:
        """Add the content of a run."""
        self.marks |= compute_marks_of_run(run)
        for path in run.outputs.glob("*"):
            if path.suffix != ".json" and path.is_file() and path.stat().st_size:
                self.contents.add(hash_file(path))
        texts = []
        for output in run.readable_outputs():
            texts += [answer.words for answer in output.answers]
            if run.plan().track == "write":
                # Elsewhere the script is the benchmark's, not the system's.
                texts += [turn.get("text", "") for turn in output.script]
        for path in run.path.glob("*/results.jsonl"):
            for line in read_lines(path):
                notes = line["result"].get("notes", {})
                self.records.update(_RECORD.findall(json.dumps(notes)))
                texts.append(str(notes.get("transcript") or ""))
        self.passages |= {letters for letters in map(_letters, texts) if len(letters) >= LEAST_QUOTED}

    def is_quoted_in(self, text: str) -> bool:
        """Tell whether a text quotes a whole passage."""
        letters = _letters(text)
        return any(passage in letters for passage in self.passages)

    def is_shown_in(self, line: Mapping[str, Any]) -> bool:
        """Tell whether a line of judges' records is about the content."""
        texts = list_texts([line.get("messages", ()), line.get("answer", ())])
        return line["key"][:16] in self.records or self.is_quoted_in("\n".join(texts))

    def is_heard_in(self, path: Path) -> bool:
        """Tell whether a file is one of the recordings, or has its samples."""
        try:
            return hash_file(path) in self.contents or compute_sound_mark(path) in self.marks
        except (PodevalError, OSError):
            return False


def find_played(database: Database, content: SpokenContent, board: Path) -> set[Path]:
    """Find the recordings of the content that the arena and listening tests play, wherever they lie."""
    with database.reading() as session:
        audio = select(ArenaOutput.audio).where(ArenaOutput.audio != "", ArenaOutput.sha256.in_(content.contents))
        paths = {*session.scalars(audio), *list_audio(list(session.scalars(select(ListeningTest.design))))}
    return {path for path in (board / name for name in paths) if content.is_heard_in(path)}


def empty_quotes(database: Database, content: SpokenContent, board: Path, played: set[Path]) -> None:
    """Empty texts of listening tests, votes and answers that quote the content, and paths of its recordings.

    Answers and figures stay, and with them the digest of the design under which they were given.
    """

    def change(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: change(part, key) for key, part in value.items()}
        if isinstance(value, list):
            return [change(part, name) for part in value]
        if name == "audio" and isinstance(value, str):
            return SILENT if board / value in played else value
        return EMPTIED if name in _SHOWN and isinstance(value, str) and content.is_quoted_in(value) else value

    def work(session: Session) -> None:
        if database.is_sqlite:
            session.execute(sql("PRAGMA secure_delete = ON"))
        for test in session.scalars(select(ListeningTest)):
            test.design = change(test.design)
        for vote in session.scalars(select(Vote).where(Vote.comment != "")):
            vote.comment = "" if content.is_quoted_in(vote.comment) else vote.comment
        for answer in session.scalars(select(ListeningAnswer).where(ListeningAnswer.reason != "")):
            answer.reason = "" if content.is_quoted_in(answer.reason) else answer.reason

    database.write(work)
    if database.is_sqlite:
        # What was overwritten lies in the log until it is written into the file; who reads just now keeps it there.
        with database.engine.connect() as connection:
            connection.exec_driver_sql("ROLLBACK")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.exec_driver_sql("BEGIN")


def list_texts(value: Any) -> Iterator[str]:
    """List every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from list_texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from list_texts(part)


def _letters(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKC", text).casefold() if letter.isalnum())


def compute_marks(run: RunFolder, output: Output) -> set[str]:
    """Compute the digests of a system's output for one item."""
    marks = {compute_sound_mark(path) for path in run.audio_paths(output) if path.is_file()}
    if run.plan().track == "write":
        # Elsewhere the script is the benchmark's, not the system's.
        marks.add(_text_mark(" ".join(turn.get("text", "") for turn in output.script)))
    marks |= {_text_mark(answer.words) for answer in output.answers}
    return marks - {""}


def compute_marks_of_run(run: RunFolder) -> set[str]:
    """Compute the digests of all outputs of a run."""
    return {mark for output in run.readable_outputs() for mark in compute_marks(run, output)}


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
        for mark in compute_marks(run, output) & marks.keys() if output else ():
            sentence = write_sentence("content-taken-down", item=item.id, why=_reason(database, marks[mark]))
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
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in letters)
    long = max(len(letters.split()), wide) >= LEAST_WORDS
    return hashlib.sha256(f"text {_letters(text)}".encode()).hexdigest() if long else ""
