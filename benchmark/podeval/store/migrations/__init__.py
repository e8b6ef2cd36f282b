"""Alembic's migrations, one file per version; `env.py` runs them."""
