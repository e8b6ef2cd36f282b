"""Operating a board: backup, restore and retention."""

__all__ = ["backup", "backup_database", "restore", "retention"]
