"""Quotas of owners, and what counts as the same submission; both are checked in the transaction that stores it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.store.operator_settings import TAKEN_DOWN, OperatorAction
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.rules import SubmissionRefused, write_refusal
from podeval.submissions.states import OPEN
from podeval.submissions.supplied_outputs import hash_folder


@dataclass(frozen=True)
class Policy:
    """The settings of the queue that an operator can change.

    Attributes:
        lease_seconds: a worker that is silent for so long is considered dead.
        failures_allowed: claims in a row that end without a finished item, before the submission is given up.
        pause_seconds: pause before it is tried again after the first, doubled with each.
        open_per_owner: submissions of one owner under way.
        day_per_owner: submissions of one owner in 24 hours.
        most_waiting: submissions of all owners under way.
    """

    lease_seconds: float = 120.0
    failures_allowed: int = 3
    pause_seconds: float = 30.0
    open_per_owner: int = 5
    day_per_owner: int = 10
    most_waiting: int = 500


def digest(document: Mapping[str, Any], profile: str, document_folder: str = "") -> str:
    """Compute the SHA-256 of what would be run and measured, whoever submits it and whatever its name.

    A supplied folder counts by its content, so that the same recordings are the same under another name of the folder
    or the system, and changed ones are another submission.

    Args:
        document: a valid document, as plain data.
        profile: profile whose models measure it.
        document_folder: folder of the document, where it names a folder beside it.
    """
    source = {key: value for key, value in document["source"].items() if key not in ("base", "publish", "made_by")}
    content = _content(source, document_folder)
    if content:
        source |= {"folder": None, "content": content}
    elif not source.get("repo"):
        source["system"] = document["system"]["id"]
    parts = [source, sorted(json.dumps(entry, sort_keys=True) for entry in document["benchmarks"]), profile]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _content(source: Mapping[str, Any], document_folder: str) -> str:
    """Return the digest of a supplied folder; empty if there is none that passes the gate."""
    if not document_folder or not source.get("folder"):
        return ""
    try:
        return hash_folder(Path(document_folder) / source["folder"])
    except (SubmissionRefused, OSError):
        return ""


def refuse_duplicate(session: Session, mark: str, system: str, owner: str) -> None:
    """Refuse a submission that exists already or was taken down, and a system id that is someone else's or busy.

    Raises:
        SubmissionRefused: by the rule `duplicate`.
    """
    query = select(SubmissionRow).where(SubmissionRow.state.in_((*OPEN, "published"))).limit(1)
    if (other := session.scalars(query.where(SubmissionRow.digest == mark)).first()) is not None:
        code = "same-folder-submitted" if other.document["source"].get("folder") else "same-submitted"
        raise SubmissionRefused(write_refusal("duplicate", code, state=other.state, id=other.id))
    gone = (
        select(OperatorAction.reason)
        .join(SubmissionRow, SubmissionRow.id == OperatorAction.subject)
        .where(OperatorAction.action == TAKEN_DOWN, SubmissionRow.digest == mark)
    )
    if (reason := session.scalars(gone.limit(1)).first()) is not None:
        raise SubmissionRefused(write_refusal("duplicate", "same-taken-down", why=reason))
    same_system = query.where(SubmissionRow.system == system)
    if (other := session.scalars(same_system.where(SubmissionRow.owner != owner)).first()) is not None:
        raise SubmissionRefused(write_refusal("duplicate", "id-of-another", system=system, owner=other.owner))
    if (other := session.scalars(same_system.where(SubmissionRow.state.in_(OPEN))).first()) is not None:
        raise SubmissionRefused(write_refusal("duplicate", "system-under-way", id=other.id, state=other.state))


def refuse_too_many(session: Session, owner: str, now: datetime, policy: Policy) -> None:
    """Refuse a submission that exceeds a quota.

    Raises:
        SubmissionRefused: by the rule `quota`.
    """
    count = select(func.count()).select_from(SubmissionRow)
    under_way = session.scalar(count.where(SubmissionRow.state.in_(OPEN))) or 0
    of_owner = count.where(SubmissionRow.owner == owner)
    busy = session.scalar(of_owner.where(SubmissionRow.state.in_(OPEN))) or 0
    day = SubmissionRow.submitted_at.between(now - timedelta(hours=24), now)
    recent = session.scalar(of_owner.where(day)) or 0
    if busy >= policy.open_per_owner:
        raise SubmissionRefused(write_refusal("quota", "too-many-under-way", owner=owner, count=busy))
    if recent >= policy.day_per_owner:
        raise SubmissionRefused(write_refusal("quota", "too-many-today", owner=owner, count=recent))
    if under_way >= policy.most_waiting:
        raise SubmissionRefused(write_refusal("quota", "queue-full", count=under_way))
