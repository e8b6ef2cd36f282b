"""The public part of a submission: no secrets, no addresses of people, no folders or names of the board's machines."""

import re
from collections.abc import Sequence
from typing import Any

from podeval.store.submission_tables import HubJob, HubProposal, SubmissionHistory, SubmissionRow
from podeval.submissions.queue_order import QueuePosition
from podeval.submissions.states import waits_for_operator
from podeval.text.redaction import redact

_WORKER = re.compile(r"[^\s:]+:\d+")


def describe_publicly(row: SubmissionRow, standing: QueuePosition | None = None) -> dict[str, Any]:
    """Return the public facts of a submission as plain data.

    Args:
        row: the submission.
        standing: its position in the queue, if it is there.
    """
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
        "waits_for_operator": waits_for_operator(row),
        "attempt": row.attempt,
        "items_done": row.items_done,
        "items_total": row.items_total,
        "position": standing.position if standing else None,
        "seconds_left": standing.seconds if standing else None,
        "submitted_at": row.submitted_at.isoformat(),
        "state_at": row.state_at.isoformat(),
    }


def describe_steps(history: list[SubmissionHistory]) -> list[dict[str, Any]]:
    """Return the public facts of changes of state as plain data; workers' names are left out."""
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


def describe_hub_work(jobs: Sequence[HubJob], proposals: Sequence[HubProposal]) -> dict[str, Any]:
    """Return the public facts of a submission's jobs, with their cost, and of its pull requests as plain data.

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
        "proposals": [
            {"form": each.form, "state": each.state, "url": each.url, "reason": redact(each.reason)}
            for each in proposals
        ],
    }
