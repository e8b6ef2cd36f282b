"""Apply the integrity rules to the votes, record exclusions so that they can be reverted, and raise alarms.

Rules never overrule a person's decision. Every signal and decision is stored as a row of `flags`.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.excerpt_choice import read_spans
from podeval.arena.settings import ArenaSettings
from podeval.arena.vote_integrity import COLUMNS, RuleFindings, describe_alarms
from podeval.errors import BadInput
from podeval.store import operator_settings, vote_counts
from podeval.store.tables import OUTCOMES, ArenaOutput, ArenaSystem, Battle, Flag, Vote

RULES = "rules"
"""Author of decisions that are made by the rules, not by a person."""

_NOT_SEEN = "no rule excludes this vote any longer"
AT_ONCE = 20
"""Maximum number of votes changed in one transaction, so that voters wait at most a few hundredths of a second."""

_OTHER_SIDE = {"a": "b", "b": "a"}
_EVIDENCE = ("vote", "voter", "origin", "outcome", "a", "b", "dimension", "comment")
"""Columns of the rules' table that are read from the database unchanged."""
_IS_RATING = select(Battle.id).where(Battle.id == Vote.battle, vote_counts.RATED[0]).exists()
"""Condition that a vote's battle does not repeat another; this is faster than a join, which would start from all
battles.
"""


@dataclass(frozen=True)
class VoteReview:
    """The changes from one review of all votes."""

    votes: int
    excluded: list[str]
    restored: list[str]
    signals: int
    """Number of new signals."""
    alarms: list[str]


@dataclass(frozen=True)
class Counts:
    """The number of battles, and the numbers of votes by outcome."""

    battles: int
    outcomes: dict[str, int]

    @property
    def votes(self) -> int:
        """Number of all recorded votes."""
        return sum(self.outcomes.values())


@dataclass(frozen=True)
class Status(Counts):
    """The current state of the arena."""

    systems: int
    items: int
    voters: int
    excluded: int
    excluded_by_people: int
    alarms: list[str]


def read_evidence(session: Session, settings: ArenaSettings) -> pd.DataFrame:
    """Read all votes in the form that the rules need, with `vote_integrity.COLUMNS`."""
    first, first_vote = aliased(Battle), aliased(Vote)
    a, b, system_a, system_b = aliased(ArenaOutput), aliased(ArenaOutput), aliased(ArenaSystem), aliased(ArenaSystem)
    columns = (
        Vote.id.label("vote"), Vote.voter, Vote.origin, Vote.recorded_at, Vote.elapsed, Vote.outcome, Vote.comment,
        Vote.heard_seconds_a, Vote.heard_seconds_b, Battle.excerpt, Battle.protocol, Battle.dimension, Battle.purpose,
        a.system.label("a"), b.system.label("b"), system_a.kind.label("kind_a"), system_b.kind.label("kind_b"),
        first_vote.outcome.label("before"),
    )  # fmt: skip
    query = (
        select(*columns)
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
    for vote in session.execute(query).yield_per(10_000):
        lengths = [end - begin for begin, end in read_spans(vote)]
        needed_seconds = [settings.asked_seconds(length, vote.protocol) for length in lengths]
        heard_shares = [
            min(1.0, seconds / least) if least > 0 else 1.0
            for seconds, least in zip((vote.heard_seconds_a, vote.heard_seconds_b), needed_seconds, strict=True)
        ]
        rows.append({
            **{name: getattr(vote, name) for name in _EVIDENCE},
            "at": vote.recorded_at.timestamp(),
            "elapsed": float("nan") if vote.elapsed is None else vote.elapsed,
            "needed": settings.needed_seconds(lengths[0], lengths[1], vote.protocol),
            "heard": min(heard_shares),
            "gold": _known_answer(vote.outcome, vote.before, vote.kind_a == "control", vote.kind_b == "control"),
            "counts": vote.purpose == "rating" and vote.outcome != "skip",
        })  # fmt: skip
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = {"at": float, "elapsed": float, "needed": float, "heard": float, "gold": float, "counts": bool}
    return table.astype(numbers)


def _known_answer(outcome: str, before: str | None, control_a: bool, control_b: bool) -> float:
    """Return 1 if the outcome is the known answer, 0 if it is the opposite answer, and NaN if no answer is known.

    If the battle repeats an earlier battle with the sides swapped, the known answer is the voter's own earlier choice.
    If the battle includes a control, the known answer is that the control is worse.
    """
    if outcome not in _OTHER_SIDE:
        return float("nan")
    if before in _OTHER_SIDE:
        return float(outcome == _OTHER_SIDE[before])
    if before is None and control_a != control_b:
        return float(outcome == ("b" if control_a else "a"))
    return float("nan")


@dataclass(frozen=True)
class ReviewPlan:
    """The changes planned in one review: new standings, and signals (rule, points and sentence), by vote."""

    votes: int
    standings: dict[str, str]
    signals: dict[str, list[tuple[str, float, str]]]

    def divide(self) -> Iterator["ReviewPlan"]:
        """Yield parts of the plan that are quick to write; each vote is in exactly one part."""
        votes = [*{*self.signals, *self.standings}]
        for start in range(0, len(votes), AT_ONCE):
            part = votes[start : start + AT_ONCE]
            standings = {vote: self.standings[vote] for vote in part if vote in self.standings}
            yield ReviewPlan(self.votes, standings, {vote: self.signals[vote] for vote in part if vote in self.signals})

    def report(self, alarms: list[str]) -> VoteReview:
        """Return the review that results from this plan."""
        excluded, restored = (
            [vote for vote, new in self.standings.items() if new == standing] for standing in ("excluded", "counted")
        )
        return VoteReview(self.votes, excluded, restored, sum(map(len, self.signals.values())), alarms)


def plan_review(session: Session, findings: RuleFindings) -> ReviewPlan:
    """Plan the standings that follow from the rules' findings; nothing is changed, so no other request has to wait."""
    decisions = session.execute(select(Vote.id, Vote.standing, Vote.standing_by)).all()
    # Find the votes that change; people's decisions stay.
    wanted = {vote: "excluded" if vote in findings.excluded else "counted" for vote, *_ in decisions}
    standings = {vote: wanted[vote] for vote, now, by in decisions if by in ("", RULES) and now != wanted[vote]}
    # List each finding of the rules once.
    flagged = {tuple(row) for row in session.execute(select(Flag.vote, Flag.rule).where(Flag.kind == "signal"))}
    signals: dict[str, list[tuple[str, float, str]]] = {}
    for vote, rule, points, detail in findings.signals.itertuples(index=False, name=None):
        if vote in wanted and (vote, rule) not in flagged:
            signals.setdefault(vote, []).append((rule, points, detail))
    return ReviewPlan(len(decisions), standings, signals)


def apply(session: Session, part: ReviewPlan, findings: RuleFindings, now: datetime) -> None:
    """Carry out part of a plan, except for votes on which a person or another review has decided in the meantime."""
    ids = {*part.standings, *part.signals}
    votes = {vote.id: vote for vote in session.scalars(select(Vote).where(Vote.id.in_(ids)))}
    seen = select(Flag.vote, Flag.rule).where(Flag.kind == "signal", Flag.vote.in_(ids))
    flagged = {tuple(row) for row in session.execute(seen)}
    for vote, rules in part.signals.items():
        session.add_all(
            _flag(vote, "signal", detail, RULES, now, rule=rule, points=points)
            for rule, points, detail in rules
            if vote in votes and (vote, rule) not in flagged
        )
    decisions = [
        (votes[vote], standing, findings.excluded.get(vote, _NOT_SEEN))
        for vote, standing in part.standings.items()
        if vote in votes and votes[vote].standing != standing and votes[vote].standing_by in ("", RULES)
    ]
    decide(session, decisions, RULES, now)


def _flag(vote: str, kind: str, detail: str, by: str, at: datetime, **rule: Any) -> Flag:
    return Flag(id=secrets.token_hex(16), vote=vote, kind=kind, detail=detail, made_by=by, made_at=at, **rule)


def decide(session: Session, decisions: Sequence[tuple[Vote, str, str]], by: str, now: datetime) -> None:
    """Set the standing of votes, record the author and the reason of each decision, and update the counts of rated
    votes.

    Args:
        session: a writing session.
        decisions: votes, each with its new standing and the reason.
        by: `RULES`, or the name of the person who decided.
        now: the time.
    """
    theirs = Vote.id.in_([vote.id for vote, *_ in decisions])
    vote_counts.count_votes(session, theirs, -1)
    for vote, standing, reason in decisions:
        vote.standing, vote.standing_reason, vote.standing_by = standing, reason, by
        session.add(_flag(vote.id, standing, reason, by, now))
    session.flush()
    vote_counts.count_votes(session, theirs)


def decide_by_hand(session: Session, vote_id: str, standing: str, reason: str, by: str, now: datetime) -> Vote:
    """Set the standing of a vote as decided by a person; the rules do not overrule this decision.

    Raises:
        BadInput: the vote does not exist, or no reason or name is given.
    """
    if not reason.strip() or not by.strip() or by.strip() == RULES:
        raise BadInput("a decision needs a reason and the name of the person who makes it")
    vote = session.scalar(select(Vote).where(Vote.id == vote_id))
    if vote is None:
        raise BadInput(f"there is no vote {vote_id}; `podeval arena flags` lists the flagged ones")
    decide(session, [(vote, standing, reason.strip())], by.strip(), now)
    operator_settings.note(session, f"vote {standing}", vote.id, reason.strip(), by.strip(), now)
    return vote


def list_flags(session: Session, *, vote: str | None = None, newest: int = 100) -> list[Flag]:
    """Return the latest signals and decisions, newest first; if a vote is given, return only the signals and decisions
    on that vote.
    """
    which = Flag.vote.is_not(None) if vote is None else Flag.vote == vote
    return list(session.scalars(select(Flag).where(which).order_by(Flag.number.desc()).limit(newest)))


def count_votes(session: Session) -> Counts:
    """Count battles and votes."""
    numbers = select(*(func.count().filter(Vote.outcome == outcome) for outcome in OUTCOMES))
    counted = zip(OUTCOMES, session.execute(numbers).one(), strict=True)
    battles = session.scalar(select(func.count()).select_from(Battle)) or 0
    return Counts(battles, {outcome: count for outcome, count in counted if count})


def report_status(session: Session, settings: ArenaSettings) -> Status:
    """Return the counts and the current alarms."""
    counted = count_votes(session)
    newest = select(func.max(Vote.recorded_at)).where(Vote.outcome != "skip")
    # Read only the excluded votes and the votes of the last day; all other votes are already counted.
    last_day = (session.scalar(newest) or datetime.now(UTC)) - timedelta(days=1)
    is_out, is_recent = Vote.standing == "excluded", Vote.recorded_at > last_day
    about = (is_out, is_out & Vote.standing_by.not_in(("", RULES)), is_recent, is_recent & is_out)
    numbers = select(*(func.count().filter(which) for which in about)).select_from(Vote)
    could_count = numbers.where(Vote.outcome != "skip", is_out | is_recent, _IS_RATING)
    out, out_by_people, of_day, out_of_day = map(int, session.execute(could_count).one())
    return Status(
        systems=session.scalar(select(func.count()).select_from(ArenaSystem)) or 0,
        items=session.scalar(select(func.count(func.distinct(ArenaOutput.item)))) or 0,
        **vars(counted),
        voters=session.scalar(select(func.count(func.distinct(Vote.voter)))) or 0,
        excluded=out,
        excluded_by_people=out_by_people,
        alarms=describe_alarms((out, vote_counts.count_rated(session) + out), (out_of_day, of_day), settings.limits),
    )
