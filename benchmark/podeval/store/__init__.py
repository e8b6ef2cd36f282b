"""The database of judgements and submissions, and the service's secret."""

__all__ = [
    "database",
    "migrate",
    "operator_settings",
    "pseudonyms",
    "retire_outputs",
    "secret",
    "submission_tables",
    "tables",
    "vote_counts",
]
