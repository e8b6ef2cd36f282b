"""Export all human judgements as Parquet.

An export is made anew each time, so that it can hold comments (a person who is erased is not in the next one); without
`comments` it is as public as the log. Votes can be imported again; listening tests are exported for analysis only.
"""

import io
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.vote_records import (
    ErasureRecord,
    Record,
    StandingRecord,
    VoteRecord,
    read_erasure_records,
    read_standing_records,
    read_vote_records,
)
from podeval.files import write_whole
from podeval.store.database import Database
from podeval.store.tables import ListeningAnswer, ListeningRating, ListeningSession, ListeningTest

_TEST = {"test": "name", "kind": "kind", "design": "digest"}
_SITTING = ("listener", "finished_at", "standing")
_RATING = ("page", "item", "stimulus", "scale", "value", "heard", "seconds", "saved_at")
_ANSWER = ("page", "item", "stimulus", "question", "choice", "reason", "seconds", "saved_at")


def export(database: Database, folder: Path, *, comments: bool = False) -> dict[str, int]:
    """Write `votes`, `standings`, `erasures`, `ratings` and `answers`, each atomically; return their numbers of rows.

    Args:
        database: the database to read, in one consistent state.
        folder: the folder of the export; it is made if it does not exist.
        comments: whether what voters and listeners wrote is included.
    """
    with database.reading() as session:
        tables = {
            "votes": (_list_columns(VoteRecord), [_plain(one) for one in read_vote_records(session, private=comments)]),
            "standings": (_list_columns(StandingRecord), [_plain(one) for one in read_standing_records(session)]),
            "erasures": (_list_columns(ErasureRecord), [_plain(one) for one in read_erasure_records(session)]),
            "ratings": _read_listening(session, ListeningRating, _RATING),
            "answers": _read_listening(session, ListeningAnswer, _ANSWER),
        }
    if not comments:
        for row in tables["answers"][1]:
            row["reason"] = ""
    for name, (columns, rows) in tables.items():
        write_whole(folder / f"{name}.parquet", _write_parquet(columns, rows))
    return {name: len(rows) for name, (_, rows) in tables.items()}


def _plain(record: Record) -> dict[str, Any]:
    return record.model_dump(by_alias=True)


def _list_columns(model: type[Record]) -> dict[str, type]:
    """Return the columns of a type of record, each with the type of its values."""
    return {field.alias or name: _find_type(field.annotation) for name, field in model.model_fields.items()}


def _find_type(annotation: Any) -> type:
    """Return the plain type of an annotation: of a choice its values', of an optional one the type that is not None."""
    while parts := [part for part in get_args(annotation) if part is not type(None)]:
        annotation = parts[0]
    return annotation if isinstance(annotation, type) else type(annotation)


def _read_listening(
    session: Session, table: type[ListeningRating | ListeningAnswer], names: tuple[str, ...]
) -> tuple[dict[str, type], list[dict[str, Any]]]:
    """Return the columns and the rows of what listeners gave, with their session and test."""
    query = (
        select(table, ListeningSession, ListeningTest)
        .join(ListeningSession, table.session == ListeningSession.id)
        .join(ListeningTest, ListeningSession.test == ListeningTest.id)
        .order_by(table.number)
    )
    columns = {
        **{name: _find_column_type(ListeningTest, of) for name, of in _TEST.items()},
        **{name: _find_column_type(ListeningSession, name) for name in _SITTING},
        **{name: _find_column_type(table, name) for name in names},
    }
    rows = [
        {
            **{name: getattr(test, of) for name, of in _TEST.items()},
            **{name: getattr(sitting, name) for name in _SITTING},
            **{name: getattr(judgement, name) for name in names},
        }
        for judgement, sitting, test in session.execute(query)
    ]
    return columns, rows


def _find_column_type(table: Any, name: str) -> type:
    kind: type = table.__table__.c[name].type.python_type
    return kind


def _write_parquet(columns: dict[str, type], rows: list[dict[str, Any]]) -> bytes:
    """Return a table as Parquet; its columns are there also if it has no rows, so that readers can rely on them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    times = pa.timestamp("us", tz="UTC")
    table = pa.Table.from_pylist(rows, pa.schema([(name, types.get(kind, times)) for name, kind in columns.items()]))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
