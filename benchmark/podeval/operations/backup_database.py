"""Copy a board's database to a SQLite file, and the rows of such a file to a server.

A SQLite file is copied with SQLite's online backup; rows are copied from PostgreSQL to a file, or back, in one
transaction. A file can be restored only if its schema is exactly that of its version, because its triggers and views
would run when votes arrive; the tables of a server are always created by the migrations.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, NullPool, Table, create_engine, func, insert, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable
from podeval.files import DiskFull
from podeval.store import operator_settings, submission_tables, vote_counts  # noqa: F401 - makes their tables known
from podeval.store.database import Database, parse_address
from podeval.store.migrate import create_tables
from podeval.store.tables import ArenaItem, ArenaOutput, ListeningTest, TableBase, list_audio

_ROWS = 2_000
"""Maximum number of rows in memory at once."""


def list_tables() -> list[Table]:
    """List all tables, each after the tables that it refers to."""
    return TableBase.metadata.sorted_tables


def copy_database(database: str | Path, file: Path) -> None:
    """Copy a database that may be in use, in one consistent state, to a new SQLite file.

    Raises:
        BadInput: there is no such database.
        StoreUnusable: the database is damaged, does not respond, or is on a server and its tables are from another
            version.
        DiskFull: there is not enough disk space for the copy.
    """
    url = parse_address(database)
    try:
        if url.get_backend_name() == "sqlite":
            if not Path(str(url.database)).is_file():
                raise BadInput(f"there is no database {url.database}; name the one to back up")
            with (
                contextlib.closing(sqlite3.connect(str(url.database), timeout=60)) as opened,
                contextlib.closing(sqlite3.connect(file)) as copied,
            ):
                opened.backup(copied)
        else:
            with Database(database, migrate=False) as server, Database(file) as copy:
                one_state = server.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                with one_state.connect() as rows, copy.engine.begin() as written:
                    _copy_rows(rows, written)
        merge_log(file)
    except (sqlite3.DatabaseError, DBAPIError) as error:
        # The text of SQLAlchemy's errors contains the row; the driver's first line does not.
        reason, name = str(getattr(error, "orig", error)).partition("\n")[0], url.render_as_string()
        if "full" in reason or "disk I/O" in reason:
            raise DiskFull(f"the disk is full: {name} was not copied; free some space and try again") from error
        raise StoreUnusable(
            f"the database {name} cannot be copied ({reason}); `podeval arena status` checks it"
        ) from error


def fill_server(copy: Database, database: str | Path) -> None:
    """Replace all rows of a server with those of a file, in one transaction; the tables themselves do not change.

    Raises:
        StoreUnusable: the server refuses a row; nothing was changed.
    """
    with Database(database) as target:
        try:
            with copy.engine.connect() as rows, target.engine.begin() as written:
                # Numbering restarts inside the transaction too, so a refused row does not reset it.
                written.execute(text(f"TRUNCATE {', '.join(map(str, list_tables()))} RESTART IDENTITY"))
                _copy_rows(rows, written)
        except DBAPIError as error:
            reason = str(error.orig).partition("\n")[0]
            raise StoreUnusable(
                f"the rows of the backup do not fit the tables of {target.name} ({reason}); nothing was changed"
            ) from error


def _copy_rows(source: Connection, target: Connection) -> None:
    """Copy all rows that a connection sees into the empty tables of another database."""
    for table in list_tables():
        # Copy rows that refer to other rows of their table after those that do not.
        refers_to_itself = [key.parent.is_not(None) for key in table.foreign_keys if key.column.table is table]
        query = select(table).order_by(*refers_to_itself, *table.primary_key)
        for part in source.execute(query, execution_options={"yield_per": _ROWS}).mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part])
        # A server continues numbering after the highest number; without a sequence or a number, `setval` does nothing.
        number = table.autoincrement_column
        if number is not None and target.dialect.name != "sqlite":
            sequence = func.pg_get_serial_sequence(table.name, number.name)
            target.execute(select(func.setval(sequence, func.max(number))))


def merge_log(file: Path) -> None:
    """Write the write-ahead log of a SQLite file into the file.

    Raises:
        StoreUnusable: another process has the file open.
    """
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=0.2)) as opened:
        try:
            opened.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreUnusable(f"podeval is running on {file}; stop its site and workers, then restore") from error
            raise


def count_rows(file: Path) -> dict[str, int]:
    """Count the rows of each table of a copy.

    Raises:
        StoreUnusable: the copy is damaged.
    """
    with _reading(file) as opened:
        if (whole := opened.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            raise StoreUnusable(f"the database in {file} is damaged: {whole}")
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        tables = [name for (name,) in opened.execute(names)]
        return {name: opened.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608 - names of its own tables


def check_schema(file: Path) -> None:
    """Refuse a SQLite file if its schema is not exactly that of its version, for example because of a trigger.

    Raises:
        StoreUnusable: the schema differs, or the file is damaged or from a newer podeval.
    """
    with _reading(file) as opened:
        versions = opened.execute("SELECT version_num FROM alembic_version").fetchall()
        actual = _read_schema(opened)
    engine = create_engine("sqlite://")
    create_tables(engine, str(versions[0][0]) if versions else "", "the backup")
    with engine.connect() as connection:
        expected = _read_schema(connection.connection)
    if wrong := sorted(name for _, name, *_ in actual ^ expected):
        raise StoreUnusable(
            f"the database of the backup differs from that of its version ({', '.join(wrong[:3])}); use another backup"
        )


def list_sounds(file: Path) -> set[str]:
    """List the paths of all recordings that the arena and the listening tests in a copy use."""
    with Session(create_engine(f"sqlite:///{file}", poolclass=NullPool)) as session:
        played: list[Any] = [{"audio": path} for path in session.scalars(select(ArenaOutput.audio))]
        documents = [*session.scalars(select(ArenaItem.turns)), *session.scalars(select(ListeningTest.design))]
    return {path for path in list_audio([played, documents]) if path and "://" not in path}


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file for reading."""
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            yield opened
    except sqlite3.DatabaseError as error:
        raise StoreUnusable(f"the database in {file} is damaged: {error}") from error


def _read_schema(opened: Any) -> set[tuple[str, str, str, str]]:
    """Read all definitions in a SQLite file, ignoring spaces and quotes, because these differ between versions."""
    query = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat_'"
    rows = opened.cursor().execute(query).fetchall()
    return {(kind, name, table, re.sub(r"[\s\"`]", "", sql)) for kind, name, table, sql in rows}
