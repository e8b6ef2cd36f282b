"""The content that a takedown deletes, its deletion, and the digests by which the content is recognised afterwards.

A recording's digest covers its decoded samples, so a different name, system, folder, repo or lossless container does
not change the digest, but a single different sample does. The digest of a script or an answer covers its words,
ignoring case and punctuation; silence has no digest, and neither do texts with fewer than `LEAST_WORDS` words, which
anyone might say.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from podeval.audio.container import AUDIO_ENDINGS
from podeval.audio.decode import hash_file
from podeval.benchmarks.benchmark import Item
from podeval.errors import PodevalError
from podeval.files import delete_shard, lock_folder, read_lines, write_json
from podeval.judges import exchange_records
from podeval.metrics.judge_use import locate_default_records
from podeval.recording.cache import open_default_cache
from podeval.recording.playback import Playback
from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS
from podeval.runs.run_folder import REPLACED, SUPERSEDED, UPLOADS, Output, RunFolder, list_shards
from podeval.store.database import Database
from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction, OperatorSetting, keep_setting
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaOutput, ListeningAnswer, ListeningTest, Vote, list_audio
from podeval.submissions.benchmark_entries import list_run_folders
from podeval.submissions.rules import SubmissionRefused, write_refusal
from podeval.submissions.source_files import delete_upload, is_upload
from podeval.text.characters import keep_letters

LEAST_WORDS = 40
"""Minimum number of words for a text to have a digest; in a language without spaces, characters count as words."""

LEAST_QUOTED = 24
"""Minimum number of letters for a whole passage to count as a quote, ignoring case, spaces and punctuation."""

EMPTIED = "[taken down]"
"""Text that replaces a deleted text in a listening test."""

SILENT = "/taken-down"
"""Path that replaces the path of a deleted recording in a listening test."""

REASON = "taken down"
"""Text that replaces a reason that may quote the content."""

_SETTING = "taken down content."
_FRAMES = 2**18
_SHOWN = ("text", "prompt", "criteria", "instructions", "aspect", "consent")
"""Fields of a design with visible text; ids stay, because answers refer to them."""
_KEPT = ("run.json", "items.json", "submission.json", "*/protocols.json", "*/summary.json")
"""Files of a run that are kept: its plan, and the values and protocols of each profile."""
_RECORD = re.compile(r"\b([0-9a-f]{16})-\d+-\d+\b")
_LOG = logging.getLogger("podeval.submissions")


@dataclass
class SpokenContent:
    """The content of runs: recordings, texts, and the digests that identify both.

    Attributes:
        marks: digests that identify the content.
        contents: SHA-256 hashes of the recordings' files, for finding cached facts.
        passages: the letters of each passage that judges, readers or listeners may have seen.
        records: keys of the judge exchanges to which results refer.
    """

    marks: set[str] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)
    passages: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    def add(self, run: RunFolder) -> None:
        """Add the content of a run."""
        self.marks |= compute_marks_of_run(run)
        outputs = (path for path in run.outputs.glob("*") if path.suffix != ".json" and path.is_file())
        self.contents |= {hash_file(path) for path in outputs if path.stat().st_size}
        texts = [text for output in run.readable_outputs() for text in _list_passages(run, output)]
        for path in run.path.glob("*/results.jsonl"):
            for line in read_lines(path):
                notes = line["result"].get("notes", {})
                self.records.update(_RECORD.findall(json.dumps(notes)))
                texts.append(str(notes.get("transcript") or ""))
        self.passages |= {letters for letters in map(keep_letters, texts) if len(letters) >= LEAST_QUOTED}

    def is_quoted_in(self, text: str) -> bool:
        """Return whether a text quotes a whole passage."""
        letters = keep_letters(text)
        return any(passage in letters for passage in self.passages)

    def is_shown_in(self, line: Mapping[str, Any]) -> bool:
        """Return whether a line of judges' records concerns the content."""
        texts = _list_texts([line.get("messages", ()), line.get("answer", ())])
        return line["key"][:16] in self.records or self.is_quoted_in("\n".join(texts))

    def is_heard_in(self, path: Path) -> bool:
        """Return whether a file is one of the recordings or has the same samples."""
        try:
            return hash_file(path) in self.contents or compute_sound_mark(path) in self.marks
        except (PodevalError, OSError):
            return False


def _list_passages(run: RunFolder, output: Output) -> list[str]:
    """List the texts of an output that the system itself wrote."""
    texts = [answer.words for answer in output.answers]
    # In other tracks, the script belongs to the benchmark.
    return texts + [turn.get("text", "") for turn in output.script] if run.plan().track == "write" else texts


def _list_texts(value: Any) -> Iterator[str]:
    """Yield every text in nested plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _list_texts(part)


def compute_marks(run: RunFolder, output: Output) -> set[str]:
    """Compute the digests of a system's output for one item."""
    marks = {compute_sound_mark(path) for path in run.audio_paths(output) if path.is_file()}
    texts = [answer.words for answer in output.answers]
    if run.plan().track == "write":
        # In other tracks, the script belongs to the benchmark, not the system.
        texts.append(" ".join(turn.get("text", "") for turn in output.script))
    return (marks | set(map(_text_mark, texts))) - {""}


def compute_marks_of_run(run: RunFolder) -> set[str]:
    """Compute the digests of all outputs of a run."""
    return {mark for output in run.readable_outputs() for mark in compute_marks(run, output)}


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
    return hashlib.sha256(f"text {keep_letters(text)}".encode()).hexdigest() if long else ""


def keep_marks(session: Session, submission: str, marks: Iterable[str], by: str, now: datetime) -> None:
    """Store the digests of content that was taken down with a submission, in addition to those already stored."""
    row = session.get(OperatorSetting, _SETTING + submission)
    kept = set(row.value) if row is not None else set()
    keep_setting(session, _SETTING + submission, sorted(kept.union(marks)), by, now)


def read_taken_down_marks(database: Database) -> dict[str, str]:
    """Return the taken-down submission that each digest belongs to."""
    query = select(OperatorSetting).where(OperatorSetting.name.startswith(_SETTING, autoescape=True))
    return {mark: row.name.removeprefix(_SETTING) for row in database.list_rows(query) for mark in row.value}


def refuse_taken_down(database: Database, run: RunFolder, items: Iterable[Item]) -> Iterator[Item]:
    """Yield items as their outputs arrive; refuse the run if an output was taken down earlier.

    Raises:
        SubmissionRefused: the rule `taken_down` is broken; the outputs are not measured.
    """
    marks = read_taken_down_marks(database)
    for item in items:
        output = run.output(item.id) if marks else None
        for mark in compute_marks(run, output) & marks.keys() if output else ():
            why = _read_reason(database, marks[mark])
            raise SubmissionRefused(write_refusal("taken_down", "content-taken-down", item=item.id, why=why))
        yield item


def _read_reason(database: Database, submission: str) -> str:
    same = (OperatorAction.action == TAKEN_DOWN, OperatorAction.subject == submission)
    query = select(OperatorAction.reason).where(*same).order_by(OperatorAction.number.desc())
    return next(iter(database.list_rows(query.limit(1))), "") or "no reason was recorded"


def find_played(database: Database, content: SpokenContent, board: Path) -> set[Path]:
    """Find the recordings of the content that the arena and listening tests play, in any folder."""
    audio = select(ArenaOutput.audio).where(ArenaOutput.audio != "", ArenaOutput.sha256.in_(content.contents))
    paths = {*database.list_rows(audio), *list_audio(database.list_rows(select(ListeningTest.design)))}
    return {path for path in (board / name for name in paths) if content.is_heard_in(path)}


def empty_quotes(database: Database, content: SpokenContent, board: Path, played: set[Path]) -> None:
    """Clear the texts of listening tests, votes and answers that quote the content, and the paths of its recordings.

    Answers and figures stay, as does the digest of the design that was answered.
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
            session.execute(text("PRAGMA secure_delete = ON"))
        for test in session.scalars(select(ListeningTest)):
            test.design = change(test.design)
        for vote in session.scalars(select(Vote).where(Vote.comment != "")):
            vote.comment = "" if content.is_quoted_in(vote.comment) else vote.comment
        for answer in session.scalars(select(ListeningAnswer).where(ListeningAnswer.reason != "")):
            answer.reason = "" if content.is_quoted_in(answer.reason) else answer.reason

    database.write(work)
    if database.is_sqlite:
        # Overwritten data stays in the write-ahead log until the log is written into the file; active readers delay
        # this write.
        with database.engine.connect() as connection:
            for statement in ("ROLLBACK", "PRAGMA wal_checkpoint(TRUNCATE)", "BEGIN"):
                connection.exec_driver_sql(statement)


def list_boards(board: Path) -> list[Path]:
    """List the folder of runs, and the subfolders with runs that a restore replaced."""
    return [board, *sorted(board.glob(REPLACED + "*"))]


def list_runs(row: SubmissionRow, board: Path) -> Iterator[RunFolder]:
    """List the runs of a submission's system in its benchmarks, both on the board and off it."""
    for _, run in list_run_folders(row, board):
        for path in (run.path, *sorted((board / SUPERSEDED / run.path.relative_to(board)).glob("*"))):
            if (path / "run.json").is_file():
                yield RunFolder(path.parents[2], *path.parts[-3:])


def is_run_of(run: RunFolder, row: SubmissionRow) -> bool:
    """Return whether a run belongs to a submission."""
    return run.plan().generation.get("submission") == row.id


def delete_content(row: SubmissionRow, content: SpokenContent, board: Path) -> None:
    """Delete the content of a submission from the cache, judges' records, uploads, tables and runs."""
    # Delete recordings that are not outputs of runs, such as those of listening tests; outputs are deleted with their
    # runs.
    for root, folders, names in os.walk(board):
        folders[:] = [name for name in folders if name != "outputs"]
        for path in (Path(root) / name for name in names):
            if path.suffix[1:].lower() in AUDIO_ENDINGS and content.is_heard_in(path):
                content.contents.add(hash_file(path))
                path.unlink()
    delete_facts(content.contents)
    # Delete the upload, including copies next to runs that a restore replaced.
    if is_upload(row.place):
        for uploads in (row.place, *(str(folder / UPLOADS) for folder in list_boards(board))):
            delete_upload(uploads, str(row.document["source"].get("folder") or ""))
    for folder in list_boards(board):
        _delete_judged(content, folder)
        _delete_runs(row, folder, content.marks)
        if folder != board:
            delete_tables(folder)


def delete_facts(contents: Collection[str]) -> None:
    """Delete transcripts and copies of recordings from this machine's cache, by the SHA-256 of their files."""
    open_default_cache().delete_about(contents)
    Playback.default().delete_copies(contents)


def delete_tables(board: Path) -> None:
    """Delete the tables of a board; they are rebuilt from its runs."""
    for name in (BOARD, ITEMS, SYSTEMS):
        (board / name).unlink(missing_ok=True)


def _delete_runs(row: SubmissionRow, board: Path, marks: set[str]) -> None:
    """Delete the content of a submission's runs, both on the board and off it.

    If a superseded run of the same system contains any of this content, its content is deleted as well.
    """
    with lock_folder(board, wait=True):
        for _, run in list_run_folders(row, board):
            shutil.rmtree(board / f".incoming-{'-'.join(run.path.relative_to(board).parts)}", ignore_errors=True)
        for run in list_runs(row, board):
            aside = run.path.is_relative_to(board / SUPERSEDED)
            if is_run_of(run, row) or (aside and marks & compute_marks_of_run(run)):
                _leave_figures(run)


def _leave_figures(run: RunFolder) -> None:
    """Delete everything in a run except its plan, its values and their protocols."""
    for address in list_shards(run):
        try:
            delete_shard(address)
        except PodevalError as error:
            _LOG.warning("recordings of a submission that was taken down still exist: %s", error)
    shutil.rmtree(run.outputs, ignore_errors=True)
    kept = {path for pattern in _KEPT for path in run.path.glob(pattern)}
    for path in sorted(run.path.rglob("*")):
        if path not in kept and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)
    for path in run.path.glob("*/summary.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        for metric in document["metrics"]:
            # A reason may quote the content.
            metric["reasons"] = {REASON: sum(metric["reasons"].values())} if metric["reasons"] else {}
        write_json(path, document)


def _delete_judged(content: SpokenContent, board: Path) -> None:
    """Delete exchanges with judges about the content, from this machine's records and those on the board."""
    published = [board / "judges", *map(Path, filter(None, os.environ.get("PODEVAL_JUDGES", "").split(os.pathsep)))]
    name = exchange_records.FILE
    files = {path for folder in published for path in (folder / name, *folder.glob(f"*/{name}"))}
    for folder in (locate_default_records(), *(path.parent for path in sorted(files))):
        try:
            exchange_records.Records(folder).remove(content.is_shown_in)
        except PodevalError as error:
            _LOG.warning("judges' records of a submission that was taken down still exist: %s", error)
