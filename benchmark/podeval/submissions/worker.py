"""The worker, which claims submissions one by one, generates their outputs in a sandbox, and measures and publishes
them.

A worker can be killed at any moment: its claim expires, and the next worker that claims the submission resumes from the
outputs and measurements in the submission's folder. Only one process at a time may use that folder.
"""

import contextlib
import errno
import logging
import math
import os
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from podeval.errors import BadInput, ModelMissing, PodevalError, StoreUnusable
from podeval.files import DiskFull, explain_write_errors, lock_folder
from podeval.hub.retry import HubUnavailable
from podeval.runs.run_folder import RunFolder, run_folders
from podeval.sandbox import NoIsolation
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.generation import Unusable
from podeval.submissions.hub_record import Proposals, list_forms
from podeval.submissions.job_budget import BudgetSpent, TooExpensive
from podeval.submissions.public_view import note_life
from podeval.submissions.queue import Claim, LeaseLost, Queue
from podeval.submissions.rules import MachineFault, OursFailed, SubmissionRefused
from podeval.submissions.service import OPERATOR, publish, retire_changed
from podeval.submissions.spot_check import SPOT_CHECK
from podeval.submissions.states import KEPT, OPEN, TAKEN_DOWN_IDS
from podeval.submissions.submission_runs import Heartbeat, SubmissionRuns, Workplace, keep_alive
from podeval.submissions.takedown import SpokenContent, delete_facts, keep_marks
from podeval.submissions.uploads import Uploads
from podeval.systems.submission import Submission
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.submissions")

NO_MONEY_SECONDS = 600.0
"""Number of seconds after which a submission is tried again if the budget was too small for the submission."""

REST_SECONDS = 600.0
"""Number of seconds for which a worker does not retry a submission that its machine could not run; other workers may
claim the submission immediately.
"""

SWEEP_SECONDS, CHORE_SECONDS = 30.0, 60.0
"""Seconds between two checks for expired claims, and between two runs of each of the other chores."""

EVERYTHING = "everything"
"""Key in `rests` for all submissions together, used if the machine cannot run any submission at the moment."""

_TICK = 0.2
_LOCK, _REMOVED = ".lock", ".removed"
_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOMEM, errno.EAGAIN}
    | {errno.EMFILE, errno.ENFILE, errno.ENODEV, errno.ESTALE}
)
"""Error numbers of the operating system for problems that the machine's operator can fix."""


LIFE_SECONDS = 60.0
"""Seconds between two signs of life."""


@dataclass
class Worker(Workplace):
    """The worker for a queue of submissions.

    Attributes:
        name: name of the worker in the queue.
        log: function that receives the events.
        look_over: function that is called when there is nothing to do; the function checks submissions that arrived
            while the Hub was down.
        proposals: object that proposes results to models' own repos, for submitters who requested it; if None, no
            results are proposed.
        alone: whether this worker claims nothing while another worker is working.
        fault: the fault on this machine that caused the last submission to be returned to the queue; None if there was
            none.
        at_work: the current submission.
        noted: time of the last sign of life, in monotonic seconds.
        rests: time, in monotonic seconds, until which a submission that this machine could not run is not retried.
    """

    name: str = field(default_factory=lambda: f"{socket.gethostname()[:60]}:{os.getpid()}")
    log: Callable[[str], None] = lambda line: None
    look_over: Callable[[], object] = lambda: None
    proposals: Proposals | None = None
    alone: bool = False
    fault: MachineFault | None = field(default=None, init=False)
    at_work: str | None = field(default=None, init=False)
    rests: dict[str, float] = field(default_factory=dict, init=False)
    noted: float = field(default=-math.inf, init=False)

    def watch(self, pause: float, stopped: Callable[[], bool]) -> None:
        """Work until a stop is requested, waiting if there is nothing to do or the database does not answer."""
        while not stopped():
            try:
                self.note_life()
                worked = self.once()
                self.clear()
                # The job of a cancelled submission costs money until the job is stopped.
                self.catch_up()
                if worked is not None:
                    continue
                self.look_over()
            except PodevalError as error:
                self.log(str(error))
            except Exception:
                # Errors must not end the worker, because all submissions would then stop.
                _LOG.exception("the worker continues after an unexpected error")
            _sleep(pause, stopped)

    def list_chores(self) -> dict[str, tuple[float, Callable[[], object]]]:
        """List, by name, the tasks that a long submission must not delay: the interval in seconds and the function, for
        `run_periodically`.
        """
        return {
            "sign of life": (LIFE_SECONDS, self.note_life),
            "sweep": (SWEEP_SECONDS, self.queue.sweep),
            "gate": (CHORE_SECONDS, self.look_over),
            "catch up": (CHORE_SECONDS, self.catch_up),
            "leftovers": (CHORE_SECONDS, self.clear),
        }

    def note_life(self) -> None:
        """Record occasionally that the worker is alive; while it works, its claim shows this."""
        if time.monotonic() - self.noted >= LIFE_SECONDS:
            self.noted = time.monotonic()
            note_life(self.queue.database, datetime.now(UTC))

    def once(self) -> str | None:
        """Work on the next submission; return its id, or None if there is none.

        If this machine cannot run the submission, it is queued again, `fault` gives the reason, and the next call takes
        another submission; if the machine cannot run any submission, the worker pauses for a while.
        """
        self.fault, resting = None, [id for id, until in self.rests.items() if until > time.monotonic()]
        others = self.alone and any(lease.worker != self.name for lease in self.queue.leases())
        claim = None if others or EVERYTHING in resting else self.queue.claim(self.name, without=resting)
        if claim is None:
            return None
        self.log(f"{claim.id}: claimed, attempt {claim.attempt}")
        self.at_work = claim.id
        try:
            self._attempt(claim)
        finally:
            self.at_work = None
        return claim.id

    def _attempt(self, claim: Claim) -> None:
        """Work on a claimed submission, and report the outcome."""
        with keep_alive(self.queue, claim) as pulse, contextlib.suppress(LeaseLost):
            try:
                self._work(claim, pulse)
            except LeaseLost as lost:
                self.log(str(lost))
            except (SubmissionRefused, Unusable, TooExpensive) as error:
                self._end(claim, error)
            except BudgetSpent as error:
                self.queue.give_back(claim, str(error), failed=False, pause=NO_MONEY_SECONDS)
                self.log(str(error))
            except KeyboardInterrupt:
                self.queue.give_back(claim, write_sentence("worker-stopped"), failed=False)
                raise
            except Exception as error:
                if (fault := recognise_machine_fault(error)) is not None:
                    self._wait(claim, fault)
                    return
                reason = str(error) if isinstance(error, PodevalError) else f"{type(error).__name__}: {error}"
                if isinstance(error, OursFailed) or not isinstance(error, PodevalError):
                    reason = write_sentence("ours-failed", why=reason)
                state = self.queue.give_back(claim, reason, failed=True)
                self.log(f"{claim.id}: {state}: {reason}")

    def _wait(self, claim: Claim, fault: MachineFault) -> None:
        """Give back a submission that this machine cannot run; this does not count as a failure."""
        self.fault = fault
        self.rests[EVERYTHING if fault.everything else claim.id] = time.monotonic() + REST_SECONDS
        reason = write_sentence("ours-waits", why=str(fault))
        # Another worker, on a machine without the fault, may claim the submission immediately.
        self.queue.give_back(claim, reason, failed=False)
        self.log(f"{claim.id}: {reason}")

    def catch_up(self) -> None:
        """Finish outstanding work on the Hub: stop jobs of ended submissions, and open pull requests with results.

        Steps that fail because the Hub does not answer are left for the next time.
        """
        if self.hub is not None:
            try:
                for job in self.hub.end_strays(lambda id: self.queue.get(id).state in OPEN):
                    self.log(f"job {job} was stopped: its submission is no longer in progress")
                for id in self.hub.delete_taken_down():
                    self.log(f"{id} was taken down, so the files of its jobs were deleted from the Hub")
            except HubUnavailable as error:
                self.log(f"it is not yet known whether jobs must be stopped or results deleted: {error}")
            except BadInput as error:
                self.log(f"files of jobs whose content was taken down are still on the Hub: {error}")
        if self.proposals is not None:
            self.proposals.settle_all()

    def clear(self) -> None:
        """Remove files of finished submissions from the work folder."""
        for name in clear(self.queue, self.folder, datetime.now(UTC)):
            self.log(f"{name}: files in {self.folder} that are no longer needed were removed")
        for name in Uploads(self.board).clear(self.queue):
            self.log(f"{name}: uploaded recordings that no submission needs were removed")

    def _end(self, claim: Claim, error: SubmissionRefused | Unusable | TooExpensive) -> None:
        state = self.queue.get(claim.id).state
        if isinstance(error, SubmissionRefused):
            self.queue.advance(claim, state, "refused", reason=error.reason, rule=error.rule)
        else:
            self.queue.advance(claim, state, "failed", reason=str(error))
        self.log(f"{claim.id}: {error}")

    def _work(self, claim: Claim, pulse: Heartbeat) -> None:
        """Generate, measure and publish a claimed submission, and then open the requested pull requests."""
        row = self.queue.get(claim.id)
        document = Submission.model_validate(row.document)
        folder = self.folder / claim.id
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(lock_folder(folder))
            except BadInput as error:
                if recognise_machine_fault(error) is not None:
                    raise
                # The last worker of this submission was presumed dead, but still holds the lock on the folder.
                self.queue.give_back(claim, write_sentence("folder-in-use"), failed=False, pause=30.0)
                return
            self._publish(claim, row, document, SubmissionRuns(row, document, pulse, self).make(), pulse)
        if self.proposals is not None:
            for waiting in self.proposals.of(claim.id):
                self.proposals.settle(waiting)

    def _publish(
        self, claim: Claim, row: SubmissionRow, document: Submission, runs: list[RunFolder], pulse: Heartbeat
    ) -> None:
        """Publish measured runs, and store the pull requests that their submitter requested."""
        # At this point, every item has been measured.
        self.queue.beat(claim, done=pulse.done, total=pulse.total)
        self.queue.advance(claim, "running", "measured")
        # Copy the runs to the board while the claim is still valid.
        paths = []
        for run in runs:
            pulse.check()
            paths.append(publish(run, self.board))
        # The arena retires outputs from an earlier version, and never plays other audio in their place.
        retire_changed(self.queue.database, paths, "another version of its system was published", datetime.now(UTC))
        self.refresh(self.board)
        pulse.check()
        if self.proposals is not None:
            # The board writes to a repo only if its owner requested it.
            theirs = row.owner_proven or row.owner == OPERATOR.name
            self.proposals.ask(claim.id, list_forms(document) if theirs else ())
        self.queue.advance(claim, "measured", "published")
        self.log(f"{claim.id}: published")


def recognise_machine_fault(error: BaseException) -> MachineFault | None:
    """Return the machine fault that an error indicates; None if it does not indicate one."""
    match error:
        case MachineFault():
            return error
        case NoIsolation() | ModelMissing():
            return MachineFault(str(error))
        case DiskFull() | StoreUnusable():
            return MachineFault(str(error), everything=True)
        case MemoryError():
            return MachineFault("this machine ran out of memory; end other programs, or give it more", everything=True)
        case OSError() if error.errno in _ERRORS:
            about = f" ({error.filename})" if error.filename else ""
            return MachineFault(f"this machine refuses an operation: {error.strerror}{about}", everything=True)
        case PodevalError() if isinstance(error.__cause__, OSError) and error.__cause__.errno in _ERRORS:
            return MachineFault(str(error), everything=True)
    return None


def _sleep(seconds: float, stopped: Callable[[], bool]) -> None:
    """Wait for the given number of seconds, or until the worker must stop."""
    until = time.monotonic() + seconds
    while not stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _TICK))


def clear(queue: Queue, work: Path, now: datetime) -> list[str]:
    """Remove files that are no longer needed, and return the names of the folders from which files were removed.

    The folder `<id>` contains the files of a model and its outputs; `spot-<id>` contains the same for a spot check. All
    files of a submission that can be retried are kept for a week, and those of a taken-down submission are removed.
    Folders in use, and folders that do not belong to any submission in the queue, are kept. After a kill, the next call
    finishes the work.
    """
    cleared: list[str] = []
    for path in sorted(work.glob("*")):
        if path.is_dir() and _list_folder(path, _LOCK) and _is_over(queue, path, now):
            with contextlib.suppress(BadInput), lock_folder(path):
                # The row is read again under the lock, because it may have been queued in the meantime.
                if not _is_over(queue, path, now):
                    continue
                if _is_taken_down(queue, path):
                    _keep_marks(queue, path, now)
                if _remove(path):
                    cleared.append(path.name)
    return cleared


def _is_over(queue: Queue, folder: Path, now: datetime) -> bool:
    """Return whether a folder belongs to a submission that no longer needs the folder."""
    row = queue.database.read(lambda session: session.get(SubmissionRow, folder.name.removeprefix(SPOT_CHECK)))
    if row is None:
        return False
    if _is_taken_down(queue, folder):
        return True
    if folder.name.startswith(SPOT_CHECK):
        return row.state != "published" or datetime.fromtimestamp(folder.stat().st_mtime, UTC) < now - KEPT
    ended = row.state in ("published", "refused", "withdrawn")
    return ended or (row.state in ("failed", "cancelled") and row.state_at < now - KEPT)


def _is_taken_down(queue: Queue, folder: Path) -> bool:
    return folder.name.removeprefix(SPOT_CHECK) in queue.database.list_rows(TAKEN_DOWN_IDS)


def _keep_marks(queue: Queue, folder: Path, now: datetime) -> None:
    """Store marks of taken-down content that never reached the board, and delete the content from the local cache."""
    content = SpokenContent()
    for run in run_folders(folder / "runs"):
        content.add(run)
    delete_facts(content.contents)
    if content.marks:
        id = folder.name.removeprefix(SPOT_CHECK)
        queue.database.write(lambda session: keep_marks(session, id, content.marks, "worker", now))


def _remove(folder: Path) -> bool:
    """Remove the contents of a folder except its lock; return whether there was anything to remove."""
    if not _list_folder(folder, _LOCK):
        return False
    aside = folder / _REMOVED
    with explain_write_errors(folder):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(exist_ok=True)
        # Folders are renamed first, so a retry after a kill finds either a whole folder or no folder. Files are removed
        # before folders, because the file that marks a model as fetched must not outlive the model.
        for path in sorted(_list_folder(folder, _LOCK, _REMOVED), key=Path.is_dir):
            path.rename(aside / path.name)
        shutil.rmtree(aside, ignore_errors=True)
    return True


def _list_folder(folder: Path, *kept: str) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.name not in kept]
