"""Copy a database by its own tool, and put a SQLite copy back into a database of either kind.

A SQLite file is copied page by page in one state (by its online backup); PostgreSQL is dumped by `pg_dump` in the state
of one transaction (`postgresql_dump`). Both go on taking votes. A restore has to open the copy before anything is
replaced: to check it, to bring its tables to this version, and to leave out what was taken down and who asked to be
forgotten. For that it is a SQLite file, whatever it came from.
"""

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text
from sqlalchemy import Table as Described
from sqlalchemy.exc import DBAPIError

from podeval.errors import BadInput, StoreUnusable
from podeval.operations.postgresql_dump import dump
from podeval.store import operator_settings, submission_tables  # noqa: F401 - makes their tables known
from podeval.store.database import Database, find_damage, parse_address
from podeval.store.files import DiskFull
from podeval.store.pseudonyms import erase
from podeval.store.tables import ArenaItem, ArenaOutput, Erasure, TableBase

_ROWS = 2_000
"""Most rows in memory at once."""

_VERSIONS = "alembic_version"
"""The table with the version of the tables."""


@dataclass(frozen=True)
class Snapshot:
    """What was copied of a database."""

    kind: str
    """`sqlite` or `postgresql`."""
    revision: str
    """The version of its tables; empty where a file of SQLite says it itself."""
    rows: dict[str, int]
    sounds: set[str]
    """Paths of all recordings that its arena plays."""


def copy_database(source_database: str | Path, file: Path) -> Snapshot:
    """Copy a database, in one consistent state, to a new file: a SQLite file, or a dump of PostgreSQL.

    Args:
        source_database: a SQLite file or a database address, in use or not.
        file: the file to make.

    Raises:
        BadInput: there is no such database, or `pg_dump` is not there or too old.
        StoreUnusable: it cannot be read, or is damaged.
        DiskFull: the disk has no room for the copy.
    """
    url = parse_address(source_database)
    if url.get_backend_name() == "sqlite":
        source = Path(str(url.database))
        if not source.is_file():
            raise BadInput(f"there is no database {source}; name the one that is to be backed up")
        _copy_file(source, file)
        return Snapshot("sqlite", "", count_rows(file), list_sounds(file))
    with Database(source_database, migrate=False) as database, database.reading() as session:
        # Counted, listed and dumped in the state of this one transaction.
        names = [*(table.name for table in list_tables()), _VERSIONS]
        counts = {name: session.scalar(text(f'SELECT count(*) FROM "{name}"')) or 0 for name in sorted(names)}  # noqa: S608 - names of its own tables
        audio = session.scalars(select(ArenaOutput.audio).where(ArenaOutput.audio != "")).all()
        turns = session.scalars(select(ArenaItem.turns)).all()
        revision = str(session.scalar(text(f"SELECT version_num FROM {_VERSIONS}")))  # noqa: S608 - a constant
        dump(session, url, names, file)
    return Snapshot("postgresql", revision, counts, _join_sounds(audio, turns))


def list_sounds(copy: Path) -> set[str]:
    """List the paths of all recordings that the arena of a SQLite file plays."""
    with contextlib.closing(sqlite3.connect(copy)) as opened:
        try:
            paths = [path for (path,) in opened.execute("SELECT audio FROM outputs WHERE audio <> ''")]
            turns = [json.loads(turns) for (turns,) in opened.execute("SELECT turns FROM items")]
        except sqlite3.OperationalError:
            return set()  # a database of before there was an arena
    return _join_sounds(paths, turns)


def _join_sounds(paths: Sequence[str], turns: Sequence[Any]) -> set[str]:
    prompts = {turn.get("audio") or "" for item in turns for turn in item}
    return {path for path in {*paths} | prompts if path and "://" not in path}


def count_rows(file: Path) -> dict[str, int]:
    """Count the rows of each table of a SQLite file.

    Raises:
        StoreUnusable: it is damaged.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            whole = opened.execute("PRAGMA integrity_check").fetchone()[0]
            if whole != "ok":
                raise StoreUnusable(f"the database in {file} is damaged: {whole}")
            names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            tables = [name for (name,) in opened.execute(names)]
            return {name: opened.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608 - names of its own tables
    except sqlite3.DatabaseError as error:
        raise StoreUnusable(f"the database in {file} is damaged: {error}") from error


def merge_log(file: Path) -> None:
    """Write the write-ahead log of an unused SQLite file into the file."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as opened:
        opened.execute("PRAGMA journal_mode = DELETE")


def is_in_use(file: Path) -> bool:
    """Tell whether another process has a SQLite file open; where none has, its log is written into it."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=0.2)) as opened:
        try:
            opened.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            return "locked" in str(error)
    return False


@dataclass(frozen=True)
class PutBack:
    """The outcome of putting back a copy: rows by table, erasures that stay in force, path of the replaced file."""

    rows: dict[str, int]
    forgotten: int
    kept: Path | None


def put_back(copy: Path, database: str | Path, *, force: bool) -> PutBack:
    """Replace the content of a database by a copy made by `copy_database`, its tables brought to this version.

    Erasures of persons since the copy was made, as far as the replaced database has them, stay in force.

    Args:
        copy: the copy; it is changed, and moved away where the database is a file.
        database: a SQLite file or a database address; its kind need not be that of the copied one.
        force: replace an existing database; a file is kept beside it under another name.

    Raises:
        BadInput: the database holds rows, and `force` is not set.
        StoreUnusable: it is in use, or the copy is damaged or of a newer podeval.
    """
    with Database(copy) as opened:
        wrong = find_damage(opened)
    if wrong is not None:
        raise StoreUnusable(f"the database of the backup is damaged: {wrong}; use another backup")
    url = parse_address(database)
    if url.get_backend_name() == "sqlite":
        return _into_file(copy, Path(str(url.database)), force)
    with Database(copy) as opened:
        return _into_server(opened, database, force)


def _into_file(copy: Path, target: Path, force: bool) -> PutBack:
    forgotten, kept = 0, None
    beside = [target.with_name(target.name + ending) for ending in ("-wal", "-shm")]
    # An existing database must be empty or replaceable, and not in use.
    if target.exists():
        try:
            held = sum(rows for name, rows in count_rows(target).items() if name != "alembic_version")
            used = is_in_use(target)
        except (StoreUnusable, sqlite3.DatabaseError):
            held, used = 1, False
        if held and not force:
            raise BadInput(
                f"{target} holds votes or submissions already; name another database, or replace it with --force "
                "(it is kept under another name)"
            )
        if used:
            raise StoreUnusable(f"podeval is running on {target}; stop its site and workers, then restore")
        # Erasures in the old database stay in force.
        with Database(copy) as opened:
            forgotten = _forget_again(opened, _read_erasures(target))
        kept = target.with_name(f"{target.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    # Check the copy before anything is moved.
    target.parent.mkdir(parents=True, exist_ok=True)
    merge_log(copy)
    rows = count_rows(copy)
    # Keep the old database under another name, then put the copy in its place.
    if kept is not None:
        for path in (target, *beside):
            if path.exists():
                path.replace(path.with_name(path.name.replace(target.name, kept.name, 1)))
    copy.replace(target)
    return PutBack(rows, forgotten, kept)


def _into_server(copy: Database, database: str | Path, force: bool) -> PutBack:
    with Database(database) as target:
        with target.engine.begin() as connection:
            held = [table.name for table in list_tables() if connection.scalar(select(func.count()).select_from(table))]
            erasures = [(row.pseudonym, row.erased_at) for row in connection.execute(select(Erasure.__table__))]
        if held and not force:
            raise BadInput(
                f"{target.name} holds {', '.join(held[:3])} already; name another database, or replace all that is in "
                "it with --force"
            )
        forgotten = _forget_again(copy, erasures)
        with copy.engine.connect() as source, target.engine.begin() as connection:
            for table in reversed(list_tables()):
                connection.execute(delete(table))
            rows = _copy_rows(source, connection)
            for table in list_tables():
                _count_on(connection, table)
        return PutBack(rows, forgotten, None)


def _copy_file(source: Path, file: Path) -> None:
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


def _copy_rows(source: Connection, target: Connection) -> dict[str, int]:
    done = {}
    for table in list_tables():
        done[table.name] = 0
        # What refers to a row of its own table comes after those that do not.
        refers_to_itself = [key.parent.is_not(None) for key in table.foreign_keys if key.column.table is table]
        query = select(table).order_by(*refers_to_itself, *table.primary_key)
        rows = source.execute(query, execution_options={"yield_per": _ROWS})
        for part in rows.mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part])
            done[table.name] += len(part)
    return done


def _count_on(connection: Connection, table: Described) -> None:
    """Set a table's number sequence to go on after the highest number that was put in."""
    column = table.autoincrement_column
    if column is None:
        return
    sequence = connection.scalar(
        text("SELECT pg_get_serial_sequence(:table, :column)"), {"table": table.name, "column": column.name}
    )
    highest = connection.scalar(select(func.max(column)))
    if sequence and highest is not None:
        connection.execute(text("SELECT setval(:sequence, :highest)"), {"sequence": sequence, "highest": highest})


def list_tables() -> list[Described]:
    """List all tables, each after the tables that it refers to."""
    return TableBase.metadata.sorted_tables


def _read_erasures(file: Path) -> list[tuple[str, Any]]:
    """Read the erasures of persons from a database that is to be replaced, as far as it can still be read."""
    try:
        with Database(file) as opened, opened.reading() as session:
            return [(row.pseudonym, row.erased_at) for row in session.scalars(select(Erasure))]
    except (StoreUnusable, DBAPIError):
        return []


def _forget_again(copy: Database, erasures: list[tuple[str, Any]]) -> int:
    def work(session: Any) -> int:
        erased = set(session.scalars(select(Erasure.pseudonym)))
        new = [(pseudonym, moment) for pseudonym, moment in erasures if pseudonym not in erased]
        for pseudonym, moment in new:
            erase(session, pseudonym, now=moment)
        return len(new)

    return copy.write(work)
