"""Decide which votes count, by one set of rules that is applied from top to bottom.

Each rule says what it saw in a vote and gives points; a vote with `IntegrityLimits.exclude_at` points or more does not
count in the public rating. It is kept, with the reasons, and can be restored. No rule looks at which side won a single
battle: taste is not an offence. Rules about people look at many votes, and ask whether a person who listens could have
voted so.

An arena that excludes many votes is either attacked or broken (one board excluded every vote for three months, because
its bot check did not answer): a share above `IntegrityLimits.alarm_share` always raises an alarm.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd

from podeval.arena.comments import find_off_topic, find_repeated_comments, find_thin_comments
from podeval.arena.rule_sentences import format_details
from podeval.arena.vote_campaigns import find_bursts, find_partisans, find_rings

COLUMNS = (
    "vote", "voter", "origin", "at", "elapsed", "needed", "heard", "outcome", "a", "b", "dimension", "comment",
    "gold", "counts",
)  # fmt: skip
"""Of the table of votes that `judge` reads, one row a vote.

`at`: seconds since the epoch. `elapsed`: seconds from serving to voting, NaN where unknown. `needed`: the fewest
seconds in which what had to be heard can be heard. `heard`: the share of what has to
be heard, of the side of which less was. `gold`: 1 where the
answer is known and was given, 0 where it is known and the opposite was given, NaN where nothing is known. `counts`:
whether it would count in the rating at all (no repeated battle). Skipped battles are not looked at.
"""

Votes: TypeAlias = pd.DataFrame
Seen: TypeAlias = pd.Series
"""What a rule saw, as sentences by the index of the votes."""


@dataclass(frozen=True)
class IntegrityLimits:
    """All thresholds of the rule set."""

    exclude_at: float = 3.0
    alarm_share: float = 0.2
    """Excluded share of the votes that sets off the alarm, of all votes and of those of the last day."""
    alarm_votes: int = 20
    """Fewest votes for an alarm."""
    fastest_seconds: float = 2.0
    heard_share: float = 0.5
    side_votes: int = 20
    """Decided battles from which a preference for one side is examined."""
    side_share: float = 0.85
    side_chance: float = 1e-5
    undecided_share: float = 0.95
    gold_error: float = 0.2
    """Share of known answers that an attentive listener contradicts."""
    gold_chance: float = 0.005
    comment_votes: int = 4
    """Votes with one comment from which it counts as copied."""
    comment_letters: int = 12
    """Letters below which a comment is common and does not count as copied."""
    thin_votes: int = 10
    origin_voters: int = 4
    """Most voters from one origin within a day."""
    partisan_battles: int = 8
    partisan_z: float = 4.0
    """Surplus of a voter for one system over what everyone's votes imply, in standard deviations."""
    ally_battles: int = 4
    ally_z: float = 2.5
    ally_chance: float = 1e-5
    """Probability, by chance, of so many voters who each favour one system a little beyond belief."""
    burst_seconds: float = 3600.0
    burst_votes: int = 15
    burst_z: float = 4.5
    newcomer_votes: int = 10
    """Most votes of a voter who counts as a newcomer."""


@dataclass(frozen=True)
class VoteRule:
    """One rule of the set."""

    name: str
    points: float
    about: str
    """Explanation for the page on which the rules are published."""
    find: Callable[[Votes, IntegrityLimits], Seen]
    compares: bool = False
    """Whether it compares a voter with everyone whose votes are `trusted`."""


def _find_too_fast(votes: Votes, limits: IntegrityLimits) -> Seen:
    needed = votes["needed"].clip(lower=limits.fastest_seconds)
    fast = votes["elapsed"] < needed
    return format_details("after {:.1f} s of at least {:.1f} s", votes.loc[fast, "elapsed"], needed[fast])


def _find_not_heard(votes: Votes, limits: IntegrityLimits) -> Seen:
    deaf = votes["heard"] < limits.heard_share
    return format_details(
        f"heard {{:.0%}} of the required part of one side, not {limits.heard_share:.0%}", votes.loc[deaf, "heard"]
    )


def _find_same_choice(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find voters who choose one side too often: sides are random, so a listener takes each about half the time."""
    from scipy.stats import binomtest

    details: dict[str, str] = {}
    for voter, outcomes in votes["outcome"].groupby(votes["voter"]):
        left, right = int((outcomes == "a").sum()), int((outcomes == "b").sum())
        decided, most = left + right, max(left, right)
        if decided >= limits.side_votes and most >= limits.side_share * decided:
            if binomtest(most, decided).pvalue < limits.side_chance:
                details[str(voter)] = f"side {'A' if left > right else 'B'} in {most} of {decided} decided battles"
        elif len(outcomes) >= limits.side_votes and len(outcomes) - decided >= limits.undecided_share * len(outcomes):
            details[str(voter)] = f"undecided in {len(outcomes) - decided} of {len(outcomes)} battles"
    return _of_voters(votes, details)


def _find_contradictions(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find votes against known answers: the voter's own earlier choice, or a control that is plainly worse."""
    from scipy.stats import binom

    table = votes[votes["gold"].notna()].groupby("voter")["gold"].agg(["size", "sum"])
    wrong = table["size"] - table["sum"]
    bad = binom.sf(wrong - 1, table["size"], limits.gold_error) < limits.gold_chance
    text = format_details("{:.0f} of {} known answers contradicted", wrong[bad], table.loc[bad, "size"])
    return _of_voters(votes, {str(voter): detail for voter, detail in text.items()})


def _find_same_origin(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find many pseudonyms from one origin in a day: a class room, or one person with many accounts."""
    with_origin = votes[votes["origin"] != ""]
    day = (with_origin["at"] // 86400).astype("int64")
    voters = with_origin.groupby([with_origin["origin"], day])["voter"].transform("nunique")
    many = voters[voters > limits.origin_voters]
    return format_details("{} voters from one place in a day", many)


RULES: tuple[VoteRule, ...] = (
    VoteRule("speed", 3.0, "Voted sooner than what had to be heard can be heard.", _find_too_fast),
    VoteRule("coverage", 3.0, "Did not play enough of both sides.", _find_not_heard),
    VoteRule("repeated choice", 3.0, "Takes the same side nearly always, though sides are random.", _find_same_choice),
    VoteRule(
        "repeated comment", 3.0, "Gives the same reason again and again, or one that others also give word for word.",
        lambda votes, limits: find_repeated_comments(votes, limits.comment_votes, limits.comment_letters),
    ),
    VoteRule(
        "thin comment", 1.0, "Gives the same few letters as a reason most of the time.",
        lambda votes, limits: find_thin_comments(votes, limits.thin_votes, limits.comment_letters),
    ),
    VoteRule(
        "contradiction", 3.0, "Contradicts known answers far more often than an attentive listener.",
        _find_contradictions,
    ),
    VoteRule("same origin", 1.5, "Many voters from one place in a day.", _find_same_origin),
    VoteRule(
        "partisan", 1.5, "Favours one system far beyond what everyone's votes imply.",
        lambda votes, limits: find_partisans(votes, limits.partisan_battles, limits.partisan_z),
        compares=True,
    ),
    VoteRule(
        "campaign", 3.0, "Too many voters favour the same system more than what everyone's votes imply.",
        lambda votes, limits: find_rings(votes, limits.ally_battles, limits.ally_z, limits.ally_chance),
        compares=True,
    ),
    VoteRule(
        "burst", 3.0, "Voters without a record favour one system within an hour, far beyond what all votes imply.",
        lambda votes, limits: find_bursts(
            votes, limits.burst_seconds, limits.burst_votes, limits.burst_z, limits.newcomer_votes
        ),
        compares=True,
    ),
    VoteRule(
        "not asked", 1.0, "Judges something that this battle was not about.", lambda votes, _: find_off_topic(votes),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class RuleFindings:
    """The signals of the rules, and the votes they exclude."""

    signals: pd.DataFrame
    """Columns `vote`, `rule`, `points`, `detail`; a row for each thing seen."""
    excluded: dict[str, str]
    """Vote and reason."""
    alarms: list[str]


def judge(votes: Votes, limits: IntegrityLimits | None = None) -> RuleFindings:
    """Apply all rules to all votes; votes with too many points are excluded.

    Rules about campaigns compare a voter with everyone. So that a campaign does not hide behind its own votes, they are
    applied twice: the second time, everyone means the voters that the first pass did not exclude.

    Args:
        votes: with `COLUMNS`.
        limits: the thresholds of the rules.
    """
    limits = limits or IntegrityLimits()
    votes = votes[votes["outcome"] != "skip"].reset_index(drop=True)
    alone = _collect_signals(votes, limits, compares=False)
    first = pd.concat([alone, _collect_signals(votes.assign(trusted=votes["counts"]), limits, compares=True)])
    doubted = _points(first)[lambda points: points >= limits.exclude_at].index
    trusted = votes["counts"] & ~votes["vote"].isin(doubted)
    second = _collect_signals(votes.assign(trusted=trusted), limits, compares=True)
    signals = pd.concat([alone, second], ignore_index=True)
    points = _points(signals)
    reasons = format_details("{}: {}", signals["rule"], signals["detail"]).groupby(signals["vote"]).agg("; ".join)
    guilty = points[points >= limits.exclude_at].index
    excluded = {str(vote): str(reasons[vote]) for vote in guilty}
    return RuleFindings(signals, excluded, list_alarms(votes, set(excluded), limits))


def list_alarms(votes: Votes, excluded: set[str], limits: IntegrityLimits | None = None) -> list[str]:
    """List the alarms for a person: too large a share of the votes is excluded, of all or of the last day's.

    Args:
        votes: with the columns `vote`, `at` and `counts`.
        excluded: the excluded ones of these votes.
        limits: the thresholds of the rules.
    """
    limits = limits or IntegrityLimits()
    votes = votes[votes["counts"]]
    if votes.empty:
        return []
    out = votes["vote"].isin(excluded)
    last_day = votes["at"] > votes["at"].max() - 86400
    sentences = []
    for name, part in (("all votes", out), ("the votes of the last day", out[last_day])):
        if len(part) >= limits.alarm_votes and part.mean() > limits.alarm_share:
            sentences.append(
                f"{part.sum()} of {len(part)} ({100 * part.mean():.0f} %) of {name} are excluded, more than "
                f"{100 * limits.alarm_share:.0f} %: the arena is attacked, or something in it is broken"
            )
    return sentences


def _collect_signals(votes: Votes, limits: IntegrityLimits, *, compares: bool) -> pd.DataFrame:
    signals = []
    for rule in (rule for rule in RULES if rule.compares == compares):
        seen = rule.find(votes, limits)
        if len(seen):
            table = pd.DataFrame({"vote": votes.loc[seen.index, "vote"], "detail": seen.astype(str)})
            signals.append(table.assign(rule=rule.name, points=rule.points))
    if not signals:
        return pd.DataFrame(columns=["vote", "rule", "points", "detail"]).astype({"points": float})
    return pd.concat(signals, ignore_index=True)[["vote", "rule", "points", "detail"]]


def _points(signals: pd.DataFrame) -> pd.Series:
    return signals.groupby("vote")["points"].sum()


def _of_voters(votes: Votes, details: dict[str, str]) -> Seen:
    """Spread sentences about voters to each of their votes."""
    theirs = votes["voter"].isin(list(details))
    return votes.loc[theirs, "voter"].map(details)
