"""Operation of a board: backup and restore, and retention."""

__all__ = ["backup", "backup_database", "restore", "retention"]
