"""Operation of a board: backup and restore, retention, moderation of votes, listeners and submissions."""

__all__ = ["backup", "moderation", "postgresql_dump", "restore", "retention"]
