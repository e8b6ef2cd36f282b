"""Takedown of a submission: it leaves the board as by a withdrawal, and its audio and its words are deleted.

They are deleted at once on the board, among runs set aside, in the arena, in the tables, in this machine's cache and in
judges' records; on the disk and in the cache of every worker, and where its jobs ran, at a worker's next check
(`worker`, `hub_generation`); in the Hub's record with the next push (`hub_record`); in a backup when it is restored,
by the decisions of the replaced database and of the file beside the backup. Figures, history and votes stay, as does
the decision with its reason. The content is recognised by its digests (`content_marks`) and not accepted again. Copies
that people made are beyond reach.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.audio.decode import hash_file
from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.errors import BadInput, PodevalError
from podeval.files import append_line, lock_folder, read_lines, write_json
from podeval.judges.exchange_records import FILE as JUDGE_RECORDS
from podeval.judges.exchange_records import Records
from podeval.metrics.judge_use import locate_default_records
from podeval.recording.cache import open_default_cache
from podeval.recording.playback import Playback
from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS
from podeval.runs.run_folder import BACKUPS, REPLACED, SUPERSEDED, UPLOADS, RunFolder
from podeval.store.database import Database
from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction, note
from podeval.store.submission_tables import HubJob, SubmissionRow
from podeval.store.tables import ArenaOutput
from podeval.submissions.benchmark_entries import list_run_folders
from podeval.submissions.content_marks import (
    SpokenContent,
    compute_marks_of_run,
    empty_quotes,
    find_played,
    keep_marks,
    read_taken_down_marks,
)
from podeval.submissions.job_budget import EMPTIED
from podeval.submissions.public_view import delete_log
from podeval.submissions.queue import Queue
from podeval.submissions.service import OPERATOR, withdraw
from podeval.submissions.source_files import delete_upload, is_upload
from podeval.submissions.states import OPEN

REASON = "taken down"
"""Text that replaces a reason that may quote the content."""

Tell = Callable[[str], None]

_LOG = logging.getLogger("podeval.submissions")

_KEPT = ("run.json", "items.json", "submission.json", "*/protocols.json", "*/summary.json")
"""What stays of a run: its plan, and the values and protocols of each profile."""


@dataclass(frozen=True)
class TakenDown:
    """One decision to take a submission down.

    Attributes:
        submission: its id.
        reason: shown with it.
        by: the person who decided.
        at: time of the decision.
        marks: digests by which its content is recognised.
    """

    submission: str
    reason: str
    by: str
    at: datetime
    marks: frozenset[str] = frozenset()


def take_down(
    queue: Queue, id: str, by: str, board: Path, reason: str, now: datetime, tell: Tell = _LOG.warning
) -> None:
    """Take a submission down, whatever its state.

    If the process is killed in between, the same call finishes the work.

    Args:
        queue: queue of the submission.
        id: id of the submission.
        by: the person who decides; on the trail, not in the public history.
        board: folder of runs.
        reason: shown with it.
        now: the time.
        tell: called with a sentence for each copy outside the board that is left to a person.

    Raises:
        BadInput: there is no such submission.
    """
    queue.get(id)
    marks = {mark for mark, other in read_taken_down_marks(queue.database).items() if other == id}
    for sentence in _list_out_of_reach(queue, id):
        tell(sentence)
    take_down_again(queue, TakenDown(id, reason, by, now, frozenset(marks)), board, tell)


def take_down_again(queue: Queue, decision: TakenDown, board: Path, tell: Tell = _LOG.warning) -> None:
    """Carry out a decision, which may have been made on the board that a restore replaces.

    Args:
        queue: queue of the submission, which may not know it.
        decision: the decision.
        board: folder of runs.
        tell: see `take_down`.
    """
    try:
        row = queue.get(decision.submission)
    except BadInput:
        # It was submitted after the backup was made; its content is known again all the same.
        queue.database.write(lambda session: _keep_takedown(session, decision))
        return
    content = SpokenContent(set(decision.marks))
    for folder in _boards(board):
        for run in _list_runs(row, folder):
            if _is_of(run, row):
                content.add(run)
    played = find_played(queue.database, content, board)
    decision = replace(decision, marks=frozenset(content.marks))
    _decide(queue, row, decision, content, board)
    _note_beside_backups(decision, board, tell)
    for path in sorted(played):
        if not path.resolve().is_relative_to(board.resolve()):
            tell(f"{path}, which the arena or a listening test played, is a copy that podeval did not make: delete it")
    empty_quotes(queue.database, content, board, played)
    _delete(row, content, board)


def list_takedowns(database: Database) -> list[TakenDown]:
    """List the decisions of a database with all digests of each submission's content."""
    marks: dict[str, set[str]] = {}
    for mark, submission in read_taken_down_marks(database).items():
        marks.setdefault(submission, set()).add(mark)
    query = select(OperatorAction).where(OperatorAction.action == TAKEN_DOWN).order_by(OperatorAction.number)
    with database.reading() as session:
        return [
            TakenDown(row.subject, row.reason, row.made_by, row.made_at, frozenset(marks.get(row.subject, ())))
            for row in session.scalars(query)
        ]


def _keep_takedown(session: Session, decision: TakenDown) -> None:
    """Store a decision with its digests; storing it again changes nothing."""
    same = (OperatorAction.action == TAKEN_DOWN, OperatorAction.subject == decision.submission)
    if session.scalar(select(OperatorAction.id).where(*same, OperatorAction.made_at == decision.at).limit(1)) is None:
        note(session, TAKEN_DOWN, decision.submission, decision.reason, decision.by, decision.at)
    keep_marks(session, decision.submission, decision.marks, decision.by, decision.at)


def _boards(board: Path) -> list[Path]:
    """Return the folder of runs, and the folders in it that a restore replaced."""
    return [board, *sorted(board.glob(REPLACED + "*"))]


def _decide(queue: Queue, row: SubmissionRow, decision: TakenDown, content: SpokenContent, board: Path) -> None:
    """Store the decision, end the submission, and retire its outputs in the arena."""
    reason = f"{REASON}: {decision.reason}"
    places = tuple(f"{run.path.resolve()}/" for _, run in list_run_folders(row, board))

    def also(session: Session) -> None:
        delete_log(session, row.id)
        _keep_takedown(session, decision)
        for output in session.scalars(select(ArenaOutput).where(ArenaOutput.audio != "")):
            # Also a copy that lies elsewhere; votes on it stay.
            if output.sha256 in content.contents or str(Path(output.audio).resolve()).startswith(places):
                output.active, output.audio = False, ""

    if row.state == "published":
        withdraw(queue, row.id, OPERATOR.name, board, reason=reason, also=also)
    elif row.state in OPEN:
        queue.cancel(row.id, OPERATOR.name, reason=reason, also=also)
    else:
        queue.database.write(also)


def _delete(row: SubmissionRow, content: SpokenContent, board: Path) -> None:
    """Delete the content from the cache, judges' records, tables and runs."""
    # Recordings that are no run's output, such as those of listening tests; outputs are deleted with their runs.
    for root, folders, names in os.walk(board):
        folders[:] = [name for name in folders if name != "outputs"]
        for path in (Path(root) / name for name in names):
            if path.suffix[1:].lower() in AUDIO_ENDINGS and content.is_heard_in(path):
                content.contents.add(hash_file(path))
                path.unlink()
    delete_facts(content.contents)
    if is_upload(row.place):
        for place in (row.place, *(str(folder / UPLOADS) for folder in _boards(board))):
            delete_upload(place, str(row.document["source"].get("folder") or ""))
    for folder in _boards(board):
        _delete_judged(content, folder)
        _delete_runs(row, folder, content.marks)
        if folder != board:
            _delete_tables(folder)


def _list_out_of_reach(queue: Queue, id: str) -> Iterator[str]:
    """Yield sentences on what a takedown does not change: replaced databases, and the Hub."""
    file = Path(str(queue.database.url.database))
    for path in sorted(file.parent.glob(f"{file.name}.before-*")) if queue.database.is_sqlite else ():
        if not path.name.endswith(("-wal", "-shm")):
            yield f"{path} is a database that was replaced, with what was written in it: delete it"
    with queue.database.reading() as session:
        left = select(HubJob.namespace).where(HubJob.submission == id, HubJob.stage != EMPTIED)
        namespaces = sorted(set(session.scalars(left)))
    for namespace in namespaces:
        yield (
            f"jobs of {namespace} left {id}/ on the Hub, in the bucket and in the dataset of what was asked: the next "
            "`podeval worker --executor hf-jobs` deletes both"
        )


def delete_facts(contents: Collection[str]) -> None:
    """Delete transcripts and copies of recordings from this machine's cache, by the SHA-256 of their files."""
    open_default_cache().delete_about(contents)
    Playback.default().delete_copies(contents)


def _delete_runs(row: SubmissionRow, board: Path, marks: set[str]) -> None:
    """Delete the content of a submission's runs, on the board and set aside.

    An earlier run of the same system that is set aside loses it too, where any of it is the same.
    """
    with lock_folder(board, wait=True):
        for _, run in list_run_folders(row, board):
            shutil.rmtree(board / f".incoming-{'-'.join(run.path.relative_to(board).parts)}", ignore_errors=True)
        for run in _list_runs(row, board):
            aside = run.path.is_relative_to(board / SUPERSEDED)
            if _is_of(run, row) or (aside and marks & compute_marks_of_run(run)):
                _leave_figures(run)


def _delete_tables(board: Path) -> None:
    for name in (BOARD, ITEMS, SYSTEMS):
        (board / name).unlink(missing_ok=True)


def _leave_figures(run: RunFolder) -> None:
    """Delete everything of a run except its plan, its values and their protocols."""
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
    """Delete exchanges with judges about the content, from this machine's records and those that the board shows."""
    published = [board / "judges", *map(Path, filter(None, os.environ.get("PODEVAL_JUDGES", "").split(os.pathsep)))]
    files = {
        path
        for folder_of_judges in published
        for path in (folder_of_judges / JUDGE_RECORDS, *folder_of_judges.glob(f"*/{JUDGE_RECORDS}"))
    }
    for folder in (locate_default_records(), *(path.parent for path in sorted(files))):
        try:
            Records(folder).remove(content.is_shown_in)
        except PodevalError as error:
            _LOG.warning("what judges were shown of a submission that is taken down is still there: %s", error)


def _is_of(run: RunFolder, row: SubmissionRow) -> bool:
    return run.plan().generation.get("submission") == row.id


def _list_runs(row: SubmissionRow, board: Path) -> Iterator[RunFolder]:
    """List the runs of a submission's system in its benchmarks, on the board and set aside."""
    for _, run in list_run_folders(row, board):
        aside = board / SUPERSEDED / run.path.relative_to(board)
        for path in (run.path, *sorted(aside.glob("*"))):
            if (path / "run.json").is_file():
                yield RunFolder(path.parents[2], *path.parts[-3:])


def repeat_takedowns(copy: Database, runs: Path, replaced: list[TakenDown], backup: Path) -> list[str]:
    """Delete taken-down content from a restored database and runs that are not yet in their place.

    Args:
        copy: the restored database.
        runs: the unpacked runs.
        replaced: decisions of the database that is replaced.
        backup: the backup; decisions that were made after it are read from the file beside it.

    Returns:
        The ids of the submissions that are taken down.

    Raises:
        BadInput: the file beside the backup is damaged.
    """
    decisions = [*list_takedowns(copy), *_read_beside(backup), *replaced]
    for decision in dict.fromkeys(decisions):
        take_down_again(Queue(copy), decision, runs)
    if decisions:
        _delete_tables(runs)
    return list(dict.fromkeys(decision.submission for decision in decisions))


def _note_beside_backups(decision: TakenDown, board: Path, tell: Tell) -> None:
    """Note a decision beside each backup of a board that is still there, for a restore on another machine."""
    line = asdict(decision) | {"at": decision.at.isoformat(), "marks": sorted(decision.marks)}
    for path in sorted({Path(noted["path"]) for noted in read_lines(board / BACKUPS)}):
        try:
            # A backup that is being made has another name until it is complete.
            if path.is_file() or any(path.parent.glob(f".{path.name}.*.partial")):
                append_line(_locate_beside(path), line)
        except (PodevalError, OSError) as error:
            tell(f"{path} is a backup, and the takedown cannot be noted beside it ({error}): delete it")


def _read_beside(backup: Path) -> list[TakenDown]:
    """Read the decisions beside a backup."""
    path = _locate_beside(backup)
    try:
        return [
            TakenDown(**line | {"at": datetime.fromisoformat(line["at"]), "marks": frozenset(line["marks"])})
            for line in read_lines(path)
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise BadInput(f"{path} is damaged ({error}); it lists what was taken down since the backup") from None


def _locate_beside(backup: Path) -> Path:
    return backup.with_name(f"{backup.name}.taken-down.jsonl")
