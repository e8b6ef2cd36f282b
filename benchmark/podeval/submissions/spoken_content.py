"""The content of runs that a takedown deletes, and what else holds it: texts, recordings, tables, judges' records."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy import text as sql
from sqlalchemy.orm import Session

from podeval.audio.decode import hash_file
from podeval.errors import PodevalError
from podeval.files import read_lines
from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database
from podeval.store.tables import ArenaOutput, ListeningAnswer, ListeningTest, Vote, list_audio
from podeval.submissions.content_marks import compute_marks_of_run, compute_sound_mark, list_outputs

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
        for output in list_outputs(run):
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
