"""Dump the tables of PostgreSQL by its own `pg_dump`, and read such a dump by `pg_restore`.

`pg_dump` copies the state that one transaction sees, in which the rows are counted too, so that a manifest can say what
is in the dump. `pg_restore` turns a dump back into rows without a server; they are written into a file of SQLite, which
a restore opens before anything is replaced.
"""

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from sqlalchemy import URL, create_engine, text
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable
from podeval.store.files import DiskFull
from podeval.store.migrate import create_tables

DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")
"""Where Debian has the programs of each version of PostgreSQL."""

_COPY = re.compile(rb'COPY (?:.+\.)?("?)(\w+)\1 \((.*)\) FROM stdin;\n')
_ESCAPED = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_MEANINGS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ROWS = 2_000
"""Most rows in memory at once."""


@dataclass(frozen=True)
class CopiedTable:
    """The rows of one table of a dump; they have to be read before the next table is."""

    name: str
    columns: tuple[str, ...]
    rows: Iterator[bytes]


def dump(session: Session, url: URL, tables: list[str], file: Path) -> None:
    """Write the tables of a server to a new file, in the state that a session sees.

    Args:
        session: a transaction that sees one state (repeatable read), open until this returns.
        url: the address of its server.
        tables: names of the tables, which lie in the session's schema.
        file: the file to make, of PostgreSQL's custom format.

    Raises:
        BadInput: `pg_dump` is not installed, or older than the server.
        StoreUnusable: it failed; the message has its first line.
        DiskFull: the disk has no room for the file.
    """
    version = int(session.scalar(text("SHOW server_version_num")) or 0) // 10_000
    program = find_program("pg_dump", version)
    schema = str(session.scalar(text("SELECT current_schema()")))
    state = str(session.scalar(text("SELECT pg_export_snapshot()")))
    address, environment = hide_password(url)
    words = [
        program,
        "--format=custom",
        "--encoding=UTF8",
        "--no-owner",
        "--no-privileges",
        "--no-password",
        "--lock-wait-timeout=60s",
    ]
    words += [f"--snapshot={state}", *(f"--table={_quote(schema)}.{_quote(name)}" for name in tables)]
    words += [f"--file={file}", f"--dbname={address}"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        _explain_failure("pg_dump", done.stderr, file)


def count_dumped_rows(file: Path) -> dict[str, int]:
    """Count the rows of each table of a dump; no server is needed.

    Raises:
        BadInput: `pg_restore` is not installed, or too old for this dump.
        StoreUnusable: the dump is damaged.
    """
    return {table.name: sum(1 for _ in table.rows) for table in read_tables(file)}


def load_dump(file: Path, revision: str, copy: Path) -> None:
    """Write the rows of a dump to a new SQLite file with the tables of their version.

    Args:
        file: the dump.
        revision: the version of its tables.
        copy: the file to make.

    Raises:
        BadInput: `pg_restore` is not installed, or too old for this dump.
        StoreUnusable: the dump is damaged, or of a newer podeval.
        DiskFull: the disk has no room for the rows.
    """
    engine = create_engine(f"sqlite:///{copy}")
    try:
        create_tables(engine, revision, f"the database of {file.name}")
    finally:
        engine.dispose()
    try:
        with closing(sqlite3.connect(copy)) as opened, opened:
            for table in read_tables(file):
                _insert(opened, table)
    except sqlite3.DatabaseError as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise DiskFull(f"the disk is full: the rows of {file.name} were not read; free some space") from error
        raise StoreUnusable(f"the dump {file.name} does not fit its tables ({error}); use another backup") from error


def read_tables(file: Path) -> Iterator[CopiedTable]:
    """Read the tables of a dump with their rows as PostgreSQL writes them, one table after another.

    Raises:
        BadInput: `pg_restore` is not installed, or too old for this dump.
        StoreUnusable: the dump is damaged.
    """
    program = find_program("pg_restore")
    words = [program, "--data-only", "--file=-", str(file)]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors) as process:
        lines = process.stdout
        assert lines is not None
        try:
            while line := lines.readline():
                if (copied := _COPY.fullmatch(line)) is None:
                    continue
                columns = tuple(name.strip().strip('"') for name in copied[3].decode().split(","))
                rows = _read_rows(lines)
                yield CopiedTable(copied[2].decode(), columns, rows)
                for _ in rows:  # what the reader left
                    pass
        finally:
            lines.close()
        if process.wait():
            errors.seek(0)
            _explain_failure("pg_restore", errors.read().decode(errors="replace"), file)


def find_program(name: str, least: int = 0) -> str:
    """Find a program of PostgreSQL, on the path or where Debian has it: the newest, as that reads every older server.

    Args:
        name: `pg_dump` or `pg_restore`.
        least: the version of the server that it has to read; 0 where there is none.

    Raises:
        BadInput: there is none, or none of at least this version; the message says what to install.
    """
    on_path = shutil.which(name)
    programs = [on_path] if on_path else []
    programs += [
        str(path) for path in sorted(DEBIAN_PROGRAMS.glob(f"*/bin/{name}"), key=_read_folder_version, reverse=True)
    ]
    versions = {program: _read_version(program) for program in programs}
    package = f"postgresql-client-{least}" if least else "postgresql-client"
    if not versions:
        raise BadInput(
            f"{name} is not installed, by which a backup of PostgreSQL is made and read; install {package} "
            f"(apt-get install {package})"
        )
    newest = max(versions, key=lambda program: versions[program])
    if versions[newest] < least:
        raise BadInput(
            f"{name} is of PostgreSQL {versions[newest]} and the server of {least}, which it refuses; install "
            f"{package} (apt-get install {package})"
        )
    return newest


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


def _read_folder_version(path: Path) -> int:
    name = path.parent.parent.name
    return int(name) if name.isdigit() else 0


def _read_version(program: str) -> int:
    """Read the major version that a program names; 0 where it does not run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = re.search(r"\) (\d+)", done.stdout)
    return int(version[1]) if version and not done.returncode else 0


def _quote(name: str) -> str:
    """Quote a name as the patterns of `pg_dump` take it."""
    return '"' + name.replace('"', '""') + '"'


def _read_rows(lines: IO[bytes]) -> Iterator[bytes]:
    while (line := lines.readline()) != b"\\.\n":
        if not line:
            raise StoreUnusable("the dump of the database ends in the middle of a table; use another backup")
        yield line[:-1]


def _insert(opened: sqlite3.Connection, table: CopiedTable) -> None:
    """Put the rows of a table in place of those that its migrations wrote."""
    described = opened.execute("SELECT name, type FROM pragma_table_info(?)", (table.name,))
    kinds: dict[str, str] = dict(described.fetchall())
    if not set(table.columns) <= set(kinds):
        raise StoreUnusable(f"the dump has a table {table.name} that its version does not have; use another backup")
    if table.name == "alembic_version":
        return
    columns = ", ".join(f'"{name}"' for name in table.columns)
    holders = ", ".join("?" for _ in table.columns)
    statement = f'INSERT INTO "{table.name}" ({columns}) VALUES ({holders})'  # noqa: S608 - names of its own tables
    read = [_choose_reader(kinds[name]) for name in table.columns]
    opened.execute(f'DELETE FROM "{table.name}"')  # noqa: S608 - the same
    batch: list[tuple[Any, ...]] = []
    for row in table.rows:
        fields = row.decode().split("\t")
        batch.append(tuple(None if f == r"\N" else to(_unescape(f)) for f, to in zip(fields, read, strict=True)))
        if len(batch) == _ROWS:
            opened.executemany(statement, batch)
            batch.clear()
    opened.executemany(statement, batch)


def _choose_reader(kind: str) -> Any:
    """Choose how a column of SQLite stores what PostgreSQL writes."""
    name = kind.upper().partition("(")[0]
    readers: dict[str, Any] = {
        "BOOLEAN": lambda field: int(field == "t"),
        "DATETIME": _read_moment,
        "BLOB": _read_bytes,
    }
    return readers.get(name) or (float if name in ("FLOAT", "REAL") else int if "INT" in name else str)


def _read_moment(field: str) -> str:
    moment = datetime.fromisoformat(field)
    return f"{moment.astimezone(UTC) if moment.tzinfo else moment:%Y-%m-%d %H:%M:%S.%f}"


def _read_bytes(field: str) -> bytes:
    return bytes.fromhex(field.removeprefix("\\x"))


def _unescape(field: str) -> str:
    if "\\" not in field:
        return field
    return _ESCAPED.sub(_read_escape, field)


def _read_escape(match: re.Match[str]) -> str:
    written = match[1]
    if written[0] == "x" and len(written) > 1:
        return chr(int(written[1:], 16))
    return chr(int(written, 8)) if written.isdigit() else _MEANINGS.get(written, written)


def _explain_failure(name: str, errors: str, file: Path) -> None:
    """Raise what a failed program says as a sentence."""
    reason = next((line for line in errors.splitlines() if "error:" in line), errors.strip().partition("\n")[0])
    reason = reason.partition("error:")[2].strip() or reason
    if "No space left" in errors or "File too large" in errors:
        raise DiskFull(f"the disk is full while {name} works on {file.name}; free some space and try again")
    if "unsupported version" in errors:
        raise BadInput(
            f"{name} is older than the one that made this backup ({reason}); install a newer postgresql-client"
        )
    raise StoreUnusable(f"{name} failed on {file.name} ({reason})")
