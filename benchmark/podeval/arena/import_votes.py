"""Import records from an export, another arena's log, a bucket, or the public log, each exactly once."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sqlalchemy import select
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
from podeval.store import pseudonyms
from podeval.store.database import Database
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Erasure, Flag, Vote


@dataclass
class TakenIn:
    """The result of an import: how many records were new, and why the others were skipped."""

    votes: int = 0
    standings: int = 0
    erasures: int = 0
    repeated: int = 0
    erased: int = 0
    """Number of skipped records of voters who asked to be forgotten."""
    orphans: int = 0
    """Number of records about a vote or battle that the database lacks."""

    def __add__(self, other: "TakenIn") -> "TakenIn":
        return TakenIn(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(TakenIn)))


def import_files(database: Database, path: Path) -> TakenIn:
    """Import votes, standings and erasures, all or nothing; existing records stay as they are.

    Args:
        database: the database to write.
        path: a folder that `podeval arena export` made, one of its files, or the log of another arena as JSON lines
            or CSV.

    Raises:
        BadInput: a file cannot be read, or holds something that is not a record; the message names the row.
    """
    files = [path]
    if path.is_dir():
        tables = (path / f"{name}.parquet" for name in ("votes", "standings", "erasures"))
        files = [file for file in tables if file.is_file()]
    if not files:
        raise BadInput(f"{path} contains no votes.parquet; give a folder that `podeval arena export` made")
    records = [record for file in files for record in read_file(file)]
    return database.write(lambda session: take_in(session, records))


def read_file(file: Path) -> Iterator[Record]:
    """Read the records of one file of an export, or of another log of battles.

    Raises:
        BadInput: it cannot be read, or contains something that is not a record; the message names the row.
    """
    for number, row in _rows_of_parquet(file) if file.suffix == ".parquet" else _rows_of_lines(file):
        where = f"{file}, row {number}"
        yield read_record(convert_log_record(row, where), where)


def take_in(session: Session, records: Iterable[Record]) -> TakenIn:
    """Add records that the database lacks to the session; missing systems, items and outputs are made without audio.

    Raises:
        BadInput: a vote exists with another content, or its battle exists with another vote.
    """
    done = TakenIn()
    erased = set(session.scalars(select(Erasure.pseudonym)))
    here = _Here()
    for record in records:
        match record:
            case VoteRecord():
                _vote(session, record, done, erased, here)
            case StandingRecord():
                _standing(session, record, done)
            case ErasureRecord():
                done.repeated += record.voter in erased
                done.erasures += record.voter not in erased
                pseudonyms.erase(session, record.voter, now=record.at)
                erased.add(record.voter)
    session.flush()
    return done


class _Here:
    """The rows that are known to exist."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def make_sure(self, session: Session, kind: type[Any], key: str, values: dict[str, Any]) -> None:
        if (kind.__tablename__, key) not in self._seen:
            if session.get(kind, key) is None:
                session.add(kind(id=key, **values))
                session.flush()
            self._seen.add((kind.__tablename__, key))


def _vote(session: Session, record: VoteRecord, done: TakenIn, erased: set[str], here: _Here) -> None:
    if record.voter in erased:
        done.erased += 1
        return
    row = session.scalar(select(Vote).where((Vote.id == record.id) | (Vote.battle == record.battle)))
    if row is not None:
        if (row.id, row.battle, row.voter, row.outcome) != (
            record.id, record.battle, record.voter, record.outcome
        ):  # fmt: skip
            raise BadInput(
                f"the vote {record.id} is already here with different content; one of the two logs was changed"
            )
        done.repeated += 1
        return
    if record.repeats is not None and session.get(Battle, record.repeats) is None:
        done.orphans += 1
        return
    _surroundings(session, record, here)
    if session.get(Battle, record.battle) is None:
        session.add(make_battle(record, *(make_output_id(system, record.item) for system in _systems(record))))
        session.flush()
    session.add(make_vote(record))
    session.flush()
    done.votes += 1


def _systems(record: VoteRecord) -> tuple[str, str]:
    return record.system_a, record.system_b


def _surroundings(session: Session, record: VoteRecord, here: _Here) -> None:
    moment = record.recorded_at
    for system in _systems(record):
        here.make_sure(session, ArenaSystem, system, {"title": system[:300], "active": False, "added_at": moment})
    item = {
        "benchmark": record.benchmark, "dimension": record.dimension, "capability": record.capability,
        "language": record.language, "active": False, "added_at": moment,
    }  # fmt: skip
    here.make_sure(session, ArenaItem, record.item, item)
    for side, system in (("a", record.system_a), ("b", record.system_b)):
        values = {
            "system": system, "item": record.item, "audio": "", "active": False, "added_at": moment,
            "seconds": getattr(record, f"output_seconds_{side}"),
            "loudness": getattr(record, f"output_loudness_{side}"),
            "sha256": getattr(record, f"output_sha256_{side}"),
        }  # fmt: skip
        here.make_sure(session, ArenaOutput, make_output_id(system, record.item), values)


def _standing(session: Session, record: StandingRecord, done: TakenIn) -> None:
    vote = session.scalar(select(Vote).where(Vote.id == record.vote))
    if vote is None:
        done.orphans += 1
        return
    if session.scalar(select(Flag.number).where(Flag.id == record.id)) is not None:
        done.repeated += 1
        return
    newest = session.scalar(
        select(Flag.made_at)
        .where(Flag.vote == record.vote, Flag.kind.in_(("excluded", "counted")))
        .order_by(Flag.made_at.desc())
        .limit(1)
    )
    session.add(
        Flag(
            id=record.id,
            vote=record.vote,
            kind=record.standing,
            detail=record.reason,
            made_by=record.by,
            made_at=record.at,
        )
    )
    if newest is None or record.at >= newest:
        vote.standing, vote.standing_reason, vote.standing_by = record.standing, record.reason, record.by
    session.flush()
    done.standings += 1


def make_output_id(system: str, item: str) -> str:
    """Return the id of a system's output for an item; it is the same in every database."""
    return hashlib.sha256(f"{system}\x00{item}".encode()).hexdigest()[:32]


def _rows_of_parquet(file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [(str(number), row) for number, row in enumerate(pq.read_table(file).to_pylist(), 1)]
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"cannot read {file} as Parquet: {str(error).partition(chr(10))[0]}") from None


def _rows_of_lines(file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        records = list_records(file.read_text(encoding="utf-8"), "vote")
    except MissingInput:
        return []
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}; name a folder or a file of an export") from error
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not text; name a .jsonl or .parquet file of an export") from None
    except BadInput as refusal:
        raise BadInput(f"{file}: {refusal}") from None
    return [(location.split()[-1], record) for location, record in records]
