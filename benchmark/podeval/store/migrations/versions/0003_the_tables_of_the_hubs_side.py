"""Creates the tables for the Hub side of submissions: jobs with their costs, and results proposed to repos."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Apply the migration."""
    op.create_table(
        "hub_jobs",
        sa.Column("submission", sa.String(length=40), nullable=False),
        sa.Column("run", sa.String(length=200), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(length=100), nullable=False),
        sa.Column("namespace", sa.String(length=100), nullable=False),
        sa.Column("image", sa.String(length=300), nullable=False),
        sa.Column("flavour", sa.String(length=60), nullable=False),
        sa.Column("minutes", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("per_minute", sa.Float(), nullable=False),
        sa.Column("reserved", sa.Float(), nullable=False),
        sa.Column("spent", sa.Float(), nullable=True),
        sa.Column("stage", sa.String(length=20), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("reserved >= 0 and (spent is null or spent >= 0)", name=op.f("ck_hub_jobs_money")),
        sa.ForeignKeyConstraint(["submission"], ["submissions.id"], name=op.f("fk_hub_jobs_submission")),
        sa.PrimaryKeyConstraint("submission", "run", "round", name=op.f("pk_hub_jobs")),
    )
    op.create_table(
        "hub_proposals",
        sa.Column("submission", sa.String(length=40), nullable=False),
        sa.Column("form", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state in ('waiting', 'open', 'there', 'refused')", name=op.f("ck_hub_proposals_state")),
        sa.ForeignKeyConstraint(["submission"], ["submissions.id"], name=op.f("fk_hub_proposals_submission")),
        sa.PrimaryKeyConstraint("submission", "form", name=op.f("pk_hub_proposals")),
    )
