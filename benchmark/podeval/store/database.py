"""The database of judgements: SQLite by default, or PostgreSQL if its address is given; the code is the same.

Committed data is on disk: SQLite runs with a write-ahead log and `synchronous=FULL`, PostgreSQL with
`synchronous_commit`; a connection without these settings is refused. On both, writers run one after the other, so each
sees everything written before it: SQLite uses `BEGIN IMMEDIATE`, and PostgreSQL an advisory lock that transactions
about different voters may hold at the same time. A writer that has waited too long is started again. Sources of the
settings: sqlite.org/wal.html, sqlite.org/pragma.html#pragma_synchronous,
postgresql.org/docs/current/transaction-iso.html and postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS.
"""

import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from podeval.errors import BadInput, StoreReadOnly, StoreUnusable
from podeval.files import explain_unwritable
from podeval.store.migrate import check, upgrade

Found = TypeVar("Found")

BUSY_SECONDS = 15.0
"""Number of seconds for which a writer waits for another writer before it gives up and is retried."""

_WRITERS = int.from_bytes(b"podeval", "big")
_BOUNDED = (
    f"SELECT set_config('lock_timeout', '{BUSY_SECONDS:g}s', true), "
    "set_config('idle_in_transaction_session_timeout', '60s', true), "
)
_LOCK_ALL = text(f"{_BOUNDED} pg_advisory_xact_lock({_WRITERS})")
_LOCK_ONE = text(
    f"{_BOUNDED} pg_advisory_xact_lock_shared({_WRITERS}), pg_advisory_xact_lock(hashtextextended(:about, 0))"
)
"""A writer's lock, held until its transaction ends or the server ends the idle session."""

_LEAST_WAIT = 1.0
"""Minimum time to wait for another process, in seconds."""

_TRIES = 8
PATIENCE = _TRIES * BUSY_SECONDS
_POOL = {"pool_size": 16, "max_overflow": 32}
"""Numbers of connections that stay open, and that are closed after use; in total, one per server thread."""

_SHARED_MOUNTS = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "gcsfuse", "s3fs")
_LOCAL_FUSE = ("fuse.fuse-overlayfs", "fuseblk")
_MET_ANOTHER = ("40001", "40P01", "55P03", "23505")
"""PostgreSQL error codes: serialization failure, deadlock, lock not available, and a key that already exists."""

_NO_TABLE = "42P01"


class Database(AbstractContextManager["Database"]):
    """An open database with the tables of this version of podeval; any number of threads may use it.

    Args:
        location: an SQLite file, or an address: `sqlite:///…`, `postgresql://user@host/name`.
        migrate: whether its tables are first upgraded to this version.
        patience: total seconds for which a writer waits for other writers before it is refused.
        read_only: whether to open an SQLite file on a disk that is full or mounted read-only.

    Raises:
        StoreReadOnly: the disk is full or read-only; the file may be opened with `read_only`.
        BadInput: the address cannot be parsed, or the file is in a location where SQLite is not safe.
        StoreUnusable: the database cannot be opened, or its tables have a different version.
    """

    def __init__(
        self, location: str | Path, *, migrate: bool = True, patience: float = PATIENCE, read_only: bool = False
    ) -> None:
        self.url = parse_address(location)
        self._patience = patience
        self._turns = threading.Lock()
        self.engine = _open_sqlite(self.url, read_only) if self.is_sqlite else _open_postgresql(self.url)
        # These engines share one pool and are created once, because creating one takes as long as a statement.
        if self.is_sqlite:
            self._one_state = self._each = self.engine
            self._writes = self.engine.execution_options(writes=True)
        else:
            self._one_state, self._each, self._writes = (
                self.engine.execution_options(isolation_level=level)
                for level in ("REPEATABLE READ", "AUTOCOMMIT", "READ COMMITTED")
            )
        try:
            (upgrade if migrate and not read_only else check)(self.engine, self.name)
        except DBAPIError as error:
            self.close()
            # SQLite reports a read error if it cannot create its auxiliary files next to the database.
            if self.is_sqlite and (why := explain_unwritable(Path(str(self.url.database)).parent)):
                raise StoreReadOnly(f"the disk of {self.name} is {why}. Then start again") from error
            raise StoreUnusable(
                f"the database {self.name} cannot be opened ({_first_line(error)}); check that it is a database, "
                "and that its server is running"
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The database's address without the password."""
        return self.url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self, *, one_state: bool = True) -> Iterator[Session]:
        """Open a read-only session; its rows stay readable after it is closed.

        Args:
            one_state: whether all statements see the database in the same state; False saves two round trips to the
                server, and is enough for a single statement or several that need not agree.
        """
        try:
            with Session(self._one_state if one_state else self._each, expire_on_commit=False) as session:
                yield session
        except (DBAPIError, NoConnectionLeft) as error:
            raise _translate(error, self.name) from error

    def read(self, work: Callable[[Session], Found], *, one_state: bool = True) -> Found:
        """Return the result of `work`, which reads through a session; see `reading`."""
        with self.reading(one_state=one_state) as session:
            return work(session)

    def list_rows(self, query: Select[Found]) -> list[Found]:
        """Return the rows, or the values of one column, that a query selects."""
        with self.reading() as session:
            return list(session.scalars(query))

    @contextmanager
    def writing(self, about: str = "") -> Iterator[Session]:
        """Open a session; when the block ends, either all of its changes are on disk or none are.

        Args:
            about: the subject of the reads and changes, such as one voter; writers concerned with other subjects do not
                have to wait. By default, nothing else can write at the same time.

        On SQLite, a waiting writer sleeps and polls, possibly for seconds, so threads queue up beforehand. On
        PostgreSQL, a lock is used instead of serializable transactions, because these aborted each other until some
        gave up; each writer sees all earlier writes.
        """
        if self.is_sqlite:
            with self._turn() as writes, Session(writes, expire_on_commit=False) as session, session.begin():
                yield session
            return
        with Session(self._writes, expire_on_commit=False) as session, session.begin():
            session.execute(*((_LOCK_ONE, {"about": about}) if about else (_LOCK_ALL,)))
            yield session

    @contextmanager
    def _turn(self) -> Iterator[Engine]:
        """Wait for this thread's turn, and yield an engine that waits for other processes for the remaining time."""
        began = time.monotonic()
        if not self._turns.acquire(timeout=self._patience):
            raise StoreUnusable(f"the database {self.name} is busy, so nothing was written; try again")
        try:
            left = max(_LEAST_WAIT, self._patience - (time.monotonic() - began))
            late = left < self._patience - _LEAST_WAIT
            yield self._writes.execution_options(wait=left) if late else self._writes
        finally:
            self._turns.release()

    def write(self, work: Callable[[Session], Found], about: str = "") -> Found:
        """Run `work` in one transaction and return its result once the changes are on disk.

        If `work` collides with another writer, it is run again, so it must not change anything outside the session.

        Args:
            work: function that reads and changes rows through the session.
            about: see `writing`.

        Raises:
            StoreUnusable: other writers blocked this one the whole time, or the database is no longer available.
        """
        until = time.monotonic() + self._patience
        for attempt in range(_TRIES):
            try:
                with self.writing(about) as session:
                    return work(session)
            except DBAPIError as error:
                if not _met_another(error):
                    raise _translate(error, self.name) from error
                met = error
                if isinstance(error, IntegrityError) and attempt == _TRIES - 1:
                    raise
                if time.monotonic() >= until:
                    break
            except NoConnectionLeft as error:
                raise _translate(error, self.name) from error
            time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 - spreads writers out, no secret
        raise StoreUnusable(
            f"the database {self.name} is busy ({_first_line(met)}), so nothing was written; try again"
        ) from met

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __exit__(self, *_: object) -> None:
        self.close()


def parse_address(location: str | Path) -> URL:
    """Parse a database address: the path of a file, or the address of a server; `postgres://` is also accepted.

    Raises:
        BadInput: the text is not an address, or the kind of database is not supported.
    """
    if isinstance(location, Path) or "://" not in location:
        return URL.create("sqlite", database=str(Path(location).expanduser().absolute()))
    try:
        url = make_url(location)
    except ArgumentError:
        raise BadInput("this is not the address of a database; write a file's path or postgresql://…") from None
    match url.drivername:
        case "sqlite":
            if not url.database or url.database == ":memory:":
                raise BadInput("a database in memory would lose its votes; specify a file instead")
            return url
        case "postgres" | "postgresql" | "postgresql+psycopg":
            return url.set(drivername="postgresql+psycopg")
    raise BadInput(f"{url.drivername} is not supported; podeval keeps its records in SQLite or PostgreSQL")


def _open_sqlite(url: URL, read_only: bool = False) -> Engine:
    file = Path(str(url.database))
    if read_only:
        # Without a log, the file is complete by itself; otherwise, the log is indexed in memory.
        log = file.with_name(f"{file.name}-wal")
        how = "readonly_shm=1" if log.exists() and log.stat().st_size else "immutable=1"
        return create_engine(f"sqlite:///{file.as_uri()}?mode=ro&{how}&uri=true", **_POOL)
    refuse_shared_mount(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot create {file.parent}: {error.strerror}; choose a writable folder") from error
    # With isolation_level None, the driver itself does not start transactions; `_begin` does.
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "isolation_level": None}, **_POOL)
    event.listen(engine, "connect", _safe_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def _safe_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """Set a connection to commit durably, and refuse it if it does not."""
    cursor = connection.cursor()
    settings: dict[str, str | int] = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": round(1000 * BUSY_SECONDS),
    }
    for pragma, value in settings.items():
        _set(cursor, pragma, value)
        setting = cursor.execute(f"PRAGMA {pragma}").fetchone()[0]
        if setting != value:
            connection.close()
            raise StoreUnusable(
                f"SQLite uses {pragma} {setting} instead of {value}, so votes could be lost; "
                "put the database on a local disk, or use PostgreSQL (DATABASE_URL)"
            )
    cursor.close()


def _set(cursor: Any, pragma: str, value: str | int) -> None:
    """Set a pragma, retrying while the file is locked: SQLite does not wait if several connections create its log."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute(f"PRAGMA {pragma} = {value}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if "wait" not in options:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")
        return
    # Waiting for earlier threads may have used up most of this thread's time.
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(1000 * min(options['wait'], BUSY_SECONDS))}")
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")


def _open_postgresql(url: URL) -> Engine:
    try:
        # If the server has closed a connection, the connection is replaced before use.
        engine = create_engine(url, connect_args={"connect_timeout": 10}, pool_pre_ping=True, **_POOL)
    except ModuleNotFoundError as error:
        raise BadInput(f"PostgreSQL needs the package {error.name}; run `pip install 'podeval[postgres]'`") from None
    event.listen(engine, "connect", _safe_postgresql)
    return engine


def _safe_postgresql(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for setting in ("synchronous_commit", "fsync"):
        cursor.execute(f"SHOW {setting}")
        if cursor.fetchone() == ("off",):
            connection.close()
            raise StoreUnusable(f"the PostgreSQL setting {setting} is off, so votes could be lost; turn it on")
    cursor.close()
    connection.rollback()


def refuse_shared_mount(file: Path, mounts: str | None = None) -> None:
    """Refuse a location without the locks and syncs of a local disk, such as a bucket or a network share.

    Args:
        file: the database file, which need not exist.
        mounts: the text of `/proc/self/mounts`; None reads that file.

    Raises:
        BadInput: the file is on a mount without these locks and syncs.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
    real = os.path.realpath(file)
    longest, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        _, written, mount_kind, *_ = fields
        # Spaces in a name are written as `\040`, so they are restored only after the line has been split.
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), written)
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(longest):
            longest, kind = point, mount_kind
    if kind.startswith(_SHARED_MOUNTS) and kind not in _LOCAL_FUSE:
        raise BadInput(
            f"{file} is on a {kind} mount ({longest}), where SQLite can lose written data; "
            "put it on a local disk, or use PostgreSQL (DATABASE_URL)"
        )


def _met_another(error: DBAPIError) -> bool:
    """Return whether a retry may help."""
    return getattr(error.orig, "sqlstate", None) in _MET_ANOTHER or "database is locked" in str(error.orig)


def _translate(error: DBAPIError | NoConnectionLeft, name: str) -> Exception:
    """Turn an error that the operator can fix into a clear message; return any other error unchanged."""
    if isinstance(error, NoConnectionLeft):
        return StoreUnusable(f"the database {name} does not answer (all connections are waiting for it); try again")
    message, start = _first_line(error), f"the database {name}"
    is_gone = getattr(error.orig, "sqlstate", None) == _NO_TABLE
    is_damaged = any(word in message for word in ("malformed", "not a database", "corrupt"))
    is_silent = isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated
    restore = "stop the site, restore the last backup with `podeval restore`, then read back the public log"
    sentences = (
        ("disk" in message and "full" in message, f"the disk of {name} is full, so nothing was recorded; free space"),
        ("readonly" in message, f"{name} was not writable when it was opened, so nothing was recorded; start again"),
        (is_damaged, f"{start} is damaged ({message}); {restore}"),
        (is_gone, f"the tables of {start} are missing; restore a backup with `podeval restore`"),
        (is_silent, f"{start} does not answer ({message}), so nothing was recorded; try again"),
    )
    sentence = next((sentence for applies, sentence in sentences if applies), "")
    return StoreUnusable(sentence) if sentence else error


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]


def find_damage(database: Database) -> str | None:
    """Return the fault that SQLite's own check finds in a file; None if it finds none, or for a server."""
    if not database.is_sqlite:
        return None
    with database.reading() as session:
        problems: list[Any] = [row[0] for row in session.execute(text("PRAGMA integrity_check"))]
        broken = session.execute(text("PRAGMA foreign_key_check")).all()
    if problems != ["ok"]:
        return str(problems[0])
    return f"{len(broken)} rows refer to rows that do not exist" if broken else None
