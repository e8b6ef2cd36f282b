"""The database of judgements and submissions, files that are written whole or not at all, and the service's secret."""

__all__ = [
    "database",
    "files",
    "migrate",
    "operator_settings",
    "pseudonyms",
    "retire_outputs",
    "secret",
    "submission_tables",
    "tables",
]
