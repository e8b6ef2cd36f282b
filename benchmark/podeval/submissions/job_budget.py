"""The budget of jobs on the Hub: the cost of a job is reserved before it starts and settled when it has ended.

The amounts are in the database, so a restarted worker, or another worker, knows how much has been spent and finds the
running job.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from podeval.errors import PodevalError
from podeval.runs.hf_jobs import HfJobs
from podeval.store.database import Database
from podeval.store.submission_tables import HubJob
from podeval.submissions.benchmark_entries import RunEntry, list_entries
from podeval.submissions.states import TAKEN_DOWN_IDS
from podeval.systems.submission import Model, Submission
from podeval.texts import write_sentence

if TYPE_CHECKING:
    from huggingface_hub import JobInfo

EMPTIED = "TAKEN DOWN"
"""Stage of a job whose results were deleted because its submission was taken down."""


class BudgetSpent(PodevalError):
    """A job could exceed the remaining budget, so it was not started. The submission is not at fault."""


class TooExpensive(PodevalError):
    """A single job could exceed the whole budget, so it was not started."""


@dataclass(frozen=True)
class Ledger:
    """All jobs recorded in a database, and their total budget in US dollars."""

    database: Database
    budget: float

    def reserve(self, submission: str, run: str, jobs: HfJobs, per_minute: float) -> HubJob:
        """Reserve the maximum cost of a run's next round; return the open round if there already is an open one.

        Raises:
            TooExpensive: the round could cost more than the whole budget.
            BudgetSpent: the round could exceed the remaining budget.
        """
        cost, now = jobs.at_most(per_minute), datetime.now(UTC)
        about = f"a job for {submission} could cost {cost:.2f} USD on {jobs.flavour} for {jobs.minutes} minutes"
        if cost > self.budget:
            raise TooExpensive(
                write_sentence(
                    "job-too-expensive",
                    id=submission,
                    machine=jobs.flavour,
                    minutes=jobs.minutes,
                    cost=f"{cost:.2f}",
                    budget=f"{self.budget:.2f}",
                )
            )

        def take(session: Session) -> HubJob:
            rounds = list(session.scalars(_rounds(submission, run)))
            if rounds and rounds[-1].ended_at is None:
                return rounds[-1]
            gone = _committed(session)
            if gone + cost > self.budget:
                advice = f"{gone:.2f} of {self.budget:.2f} USD are spent or reserved; raise the budget"
                raise BudgetSpent(f"{about}, and {advice}")
            row = HubJob(
                submission=submission,
                run=run,
                round=len(rounds) + 1,
                namespace=jobs.namespace,
                image=jobs.image,
                flavour=jobs.flavour,
                minutes=jobs.minutes,
                attempts=1,
                per_minute=per_minute,
                reserved=cost,
                asked_at=now,
            )
            session.add(row)
            session.flush()
            return row

        return self.database.write(take)

    def keep_job(self, row: HubJob, job: str) -> None:
        """Store the id of the job that was started for a round."""
        self._change(row, job=job, stage="RUNNING")

    def settle(self, row: HubJob, info: "JobInfo | None") -> None:
        """Settle the cost of a round, based on the running time that the Hub reports; `info` is None if no job was
        started.
        """
        spent, stage, message = 0.0, "NEVER STARTED", ""
        if info is not None:
            spent, stage, message = compute_cost(row, info), get_stage(info), info.status.message or ""
        self._change(row, stage=stage, message=message[:2_000], spent=spent, ended_at=datetime.now(UTC))

    def settle_lost(self, row: HubJob) -> None:
        """Settle a round at the reserved amount, because its job is lost."""
        self._change(row, stage="GONE", spent=row.reserved, ended_at=datetime.now(UTC))

    def rounds(self, submission: str, run: str) -> list[HubJob]:
        """List the rounds of a run, in order."""
        return self.database.list_rows(_rounds(submission, run))

    def of(self, submission: str) -> list[HubJob]:
        """List all jobs of a submission, in order."""
        query = select(HubJob).where(HubJob.submission == submission)
        return self.database.list_rows(query.order_by(HubJob.asked_at, HubJob.run, HubJob.round))

    def under_way(self) -> list[HubJob]:
        """List the jobs that are not settled."""
        return self.database.list_rows(select(HubJob).where(HubJob.ended_at.is_(None)).order_by(HubJob.asked_at))

    def list_taken_down(self, namespace: str) -> list[str]:
        """List taken-down submissions whose jobs in a namespace have ended and may have left results."""
        with_rest = (HubJob.submission.in_(TAKEN_DOWN_IDS), HubJob.namespace == namespace, HubJob.stage != EMPTIED)
        under_way = {row.submission for row in self.under_way()}
        return sorted(set(self.database.list_rows(select(HubJob.submission).where(*with_rest))) - under_way)

    def keep_emptied(self, submission: str) -> None:
        """Record that a submission's jobs have no results left, and delete their last messages."""
        for row in self.of(submission):
            self._change(row, stage=EMPTIED, message="")

    def committed(self) -> float:
        """Return the amount in US dollars that has been spent or is reserved for running jobs."""
        return self.database.read(_committed)

    def _change(self, row: HubJob, **values: Any) -> None:
        def change(session: Session) -> None:
            kept = session.get_one(HubJob, (row.submission, row.run, row.round))
            for name, value in values.items():
                setattr(kept, name, value)

        self.database.write(change)


def estimate_costs(document: Submission, jobs: HfJobs) -> dict[RunEntry, float]:
    """Estimate the maximum cost in US dollars of each run of a submission, at the Hub's current prices.

    A run costs at most this much if no job crashes. If the source is not a model, there are no jobs and no costs.

    Raises:
        BadInput: no machine has this name.
        HubUnavailable: the Hub does not answer.
    """
    if not isinstance(document.source, Model):
        return {}
    return dict.fromkeys(list_entries(document), jobs.at_most(jobs.per_minute()))


def compute_cost(row: HubJob, info: "JobInfo") -> float:
    """Compute the cost of a finished job from its running time; if that is unknown, return the reserved amount."""
    ran = info.durations.running_secs if info.durations else None
    return row.reserved if ran is None else min(row.reserved, row.per_minute * ran / 60)


def get_stage(job: "JobInfo") -> str:
    """Return the stage of a job, under the Hub's name for the stage."""
    return str(getattr(job.status.stage, "value", job.status.stage))


def _rounds(submission: str, run: str) -> Select[HubJob]:
    return select(HubJob).where(HubJob.submission == submission, HubJob.run == run).order_by(HubJob.round)


def _committed(session: Session) -> float:
    return float(session.scalar(select(func.sum(func.coalesce(HubJob.spent, HubJob.reserved)))) or 0.0)
