"""Adds columns for the compared material (excerpts or whole recordings), the share that was heard, and the clarity of
the preference.

Columns are only added, so no rows are rewritten; SQLite would have to drop and copy a table for any other change.
Earlier battles used whole recordings if their rule says so, and excerpts otherwise.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_BATTLES = sa.table("battles", sa.column("id"), sa.column("excerpt", sa.JSON), sa.column("protocol"))
_VOTES = sa.table(
    "votes",
    *(sa.column(name) for name in ("number", "battle", "heard_a", "heard_b", "heard_seconds_a", "heard_seconds_b")),
)
_AT_ONCE = 1_000


def upgrade() -> None:
    """Apply the migration."""
    op.add_column("battles", sa.Column("protocol", sa.String(length=20), nullable=False, server_default="excerpts"))
    op.add_column("votes", sa.Column("heard_seconds_a", sa.Float(), nullable=False, server_default="0"))
    op.add_column("votes", sa.Column("heard_seconds_b", sa.Float(), nullable=False, server_default="0"))
    op.add_column("votes", sa.Column("preference", sa.String(length=10), nullable=False, server_default=""))
    connection = op.get_bind()
    whole, lengths = _read_battles(connection)
    mark_whole = sa.update(_BATTLES).where(_BATTLES.c.id == sa.bindparam("battle")).values(protocol="whole")
    for start in range(0, len(whole), _AT_ONCE):
        connection.execute(mark_whole, [{"battle": battle} for battle in whole[start : start + _AT_ONCE]])
    heard = [
        {"vote": vote.number, "a": vote.heard_a * lengths[vote.battle][0], "b": vote.heard_b * lengths[vote.battle][1]}
        for vote in connection.execute(sa.select(_VOTES))
        if vote.battle in lengths
    ]
    set_heard = (
        sa.update(_VOTES)
        .where(_VOTES.c.number == sa.bindparam("vote"))
        .values(heard_seconds_a=sa.bindparam("a"), heard_seconds_b=sa.bindparam("b"))
    )
    for start in range(0, len(heard), _AT_ONCE):
        connection.execute(set_heard, heard[start : start + _AT_ONCE])


def _read_battles(connection: sa.Connection) -> tuple[list[str], dict[str, tuple[float, float]]]:
    """Return the battles that used whole recordings, and the lengths of the two sides of each battle."""
    whole: list[str] = []
    lengths: dict[str, tuple[float, float]] = {}
    for id, stored in connection.execute(sa.select(_BATTLES.c.id, _BATTLES.c.excerpt)):
        excerpt: dict[str, Any] = json.loads(stored) if isinstance(stored, str) else stored or {}
        if excerpt.get("rule") == "whole":
            whole.append(id)
        if "a" in excerpt and "b" in excerpt:
            (begin_a, end_a), (begin_b, end_b) = excerpt["a"], excerpt["b"]
            lengths[id] = max(0.0, end_a - begin_a), max(0.0, end_b - begin_b)
    return whole, lengths
