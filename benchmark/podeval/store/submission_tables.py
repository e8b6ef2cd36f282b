"""The tables of submissions: the requests, their states, their histories, and their workers."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Float, ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from podeval.store.tables import TableBase

STATES = (
    "received",
    "checked",
    "queued",
    "running",
    "measured",
    "published",
    "refused",
    "failed",
    "cancelled",
    "withdrawn",
)
"""The successful states in order, then the final states after a failure."""

_STATES = ", ".join(f"'{state}'" for state in STATES)


class SubmissionRow(TableBase):
    """One submission and its state; the state is recorded only here and changed only by guarded updates."""

    __tablename__ = "submissions"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, unique=True)
    """Number in order of arrival, starting at 1."""
    owner: Mapped[str] = mapped_column(String(100), index=True)
    """Submitter: a Hub user or organisation, or `operator`."""
    owner_proven: Mapped[bool] = mapped_column(default=False)
    """Whether the submitter has proved that they own the model repo."""
    system: Mapped[str] = mapped_column(String(64), index=True)
    kind: Mapped[str] = mapped_column(String(20))
    digest: Mapped[str] = mapped_column(String(64), index=True)
    """SHA-256 of the model or files to run: two submissions with the same digest are duplicates."""
    document: Mapped[dict[str, Any]]
    place: Mapped[str] = mapped_column(Text, default="")
    """Folder of the document, if it was submitted with files next to it."""
    profile: Mapped[str] = mapped_column(String(20), default="embedded")
    pinned: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Findings of the gate: commits, sizes, licence, base."""
    state: Mapped[str] = mapped_column(String(20), index=True)
    rule: Mapped[str] = mapped_column(String(40), default="")
    """The gate rule that refused the submission."""
    reason: Mapped[str] = mapped_column(Text, default="")
    """The reason why the submission was stopped, worded so that a person can act on it."""
    priority: Mapped[int] = mapped_column(Integer, default=0)
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    """Number of claims so far; every change that a worker makes names the attempt."""
    failures: Mapped[int] = mapped_column(Integer, default=0)
    """Number of claims that were interrupted."""
    items_done: Mapped[int] = mapped_column(Integer, default=0)
    items_total: Mapped[int] = mapped_column(Integer, default=0)
    not_before: Mapped[datetime]
    """Earliest time for the next claim."""
    submitted_at: Mapped[datetime]
    state_at: Mapped[datetime]
    worked_seconds: Mapped[float] = mapped_column(Float, default=0.0)
    """Seconds of work over all claims."""

    __table_args__ = (
        CheckConstraint(f"state in ({_STATES})", name="state"),
        CheckConstraint("attempt >= 0 and failures >= 0", name="attempts"),
        Index("ix_submissions_state_priority_number", "state", "priority", "number"),
    )


class _OfSubmission:
    """The first key column of the tables whose rows belong to one submission."""

    submission: Mapped[str] = mapped_column(ForeignKey("submissions.id"), primary_key=True, sort_order=-1)


class SubmissionHistory(_OfSubmission, TableBase):
    """A state change; these rows are never modified or removed."""

    __tablename__ = "submission_history"

    step: Mapped[int] = mapped_column(Integer, primary_key=True)
    """Number of the change, counted from 1 without gaps."""
    before: Mapped[str] = mapped_column(String(20))
    """The previous state; empty for the first."""
    after: Mapped[str] = mapped_column(String(20))
    attempt: Mapped[int] = mapped_column(Integer)
    made_by: Mapped[str] = mapped_column(String(100))
    reason: Mapped[str] = mapped_column(Text, default="")
    at: Mapped[datetime]


class SubmissionLogLine(_OfSubmission, TableBase):
    """A line of a worker's reports on a submission; only the last line for each item is kept."""

    __tablename__ = "submission_log"

    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    """Increasing number; there are gaps if items were generated again."""
    attempt: Mapped[int] = mapped_column(Integer)
    item: Mapped[str] = mapped_column(String(200), default="")
    """`<benchmark>/<split>/<item>`; empty if a line is about the whole submission."""
    text: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]


class Lease(_OfSubmission, TableBase):
    """A worker's claim on a submission and when it expires; at most one per submission."""

    __tablename__ = "leases"

    attempt: Mapped[int] = mapped_column(Integer)
    worker: Mapped[str] = mapped_column(String(100))
    taken_at: Mapped[datetime]
    beat_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class HubJob(_OfSubmission, TableBase):
    """One job on the Hub that generates outputs for a submission; its maximum cost is reserved before it starts."""

    __tablename__ = "hub_jobs"

    run: Mapped[str] = mapped_column(String(200), primary_key=True)
    """`<benchmark>/<split>`."""
    round: Mapped[int] = mapped_column(Integer, primary_key=True)
    """Number of the round, starting at 1; a new round begins if one ends before everything has been generated."""
    job: Mapped[str] = mapped_column(String(100), default="")
    """Id of the job on the Hub; empty until the Hub has returned it."""
    namespace: Mapped[str] = mapped_column(String(100))
    """The account that pays."""
    image: Mapped[str] = mapped_column(String(300))
    flavour: Mapped[str] = mapped_column(String(60))
    minutes: Mapped[int] = mapped_column(Integer)
    attempts: Mapped[int] = mapped_column(Integer)
    per_minute: Mapped[float] = mapped_column(Float)
    """Price in US dollars per minute when the job was requested."""
    reserved: Mapped[float] = mapped_column(Float)
    """Maximum cost in US dollars."""
    spent: Mapped[float | None] = mapped_column(Float, default=None)
    """Actual cost in US dollars; known once the job has ended."""
    stage: Mapped[str] = mapped_column(String(20), default="asked")
    """Stage, in the Hub's terms and in capitals; `asked` until the Hub reports a stage."""
    message: Mapped[str] = mapped_column(Text, default="")
    asked_at: Mapped[datetime]
    ended_at: Mapped[datetime | None] = mapped_column(default=None)

    __table_args__ = (CheckConstraint("reserved >= 0 and (spent is null or spent >= 0)", name="money"),)


class HubProposal(_OfSubmission, TableBase):
    """Results of a submission, proposed to its model's repo; there is at most one pull request of each form."""

    __tablename__ = "hub_proposals"

    form: Mapped[str] = mapped_column(String(20), primary_key=True)
    """`eval_results` or `model_index`."""
    state: Mapped[str] = mapped_column(String(20))
    url: Mapped[str] = mapped_column(Text, default="")
    digest: Mapped[str] = mapped_column(String(64), default="")
    """SHA-256 of the proposed content."""
    reason: Mapped[str] = mapped_column(Text, default="")
    at: Mapped[datetime]

    __table_args__ = (CheckConstraint("state in ('waiting', 'open', 'there', 'refused')", name="state"),)
