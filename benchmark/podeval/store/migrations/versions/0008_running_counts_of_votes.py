"""Adds running counts of battles and votes; `store.migrate` fills them from the existing rows."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Apply the migration."""
    pair = {"protocol": 20, "dimension": 100, "low": 200, "high": 200}
    _create("pair_counts", pair, ("served", "low_won", "high_won", "neither"))
    _create("item_counts", {**pair, "item": 200}, ("served",))
    _create("system_counts", {"protocol": 20, "dimension": 100, "system": 200}, ("votes", "voters"))
    op.create_table(
        "rated_votes",
        sa.Column("dimension", sa.String(length=100), nullable=False),
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("dimension", "number", name=op.f("pk_rated_votes")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_rated_votes_number", "rated_votes", ["number"])


def _create(name: str, keys: dict[str, int], numbers: tuple[str, ...]) -> None:
    op.create_table(
        name,
        *(sa.Column(key, sa.String(length=length), nullable=False) for key, length in keys.items()),
        *(sa.Column(number, sa.Integer(), nullable=False) for number in numbers),
        sa.PrimaryKeyConstraint(*keys, name=op.f(f"pk_{name}")),
        sqlite_with_rowid=False,
    )
