"""The database of judgements and submissions, and the service's secret."""

__all__ = [
    "database",
    "migrate",
    "operator_settings",
    "pseudonyms",
    "secret",
    "submission_tables",
    "tables",
    "vote_counts",
]
