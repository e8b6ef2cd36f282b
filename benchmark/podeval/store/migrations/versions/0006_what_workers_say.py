"""Adds the table of the lines that workers report while they work on a submission."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Apply the migration."""
    op.create_table(
        "submission_log",
        sa.Column("submission", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("item", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission"], ["submissions.id"], name=op.f("fk_submission_log_submission_submissions")
        ),
        sa.PrimaryKeyConstraint("submission", "number", name=op.f("pk_submission_log")),
    )
