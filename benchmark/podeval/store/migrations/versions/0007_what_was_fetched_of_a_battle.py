"""Adds the sent part of each side's sound; it is null for earlier battles, for which nobody counted it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Apply it."""
    op.add_column("battles", sa.Column("fetched_a", sa.Float(), nullable=True))
    op.add_column("battles", sa.Column("fetched_b", sa.Float(), nullable=True))
