"""The public facts about a submission, and the log in which a worker writes a line for each item and each run.

Neither of these shows secrets, people's addresses, or the folders and names of the board's machines.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from podeval.runs.run_folder import Output
from podeval.store import Database, operator_settings
from podeval.store.submission_tables import (
    STATES,
    HubJob,
    HubProposal,
    Lease,
    SubmissionHistory,
    SubmissionLogLine,
    SubmissionRow,
)
from podeval.submissions.queue import Queue
from podeval.submissions.states import LEASED, OPEN, QueuePosition, is_waiting_for_operator
from podeval.text.redaction import redact

MOST_LINES, LONGEST = 5_000, 500
"""Maximum number of stored lines per submission, and of characters per line."""

_WORKER = re.compile(r"[^\s:]+:\d+")


def describe_publicly(row: SubmissionRow, standing: QueuePosition | None = None) -> dict[str, Any]:
    """Return the public facts about a submission, with its position in the queue if it has one, as plain data."""
    document = row.document
    pinned = row.pinned or {}
    source = document["source"]
    return {
        "id": row.id,
        "owner": row.owner,
        "owner_proven": row.owner_proven,
        "system": row.system,
        "name": redact(document["system"]["name"]),
        "kind": row.kind,
        "task": source.get("task") or "",
        "repo": source.get("repo") or "",
        "revision": source.get("revision") or pinned.get("content") or "",
        "licence": document["system"]["licence"],
        "benchmarks": [{"name": part["name"], "tracks": list(part["tracks"])} for part in document["benchmarks"]],
        "profile": row.profile,
        "parameters": pinned.get("parameters") or None,
        "state": row.state,
        "rule": row.rule,
        "reason": redact(row.reason),
        "waits_for_operator": is_waiting_for_operator(row),
        "attempt": row.attempt,
        "items_done": row.items_done,
        "items_total": row.items_total,
        "position": standing.position if standing else None,
        "seconds_left": standing.seconds if standing else None,
        "worked_seconds": round(row.worked_seconds, 1),
        "submitted_at": row.submitted_at.isoformat(),
        "state_at": row.state_at.isoformat(),
    }


def list_public_rows(queue: Queue, rows: list[SubmissionRow]) -> list[dict[str, Any]]:
    """Return the public view of submissions, with their positions in the queue."""
    standings = queue.standings()
    return [describe_publicly(row, standings.get(row.id)) for row in rows]


def list_queue_parts(queue: Queue) -> dict[str, list[dict[str, Any]]]:
    """Return submissions as the queue shows them: in progress, waiting in order, and the latest finished ones."""
    order = {id: number for number, id in enumerate(queue.standings())}
    rows = queue.all()
    waiting = [row for row in rows if row.state in ("queued", "received", "checked")]
    return {
        "working": list_public_rows(queue, [row for row in rows if row.state in LEASED]),
        "waiting": list_public_rows(
            queue, sorted(waiting, key=lambda row: (order.get(row.id, len(order)), row.number))
        ),
        "ended": list_public_rows(queue, [row for row in rows if row.state not in OPEN][:100]),
    }


def describe_steps(history: list[SubmissionHistory]) -> list[dict[str, Any]]:
    """Return the public facts about state changes as plain data, without workers' names."""
    return [
        {
            "state": step.after,
            "by": "worker" if _WORKER.fullmatch(step.made_by) else step.made_by,
            "attempt": step.attempt,
            "reason": redact(step.reason),
            "at": step.at.isoformat(),
        }
        for step in history
    ]


def describe_log(lines: Sequence[SubmissionLogLine]) -> dict[str, list[dict[str, Any]]]:
    """Return the workers' reports as plain data: `items` contains the last line about each item, and `log` contains all
    other lines.
    """
    described = [
        {"item": line.item, "text": redact(line.text), "attempt": line.attempt, "at": line.at.isoformat()}
        for line in lines
    ]
    return {
        "items": [line for line in described if line["item"]],
        "log": [line for line in described if not line["item"]],
    }


def describe_last(lines: Sequence[SubmissionLogLine]) -> str:
    """Return a worker's last report on one line; empty if there is none."""
    if not lines:
        return ""
    last = lines[-1]
    return redact(f"{last.item}: {last.text}" if last.item else last.text)


def sum_cost(jobs: Sequence[HubJob]) -> dict[str, float]:
    """Return the cost of a submission's jobs so far, in US dollars: `spent`, and `at_most` including running jobs."""
    spent = sum(job.spent or 0.0 for job in jobs)
    return {
        "spent": round(spent, 4),
        "at_most": round(spent + sum(job.reserved for job in jobs if job.spent is None), 4),
    }


def describe_hub_work(jobs: Sequence[HubJob], proposals: Sequence[HubProposal]) -> dict[str, Any]:
    """Return the public facts about a submission's jobs (including their cost) and its pull requests as plain data.

    `at_most` and `spent` are US dollars; `spent` is None while a job runs.
    """
    return {
        "jobs": [
            {
                "run": job.run,
                "machine": job.flavour,
                "minutes": job.minutes,
                "stage": job.stage,
                "at_most": round(job.reserved, 4),
                "spent": None if job.spent is None else round(job.spent, 4),
            }
            for job in jobs
        ],
        "cost": sum_cost(jobs),
        "proposals": [
            {"form": each.form, "state": each.state, "url": each.url, "reason": redact(each.reason)}
            for each in proposals
        ],
    }


class SubmissionLog:
    """The log of the submissions in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, submission: SubmissionRow, text: str, item: str = "") -> None:
        """Write a line unless the log is full.

        Args:
            submission: the submission in progress.
            text: a sentence without its final full stop.
            item: the item that the line concerns; the line replaces an earlier line about the same item.
        """
        now = datetime.now(UTC)

        def write(session: Session) -> None:
            of_this = SubmissionLogLine.submission == submission.id
            if item:
                same = select(SubmissionLogLine).where(of_this, SubmissionLogLine.item == item)
                earlier = session.scalars(same).first()
                if earlier is not None and earlier.text == text[:LONGEST]:
                    return
                session.execute(delete(SubmissionLogLine).where(of_this, SubmissionLogLine.item == item))
            last = session.scalar(select(func.max(SubmissionLogLine.number)).where(of_this)) or 0
            if last < MOST_LINES:
                line = {"attempt": submission.attempt, "item": item[:200], "text": text[:LONGEST], "at": now}
                session.add(SubmissionLogLine(submission=submission.id, number=last + 1, **line))

        self._database.write(write)

    def note_output(self, submission: SubmissionRow, item: str, output: Output | None) -> None:
        """Report that the output of an item, `<benchmark>/<split>/<item>`, exists, or why it does not exist."""
        if output is None:
            return
        if output.failed:
            self.note(submission, f"failed: {output.failed}", item)
            return
        length = f"{output.duration:.1f} s of audio" if output.duration else "made"
        spent = f", made in {output.wall_seconds:.1f} s" if output.wall_seconds else ""
        self.note(submission, f"{length}{spent}", item)

    def lines(self, id: str) -> list[SubmissionLogLine]:
        """List the lines of a submission, in order."""
        query = select(SubmissionLogLine).where(SubmissionLogLine.submission == id).order_by(SubmissionLogLine.number)
        return self._database.list_rows(query)


def delete_log(session: Session, id: str) -> None:
    """Delete the log of a submission, because the log may quote the submission's content."""
    session.execute(delete(SubmissionLogLine).where(SubmissionLogLine.submission == id))


SILENT_SECONDS = 300.0
"""Number of seconds without a sign of life from any worker after which no worker is considered alive."""


@dataclass(frozen=True)
class QueueHealth:
    """The state of a queue at one point in time.

    `waiting`: number of submissions that could be claimed. `waited`: the longest wait in seconds. `busy`: number of
    workers that hold a claim. `alive_at`: time of the last sign of life of any worker.
    """

    states: dict[str, int]
    waiting: int
    waited: float
    busy: int
    alive_at: datetime | None
    at: datetime

    @property
    def is_abandoned(self) -> bool:
        """Whether submissions are waiting and no worker is running."""
        silent = self.alive_at is None or (self.at - self.alive_at).total_seconds() > SILENT_SECONDS
        return self.waited > SILENT_SECONDS and silent


def read_health(session: Session, now: datetime) -> QueueHealth:
    """Return the number of waiting submissions, their waiting time, and the time of a worker's last sign of life."""
    counted = select(SubmissionRow.state, func.count()).group_by(SubmissionRow.state)
    ripe = (SubmissionRow.state == "queued", SubmissionRow.not_before <= now)
    states = dict.fromkeys(STATES, 0) | {state: count for state, count in session.execute(counted)}
    waiting, since = session.execute(select(func.count(), func.min(SubmissionRow.state_at)).where(*ripe)).one()
    leases = session.execute(select(Lease.worker, Lease.beat_at).where(Lease.expires_at > now)).all()
    seen = operator_settings.read_done(session, operator_settings.WORKER_SEEN)
    waited = (now - since).total_seconds() if since else 0.0
    beats = [beat for _, beat in leases] + ([seen] if seen else [])
    return QueueHealth(states, waiting, waited, len({worker for worker, _ in leases}), max(beats, default=None), now)


def note_life(database: Database, now: datetime) -> None:
    """Record that a worker is alive, even if it has nothing to do."""
    note = partial(operator_settings.note_done, name=operator_settings.WORKER_SEEN, now=now)
    database.write(note, about=operator_settings.WORKER_SEEN)
