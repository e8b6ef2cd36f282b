"""Operators' settings and decisions: settings that survive a restart, and an append-only trail of all decisions.

A decision is recorded in the transaction that carries it out, so neither exists without the other.
"""

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Integer, String, Text, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from podeval.errors import BadInput
from podeval.store.tables import ArenaOutput, TableBase

VOTES, SUBMISSIONS = "votes", "submissions"
FREEZABLE = (VOTES, SUBMISSIONS)
"""Activities that an operator can freeze."""

LONGEST_REASON = 1_000
"""Maximum length of a decision's reason, in characters."""

TAKEN_DOWN = "submission taken down"
"""The action after which the same submission is not accepted again."""

CLOSED_DIMENSIONS = "arena.closed dimensions"
VOTES_GOAL = "arena.votes goal"
_FROZEN = "frozen."
_PROBE, _PROBE_BYTES = "service.write probe", 8_192
CHECK_VALUE = "secret.check value"
SWEPT, BACKED_UP, WORKER_SEEN = "arena.last sweep", "service.last backup", "worker.last seen"
"""Names of the settings that store the times of the last sweep, the last backup and a worker's last sign of life.
"""


class OperatorSetting(TableBase):
    """A setting that an operator changed; all others have podeval's defaults."""

    __tablename__ = "operator_settings"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    value: Mapped[Any] = mapped_column(JSON, nullable=False)
    changed_by: Mapped[str] = mapped_column(String(100))
    changed_at: Mapped[datetime]


class OperatorAction(TableBase):
    """A decision by an operator; decisions are never changed or removed."""

    __tablename__ = "operator_actions"

    number: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    """Number that increases with each decision."""
    id: Mapped[str] = mapped_column(String(32), unique=True)
    action: Mapped[str] = mapped_column(String(40), index=True)
    subject: Mapped[str] = mapped_column(String(300))
    """Subject of the decision: the id of a vote, session, voter or submission; the name of a system, dimension or
    setting."""
    reason: Mapped[str] = mapped_column(Text, default="")
    made_by: Mapped[str] = mapped_column(String(100))
    made_at: Mapped[datetime]


_ALL_FROZEN = select(OperatorSetting.name, OperatorSetting.value).where(
    OperatorSetting.name.in_([_FROZEN + what for what in FREEZABLE])
)


def validate_reason(reason: str) -> str:
    """Return the reason for a decision on one line.

    Raises:
        BadInput: there is no reason, or it is too long.
    """
    reason = " ".join(reason.split())
    if not reason:
        raise BadInput("give a reason, which is stored with the decision")
    if len(reason) > LONGEST_REASON:
        raise BadInput(f"the reason is {len(reason)} characters long; at most {LONGEST_REASON} are allowed")
    return reason


def note(session: Session, action: str, subject: str, reason: str, by: str, now: datetime) -> None:
    """Add a decision to the trail; the session must be a write session."""
    session.add(
        OperatorAction(
            id=secrets.token_hex(16),
            action=action,
            subject=subject[:300],
            reason=reason,
            made_by=by[:100],
            made_at=now,
        )
    )


def retire(session: Session, outputs: Iterable[str], reason: str, now: datetime) -> None:
    """Exclude arena outputs from new battles, with `rules` as the author. The session must be a write session."""
    for output in session.scalars(select(ArenaOutput).where(ArenaOutput.id.in_(list(outputs)))):
        if output.active or output.audio:
            note(session, "output retired", f"{output.system} on {output.item}", reason, "rules", now)
            output.active, output.audio = False, ""


def read_trail(session: Session, *, newest: int = 100) -> list[OperatorAction]:
    """Read the latest decisions, newest first."""
    return list(session.scalars(select(OperatorAction).order_by(OperatorAction.number.desc()).limit(newest)))


def read_frozen(session: Session) -> dict[str, str]:
    """Return the frozen activities, each with the operator's public explanation."""
    rows = session.execute(_ALL_FROZEN)
    return {name.removeprefix(_FROZEN): str(value) for name, value in rows if value}


def freeze(session: Session, what: str, sentence: str, by: str, now: datetime) -> None:
    """Freeze an activity with a public explanation; an empty explanation unfreezes it."""
    keep_setting(session, _FROZEN + what, sentence, by, now)


def read_closed_dimensions(session: Session) -> frozenset[str]:
    """Return the dimensions on which the arena does not create new battles."""
    return frozenset(map(str, _value(session, CLOSED_DIMENSIONS) or ()))


def read_votes_goal(session: Session) -> int | None:
    """Return the operator's target number of counted votes on each dimension; None if no goal is set."""
    return int(votes) if (votes := _value(session, VOTES_GOAL)) else None


def read_secret_check(session: Session) -> str | None:
    """Return the check value of the service's secret; None if none is stored yet."""
    return str(value) if (value := _value(session, CHECK_VALUE)) else None


def set_probe(session: Session, now: datetime) -> None:
    """Write about as much data as a vote contains, to test whether the database can be written to."""
    keep_setting(session, _PROBE, now.isoformat().ljust(_PROBE_BYTES), "podeval", now)


def note_done(session: Session, name: str, now: datetime) -> None:
    """Store the time when an action, such as the sweep (`SWEPT`), was last performed."""
    keep_setting(session, name, now.isoformat(), "podeval", now)


def read_done(session: Session, name: str) -> datetime | None:
    """Return the time when an action was last performed; None if it never was."""
    return datetime.fromisoformat(str(value)) if (value := _value(session, name)) else None


def measure_drift(session: Session, now: datetime) -> float:
    """Return how many seconds a time is ahead of the database's clock (for a file, this machine's clock)."""
    moment = session.scalars(select(func.now())).one()
    return (now - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))).total_seconds()


def _value(session: Session, name: str) -> Any:
    return row.value if (row := session.get(OperatorSetting, name)) else None


def keep_setting(session: Session, name: str, value: Any, by: str, now: datetime) -> None:
    """Store a setting under its name, replacing any earlier value."""
    session.merge(OperatorSetting(name=name, value=value, changed_by=by[:100], changed_at=now))
