"""The service that accepts submissions: it stores them, runs the gate's checks, and queues or refuses them.

The service also puts finished runs on the board and takes runs off it, completely or not at all; a replaced run is
kept.
"""

import logging
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
from sqlalchemy import select

from podeval.audio.decode import hash_file
from podeval.errors import BadInput, CodedSentence
from podeval.files import lock_folder
from podeval.hub.retry import HubUnavailable, call_with_retries
from podeval.models import registry
from podeval.runs.run_folder import SUPERSEDED, RunFolder
from podeval.store import Database, operator_settings
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaOutput
from podeval.submissions.benchmark_entries import find_runs, list_run_folders
from podeval.submissions.gate import Gate, PinnedSource
from podeval.submissions.queue import Also, Queue
from podeval.submissions.rules import Refusal, SubmissionRefused, write_refusal
from podeval.systems.submission import BuiltIn, Model, Reported, Submission
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.submissions")

GATE = "gate"
"""Author of the state changes that the gate makes."""


@dataclass(frozen=True)
class Submitter:
    """The submitter: a name on the Hub, and the organisations to which this person has been proven to belong."""

    name: str
    organisations: tuple[str, ...] = ()

    def owns(self, repo: str) -> bool:
        """Return whether a repo belongs to the submitter or to one of the submitter's organisations."""
        return repo.partition("/")[0].casefold() in {name.casefold() for name in (self.name, *self.organisations)}


OPERATOR = Submitter("operator")
"""The person who runs this installation, as a submitter."""


def ask_hub_submitter(api: HfApi | None = None) -> Submitter:
    """Return the user who is logged in to the Hub, according to the Hub.

    Raises:
        BadInput: nobody is logged in.
        HubUnavailable: the Hub does not answer.
    """
    try:
        account: dict[str, Any] = call_with_retries((api or HfApi()).whoami)
    except (LocalTokenNotFoundError, HfHubHTTPError):
        raise BadInput(write_sentence("hub-not-signed-in")) from None
    return Submitter(account["name"], tuple(each["name"] for each in account.get("orgs", ())))


@dataclass(frozen=True)
class SubmissionService:
    """The service that accepts submissions.

    Attributes:
        queue: queue of accepted submissions.
        gate: the gate that checks them.
        closed: reason why submissions are not accepted at the moment; empty if they are accepted.
        board: folder of runs; systems in it that did not come from a submission keep their ids.
    """

    queue: Queue
    gate: Gate
    closed: str = ""
    board: Path | None = None

    def check(
        self,
        document: Submission,
        submitter: Submitter = OPERATOR,
        *,
        document_folder: Path | None = None,
        profile: str = "embedded",
    ) -> PinnedSource:
        """Check a submission as `submit` does, but do not queue the submission.

        Raises:
            SubmissionRefused: a rule is broken; the error lists all broken rules.
            HubUnavailable: the Hub does not answer.
        """
        refusals: list[Refusal] = []
        plain, quotas = document.model_dump(mode="json"), submitter != OPERATOR
        beside = str(document_folder.resolve()) if document_folder else ""
        try:
            self._require_room(document, submitter)
            self.queue.admit(plain, owner=submitter.name, profile=profile, document_folder=beside, quotas=quotas)
        except SubmissionRefused as refused:
            refusals += refused.refusals
        try:
            pinned = self.gate.check(document, document_folder)
        except SubmissionRefused as refused:
            raise SubmissionRefused(*refusals, *refused.refusals) from None
        except HubUnavailable:
            if not refusals:
                raise
        if refusals:
            raise SubmissionRefused(*refusals)
        return pinned

    def submit(
        self,
        document: Submission,
        submitter: Submitter = OPERATOR,
        *,
        document_folder: Path | None = None,
        profile: str = "embedded",
        priority: int = 0,
    ) -> SubmissionRow:
        """Accept a submission; its state is then `queued`, or `received` if the Hub is down.

        Submissions of higher priority are processed first; the models of the profile measure the outputs. The
        document's folder is needed if it names files next to it.

        Raises:
            SubmissionRefused: a rule is broken; the error lists all broken rules. The submission is listed as refused
                unless it is a duplicate or over a quota.
            BadInput: there is no such profile.
        """
        self._require_room(document, submitter)
        registry.require_profile(profile)
        source = document.source
        if isinstance(source, Reported):
            raise SubmissionRefused(write_refusal("document", "paper-figures-not-run"))
        row = self.queue.receive(
            document.model_dump(mode="json"),
            owner=submitter.name,
            owner_proven=isinstance(source, Model) and submitter.owns(source.repo),
            profile=profile,
            document_folder=str(document_folder.resolve()) if document_folder else "",
            priority=priority,
            quotas=submitter != OPERATOR,
        )
        try:
            return self.look_over(row)
        except HubUnavailable:
            return self._read_row(row.id)

    def look_over(self, row: SubmissionRow) -> SubmissionRow:
        """Check a received submission at the gate, and queue it if it passes.

        A worker may be checking it at the same time: whichever finishes first decides, and the other returns that
        decision.

        Raises:
            SubmissionRefused: the submission is refused, and stored as refused.
            HubUnavailable: the Hub does not answer; the submission stays received.
        """
        try:
            pinned = self.gate.check(Submission.model_validate(row.document), Path(row.place) if row.place else None)
        except SubmissionRefused as refused:
            if self._try_to_move(row.id, "received", "refused", reason=refused.reason, rule=refused.rule):
                raise
        else:
            if self._try_to_move(row.id, "received", "checked", pinned=pinned.to_json()):
                self._try_to_move(row.id, "checked", "queued")
        return self._read_row(row.id)

    def _try_to_move(self, id: str, before: str, after: str, **changes: Any) -> bool:
        """Change a state on behalf of the gate; return False if the state had already changed."""
        try:
            self.queue.move(id, before, after, by=GATE, **changes)
        except BadInput:
            return False
        return True

    def _read_row(self, id: str) -> SubmissionRow:
        """Return the current state of a submission.

        Raises:
            SubmissionRefused: the submission was refused; the error contains the stored rule and reason.
        """
        row = self.queue.get(id)
        if row.state == "refused":
            raise SubmissionRefused(Refusal(row.rule, row.reason.removeprefix(f"{row.rule}: ")))
        return row

    def _require_room(self, document: Submission, submitter: Submitter) -> None:
        """Refuse submissions while none are accepted, and ids that belong to systems on the board that did not come
        from a submission.
        """
        if reason := self.closed or self.why_frozen():
            raise SubmissionRefused(Refusal("open", reason))
        if self.board is None or submitter == OPERATOR:
            return
        if isinstance(document.source, BuiltIn):
            raise SubmissionRefused(write_refusal("document", "builtin-for-operators"))
        id = document.system.id
        for path in self.board.glob(f"*/*/{id}/run.json"):
            run = RunFolder(self.board, path.parts[-4], path.parts[-3], id)
            if "submission" not in run.plan().generation:
                raise SubmissionRefused(write_refusal("duplicate", "id-on-board", system=id))

    def why_frozen(self) -> str | None:
        """Return why no submissions are accepted at the moment, in the operator's words; None if they are accepted."""
        with self.queue.database.reading() as session:
            sentence = operator_settings.read_frozen(session).get(operator_settings.SUBMISSIONS)
        if not sentence:
            return None
        message = f"no submissions are accepted at the moment: {sentence}"
        return CodedSentence(message, code="submissions-frozen", why=sentence)

    def look_over_all(self) -> list[SubmissionRow]:
        """Check all submissions that were received while the Hub was down or when a server was killed."""
        for row in self.queue.all(states=("checked",)):
            self._try_to_move(row.id, "checked", "queued")
        done = []
        for row in reversed(self.queue.all(states=("received",))):
            try:
                with suppress(SubmissionRefused):
                    self.look_over(row)
            except HubUnavailable:
                break
            except Exception:
                # An error of any kind must not delay other submissions; the submission that failed is checked again
                # next time.
                _LOG.exception("%s could not be checked", row.id)
                continue
            done.append(self.queue.get(row.id))
        return done


def withdraw(
    queue: Queue, id: str, by: str, board: Path, *, reason: str = "", also: Also = lambda session: None
) -> list[RunFolder]:
    """Withdraw a published submission from the board; its runs are kept as superseded, and its history stays.

    If the process is killed before the runs have been moved, the board still shows the submission until `settle` is
    called.

    Raises:
        BadInput: the submission is not published.
    """
    why = (
        write_sentence("withdrawn-by-because", who=by, why=reason) if reason else write_sentence("withdrawn-by", who=by)
    )
    return _take_off_board(queue, [queue.move(id, "published", "withdrawn", by=by, reason=why, also=also)], board)


def settle(queue: Queue, board: Path) -> list[RunFolder]:
    """Move every run of withdrawn submissions off the board; return the runs that were still on the board."""
    return _take_off_board(queue, queue.all(states=("withdrawn",)), board)


def _take_off_board(queue: Queue, rows: Sequence[SubmissionRow], board: Path) -> list[RunFolder]:
    """Move the runs of submissions off the board, and retire their outputs in the arena; votes on these outputs
    stay.
    """
    moved = [run for row in rows for _, run in find_runs(row, board) if take_down(run)]
    places = {run.path for row in rows for _, run in list_run_folders(row, board)}
    retire_changed(queue.database, places, "its submission was withdrawn", datetime.now(UTC))
    return moved


def retire_changed(database: Database, places: Collection[Path], reason: str, now: datetime) -> None:
    """Retire the outputs in these folders of runs if their files are missing or have changed; their votes stay.

    The arena can no longer play these outputs, because the recordings that listeners heard are gone or were replaced.
    """
    folders = tuple(f"{folder.resolve()}/" for folder in places)
    with database.reading(one_state=False) as session:
        outputs = session.execute(
            select(ArenaOutput.id, ArenaOutput.audio, ArenaOutput.sha256).where(ArenaOutput.audio != "")
        ).all()
    gone = [row.id for row in outputs if str(Path(row.audio).resolve()).startswith(folders) and not _is_there(row)]
    if gone:
        database.write(lambda session: operator_settings.retire(session, gone, reason, now))


def _is_there(row: Any) -> bool:
    try:
        return hash_file(Path(row.audio)) == row.sha256 or not row.sha256
    except BadInput:
        return False


def publish(run: RunFolder, board: Path) -> Path:
    """Copy a finished run to the board's folder and return its path there; copying it again changes nothing.

    Raises:
        DiskFull: there is no space; the board is unchanged.
    """
    relative = run.path.relative_to(run.runs)
    target = board / relative
    with lock_folder(board, wait=True):
        incoming = board / f".incoming-{'-'.join(relative.parts)}"
        shutil.rmtree(incoming, ignore_errors=True)
        shutil.copytree(run.path, incoming, ignore=shutil.ignore_patterns(".lock", ".*.partial"))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            _set_aside(target, board)
        incoming.rename(target)
    return target


def take_down(run: RunFolder) -> bool:
    """Move a run off the board, but keep the run; return whether it was on the board."""
    with lock_folder(run.runs, wait=True):
        if not run.path.exists():
            return False
        _set_aside(run.path, run.runs)
        return True


def _set_aside(target: Path, board: Path) -> None:
    aside = board / SUPERSEDED / target.relative_to(board)
    aside.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(path.name) for path in aside.iterdir() if path.name.isdigit()), default=0)
    target.rename(aside / str(number))
