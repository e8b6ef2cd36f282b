"""Keep the last ranking of an arena and its votes on disk, so that a restarted site can show this ranking until the
next is computed, and does not have to read every vote from the database.

For each database, the user's cache folder contains two files. Each is an archive of NumPy arrays, without pickles; the
data that is not an array is stored as JSON text in one of them. A file is not used if its newest vote no longer
exists in the database.
"""

import hashlib
import io
import json
import types
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ClauseElement, func, select
from sqlalchemy.orm import Session

from podeval.arena.ratings import RatedVotes
from podeval.arena.settings import EXCERPTS, PROTOCOLS
from podeval.files import find_user_folder, write_whole
from podeval.stats.battles import OUTCOMES, Battles
from podeval.store.tables import ArenaOutput, Battle, Erasure, Vote
from podeval.store.vote_counts import RATED, RATED_VOTES

Kept = TypeVar("Kept")

_ARRAY = "array"
"""The only key of a JSON object that represents an array; its value is the number of the array."""

_ROWS = 100
"""Number of votes to read at a time."""

_MANY = 20_000
"""Number of votes that are read quickly; the file is written if there are 10 % more votes than this, or than in it."""

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


def find_file(database: str) -> Path:
    """Return the path of the file with a database's ranking.

    Args:
        database: the name of the database.
    """
    return find_user_folder() / "rankings" / f"{hashlib.sha256(database.encode()).hexdigest()[:32]}.npz"


def write_kept(file: Path, kept: Any) -> None:
    """Write a dataclass that may contain dataclasses, dictionaries, tuples, lists, arrays, times and plain values."""
    arrays: list[Any] = []

    def replace(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}

    content = json.dumps(asdict(kept), default=replace).encode()
    buffer = io.BytesIO()
    numbered = {f"{_ARRAY}{number}": array for number, array in enumerate(arrays)}
    np.savez(buffer, content=np.frombuffer(content, dtype=np.uint8), **numbered)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, buffer.getvalue())


def read_kept(file: Path, kind: type[Kept]) -> Kept | None:
    """Return the ranking in a file; None if the file does not exist or cannot be read by this version.

    Args:
        file: the file.
        kind: the dataclass of the ranking.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:

            def restore(part: dict[str, Any]) -> Any:
                return archive[f"{_ARRAY}{part[_ARRAY]}"] if part.keys() == {_ARRAY} else part

            content = json.loads(archive["content"].tobytes(), object_hook=restore)
        ranking: Kept = _build(kind, content)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        return None
    return ranking


def _build(kind: Any, value: Any) -> Any:
    """Build a value of the given type from its JSON form."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _build(next(part for part in parts if part is not types.NoneType), value)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        fields = {name: _build(hints[name], part) for name, part in value.items()}
        return kind(**fields)  # type: ignore[operator]
    if origin is Mapping or origin is dict:
        return {key: _build(parts[1], part) for key, part in value.items()}
    if origin is tuple or origin is list:
        return origin(_build(parts[0], part) for part in value)
    return datetime.fromisoformat(value) if kind is datetime else value


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
