"""Export all human judgements: Parquet for analysis, JSON lines for anything else.

An export is made anew each time, so that it can hold comments (a person who is erased is not in the next one); without
`comments` it is as public as the log. Votes can be imported again; listening tests are exported for analysis only.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.import_votes import TakenIn, take_in
from podeval.arena.vote_records import (
    ErasureRecord,
    Record,
    StandingRecord,
    VoteRecord,
    convert_log_record,
    read_erasure_records,
    read_record,
    read_standing_records,
    read_vote_records,
    to_line,
)
from podeval.errors import BadInput
from podeval.metrics.human_records import list_records
from podeval.metrics.inputs import MissingInput
from podeval.store.database import Database
from podeval.store.files import write_whole
from podeval.store.tables import ListeningAnswer, ListeningRating, ListeningSession, ListeningTest

Format = Literal["parquet", "jsonl"]
FORMATS: tuple[Format, ...] = ("parquet", "jsonl")


def export(database: Database, folder: Path, format: Format = "parquet", *, comments: bool = False) -> dict[str, int]:
    """Write `votes`, `standings`, `erasures`, `ratings` and `answers`, each atomically; return their numbers of rows.

    Args:
        database: the database to read, in one consistent state.
        folder: folder of the export; it is made where it does not exist.
        format: format of the files.
        comments: include what voters and listeners wrote.
    """
    if format not in FORMATS:
        raise BadInput(f"{format} is not an export format; choose from {', '.join(FORMATS)}")
    with database.reading() as session:
        tables = {
            "votes": [_plain(record) for record in read_vote_records(session, private=comments)],
            "standings": [_plain(record) for record in read_standing_records(session)],
            "erasures": [_plain(record) for record in read_erasure_records(session)],
            "ratings": list(_ratings(session)),
            "answers": list(_answers(session, comments)),
        }
    for name, rows in tables.items():
        write_whole(
            folder / f"{name}.{format}", _parquet(rows, _COLUMNS[name]) if format == "parquet" else _lines(rows)
        )
    return {name: len(rows) for name, rows in tables.items()}


def import_files(database: Database, path: Path) -> TakenIn:
    """Import the votes, standings and erasures of an export, all or nothing; existing records stay as they are.

    Args:
        database: the database to write.
        path: a folder that `export` made, one of its files, or the log of another arena as JSON lines or CSV.

    Raises:
        BadInput: a file cannot be read, or holds something that is not a record; the message names the row.
    """
    if path.is_dir():
        files = [path / f"{name}.{kind}" for name in ("votes", "standings", "erasures") for kind in FORMATS]
        files = [file for file in files if file.is_file()]
    else:
        files = [path]
    if not files:
        raise BadInput(
            f"{path} contains no votes.parquet or votes.jsonl; give a folder that `podeval arena export` made"
        )
    records = [record for file in files for record in read_file(file)]
    return database.write(lambda session: take_in(session, records))


def read_file(file: Path) -> Iterator[Record]:
    """Read the records of one file of an export, or of another log of battles.

    Raises:
        BadInput: it cannot be read, or contains something that is not a record; the message names the row.
    """
    rows = _rows_of_parquet(file) if file.suffix == ".parquet" else _rows_of_lines(file)
    for number, row in rows:
        where = f"{file}, row {number}"
        yield read_record(convert_log_record(row, where), where)


def read_lines(text: str, name: str) -> Iterator[Record]:
    """Read records from lines of JSON.

    Raises:
        BadInput: a line is not a record; the message names it.
    """
    for number, data in enumerate(_parse(text, name), 1):
        yield read_record(data, f"{name}, row {number}")


def write_lines(records: Iterable[Record]) -> str:
    """Write records as lines of JSON."""
    return "".join(to_line(record) + "\n" for record in records)


def _plain(record: Record) -> dict[str, Any]:
    return record.model_dump(by_alias=True)


def _kinds(model: type[Record]) -> dict[str, type]:
    """Return the columns of a type of record, each with the type of its values."""
    properties = model.model_json_schema(by_alias=True)["properties"]
    return {name: _kind(of) for name, of in properties.items()}


def _kind(of: dict[str, Any]) -> type:
    """Return the Python type of a JSON Schema."""
    if "anyOf" in of:
        return next(_kind(one) for one in of["anyOf"] if one.get("type") != "null")
    if of.get("format") == "date-time":
        return datetime
    kinds: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
    return kinds[of["type"]]


def _ratings(session: Session) -> Iterator[dict[str, Any]]:
    query = (
        select(ListeningRating, ListeningSession, ListeningTest)
        .join(ListeningSession, ListeningRating.session == ListeningSession.id)
        .join(ListeningTest, ListeningSession.test == ListeningTest.id)
        .order_by(ListeningRating.number)
    )
    for rating, sitting, test in session.execute(query):
        yield _sitting(sitting, test) | {
            "page": rating.page,
            "item": rating.item,
            "stimulus": rating.stimulus,
            "scale": rating.scale,
            "value": rating.value,
            "heard": rating.heard,
            "seconds": rating.seconds,
            "saved_at": rating.saved_at,
        }


def _answers(session: Session, comments: bool) -> Iterator[dict[str, Any]]:
    query = (
        select(ListeningAnswer, ListeningSession, ListeningTest)
        .join(ListeningSession, ListeningAnswer.session == ListeningSession.id)
        .join(ListeningTest, ListeningSession.test == ListeningTest.id)
        .order_by(ListeningAnswer.number)
    )
    for answer, sitting, test in session.execute(query):
        yield _sitting(sitting, test) | {
            "page": answer.page,
            "item": answer.item,
            "stimulus": answer.stimulus,
            "question": answer.question,
            "choice": answer.choice,
            "reason": answer.reason if comments else "",
            "seconds": answer.seconds,
            "saved_at": answer.saved_at,
        }


def _sitting(sitting: ListeningSession, test: ListeningTest) -> dict[str, Any]:
    return {
        "test": test.name,
        "kind": test.kind,
        "design": test.digest,
        "listener": sitting.listener,
        "finished_at": sitting.finished_at,
        "standing": sitting.standing,
    }


_SITTING = {**dict.fromkeys(("test", "kind", "design", "listener"), str), "finished_at": datetime, "standing": str}
_SAVED = {"seconds": float, "saved_at": datetime}
_COLUMNS: dict[str, dict[str, Any]] = {
    "votes": _kinds(VoteRecord),
    "standings": _kinds(StandingRecord),
    "erasures": _kinds(ErasureRecord),
    "ratings": {
        **_SITTING,
        **dict.fromkeys(("page", "item", "stimulus", "scale"), str),
        **dict.fromkeys(("value", "heard"), float),
        **_SAVED,
    },
    "answers": {
        **_SITTING,
        **dict.fromkeys(("page", "item", "stimulus", "question", "choice", "reason"), str),
        **_SAVED,
    },
}
"""Columns of each table, written even if it has no rows, so that readers can rely on them."""


def _parquet(rows: list[dict[str, Any]], columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    types[datetime] = pa.timestamp("us", tz="UTC")
    empty = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    table = pa.Table.from_pylist(rows) if rows else empty.empty_table()
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _lines(rows: list[dict[str, Any]]) -> bytes:
    def text(value: object) -> str:
        return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else str(value)

    return "".join(json.dumps(row, ensure_ascii=False, default=text, allow_nan=False) + "\n" for row in rows).encode()


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


def _parse(text: str, name: str) -> Iterator[Any]:
    """Parse JSON line by line; only a line feed ends a line, because a comment may hold other separators."""
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise BadInput(f"{name}, row {number} is not JSON: {error}") from None
