"""Creates the tables of submissions."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "submissions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(length=100), nullable=False),
        sa.Column("owner_proven", sa.Boolean(), nullable=False),
        sa.Column("system", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("profile", sa.String(length=20), nullable=False),
        sa.Column("pinned", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("rule", sa.String(length=40), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("items_done", sa.Integer(), nullable=False),
        sa.Column("items_total", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("worked_seconds", sa.Float(), nullable=False),
        sa.CheckConstraint(
            "state in ('received', 'checked', 'queued', 'running', 'measured', 'published', "
            "'refused', 'failed', 'cancelled', 'withdrawn')",
            name=op.f("ck_submissions_state"),
        ),
        sa.CheckConstraint("attempt >= 0 and failures >= 0", name=op.f("ck_submissions_attempts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint("number", name=op.f("uq_submissions_number")),
    )
    with op.batch_alter_table("submissions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_submissions_digest"), ["digest"], unique=False)
        batch_op.create_index(batch_op.f("ix_submissions_owner"), ["owner"], unique=False)
        batch_op.create_index(batch_op.f("ix_submissions_state"), ["state"], unique=False)
        batch_op.create_index("ix_submissions_state_priority_number", ["state", "priority", "number"], unique=False)
        batch_op.create_index(batch_op.f("ix_submissions_system"), ["system"], unique=False)

    op.create_table(
        "leases",
        sa.Column("submission", sa.String(length=40), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=100), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("beat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["submission"], ["submissions.id"], name=op.f("fk_leases_submission")),
        sa.PrimaryKeyConstraint("submission", name=op.f("pk_leases")),
    )
    with op.batch_alter_table("leases", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_leases_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "submission_history",
        sa.Column("submission", sa.String(length=40), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("before", sa.String(length=20), nullable=False),
        sa.Column("after", sa.String(length=20), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("made_by", sa.String(length=100), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["submission"], ["submissions.id"], name=op.f("fk_submission_history_submission")),
        sa.PrimaryKeyConstraint("submission", "step", name=op.f("pk_submission_history")),
    )
