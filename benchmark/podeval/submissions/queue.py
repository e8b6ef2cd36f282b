"""The queue of submissions. The submissions table is the only source of truth; a state and its history are changed in
one transaction.

A change names the previous state and the attempt, so if two workers try to make the same change, only one succeeds. A
claim is a lease that its worker renews and that is revoked when it expires. The code is the same for SQLite and
PostgreSQL.
"""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput, PodevalError
from podeval.store.database import Database
from podeval.store.submission_tables import Lease, SubmissionHistory, SubmissionRow
from podeval.submissions.rules import Policy
from podeval.submissions.source_files import digest
from podeval.submissions.states import (
    LEASED,
    OPEN,
    QueuePosition,
    change_state,
    get_row,
    list_positions,
    note_step,
    order_submissions,
    read_last_position,
    refuse_duplicate,
    refuse_too_many,
)
from podeval.texts import write_sentence

Clock = Callable[[], datetime]
Also = Callable[[Session], object]
"""Additional work that is done in the transaction that changes a state."""

_CLOCKS_AGREE = timedelta(minutes=1)
"""Maximum difference between the clocks of workers."""


class LeaseLost(PodevalError):
    """This worker's claim is no longer valid: the submission was cancelled, or the claim was revoked."""


@dataclass(frozen=True)
class Claim:
    """A worker's right to one attempt at a submission."""

    id: str
    attempt: int
    worker: str


class Queue:
    """The queue of submissions; any number of threads and processes may use it on one database."""

    def __init__(
        self, database: Database, policy: Policy | None = None, *, clock: Clock = lambda: datetime.now(UTC)
    ) -> None:
        self.database = database
        self.policy = policy or Policy()
        self._clock = clock

    def get(self, id: str) -> SubmissionRow:
        """Return a submission.

        Raises:
            BadInput: there is no such submission.
        """
        return self.database.read(lambda session: get_row(session, id))

    def all(self, *, owner: str | None = None, states: Sequence[str] = ()) -> list[SubmissionRow]:
        """List submissions, newest first."""
        query = select(SubmissionRow).order_by(SubmissionRow.number.desc())
        query = query.where(SubmissionRow.owner == owner) if owner else query
        query = query.where(SubmissionRow.state.in_(states)) if states else query
        return self.database.list_rows(query)

    def history(self, id: str) -> list[SubmissionHistory]:
        """List every state change of a submission, in order."""
        self.get(id)
        query = select(SubmissionHistory).where(SubmissionHistory.submission == id).order_by(SubmissionHistory.step)
        return self.database.list_rows(query)

    def leases(self) -> list[Lease]:
        """List the leases, each with its worker and submission."""
        return self.database.list_rows(select(Lease).order_by(Lease.taken_at))

    def standings(self) -> dict[str, QueuePosition]:
        """List the position and the estimated time to completion of every queued submission, in order."""
        return self.database.read(list_positions)

    def end(self) -> QueuePosition:
        """Return the position that a new submission would get at the end of the queue."""
        return self.database.read(read_last_position)

    def admit(
        self,
        document: Mapping[str, Any],
        *,
        owner: str,
        profile: str = "embedded",
        document_folder: str = "",
        quotas: bool = True,
    ) -> None:
        """Check, without changing anything, whether `receive` would accept a document now.

        Raises:
            SubmissionRefused: the document is a duplicate, or the owner has too many submissions.
        """
        mark = digest(document, profile, document_folder)
        self.database.read(lambda session: self._admit(session, mark, document, owner, quotas))

    def receive(
        self,
        document: Mapping[str, Any],
        *,
        owner: str,
        profile: str = "embedded",
        document_folder: str = "",
        priority: int = 0,
        owner_proven: bool = False,
        quotas: bool = True,
    ) -> SubmissionRow:
        """Store a document as a new submission, which is on disk when this returns.

        The document is valid plain data; its folder is needed if it names files next to it. `owner_proven` states that
        the submitter has proven that they own the submission; without `quotas`, the owner's quotas do not apply.

        Raises:
            SubmissionRefused: the document is a duplicate, or the owner has too many submissions.
        """
        now, identity = self._clock(), f"s{secrets.token_hex(6)}"
        mark = digest(document, profile, document_folder)

        def take(session: Session) -> SubmissionRow:
            self._admit(session, mark, document, owner, quotas)
            row = SubmissionRow(
                id=identity,
                number=(session.scalar(select(func.max(SubmissionRow.number))) or 0) + 1,
                owner=owner,
                owner_proven=owner_proven,
                system=document["system"]["id"],
                kind=document["source"]["kind"],
                digest=mark,
                document=dict(document),
                place=document_folder,
                profile=profile,
                state="received",
                priority=priority,
                not_before=now,
                submitted_at=now,
                state_at=now,
            )
            session.add(row)
            session.flush()
            note_step(session, row.id, "", "received", 0, owner, "", now)
            return row

        return self.database.write(take)

    def move(
        self,
        id: str,
        before: str,
        after: str,
        *,
        by: str,
        reason: str = "",
        also: Also = lambda session: None,
        **changes: Any,
    ) -> SubmissionRow:
        """Change the state of a submission that no worker holds; `also` runs in the same transaction.

        Raises:
            BadInput: the submission is no longer in the expected state, or this state change is not allowed.
        """

        def change(session: Session) -> SubmissionRow:
            also(session)
            return change_state(session, id, before, after, self._clock(), by=by, reason=reason, **changes)

        return self.database.write(change)

    def claim(self, worker: str, *, without: Collection[str] = ()) -> Claim | None:
        """Claim the next submission exclusively for this worker, or return None; leave the submissions in `without` to
        other workers.

        Expired claims are revoked first.
        """
        now = self._clock()

        def take(session: Session) -> Claim | None:
            self._take_back(session, now)
            queued = select(SubmissionRow).where(SubmissionRow.state == "queued", SubmissionRow.not_before <= now)
            order = order_submissions(session, (row for row in session.scalars(queued) if row.id not in without))
            if not order:
                return None
            row = order[0]
            attempt = row.attempt + 1
            change_state(session, row.id, "queued", "running", self._clock(), by=worker, attempt=attempt, reason="")
            until = now + timedelta(seconds=self.policy.lease_seconds)
            times = {"taken_at": now, "beat_at": now, "expires_at": until}
            session.add(Lease(submission=row.id, attempt=attempt, worker=worker, **times))
            return Claim(row.id, attempt, worker)

        return self.database.write(take)

    def beat(self, claim: Claim, *, done: int | None = None, total: int | None = None) -> None:
        """Renew a claim, and report progress.

        Raises:
            LeaseLost: the claim is no longer valid; stop the work.
        """
        now = self._clock()

        def renew(session: Session) -> None:
            lease, row = self._require_claim(session, claim)
            row.worked_seconds += min(max(0.0, (now - lease.beat_at).total_seconds()), self.policy.lease_seconds)
            lease.beat_at, lease.expires_at = now, now + timedelta(seconds=self.policy.lease_seconds)
            if total is not None:
                row.items_total = total
            if done is not None and done > row.items_done:
                row.items_done, row.failures = done, 0

        self.database.write(renew)

    def advance(self, claim: Claim, before: str, after: str, *, reason: str = "", rule: str = "") -> None:
        """Change the state of a claimed submission; the lease ends if the new state does not need a lease.

        Raises:
            LeaseLost: the claim is no longer valid; nothing was changed.
        """

        def change(session: Session) -> None:
            lease, _ = self._require_claim(session, claim)
            held: dict[str, Any] = {"attempt_held": claim.attempt, "by": claim.worker}
            change_state(session, claim.id, before, after, self._clock(), reason=reason, rule=rule, **held)
            if after not in LEASED:
                session.delete(lease)

        self.database.write(change)

    def give_back(self, claim: Claim, reason: str, *, failed: bool, pause: float = 0.0) -> str:
        """Give a claimed submission back to the queue with a reason; return its new state.

        If `failed`, the failure is counted, and after several failures the submission is given up. Otherwise, it can be
        claimed again after `pause` seconds.

        Raises:
            LeaseLost: the claim is no longer valid.
        """
        now = self._clock()

        def back(session: Session) -> str:
            lease, row = self._require_claim(session, claim)
            session.delete(lease)
            return self._return(session, row, claim.worker, reason, now, failed=failed, pause=pause)

        return self.database.write(back)

    def sweep(self) -> list[str]:
        """Reclaim all submissions whose worker stopped responding, and return their ids."""
        now = self._clock()
        return self.database.write(lambda session: self._take_back(session, now))

    def cancel(self, id: str, by: str, *, reason: str = "", also: Also = lambda session: None) -> SubmissionRow:
        """Cancel an unpublished submission; its worker notices this at the next renewal of its claim.

        Raises:
            BadInput: there is no such submission, or it can no longer be cancelled.
        """

        def stop(session: Session) -> SubmissionRow:
            row = get_row(session, id)
            if row.state not in OPEN:
                raise BadInput(write_sentence("nothing-to-cancel", id=id, state=row.state))
            if (lease := session.get(Lease, id)) is not None:
                session.delete(lease)
            also(session)
            code = "cancelled-by-because" if reason else "cancelled-by"
            why = write_sentence(code, who=by, **({"why": reason} if reason else {}))
            return change_state(session, id, row.state, "cancelled", self._clock(), by=by, reason=why)

        return self.database.write(stop)

    def retry(self, id: str, by: str, *, reason: str = "", also: Also = lambda session: None) -> SubmissionRow:
        """Queue a failed or cancelled submission again; its finished items are kept.

        Raises:
            BadInput: there is no such submission, it never passed the gate, or it is in another state.
        """
        now = self._clock()

        def again(session: Session) -> SubmissionRow:
            row = get_row(session, id)
            if row.state not in ("failed", "cancelled"):
                raise BadInput(write_sentence("not-tried-again", id=id, state=row.state))
            if not row.pinned:
                raise BadInput(write_sentence("never-checked", id=id))
            refuse_duplicate(session, row.digest, row.system, row.owner)
            also(session)
            return change_state(
                session, id, row.state, "queued", self._clock(), by=by, reason=reason, failures=0, not_before=now
            )

        return self.database.write(again)

    def _require_claim(self, session: Session, claim: Claim) -> tuple[Lease, SubmissionRow]:
        lease, row = session.get(Lease, claim.id), get_row(session, claim.id)
        held = lease is not None and (lease.attempt, lease.worker) == (claim.attempt, claim.worker)
        if not held or row.attempt != claim.attempt or row.state not in LEASED:
            raise LeaseLost(f"{claim.id} is now {row.state}; {claim.worker} has lost its claim (attempt {row.attempt})")
        assert lease is not None
        return lease, row

    def _take_back(self, session: Session, now: datetime) -> list[str]:
        self._set_back(session, now)
        lapsed = list(session.scalars(select(Lease).where(Lease.expires_at < now)))
        for lease in lapsed:
            row = get_row(session, lease.submission)
            session.delete(lease)
            reason = write_sentence("worker-silent", worker=lease.worker)
            self._return(session, row, "queue", reason, now, failed=True)
        return [lease.submission for lease in lapsed]

    def _set_back(self, session: Session, now: datetime) -> None:
        """Correct times that were set far into the future by a fast clock, so that no submission waits for such a
        time.
        """
        latest = now + _CLOCKS_AGREE
        lease_seconds = timedelta(seconds=self.policy.lease_seconds)
        for lease in session.scalars(select(Lease).where(Lease.expires_at > latest + lease_seconds)):
            lease.beat_at, lease.expires_at = min(lease.beat_at, now), now + lease_seconds
        waiting = select(SubmissionRow).where(SubmissionRow.state == "queued", SubmissionRow.not_before > latest)
        for row in session.scalars(waiting.where(SubmissionRow.state_at > latest)):
            row.not_before = now

    def _return(
        self,
        session: Session,
        row: SubmissionRow,
        by: str,
        reason: str,
        now: datetime,
        *,
        failed: bool,
        pause: float = 0.0,
    ) -> str:
        failures = row.failures + failed
        changes: dict[str, Any] = {"failures": failures, "attempt_held": row.attempt, "by": by}
        if failures >= self.policy.failures_allowed:
            after, reason = "failed", write_sentence("given-up", count=failures, why=reason)
        else:
            pause = self.policy.pause_seconds * 2 ** (failures - 1) if failed else pause
            after, changes["not_before"] = "queued", now + timedelta(seconds=pause)
        change_state(session, row.id, row.state, after, self._clock(), reason=reason, **changes)
        return after

    def _admit(self, session: Session, mark: str, document: Mapping[str, Any], owner: str, quotas: bool) -> None:
        refuse_duplicate(session, mark, str(document["system"]["id"]), owner)
        if quotas:
            refuse_too_many(session, owner, self._clock(), self.policy)
