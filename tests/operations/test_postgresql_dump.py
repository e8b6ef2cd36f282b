"""PostgreSQL's programs: which is taken, what is said where there is none, what they are told, damaged dumps."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import make_url

from podeval.errors import BadInput, StoreUnusable
from podeval.operations import postgresql_dump

Put = Callable[[Path, str], Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Put programs that name a version of PostgreSQL on a machine that has none otherwise."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(postgresql_dump, "DEBIAN_PROGRAMS", tmp_path / "debian")

    def put(path: Path, version: str) -> Path:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"#!/bin/sh\necho '{path.name} (PostgreSQL) {version}'\n")
        (tmp_path / path).chmod(0o755)
        return tmp_path / path

    return put


def test_without_the_programs_it_is_said_what_to_install(put: Put) -> None:
    with pytest.raises(BadInput, match=r"pg_dump is not installed.*apt-get install postgresql-client-17"):
        postgresql_dump.find_program("pg_dump", 17)


def test_a_program_older_than_the_server_is_refused_and_the_newest_is_taken(put: Put) -> None:
    put(Path("bin/pg_dump"), "12.3 (Debian 12.3-1)")
    with pytest.raises(BadInput, match=r"of PostgreSQL 12 and the server of 15.*apt-get install postgresql-client-15"):
        postgresql_dump.find_program("pg_dump", 15)
    put(Path("debian/9/bin/pg_dump"), "9.6.1")
    newest = put(Path("debian/16/bin/pg_dump"), "16.1")
    assert postgresql_dump.find_program("pg_dump", 15) == str(newest)


@pytest.mark.parametrize("written", ["ada:s3cret@host:5433/board?sslmode=require", "ada@host/board?password=s3cret"])
def test_a_password_is_told_by_the_environment_alone(written: str) -> None:
    address, environment = postgresql_dump.hide_password(make_url(f"postgresql+psycopg://{written}"))
    assert "s3cret" not in address
    assert "***" not in address
    assert environment["PGPASSWORD"] == "s3cret"
    assert address.startswith("postgresql://ada@host")
    assert ("sslmode=require" in address) == ("sslmode" in written)


def test_a_damaged_dump_is_told(tmp_path: Path) -> None:
    try:
        postgresql_dump.find_program("pg_restore")
    except BadInput as missing:
        pytest.skip(str(missing))
    (tmp_path / "database.dump").write_bytes(b"PGDMP and no more")
    with pytest.raises((StoreUnusable, BadInput), match=r"pg_restore"):
        postgresql_dump.count_dumped_rows(tmp_path / "database.dump")


def test_rows_that_break_off_are_told(put: Put, tmp_path: Path) -> None:
    program = put(Path("bin/pg_restore"), "15.1")
    program.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'pg_restore (PostgreSQL) 15.1' && exit\n"
        "printf 'COPY public.votes (id, comment) FROM stdin;\\n1\\ta\\n'\n"
    )
    with pytest.raises(StoreUnusable, match="ends in the middle of a table"):
        postgresql_dump.count_dumped_rows(tmp_path / "database.dump")
