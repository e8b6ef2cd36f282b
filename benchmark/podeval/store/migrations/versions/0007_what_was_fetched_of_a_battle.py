"""Adds the share of each side's sound that was sent; it is null for earlier battles, for which it was not counted."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Apply the migration."""
    op.add_column("battles", sa.Column("fetched_a", sa.Float(), nullable=True))
    op.add_column("battles", sa.Column("fetched_b", sa.Float(), nullable=True))
