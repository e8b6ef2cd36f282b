"""Copy a database out of its place and into another: SQLite by its online backup, PostgreSQL by `pg_dump`.

A board that outgrows its machine goes from a SQLite file into PostgreSQL, row by row; there is no way back. The tables
of a server are always made by the migrations, and a SQLite file that is to be restored must have exactly those of its
version, because triggers and views in it would run when votes come in. Of a dump, which `pg_restore` reads, only rows
are used.
"""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sqlalchemy import URL, Connection, MetaData, NullPool, create_engine, delete, func, insert, select, text
from sqlalchemy import Table as Described
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable
from podeval.files import DiskFull
from podeval.store import operator_settings, submission_tables  # noqa: F401 - makes their tables known
from podeval.store.database import Database
from podeval.store.migrate import create_tables
from podeval.store.tables import ArenaItem, ArenaOutput, ListeningTest, TableBase, list_audio

_ROWS = 2_000
"""Most rows in memory at once."""

_VERSIONS = "alembic_version"
"""The table with the version of the tables."""

_COPY = re.compile(rb'COPY (?:.+\.)?("?)(\w+)\1 \((.*)\) FROM stdin;\n')


def copy_sqlite(source: Path, file: Path) -> None:
    """Copy a SQLite file that may be in use, in one consistent state, to a new file.

    Raises:
        BadInput: there is no such file.
        StoreUnusable: it is damaged.
        DiskFull: the disk has no room for the copy.
    """
    if not source.is_file():
        raise BadInput(f"there is no database {source}; name the one that is to be backed up")
    try:
        with (
            contextlib.closing(sqlite3.connect(source, timeout=60)) as opened,
            contextlib.closing(sqlite3.connect(file)) as copy,
        ):
            opened.backup(copy)
        merge_log(file)
    except sqlite3.DatabaseError as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise DiskFull(f"the disk is full: {source} was not copied; free some space and try again") from error
        raise StoreUnusable(
            f"the database {source} cannot be copied ({error}); `podeval arena status` checks it"
        ) from error


def merge_log(file: Path) -> None:
    """Write the write-ahead log of a SQLite file into the file.

    Raises:
        StoreUnusable: another process has it open.
    """
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=0.2)) as opened:
        try:
            opened.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreUnusable(f"podeval is running on {file}; stop its site and workers, then restore") from error
            raise


def count_rows(file: Path) -> dict[str, int]:
    """Count the rows of each table of a copy: a SQLite file, or a dump, for which no server is needed.

    Raises:
        BadInput: it is a dump, and `pg_restore` is not installed, or too old for it.
        StoreUnusable: it is damaged.
    """
    if file.suffix == ".dump":
        return {name: sum(1 for _ in rows) for name, _, rows in read_tables(file)}
    with _reading(file) as opened:
        whole = opened.execute("PRAGMA integrity_check").fetchone()[0]
        if whole != "ok":
            raise StoreUnusable(f"the database in {file} is damaged: {whole}")
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        tables = [name for (name,) in opened.execute(names)]
        return {name: opened.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608 - names of its own tables


def check_schema(file: Path) -> None:
    """Refuse a SQLite file that has more or other than the tables of its version, such as a trigger.

    Raises:
        StoreUnusable: it does, or it is damaged, or of a newer podeval.
    """
    with _reading(file) as opened:
        versions = opened.execute(f"SELECT version_num FROM {_VERSIONS}").fetchall()  # noqa: S608 - a constant
        actual = _read_schema(opened)
    engine = create_engine("sqlite://")
    create_tables(engine, str(versions[0][0]) if versions else "", "the backup")
    with engine.connect() as connection:
        expected = _read_schema(connection.connection)
    if wrong := sorted(name for _, name, *_ in actual ^ expected):
        raise StoreUnusable(
            f"the database of the backup differs from what its version has ({', '.join(wrong[:3])}); use another backup"
        )


def list_sounds(address: str | URL) -> set[str]:
    """List the paths of all recordings that the arena and the listening tests of a database play."""
    with Session(create_engine(address, poolclass=NullPool)) as session:
        played: list[Any] = [{"audio": path} for path in session.scalars(select(ArenaOutput.audio))]
        documents = [*session.scalars(select(ArenaItem.turns)), *session.scalars(select(ListeningTest.design))]
    return {path for path in list_audio([played, documents]) if path and "://" not in path}


def copy_rows(source: Database, target: Database) -> None:
    """Copy all rows of one database into the empty tables of a server."""
    with source.engine.connect() as read, target.engine.begin() as written:
        for table in list_tables():
            # What refers to a row of its own table comes after those that do not.
            refers_to_itself = [key.parent.is_not(None) for key in table.foreign_keys if key.column.table is table]
            query = select(table).order_by(*refers_to_itself, *table.primary_key)
            rows = read.execute(query, execution_options={"yield_per": _ROWS})
            for part in rows.mappings().partitions():
                written.execute(insert(table), [dict(row) for row in part])
            _count_on(written, table)


def load_dump(file: Path, address: URL) -> None:
    """Make the tables of a dump's version in an empty place on a server, and fill them with the rows of the dump.

    Args:
        file: the dump.
        address: a server, with a schema of which nothing is used yet.

    Raises:
        BadInput: `pg_restore` is not installed, or too old for this dump.
        StoreUnusable: the dump is damaged, or of a newer podeval, or does not fit its tables.
    """
    versions = [row.decode() for name, _, rows in read_tables(file, _VERSIONS) if name == _VERSIONS for row in rows]
    engine, described = create_engine(address, poolclass=NullPool), MetaData()
    create_tables(engine, versions[0] if versions else "", f"the database of {file.name}")
    described.reflect(engine)
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL client_encoding TO 'UTF8'"))
        for table in described.sorted_tables:
            if table.name != _VERSIONS:
                _copy_in(connection, table, file)


def _copy_in(connection: Connection, table: Described, file: Path) -> None:
    """Copy the rows of one table of a dump; nothing else that a dump says is carried out."""
    connection.execute(delete(table))
    cursor: Any = connection.connection.cursor()
    for name, columns, rows in read_tables(file, table.name):
        if name != table.name or not set(columns) <= set(table.columns.keys()):
            raise StoreUnusable(f"the dump does not fit the table {table.name} of its version; use another backup")
        column_names = ", ".join(f'"{column}"' for column in columns)
        with cursor.copy(f'COPY "{name}" ({column_names}) FROM STDIN') as copy:
            for row in rows:
                copy.write(row + b"\n")
    _count_on(connection, table)


def _count_on(connection: Connection, table: Described) -> None:
    """Set a table's number sequence to go on after the highest number that was put in."""
    column = table.autoincrement_column
    if column is not None:
        # Without a sequence or a number, `setval` does nothing.
        sequence = func.pg_get_serial_sequence(table.name, column.name)
        connection.execute(select(func.setval(sequence, func.max(column))))


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file to read it."""
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            yield opened
    except sqlite3.DatabaseError as error:
        raise StoreUnusable(f"the database in {file} is damaged: {error}") from error


def _read_schema(opened: Any) -> set[tuple[str, str, str, str]]:
    """Read all that a SQLite file has, as it is written without spaces and quotes, which differ between versions."""
    query = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat_'"
    rows = opened.cursor().execute(query).fetchall()
    return {(kind, name, table, re.sub(r"[\s\"`]", "", sql)) for kind, name, table, sql in rows}


def list_tables() -> list[Described]:
    """List all tables, each after the tables that it refers to."""
    return TableBase.metadata.sorted_tables


def dump(database: Database, file: Path) -> None:
    """Write the tables of a server, in the state of one moment, to a new file of PostgreSQL's custom format.

    Raises:
        BadInput: `pg_dump` is not installed, or older than the server.
        StoreUnusable: it failed; the message has its first line.
        DiskFull: the disk has no room for the file.
    """
    with database.reading() as session:
        schema = str(session.scalar(text("SELECT current_schema()"))).replace('"', '""')
    address, environment = hide_password(database.url)
    words = ["pg_dump", "--format=custom", "--encoding=UTF8", "--no-owner", "--no-privileges"]
    words += ["--no-password", "--lock-wait-timeout=60s", f"--file={file}", f"--dbname={address}"]
    words += [f'--table="{schema}"."{name}"' for name in ("alembic_version", *map(str, list_tables()))]
    _run(words, file, env=environment)


def read_tables(file: Path, only: str = "") -> Iterator[tuple[str, list[str], Iterator[bytes]]]:
    """Read the tables of a dump: name, columns, and the rows as PostgreSQL writes them; needs no server.

    Args:
        file: the dump.
        only: name of the one table that is read; all tables if empty.

    Raises:
        BadInput: `pg_restore` is not installed, or too old for this dump.
        StoreUnusable: the dump is damaged.
    """
    words = ["pg_restore", "--data-only", "--file=-", *([f"--table={only}"] if only else []), str(file)]
    with tempfile.TemporaryFile(dir=file.parent) as lines:
        _run(words, file, stdout=lines)
        lines.seek(0)
        while line := lines.readline():
            if copied := _COPY.fullmatch(line):
                rows = _read_rows(lines)
                yield copied[2].decode(), [name.strip(' "') for name in copied[3].decode().split(",")], rows
                for _ in rows:  # what the reader left
                    pass


def find_program(name: str) -> str:
    """Find `pg_dump` or `pg_restore`.

    Raises:
        BadInput: it is not installed; the message says what to install.
    """
    program = shutil.which(name)
    if program is None:
        raise BadInput(
            f"{name} is not installed, by which a backup of PostgreSQL is made and read; install postgresql-client, at "
            "least of the server's version (apt-get install postgresql-client)"
        )
    return program


def hide_password(url: URL) -> tuple[str, dict[str, str]]:
    """Return a server's address without its password, and the environment that tells a program the password."""
    options = dict(url.query)
    in_options = options.pop("password", None)
    password = url.password or (in_options if isinstance(in_options, str) else None)
    address = URL.create("postgresql", url.username, None, url.host, url.port, url.database, options)
    # In UTC, so that a time is written alike wherever it is read.
    environment = os.environ | {"PGTZ": "UTC", "PGCONNECT_TIMEOUT": os.environ.get("PGCONNECT_TIMEOUT", "10")}
    if password:
        environment["PGPASSWORD"] = str(password)
    return address.render_as_string(hide_password=False), environment


def _read_rows(lines: IO[bytes]) -> Iterator[bytes]:
    while (line := lines.readline()) != b"\\.\n":
        if not line:
            raise StoreUnusable("the dump of the database ends in the middle of a table; use another backup")
        yield line[:-1]


def _run(words: list[str], file: Path, **options: Any) -> None:
    """Run a program of PostgreSQL's on a dump; raise as a sentence what it says where it fails."""
    name = words[0]
    words = [find_program(name), *words[1:]]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, errors="replace", check=False, **options)
    if done.returncode == 0:
        return
    errors = done.stderr
    reason = next((line for line in errors.splitlines() if "error:" in line), errors.strip().partition("\n")[0])
    reason = reason.partition("error:")[2].strip() or reason
    if "No space left" in errors or "File too large" in errors:
        raise DiskFull(f"the disk is full while {name} works on {file.name}; free some space and try again")
    if "unsupported version" in errors or "version mismatch" in errors:
        raise BadInput(
            f"{name} is older than the server, or than the one that made this backup ({reason}); install a newer "
            "postgresql-client"
        )
    raise StoreUnusable(f"{name} failed on {file.name} ({reason})")
