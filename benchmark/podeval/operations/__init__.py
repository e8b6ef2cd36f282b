"""Operation of a board: backup and restore, retention, moderation of votes, listeners and submissions."""

__all__ = ["backup", "backup_archive", "moderation", "postgresql_dump", "restore", "retention"]
