"""PostgreSQL's programs: what is said where there is none, what they are told, damaged dumps."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import make_url

from podeval.errors import BadInput, StoreUnusable
from podeval.operations import backup_database
from podeval.store.database import Database

Put = Callable[[str, str], Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Put a program on a machine that has none of PostgreSQL's otherwise."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    (tmp_path / "bin").mkdir()

    def put(name: str, script: str) -> Path:
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    return put


def test_without_the_programs_it_is_said_what_to_install(put: Put) -> None:
    with pytest.raises(BadInput, match=r"pg_dump is not installed.*apt-get install postgresql-client"):
        backup_database.find_program("pg_dump")


@pytest.mark.parametrize("database_place", ["postgresql"], indirect=True)
def test_a_program_older_than_the_server_is_said_to_be(put: Put, database_place: str, tmp_path: Path) -> None:
    put("pg_dump", "echo 'pg_dump: error: aborting because of server version mismatch' >&2; exit 1")
    with (
        Database(database_place) as database,
        pytest.raises(BadInput, match=r"pg_dump is older than the server.*install a newer postgresql-client"),
    ):
        backup_database.dump(database, tmp_path / "database.dump")


@pytest.mark.parametrize("written", ["ada:s3cret@host:5433/board?sslmode=require", "ada@host/board?password=s3cret"])
def test_a_password_is_told_by_the_environment_alone(written: str) -> None:
    address, environment = backup_database.hide_password(make_url(f"postgresql+psycopg://{written}"))
    assert "s3cret" not in address
    assert "***" not in address
    assert environment["PGPASSWORD"] == "s3cret"
    assert address.startswith("postgresql://ada@host")
    assert ("sslmode=require" in address) == ("sslmode" in written)


def test_a_damaged_dump_is_told(tmp_path: Path) -> None:
    if shutil.which("pg_restore") is None:
        pytest.skip("PostgreSQL's client programs are not installed (apt-get install postgresql-client)")
    (tmp_path / "database.dump").write_bytes(b"PGDMP and no more")
    with pytest.raises((StoreUnusable, BadInput), match=r"pg_restore"):
        backup_database.count_rows(tmp_path / "database.dump")


def test_rows_that_break_off_are_told(put: Put, tmp_path: Path) -> None:
    put("pg_restore", "printf 'COPY public.votes (id, comment) FROM stdin;\\n1\\ta\\n'")
    with pytest.raises(StoreUnusable, match="ends in the middle of a table"):
        backup_database.count_rows(tmp_path / "database.dump")
