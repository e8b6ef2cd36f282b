"""Dump the tables of PostgreSQL by its own `pg_dump`, and read the rows of such a dump by `pg_restore`."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sqlalchemy import URL, text
from sqlalchemy import Table as Described

from podeval.errors import BadInput, StoreUnusable
from podeval.files import DiskFull
from podeval.store import operator_settings, submission_tables  # noqa: F401 - makes their tables known
from podeval.store.database import Database
from podeval.store.tables import TableBase

_COPY = re.compile(rb'COPY (?:.+\.)?("?)(\w+)\1 \((.*)\) FROM stdin;\n')


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
    words = [find_program("pg_dump"), "--format=custom", "--encoding=UTF8", "--no-owner", "--no-privileges"]
    words += ["--no-password", "--lock-wait-timeout=60s", f"--file={file}", f"--dbname={address}"]
    words += [f'--table="{schema}"."{name}"' for name in ("alembic_version", *map(str, list_tables()))]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        _explain_failure("pg_dump", done.stderr, file)


def count_dumped_rows(file: Path) -> dict[str, int]:
    """Count the rows of each table of a dump; no server is needed.

    Raises:
        BadInput: `pg_restore` is not installed, or too old for this dump.
        StoreUnusable: the dump is damaged.
    """
    return {name: sum(1 for _ in rows) for name, _, rows in read_tables(file)}


def read_tables(file: Path, only: str = "") -> Iterator[tuple[str, list[str], Iterator[bytes]]]:
    """Read the tables of a dump: name, columns, and the rows as PostgreSQL writes them; needs no server.

    Args:
        file: the dump.
        only: name of the one table that is read; all tables if empty.

    Raises:
        BadInput: `pg_restore` is not installed, or too old for this dump.
        StoreUnusable: the dump is damaged.
    """
    words = [find_program("pg_restore"), "--data-only", "--file=-", *([f"--table={only}"] if only else []), str(file)]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors) as process:
        lines = process.stdout
        assert lines is not None
        try:
            while line := lines.readline():
                if copied := _COPY.fullmatch(line):
                    rows = _read_rows(lines)
                    yield copied[2].decode(), [name.strip(' "') for name in copied[3].decode().split(",")], rows
                    for _ in rows:  # what the reader left
                        pass
        finally:
            lines.close()
        if process.wait():
            errors.seek(0)
            _explain_failure("pg_restore", errors.read().decode(errors="replace"), file)


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


def _explain_failure(name: str, errors: str, file: Path) -> None:
    """Raise what a failed program says as a sentence."""
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
