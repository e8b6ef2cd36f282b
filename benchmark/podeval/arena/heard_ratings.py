"""Ratings by how much was heard before a vote: whether those who listen longer prefer other systems.

Votes are grouped by what was heard of the side of which less was: in seconds of an excerpt, in shares of a whole
recording. Each group is rated by itself, over all dimensions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from podeval.arena.protocols import EXCERPTS, PROTOCOLS
from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import SystemRating, rate

Bounds = tuple[tuple[float, float], ...]

SECONDS: Bounds = ((0.0, 15.0), (15.0, 25.0), (25.0, float("inf")))
"""Groups of votes on excerpts, by seconds heard."""

SHARES: Bounds = ((0.0, 0.95), (0.95, float("inf")))
"""Groups of votes on whole recordings, by the share heard."""


@dataclass(frozen=True)
class HeardGroup:
    """The votes for which `least` to below `most` was heard: seconds of an excerpt, or shares of a whole."""

    least: float
    most: float
    votes: int
    ratings: Mapping[str, SystemRating]


@dataclass(frozen=True)
class HeardRatings:
    """The groups of one protocol; `systems` in the order of the ratings by all of its votes, best first."""

    protocol: str
    systems: tuple[str, ...]
    groups: tuple[HeardGroup, ...]


def rate_by_heard(votes: pd.DataFrame) -> list[HeardRatings]:
    """Rate the systems by the votes of each protocol, grouped by how much was heard; one without votes is left out.

    Args:
        votes: with the columns of `vote_table`.
    """
    rated = []
    for protocol in PROTOCOLS:
        part = votes[votes["protocol"] == protocol]
        if part.empty:
            continue
        bounds: tuple[tuple[float, float], ...]
        seconds = part[["heard_seconds_a", "heard_seconds_b"]]
        if protocol == EXCERPTS:
            measure, bounds = seconds.min(axis=1), SECONDS
        else:
            lengths = part[["seconds_a", "seconds_b"]].clip(lower=1e-9).to_numpy()
            measure, bounds = (seconds / lengths).min(axis=1), SHARES
        groups = []
        for least, most in bounds:
            group = part[(measure >= least) & (measure < most)]
            ratings = {} if group.empty else {row.system: row for row in rate(_make_battles(group)).systems}
            groups.append(HeardGroup(least, most, len(group), ratings))
        order = tuple(row.system for row in rate(_make_battles(part)).systems)
        rated.append(HeardRatings(protocol, order, tuple(groups)))
    return rated


def _make_battles(votes: pd.DataFrame) -> Battles:
    a, b, outcome, voter = (list(votes[name]) for name in ("system_a", "system_b", "outcome", "voter"))
    return Battles.of(a, b, outcome, voter)
