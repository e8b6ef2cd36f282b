"""What of a submission everybody may see: no secrets, no addresses of people, no folders or names of our machines."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from podeval.store.submission_tables import HubJob, HubProposal, SubmissionHistory, SubmissionRow
from podeval.submissions.queue import QueuePosition, waits_for_operator

_HIDDEN = (
    (re.compile(r"\b(?:hf|sk|gh[pousr]|github_pat|glpat|xox[abp])[_-][A-Za-z0-9_-]{8,}"), "[secret]"),
    (re.compile(r"\bbearer\s+\S+", re.IGNORECASE), "[secret]"),
    (
        re.compile(r"\b((?:api[_-]?key|token|password|secret)\w*)\s*[=:]\s*[\"']?[^\s\"',;]+", re.IGNORECASE),
        r"\1=[secret]",
    ),
    (re.compile(r"(\w://)[^\s/@]+@"), r"\1"),
    (re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"), "[address]"),
    (re.compile(r"(?<![\w/:.])/(?:[\w.+@-]+/)+([\w.+@-]+)"), r"…/\1"),
    (re.compile(r"\bworker [^\s:]+:\d+"), "worker"),
)
_WORKER = re.compile(r"[^\s:]+:\d+")
_MOST = 4_000


def said(text: str) -> str:
    """A text without what only its writer or this machine should know, at most 4000 characters of it."""
    text = text[: 2 * _MOST]
    for pattern, instead in _HIDDEN:
        text = pattern.sub(instead, text)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def plainly(line: str) -> str:
    """A line of a stranger's log, without secrets and without what a terminal would obey."""
    shown = "".join(c if c == "\t" or unicodedata.category(c)[0] != "C" else " " for c in line[:8_000])
    return said(shown).rstrip()


def public(row: SubmissionRow, standing: QueuePosition | None = None) -> dict[str, Any]:
    """A submission as plain data for everybody.

    Args:
        row: which.
        standing: where it stands in the queue, if it is there.
    """
    document = row.document
    pinned = row.pinned or {}
    source = document["source"]
    return {
        "id": row.id,
        "owner": row.owner,
        "owner_proven": row.owner_proven,
        "system": row.system,
        "name": said(document["system"]["name"]),
        "kind": row.kind,
        "task": source.get("task") or "",
        "repo": source.get("repo") or "",
        "revision": source.get("revision") or "",
        "licence": document["system"]["licence"],
        "benchmarks": [{"name": part["name"], "tracks": list(part["tracks"])} for part in document["benchmarks"]],
        "profile": row.profile,
        "parameters": pinned.get("parameters") or None,
        "state": row.state,
        "rule": row.rule,
        "reason": said(row.reason),
        "waits_for_operator": waits_for_operator(row),
        "attempt": row.attempt,
        "items_done": row.items_done,
        "items_total": row.items_total,
        "position": standing.position if standing else None,
        "seconds_left": standing.seconds if standing else None,
        "submitted_at": row.submitted_at.isoformat(),
        "state_at": row.state_at.isoformat(),
    }


def steps(history: list[SubmissionHistory]) -> list[dict[str, Any]]:
    """Changes of state as plain data for everybody; workers have no names."""
    return [
        {
            "state": step.after,
            "by": "worker" if _WORKER.fullmatch(step.made_by) else step.made_by,
            "attempt": step.attempt,
            "reason": said(step.reason),
            "at": step.at.isoformat(),
        }
        for step in history
    ]


def on_the_hub(jobs: Sequence[HubJob], proposals: Sequence[HubProposal]) -> dict[str, Any]:
    """What is done for a submission on the Hub as plain data for everybody: jobs with their cost, pull requests.

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
            {"form": each.form, "state": each.state, "url": each.url, "reason": said(each.reason)} for each in proposals
        ],
    }
