"""Compute a ranking from votes: ratings pooled and by dimension, who met whom, and which votes would help most.

The votes come as one table (`build_rating_table`). The arithmetic is in `podeval.stats`: Elo as the papers print it,
and Bradley–Terry with ties and voter-clustered intervals as the ranking.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.excerpt_choice import EXCERPTS, PROTOCOLS, list_protocols
from podeval.errors import BadInput
from podeval.stats.battles import Battles, Elo, Tally, elo, tally
from podeval.stats.bradley_terry import Ratings, SystemRating, rate, votes_needed
from podeval.store.operator_settings import read_closed_dimensions
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Vote

COLUMNS = (
    "vote", "number", "voter", "system_a", "system_b", "outcome", "preference", "item", "protocol", "dimension",
    "capability", "seconds_a", "seconds_b", "heard_seconds_a", "heard_seconds_b", "loudness_a", "loudness_b",
    "standing",
)  # fmt: skip
"""`seconds_*`: length of the whole output; `heard_seconds_*`: how much of it was heard; `loudness_*`: LUFS, NaN where
there is none; `preference`: `clear`, `slight` or empty."""

PUBLIC_COLUMNS = tuple(name for name in COLUMNS if not name.startswith(("seconds_", "heard_seconds_", "loudness_")))
"""Columns that are public while people vote; exact lengths are not, because they identify the output."""

POOLED = "pooled"
"""The rating over the votes of all dimensions together."""

_WINNERS = {"a": "X", "b": "Y", "tie": "Draw", "both_bad": "Draw"}
_INVISIBLE = "\x00"
_PRIOR = 2.0

Bounds = tuple[tuple[float, float], ...]

SECONDS: Bounds = ((0.0, 15.0), (15.0, 25.0), (25.0, float("inf")))
"""Groups of votes on excerpts, by seconds heard."""

SHARES: Bounds = ((0.0, 0.95), (0.95, float("inf")))
"""Groups of votes on whole recordings, by the share heard."""


@dataclass(frozen=True)
class Undecided:
    """Neighbours in the ranking that the votes do not separate; `votes` more would separate them (None: unknown)."""

    better: str
    worse: str
    votes: int | None


@dataclass(frozen=True)
class Standings:
    """The ranking of one dimension, with the data it rests on.

    `by_strength` is the same ranking where a slight preference counts as half a preference and half a tie; None where
    no vote says how clear it is.
    """

    ratings: Ratings
    elo: Mapping[str, Elo]
    tally: Tally
    undecided: tuple[Undecided, ...]
    by_strength: Ratings | None = None

    @property
    def coverage(self) -> float:
        """Share of the pairs of systems that met at least once, 0 to 1."""
        size = len(self.tally.systems)
        pairs = size * (size - 1) // 2
        return 1 - len(self.tally.unmet) / pairs

    @property
    def islands(self) -> list[list[str]]:
        """Groups of systems with no battle between them, largest first; ratings are comparable only within a group."""
        return [list(group) for group in self.ratings.islands]


def compute_standings(battles: Battles, *, position: bool = False) -> Standings:
    """Compute the ranking from battles, with everything a board shows beside it.

    Args:
        battles: in recorded order, which only Elo depends on.
        position: also estimate the effect of being shown first.

    Raises:
        BadInput: there are no battles.
    """
    ratings = rate(battles, position=position)
    counted = tally(_without_absent(battles))
    neighbours = zip(ratings.systems, ratings.systems[1:], strict=False)
    undecided = tuple(
        Undecided(better.system, worse.system, needed)
        for better, worse in neighbours
        if (needed := votes_needed(ratings, better.system, worse.system)) != 0
    )
    by_strength = None
    if battles.slight is not None and battles.slight.any():
        by_strength = rate(battles, position=position, strength=True)
    return Standings(ratings, elo(battles), counted, undecided, by_strength)


def compute_standings_by_dimension(
    battles: Battles, dimensions: Sequence[str], *, position: bool = False
) -> dict[str, Standings]:
    """Compute the ranking of each dimension, and of all votes together under `pooled`.

    Args:
        battles: all battles.
        dimensions: dimension of each battle.
        position: also estimate the effect of being shown first.

    Raises:
        BadInput: the numbers of battles and dimensions differ, a dimension is called `pooled`, or there are no battles.
    """
    if len(dimensions) != len(battles):
        raise BadInput(f"{len(battles)} battles came with {len(dimensions)} dimensions; give one for each")
    labels = np.asarray(dimensions, dtype=object)
    if POOLED in set(dimensions):
        raise BadInput(f"a dimension cannot be called {POOLED!r}; that is the rating over all of them")
    by_dimension = {POOLED: compute_standings(battles, position=position)}
    for dimension in sorted(set(dimensions)):
        part = battles.only(np.asarray(labels == dimension, dtype=bool))
        by_dimension[dimension] = compute_standings(part, position=position)
    return by_dimension


def _without_absent(battles: Battles) -> Battles:
    """Return the same battles, with only the systems that occur in them."""
    present = np.flatnonzero(np.bincount(np.concatenate([battles.first, battles.second]), minlength=1))
    position = np.zeros(len(battles.systems), dtype=np.intp)
    position[present] = np.arange(len(present))
    return Battles(
        tuple(battles.systems[number] for number in present),
        battles.voters,
        position[battles.first],
        position[battles.second],
        battles.outcome,
        battles.voter,
        battles.covariates,
        battles.slight,
    )


def rate_quickly(systems: Iterable[str], battles: Iterable[tuple[str, str, str, int]]) -> dict[str, float]:
    """Estimate each system's strength, for choosing pairs and checking voters: Elo's scale, centred at 0, no intervals.

    Bradley-Terry by evalica, ties and both-bad as half a win. Every system also has two drawn battles against an
    invisible one, so that the estimate of a system that never lost stays finite.

    Args:
        systems: the systems to rate, also those without a battle.
        battles: `(a, b, outcome, how often)`, outcome `a`, `b`, `tie` or `both_bad`.
    """
    import evalica

    names, met = sorted(set(systems)), list(battles)
    if not names:
        return {}
    fitted = evalica.bradley_terry(
        [a for a, *_ in met] + names,
        [b for _, b, *_ in met] + [_INVISIBLE] * len(names),
        [evalica.Winner[_WINNERS[outcome]] for *_, outcome, _ in met] + [evalica.Winner.Draw] * len(names),
        weights=[float(count) for *_, count in met] + [_PRIOR] * len(names),
    )
    scale = {system: 400 * math.log10(score) for system, score in fitted.scores.items()}
    middle = sum(scale[system] for system in names) / len(names)
    return {system: scale[system] - middle for system in names}


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

    A vote belongs to the group of the side of which less was heard: in seconds of an excerpt, in shares of a whole.

    Args:
        votes: with the columns of `build_rating_table`.
    """
    rated = []
    for protocol in PROTOCOLS:
        part = votes[votes["protocol"] == protocol]
        if part.empty:
            continue
        bounds: Bounds
        seconds = part[["heard_seconds_a", "heard_seconds_b"]]
        if protocol == EXCERPTS:
            measure, bounds = seconds.min(axis=1), SECONDS
        else:
            lengths = part[["seconds_a", "seconds_b"]].clip(lower=1e-9).to_numpy()
            measure, bounds = (seconds / lengths).min(axis=1), SHARES
        groups = []
        for least, most in bounds:
            group = part[(measure >= least) & (measure < most)]
            ratings = {} if group.empty else {row.system: row for row in rate(make_battles(group)).systems}
            groups.append(HeardGroup(least, most, len(group), ratings))
        order = tuple(row.system for row in rate(make_battles(part)).systems)
        rated.append(HeardRatings(protocol, order, tuple(groups)))
    return rated


def make_battles(votes: pd.DataFrame, covariates: Mapping[str, Sequence[float]] | None = None) -> Battles:
    """Return the battles of votes with the columns of `build_rating_table`.

    Args:
        votes: the votes.
        covariates: numbers by their name: what A has more than B in each vote.
    """
    a, b, outcome, voter = (list(votes[name]) for name in ("system_a", "system_b", "outcome", "voter"))
    return Battles.of(a, b, outcome, voter, covariates, list(votes["preference"] == "slight"))


def build_rating_table(session: Session, *, dimension: str | None = None) -> pd.DataFrame:
    """Return the counted votes in the order in which they were recorded, with `COLUMNS`.

    Skipped and repeated battles are left out.

    Args:
        session: session of the database.
        dimension: include only this dimension.
    """
    a, b = aliased(ArenaOutput), aliased(ArenaOutput)
    query = (
        select(
            Vote.id, Vote.number, Vote.voter, a.system, b.system, Vote.outcome, Vote.preference, Battle.item,
            Battle.protocol, Battle.dimension, Battle.capability, a.seconds, b.seconds, Vote.heard_seconds_a,
            Vote.heard_seconds_b, a.loudness, b.loudness, Vote.standing,
        )
        .join(Battle, Vote.battle == Battle.id)
        .join(a, Battle.output_a == a.id)
        .join(b, Battle.output_b == b.id)
        .where(Battle.purpose == "rating", Vote.outcome != "skip", Vote.standing == "counted")
        .order_by(Vote.number)
    )  # fmt: skip
    if dimension is not None:
        query = query.where(Battle.dimension == dimension)
    table = pd.DataFrame(session.execute(query).all(), columns=list(COLUMNS))
    numbers = [name for name in COLUMNS if name.startswith(("seconds_", "heard_seconds_", "loudness_"))]
    return table.astype(dict.fromkeys(numbers, float))


def list_open_dimensions(session: Session) -> dict[str, list[str]]:
    """Return, by protocol, the open dimensions that have an item with outputs of at least two systems.

    A protocol without such a dimension is left out.
    """
    answered = (
        select(ArenaItem.dimension, ArenaItem.benchmark)
        .distinct()
        .join(ArenaOutput, ArenaOutput.item == ArenaItem.id)
        .join(ArenaSystem, ArenaOutput.system == ArenaSystem.id)
        .where(ArenaItem.active, ArenaOutput.active, ArenaSystem.active, ArenaOutput.audio != "")
        .group_by(ArenaItem.dimension, ArenaItem.benchmark, ArenaItem.id)
        .having(func.count(func.distinct(ArenaOutput.system)) > 1)
    )
    closed = read_closed_dimensions(session)
    dimensions: dict[str, set[str]] = {protocol: set() for protocol in PROTOCOLS}
    for dimension, benchmark in session.execute(answered):
        for protocol in list_protocols(benchmark) if dimension not in closed else ():
            dimensions[protocol].add(dimension)
    return {protocol: sorted(names) for protocol, names in dimensions.items() if names}
