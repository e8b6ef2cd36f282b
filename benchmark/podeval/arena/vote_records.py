"""Votes and decisions as plain records: JSON Lines for the public log, imports and buckets, and Parquet for exports.

A public record names a voter only by pseudonym and contains no comment, because a comment may name a person and the log
cannot be changed. A private record contains the comment. Neither kind contains the origin of a vote.
"""

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator
from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.metrics.battle_log import read_log_record
from podeval.stats.questionnaire_scores import ABOUT
from podeval.store.database import Database
from podeval.store.tables import (
    ArenaItem,
    ArenaOutput,
    Battle,
    Erasure,
    Flag,
    ListeningAnswer,
    ListeningRating,
    ListeningSession,
    ListeningTest,
    Vote,
)  # fmt: skip

_Share = Annotated[float, Field(ge=0, le=1)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Key = Annotated[str, Field(min_length=1, max_length=64)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    schema_version: Literal[1] = Field(1, alias="schema")


class VoteRecord(_Record):
    """One vote with its battle."""

    schema_version: Literal[2] = Field(2, alias="schema")  # type: ignore[assignment]
    record: Literal["vote"] = "vote"
    id: _Key
    number: Annotated[int, Field(ge=0)]
    battle: Annotated[str, Field(min_length=1, max_length=32)]
    voter: Annotated[str, Field(min_length=1, max_length=40)]
    outcome: Literal["a", "b", "tie", "both_bad", "skip"]
    system_a: Annotated[str, Field(min_length=1, max_length=200)]
    system_b: Annotated[str, Field(min_length=1, max_length=200)]
    item: Annotated[str, Field(min_length=1, max_length=200)]
    benchmark: Annotated[str, Field(max_length=100)] = ""
    dimension: Annotated[str, Field(min_length=1, max_length=100)]
    capability: Annotated[str, Field(max_length=200)] = ""
    language: Annotated[str, Field(max_length=20)] = ""
    output_seconds_a: _Seconds
    output_seconds_b: _Seconds
    output_loudness_a: float | None = None
    output_loudness_b: float | None = None
    output_sha256_a: Annotated[str, Field(max_length=64)] = ""
    output_sha256_b: Annotated[str, Field(max_length=64)] = ""
    excerpt: str
    """The excerpts of both sides, as JSON text."""
    protocol: Literal["excerpts", "whole"]
    purpose: Literal["rating", "gold"] = "rating"
    repeats: Annotated[str, Field(max_length=32)] | None = None
    seed: int
    pairing: Annotated[str, Field(max_length=40)]
    served_at: AwareDatetime
    expires_at: AwareDatetime
    recorded_at: AwareDatetime
    elapsed: _Seconds | None = None
    heard_a: _Share
    heard_b: _Share
    seconds_a: _Seconds
    seconds_b: _Seconds
    heard_seconds_a: _Seconds = 0.0
    heard_seconds_b: _Seconds = 0.0
    preference: Literal["", "clear", "slight"] = ""
    comment: Annotated[str, Field(max_length=2000)] = ""
    comment_cut: bool = False
    standing: Literal["counted", "excluded"] = "counted"
    standing_reason: str = ""
    standing_by: Literal["", "rules", "a person"] = ""

    @model_validator(mode="after")
    def _two_systems(self) -> "VoteRecord":
        if self.system_a == self.system_b:
            raise ValueError("a system cannot be compared with itself")
        if (self.purpose == "gold") != (self.repeats is not None):
            raise ValueError(
                "a battle with the purpose gold, and only such a battle, must name the battle that it repeats"
            )
        json.loads(self.excerpt)
        return self


class StandingRecord(_Record):
    """A decision about a vote."""

    record: Literal["standing"] = "standing"
    id: Annotated[str, Field(min_length=1, max_length=32)]
    vote: _Key
    standing: Literal["counted", "excluded"]
    reason: str
    by: Literal["rules", "a person"]
    at: AwareDatetime


class ErasureRecord(_Record):
    """The erasure of a voter who asked to be forgotten."""

    record: Literal["erasure"] = "erasure"
    voter: Annotated[str, Field(min_length=1, max_length=40)]
    at: AwareDatetime


Record = VoteRecord | StandingRecord | ErasureRecord


def name_of(record: Record) -> str:
    """Return the name that identifies a record in the public log."""
    match record:
        case VoteRecord():
            return f"vote:{record.id}"
        case StandingRecord():
            return f"flag:{record.id}"
    return f"erasure:{record.voter}"


def read_vote_records(
    session: Session, ids: Iterable[str] | None = None, *, private: bool = False
) -> Iterator[VoteRecord]:
    """Return all votes, or those with the given ids, in the order in which they were recorded; if `private`, with
    comments.
    """
    a, b = aliased(ArenaOutput), aliased(ArenaOutput)
    query = (
        select(Vote, Battle, ArenaItem, a, b)
        .join(Battle, Vote.battle == Battle.id)
        .join(ArenaItem, Battle.item == ArenaItem.id)
        .join(a, Battle.output_a == a.id)
        .join(b, Battle.output_b == b.id)
        .order_by(Vote.number)
    )
    if ids is not None:
        query = query.where(Vote.id.in_(list(ids)))
    for vote, battle, item, left, right in session.execute(query.execution_options(yield_per=2000)):
        outputs = {
            f"{'' if name == 'system' else 'output_'}{name}_{side}": getattr(output, name)
            for side, output in (("a", left), ("b", right))
            for name in ("system", "seconds", "loudness", "sha256")
        }
        rows = ((battle, _OF_BATTLE), (vote, _OF_VOTE))
        yield VoteRecord.model_validate({
            **{name: getattr(row, name) for row, names in rows for name in names},
            **outputs,
            "benchmark": item.benchmark,
            "language": item.language,
            "excerpt": json.dumps(battle.excerpt, ensure_ascii=False, allow_nan=False),
            "comment": vote.comment if private else "",
            "standing_by": describe_decider(vote.standing_by),
        })  # fmt: skip


_OF_VOTE, _OF_BATTLE = (
    VoteRecord.model_fields.keys() & set(table.columns.keys()) for table in (Vote.__table__, Battle.__table__)
)
"""Fields that have the same name in the database; the id of a record is that of the vote."""


def read_standing_records(session: Session, ids: Iterable[str] | None = None) -> Iterator[StandingRecord]:
    """Return the decisions that the rules and people made about votes, oldest first."""
    query = select(Flag).where(Flag.vote.is_not(None), Flag.kind.in_(("excluded", "counted"))).order_by(Flag.number)
    if ids is not None:
        query = query.where(Flag.id.in_(list(ids)))
    for flag in session.scalars(query):
        decision = {"vote": flag.vote, "standing": flag.kind, "reason": flag.detail}
        by = describe_decider(flag.made_by) or "rules"
        yield StandingRecord.model_validate({"id": flag.id, **decision, "by": by, "at": flag.made_at})


def read_erasure_records(session: Session, pseudonyms: Iterable[str] | None = None) -> Iterator[ErasureRecord]:
    """Return the erasures of voters."""
    query = select(Erasure).order_by(Erasure.erased_at, Erasure.pseudonym)
    if pseudonyms is not None:
        query = query.where(Erasure.pseudonym.in_(list(pseudonyms)))
    for erasure in session.scalars(query):
        yield ErasureRecord.model_validate({"voter": erasure.pseudonym, "at": erasure.erased_at})


def describe_decider(name: str) -> str:
    """Return whether the rules or a person made the decision, without the person's name."""
    return name if name in ("", "rules") else "a person"


def to_line(record: Record) -> str:
    """Return a record as one line of JSON; times include microseconds."""
    content = record.model_dump(by_alias=True, mode="python")
    microseconds = partial(datetime.isoformat, timespec="microseconds")
    return json.dumps(content, ensure_ascii=False, default=microseconds, allow_nan=False)


def make_vote(record: VoteRecord) -> Vote:
    """Return the row of a vote; the database assigns a new number."""
    return Vote(**{name: getattr(record, name) for name in _OF_VOTE - {"number"}})


def make_battle(record: VoteRecord, output_a: str, output_b: str) -> Battle:
    """Return the row of a vote's battle."""
    low, high = sorted((record.system_a, record.system_b))
    sides = {"output_a": output_a, "output_b": output_b, "low": low, "high": high}
    same = {name: getattr(record, name) for name in _OF_BATTLE}
    return Battle(**same | sides | {"id": record.battle, "excerpt": json.loads(record.excerpt)})


def write_lines(records: Iterable[Record]) -> str:
    """Return records as JSON Lines."""
    return "".join(to_line(record) + "\n" for record in records)


def read_lines(text: str, name: str) -> Iterator[Record]:
    """Read records from JSON Lines; only a line feed ends a line, because a comment may contain other separators.

    Raises:
        BadInput: a line is not a record; the message names the line.
    """
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            data = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{name}, row {number} is not JSON: {error}") from None
        yield read_record(data, f"{name}, row {number}")


def read_record(data: Any, where: str) -> Record:
    """Read a record from plain data.

    Args:
        data: the content of one line or row.
        where: location for the error message.

    Raises:
        BadInput: the data is not a record; the message says what is wrong.
    """
    kinds: dict[Any, type[Record]] = {"vote": VoteRecord, "standing": StandingRecord, "erasure": ErasureRecord}
    kind = kinds.get(data.get("record")) if isinstance(data, dict) else None
    if kind is None:
        raise BadInput(f"{where} is not a vote record written by podeval")
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "it"
        raise BadInput(f"{where}: {location}: {first['msg']}") from None


def convert_log_record(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Convert a record from another battle log to a vote on whole recordings; return podeval's own records unchanged.

    The vote's id is a hash of the record and its row, so a log is imported only once; the voter becomes a pseudonym.

    Args:
        data: the record.
        where: location for the error message; its last word is the row number.

    Raises:
        BadInput: the record has none of the forms that `podeval.metrics.battle_log.read_log_record` reads.
    """
    if "record" in data:
        return data
    row = read_log_record(where, data)
    content = json.dumps([where.split()[-1], data], sort_keys=True, default=str)
    key, voter = (hashlib.sha256(text.encode()).hexdigest()[:32] for text in (content, row["voter"] or content))
    stamp = data.get("tstamp")
    seconds = stamp if isinstance(stamp, int | float) and 0 <= stamp < 1e14 else 0
    moment = datetime.fromtimestamp(seconds / (1000 if seconds > 1e11 else 1), UTC)  # browsers count milliseconds
    # The reason that a judge gave in its first answer.
    ballots = data.get("ballots")
    first = ballots[0] if isinstance(ballots, list) and ballots and isinstance(ballots[0], Mapping) else {}
    return {
        **dict.fromkeys(("output_seconds_a", "output_seconds_b", "seconds_a", "seconds_b", "seed", "number"), 0),
        **dict.fromkeys(("served_at", "expires_at", "recorded_at"), moment),
        **{"record": "vote", "id": key, "battle": key, "voter": voter, "outcome": row["outcome"]},
        **{"system_a": row["first"], "system_b": row["second"], "heard_a": 1.0, "heard_b": 1.0},
        **{"item": str(data.get("dialogue") or key)[:200], "comment": str(first.get("reason", ""))[:2000]},
        **{"dimension": str(data.get("dimension") or "overall"), "capability": str(data.get("capability") or "")},
        **{"excerpt": '{"rule": "whole", "a": [0, 0], "b": [0, 0]}', "protocol": "whole", "pairing": "imported"},
        # The integrity rules consider times and heard parts, and do not overrule a person.
        **{"standing_by": "a person", "standing_reason": "imported from another log"},
    }


_SESSION_COLUMNS = (
    ListeningTest.name.label("test"), ListeningTest.kind, ListeningTest.digest.label("design"),
    ListeningSession.listener, ListeningSession.finished_at, ListeningSession.standing,
)  # fmt: skip
_RATING = ("page", "item", "stimulus", "scale", "value", "heard", "seconds", "saved_at")
_ANSWER = ("page", "item", "stimulus", "question", "choice", "reason", "seconds", "saved_at")

_Table = tuple[dict[str, type], list[dict[str, Any]]]
"""A table: its columns with their types, and its rows."""


def export(database: Database, folder: Path, *, comments: bool = False) -> dict[str, int]:
    """Write `votes`, `standings`, `erasures`, `ratings` and `answers` from a single snapshot of the database, each
    atomically; return the number of rows in each.

    Each export is written from scratch, so it may contain the texts that voters and listeners wrote (`comments`): the
    next export no longer contains an erased person's texts. Without these texts, an export contains only public data.
    """
    with database.reading() as session:
        tables = {
            "votes": _tabulate(VoteRecord, read_vote_records(session, private=comments)),
            "standings": _tabulate(StandingRecord, read_standing_records(session)),
            "erasures": _tabulate(ErasureRecord, read_erasure_records(session)),
            "ratings": _read_listening(session, ListeningRating, _RATING),
            "answers": _read_listening(session, ListeningAnswer, _ANSWER),
        }
    if not comments:
        for row in tables["answers"][1]:
            row["reason"] = ""
    for name, (columns, rows) in tables.items():
        write_whole(folder / f"{name}.parquet", _write_parquet(columns, rows))
    return {name: len(rows) for name, (_, rows) in tables.items()}


def _tabulate(model: type[Record], records: Iterable[Record]) -> _Table:
    columns = {field.alias or name: _find_type(field.annotation) for name, field in model.model_fields.items()}
    return columns, [record.model_dump(by_alias=True) for record in records]


def _find_type(annotation: Any) -> type:
    """Return the plain type of an annotation: for a literal, the type of its values; for an optional type, the type
    without None.
    """
    while parts := [part for part in get_args(annotation) if part is not type(None)]:
        annotation = parts[0]
    return annotation if isinstance(annotation, type) else type(annotation)


def _read_listening(session: Session, table: type[ListeningRating | ListeningAnswer], names: tuple[str, ...]) -> _Table:
    """Read listeners' contributions, each with its session and test."""
    query = (
        select(*_SESSION_COLUMNS, *(getattr(table, name) for name in names))
        .select_from(table)
        .join(ListeningSession, table.session == ListeningSession.id)
        .join(ListeningTest, ListeningSession.test == ListeningTest.id)
        .where(table.page != ABOUT)
        .order_by(table.number)
    )
    columns = {column.name: column.type.python_type for column in query.selected_columns}
    return columns, [dict(row) for row in session.execute(query).mappings()]


def _write_parquet(columns: dict[str, type], rows: list[dict[str, Any]]) -> bytes:
    """Return a table as Parquet; an empty table also has the columns, so readers can rely on them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    times = pa.timestamp("us", tz="UTC")
    table = pa.Table.from_pylist(rows, pa.schema([(name, types.get(kind, times)) for name, kind in columns.items()]))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
