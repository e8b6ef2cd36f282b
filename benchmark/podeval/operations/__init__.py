"""Operation of a board: backup and restore, retention, moderation of votes, listeners and submissions."""

__all__ = ["backup", "backup_database", "moderation", "restore", "retention"]
