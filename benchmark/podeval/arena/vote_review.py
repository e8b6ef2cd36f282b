"""Apply the rules of integrity to the votes, keep what they exclude so that it can be restored, and raise alarms.

No rule overrules a person's decision. Every signal and every decision is kept as a row of `flags`.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pandas as pd
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.matchmaking import read_spans
from podeval.arena.settings import ArenaSettings
from podeval.arena.vote_integrity import COLUMNS, RuleFindings, list_alarms
from podeval.errors import BadInput
from podeval.store import operator_settings
from podeval.store.tables import ArenaOutput, ArenaSystem, Battle, Flag, Vote

RULES = "rules"
"""Author of a decision that no person made."""

_OTHER_SIDE = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class VoteReview:
    """The changes made by one review of all votes."""

    votes: int
    excluded: list[str]
    restored: list[str]
    signals: int
    """Number of new signals."""
    alarms: list[str]


@dataclass(frozen=True)
class Counts:
    """The number of battles, and of votes by their outcome."""

    battles: int
    outcomes: dict[str, int]

    @property
    def votes(self) -> int:
        """Number of all recorded votes."""
        return sum(self.outcomes.values())


@dataclass(frozen=True)
class Status(Counts):
    """The present state of the arena."""

    systems: int
    items: int
    voters: int
    excluded: int
    excluded_by_people: int
    alarms: list[str]


def read_evidence(session: Session, settings: ArenaSettings) -> pd.DataFrame:
    """Read all votes in the form the rules take them, with `vote_integrity.COLUMNS`."""
    first, first_vote = aliased(Battle), aliased(Vote)
    a, b, system_a, system_b = aliased(ArenaOutput), aliased(ArenaOutput), aliased(ArenaSystem), aliased(ArenaSystem)
    query = (
        select(Vote, Battle, system_a.id, system_b.id, system_a.kind, system_b.kind, first_vote.outcome)
        .join(Battle, Vote.battle == Battle.id)
        .join(a, Battle.output_a == a.id)
        .join(b, Battle.output_b == b.id)
        .join(system_a, a.system == system_a.id)
        .join(system_b, b.system == system_b.id)
        .outerjoin(first, Battle.repeats == first.id)
        .outerjoin(first_vote, first_vote.battle == first.id)
        .order_by(Vote.number)
    )
    rows = []
    for vote, battle, name_a, name_b, kind_a, kind_b, before in session.execute(query).yield_per(10_000):
        lengths = [end - begin for begin, end in read_spans(battle)]
        needed_seconds = [settings.asked_seconds(length, battle.protocol) for length in lengths]
        heard_shares = [
            min(1.0, seconds / least) if least > 0 else 1.0
            for seconds, least in zip((vote.heard_seconds_a, vote.heard_seconds_b), needed_seconds, strict=True)
        ]
        rows.append({
            "vote": vote.id,
            "voter": vote.voter,
            "origin": vote.origin,
            "at": vote.recorded_at.timestamp(),
            "elapsed": float("nan") if vote.elapsed is None else vote.elapsed,
            "needed": settings.needed_seconds(lengths[0], lengths[1], battle.protocol),
            "heard": min(heard_shares),
            "outcome": vote.outcome,
            "a": name_a,
            "b": name_b,
            "dimension": battle.dimension,
            "comment": vote.comment,
            "gold": _known_answer(vote.outcome, before, kind_a == "control", kind_b == "control"),
            "counts": battle.purpose == "rating" and vote.outcome != "skip",
        })  # fmt: skip
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = {"at": float, "elapsed": float, "needed": float, "heard": float, "gold": float, "counts": bool}
    return table.astype(numbers)


def _known_answer(outcome: str, before: str | None, control_a: bool, control_b: bool) -> float:
    """Return 1 where the known answer was given, 0 where its opposite was, NaN where no answer is known.

    Known answers are the voter's own earlier choice, where the battle repeats one with its sides exchanged, and that a
    control is worse than what is not a control.
    """
    if outcome not in _OTHER_SIDE:
        return float("nan")
    if before in _OTHER_SIDE:
        return float(outcome == _OTHER_SIDE[before])
    if before is None and control_a != control_b:
        return float(outcome == ("b" if control_a else "a"))
    return float("nan")


def apply(session: Session, findings: RuleFindings, settings: ArenaSettings, now: datetime) -> VoteReview:
    """Give votes the standing that the rules' findings ask for; the session must be a writing one."""
    standings = select(Vote.id, Vote.standing, Vote.standing_by)
    decisions = {vote: (standing, by) for vote, standing, by in session.execute(standings)}
    by_rules = {vote: standing for vote, (standing, by) in decisions.items() if by in ("", RULES)}
    out = [vote for vote, standing in by_rules.items() if standing == "counted" and vote in findings.excluded]
    back = [vote for vote, standing in by_rules.items() if standing == "excluded" and vote not in findings.excluded]
    flagged = {tuple(row) for row in session.execute(select(Flag.vote, Flag.rule).where(Flag.kind == "signal"))}
    signals = [
        Flag(
            id=secrets.token_hex(16), vote=vote, kind="signal", rule=rule, points=points, detail=detail,
            made_by=RULES, made_at=now,
        )
        for vote, rule, points, detail in findings.signals.itertuples(index=False, name=None)
        if vote in decisions and (vote, rule) not in flagged
    ]  # fmt: skip
    session.add_all(signals)
    for vote in _votes(session, out):
        decide(session, vote, "excluded", findings.excluded[vote.id], RULES, now)
    for vote in _votes(session, back):
        decide(session, vote, "counted", "the rules see nothing in it any more", RULES, now)
    session.flush()
    return VoteReview(len(decisions), out, back, len(signals), report_status(session, settings).alarms)


def _votes(session: Session, ids: list[str]) -> Iterable[Vote]:
    for start in range(0, len(ids), 500):
        yield from session.scalars(select(Vote).where(Vote.id.in_(ids[start : start + 500])))


def decide(session: Session, vote: Vote, standing: str, reason: str, by: str, now: datetime) -> None:
    """Set the standing of a vote, and record who decided and why."""
    vote.standing, vote.standing_reason, vote.standing_by = standing, reason, by
    session.add(Flag(id=secrets.token_hex(16), vote=vote.id, kind=standing, detail=reason, made_by=by, made_at=now))


def decide_by_hand(session: Session, vote_id: str, standing: str, reason: str, by: str, now: datetime) -> Vote:
    """Set the standing of a vote by a person's decision, which the rules do not overrule.

    Raises:
        BadInput: there is no such vote, or no reason or name is given.
    """
    if not reason.strip() or not by.strip() or by.strip() == RULES:
        raise BadInput("a decision needs a reason and the name of the person who makes it")
    vote = session.scalar(select(Vote).where(Vote.id == vote_id))
    if vote is None:
        raise BadInput(f"there is no vote {vote_id}; `podeval arena flags` lists those that were flagged")
    decide(session, vote, standing, reason.strip(), by.strip(), now)
    operator_settings.note(session, f"vote {standing}", vote.id, reason.strip(), by.strip(), now)
    return vote


def list_flags(session: Session, *, vote: str | None = None, newest: int = 100) -> list[Flag]:
    """Return the newest signals and decisions, newest first; only those of one vote where it is given."""
    query = select(Flag).where(Flag.vote.is_not(None)).order_by(Flag.number.desc()).limit(newest)
    return list(session.scalars(query if vote is None else query.where(Flag.vote == vote)))


def count_votes(session: Session) -> Counts:
    """Count battles and votes."""
    by_outcome = select(Vote.outcome, func.count()).group_by(Vote.outcome)
    return Counts(
        battles=session.scalar(select(func.count()).select_from(Battle)) or 0,
        outcomes={outcome: count for outcome, count in session.execute(by_outcome)},
    )


def report_status(session: Session, settings: ArenaSettings) -> Status:
    """Return the counts, and the current alarms."""
    counted = count_votes(session)
    excluded = (
        select(Vote.id, Vote.recorded_at, Vote.standing, Vote.standing_by)
        .join(Battle, Vote.battle == Battle.id)
        .where(Battle.purpose == "rating", Vote.outcome != "skip")
    )
    rows = session.execute(excluded).all()
    table = pd.DataFrame({
        "vote": [row.id for row in rows],
        "at": [row.recorded_at.timestamp() for row in rows],
        "counts": True,
    })  # fmt: skip
    out = {row.id for row in rows if row.standing == "excluded"}
    return Status(
        systems=session.scalar(select(func.count()).select_from(ArenaSystem)) or 0,
        items=session.scalar(select(func.count(func.distinct(ArenaOutput.item)))) or 0,
        battles=counted.battles,
        outcomes=counted.outcomes,
        voters=session.scalar(select(func.count(func.distinct(Vote.voter)))) or 0,
        excluded=len(out),
        excluded_by_people=sum(row.standing_by not in ("", RULES) for row in rows if row.id in out),
        alarms=list_alarms(table, out, settings.limits),
    )
