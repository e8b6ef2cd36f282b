"""How much of each side's sound was sent; null for the battles from before, of which nobody counted it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Apply it."""
    op.add_column("battles", sa.Column("fetched_a", sa.Float(), nullable=True))
    op.add_column("battles", sa.Column("fetched_b", sa.Float(), nullable=True))
