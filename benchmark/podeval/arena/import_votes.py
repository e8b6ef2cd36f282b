"""Import records from a file, another arena's log, a bucket or the public log, without importing any record twice."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.arena.vote_records import (
    ErasureRecord,
    Record,
    StandingRecord,
    VoteRecord,
    convert_log_record,
    make_battle,
    make_vote,
    read_record,
)
from podeval.errors import BadInput, MissingInput
from podeval.metrics.human_records import list_records
from podeval.store import Database, pseudonyms
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Erasure, Flag, Vote
from podeval.store.vote_counts import count_battles, count_votes


@dataclass
class TakenIn:
    """The result of an import: the number of new records, and the number of skipped records for each reason."""

    votes: int = 0
    standings: int = 0
    erasures: int = 0
    repeated: int = 0
    erased: int = 0
    """Number of skipped records of voters who asked to be forgotten."""
    orphans: int = 0
    """Number of skipped records that concern a vote or battle that the database lacks."""

    def __add__(self, other: "TakenIn") -> "TakenIn":
        return TakenIn(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(TakenIn)))


def import_file(database: Database, file: Path) -> TakenIn:
    """Import all votes, standings and erasures in a file, or none; existing records stay unchanged.

    Args:
        database: the database to write to.
        file: records as JSON Lines, such as a file of the public log, or another arena's log as JSON Lines or CSV.

    Raises:
        BadInput: the file cannot be read, or contains a row that is not a record; the message names the row.
    """
    records = list(read_file(file))
    return database.write(lambda session: take_in(session, records))


def read_file(file: Path) -> Iterator[Record]:
    """Yield the records in a file; an empty file yields none.

    Raises:
        BadInput: the file cannot be read, or contains a row that is not a record; the message names the row.
    """
    try:
        rows = list_records(file.read_text(encoding="utf-8"), "vote")
    except MissingInput:
        return
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}; specify a file of votes") from error
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not text; specify a .jsonl or .csv file of votes") from None
    except BadInput as refusal:
        raise BadInput(f"{file}: {refusal}") from None
    for location, row in rows:
        where = f"{file}, row {location.split()[-1]}"
        yield read_record(convert_log_record(row, where), where)


def take_in(session: Session, records: Iterable[Record]) -> TakenIn:
    """Add the records that the database lacks; missing systems, items and outputs are created without audio.

    Raises:
        BadInput: a vote already exists with different content, or its battle already has a different vote.
    """
    counts: Counter[str] = Counter()
    erased = set(session.scalars(select(Erasure.pseudonym)))
    here: set[tuple[Any, str]] = set()
    for record in records:
        match record:
            case VoteRecord():
                counts[_vote(session, record, erased, here)] += 1
            case StandingRecord():
                counts[_standing(session, record)] += 1
            case ErasureRecord():
                counts["repeated" if record.voter in erased else "erasures"] += 1
                pseudonyms.erase(session, record.voter, now=record.at)
                erased.add(record.voter)
    session.flush()
    return TakenIn(**counts)


def _make_sure(session: Session, here: set[tuple[Any, str]], kind: type[Any], key: str, values: dict[str, Any]) -> None:
    """Add a row unless it already exists; `here` caches the rows that are known to exist."""
    if (kind, key) not in here and session.get(kind, key) is None:
        session.add(kind(id=key, **values))
        session.flush()
    here.add((kind, key))


def _vote(session: Session, record: VoteRecord, erased: set[str], here: set[tuple[Any, str]]) -> str:
    """Import one vote; return the name of the `TakenIn` field that counts it."""
    if record.voter in erased:
        return "erased"
    # Each vote is imported only once; a vote with the same id but different content is refused.
    row = session.scalar(select(Vote).where((Vote.id == record.id) | (Vote.battle == record.battle)))
    if row is not None:
        if any(getattr(row, name) != getattr(record, name) for name in ("id", "battle", "voter", "outcome")):
            raise BadInput(
                f"the vote {record.id} already exists here with different content; one of the two logs has been changed"
            )
        return "repeated"
    # A battle that repeats an earlier battle can be added only if the earlier battle exists.
    if record.repeats is not None and session.get(Battle, record.repeats) is None:
        return "orphans"
    # Add the battle with the systems that it compares, then the vote.
    _add_compared(session, record, here)
    if session.get(Battle, record.battle) is None:
        outputs = (make_output_id(system, record.item) for system in (record.system_a, record.system_b))
        battle = make_battle(record, *outputs)
        session.add(battle)
        session.flush()
        count_battles(session, [battle])
    session.add(make_vote(record))
    session.flush()
    count_votes(session, Vote.id == record.id)
    return "votes"


def _add_compared(session: Session, record: VoteRecord, here: set[tuple[Any, str]]) -> None:
    """Add a vote's systems, item and outputs unless they already exist."""
    common = {"active": False, "added_at": record.recorded_at}
    item = {name: getattr(record, name) for name in ("benchmark", "dimension", "capability", "language")}
    _make_sure(session, here, ArenaItem, record.item, {**item, **common})
    for side in "ab":
        system = getattr(record, f"system_{side}")
        _make_sure(session, here, ArenaSystem, system, {"title": system[:300], **common})
        measured = {name: getattr(record, f"output_{name}_{side}") for name in ("seconds", "loudness", "sha256")}
        values = {"system": system, "item": record.item, "audio": "", **measured, **common}
        _make_sure(session, here, ArenaOutput, make_output_id(system, record.item), values)


def _standing(session: Session, record: StandingRecord) -> str:
    """Import one decision; return the name of the `TakenIn` field that counts it."""
    vote = session.scalar(select(Vote).where(Vote.id == record.vote))
    if vote is None:
        return "orphans"
    if session.scalar(select(Flag.number).where(Flag.id == record.id)) is not None:
        return "repeated"
    decisions = (Flag.vote == record.vote, Flag.kind.in_(("excluded", "counted")))
    newest = session.scalar(select(func.max(Flag.made_at)).where(*decisions))
    decision = {"kind": record.standing, "detail": record.reason, "made_by": record.by, "made_at": record.at}
    session.add(Flag(id=record.id, vote=record.vote, **decision))
    if newest is None or record.at >= newest:
        count_votes(session, Vote.id == vote.id, -1)
        vote.standing, vote.standing_reason, vote.standing_by = record.standing, record.reason, record.by
        session.flush()
        count_votes(session, Vote.id == vote.id)
    session.flush()
    return "standings"


def make_output_id(system: str, item: str) -> str:
    """Return the id of a system's output for an item; the id is the same in every database."""
    return hashlib.sha256(f"{system}\x00{item}".encode()).hexdigest()[:32]
