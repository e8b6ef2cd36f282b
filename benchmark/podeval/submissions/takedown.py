"""Taking a submission down: off the board like a withdrawal, and what it said is deleted.

On the board, aside and in the arena at once; on the disk of every worker as soon as that worker looks (`leftovers`).
Figures, history and votes stay, as does the decision with its reason. The same is not taken in again. What is beyond
reach: the history of the Hub's mirror (figures, scripts, transcripts), the bucket of jobs, backups, readers' copies.
"""

import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.store.files import only_one
from podeval.store.moderation import TAKEN_DOWN, note
from podeval.store.run_folder import SUPERSEDED, RunFolder
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import Output
from podeval.submissions.admission import OPEN
from podeval.submissions.document import Submission
from podeval.submissions.entries import everywhere
from podeval.submissions.queue import Queue
from podeval.submissions.service import OPERATOR, withdraw


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
    row, told = queue.get(id), f"taken down: {reason}"

    def also(session: Session) -> None:
        note(session, TAKEN_DOWN, id, reason, by, now)
        _silence_battles(session, _places(row, board))

    if row.state == "published":
        withdraw(queue, id, OPERATOR.name, board, reason=told, also=also)
    elif row.state in OPEN:
        queue.cancel(id, OPERATOR.name, reason=told, also=also)
    else:
        queue.database.write(also)
    return delete_outputs(row, board)


def delete_outputs(row: SubmissionRow, board: Path) -> int:
    """Delete sound, scripts and words of a submission's runs, on the board and set aside; how many runs held some."""
    gone = 0
    with only_one(board, wait=True):
        for run in _runs(row, board):
            if RunFolder(run.parents[2], *run.parts[-3:]).plan().generation.get("submission") == row.id:
                gone += (run / "outputs").exists()
                shutil.rmtree(run / "outputs", ignore_errors=True)
    return gone


def _runs(row: SubmissionRow, board: Path) -> Iterable[Path]:
    for place in _places(row, board):
        aside = board / SUPERSEDED / place.relative_to(board)
        yield from (path for path in (place, *sorted(aside.glob("*"))) if (path / "run.json").is_file())


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
