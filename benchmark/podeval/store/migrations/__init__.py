"""Alembic's migrations, one file a version; `env.py` says how they run."""
