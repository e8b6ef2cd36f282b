import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select, text
from sqlalchemy.orm import Session

from podeval.errors import BadInput, StoreUnusable
from podeval.store.database import Database, find_damage, parse_address, refuse_shared_mount
from podeval.store.tables import ArenaSystem, Vote

ON_A_SERVER = pytest.mark.parametrize("database_place", ["postgresql"], indirect=True)


def system(name: str) -> ArenaSystem:
    return ArenaSystem(id=name, title=name, added_at=datetime.now(UTC))


def test_tables_of_a_former_version_are_refused_until_they_are_upgraded(database_place: str) -> None:
    from podeval.store.migrate import create_tables

    engine = create_engine(parse_address(database_place))
    create_tables(engine, "0001", database_place)
    engine.dispose()
    with pytest.raises(StoreUnusable, match="podeval arena status"):
        Database(database_place, migrate=False)
    with Database(database_place) as database, database.writing() as session:
        session.add(system("x"))


def test_tables_of_a_newer_podeval_are_refused(database_place: str) -> None:
    with Database(database_place) as database, database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreUnusable, match="upgrade podeval"):
        Database(database_place)


def test_servers_that_start_together_make_the_tables_once(database_place: str) -> None:
    if database_place.endswith(".db"):
        Path(database_place).touch()  # A file that is there is migrated, where a new one would be a copy.
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(Database, [database_place] * 4))
    for database in opened:
        database.close()


def test_every_connection_of_sqlite_keeps_what_it_commits(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database:
        connections = [database.engine.connect() for _ in range(4)]
        for connection in connections:
            found = {p: connection.exec_driver_sql(f"PRAGMA {p}").scalar() for p in ("synchronous", "journal_mode")}
            assert found == {"synchronous": 2, "journal_mode": "wal"}
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 15_000
            connection.close()
        assert find_damage(database) is None


def test_postgresql_that_does_not_sync_is_refused(postgresql: str) -> None:
    with pytest.raises(StoreUnusable, match="synchronous_commit"):
        Database(f"{postgresql}/postgres?options=-csynchronous_commit%3Doff")


def test_a_failed_block_changes_nothing(database_place: str) -> None:
    def half(database: Database) -> None:
        with database.writing() as session:
            session.add(system("half"))
            session.flush()
            raise RuntimeError

    with Database(database_place) as database:
        with pytest.raises(RuntimeError):
            half(database)
        with database.reading() as session:
            assert session.get(ArenaSystem, "half") is None


def test_writers_that_meet_lose_nothing(database_place: str) -> None:
    """Each reads the count and writes it as a name: lost updates would collide or leave gaps."""
    with Database(database_place) as database:

        def count_up(session: Session) -> None:
            session.add(system(f"n{session.scalar(select(func.count()).select_from(ArenaSystem))}"))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(database.write, [count_up] * 40))
        with database.reading() as session:
            assert set(session.scalars(select(ArenaSystem.id))) == {f"n{number}" for number in range(40)}


def test_who_makes_the_log_of_a_new_file_is_waited_for(tmp_path: Path) -> None:
    """SQLite does not wait by itself for a lock that it needs to change to a write-ahead log."""
    file = tmp_path / "podeval.db"
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(file, timeout=0).execute("PRAGMA journal_mode = wal")
    threading.Timer(0.5, other.rollback).start()
    with Database(file) as database, database.writing() as session:
        session.add(system("x"))
    other.close()


@ON_A_SERVER
def test_writers_about_different_voters_go_together_on_a_server(database_place: str) -> None:
    """Who writes about the same, or about everything, waits; and sees what was written meanwhile."""
    with Database(database_place) as database:
        done: list[str] = []

        def write(name: str, about: str) -> threading.Thread:
            def work(session: Session) -> None:
                known = set(session.scalars(select(ArenaSystem.id)))
                session.add(system(name))
                done.append(f"{name} saw {len(known)}")

            thread = threading.Thread(target=database.write, args=(work, about))
            thread.start()
            return thread

        with database.writing("alice") as session:
            session.add(system("first"))
            session.flush()
            other = write("bob's", "bob")
            other.join(timeout=60)
            assert done == ["bob's saw 0"]
            same, everything = write("alice's", "alice"), write("all", "")
            same.join(timeout=0.5)
            everything.join(timeout=0.5)
            assert len(done) == 1
        same.join(timeout=60)
        everything.join(timeout=60)
        assert len(done) == 3
        assert {line.rpartition(" ")[2] for line in done[1:]} == {"2", "3"}


@ON_A_SERVER
def test_a_connection_that_the_server_ended_is_replaced(database_place: str) -> None:
    with Database(database_place) as database, Database(database_place) as operator:
        with database.reading() as session:
            own = session.scalar(text("SELECT pg_backend_pid()"))
        with operator.reading() as session:
            session.execute(text("SELECT pg_terminate_backend(:own)"), {"own": own})
        with database.reading() as session:
            assert session.scalar(text("SELECT pg_backend_pid()")) != own


def test_rows_refer_to_rows_that_are_there(database_place: str) -> None:
    from sqlalchemy.exc import IntegrityError

    vote = Vote(id="v", battle="none", voter="p", outcome="a", recorded_at=datetime.now(UTC))
    with Database(database_place) as database, pytest.raises(IntegrityError), database.writing() as session:
        session.add(vote)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("mysql://a/b", "not supported"),
        ("sqlite://", "would lose its votes"),
        ("sqlite:///:memory:", "would lose its votes"),
        ("://", "address of a database"),
    ],
)
def test_places_that_keep_nothing_are_refused(place: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse_address(place)


def test_an_address_shows_no_password(tmp_path: Path) -> None:
    assert str(parse_address("postgres://u:secret@h/d")).startswith("postgresql+psycopg://u:***@h")
    with pytest.raises(StoreUnusable) as caught:
        Database("postgres://u:secret@127.0.0.1:1/d")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", ["nfs4", "fuse.hf-mount", "cifs", "fuse.gcsfuse"])
def test_a_bucket_or_share_is_no_place_for_sqlite(kind: str, tmp_path: Path) -> None:
    mounts = f"/dev/sda1 / ext4 rw 0 0\nbucket {tmp_path} {kind} rw 0 0\n"
    with pytest.raises(BadInput, match="DATABASE_URL"):
        refuse_shared_mount(tmp_path / "deep" / "a.db", mounts)
    refuse_shared_mount(tmp_path.parent / "a.db", mounts)


def test_a_mount_whose_name_has_a_blank_is_recognised(tmp_path: Path) -> None:
    place = tmp_path / "my bucket"
    place.mkdir()
    mounts = f"/dev/sda1 / ext4 rw 0 0\ns3fs {tmp_path}/my\\040bucket fuse.s3fs rw 0 0\n"
    with pytest.raises(BadInput, match="my bucket"):
        refuse_shared_mount(place / "a.db", mounts)


def test_a_damaged_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"not a database at all, but long enough to look like one" * 100)
    with pytest.raises(StoreUnusable, match=r"a\.db"):
        Database(tmp_path / "a.db")


def test_a_file_that_another_podeval_writes_is_waited_for(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database:
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writer = threading.Thread(target=lambda: database.write(lambda s: s.add(system("late"))))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        other.execute("COMMIT")
        writer.join(60)
        assert not writer.is_alive()
        with database.reading() as session:
            assert session.get(ArenaSystem, "late")


def test_writers_are_refused_in_time_while_another_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request waited for 57 s, threads one after the other: most proxies had given up by then."""
    monkeypatch.setattr("podeval.store.database.BUSY_SECONDS", 1.0)
    with Database(tmp_path / "podeval.db", patience=1.0) as database:
        other = sqlite3.connect(tmp_path / "podeval.db", isolation_level=None)
        other.execute("begin immediate")

        def write(number: int) -> float:
            began = time.monotonic()
            with pytest.raises(StoreUnusable, match=r"is busy.*nothing was written; try again"):
                database.write(lambda session: session.merge(system(str(number))))
            return time.monotonic() - began

        with ThreadPoolExecutor(6) as threads:
            assert max(threads.map(write, range(6))) < 8
        other.execute("rollback")
        other.close()
        # Nobody's patience is shorter for it afterwards.
        with database.writing() as session:
            assert session.scalar(text("PRAGMA busy_timeout")) == 1000
