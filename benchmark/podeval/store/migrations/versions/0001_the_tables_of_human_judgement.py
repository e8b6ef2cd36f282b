"""Creates the tables of human judgement."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "erasures",
        sa.Column("pseudonym", sa.String(length=40), nullable=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("votes", sa.Integer(), nullable=False),
        sa.Column("sessions", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("pseudonym", name=op.f("pk_erasures")),
    )
    op.create_table(
        "items",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("benchmark", sa.String(length=100), nullable=False),
        sa.Column("dimension", sa.String(length=100), nullable=False),
        sa.Column("capability", sa.String(length=200), nullable=False),
        sa.Column("language", sa.String(length=20), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("instructions", sa.Text(), nullable=False),
        sa.Column("turns", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
    )
    with op.batch_alter_table("items", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_items_dimension"), ["dimension"], unique=False)

    op.create_table(
        "listening_tests",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("design", sa.JSON(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_listening_tests")),
    )
    op.create_table(
        "mirror_files",
        sa.Column("path", sa.String(length=200), nullable=False),
        sa.Column("repo", sa.String(length=200), nullable=False),
        sa.Column("planned_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("commit", sa.String(length=40), nullable=True),
        sa.PrimaryKeyConstraint("path", "repo", name=op.f("pk_mirror_files")),
    )
    op.create_table(
        "mirrored",
        sa.Column("repo", sa.String(length=200), nullable=False),
        sa.Column("record", sa.String(length=120), nullable=False),
        sa.Column("path", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("repo", "record", name=op.f("pk_mirrored")),
    )
    op.create_table(
        "pseudonyms",
        sa.Column("identity", sa.String(length=64), nullable=False),
        sa.Column("key", sa.LargeBinary(length=32), nullable=False),
        sa.Column("pseudonym", sa.String(length=40), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("identity", name=op.f("pk_pseudonyms")),
        sa.UniqueConstraint("pseudonym", name=op.f("uq_pseudonyms_pseudonym")),
    )
    op.create_table(
        "systems",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("title", sa.String(length=300), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind in ('system', 'human', 'control')", name=op.f("ck_systems_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_systems")),
    )
    op.create_table(
        "listening_sessions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("test", sa.String(length=64), nullable=False),
        sa.Column("listener", sa.String(length=40), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("pages", sa.JSON(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.String(length=40), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completion_code", sa.String(length=64), nullable=True),
        sa.Column("standing", sa.String(length=10), nullable=False),
        sa.Column("standing_reason", sa.Text(), nullable=False),
        sa.Column("standing_by", sa.String(length=100), nullable=False),
        sa.CheckConstraint("standing in ('counted', 'excluded')", name=op.f("ck_listening_sessions_standing")),
        sa.ForeignKeyConstraint(["test"], ["listening_tests.id"], name=op.f("fk_listening_sessions_test")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_listening_sessions")),
        sa.UniqueConstraint("completion_code", name=op.f("uq_listening_sessions_completion_code")),
        sa.UniqueConstraint("test", "listener", name=op.f("uq_listening_sessions_test_listener")),
        sa.UniqueConstraint("test", "place", name=op.f("uq_listening_sessions_test_place")),
    )
    with op.batch_alter_table("listening_sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_listening_sessions_listener"), ["listener"], unique=False)

    op.create_table(
        "outputs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("system", sa.String(length=200), nullable=False),
        sa.Column("item", sa.String(length=200), nullable=False),
        sa.Column("audio", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("loudness", sa.Float(), nullable=True),
        sa.Column("turns", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("seconds >= 0", name=op.f("ck_outputs_seconds")),
        sa.ForeignKeyConstraint(["item"], ["items.id"], name=op.f("fk_outputs_item")),
        sa.ForeignKeyConstraint(["system"], ["systems.id"], name=op.f("fk_outputs_system")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outputs")),
        sa.UniqueConstraint("system", "item", name=op.f("uq_outputs_system_item")),
    )
    with op.batch_alter_table("outputs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outputs_item"), ["item"], unique=False)

    op.create_table(
        "battles",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("voter", sa.String(length=40), nullable=False),
        sa.Column("item", sa.String(length=200), nullable=False),
        sa.Column("output_a", sa.String(length=64), nullable=False),
        sa.Column("output_b", sa.String(length=64), nullable=False),
        sa.Column("low", sa.String(length=200), nullable=False),
        sa.Column("high", sa.String(length=200), nullable=False),
        sa.Column("dimension", sa.String(length=100), nullable=False),
        sa.Column("capability", sa.String(length=200), nullable=False),
        sa.Column("purpose", sa.String(length=10), nullable=False),
        sa.Column("repeats", sa.String(length=32), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("pairing", sa.String(length=40), nullable=False),
        sa.Column("excerpt", sa.JSON(), nullable=False),
        sa.Column("served_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(purpose = 'gold') = (repeats is not null)", name=op.f("ck_battles_repeats")),
        sa.CheckConstraint("purpose in ('rating', 'gold')", name=op.f("ck_battles_purpose")),
        sa.CheckConstraint("low < high", name=op.f("ck_battles_pair")),
        sa.ForeignKeyConstraint(["high"], ["systems.id"], name=op.f("fk_battles_high")),
        sa.ForeignKeyConstraint(["item"], ["items.id"], name=op.f("fk_battles_item")),
        sa.ForeignKeyConstraint(["low"], ["systems.id"], name=op.f("fk_battles_low")),
        sa.ForeignKeyConstraint(["output_a"], ["outputs.id"], name=op.f("fk_battles_output_a")),
        sa.ForeignKeyConstraint(["output_b"], ["outputs.id"], name=op.f("fk_battles_output_b")),
        sa.ForeignKeyConstraint(["repeats"], ["battles.id"], name=op.f("fk_battles_repeats"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_battles")),
        sa.UniqueConstraint(
            "voter", "low", "high", "item", "purpose", name=op.f("uq_battles_voter_low_high_item_purpose")
        ),
    )
    with op.batch_alter_table("battles", schema=None) as batch_op:
        batch_op.create_index("ix_battles_dimension_low_high", ["dimension", "low", "high"], unique=False)
        batch_op.create_index(batch_op.f("ix_battles_voter"), ["voter"], unique=False)

    op.create_table(
        "listening_answers",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("session", sa.String(length=64), nullable=False),
        sa.Column("page", sa.String(length=100), nullable=False),
        sa.Column("item", sa.String(length=200), nullable=False),
        sa.Column("stimulus", sa.String(length=200), nullable=False),
        sa.Column("question", sa.String(length=100), nullable=False),
        sa.Column("choice", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["session"], ["listening_sessions.id"], name=op.f("fk_listening_answers_session"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_listening_answers")),
        sa.UniqueConstraint(
            "session", "page", "stimulus", "question", name=op.f("uq_listening_answers_session_page_stimulus_question")
        ),
    )
    op.create_table(
        "listening_ratings",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("session", sa.String(length=64), nullable=False),
        sa.Column("page", sa.String(length=100), nullable=False),
        sa.Column("item", sa.String(length=200), nullable=False),
        sa.Column("stimulus", sa.String(length=200), nullable=False),
        sa.Column("scale", sa.String(length=100), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("heard", sa.Float(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("heard is null or heard between 0 and 1", name=op.f("ck_listening_ratings_heard")),
        sa.ForeignKeyConstraint(
            ["session"], ["listening_sessions.id"], name=op.f("fk_listening_ratings_session"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_listening_ratings")),
        sa.UniqueConstraint(
            "session", "page", "stimulus", "scale", name=op.f("uq_listening_ratings_session_page_stimulus_scale")
        ),
    )
    op.create_table(
        "votes",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("battle", sa.String(length=32), nullable=False),
        sa.Column("voter", sa.String(length=40), nullable=False),
        sa.Column("outcome", sa.String(length=10), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("comment_cut", sa.Boolean(), nullable=False),
        sa.Column("heard_a", sa.Float(), nullable=False),
        sa.Column("heard_b", sa.Float(), nullable=False),
        sa.Column("seconds_a", sa.Float(), nullable=False),
        sa.Column("seconds_b", sa.Float(), nullable=False),
        sa.Column("elapsed", sa.Float(), nullable=True),
        sa.Column("origin", sa.String(length=40), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("standing", sa.String(length=10), nullable=False),
        sa.Column("standing_reason", sa.Text(), nullable=False),
        sa.Column("standing_by", sa.String(length=100), nullable=False),
        sa.CheckConstraint("outcome in ('a', 'b', 'tie', 'both_bad', 'skip')", name=op.f("ck_votes_outcome")),
        sa.CheckConstraint("standing in ('counted', 'excluded')", name=op.f("ck_votes_standing")),
        sa.CheckConstraint("heard_a between 0 and 1 and heard_b between 0 and 1", name=op.f("ck_votes_heard")),
        sa.CheckConstraint("seconds_a >= 0 and seconds_b >= 0", name=op.f("ck_votes_seconds")),
        sa.ForeignKeyConstraint(["battle"], ["battles.id"], name=op.f("fk_votes_battle")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_votes")),
        sa.UniqueConstraint("battle", name=op.f("uq_votes_battle")),
        sa.UniqueConstraint("id", name=op.f("uq_votes_id")),
    )
    with op.batch_alter_table("votes", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_votes_voter"), ["voter"], unique=False)

    op.create_table(
        "flags",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("vote", sa.String(length=64), nullable=True),
        sa.Column("session", sa.String(length=64), nullable=True),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("rule", sa.String(length=40), nullable=False),
        sa.Column("points", sa.Float(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("made_by", sa.String(length=100), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind in ('signal', 'excluded', 'counted')", name=op.f("ck_flags_kind")),
        sa.CheckConstraint("(vote is null) <> (session is null)", name=op.f("ck_flags_about_one")),
        sa.ForeignKeyConstraint(
            ["session"], ["listening_sessions.id"], name=op.f("fk_flags_session"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["vote"], ["votes.id"], name=op.f("fk_flags_vote"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_flags")),
        sa.UniqueConstraint("id", name=op.f("uq_flags_id")),
    )
    with op.batch_alter_table("flags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_flags_session"), ["session"], unique=False)
        batch_op.create_index(batch_op.f("ix_flags_vote"), ["vote"], unique=False)
