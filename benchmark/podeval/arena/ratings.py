"""Compute a ranking from votes: pooled ratings, ratings by dimension, the pairs that met, and the pairs for which
further votes would be most useful.

All votes are in one table (`build_rating_table`). `podeval.stats` does the arithmetic: Elo as reported in the papers,
and Bradley–Terry with ties and voter-clustered intervals for the ranking.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import ClauseElement, Select, bindparam, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from podeval.arena.kept_ranking import read_kept, write_kept
from podeval.arena.settings import EXCERPTS, PROTOCOLS
from podeval.errors import BadInput
from podeval.stats.battles import OUTCOMES, Battles, Elo, Tally, elo, tally
from podeval.stats.bradley_terry import Ratings, SystemRating, rate, votes_needed
from podeval.store.tables import ArenaOutput, Battle, Erasure, Vote
from podeval.store.vote_counts import RATED, RATED_VOTES

_A, _B = aliased(ArenaOutput), aliased(ArenaOutput)
_CELLS: dict[str, InstrumentedAttribute[Any]] = {
    "vote": Vote.id, "number": Vote.number, "voter": Vote.voter, "system_a": _A.system, "system_b": _B.system,
    "outcome": Vote.outcome, "preference": Vote.preference, "item": Battle.item, "protocol": Battle.protocol,
    "dimension": Battle.dimension, "capability": Battle.capability, "seconds_a": _A.seconds, "seconds_b": _B.seconds,
    "heard_seconds_a": Vote.heard_seconds_a, "heard_seconds_b": Vote.heard_seconds_b, "loudness_a": _A.loudness,
    "loudness_b": _B.loudness, "standing": Vote.standing,
}  # fmt: skip

COLUMNS = tuple(_CELLS)
"""`seconds_*`: length of the whole output; `heard_seconds_*`: how much of it was heard; `loudness_*`: LUFS, NaN if
unknown; `preference`: `clear`, `slight` or empty."""

PUBLIC_COLUMNS = tuple(name for name in COLUMNS if not name.startswith(("seconds_", "heard_seconds_", "loudness_")))
"""Columns that are public while voting is in progress; exact lengths are not public, because they identify the
output.
"""

_ROWS = 100
"""Number of votes to read at a time."""

_MANY = 20_000
"""Number of votes above which they are kept on disk, because reading them takes a noticeable time."""

_TEXTS = (1, 2, 3, 6, 7, 8)
"""Positions of the columns of texts that are read: voters, outcomes, preferences, protocols, dimensions, outputs."""

_RATED_NUMBERS = select(RATED_VOTES.c.number).order_by(RATED_VOTES.c.number)
_BATTLES = select(Battle.id, Battle.protocol, Battle.dimension, Battle.output_a, Battle.output_b).where(RATED[0])
_JUDGED = (
    select(Vote.battle, Vote.number, Vote.voter, Vote.outcome, Vote.preference)
    .add_columns(Vote.heard_seconds_a, Vote.heard_seconds_b)
    .where(Vote.outcome != "skip")
    .order_by(Vote.number)
)
"""The query for all judgements; judgements are rated unless their vote is excluded or their battle repeats another
battle.
"""

_FIRST_VOTES = select(func.min(Vote.number), Vote.voter).group_by(Vote.voter)

POOLED = "pooled"
"""The name of the rating that is computed from the votes on all dimensions together."""

Bounds = tuple[tuple[float, float], ...]

SECONDS: Bounds = ((0.0, 15.0), (15.0, 25.0), (25.0, float("inf")))
"""Groups of votes on excerpts, by the number of seconds heard."""

SHARES: Bounds = ((0.0, 0.95), (0.95, float("inf")))
"""Groups of votes on whole recordings, by the share heard."""


@dataclass(frozen=True)
class Undecided:
    """Neighbours in the ranking that the votes do not separate, and the number of further votes that would separate
    them (None if unknown).
    """

    better: str
    worse: str
    votes: int | None


@dataclass(frozen=True)
class Standings:
    """The ranking of one dimension, with its data.

    `by_strength` is the same ranking with a slight preference counted as half a preference and half a tie; None if no
    vote states how clear the preference is.
    """

    ratings: Ratings
    elo: Mapping[str, Elo]
    tally: Tally
    undecided: tuple[Undecided, ...]
    by_strength: Ratings | None = None

    @property
    def coverage(self) -> float:
        """Share of all pairs of systems that met at least once, 0 to 1."""
        pairs = math.comb(len(self.tally.systems), 2)
        unmet = pairs - int(np.count_nonzero(self.tally.battles)) // 2
        return 1 - unmet / pairs


def compute_standings(battles: Battles, *, position: bool = False, robust: bool = True) -> Standings:
    """Compute the ranking from battles, with everything that a board shows next to a ranking.

    Args:
        battles: the battles in recorded order; only Elo depends on the order.
        position: whether to also estimate the effect of being shown first.
        robust: whether to down-weight groups of voters who differ from all others, and an excess of voters who favour
            one system.

    Raises:
        BadInput: `battles` is empty.
    """
    ratings = rate(battles, position=position, robust=robust)
    counted = tally(battles)
    ranked = [row for row in ratings.systems if row.provisional is None]
    undecided = tuple(
        Undecided(better.system, worse.system, needed)
        for better, worse in itertools.pairwise(ranked)
        if (needed := votes_needed(ratings, better.system, worse.system)) != 0
    )
    has_strength = battles.slight is not None and bool(battles.slight.any())
    by_strength = rate(battles, position=position, strength=True, robust=robust) if has_strength else None
    return Standings(ratings, elo(battles), counted, undecided, by_strength)


def compute_standings_by_dimension(
    battles: Battles, dimensions: Sequence[str], *, position: bool = False
) -> dict[str, Standings]:
    """Compute the ranking for each dimension, and for all votes together under `pooled`.

    Args:
        battles: all battles.
        dimensions: the dimension of each battle.
        position: whether to also estimate the effect of being shown first.

    Raises:
        BadInput: the numbers of battles and dimensions differ, a dimension is named `pooled`, or there are no battles.
    """
    if len(dimensions) != len(battles):
        raise BadInput(
            f"there are {len(battles)} battles but {len(dimensions)} dimensions; give one dimension for each battle"
        )
    labels = np.asarray(dimensions, dtype=object)
    if POOLED in set(dimensions):
        raise BadInput(f"a dimension cannot be called {POOLED!r}, which is the name of the rating over all dimensions")
    by_dimension = {POOLED: compute_standings(battles, position=position)}
    for dimension in sorted(set(dimensions)):
        part = battles.only(np.asarray(labels == dimension, dtype=bool))
        by_dimension[dimension] = compute_standings(part, position=position)
    return by_dimension


@dataclass(frozen=True)
class HeardGroup:
    """The votes whose heard part is at least `least` and less than `most`, in seconds or as a share of a whole
    recording.
    """

    least: float
    most: float
    votes: int
    ratings: Mapping[str, SystemRating]


@dataclass(frozen=True)
class HeardRatings:
    """The groups of one protocol; `systems` are sorted, best first, by their ratings from all votes under the
    protocol.
    """

    protocol: str
    systems: tuple[str, ...]
    groups: tuple[HeardGroup, ...]


@dataclass(frozen=True)
class RatedVotes:
    """The rated votes of one protocol, in the order in which they were recorded, and the dimension of each vote.

    `heard` is the smaller of the amounts heard of the two sides: seconds of an excerpt, or a share of a recording.
    """

    battles: Battles
    dimensions: list[str]
    heard: NDArray[np.float64]


def rate_by_heard(protocol: str, votes: RatedVotes, ranked: Ratings) -> HeardRatings:
    """Rate the systems by the votes under one protocol, separately for each group of votes with similar heard parts.

    Args:
        protocol: the protocol.
        votes: the votes under the protocol.
        ranked: the ratings from all of these votes.
    """
    groups = []
    for least, most in SECONDS if protocol == EXCERPTS else SHARES:
        group = votes.battles.only((votes.heard >= least) & (votes.heard < most))
        ratings = {row.system: row for row in rate(group).systems} if len(group) else {}
        groups.append(HeardGroup(least, most, len(group), ratings))
    return HeardRatings(protocol, tuple(row.system for row in ranked.systems), tuple(groups))


def make_battles(votes: pd.DataFrame, covariates: Mapping[str, Sequence[float]] | None = None) -> Battles:
    """Convert votes with the columns of `build_rating_table` to battles.

    Args:
        votes: the votes.
        covariates: differences by name: the value of A minus the value of B in each vote.
    """
    a, b, outcome, voter = (list(votes[name]) for name in ("system_a", "system_b", "outcome", "voter"))
    return Battles.of(a, b, outcome, voter, covariates, list(votes["preference"] == "slight"))


@dataclass(frozen=True)
class KeptVotes:
    """The columns of the votes that were read, without names: each voter is represented by the number of their first
    vote.

    `voters` and `texts` list the values of the numbered columns, `newest` is the number of the newest vote and the id
    of its battle, and `erasures` is the number of erasures at that time.
    """

    erasures: int
    newest: tuple[int, str]
    voters: list[int]
    texts: list[list[str]]
    columns: list[Any]


class VoteReader:
    """Reads the rated votes (those in `build_rating_table`), by protocol, as numeric arrays; for one thread at a time.

    The content of a vote never changes, so each vote is read once and kept in memory; the list of rated votes is read
    every time. After an erasure, everything is read again, because a new vote may get the number of an erased vote.

    Args:
        file: the file in which many votes are kept for the next process; None to keep none. It contains no pseudonyms,
            and is replaced or deleted after an erasure.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._kept: tuple[int, list[Any], list[NDArray[Any]]] = -1, [], []
        self._file, self._written = file, _MANY

    def read(self, session: Session) -> dict[str, RatedVotes]:
        """Return the rated votes by protocol.

        Args:
            session: a database session.
        """
        before, kinds, columns = self._kept
        erasures = session.scalar(select(func.count()).select_from(Erasure)) or 0
        if erasures != before:
            voters, *texts = (_NumberedTexts() for _ in range(6))
            kinds = [int, voters, *texts[:2], float, float, *texts[2:], texts[-1]]
            self._written = _MANY
            columns = self._load(session, erasures, voters, texts) or read_later_votes(session, kinds, None)
        (rated,) = _read_columns(session, _RATED_NUMBERS, [int])
        missing = rated[np.isin(rated, columns[0], assume_unique=True, invert=True)]
        if len(missing):
            # Of two simultaneous votes, the vote with the lower number may become visible later.
            first = min(int(missing[0]), int(columns[0].max(initial=0)) + 1)
            later = read_later_votes(session, kinds, first)
            columns = [np.append(old[columns[0] < first], new) for old, new in zip(columns, later, strict=True)]
        self._kept = erasures, kinds, columns
        counts = np.isin(columns[0], rated, assume_unique=True)
        return _divide_by_protocol(session, kinds, [column[counts] for column in columns])

    def keep(self, session: Session) -> None:
        """Write the votes that were read to the file, unless they are few or nearly all are in it.

        Args:
            session: a session with the database state in which they were read.

        Raises:
            OSError: the file cannot be written.
        """
        erasures, kinds, columns = self._kept
        if self._file is None or not columns or len(columns[0]) < 1.1 * self._written:
            return
        numbers = {voter: number for number, voter in session.execute(_FIRST_VOTES)}
        voters, *texts = (kinds[at] for at in _TEXTS)
        newest = int(columns[0][-1])
        battle = session.scalar(select(Vote.battle).where(Vote.number == newest)) or ""
        kept = KeptVotes(erasures, (newest, battle), [numbers[voter] for voter in voters], [*map(list, texts)], columns)
        write_kept(self._file, kept)
        self._written = len(columns[0])

    def _load(
        self, session: Session, erasures: int, voters: dict[str, int], texts: Sequence[dict[str, int]]
    ) -> list[NDArray[Any]] | None:
        """Return the columns in the file, and number their voters and texts; None if it has none. A file of another
        database, or from before an erasure, is deleted.
        """
        if self._file is None or (kept := read_kept(self._file, KeptVotes)) is None:
            return None
        number, battle = kept.newest
        names = {first: voter for first, voter in session.execute(_FIRST_VOTES)}
        same = session.scalar(select(Vote.battle).where(Vote.number == number)) == battle
        if not (same and kept.erasures == erasures and names.keys() >= set(kept.voters)):
            self._file.unlink(missing_ok=True)
            return None
        for known, found in zip((voters, *texts), ([names[first] for first in kept.voters], *kept.texts), strict=True):
            for text in found:
                known.setdefault(text, len(known))
        self._written = len(kept.columns[0])
        return kept.columns


def read_later_votes(session: Session, kinds: Sequence[Any], first: int | None) -> list[NDArray[Any]]:
    """Return the columns of all votes, or of the votes from a given number on.

    Battles and votes are read one after the other, because a join in the database takes longer.

    Args:
        session: a database session.
        kinds: the kinds of the columns, as in `_read_columns`.
        first: the lowest number to read; None for all votes.
    """
    ids, battles, votes = _NumberedTexts(), _BATTLES, _JUDGED
    if first is not None:
        votes = votes.where(Vote.number >= first)
        battles = battles.where(Battle.id.in_(select(Vote.battle).where(Vote.number >= first)))
    _, *of_battles = _read_columns(session, battles, [ids, *kinds[-4:]])
    battle, *of_votes = _read_columns(session, votes, [ids, *kinds[:-4]])
    # A battle that was not read repeats another battle.
    read = battle < len(of_battles[0])
    return [*(column[read] for column in of_votes), *(column[battle[read]] for column in of_battles)]


def _divide_by_protocol(
    session: Session, kinds: Sequence[Any], columns: Sequence[NDArray[Any]]
) -> dict[str, RatedVotes]:
    """Divide votes by protocol.

    Args:
        session: a database session.
        kinds: the kind of each column: a type, or the numbers that replace the column's texts.
        columns: the columns.
    """
    _, voters, outcomes, preferences, _, _, protocols, dimensions, outputs, _ = kinds
    _, voter, outcome, preference, heard_a, heard_b, protocol, dimension, *sides = columns
    # Number systems and voters in alphabetical order.
    of_output = {
        row.id: row for row in session.execute(select(ArenaOutput.id, ArenaOutput.system, ArenaOutput.seconds))
    }
    systems, system = np.unique([of_output[output].system for output in outputs], return_inverse=True)
    seconds = np.array([of_output[output].seconds for output in outputs], dtype=np.float64)
    battles = Battles(
        systems=tuple(systems.tolist()),
        voters=tuple(sorted(voters)),
        first=system[sides[0]],
        second=system[sides[1]],
        outcome=np.array([OUTCOMES.index(text) for text in outcomes], dtype=np.intp)[outcome],
        voter=np.argsort(np.argsort(np.array(list(voters), dtype=object)))[voter],
        covariates={},
        slight=np.array([text == "slight" for text in preferences], dtype=np.bool_)[preference],
    )
    # Compute how much of each side was heard, in seconds or as a share.
    units = [np.where(protocol != protocols[EXCERPTS], np.maximum(seconds[side], 1e-9), 1.0) for side in sides]
    least = np.minimum(heard_a / units[0], heard_b / units[1])
    names = np.array(list(dimensions), dtype=object)[dimension]
    masks = {name: protocol == protocols[name] for name in PROTOCOLS}
    return {
        name: RatedVotes(battles.only(mask), names[mask].tolist(), least[mask])
        for name, mask in masks.items()
        if mask.any()
    }


class _NumberedTexts(dict[str, int]):
    """Texts, numbered in the order in which they are looked up."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def _read_columns(session: Session, query: ClauseElement, kinds: Sequence[Any]) -> list[NDArray[Any]]:
    """Return the columns of a query as arrays; each kind is a type, or the numbers that replace a column's texts.

    The driver's cursor is used, because converting the rows in SQLAlchemy would double the time.
    """
    statement = query.compile(session.get_bind(), compile_kwargs={"literal_binds": True})
    parts: list[list[NDArray[Any]]] = [[np.zeros(0, kind if isinstance(kind, type) else np.int32)] for kind in kinds]
    cursor = session.connection().connection.cursor()
    cursor.execute(str(statement))
    while rows := cursor.fetchmany(_ROWS):
        for part, kind, column in zip(parts, kinds, zip(*rows, strict=True), strict=True):
            values = column if isinstance(kind, type) else map(kind.__getitem__, column)
            part.append(np.fromiter(values, part[0].dtype, len(rows)))
    return [np.concatenate(part) for part in parts]


def build_rating_table(session: Session, dimension: str | None = None) -> pd.DataFrame:
    """Return the rated votes in the order in which they were recorded, with `COLUMNS`.

    Args:
        session: a database session.
        dimension: the only dimension to include; all by default.
    """
    query = _select_votes(COLUMNS).where(*RATED, *([] if dimension is None else [Battle.dimension == dimension]))
    table = pd.DataFrame(session.execute(query).all(), columns=list(COLUMNS))
    numbers = [name for name in COLUMNS if name.startswith(("seconds_", "heard_seconds_", "loudness_"))]
    return table.astype(dict.fromkeys(numbers, float))


def _select_votes(columns: Iterable[str]) -> Select[Any]:
    return (
        select(*(_CELLS[name].label(name) for name in columns))
        .join(Battle, Vote.battle == Battle.id)
        .join(_A, Battle.output_a == _A.id)
        .join(_B, Battle.output_b == _B.id)
        .order_by(Vote.number)
    )


# Statements are built once, because building a statement takes longer than executing it.
_NUMBERS = select(RATED_VOTES.c.number).where(RATED_VOTES.c.number > bindparam("after")).order_by(RATED_VOTES.c.number)
_PAGE, _PAGE_OF_DIMENSION = (
    _select_votes(PUBLIC_COLUMNS).where(Vote.number.in_(numbers.offset(bindparam("offset")).limit(bindparam("limit"))))
    for numbers in (_NUMBERS, _NUMBERS.where(RATED_VOTES.c.dimension == bindparam("dimension")))
)


def list_public_votes(
    session: Session, *, limit: int, dimension: str | None = None, after: int = 0, offset: int = 0
) -> list[dict[str, Any]]:
    """List some rated votes in the order in which they were recorded, with `PUBLIC_COLUMNS`.

    Args:
        session: a database session.
        limit: maximum number of votes.
        dimension: the only dimension to include; all by default.
        after: exclusive lower limit on the votes' numbers; the database finds the first vote immediately.
        offset: number of votes to skip at the beginning; the database counts the skipped votes in an index.
    """
    page = {"after": after, "offset": offset, "limit": limit, "dimension": dimension}
    rows = session.execute(_PAGE if dimension is None else _PAGE_OF_DIMENSION, page)
    return [dict(row) for row in rows.mappings()]
