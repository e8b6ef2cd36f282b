"""Takedown of a submission: it leaves the board as by a withdrawal, and its audio and its words are deleted.

They are deleted at once on the board, among runs set aside, in the arena, in the tables, in this machine's cache, in
judges' records and in the copies that podeval's commands made (`clearing_copies`); on the disk and in the cache of
every worker, and where its jobs ran, at a worker's next check (`cleanup`, `hub_generation`); in the Hub's record with
the next push (`hub_record`); in a backup when it is restored (`restoring`). Figures, history and votes stay, as does
the decision with its reason. The content is recognised by its digests (`content_marks`) and not accepted again. Copies
that readers made are beyond reach.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.analysis.cache import open_default_cache
from podeval.analysis.playback import Playback
from podeval.errors import BadInput, PodevalError
from podeval.judges.exchange_records import FILE as JUDGE_RECORDS
from podeval.judges.exchange_records import Records
from podeval.metrics.judge_use import locate_default_records
from podeval.runs import spot_check_report
from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS
from podeval.runs.run_folder import REPLACED, SUPERSEDED, UPLOADS, RunFolder
from podeval.store.copies import find_list_folder, read_copies
from podeval.store.files import lock_folder, read_lines, write_json, write_whole
from podeval.store.submission_tables import HubJob, SubmissionRow
from podeval.store.tables import ArenaOutput
from podeval.submissions.benchmark_entries import list_possible_runs
from podeval.submissions.clearing_copies import (
    clear_copies,
    delete_other_recordings,
    empty_quotes,
    list_played_in_battles,
)
from podeval.submissions.content_marks import compute_marks_of_run, read_taken_down_marks
from podeval.submissions.job_budget import EMPTIED
from podeval.submissions.public_view import delete_log
from podeval.submissions.queue import Queue
from podeval.submissions.service import OPERATOR, withdraw
from podeval.submissions.source_files import delete_upload, is_upload
from podeval.submissions.spoken_content import SpokenContent
from podeval.submissions.states import OPEN
from podeval.submissions.taken_down import TakenDown, keep_takedown
from podeval.systems.submission import Submission

REASON = "taken down"
"""Text that replaces a reason that may quote the content."""

Tell = Callable[[str], None]

_LOG = logging.getLogger("podeval.submissions")

_KEPT = ("run.json", "items.json", "submission.json", spot_check_report.FILE)
_KEPT_OF_A_PROFILE = ("results.jsonl", "protocols.json", "summary.json")


def take_down(
    queue: Queue, id: str, by: str, board: Path, reason: str, now: datetime, tell: Tell = _LOG.warning
) -> int:
    """Take a submission down, whatever its state; return how many runs lost their content.

    If the process is killed in between, the same call finishes the work.

    Args:
        queue: queue of the submission.
        id: id of the submission.
        by: who decides; on the trail, not in the public history.
        board: folder of runs.
        reason: shown with it.
        now: the time.
        tell: called with a sentence for each copy outside the board: what was done to it, or what is left to do.

    Raises:
        BadInput: there is no such submission.
    """
    row = queue.get(id)
    marks = (mark for mark, other in read_taken_down_marks(queue.database).items() if other == id)
    decision = TakenDown(id, reason, by, now.isoformat(), tuple(sorted(marks)))
    content = _content_of(row, decision, board)
    battles = list_played_in_battles(queue.database, content, board)
    _decide(queue, row, decision, content, board)
    decision = replace(decision, marks=tuple(sorted(content.marks)), contents=tuple(sorted(content.contents)))
    places = {path.relative_to(board).as_posix() for path in _run_paths(row, board)}
    listed_copies = read_copies([_folder_of_list(queue, board), board])
    for sentence in (
        *clear_copies(listed_copies, content, decision, places),
        *_out_of_reach(queue, id, board),
        *battles,
    ):
        tell(sentence)
    return _delete(queue, row, content, board, tell)


def take_down_again(queue: Queue, decision: TakenDown, board: Path) -> None:
    """Repeat a takedown in a restored board that was decided after its backup was made.

    Args:
        queue: of the restored database.
        decision: the decision.
        board: the restored folder of runs, in the folder of the unpacked backup.
    """
    try:
        row = queue.get(decision.submission)
    except BadInput:
        # It was submitted after the backup was made; its content is known again all the same.
        queue.database.write(lambda session: keep_takedown(session, decision))
        return
    content = _content_of(row, decision, board)
    delete_other_recordings(board.parent, content)
    _decide(queue, row, decision, content, board)
    _delete(queue, row, content, board, _LOG.warning)


def _content_of(row: SubmissionRow, decision: TakenDown, board: Path) -> SpokenContent:
    """Collect the content of a submission's runs, as far as it is left, and what the decision recorded of it."""
    content = SpokenContent(set(decision.marks), set(decision.contents))
    for folder in _boards(board):
        for run in _own_runs(row, folder):
            content.add(run)
    return content


def _boards(board: Path) -> list[Path]:
    """Return the folder of runs, and the folders in it that a restore replaced."""
    return [board, *sorted(board.glob(REPLACED + "*"))]


def _decide(queue: Queue, row: SubmissionRow, decision: TakenDown, content: SpokenContent, board: Path) -> None:
    """Store the decision, end the submission, and retire its outputs in the arena."""
    reason = f"{REASON}: {decision.reason}"

    def also(session: Session) -> None:
        delete_log(session, row.id)
        keep_takedown(session, replace(decision, marks=tuple(sorted(content.marks))))
        _silence_battles(session, _run_paths(row, board), content.contents)

    if row.state == "published":
        withdraw(queue, row.id, OPERATOR.name, board, reason=reason, also=also)
    elif row.state in OPEN:
        queue.cancel(row.id, OPERATOR.name, reason=reason, also=also)
    else:
        queue.database.write(also)


def _delete(queue: Queue, row: SubmissionRow, content: SpokenContent, board: Path, tell: Tell) -> int:
    """Delete the content from the cache, judges' records, tables and runs; return how many runs held some."""
    for sentence in empty_quotes(queue.database, content, board):
        tell(sentence)
    delete_other_recordings(board, content)
    delete_facts(content.contents)
    if is_upload(row.place):
        for place in (row.place, *(str(folder / UPLOADS) for folder in _boards(board))):
            delete_upload(place, str(row.document["source"].get("folder") or ""))
    deleted = 0
    for folder in _boards(board):
        _delete_judged(content, folder)
        deleted += _delete_runs(row, folder, content.marks)
        for name in (BOARD, ITEMS, SYSTEMS) if folder != board else ():
            (folder / name).unlink(missing_ok=True)
    return deleted


def _folder_of_list(queue: Queue, board: Path) -> Path | None:
    return find_list_folder(queue.database.url.render_as_string(hide_password=False), board)


def _out_of_reach(queue: Queue, id: str, board: Path) -> Iterator[str]:
    """Yield sentences on what a takedown does not change: replaced databases, and the Hub."""
    file = Path(str(queue.database.url.database))
    replaced = [path for why in ("before", "damaged") for path in file.parent.glob(f"{file.name}.{why}-*")]
    for path in sorted(replaced) if queue.database.is_sqlite else ():
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


def delete_facts(contents: Iterable[str]) -> None:
    """Delete transcripts and copies of recordings from this machine's cache, by the SHA-256 of their files."""
    hashes = list(contents)
    open_default_cache().delete_about(hashes)
    Playback.default().delete_copies(hashes)


def collect_contents_and_marks(runs: Iterable[RunFolder]) -> tuple[set[str], set[str]]:
    """Return the SHA-256 of runs' recordings, and the digests by which their content is recognised."""
    content = SpokenContent()
    for run in runs:
        content.add(run)
    return content.contents, content.marks


def _delete_runs(row: SubmissionRow, board: Path, marks: set[str]) -> int:
    """Delete the content of a submission's runs, on the board and set aside; return how many runs held some.

    An earlier run of the same system that is set aside loses it too, where any of it is the same.
    """
    deleted = 0
    with lock_folder(board, wait=True):
        for path in _run_paths(row, board):
            shutil.rmtree(board / f".incoming-{'-'.join(path.relative_to(board).parts)}", ignore_errors=True)
        for run in _runs(row, board):
            is_own, aside = _is_of(run, row), run.path.is_relative_to(board / SUPERSEDED)
            if is_own or (aside and marks & compute_marks_of_run(run)):
                deleted += run.outputs.exists()
                _leave_figures(run)
    return deleted


def _leave_figures(run: RunFolder) -> None:
    """Delete everything of a run except its plan, its figures and their protocols."""
    for path in sorted(run.path.iterdir()):
        if path.is_dir() and (path / "results.jsonl").exists():
            for inside in path.iterdir():
                if inside.name not in _KEPT_OF_A_PROFILE:
                    _remove(inside)
            _leave_figures_of_a_profile(path)
        elif path.name not in _KEPT:
            _remove(path)
    checked = run.path / spot_check_report.FILE
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
    """Return a result without its notes, and without a reason that may quote the content."""
    if "unscored" in result:
        return {"unscored": REASON, "cause": result["cause"]}
    return {name: value for name, value in result.items() if name != "notes"}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _delete_judged(content: SpokenContent, board: Path) -> None:
    """Delete exchanges with judges about the content, from this machine's records and those that the board shows."""
    if not content.records and not content.texts:
        return
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


def _own_runs(row: SubmissionRow, board: Path) -> list[RunFolder]:
    return [run for run in _runs(row, board) if _is_of(run, row)]


def _is_of(run: RunFolder, row: SubmissionRow) -> bool:
    return run.plan().generation.get("submission") == row.id


def _runs(row: SubmissionRow, board: Path) -> Iterable[RunFolder]:
    """List the runs of a submission's system in its benchmarks, on the board and set aside."""
    for path_of_run in _run_paths(row, board):
        aside = board / SUPERSEDED / path_of_run.relative_to(board)
        for path in (path_of_run, *sorted(aside.glob("*"))):
            if (path / "run.json").is_file():
                yield RunFolder(path.parents[2], *path.parts[-3:])


def _run_paths(row: SubmissionRow, board: Path) -> list[Path]:
    """List the paths of a submission's runs on the board, whether or not they exist."""
    document = Submission.model_validate(row.document)
    runs = list_possible_runs(document)
    return [RunFolder(board, entry.benchmark, entry.split, document.system.id).path for entry in runs]


def _silence_battles(session: Session, places: list[Path], contents: Collection[str]) -> None:
    """Retire the arena's outputs of these runs, wherever their audio lies; votes on them stay."""
    folders = {str(path.resolve()) + "/" for path in places}
    for output in session.scalars(select(ArenaOutput).where(ArenaOutput.audio != "")):
        inside = any(str(Path(output.audio).resolve()).startswith(folder) for folder in folders)
        if inside or output.sha256 in contents:
            output.active, output.audio = False, ""
