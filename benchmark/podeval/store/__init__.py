"""The world at rest: results of runs as validated, versioned files."""

__all__ = [
    "copies",
    "database",
    "files",
    "operator_settings",
    "pseudonyms",
    "retire_outputs",
    "secret",
    "submission_tables",
    "tables",
]
