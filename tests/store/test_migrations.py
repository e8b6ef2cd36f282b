"""From every earlier schema, with rows in every table, to this one: nothing is lost and nothing is changed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from podeval.store.database import Database, parse_address
from podeval.store.migrate import build_configuration
from podeval.store.tables import TableBase

MOMENT = datetime(2026, 3, 29, 1, 30, 15, 123456, tzinfo=UTC)
"""In the hour that Europe's clocks leave out, to the microsecond."""

ROWS = 3
CHOSEN: dict[tuple[str, str], tuple[Any, ...]] = {
    ("systems", "kind"): ("system", "human", "control"),
    ("listening_sessions", "standing"): ("counted", "excluded", "counted"),
    ("votes", "standing"): ("counted", "excluded", "counted"),
    ("votes", "outcome"): ("a", "both_bad", "skip"),
    ("battles", "purpose"): ("rating", "rating", "rating"),
    ("battles", "repeats"): (None, None, None),
    ("battles", "low"): ("é中0", "é中0", "é中1"),
    ("battles", "high"): ("é中1", "é中2", "é中2"),
    ("flags", "kind"): ("signal", "excluded", "counted"),
    ("flags", "session"): (None, None, None),
    ("submissions", "state"): ("queued", "published", "refused"),
    ("hub_proposals", "state"): ("waiting", "open", "there"),
}
"""Where a rule of the tables allows only some values."""


def revisions() -> list[str]:
    """Every schema there was, oldest first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(build_configuration()).walk_revisions()
    return [script.revision for script in scripts][::-1]


def value(column: sa.Column[Any], number: int, rows: dict[str, list[dict[str, Any]]]) -> Any:
    """What stands in a column of row `number`; a key of the row that it leads to where it leads to one."""
    if (column.table.name, column.name) in CHOSEN:
        return CHOSEN[column.table.name, column.name][number]
    for key in column.foreign_keys:
        target = key.column
        return rows[target.table.name][number][target.name]
    kind = getattr(column.type, "impl", column.type)
    if isinstance(kind, sa.Boolean):
        return number % 2 == 0
    if isinstance(kind, sa.DateTime):
        return MOMENT + timedelta(days=number)
    if isinstance(kind, sa.Integer):
        return number + 1
    if isinstance(kind, sa.Float | sa.Numeric):
        return (number + 1) * 0.3
    if isinstance(kind, sa.LargeBinary):
        return bytes([number, 0, 255])
    if isinstance(kind, sa.JSON):
        return {"a": [number, None, "é中"]}
    return f"é中{number}"[: getattr(kind, "length", None) or 10]


def fill(connection: sa.Connection, tables: list[sa.Table]) -> dict[str, list[dict[str, Any]]]:
    """Rows in every table, in an order that foreign keys allow."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for table in tables:
        rows[table.name] = [
            {column.name: value(column, number, rows) for column in table.columns} for number in range(ROWS)
        ]
        connection.execute(table.insert(), rows[table.name])
    return rows


def tables_of(connection: sa.Connection) -> list[sa.Table]:
    """The tables as they are, with the types that the code reads and writes where it knows them."""
    found = sa.MetaData()
    found.reflect(connection)
    for table in found.tables.values():
        known = TableBase.metadata.tables.get(table.name)
        for column in table.columns:
            if known is not None and column.name in known.columns:
                column.type = known.columns[column.name].type
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def content(connection: sa.Connection, tables: list[sa.Table], columns: dict[str, list[str]]) -> dict[str, list[Any]]:
    return {
        table.name: sorted(map(repr, connection.execute(sa.select(*(table.c[name] for name in columns[table.name])))))
        for table in tables
        if table.name in columns
    }


SHORT = (revisions()[0], revisions()[-1])
"""On a server the oldest passes through all the steps; from those between, it is the long run that goes."""


@pytest.mark.parametrize(
    ("database_place", "revision"),
    [
        *(("sqlite", revision) for revision in revisions()),
        *(("postgresql", revision) for revision in SHORT),
        *(pytest.param("postgresql", r, marks=pytest.mark.long) for r in revisions() if r not in SHORT),
    ],
    indirect=["database_place"],
)
def test_rows_of_every_earlier_schema_are_all_there_afterwards(database_place: str, revision: str) -> None:
    from alembic import command

    engine = sa.create_engine(parse_address(database_place))
    with engine.begin() as connection:
        command.upgrade(build_configuration(connection), revision)
    with engine.begin() as connection:
        tables = tables_of(connection)
        assert fill(connection, tables)
    columns = {table.name: [column.name for column in table.columns] for table in tables}
    with engine.connect() as connection:
        before = content(connection, tables, columns)
    assert all(len(rows) == ROWS for rows in before.values())
    assert len(before) == len(tables) > 0
    with Database(database_place) as opened, opened.engine.connect() as connection:
        from alembic.autogenerate import compare_metadata
        from alembic.migration import MigrationContext

        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert context.get_current_revision() == revisions()[-1]
        assert compare_metadata(context, TableBase.metadata) == []
        assert content(connection, tables_of(connection), columns) == before
    engine.dispose()
