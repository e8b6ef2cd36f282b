"""The database of judgements and submissions, and the service's secret."""

from podeval.store.database import Database

__all__ = [
    "Database",
    "database",
    "migrate",
    "operator_settings",
    "pseudonyms",
    "secret",
    "submission_tables",
    "tables",
    "vote_counts",
]
