"""Decide which votes count, using a single set of rules that are applied from top to bottom.

Each rule reports a finding about a vote and assigns points; a vote with `IntegrityLimits.exclude_at` points or more
does not count in the public rating. The vote is kept, with the reasons, and can be restored. No rule considers who won
a single battle, because taste is not an offence. Rules about voters examine many votes and check whether someone who
really listened could have cast them.

Voters who promote a system cast votes that differ from what all votes together predict. The expected result of each
battle comes from a Bradley-Terry model of the trusted votes (a tie counts as half a win, as does "both bad"). A voter's
surplus for a system is the sum of result minus expectation over their battles, in standard deviations; taste explains a
surplus of one or two standard deviations, but colluding voters cause a larger surplus.

An arena that excludes many votes is either under attack or broken (one board excluded every vote for three months
because its bot check did not respond), so a share above `IntegrityLimits.alarm_share` always raises an alarm.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from podeval.arena.settings import IntegrityLimits
from podeval.stats.battles import rate_quickly

COLUMNS = (
    "vote", "voter", "origin", "at", "elapsed", "needed", "heard", "outcome", "a", "b", "dimension", "comment",
    "gold", "counts",
)  # fmt: skip
"""Columns of the table of votes that `judge` reads, one row per vote.

`at`: seconds since the epoch. `elapsed`: seconds from serving to voting, NaN if unknown. `needed`: the shortest time in
seconds in which the required parts can be heard. `heard`: the share of the required part that was heard; of the two
sides, the smaller share. `gold`: 1 if the correct answer is known and was given, 0 if it is known and the opposite was
given, NaN if no answer is known. `counts`: whether the vote could count in the rating at all (its battle repeats no
other). Skipped battles are ignored.
"""

_SURE = 0.05
"""Lowest expected probability of either result, because a person's taste is never entirely predictable."""

_NOT_SAID = re.compile(r"[\W_]+")
_WIDE = "[\u2e80-\uffff]"
_RESULT = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}

Votes: TypeAlias = pd.DataFrame
Seen: TypeAlias = pd.Series
"""A rule's findings: sentences, indexed by vote."""


_LIMITS = IntegrityLimits()


@dataclass(frozen=True)
class VoteRule:
    """One rule of the set."""

    name: str
    points: float
    about: str
    """Explanation for the page that publishes the rules."""
    find: Callable[[Votes, IntegrityLimits], Seen]
    compares: bool = False
    """Whether the rule compares a voter with everyone whose votes are `trusted`."""


def _find_too_fast(votes: Votes, limits: IntegrityLimits) -> Seen:
    needed = votes["needed"].clip(lower=limits.fastest_seconds)
    fast = votes["elapsed"] < needed
    return _format_details("after {:.1f} s instead of at least {:.1f} s", votes.loc[fast, "elapsed"], needed[fast])


def _find_not_heard(votes: Votes, limits: IntegrityLimits) -> Seen:
    deaf = votes["heard"] < limits.heard_share
    return _format_details(
        f"heard {{:.0%}} of the required part of one side instead of {limits.heard_share:.0%}", votes.loc[deaf, "heard"]
    )


def _find_same_choice(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find voters who choose one side too often; sides are random, so listeners choose each about half the time."""
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
    """Find votes that contradict known answers: the voter's own earlier choice, or a control that is clearly worse."""
    from scipy.stats import binom

    table = votes[votes["gold"].notna()].groupby("voter")["gold"].agg(["size", "sum"])
    wrong = table["size"] - table["sum"]
    bad = binom.sf(wrong - 1, table["size"], limits.gold_error) < limits.gold_chance
    text = _format_details("{:.0f} of {} known answers contradicted", wrong[bad], table.loc[bad, "size"])
    return _of_voters(votes, {str(voter): detail for voter, detail in text.items()})


def _find_same_origin(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find votes from an origin with many pseudonyms in a day, which may be a classroom or one person with many
    accounts.
    """
    with_origin = votes[votes["origin"] != ""]
    day = (with_origin["at"] // 86400).astype("int64")
    voters = with_origin.groupby([with_origin["origin"], day])["voter"].transform("nunique")
    return _format_details("{} voters from one network address in a day", voters[voters > limits.origin_voters])


def _find_repeated_comments(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find votes with copied comments: repeated by one voter, or shared between voters."""
    texts = votes["comment"].fillna("").astype(str).str.casefold().str.replace(_NOT_SAID, " ", regex=True).str.strip()
    size = (texts.str.len() + 2 * texts.str.count(_WIDE)).astype(int)
    texts, size = texts[size >= limits.comment_letters], size[size >= limits.comment_letters]
    voter = votes.loc[texts.index, "voter"]
    by_voter = texts.groupby([voter, texts]).transform("size")
    others = voter.groupby(texts).transform("nunique")
    by_one = by_voter >= limits.comment_votes
    by_many = (others >= limits.comment_votes) & (size >= 3 * limits.comment_letters) & ~by_one
    copied: Seen = pd.concat([
        _format_details("the same comment in {} votes", by_voter[by_one]),
        _format_details("the same comment by {} voters", others[by_many]),
    ])  # fmt: skip
    return copied


def _find_partisans(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find the votes on a system by voters who favour it implausibly often."""
    sides = _split_sides(votes)
    table = _measure_surplus(sides, limits.partisan_battles)
    table = table[table["z"] >= limits.partisan_z]
    return _spread_to_votes(sides, _format_details("favours {}", _describe_favourite(table)))


def _find_rings(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find the votes on a system by voters who favour it, if there are more of these voters than chance explains."""
    from scipy.stats import norm, poisson

    sides = _split_sides(votes)
    table = _measure_surplus(sides, limits.ally_battles)
    voters = table.groupby("system")["z"].transform("size")
    table = table[table["z"] >= limits.ally_z].assign(asked=voters)
    table["allies"] = table.groupby("system")["z"].transform("size")
    # Approximate the Poisson count by a normal distribution, with twice the variance to allow for differing tastes.
    by_chance = poisson.sf(table["allies"] - 1, 2 * norm.sf(limits.ally_z) * table["asked"])
    table = table[by_chance < limits.ally_chance]
    ring = _format_details("among the {} of {} voters who favour ", table["allies"], table["asked"])
    return _spread_to_votes(sides, ring + _describe_favourite(table))


def _measure_surplus(sides: pd.DataFrame, battles: int) -> pd.DataFrame:
    """Return each voter's surplus for each system with at least this many battles, indexed by voter and system."""
    table = sides.groupby(["voter", "system"]).agg(
        count=("surplus", "size"), surplus=("surplus", "sum"), spread=("variance", "sum"), wins=("result", "sum")
    )
    table = table[table["count"] >= battles]
    return table.assign(z=table["surplus"] / np.sqrt(table["spread"]))


def _describe_favourite(table: pd.DataFrame) -> Seen:
    system = pd.Series(table.index.get_level_values("system"), index=table.index)
    text = "{} (won {:g} of {} battles, {:.1f} standard deviations above what all votes imply)"
    return _format_details(text, system, table["wins"], table["count"], table["z"])


def _spread_to_votes(sides: pd.DataFrame, text: Seen) -> Seen:
    """Assign the sentence about a voter and a system to each vote of this voter on this system."""
    seen = sides.join(text.rename("said"), on=["voter", "system"], how="inner")
    of_votes: Seen = seen.groupby("row")["said"].first()
    return of_votes


def _find_bursts(votes: Votes, limits: IntegrityLimits) -> Seen:
    """Find votes that voters without a history cast on a system in a period in which all voters without a history
    favour that system.
    """
    seconds, sides = limits.burst_seconds, _split_sides(votes)
    counts = votes["voter"].map(votes["voter"].value_counts())
    sides = sides[counts.loc[sides["row"]].to_numpy() <= limits.newcomer_votes]
    details: list[Seen] = []
    # Periods overlap by half.
    for offset in (0.0, seconds / 2):
        stretch = ((sides["at"] + offset) // seconds).astype("int64")
        groups = sides.groupby([sides["system"], stretch])
        table = groups[["surplus", "variance", "result"]].transform("sum").assign(count=groups["row"].transform("size"))
        bad = (table["count"] >= limits.burst_votes) & (table["surplus"] / np.sqrt(table["variance"]) >= limits.burst_z)
        text = _format_details(
            f"{{}} won {{:g}} of {{}} battles judged by new voters within {seconds / 60:.0f} minutes",
            *(column[bad] for column in (sides["system"], table["result"], table["count"])),
        )
        details.append(text.set_axis(sides.loc[bad, "row"]))
    bursts: Seen = pd.concat(details).groupby(level=0).first()
    return bursts


def _split_sides(votes: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each counted vote and each of its systems: the result, its surplus over the expected result, and
    its variance.
    """
    counted = votes[votes["counts"]]
    expected = _expected(votes[votes["trusted"]], counted)
    result = counted["outcome"].map(_RESULT).to_numpy(dtype=float)
    columns: dict[str, Any] = {"row": counted.index, "variance": expected * (1 - expected)}
    columns |= {name: counted[name].to_numpy() for name in ("voter", "at")}
    left = {"system": counted["a"].to_numpy(), "result": result, "surplus": result - expected}
    right = {"system": counted["b"].to_numpy(), "result": 1 - result, "surplus": expected - result}
    return pd.concat([pd.DataFrame({**columns, **side}) for side in (left, right)], ignore_index=True)


def _expected(trusted: pd.DataFrame, counted: pd.DataFrame) -> NDArray[np.float64]:
    """Return the probability that A wins each battle, according to all votes."""
    table = trusted.groupby(["a", "b", "outcome"]).size().reset_index(name="count")
    rating = pd.Series(
        rate_quickly(pd.concat([counted["a"], counted["b"]]).unique(), table.itertuples(index=False, name=None)),
        dtype=float,
    )
    gap = rating[counted["a"]].to_numpy() - rating[counted["b"]].to_numpy()
    return np.asarray(np.clip(1 / (1 + 10 ** (-gap / 400)), _SURE, 1 - _SURE), dtype=np.float64)


RULES = (
    VoteRule("speed", 3.0, "The vote came before the required parts could be heard.", _find_too_fast),
    VoteRule("coverage", 3.0, "The voter did not play enough of both sides.", _find_not_heard),
    VoteRule("repeated choice", 3.0, "The voter nearly always prefers the same side, A or B.", _find_same_choice),
    VoteRule(
        "repeated comment", 3.0, "The voter keeps repeating one comment, or uses the same words as other voters.",
        _find_repeated_comments,
    ),
    VoteRule(
        "contradiction", 3.0, "The voter contradicts known answers far more often than an attentive listener would.",
        _find_contradictions,
    ),
    VoteRule("same origin", 1.5, "Many voters used one network address on the same day.", _find_same_origin),
    VoteRule("partisan", 1.5, "The voter favours one system far more than all votes imply.", _find_partisans, True),
    VoteRule(
        "campaign", 3.0, "Too many voters favour the same system more than all votes imply.", _find_rings, True
    ),
    VoteRule(
        "burst", 3.0, "Within an hour, new voters favour one system far more than all votes imply.",
        _find_bursts, True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class RuleFindings:
    """The rules' signals, and the votes that the rules exclude."""

    signals: pd.DataFrame
    """One row per finding, with the columns `vote`, `rule`, `points` and `detail`."""
    excluded: dict[str, str]
    """The excluded votes, each with the reason."""


def judge(votes: Votes, limits: IntegrityLimits = _LIMITS) -> RuleFindings:
    """Apply all rules to a table of votes (`COLUMNS`); votes with too many points are excluded.

    Rules about campaigns compare a voter with all voters. These rules are applied twice, so that a campaign cannot hide
    behind its own votes: the second pass compares voters only with those whom the first pass did not exclude.
    """
    # The first pass trusts all voters.
    votes = votes[votes["outcome"] != "skip"].reset_index(drop=True)
    alone = _collect_signals(votes, limits, compares=False)
    first = pd.concat([alone, _collect_signals(votes.assign(trusted=votes["counts"]), limits, compares=True)])
    # The second pass leaves out the voters who look suspicious in the first.
    doubted = _list_guilty(first, limits)
    trusted = votes["counts"] & ~votes["vote"].isin(doubted)
    second = _collect_signals(votes.assign(trusted=trusted), limits, compares=True)
    signals = pd.concat([alone, second], ignore_index=True)
    # Collect the votes with too many points, each with its reasons.
    reasons = _format_details("{}: {}", signals["rule"], signals["detail"]).groupby(signals["vote"]).agg("; ".join)
    return RuleFindings(signals, {str(vote): str(reasons[vote]) for vote in _list_guilty(signals, limits)})


def describe_alarms(all_votes: tuple[int, int], last_day: tuple[int, int], limits: IntegrityLimits) -> list[str]:
    """Describe the alarms that follow from the numbers of excluded votes and of votes that could count, for all votes
    and for the votes of the last day.
    """
    return [
        f"{excluded} of {votes} votes ({100 * excluded / votes:.0f} %){period} are excluded, which is more than "
        f"{100 * limits.alarm_share:.0f} %; either the arena is under attack, or part of it is broken"
        for period, (excluded, votes) in (("", all_votes), (" of the last day", last_day))
        if votes >= limits.alarm_votes and excluded > limits.alarm_share * votes
    ]


def _collect_signals(votes: Votes, limits: IntegrityLimits, *, compares: bool) -> pd.DataFrame:
    signals = [pd.DataFrame(columns=["vote", "rule", "points", "detail"]).astype({"points": float})]
    for rule in (rule for rule in RULES if rule.compares == compares):
        if len(seen := rule.find(votes, limits)):
            about = {"vote": votes.loc[seen.index, "vote"], "rule": rule.name, "points": rule.points}
            signals.append(pd.DataFrame({**about, "detail": seen.astype(str)}))
    return pd.concat(signals[1:] or signals, ignore_index=True)


def _list_guilty(signals: pd.DataFrame, limits: IntegrityLimits) -> pd.Index:
    points = signals.groupby("vote")["points"].sum()
    return points[points >= limits.exclude_at].index


def _of_voters(votes: Votes, details: dict[str, str]) -> Seen:
    """Assign the sentence about a voter to each vote of this voter."""
    return votes.loc[votes["voter"].isin(list(details)), "voter"].map(details)


def _format_details(template: str, *columns: pd.Series) -> Seen:
    """Fill in the template for each row; the result has the index of the first column, and the columns may be empty."""
    rows = zip(*columns, strict=True)
    return pd.Series([template.format(*row) for row in rows], index=columns[0].index, dtype=str)
