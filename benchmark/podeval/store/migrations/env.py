"""Runs the migrations, one file per version, on the connection that `store.migrate` passes, inside its transaction."""

from alembic import context

from podeval.store import operator_settings, submission_tables, vote_counts  # noqa: F401 - makes their tables known
from podeval.store.tables import TableBase

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=TableBase.metadata, render_as_batch=True, compare_type=True)
context.run_migrations()
