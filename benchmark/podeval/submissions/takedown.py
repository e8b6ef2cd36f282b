"""Taking a submission down: off the board like a withdrawal, and what it said is deleted, its words too.

On the board, aside, in the arena, in this machine's cache and in judges' records at once; on the disk and in the cache
of every worker as soon as that worker looks (`leftovers`); in the Hub's mirror with the next one (`mirror`). Figures,
history and votes stay, as does the decision with its reason. What was said is known again by its content
(`content_marks`), and not taken in again. What is beyond reach: the bucket of jobs, backups, readers' copies.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.analysis.cache import default_cache
from podeval.analysis.playback import Playback
from podeval.audio.decode import content_hash
from podeval.errors import PodevalError
from podeval.judges.records import FILE as JUDGE_RECORDS
from podeval.judges.records import Records
from podeval.metrics.judged import default_records
from podeval.store import spot_checks
from podeval.store.files import only_one, read_lines, write_json, write_whole
from podeval.store.moderation import TAKEN_DOWN, note
from podeval.store.run_folder import SUPERSEDED, RunFolder
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import Output
from podeval.submissions.admission import OPEN
from podeval.submissions.content_marks import keep_marks, marks_of_run, outputs_of
from podeval.submissions.document import Submission
from podeval.submissions.entries import everywhere
from podeval.submissions.queue import Queue
from podeval.submissions.service import OPERATOR, withdraw

REASON = "taken down"
"""What stands in the place of a reason that may quote what was said."""

_LOG = logging.getLogger("podeval.submissions")

_KEPT = ("run.json", "items.json", "submission.json", spot_checks.FILE)
_KEPT_OF_A_PROFILE = ("results.jsonl", "protocols.json", "summary.json")
_RECORD = re.compile(r"\b([0-9a-f]{16})-\d+-\d+\b")
_LEAST_QUOTED = 30
"""Characters of a text by which an exchange with a judge is known to be about it."""


@dataclass
class _Said:
    """What a submission's runs hold of what it said, looked up before it is deleted.

    Attributes:
        marks: digests by which it is known again.
        contents: SHA-256 of its recordings' files, which cached facts are found by.
        texts: passages that judges may have been shown.
        records: keys of exchanges with judges, as far as results name them.
    """

    marks: set[str] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    def add(self, run: RunFolder) -> None:
        """Look up what a run holds."""
        self.marks |= marks_of_run(run)
        for path in run.outputs.glob("*"):
            if path.suffix != ".json" and path.is_file() and path.stat().st_size:
                self.contents.add(content_hash(path))
        if run.plan().track == "write":
            self.texts |= {turn.get("text", "") for output in outputs_of(run) for turn in output.script}
        self.texts |= {answer.words for output in outputs_of(run) for answer in output.answers}
        for path in run.path.glob("*/results.jsonl"):
            for line in read_lines(path):
                notes = line["result"].get("notes", {})
                self.records.update(_RECORD.findall(json.dumps(notes)))
                self.texts.update(text for text in [notes.get("transcript")] if isinstance(text, str))
        self.texts = {text for text in self.texts if len(text) >= _LEAST_QUOTED}


def take_down(queue: Queue, id: str, by: str, board: Path, reason: str, now: datetime) -> int:
    """Take a submission down, in whatever state it is; how many runs lost what was said in them.

    Killed in between, the same call again ends it.

    Args:
        queue: where it is.
        id: of the submission.
        by: who decides; on the trail, not in the public history.
        board: folder of runs.
        reason: shown with it.
        now: the time.

    Raises:
        BadInput: there is none.
    """
    row, told = queue.get(id), f"{REASON}: {reason}"
    said = _Said()
    for run in _own_runs(row, board):
        said.add(run)

    def also(session: Session) -> None:
        note(session, TAKEN_DOWN, id, reason, by, now)
        keep_marks(session, id, said.marks, by, now)
        _silence_battles(session, _places(row, board))

    if row.state == "published":
        withdraw(queue, id, OPERATOR.name, board, reason=told, also=also)
    elif row.state in OPEN:
        queue.cancel(id, OPERATOR.name, reason=told, also=also)
    else:
        queue.database.write(also)
    delete_facts(said.contents)
    _delete_judged(said, board)
    return _delete_said(row, board, said.marks)


def delete_facts(contents: Iterable[str]) -> None:
    """Delete what this machine's cache holds about recordings, by the SHA-256 of their files: transcripts, copies."""
    wanted = list(contents)
    default_cache().delete_about(wanted)
    Playback.default().delete_copies(wanted)


def contents_and_marks(runs: Iterable[RunFolder]) -> tuple[set[str], set[str]]:
    """SHA-256 of the recordings' files of runs, and the digests by which what they say is known again."""
    said = _Said()
    for run in runs:
        said.add(run)
    return said.contents, said.marks


def _delete_said(row: SubmissionRow, board: Path, marks: set[str]) -> int:
    """Delete sound, scripts and words of a submission's runs, on the board and set aside; how many runs held some.

    An earlier run of the same system that is set aside loses them too, where any of it is the same.
    """
    deleted = 0
    with only_one(board, wait=True):
        for place in _places(row, board):
            shutil.rmtree(board / f".incoming-{'-'.join(place.relative_to(board).parts)}", ignore_errors=True)
        for run in _runs(row, board):
            own, aside = _is_of(run, row), run.path.is_relative_to(board / SUPERSEDED)
            if own or (aside and marks & marks_of_run(run)):
                deleted += run.outputs.exists()
                _leave_figures(run)
    return deleted


def _leave_figures(run: RunFolder) -> None:
    """Leave of a run its plan, its figures and by which protocols they came about."""
    for path in sorted(run.path.iterdir()):
        if path.is_dir() and (path / "results.jsonl").exists():
            for inside in path.iterdir():
                if inside.name not in _KEPT_OF_A_PROFILE:
                    _remove(inside)
            _leave_figures_of_a_profile(path)
        elif path.name not in _KEPT:
            _remove(path)
    checked = run.path / spot_checks.FILE
    if checked.exists():
        write_json(checked, json.loads(checked.read_text(encoding="utf-8")) | {"failed": {}})


def _leave_figures_of_a_profile(folder: Path) -> None:
    lines = [line | {"result": _figures(line["result"])} for line in read_lines(folder / "results.jsonl")]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_whole(folder / "results.jsonl", text.encode())
    summary = folder / "summary.json"
    if summary.exists():
        document = json.loads(summary.read_text(encoding="utf-8"))
        for metric in document["metrics"]:
            metric["reasons"] = {REASON: sum(metric["reasons"].values())} if metric["reasons"] else {}
        write_json(summary, document)


def _figures(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result without its notes, and without a reason that may quote what was said."""
    if "unscored" in result:
        return {"unscored": REASON, "cause": result["cause"]}
    return {name: value for name, value in result.items() if name != "notes"}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _delete_judged(said: _Said, board: Path) -> None:
    """Delete what judges were shown and answered, from the records of this machine and those that the board shows."""

    def unwanted(line: Mapping[str, Any]) -> bool:
        if line["key"][:16] in said.records:
            return True
        shown = "\n".join(_texts(line.get("messages", ())))
        return any(text in shown for text in said.texts)

    if not said.records and not said.texts:
        return
    published = [board / "judges", *map(Path, filter(None, os.environ.get("PODEVAL_JUDGES", "").split(os.pathsep)))]
    files = {path for place in published for path in (place / JUDGE_RECORDS, *place.glob(f"*/{JUDGE_RECORDS}"))}
    for folder in (default_records(), *(path.parent for path in sorted(files))):
        try:
            Records(folder).remove(unwanted)
        except PodevalError as error:
            _LOG.warning("what judges were shown of a submission that is taken down is still there: %s", error)


def _texts(value: Any) -> Iterator[str]:
    """Every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _own_runs(row: SubmissionRow, board: Path) -> list[RunFolder]:
    return [run for run in _runs(row, board) if _is_of(run, row)]


def _is_of(run: RunFolder, row: SubmissionRow) -> bool:
    return run.plan().generation.get("submission") == row.id


def _runs(row: SubmissionRow, board: Path) -> Iterable[RunFolder]:
    """The runs of a submission's system where it entered, on the board and set aside."""
    for place in _places(row, board):
        aside = board / SUPERSEDED / place.relative_to(board)
        for path in (place, *sorted(aside.glob("*"))):
            if (path / "run.json").is_file():
                yield RunFolder(path.parents[2], *path.parts[-3:])


def _places(row: SubmissionRow, board: Path) -> list[Path]:
    """Where the runs of a submission are, or were, on the board."""
    document = Submission.model_validate(row.document)
    found = everywhere(document)
    return [RunFolder(board, entry.benchmark, entry.split, document.system.id).path for entry in found]


def _silence_battles(session: Session, places: list[Path]) -> None:
    """No battle plays what was made of these runs any more; votes on it stay."""
    folders = {str(place.resolve()) + "/" for place in places}
    for output in session.scalars(select(Output).where(Output.audio != "")):
        if any(str(Path(output.audio).resolve()).startswith(folder) for folder in folders):
            output.active, output.audio = False, ""
