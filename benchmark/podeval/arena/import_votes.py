"""Import records from an export, a bucket, or the public log, each exactly once."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.protocols import get_protocol_of_rule
from podeval.arena.vote_records import ErasureRecord, Record, StandingRecord, VoteRecord
from podeval.errors import BadInput
from podeval.store import pseudonyms
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
        session.add(_battle(record))
        session.flush()
    heard_a, heard_b = _read_heard(record)
    session.add(
        Vote(
            id=record.id,
            battle=record.battle,
            voter=record.voter,
            outcome=record.outcome,
            comment=record.comment,
            comment_cut=record.comment_cut,
            heard_a=record.heard_a,
            heard_b=record.heard_b,
            seconds_a=record.seconds_a,
            seconds_b=record.seconds_b,
            heard_seconds_a=heard_a,
            heard_seconds_b=heard_b,
            preference=record.preference,
            elapsed=record.elapsed,
            recorded_at=record.recorded_at,
            standing=record.standing,
            standing_reason=record.standing_reason,
            standing_by=record.standing_by,
        )
    )
    session.flush()
    done.votes += 1


def _surroundings(session: Session, record: VoteRecord, here: _Here) -> None:
    moment = record.recorded_at
    for system in (record.system_a, record.system_b):
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


def _battle(record: VoteRecord) -> Battle:
    low, high = sorted((record.system_a, record.system_b))
    return Battle(
        id=record.battle,
        voter=record.voter,
        item=record.item,
        output_a=make_output_id(record.system_a, record.item),
        output_b=make_output_id(record.system_b, record.item),
        low=low,
        high=high,
        dimension=record.dimension,
        capability=record.capability,
        purpose=record.purpose,
        repeats=record.repeats,
        seed=record.seed,
        pairing=record.pairing,
        excerpt=(excerpt := json.loads(record.excerpt)),
        protocol=record.protocol or get_protocol_of_rule(str(excerpt.get("rule"))),
        served_at=record.served_at,
        expires_at=record.expires_at,
    )


def _read_heard(record: VoteRecord) -> tuple[float, float]:
    """Return how many seconds of each side were heard; where a record of before does not say, by the share."""
    if record.heard_seconds_a is not None and record.heard_seconds_b is not None:
        return record.heard_seconds_a, record.heard_seconds_b
    excerpt = json.loads(record.excerpt)
    (begin_a, end_a), (begin_b, end_b) = excerpt.get("a", (0, 0)), excerpt.get("b", (0, 0))
    return record.heard_a * (end_a - begin_a), record.heard_b * (end_b - begin_b)


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
