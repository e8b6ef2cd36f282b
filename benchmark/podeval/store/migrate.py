"""Upgrade the tables of a database to this version of podeval."""

import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, text
from sqlalchemy.orm import Session

from podeval.errors import StoreUnusable
from podeval.store.vote_counts import recount

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

_COUNTED = "0008"
"""The version that introduced running counts of votes; earlier votes are counted in one step during the upgrade."""

_ONE = threading.Lock()
_LOCK = 0x706F6465
"""PostgreSQL lock for table changes, so that two servers that start at the same time take turns."""


def upgrade(engine: Engine, name: str) -> None:
    """Create or upgrade the tables to this version; do nothing if they are current.

    Raises:
        StoreUnusable: a newer podeval has changed them.
    """
    from alembic import command

    if _version(engine) == _newest():
        return
    # Alembic keeps global state for the whole process.
    with _ONE, engine.execution_options(writes=True).begin() as connection:
        if engine.dialect.name != "sqlite":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        version = _version_seen(connection)
        _refuse_newer(version, name)
        command.upgrade(build_configuration(connection), "head")
        if version is not None and version < _COUNTED:
            with Session(connection) as session:
                recount(session)
                session.commit()


def create_tables(engine: Engine, revision: str, name: str) -> None:
    """Create the tables of an earlier version, or of the current version, in an empty database.

    Args:
        engine: the database.
        revision: the version.
        name: the owner of the tables, for the message.

    Raises:
        StoreUnusable: the tables are those of a newer podeval.
    """
    from alembic import command

    _refuse_newer(revision, name)
    with _ONE, engine.begin() as connection:
        command.upgrade(build_configuration(connection), revision)


def check(engine: Engine, name: str) -> None:
    """Refuse tables of a different version.

    Raises:
        StoreUnusable: the tables have a different version; the message says what to do.
    """
    version = _version(engine)
    if version != _newest():
        _refuse_newer(version, name)
        raise StoreUnusable(f"the tables of {name} are missing or out of date; run `podeval arena status`")


def build_configuration(connection: Connection | None = None) -> "Config":
    """Return Alembic's configuration for the migrations in this package."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def _refuse_newer(revision: str | None, name: str) -> None:
    if revision is not None and revision not in {script.revision for script in _scripts().walk_revisions()}:
        raise StoreUnusable(f"the tables of {name} were made by a newer podeval (version {revision}); upgrade podeval")


def _newest() -> str:
    return str(_scripts().get_current_head())


@cache
def _scripts() -> "ScriptDirectory":
    """Return the migrations of this package, which do not change while a process runs."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(build_configuration())


def _version(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return _version_seen(connection)


def _version_seen(connection: Connection) -> str | None:
    from alembic.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()
